//! Classes of IP addresses, including IPv4 addresses embedded in IPv6 ones.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::network::IpNetwork;

/// Class of an address according to its registered purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressClass {
    /// Address that is reachable from the whole Internet.
    Public,
    /// Address of an organization's network: RFC 1918 or unique local.
    Private,
    Loopback,
    /// Address shared by the customers of a carrier, in 100.64.0.0/10.
    CarrierShared,
    Documentation,
    Benchmarking,
    /// Address that carries an IPv4 address through a tunnel or a translator.
    Tunnel,
    /// Address that is not assigned or not generally routed.
    Reserved,
    Unspecified,
    Multicast,
    Broadcast,
    LinkLocal,
    /// Address of a service that hands out credentials to the machine that asks.
    CloudMetadata,
}

impl AddressClass {
    /// Returns whether such an address is never a target, independent of the settings.
    pub fn is_never_allowed(self) -> bool {
        use AddressClass::{Broadcast, CloudMetadata, LinkLocal, Multicast, Unspecified};
        matches!(self, Broadcast | CloudMetadata | LinkLocal | Multicast | Unspecified)
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AddressClass::Public => "public",
            AddressClass::Private => "private",
            AddressClass::Loopback => "loopback",
            AddressClass::CarrierShared => "carrier shared",
            AddressClass::Documentation => "documentation",
            AddressClass::Benchmarking => "benchmarking",
            AddressClass::Tunnel => "tunnel",
            AddressClass::Reserved => "reserved",
            AddressClass::Unspecified => "unspecified",
            AddressClass::Multicast => "multicast",
            AddressClass::Broadcast => "broadcast",
            AddressClass::LinkLocal => "link-local",
            AddressClass::CloudMetadata => "cloud metadata",
        })
    }
}

/// Networks and their classes. The first network that contains an address decides.
const IPV4_CLASSES: &[(IpNetwork, AddressClass)] = &[
    // These belong to Alibaba, Oracle and Azure. Those in 169.254.0.0/16 are also link-local.
    (IpNetwork::v4(169, 254, 169, 254, 32), AddressClass::CloudMetadata),
    (IpNetwork::v4(169, 254, 170, 2, 32), AddressClass::CloudMetadata),
    (IpNetwork::v4(100, 100, 100, 200, 32), AddressClass::CloudMetadata),
    (IpNetwork::v4(192, 0, 0, 192, 32), AddressClass::CloudMetadata),
    (IpNetwork::v4(168, 63, 129, 16, 32), AddressClass::CloudMetadata),
    (IpNetwork::v4(0, 0, 0, 0, 8), AddressClass::Unspecified),
    (IpNetwork::v4(10, 0, 0, 0, 8), AddressClass::Private),
    (IpNetwork::v4(100, 64, 0, 0, 10), AddressClass::CarrierShared),
    (IpNetwork::v4(127, 0, 0, 0, 8), AddressClass::Loopback),
    (IpNetwork::v4(169, 254, 0, 0, 16), AddressClass::LinkLocal),
    (IpNetwork::v4(172, 16, 0, 0, 12), AddressClass::Private),
    (IpNetwork::v4(192, 0, 0, 0, 24), AddressClass::Reserved),
    (IpNetwork::v4(192, 0, 2, 0, 24), AddressClass::Documentation),
    (IpNetwork::v4(192, 31, 196, 0, 24), AddressClass::Reserved),
    (IpNetwork::v4(192, 52, 193, 0, 24), AddressClass::Reserved),
    (IpNetwork::v4(192, 88, 99, 0, 24), AddressClass::Tunnel),
    (IpNetwork::v4(192, 168, 0, 0, 16), AddressClass::Private),
    (IpNetwork::v4(192, 175, 48, 0, 24), AddressClass::Reserved),
    (IpNetwork::v4(198, 18, 0, 0, 15), AddressClass::Benchmarking),
    (IpNetwork::v4(198, 51, 100, 0, 24), AddressClass::Documentation),
    (IpNetwork::v4(203, 0, 113, 0, 24), AddressClass::Documentation),
    (IpNetwork::v4(224, 0, 0, 0, 4), AddressClass::Multicast),
    (IpNetwork::v4(255, 255, 255, 255, 32), AddressClass::Broadcast),
    (IpNetwork::v4(240, 0, 0, 0, 4), AddressClass::Reserved),
    (IpNetwork::v4(0, 0, 0, 0, 0), AddressClass::Public),
];

