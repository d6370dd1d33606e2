//! Percent-encoding, forms, and base64 for URLs.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Percent-encodes all but unreserved characters and those in `safe`.
pub(crate) fn percent_encoded(text: &str, safe: &[u8]) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || safe.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("a String takes all that is written");
        }
    }
    encoded
}

/// Writes a body of `application/x-www-form-urlencoded`.
pub(crate) fn form(fields: &[(&str, &str)]) -> String {
    let encoded = |(name, value): &(&str, &str)| format!("{name}={}", percent_encoded(value, b""));
    fields.iter().map(encoded).collect::<Vec<_>>().join("&")
}

pub(crate) fn base64_url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a String takes all that is written");
    }
    text
}
