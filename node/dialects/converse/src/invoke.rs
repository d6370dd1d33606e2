//! Streams of `invoke-with-response-stream`: events of Anthropic's Messages API in chunks.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::error::{UNKNOWN_ERROR_STATUS, read_error};
use super::event_stream::EXCEPTION_EVENT;
use assay_node_dialects::form::{Extra, ModelError};
use assay_node_dialects::{DialectError, SseEvent};
use assay_node_dialects_anthropic::write_error;

/// Unpacks the event of a message. A `chunk` holds an event of Anthropic as base64, and an exception becomes an event
/// with an error of Anthropic. None is an event without a meaning here.
pub fn read_invoke_event(event: &SseEvent) -> Result<Option<SseEvent>, DialectError> {
    let kind = event.event.as_deref().unwrap_or_default();
    if kind != "chunk" && kind != EXCEPTION_EVENT {
        return Ok(None);
    }
    let data: Value = serde_json::from_str(&event.data)
        .map_err(|why| DialectError::Stream(format!("the data of an event is no JSON: {why}")))?;
    if kind == EXCEPTION_EVENT {
        let error = read_error(UNKNOWN_ERROR_STATUS, &data);
        let body = write_error(UNKNOWN_ERROR_STATUS, &ModelError { extra: Extra::default(), ..error });
        return Ok(Some(SseEvent { event: Some("error".to_owned()), data: body.to_string() }));
    }
    let bytes = data.get("bytes").and_then(Value::as_str).and_then(|bytes| STANDARD.decode(bytes).ok());
    let inner = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let inner = inner.ok_or_else(|| DialectError::malformed("chunk.bytes", "base64 of a UTF-8 text"))?;
    Ok(Some(SseEvent::of_data(inner)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: &str, data: &str) -> SseEvent {
        SseEvent { event: Some(kind.to_owned()), data: data.to_owned() }
    }

    #[test]
    fn a_chunk_holds_an_event_of_anthropic() {
        let chunk = event("chunk", r#"{"bytes":"eyJ0eXBlIjoicGluZyJ9","p":"abc"}"#);
        assert_eq!(read_invoke_event(&chunk), Ok(Some(SseEvent::of_data(r#"{"type":"ping"}"#))));
        assert_eq!(read_invoke_event(&event("initial-response", "")), Ok(None));
        for data in ["{}", r#"{"bytes":"%"}"#, r#"{"bytes":"/w=="}"#, "no JSON"] {
            assert!(read_invoke_event(&event("chunk", data)).is_err(), "{data}");
        }
    }

    #[test]
    fn an_exception_is_an_error_of_anthropic() {
        let exception = event("exception", r#"{"__type":"throttlingException","message":"slow down"}"#);
        let read = read_invoke_event(&exception).expect("an event").expect("an error");
        let expected = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}});
        assert_eq!((read.event.as_deref(), read.data), (Some("error"), expected.to_string()));
    }
}
