//! Status of a response, and the reason for its end.

use serde_json::{Value, json};

use super::super::fields::{Fields, put, take};
use assay_node_dialects::form::{Extra, FinishReason};

/// States of a response that is no answer. They are kept as other reasons.
const OTHER_STATES: [&str; 5] = ["failed", "cancelled", "queued", "in_progress", "incomplete"];

/// Takes the reason for the end out of the fields of a response. Details that it does not tell stay.
pub(crate) fn finish_of(fields: &mut Fields, has_calls: bool) -> FinishReason {
    let status = match take(fields, "status") {
        Some(Value::String(status)) if status != "completed" => status,
        _ if has_calls => return FinishReason::ToolCalls,
        _ => return FinishReason::Stop,
    };
    if status != "incomplete" {
        return FinishReason::Other(status);
    }
    let details = fields.get("incomplete_details");
    let is_plain = details.and_then(Value::as_object).is_some_and(|details| details.len() == 1);
    let reason = match details.and_then(|details| details.get("reason")).and_then(Value::as_str) {
        Some("max_output_tokens") => FinishReason::Length,
        Some("content_filter") => FinishReason::ContentFilter,
        _ => return FinishReason::Other(status),
    };
    if is_plain {
        fields.shift_remove("incomplete_details");
    }
    reason
}

/// Status of a response.
pub(super) fn status_of(finish: Option<&FinishReason>) -> &str {
    match finish {
        Some(FinishReason::Length | FinishReason::ContentFilter) => "incomplete",
        Some(FinishReason::Other(other)) if OTHER_STATES.contains(&other.as_str()) => other,
        _ => "completed",
    }
}

/// Returns whether the last item of an answer may be cut.
pub(crate) fn is_cut(finish: Option<&FinishReason>) -> bool {
    status_of(finish) == "incomplete"
}

/// Puts the status and the details of an incomplete response.
pub(super) fn put_status(fields: &mut Fields, finish: Option<&FinishReason>, extra: &Extra) {
    put(fields, "status", status_of(finish));
    let kept = |name: &str| super::super::fields::kept(extra, name).cloned();
    put(fields, "error", kept("error"));
    let reason = match finish {
        Some(FinishReason::Length) => Some("max_output_tokens"),
        Some(FinishReason::ContentFilter) => Some("content_filter"),
        _ => None,
    };
    let details = kept("incomplete_details").or(reason.map(|reason| json!({"reason": reason})));
    put(fields, "incomplete_details", details);
}
