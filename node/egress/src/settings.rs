//! Settings of the operator: targets that are listed, whether public ones are allowed, and what belongs to the cluster.

use std::net::{IpAddr, SocketAddr};

use serde::Deserialize;

use crate::host::{HostName, UrlHost};
use crate::network::{IpNetwork, NetworkError, PortRange};
use crate::purpose::EgressPurpose;

/// Entries that a policy may have.
pub const ALLOW_ENTRIES_MAX: usize = 1024;
/// Ranges of ports that an entry may have.
pub const PORT_RANGES_MAX: usize = 64;

/// Entry of `egress.allow`, as it is written. Exactly one of `cidr`, `host` and `suffix` is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowEntry {
    #[serde(default)]
    pub cidr: Option<String>,
    #[serde(default)]
    pub host: Option<String>,
    #[serde(default)]
    pub suffix: Option<String>,
    #[serde(default)]
    pub ports: Vec<PortRange>,
    #[serde(default, rename = "for")]
    pub purposes: Vec<EgressPurpose>,
}

/// The table `egress` of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EgressSettings {
    pub allow: Vec<AllowEntry>,
    /// Whether https to any public address is allowed.
    pub public: bool,
}

/// What belongs to the cluster itself, and is never a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnEndpoints {
    /// Addresses of listeners of this node, and of those known of other nodes. An unspecified address means loopback and all
    /// of `addresses`.
    pub listeners: Vec<SocketAddr>,
    /// Addresses of the interfaces of this machine. Loopback need not be named.
    pub addresses: Vec<IpAddr>,
    /// Ports on which nodes of the cluster listen for each other. They are refused at every address.
    pub cluster_ports: Vec<u16>,
}

/// Why settings make no policy.
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
}

/// Target of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AllowTarget {
    Network(IpNetwork),
    Host(HostName),
    /// A name and all names below it.
    Suffix(HostName),
}

/// Entry of `egress.allow`, checked.
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
                // Both are the same target, in the form of a single address.
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
