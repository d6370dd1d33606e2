//! Events of binary streams as texts, of which the target makes binary messages.

use serde_json::Value;

use crate::sse::WireEvent;

pub(crate) fn event(kind: &str, payload: &Value) -> WireEvent {
    WireEvent::named(kind, payload)
}
