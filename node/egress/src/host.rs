//! Hosts of URLs in normal form: a name in lower case, or an address.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use crate::error::UrlError;
use crate::ipv4_spelling::{ends_in_number, parse_ipv4};

/// Length of the longest DNS name without its trailing dot.
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// DNS name in lower case without a trailing dot. It never looks like an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostName(String);

impl HostName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether this is `suffix` or a name below it.
    pub fn is_within(&self, suffix: &HostName) -> bool {
        let above = self.0.strip_suffix(suffix.as_str());
        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    }
}

/// Target of a URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UrlHost {
    Name(HostName),
    Address(IpAddr),
}

impl FromStr for UrlHost {
    type Err = UrlError;

    /// Reads a name, an IPv4 address in any spelling, or an IPv6 address in brackets.
    fn from_str(text: &str) -> Result<UrlHost, UrlError> {
        if text.is_empty() {
            return Err(UrlError::NoHost);
        }
        if !text.is_ascii() {
            return Err(UrlError::HostNotAscii);
        }
        if text.contains('%') {
            return Err(UrlError::HostEscaped);
        }
        if let Some(bracketed) = text.strip_prefix('[') {
            let address = bracketed.strip_suffix(']').and_then(|address| address.parse::<Ipv6Addr>().ok());
            return address.map(|address| UrlHost::Address(IpAddr::V6(address))).ok_or(UrlError::HostAddress);
        }
        let lower = text.to_ascii_lowercase();
        let name = lower.strip_suffix('.').unwrap_or(&lower);
        if ends_in_number(name) {
            return parse_ipv4(name).map(|address| UrlHost::Address(IpAddr::V4(address))).ok_or(UrlError::HostAddress);
        }
        if name.len() > NAME_BYTES_MAX || !name.split('.').all(is_label) {
            return Err(UrlError::HostName);
        }
        Ok(UrlHost::Name(HostName(name.to_owned())))
    }
}

/// Returns whether a label is valid. Host names have no underscores, but names of containers do.
fn is_label(label: &str) -> bool {
    (1..=LABEL_BYTES_MAX).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

impl fmt::Display for UrlHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UrlHost::Name(name) => f.write_str(name.as_str()),
            UrlHost::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            UrlHost::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}
