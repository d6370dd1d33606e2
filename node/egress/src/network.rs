//! IP networks in CIDR notation, and port ranges.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const IPV4_BITS: u8 = 32;
const IPV6_BITS: u8 = 128;

/// Error for a text that is not a network or a port range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    #[error("`{0}` is no network: write an address and a prefix length, such as 10.1.0.0/16")]
    Syntax(String),
    #[error("`{text}` has address bits behind its prefix: write {meant}")]
    HostBits { text: String, meant: IpNetwork },
    #[error("`{0}` maps IPv4 into IPv6: write the IPv4 network")]
    Mapped(String),
    #[error("`{0}` is no port or range of ports between 1 and 65535, such as 8000-8100")]
    Ports(String),
}

/// IPv4 or IPv6 network.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct IpNetwork {
    address: IpAddr,
    prefix: u8,
}

impl IpNetwork {
    /// Returns the network of a single address. A mapped address counts as its IPv4 address.
    pub fn single(address: IpAddr) -> IpNetwork {
        let address = address.to_canonical();
        IpNetwork { address, prefix: if address.is_ipv4() { IPV4_BITS } else { IPV6_BITS } }
    }

    pub(crate) const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> IpNetwork {
        IpNetwork { address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
    }

    pub(crate) const fn v6(segments: [u16; 8], prefix: u8) -> IpNetwork {
        let [a, b, c, d, e, f, g, h] = segments;
        IpNetwork { address: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), prefix }
    }

    /// Returns whether the network contains an address of the same family.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                (network.to_bits() ^ address.to_bits()).checked_shr(u32::from(IPV4_BITS - self.prefix)).unwrap_or(0)
                    == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                (network.to_bits() ^ address.to_bits()).checked_shr(u32::from(IPV6_BITS - self.prefix)).unwrap_or(0)
                    == 0
            }
            _ => false,
        }
    }

    /// Returns the network without the bits after its prefix.
    fn masked(self) -> IpNetwork {
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(u32::from(IPV4_BITS - self.prefix)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(u32::from(IPV6_BITS - self.prefix)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
            }
        };
        IpNetwork { address, prefix: self.prefix }
    }
}

impl FromStr for IpNetwork {
    type Err = NetworkError;

    /// Reads `address/prefix` or a single address. Bits after the prefix are an error, because they indicate a mistake.
    fn from_str(text: &str) -> Result<IpNetwork, NetworkError> {
        let wrong = || NetworkError::Syntax(text.to_owned());
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        if matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some()) {
            return Err(NetworkError::Mapped(text.to_owned()));
        }
        let single = IpNetwork::single(address);
        let Some(prefix) = prefix else { return Ok(single) };
        if prefix.is_empty() || !prefix.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
        if prefix > single.prefix {
            return Err(wrong());
        }
        let network = IpNetwork { address, prefix };
        if network.masked() != network {
            return Err(NetworkError::HostBits { text: text.to_owned(), meant: network.masked() });
        }
        Ok(network)
    }
}

impl fmt::Display for IpNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl fmt::Debug for IpNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Single port, or an inclusive range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "PortText", into = "PortText")]
pub struct PortRange {
    first: u16,
    last: u16,
}

/// Form of a port in settings: a number, or a text with a range.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PortText {
    One(u16),
    Text(String),
}

impl PortRange {
    /// Range of all ports.
    pub const ALL: PortRange = PortRange { first: 1, last: u16::MAX };

    pub fn single(port: u16) -> PortRange {
        PortRange { first: port, last: port }
    }

    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl TryFrom<PortText> for PortRange {
    type Error = NetworkError;

    fn try_from(text: PortText) -> Result<PortRange, NetworkError> {
        match text {
            PortText::One(port) => port.to_string().parse(),
            PortText::Text(text) => text.parse(),
        }
    }
}

impl From<PortRange> for PortText {
    fn from(PortRange { first, last }: PortRange) -> PortText {
        if first == last { PortText::One(first) } else { PortText::Text(format!("{first}-{last}")) }
    }
}

impl FromStr for PortRange {
    type Err = NetworkError;

    /// Reads `443` or `8000-8100`.
    fn from_str(text: &str) -> Result<PortRange, NetworkError> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
        match (port(first), port(last)) {
            (Some(first), Some(last)) if first <= last => Ok(PortRange { first, last }),
            _ => Err(NetworkError::Ports(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_network_contains_the_addresses_with_its_prefix() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.255.255", "11.0.0.0"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("::/0", "ffff::", "1.2.3.4"),
            ("fd00::/8", "fdff::1", "fc00::1"),
            ("fd00::1/128", "fd00::1", "fd00::2"),
            ("192.168.1.128/25", "192.168.1.129", "192.168.1.127"),
        ] {
            let parsed: IpNetwork = network.parse().expect(network);
            assert!(parsed.contains(inside.parse().unwrap()), "{network} has {inside}");
            assert!(!parsed.contains(outside.parse().unwrap()), "{network} has no {outside}");
        }
    }

    #[test]
    fn a_mistaken_network_is_refused_with_the_form_that_is_valid() {
        for (text, says) in [
            ("10.1.0.0/8", "write 10.0.0.0/8"),
            ("fd00::1/64", "write fd00::/64"),
            ("10.0.0.0/33", "is no network"),
            ("fd00::/129", "is no network"),
            ("10.0.0.0/", "is no network"),
            ("10.0.0.0/+8", "is no network"),
            ("10/8", "is no network"),
            ("host/8", "is no network"),
            ("::ffff:10.0.0.0/104", "write the IPv4 network"),
        ] {
            let why = text.parse::<IpNetwork>().unwrap_err().to_string();
            assert!(why.contains(says), "{text}: {why}");
        }
    }

    #[test]
    fn a_range_of_ports_has_both_its_ends() {
        let range: PortRange = "8000-8100".parse().unwrap();
        assert!(range.contains(8000) && range.contains(8100) && !range.contains(7999) && !range.contains(8101));
        let one: PortRange = "443".parse().unwrap();
        assert!(one.contains(443) && !one.contains(442));
        for text in ["", "0", "0-1", "9-8", "65536", "a", "1-2-3", "-"] {
            assert!(text.parse::<PortRange>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_network_contains_what_shares_its_first_bits(bits: u32, other: u32, prefix in 0u8..=32) {
            let network = IpNetwork { address: IpAddr::V4(Ipv4Addr::from_bits(bits)), prefix }.masked();
            let same = (0..u32::from(prefix)).all(|bit| (bits ^ other) & (1 << (31 - bit)) == 0);
            prop_assert_eq!(network.contains(IpAddr::V4(Ipv4Addr::from_bits(other))), same);
            prop_assert_eq!(network.to_string().parse::<IpNetwork>(), Ok(network));
        }
    }
}
