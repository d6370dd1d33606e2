//! Settings of the operator for outbound calls, and endpoints of the cluster itself.

use std::net::{IpAddr, SocketAddr};

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::host::{HostName, UrlHost};
use crate::network::{IpNetwork, NetworkError, PortRange};
use crate::pool::PoolLimits;
use crate::proxy::{OutboundProxy, ProxyError};
use crate::purpose::EgressPurpose;

/// Upper bound of the entries of a policy.
pub const ALLOW_ENTRIES_MAX: usize = 1024;
/// Upper bound of the port ranges of an entry.
pub const PORT_RANGES_MAX: usize = 64;
/// Upper bound of the settings for concurrent calls.
const CALLS_MAX: usize = 1 << 20;

/// Entry of `egress.allow` in its original form. Exactly one of `cidr`, `host` and `suffix` is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowEntry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cidr: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suffix: Option<String>,
    #[serde(default)]
    pub ports: Vec<PortRange>,
    #[serde(default, rename = "for")]
    pub purposes: Vec<EgressPurpose>,
}

/// Table `egress` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EgressSettings {
    /// Targets that may be called besides https to public ones. Each entry has one of `cidr`, `host` and `suffix`, with
    /// `ports`, and `for` with some of `models`, `webhooks`, `mcp` and `media`.
    pub allow: Vec<AllowEntry>,
    /// Whether https to any public address is allowed. If false, only targets in `allow` are.
    pub public: bool,
    /// PEM file with authorities to trust for https, besides those of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Proxy for calls to public addresses, such as `http://proxy.example:3128`. It is asked for tunnels with CONNECT.
    /// Targets in `allow` with other addresses are called directly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// File with the value of `Proxy-Authorization` for the proxy, readable by its owner alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_authorization_file: Option<PathBuf>,
    /// Upper bound of the outbound calls at the same time. A call beyond it waits for 5 s, and fails then. The limit of
    /// open files lowers this bound.
    pub calls_max: usize,
    /// The same bound for the calls of one organization to one host and port.
    pub calls_per_origin_max: usize,
}

impl Default for EgressSettings {
    fn default() -> EgressSettings {
        let limits = PoolLimits::default();
        EgressSettings {
            allow: Vec::new(),
            public: true,
            ca_file: None,
            proxy: None,
            proxy_authorization_file: None,
            calls_max: limits.calls_max,
            calls_per_origin_max: limits.calls_per_origin_max,
        }
    }
}

impl EgressSettings {
    /// Checks the settings without reading files.
    pub fn check(&self) -> Result<(), SettingsError> {
        self.rules()?;
        if let Some(url) = &self.proxy {
            OutboundProxy::new(url, None).map_err(SettingsError::Proxy)?;
        } else if self.proxy_authorization_file.is_some() {
            return Err(SettingsError::NoProxy);
        }
        for (setting, calls) in [("calls_max", self.calls_max), ("calls_per_origin_max", self.calls_per_origin_max)] {
            if calls == 0 || calls > CALLS_MAX {
                return Err(SettingsError::Calls { setting, calls });
            }
        }
        Ok(())
    }

    /// Returns the checked entries.
    pub(crate) fn rules(&self) -> Result<Vec<AllowRule>, SettingsError> {
        if self.allow.len() > ALLOW_ENTRIES_MAX {
            return Err(SettingsError::Entries(self.allow.len()));
        }
        self.allow.iter().enumerate().map(|(index, entry)| entry.checked(index)).collect()
    }

    /// Returns the upper bound of the connections that are kept for later calls.
    pub fn idle_max(&self) -> usize {
        PoolLimits::default().idle_max.min(self.calls_max)
    }

    /// Returns the bounds of connections.
    pub fn pool_limits(&self) -> PoolLimits {
        let (calls_max, calls_per_origin_max) = (self.calls_max, self.calls_per_origin_max);
        PoolLimits { calls_max, calls_per_origin_max, idle_max: self.idle_max(), ..PoolLimits::default() }
    }
}

/// Endpoints of the cluster itself, which are never a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnEndpoints {
    /// Listener addresses of this node, and known ones of other nodes. An unspecified address means loopback and all of
    /// `addresses`.
    pub listeners: Vec<SocketAddr>,
    /// Addresses of the interfaces of this machine. Loopback may be omitted.
    pub addresses: Vec<IpAddr>,
    /// Ports of the connections between nodes. They are refused at every address.
    pub cluster_ports: Vec<u16>,
}

/// Error of settings that do not form a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("egress.allow has {0} entries, at most 1024 are allowed")]
    Entries(usize),
    #[error("egress.allow[{0}] needs exactly one of cidr, host and suffix")]
    Target(usize),
    #[error("egress.allow[{entry}].cidr: {why}")]
    Network { entry: usize, why: NetworkError },
    #[error("egress.allow[{entry}].{field}: `{text}` is no DNS name; write networks as cidr")]
    Name { entry: usize, field: &'static str, text: String },
    #[error("egress.allow[{0}].ports needs 1 to 64 ports or ranges, such as [443, \"8000-8100\"]")]
    Ports(usize),
    #[error("egress.allow[{0}].for needs at least one of models, webhooks, mcp and media")]
    Purposes(usize),
    #[error("egress.proxy: {0}")]
    Proxy(ProxyError),
    #[error("egress.proxy_authorization_file has no effect without egress.proxy; set it too")]
    NoProxy,
    #[error("egress.{setting} is {calls}; set it to 1 to 1048576")]
    Calls { setting: &'static str, calls: usize },
}

/// Target of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AllowTarget {
    Network(IpNetwork),
    Host(HostName),
    /// Name with all names below it.
    Suffix(HostName),
}

/// Checked entry of `egress.allow`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AllowRule {
    pub(crate) target: AllowTarget,
    ports: Vec<PortRange>,
    purposes: Vec<EgressPurpose>,
}

impl AllowRule {
    pub(crate) fn is_for(&self, purpose: EgressPurpose, port: u16) -> bool {
        self.purposes.contains(&purpose) && self.ports.iter().any(|range| range.contains(port))
    }
}

impl AllowEntry {
    pub(crate) fn checked(&self, entry: usize) -> Result<AllowRule, SettingsError> {
        let target = match (&self.cidr, &self.host, &self.suffix) {
            (Some(cidr), None, None) => {
                AllowTarget::Network(cidr.parse().map_err(|why| SettingsError::Network { entry, why })?)
            }
            (None, Some(host), None) => match host.parse::<UrlHost>() {
                Ok(UrlHost::Name(name)) => AllowTarget::Host(name),
                // An address as host is the same target as a network of a single address.
                Ok(UrlHost::Address(address)) => AllowTarget::Network(IpNetwork::single(address)),
                Err(_) => return Err(SettingsError::Name { entry, field: "host", text: host.clone() }),
            },
            (None, None, Some(suffix)) => match suffix.strip_prefix('.').unwrap_or(suffix).parse::<UrlHost>() {
                Ok(UrlHost::Name(name)) => AllowTarget::Suffix(name),
                _ => return Err(SettingsError::Name { entry, field: "suffix", text: suffix.clone() }),
            },
            _ => return Err(SettingsError::Target(entry)),
        };
        if self.ports.is_empty() || self.ports.len() > PORT_RANGES_MAX {
            return Err(SettingsError::Ports(entry));
        }
        if self.purposes.is_empty() {
            return Err(SettingsError::Purposes(entry));
        }
        Ok(AllowRule { target, ports: self.ports.clone(), purposes: self.purposes.clone() })
    }
}
