//! Server-sent events as providers write them.

use serde_json::Value;

/// One event, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WireEvent(pub String);

impl WireEvent {
    /// Event without a name.
    pub fn data(data: &Value) -> WireEvent {
        WireEvent(format!("data: {data}\n\n"))
    }

    /// Event with a name.
    pub fn named(name: &str, data: &Value) -> WireEvent {
        WireEvent(format!("event: {name}\ndata: {data}\n\n"))
    }

    pub fn raw(data: &str) -> WireEvent {
        WireEvent(format!("data: {data}\n\n"))
    }
}
