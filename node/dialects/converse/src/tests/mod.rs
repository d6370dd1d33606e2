//! Tests of the crate: tables of realistic bodies, and random ones.

mod answers;
mod frames;
mod properties;
mod requests;
mod streams;

use serde_json::Value;

use crate::{ConverseStreamReader, EventStreamHeader, EventStreamMessage, EventStreamValue};
use assay_node_dialects::SseEvent;
use assay_node_dialects::form::StreamEvent;

/// Event of a stream with JSON data.
fn event(kind: &str, data: &Value) -> SseEvent {
    SseEvent { event: Some(kind.to_owned()), data: data.to_string() }
}

/// Reads a whole stream.
fn read_stream(events: &[(&str, Value)]) -> Vec<StreamEvent> {
    let mut reader = ConverseStreamReader::default();
    let push = |(kind, data): &(&str, Value)| reader.push(&event(kind, data)).expect("a good event");
    let mut read: Vec<StreamEvent> = events.iter().flat_map(push).collect();
    read.extend(reader.finish());
    read
}

/// Encodes a message whose headers are texts.
fn encoded(message: &EventStreamMessage) -> Vec<u8> {
    let mut headers = Vec::new();
    for EventStreamHeader { name, value } in &message.headers {
        let EventStreamValue::Text(text) = value else { panic!("a header that is no text") };
        headers.push(u8::try_from(name.len()).expect("a short name"));
        headers.extend(name.bytes());
        headers.push(7);
        headers.extend(u16::try_from(text.len()).expect("a short text").to_be_bytes());
        headers.extend(text.bytes());
    }
    let total = u32::try_from(16 + headers.len() + message.payload.len()).expect("a short message");
    let mut bytes = total.to_be_bytes().to_vec();
    bytes.extend(u32::try_from(headers.len()).expect("short headers").to_be_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes.extend(headers);
    bytes.extend(&message.payload);
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

fn message(headers: &[(&str, &str)], payload: &str) -> EventStreamMessage {
    let header = |(name, value): &(&str, &str)| EventStreamHeader {
        name: (*name).to_owned(),
        value: EventStreamValue::Text((*value).to_owned()),
    };
    EventStreamMessage { headers: headers.iter().map(header).collect(), payload: payload.as_bytes().to_vec() }
}
