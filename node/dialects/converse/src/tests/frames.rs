//! Messages of event streams: those that botocore reads, and broken ones.

use serde_json::{Value, json};

use super::{encoded, message};
use crate::{
    EVENT_STREAM_HEADERS_MAX, EventStreamError, EventStreamHeader, EventStreamParser, EventStreamValue, read_error,
};
use assay_node_dialects::form::ModelErrorKind;

fn from_hex(text: &str) -> Vec<u8> {
    let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hex digits");
    text.as_bytes().chunks(2).map(digits).collect()
}

/// Value as the script writes it: bytes as hexadecimal digits.
fn plain(EventStreamHeader { name, value }: &EventStreamHeader) -> Value {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let value = match value {
        EventStreamValue::Bool(truth) => json!(truth),
        EventStreamValue::Integer(number) | EventStreamValue::Time(number) => json!(number),
        EventStreamValue::Bytes(bytes) => json!(hex(bytes)),
        EventStreamValue::Text(text) => json!(text),
        EventStreamValue::Uuid(bytes) => json!(hex(bytes)),
    };
    json!([name, value])
}

#[test]
fn messages_are_those_that_botocore_reads() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("golden/frames.json")).expect("a list of cases");
    assert!(cases.len() > 5);
    let mut parser = EventStreamParser::new();
    for case in &cases {
        let read = parser.push(&from_hex(case["frame"].as_str().expect("a frame"))).expect("a good message");
        let [message] = read.as_slice() else { panic!("{case}: {} messages", read.len()) };
        assert_eq!(json!(message.headers.iter().map(plain).collect::<Vec<_>>()), case["headers"], "{}", case["name"]);
        assert_eq!(message.payload, from_hex(case["payload"].as_str().expect("a payload")), "{}", case["name"]);
    }
    assert_eq!(parser.finish(), Ok(()));
}

#[test]
fn an_event_has_its_type_and_its_payload() {
    let event = message(&[(":message-type", "event"), (":event-type", "messageStart")], "{}").event();
    assert_eq!((event.event.as_deref(), event.data.as_str()), (Some("messageStart"), "{}"));
}

#[test]
fn exceptions_and_errors_become_errors_of_their_kind() {
    for (name, kind) in [
        ("internalServerException", ModelErrorKind::Server),
        ("modelStreamErrorException", ModelErrorKind::Server),
        ("validationException", ModelErrorKind::InvalidRequest),
        ("throttlingException", ModelErrorKind::RateLimit),
        ("serviceUnavailableException", ModelErrorKind::Overloaded),
        ("modelTimeoutException", ModelErrorKind::Timeout),
        ("newException", ModelErrorKind::Server),
    ] {
        let headers = [(":message-type", "exception"), (":exception-type", name)];
        let event = message(&headers, r#"{"message":"no"}"#).event();
        assert_eq!(event.event.as_deref(), Some("exception"));
        let error = read_error(500, &serde_json::from_str(&event.data).expect("JSON"));
        assert_eq!((error.kind, error.message.as_str(), error.code.as_deref()), (kind, "no", Some(name)));
    }
    let headers = [(":message-type", "error"), (":error-code", "InternalFailure"), (":error-message", "broken")];
    let event = message(&headers, "").event();
    let error = read_error(500, &serde_json::from_str(&event.data).expect("JSON"));
    assert_eq!((error.kind, error.message.as_str()), (ModelErrorKind::Server, "broken"));
    let event = message(&[(":message-type", "exception")], "no JSON").event();
    assert_eq!(event.data, r#"{"message":"no JSON"}"#);
}

#[test]
fn a_broken_message_is_an_error_after_the_messages_before_it() {
    let good = encoded(&message(&[("a", "b")], "payload"));
    let broken = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        let mut parser = EventStreamParser::new();
        let all = [good.as_slice(), &bytes].concat();
        assert_eq!(parser.push(&all).expect("the first message").len(), 1);
        let why = parser.push(&[]).expect_err("the second message is broken");
        assert_eq!(parser.push(&good), Err(why.clone()), "nothing is read after an error");
        assert_eq!(parser.finish(), Err(why.clone()));
        why
    };
    assert_eq!(broken(&|bytes| bytes[9] ^= 1), EventStreamError::Checksum { part: "prelude" });
    assert_eq!(broken(&|bytes| bytes[20] ^= 1), EventStreamError::Checksum { part: "content" });
    let prelude = |bytes: &mut Vec<u8>, total: u32, headers: u32| {
        bytes[..4].copy_from_slice(&total.to_be_bytes());
        bytes[4..8].copy_from_slice(&headers.to_be_bytes());
        let checksum = crc32fast::hash(&bytes[..8]);
        bytes[8..12].copy_from_slice(&checksum.to_be_bytes());
    };
    assert_eq!(broken(&|bytes| prelude(bytes, 1 << 21, 0)), EventStreamError::TooLong { bytes: 1 << 21 });
    assert_eq!(broken(&|bytes| prelude(bytes, 20, 5)), EventStreamError::Lengths);
    assert_eq!(broken(&|bytes| prelude(bytes, 3, 0)), EventStreamError::Lengths);
    assert_eq!(broken(&|bytes| prelude(bytes, 100, u32::MAX)), EventStreamError::Lengths);
}

#[test]
fn headers_are_counted_and_checked() {
    let many = vec![("a", "b"); EVENT_STREAM_HEADERS_MAX + 1];
    let read = EventStreamParser::new().push(&encoded(&message(&many, "")));
    assert_eq!(read, Err(EventStreamError::TooManyHeaders));
    let mut bytes = encoded(&message(&[("a", "b")], ""));
    bytes[14] = 10;
    let end = bytes.len() - 4;
    let checksum = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum.to_be_bytes());
    let why = EventStreamParser::new().push(&bytes).expect_err("an unknown type");
    assert!(why.to_string().contains("header 1"), "{why}");
}

#[test]
fn an_end_within_a_message_is_an_error() {
    let bytes = encoded(&message(&[], "payload"));
    let mut parser = EventStreamParser::new();
    assert_eq!(parser.push(&bytes[..5]), Ok(Vec::new()));
    assert_eq!(parser.finish(), Err(EventStreamError::Truncated));
}
