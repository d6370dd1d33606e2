//! Server-sent events.

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Type of the event, if it names one.
    pub event: Option<String>,
    pub data: String,
}
