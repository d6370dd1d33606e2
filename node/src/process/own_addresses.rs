//! Addresses of the network interfaces of this machine, as the system of Linux lists them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Table of IPv4 routes, in which an address of this machine is a local one.
const IPV4: &str = "/proc/net/fib_trie";
/// Table of IPv6 addresses.
const IPV6: &str = "/proc/net/if_inet6";
/// Bytes that are read of a table.
const TABLE_BYTES_MAX: u64 = 16 << 20;
/// Addresses that are returned.
const ADDRESSES_MAX: usize = 4096;

/// Returns the addresses, each once and in order. On systems without these tables there are none.
pub fn read() -> Vec<IpAddr> {
    let (ipv4, ipv6) = (table(IPV4), table(IPV6));
    let all: BTreeSet<IpAddr> = ipv4_addresses(&ipv4).chain(ipv6_addresses(&ipv6)).collect();
    all.into_iter().take(ADDRESSES_MAX).collect()
}

fn table(path: &str) -> String {
    let read = || -> io::Result<String> {
        let mut bytes = Vec::new();
        File::open(path)?.take(TABLE_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().unwrap_or_else(|error| {
        tracing::debug!(%error, path, "the addresses of this machine are not known");
        String::new()
    })
}

/// A line `|-- ADDRESS` has lines below it that say what the address is.
fn ipv4_addresses(table: &str) -> impl Iterator<Item = IpAddr> + '_ {
    let mut last = None;
    table.lines().filter_map(move |line| {
        let line = line.trim_start();
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.trim_end().parse::<Ipv4Addr>().ok();
        }
        last.filter(|_| line.starts_with("/32 host LOCAL")).map(IpAddr::V4)
    })
}

/// Each line begins with an address of 32 hexadecimal digits.
fn ipv6_addresses(table: &str) -> impl Iterator<Item = IpAddr> + '_ {
    let addresses = table.lines().filter_map(|line| line.split_whitespace().next());
    let addresses = addresses.filter_map(|digits| u128::from_str_radix(digits, 16).ok());
    addresses.map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_addresses_of_the_tables_are_found() {
        let table = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     \
                     |-- 10.1.0.0\n        /16 link UNICAST\n     |-- 10.1.0.7\n        /32 host LOCAL\n     \
                     |-- 10.1.255.255\n        /32 link BROADCAST\n     +-- 127.0.0.0/8 2 0 2\n        \
                     |-- 127.0.0.0\n           /8 host LOCAL\n        |-- 127.0.0.1\n           /32 host LOCAL\n";
        let found: Vec<String> = ipv4_addresses(table).map(|address| address.to_string()).collect();
        assert_eq!(found, ["10.1.0.7", "127.0.0.1"]);
        let table =
            "fd123456000000000000000000000005 02 40 00 80 eth0\n00000000000000000000000000000001 01 80 10 80 lo\n";
        let found: Vec<String> = ipv6_addresses(table).map(|address| address.to_string()).collect();
        assert_eq!(found, ["fd12:3456::5", "::1"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_has_the_loopback_address() {
        assert!(read().contains(&IpAddr::V4(Ipv4Addr::LOCALHOST)), "{:?}", read());
    }
}
