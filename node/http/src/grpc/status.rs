//! Statuses of gRPC calls, sent as trailers after a reply or as headers instead of it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
/// Upper bound of an escaped message. It is a header, and some clients accept at most 8 KB of headers.
const MESSAGE_BYTES_MAX: usize = 2 << 10;

/// gRPC status code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrpcCode(pub i32);

impl GrpcCode {
    pub const OK: GrpcCode = GrpcCode(0);
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcStatus {
    pub code: GrpcCode,
    pub message: String,
    /// Encoded `google.rpc.Status` with more details, such as when to retry.
    pub details: Option<Bytes>,
}

impl GrpcStatus {
    pub fn new(code: GrpcCode, message: impl Into<String>) -> GrpcStatus {
        GrpcStatus { code, message: message.into(), details: None }
    }

    pub(super) fn put_on(&self, headers: &mut HeaderMap) {
        headers.insert(STATUS, HeaderValue::from(self.code.0));
        let message = HeaderValue::from_str(&escaped(&self.message));
        headers.insert(MESSAGE, message.unwrap_or_else(|_| HeaderValue::from_static("")));
        if let Some(Ok(details)) =
            self.details.as_ref().map(|more| HeaderValue::from_str(&STANDARD_NO_PAD.encode(more)))
        {
            headers.insert(DETAILS, details);
        }
    }
}

/// Returns the trailers of a successful call.
pub(super) fn well() -> HeaderMap {
    HeaderMap::from_iter([(STATUS, HeaderValue::from(GrpcCode::OK.0))])
}

/// Escapes everything except printable ASCII as `%XX`. A long text is cut between characters.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for sign in text.chars() {
        let mut bytes = [0; 4];
        let bytes = sign.encode_utf8(&mut bytes).as_bytes();
        let stays = bytes.len() == 1 && (b' '..=b'~').contains(&bytes[0]) && bytes[0] != b'%';
        if escaped.len() + if stays { 1 } else { bytes.len() * 3 } > MESSAGE_BYTES_MAX {
            break;
        }
        match stays {
            true => escaped.push(sign),
            false => bytes.iter().for_each(|byte| escaped.push_str(&format!("%{byte:02X}"))),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(message: &str, details: Option<Bytes>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        GrpcStatus { details, ..GrpcStatus::new(GrpcCode(3), message) }.put_on(&mut headers);
        headers
    }

    #[test]
    fn a_message_is_a_header_whatever_is_in_it() {
        let said = |message: &str| headers(message, None)[MESSAGE].to_str().expect("ASCII").to_owned();
        assert_eq!(said("no `x`"), "no `x`");
        assert_eq!(said("100 % of\n\u{e9}"), "100 %25 of%0A%C3%A9");
        assert_eq!(said(""), "");
        let long = said(&"\u{20ac}".repeat(MESSAGE_BYTES_MAX));
        assert!(long.len() <= MESSAGE_BYTES_MAX && long.len().is_multiple_of(9), "cut between signs: {}", long.len());
    }

    #[test]
    fn a_failure_says_its_number_and_its_details() {
        let headers = headers("why", Some(Bytes::from_static(&[8, 14])));
        assert_eq!(headers[STATUS], "3");
        assert_eq!(headers[DETAILS], "CA4");
        assert_eq!(well()[STATUS], "0");
    }
}
