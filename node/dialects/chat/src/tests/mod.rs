//! Tests of chat completions.

mod properties;
mod quirks;
mod requests;
mod responses;
mod streams;

use serde_json::{Value, json};

use super::*;
use assay_node_dialects::form::{FoldLimits, ModelResponse, ResponseFold, StreamEvent};
use assay_node_dialects::{SseEvent, WriteOptions};

/// Reads and writes a request for a server that takes everything.
fn rewritten(body: &Value) -> Value {
    let request = read_request(body).unwrap_or_else(|error| panic!("{body}: {error}"));
    let written = write_request(&request, &WriteOptions::default()).unwrap_or_else(|error| panic!("{body}: {error}"));
    assert_eq!(written.dropped, [""; 0], "{body}");
    written.body
}

/// Makes a request of one message.
fn request_of(message: Value) -> Value {
    json!({ "model": "m", "messages": [message] })
}

fn events_of(chunks: &[Value]) -> Vec<StreamEvent> {
    let mut reader = ChatStreamReader::default();
    let mut events = Vec::new();
    for chunk in chunks {
        let data = chunk.as_str().map_or_else(|| chunk.to_string(), str::to_owned);
        events.extend(reader.push(&SseEvent::of_data(data)).unwrap_or_else(|error| panic!("{chunk}: {error}")));
    }
    events.extend(reader.finish());
    events
}

fn folded(events: &[StreamEvent]) -> ModelResponse {
    let mut fold = ResponseFold::new(FoldLimits::default());
    for event in events {
        fold.push(event).unwrap_or_else(|error| panic!("{event:?}: {error}"));
    }
    fold.into_response()
}

/// Writes events for a client and reads the chunks again.
fn streamed(events: &[StreamEvent]) -> Vec<StreamEvent> {
    let mut writer = ChatStreamWriter::new(ChatStreamOptions { include_usage: true, function_call: false });
    let mut reader = ChatStreamReader::default();
    let chunks = events.iter().flat_map(|event| writer.write(event));
    chunks.flat_map(|chunk| reader.push(&chunk).expect("own chunks are read")).collect()
}
