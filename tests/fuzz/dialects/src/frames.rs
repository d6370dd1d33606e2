//! Binary event streams of AWS: an encoder of messages.

use assay_node_dialects::SseEvent;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

/// Type of a header whose value is a text.
const TEXT: u8 = 7;

/// Encodes a message with right lengths and checksums.
pub fn message(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let total = u32::try_from(headers.len() + payload.len() + 16).expect("inputs are short");
    let mut bytes = total.to_be_bytes().to_vec();
    bytes.extend(u32::try_from(headers.len()).expect("inputs are short").to_be_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes.extend([headers, payload].concat());
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

/// Encodes an event as Converse sends it. One without a type is an exception.
pub fn converse(event: &SseEvent) -> Vec<u8> {
    let payload = event.data.as_bytes();
    match &event.event {
        Some(kind) => message(&headers(&[(":event-type", kind), (":message-type", "event")]), payload),
        None => {
            let names = [(":exception-type", "throttlingException"), (":message-type", "exception")];
            message(&headers(&names), payload)
        }
    }
}

/// Encodes an event of Anthropic as InvokeModel sends it.
pub fn chunk(event: &SseEvent) -> Vec<u8> {
    let payload = json!({"bytes": STANDARD.encode(&event.data)}).to_string();
    message(&headers(&[(":event-type", "chunk"), (":message-type", "event")]), payload.as_bytes())
}

fn headers(texts: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in texts {
        bytes.push(u8::try_from(name.len()).expect("names are short"));
        bytes.extend(name.bytes());
        bytes.push(TEXT);
        let length = value.len().min(usize::from(u16::MAX));
        bytes.extend(u16::try_from(length).expect("is bounded").to_be_bytes());
        bytes.extend(&value.as_bytes()[..length]);
    }
    bytes
}
