//! Refusal of what only servers of this dialect can do.

use serde_json::Value;

use assay_node_dialects::form::{ContentPart, ModelRequest};
use assay_node_dialects::{Dialect, DialectError};

/// What the AI SDK sends instead of earlier answers unless `store` is false.
const REFERENCE: &str =
    "a reference to an item of an earlier response (with `store: false` clients send the item itself)";

/// Refuses a request that asks for state on the server, or for a choice among tools that no other dialect has (G-31).
/// Writers of the other dialects call it. Tools and items of the provider are refused by those writers themselves.
pub fn refuse_stateful(request: &ModelRequest) -> Result<(), DialectError> {
    let mut parts = request.messages.iter().flat_map(|message| &message.parts);
    if parts.any(is_reference) {
        return Err(DialectError::unsupported("input", REFERENCE));
    }
    let Some(fields) = request.extra.for_dialect(Dialect::Responses) else { return Ok(()) };
    let value = |name: &str| fields.get(name).filter(|value| !value.is_null());
    let refused = |path: &str, what: &str| Err(DialectError::unsupported(path, what));
    for name in ["previous_response_id", "conversation", "prompt"] {
        if value(name).is_some() {
            return refused(name, "what a server of another provider stores");
        }
    }
    for name in ["store", "background"] {
        if value(name) == Some(&Value::Bool(true)) {
            return refused(name, "a response that the server keeps");
        }
    }
    if value("tool_choice").is_some() {
        return refused("tool_choice", "this choice of tools");
    }
    let format = value("text").and_then(|text| text.get("format"));
    if request.output_format.is_none() && format.is_some() {
        return refused("text.format", "this format");
    }
    Ok(())
}

fn is_reference(part: &ContentPart) -> bool {
    matches!(part, ContentPart::Foreign { from: Dialect::Responses, part } if part["type"] == "item_reference")
}