const IPV6_CLASSES: &[(IpNetwork, AddressClass)] = &[
    // These belong to AWS, Google, Scaleway and Oracle.
    (IpNetwork::v6([0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254], 128), AddressClass::CloudMetadata),
    (IpNetwork::v6([0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x23], 128), AddressClass::CloudMetadata),
    (IpNetwork::v6([0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x254], 128), AddressClass::CloudMetadata),
    (IpNetwork::v6([0xfd00, 0x0042, 0, 0, 0, 0, 0, 0x42], 128), AddressClass::CloudMetadata),
    (IpNetwork::v6([0xfd00, 0x00c1, 0, 0, 0, 0, 0xa9fe, 0xa9fe], 128), AddressClass::CloudMetadata),
    (IpNetwork::v6([0; 8], 128), AddressClass::Unspecified),
    (IpNetwork::v6([0, 0, 0, 0, 0, 0, 0, 1], 128), AddressClass::Loopback),
    (IpNetwork::v6([0x0064, 0xff9b, 1, 0, 0, 0, 0, 0], 48), AddressClass::Tunnel),
    (IpNetwork::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), AddressClass::Tunnel),
    (IpNetwork::v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48), AddressClass::Benchmarking),
    (IpNetwork::v6([0x2001, 0x0db8, 0, 0, 0, 0, 0, 0], 32), AddressClass::Documentation),
    (IpNetwork::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), AddressClass::Reserved),
    (IpNetwork::v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), AddressClass::Tunnel),
    (IpNetwork::v6([0x2620, 0x004f, 0x8000, 0, 0, 0, 0, 0], 48), AddressClass::Reserved),
    (IpNetwork::v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), AddressClass::Documentation),
    (IpNetwork::v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3), AddressClass::Public),
    (IpNetwork::v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), AddressClass::Private),
    (IpNetwork::v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), AddressClass::LinkLocal),
    (IpNetwork::v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), AddressClass::Multicast),
    (IpNetwork::v6([0; 8], 0), AddressClass::Reserved),
];

/// Returns the class of an address itself. [`CheckedForms`] also covers embedded addresses.
pub fn class_of(address: IpAddr) -> AddressClass {
    let classes = if address.is_ipv4() { IPV4_CLASSES } else { IPV6_CLASSES };
    let entry = classes.iter().find(|(network, _)| network.contains(address));
    entry.expect("the last network of each table has every address").1
}

/// Forms of one address that a policy must check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedForms {
    /// Address that decides whether a target is listed or public.
    pub main: IpAddr,
    /// IPv4 addresses to which the address may lead. None of them may have a class that is never allowed.
    pub within: Vec<Ipv4Addr>,
}

impl CheckedForms {
    /// Splits an address into its forms.
    ///
    /// A mapped or NAT64 address counts as its IPv4 address. Addresses of tunnels and obsolete forms keep their own
    /// class, which is never public.
    pub fn of(address: IpAddr) -> CheckedForms {
        let IpAddr::V6(six) = address else { return CheckedForms { main: address, within: Vec::new() } };
        let as_v4 = |four: Ipv4Addr| CheckedForms { main: IpAddr::V4(four), within: Vec::new() };
        match six.segments() {
            [0, 0, 0, 0, 0, 0, 0, 0 | 1] => CheckedForms { main: address, within: Vec::new() },
            // These are mapped addresses, and NAT64 with the well-known prefix.
            [0, 0, 0, 0, 0, 0xffff, high, low] | [0x0064, 0xff9b, 0, 0, 0, 0, high, low] => as_v4(joined(high, low)),
            // These are translated, compatible and 6to4 addresses.
            [0, 0, 0, 0, 0xffff, 0, high, low] | [0, 0, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
                CheckedForms { main: address, within: vec![joined(high, low)] }
            }
            // Teredo contains the server, and the client with inverted bits.
            [0x2001, 0, high, low, _, _, client_high, client_low] => {
                CheckedForms { main: address, within: vec![joined(high, low), joined(!client_high, !client_low)] }
            }
            // NAT64 with a local prefix, whose length is unknown, may embed one of several addresses.
            [0x0064, 0xff9b, 1, ..] => CheckedForms { main: address, within: translated(six) },
            // ISATAP contains its IPv4 address at the end.
            [.., 0 | 0x0200, 0x5efe, high, low] => CheckedForms { main: address, within: vec![joined(high, low)] },
            _ => CheckedForms { main: address, within: Vec::new() },
        }
    }

    /// Returns the deciding class: that of a form that is never allowed, or else that of the main form.
    ///
    /// An address that embeds another one is never public.
    pub fn class(&self) -> AddressClass {
        let mut classes = self.within.iter().map(|address| class_of(IpAddr::V4(*address)));
        if let Some(never) = classes.find(|class| class.is_never_allowed()) {
            return never;
        }
        match class_of(self.main) {
            AddressClass::Public if !self.within.is_empty() => AddressClass::Tunnel,
            class => class,
        }
    }
}

