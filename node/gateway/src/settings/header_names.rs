//! Names of request headers that the operator may forward to providers (G-14).

use std::fmt;

use super::GatewaySettingsError;

/// Upper bound of the names in `forward_headers`.
pub const FORWARD_HEADERS_MAX: usize = 64;
/// Upper bound of the bytes of one name.
pub const HEADER_NAME_BYTES_MAX: usize = 128;

const TRACE: [&str; 3] = ["traceparent", "tracestate", "baggage"];
/// Headers with credentials of this server (G-04).
const CREDENTIALS: [&str; 4] = ["authorization", "proxy-authorization", "x-api-key", "x-goog-api-key"];
/// Headers that belong to one connection or to one encoded body.
const CONNECTION: [&str; 14] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];
/// Headers that identify the client.
const CLIENT: [&str; 4] = ["cookie", "forwarded", "x-real-ip", "x-client-ip"];

/// Reason why a header is never forwarded to a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeverForwarded {
    Credential,
    Connection,
    Client,
    Own,
}

impl fmt::Display for NeverForwarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NeverForwarded::Credential => "it has a credential of this server",
            NeverForwarded::Connection => "it is about the connection of the client",
            NeverForwarded::Client => "it says who the client is",
            NeverForwarded::Own => "it is for this server",
        })
    }
}

impl NeverForwarded {
    /// Returns the reason for a name in lower case, if there is one.
    fn of(name: &str) -> Option<NeverForwarded> {
        if CREDENTIALS.contains(&name) {
            Some(NeverForwarded::Credential)
        } else if CONNECTION.contains(&name) {
            Some(NeverForwarded::Connection)
        } else if CLIENT.contains(&name) || name.starts_with("x-forwarded-") {
            Some(NeverForwarded::Client)
        } else if name.starts_with("x-bt-") {
            Some(NeverForwarded::Own)
        } else {
            None
        }
    }
}

pub(super) fn check(entry: usize, name: &str) -> Result<(), GatewaySettingsError> {
    let is_name = (1..=HEADER_NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if !is_name {
        return Err(GatewaySettingsError::HeaderName { entry, name: name.to_owned() });
    }
    match NeverForwarded::of(&name.to_ascii_lowercase()) {
        Some(why) => Err(GatewaySettingsError::HeaderForbidden { entry, name: name.to_owned(), why }),
        None => Ok(()),
    }
}

pub(super) fn is_trace(name: &str) -> bool {
    TRACE.iter().any(|trace| trace.eq_ignore_ascii_case(name))
}
