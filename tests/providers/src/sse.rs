//! Server-sent events as providers write them.

use serde_json::Value;

/// One event of a stream, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WireEvent(pub Vec<u8>);

impl WireEvent {
    /// Event without a name.
    pub fn data(data: &Value) -> WireEvent {
        WireEvent(format!("data: {data}\n\n").into_bytes())
    }

    /// Event with a name.
    pub fn named(name: &str, data: &Value) -> WireEvent {
        WireEvent(format!("event: {name}\ndata: {data}\n\n").into_bytes())
    }

    pub fn raw(data: &str) -> WireEvent {
        WireEvent(format!("data: {data}\n\n").into_bytes())
    }

    /// Data of a server-sent event.
    pub fn sent(&self) -> &str {
        let text = std::str::from_utf8(&self.0).expect("a server-sent event");
        text.split_once("data: ").map_or("", |(_, data)| data.trim_end())
    }
}
