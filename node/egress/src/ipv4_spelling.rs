//! Spellings of IPv4 addresses that resolvers accept: one to four decimal, octal or hexadecimal parts.

use std::net::Ipv4Addr;

const PARTS_MAX: usize = 4;

/// Returns whether a lower-case host ends in a number. Such a host is an IPv4 address or invalid.
pub(crate) fn ends_in_number(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_hex = last.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_hex || (!last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Reads an address in any spelling. Returns `None` if a part is not a number or too large.
pub(crate) fn parse_ipv4(host: &str) -> Option<Ipv4Addr> {
    let parts = host.split('.').map(part).collect::<Option<Vec<u32>>>()?;
    let (last, first) = parts.split_last()?;
    if parts.len() > PARTS_MAX || first.iter().any(|part| *part > 0xff) {
        return None;
    }
    // The last part fills all remaining bytes.
    let last_bits = u32::try_from(8 * (PARTS_MAX - first.len())).expect("at most 32");
    if u64::from(*last) >> last_bits != 0 {
        return None;
    }
    let high = first.iter().zip([24, 16, 8]).map(|(part, shift)| part << shift).sum::<u32>();
    Some(Ipv4Addr::from_bits(high | last))
}

fn part(text: &str) -> Option<u32> {
    let (digits, radix) = if let Some(digits) = text.strip_prefix("0x") {
        (digits, 16)
    } else if text.len() > 1 && text.starts_with('0') {
        (&text[1..], 8)
    } else {
        (text, 10)
    };
    // `from_str_radix` accepts a sign, so the digits are checked first.
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_spelling_leads_to_its_address() {
        for (text, expected) in [
            ("127.0.0.1", Some([127, 0, 0, 1])),
            ("127.1", Some([127, 0, 0, 1])),
            ("127.0.1", Some([127, 0, 0, 1])),
            ("2130706433", Some([127, 0, 0, 1])),
            ("0x7f000001", Some([127, 0, 0, 1])),
            ("0x7f.1", Some([127, 0, 0, 1])),
            ("0177.0.0.01", Some([127, 0, 0, 1])),
            ("017700000001", Some([127, 0, 0, 1])),
            ("0", Some([0, 0, 0, 0])),
            ("00", Some([0, 0, 0, 0])),
            ("169.254.0xa9fe", Some([169, 254, 169, 254])),
            ("4294967295", Some([255, 255, 255, 255])),
            ("4294967296", None),
            ("256.0.0.1", None),
            ("1.2.3.256", None),
            ("1.2.65536", None),
            ("1.16777216", None),
            ("1.2.3.4.5", None),
            ("08", None),
            ("0x", None),
            ("0xg", None),
            ("+1", None),
            ("1..2", None),
            ("", None),
        ] {
            assert_eq!(parse_ipv4(text), expected.map(Ipv4Addr::from), "{text}");
        }
        for (host, is_number) in [("a.1", true), ("a.0x", true), ("1.a", false), ("0xfg", false), ("a", false)] {
            assert_eq!(ends_in_number(host), is_number, "{host}");
        }
    }

    proptest! {
        #[test]
        fn all_spellings_of_one_address_are_equal(bits: u32) {
            let address = Ipv4Addr::from_bits(bits);
            let [a, b, c, d] = address.octets();
            for text in [
                bits.to_string(),
                format!("0x{bits:x}"),
                format!("0{bits:o}"),
                format!("{a}.0x{b:x}.0{c:o}.{d}"),
                format!("{a}.{}", bits & 0x00ff_ffff),
            ] {
                prop_assert_eq!(parse_ipv4(&text), Some(address), "{}", text);
            }
        }
    }
}
