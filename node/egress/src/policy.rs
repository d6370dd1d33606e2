//! Decision about an outbound call, from its URL and all addresses of its host.
//!
//! ```text
//! URL -> normal form -> all addresses of the host -> for each: never? ours? listed? public? -> addresses to connect to
//! ```
//! A single refused address refuses the call. Otherwise, the owner of a name could mix in an internal address.

use std::net::{IpAddr, SocketAddr};

use crate::address::{AddressClass, CheckedForms};
use crate::host::UrlHost;
use crate::purpose::EgressPurpose;
use crate::settings::{AllowRule, AllowTarget, EgressSettings, OwnEndpoints, SettingsError};
use crate::url::{EgressUrl, UrlScheme};

/// Upper bound of the addresses of one name.
pub const ADDRESSES_MAX: usize = 64;

/// Rules for outbound calls.
#[derive(Clone, Debug)]
pub struct EgressPolicy {
    rules: Vec<AllowRule>,
    public: bool,
    own: OwnEndpoints,
}

/// Reason why a call is refused, for the operator's log only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EgressRefusal {
    #[error("the name has no address")]
    NoAddress,
    #[error("the name has more than 64 addresses")]
    ManyAddresses,
    #[error("{address} is {class}, which is never allowed")]
    NeverAllowed { address: IpAddr, class: AddressClass },
    #[error("{0} is a listener of this cluster")]
    OwnListener(SocketAddr),
    #[error("port {0} is a port between the nodes of this cluster")]
    ClusterPort(u16),
    #[error("{address} is {class} and not listed in egress.allow for {purpose} and this port")]
    NotListed { address: IpAddr, class: AddressClass, purpose: EgressPurpose },
    #[error("{address} is public: egress.public is false, and no entry of egress.allow lists it for {purpose}")]
    PublicOff { address: IpAddr, purpose: EgressPurpose },
    #[error("{address} is not listed in egress.allow for {purpose}: plain http goes to listed targets only")]
    PlainHttp { address: IpAddr, purpose: EgressPurpose },
}

impl EgressPolicy {
    pub fn new(settings: &EgressSettings, own: OwnEndpoints) -> Result<EgressPolicy, SettingsError> {
        Ok(EgressPolicy { rules: settings.rules()?, public: settings.public, own })
    }

    /// Returns a policy that refuses every call, for a client whose listeners are not yet known.
    pub fn closed() -> EgressPolicy {
        EgressPolicy { rules: Vec::new(), public: false, own: OwnEndpoints::default() }
    }

    /// Decides about a call, and returns the distinct addresses to connect to, in order.
    ///
    /// `addresses` are all addresses of the host. They are ignored if the URL itself contains an address.
    pub fn check(
        &self,
        purpose: EgressPurpose,
        url: &EgressUrl,
        addresses: &[IpAddr],
    ) -> Result<Vec<SocketAddr>, EgressRefusal> {
        let literal = match url.host() {
            UrlHost::Address(address) => Some([*address]),
            UrlHost::Name(_) => None,
        };
        let addresses = literal.as_ref().map_or(addresses, <[IpAddr; 1]>::as_slice);
        if addresses.is_empty() {
            return Err(EgressRefusal::NoAddress);
        }
        if addresses.len() > ADDRESSES_MAX {
            return Err(EgressRefusal::ManyAddresses);
        }
        let mut checked = Vec::with_capacity(addresses.len());
        for address in addresses {
            let target = SocketAddr::new(self.check_address(purpose, url, *address)?, url.port());
            if !checked.contains(&target) {
                checked.push(target);
            }
        }
        Ok(checked)
    }

    /// Returns the address to connect to. A mapped address becomes its IPv4 address.
    fn check_address(&self, purpose: EgressPurpose, url: &EgressUrl, address: IpAddr) -> Result<IpAddr, EgressRefusal> {
        let forms = CheckedForms::of(address);
        let class = forms.class();
        if class.is_never_allowed() {
            return Err(EgressRefusal::NeverAllowed { address, class });
        }
        self.check_own(&forms, url.port())?;
        if !self.is_listed(purpose, url, address, &forms, class) {
            if class != AddressClass::Public {
                return Err(EgressRefusal::NotListed { address, class, purpose });
            }
            if !self.public {
                return Err(EgressRefusal::PublicOff { address, purpose });
            }
            if url.origin().scheme == UrlScheme::Http {
                return Err(EgressRefusal::PlainHttp { address, purpose });
            }
        }
        Ok(address.to_canonical())
    }

    fn check_own(&self, forms: &CheckedForms, port: u16) -> Result<(), EgressRefusal> {
        if self.own.cluster_ports.contains(&port) {
            return Err(EgressRefusal::ClusterPort(port));
        }
        let within = forms.within.iter().map(|address| IpAddr::V4(*address));
        for address in [forms.main].into_iter().chain(within) {
            let is_own = |listener: &SocketAddr| {
                let wildcard = listener.ip().is_unspecified() && self.is_own_address(address);
                listener.port() == port && (wildcard || same_address(listener.ip(), address))
            };
            if self.own.listeners.iter().any(is_own) {
                return Err(EgressRefusal::OwnListener(SocketAddr::new(address, port)));
            }
        }
        Ok(())
    }

    fn is_own_address(&self, address: IpAddr) -> bool {
        let named = self.own.addresses.iter().any(|own| own.to_canonical() == address);
        named || address.is_loopback()
    }

    /// Returns whether an entry lists this target.
    ///
    /// A suffix never permits loopback, because many people edit DNS zones.
    fn is_listed(
        &self,
        purpose: EgressPurpose,
        url: &EgressUrl,
        address: IpAddr,
        forms: &CheckedForms,
        class: AddressClass,
    ) -> bool {
        let name = match url.host() {
            UrlHost::Name(name) => Some(name),
            UrlHost::Address(_) => None,
        };
        self.rules.iter().filter(|rule| rule.is_for(purpose, url.port())).any(|rule| match &rule.target {
            AllowTarget::Network(network) => network.contains(forms.main) || network.contains(address),
            AllowTarget::Host(host) => name == Some(host),
            AllowTarget::Suffix(suffix) => {
                class != AddressClass::Loopback && name.is_some_and(|name| name.is_within(suffix))
            }
        })
    }
}

/// Compares two addresses. All loopback addresses count as equal, because they lead to one machine.
fn same_address(own: IpAddr, target: IpAddr) -> bool {
    let own = own.to_canonical();
    own == target || (own.is_loopback() && target.is_loopback())
}
