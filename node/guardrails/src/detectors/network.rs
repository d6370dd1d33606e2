//! IP addresses.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use super::scan::{goes_on, is_within_word, is_word, run};

/// Bytes of the longest address.
const ADDRESS_BYTES_MAX: usize = 45;
/// Groups that an IPv6 address shows at least, unless it begins like those in use.
const GROUPS_MIN: usize = 3;

/// Finds an address of either kind.
pub(super) fn address(text: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mut position = 0;
    while let Some(start) = bytes[position..].iter().position(|byte| is_address(*byte)) {
        let start = position + start;
        let length = run(bytes, start, usize::MAX, is_address);
        position = start + length;
        if is_within_word(bytes, start) {
            continue;
        }
        let end = address_within(&text[start..start + length.min(ADDRESS_BYTES_MAX + 1)]);
        if let Some(end) = end.map(|end| start + end).filter(|end| ends_there(bytes, *end)) {
            return Some(start..end);
        }
    }
    None
}

/// Whether nothing behind an address says that it is a version or a part of a name.
fn ends_there(bytes: &[u8], end: usize) -> bool {
    let is_version = goes_on(bytes, end, |byte| byte == b'.') && goes_on(bytes, end + 1, is_word)
        || goes_on(bytes, end, |byte| byte == b'-') && goes_on(bytes, end + 1, |byte| byte.is_ascii_alphabetic());
    !goes_on(bytes, end, is_word) && !is_version
}

fn is_address(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || byte == b':' || byte == b'.'
}

/// Returns the end of the address with which a run of its characters begins.
fn address_within(run: &str) -> Option<usize> {
    let without_dots = run.trim_end_matches('.');
    let is_v6 = |text: &str| text.parse::<Ipv6Addr>().is_ok() && has_evidence(text);
    for end in [without_dots.len(), without_dots.strip_suffix(':').map_or(0, str::len)] {
        if is_v6(&run[..end]) {
            return Some(end);
        }
    }
    // An IPv4 address may have a port, or stand before a colon.
    let v4 = without_dots.split(':').next().unwrap_or_default();
    let v4 = v4.trim_end_matches('.');
    v4.parse::<Ipv4Addr>().is_ok_and(|address| !address.is_unspecified()).then_some(v4.len())
}

/// Whether a valid address is meant as one: paths in programs, such as `a::b`, are valid too.
fn has_evidence(text: &str) -> bool {
    let groups = text.split(':').filter(|group| !group.is_empty()).count();
    let first = text.split(':').next().unwrap_or_default();
    let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
    has_digit && (groups >= GROUPS_MIN || (groups >= 2 && (first.len() == 4 || text.contains('.'))))
}
