//! Reasons why an answer ends.

use serde_json::{Value, json};

use assay_node_dialects::Dialect;
use assay_node_dialects::form::{Extra, FinishReason};

/// Spelling of a reason that several reasons of the dialect are.
const REASON: &str = "finishReason";

/// Returns the reason of the form. A model that stopped after calls waits for their results.
pub(super) fn finish_of(reason: &str, has_calls: bool) -> FinishReason {
    match reason {
        "STOP" if has_calls => FinishReason::ToolCalls,
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MALFORMED_FUNCTION_CALL"
        | "MALFORMED_RESPONSE"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MISSING_THOUGHT_SIGNATURE" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}

/// Adds the spelling of a reason that [`reason_of`] could not tell from the form's.
pub(super) fn with_spelling(extra: Extra, reason: &str, finish: &FinishReason) -> Extra {
    if reason_of(finish, &Extra::default()) == reason {
        return extra;
    }
    extra.with_field_spelling(Dialect::Gemini, REASON, json!(reason))
}

pub(super) fn reason_of(finish: &FinishReason, extra: &Extra) -> String {
    let spelled = extra.field_spelling(Dialect::Gemini, REASON).and_then(Value::as_str);
    if let Some(spelled) = spelled.filter(|spelled| finish_of(spelled, *finish == FinishReason::ToolCalls) == *finish) {
        return spelled.to_owned();
    }
    let reason = match finish {
        FinishReason::Length => "MAX_TOKENS",
        FinishReason::ContentFilter => "SAFETY",
        FinishReason::Other(reason) if is_reason(reason) => reason,
        FinishReason::Other(_) => "OTHER",
        FinishReason::Stop | FinishReason::StopSequence(_) | FinishReason::ToolCalls | FinishReason::Pause => "STOP",
    };
    reason.to_owned()
}

/// Whether a text is spelled as this dialect's reasons are.
fn is_reason(reason: &str) -> bool {
    !reason.is_empty() && reason.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}