fn joined(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

/// Returns the IPv4 addresses of a translated address by RFC 6052, for prefixes of 48, 56, 64 and 96 bits.
fn translated(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let o = address.octets();
    let forms = [
        [o[6], o[7], o[9], o[10]],
        [o[7], o[9], o[10], o[11]],
        [o[9], o[10], o[11], o[12]],
        [o[12], o[13], o[14], o[15]],
    ];
    // A form that begins with zero is only padding.
    forms.into_iter().map(Ipv4Addr::from).filter(|form| form.octets()[0] != 0).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn class(text: &str) -> AddressClass {
        CheckedForms::of(text.parse().expect(text)).class()
    }

    #[test]
    fn an_address_has_the_class_of_its_network() {
        use AddressClass::*;
        for (text, expected) in [
            ("8.8.8.8", Public),
            ("9.255.255.255", Public),
            ("10.0.0.0", Private),
            ("11.0.0.0", Public),
            ("100.63.255.255", Public),
            ("100.64.0.0", CarrierShared),
            ("100.100.100.200", CloudMetadata),
            ("100.128.0.0", Public),
            ("127.255.255.254", Loopback),
            ("168.63.129.16", CloudMetadata),
            ("169.253.255.255", Public),
            ("169.254.0.1", LinkLocal),
            ("169.254.169.254", CloudMetadata),
            ("172.15.255.255", Public),
            ("172.31.255.255", Private),
            ("172.32.0.0", Public),
            ("192.0.0.1", Reserved),
            ("192.0.0.192", CloudMetadata),
            ("192.0.2.1", Documentation),
            ("192.88.99.1", Tunnel),
            ("198.19.255.255", Benchmarking),
            ("203.0.113.7", Documentation),
            ("223.255.255.255", Public),
            ("239.1.2.3", Multicast),
            ("240.0.0.1", Reserved),
            ("255.255.255.255", Broadcast),
            ("0.1.2.3", Unspecified),
            ("::", Unspecified),
            ("::1", Loopback),
            ("2606:4700::1111", Public),
            ("2001:4860:4860::8888", Public),
            ("2001:db8::1", Documentation),
            ("3fff::1", Documentation),
            ("2001:2::1", Benchmarking),
            ("2001:20::1", Reserved),
            ("100::1", Reserved),
            ("5f00::1", Reserved),
            ("fec0::1", Reserved),
            ("fd00::1", Private),
            ("fd00:ec2::254", CloudMetadata),
            ("fd20:ce::254", CloudMetadata),
            ("fe80::1", LinkLocal),
            ("febf::1", LinkLocal),
            ("ff02::1", Multicast),
        ] {
            assert_eq!(class(text), expected, "{text}");
        }
    }

    #[test]
    fn an_ipv4_address_within_an_ipv6_one_decides() {
        use AddressClass::*;
        for (text, expected) in [
            ("::ffff:8.8.8.8", Public),
            ("::ffff:127.0.0.1", Loopback),
            ("::ffff:0:10.0.0.1", Reserved),
            ("::127.0.0.1", Reserved),
            ("::a9fe:a9fe", CloudMetadata),
            ("64:ff9b::8.8.8.8", Public),
            ("64:ff9b::169.254.169.254", CloudMetadata),
            ("64:ff9b:1::8.8.8.8", Tunnel),
            ("64:ff9b:1::169.254.169.254", CloudMetadata),
            ("64:ff9b:1:a9fe:a9:fe00::", CloudMetadata),
            ("2002:7f00:1::1", Tunnel),
            ("2002:0808:0808::1", Tunnel),
            ("2002:a9fe:a9fe::", CloudMetadata),
            ("2001::f7f7:f7f7", Unspecified),
            ("2001:0:808:808::f7f7:f7f7", Tunnel),
            ("2001:0:808:808::5601:5601", CloudMetadata),
            ("2606:4700::5efe:169.254.169.254", CloudMetadata),
            ("2606:4700::200:5efe:a9fe:a9fe", CloudMetadata),
            ("2606:4700::5efe:8.8.8.8", Tunnel),
        ] {
            assert_eq!(class(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_mapped_address_has_the_class_of_its_ipv4_address(bits: u32) {
            let four = Ipv4Addr::from_bits(bits);
            let six = IpAddr::V6(four.to_ipv6_mapped());
            prop_assert_eq!(CheckedForms::of(six).class(), class_of(IpAddr::V4(four)));
        }

        #[test]
        fn no_public_ipv6_address_lies_outside_of_the_global_range(bits: u128) {
            let address = Ipv6Addr::from_bits(bits);
            if class_of(IpAddr::V6(address)) == AddressClass::Public {
                prop_assert_eq!(bits >> 125, 1);
            }
        }
    }
}
