//! Responses to exporters, in the encoding of the request.

use prost::Message;
use serde_json::{Map, Value, json};

use crate::decode::{Encoding, Signal};
use crate::proto::{Any, Delay, ExportResponse, PartialSuccess, RetryInfo, RpcStatus};

/// Span that was not taken, with its position in the export and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    pub index: usize,
    pub why: String,
}

/// Upper bound of the reasons in a response. The number of rejected spans is always complete.
pub const REASONS_TOLD_MAX: usize = 5;

/// Encodes the response to an export of spans. It is empty if all spans were taken.
pub fn encode_response(rejected: &[Rejected], encoding: Encoding) -> Vec<u8> {
    let told: Vec<String> =
        rejected.iter().take(REASONS_TOLD_MAX).map(|one| format!("span {}: {}", one.index, one.why)).collect();
    let mut message = told.join("; ");
    if rejected.len() > REASONS_TOLD_MAX {
        message.push_str(&format!("; and {} more", rejected.len() - REASONS_TOLD_MAX));
    }
    answer(Signal::Traces, rejected.len() as u64, message, encoding)
}

/// Encodes the response to an export of a signal that is not stored. All its items are rejected.
pub fn encode_not_stored(signal: Signal, items: u64, encoding: Encoding) -> Vec<u8> {
    let what = match signal {
        Signal::Traces => "spans",
        Signal::Logs => "log records",
        Signal::Metrics => "data points",
    };
    let message = if items == 0 { String::new() } else { format!("{what} are not stored: send only traces") };
    answer(signal, items, message, encoding)
}

fn answer(signal: Signal, rejected: u64, message: String, encoding: Encoding) -> Vec<u8> {
    let all_taken = rejected == 0 && message.is_empty();
    match encoding {
        Encoding::Protobuf => {
            let rejected = i64::try_from(rejected).unwrap_or(i64::MAX);
            let partial_success = (!all_taken).then_some(PartialSuccess { rejected, error_message: message });
            ExportResponse { partial_success }.encode_to_vec()
        }
        Encoding::Json => {
            let name = match signal {
                Signal::Traces => "rejectedSpans",
                Signal::Logs => "rejectedLogRecords",
                Signal::Metrics => "rejectedDataPoints",
            };
            let mut body = Map::new();
            if !all_taken {
                // The JSON encoding of protobuf represents 64-bit numbers as text.
                body.insert(
                    "partialSuccess".to_owned(),
                    json!({ name: rejected.to_string(), "errorMessage": message }),
                );
            }
            Value::Object(body).to_string().into_bytes()
        }
    }
}

/// Encodes a refusal as `google.rpc.Status`, with a gRPC code.
pub fn encode_status(code: i32, message: &str, encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Protobuf => RpcStatus { code, message: message.to_owned(), details: Vec::new() }.encode_to_vec(),
        Encoding::Json => json!({ "code": code, "message": message }).to_string().into_bytes(),
    }
}

/// Encodes the detail of a gRPC status that allows a retry. Without it, exporters treat some codes as final.
pub fn encode_retry(code: i32, message: &str, after_seconds: u64) -> Vec<u8> {
    let seconds = i64::try_from(after_seconds).unwrap_or(i64::MAX);
    let value = RetryInfo { retry_delay: Some(Delay { seconds }) }.encode_to_vec();
    let details = vec![Any { type_url: "type.googleapis.com/google.rpc.RetryInfo".into(), value }];
    RpcStatus { code, message: message.to_owned(), details }.encode_to_vec()
}

/// Returns the gRPC code of an HTTP status.
pub fn rpc_code(status: u16) -> i32 {
    match status {
        400 | 411 | 413..=415 | 422 => 3,
        401 => 16,
        403 => 7,
        404 => 5,
        409 => 10,
        429 => 8,
        501 => 12,
        502..=504 => 14,
        500..=599 => 13,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(count: usize) -> Vec<Rejected> {
        (0..count).map(|index| Rejected { index, why: "no".to_owned() }).collect()
    }

    #[test]
    fn all_taken_is_the_empty_message() {
        assert_eq!(encode_response(&[], Encoding::Protobuf), b"");
        assert_eq!(encode_response(&[], Encoding::Json), b"{}");
        assert_eq!(encode_not_stored(Signal::Logs, 0, Encoding::Json), b"{}");
    }

    #[test]
    fn what_was_not_taken_is_counted_and_told() {
        let body = encode_response(&rejected(7), Encoding::Protobuf);
        let partial = ExportResponse::decode(&body[..]).expect("reads").partial_success.expect("is partial");
        assert_eq!(partial.rejected, 7);
        assert_eq!(partial.error_message, "span 0: no; span 1: no; span 2: no; span 3: no; span 4: no; and 2 more");
        let body: Value = serde_json::from_slice(&encode_response(&rejected(1), Encoding::Json)).expect("JSON");
        assert_eq!(body, json!({"partialSuccess": {"rejectedSpans": "1", "errorMessage": "span 0: no"}}));
    }

    #[test]
    fn signals_that_are_not_stored_are_refused_in_full() {
        let body: Value = serde_json::from_slice(&encode_not_stored(Signal::Metrics, 3, Encoding::Json)).expect("JSON");
        assert_eq!(body["partialSuccess"]["rejectedDataPoints"], "3");
        let body = encode_not_stored(Signal::Logs, 2, Encoding::Protobuf);
        let partial = ExportResponse::decode(&body[..]).expect("reads").partial_success.expect("is partial");
        assert_eq!(
            (partial.rejected, partial.error_message.as_str()),
            (2, "log records are not stored: send only traces")
        );
    }

    /// Compares with the public definitions of all three signals.
    #[test]
    fn answers_of_all_signals_are_one_message_in_protobuf() {
        for signal in [Signal::Traces, Signal::Logs, Signal::Metrics] {
            let body = answer(signal, 7, "no".to_owned(), Encoding::Protobuf);
            assert_eq!(body, [0x0a, 6, 8, 7, 0x12, 2, b'n', b'o']);
        }
    }

    #[test]
    fn a_refusal_is_a_status_in_both_encodings() {
        let body = encode_status(rpc_code(400), "no", Encoding::Protobuf);
        let status = RpcStatus { code: 3, message: "no".to_owned(), details: Vec::new() };
        assert_eq!(RpcStatus::decode(&body[..]), Ok(status));
        let more = RpcStatus::decode(&encode_retry(14, "later", 30)[..]).expect("reads");
        let retry = RetryInfo::decode(&more.details[0].value[..]).expect("reads");
        assert_eq!((more.code, more.message.as_str(), retry.retry_delay), (14, "later", Some(Delay { seconds: 30 })));
        assert_eq!(more.details[0].type_url, "type.googleapis.com/google.rpc.RetryInfo");
        assert_eq!(encode_status(rpc_code(429), "slow", Encoding::Json), br#"{"code":8,"message":"slow"}"#);
    }
}
