//! Writing of items.

use serde_json::{Value, json};

use super::super::fields::{Fields, kept, put, put_missing, put_rest, typed};
use super::content::{MESSAGE_MARK, write_input_part};
use assay_node_dialects::form::{ContentPart, ToolCallPart, ToolResultPart};
use assay_node_dialects::{Dialect, DialectError};

/// Returns whether a part of an answer is content of a message rather than an item.
pub(crate) fn is_message_part(part: &ContentPart) -> bool {
    matches!(part, ContentPart::Text(_) | ContentPart::Refusal(_)) || wrapped_content(part).is_some()
}

/// Unknown part of a message, which the reader wrapped.
pub(crate) fn wrapped_content(part: &ContentPart) -> Option<&Value> {
    let ContentPart::Foreign { from: Dialect::Responses, part } = part else { return None };
    let is_message = part.get("type").and_then(Value::as_str) == Some("message");
    part.get("content").filter(|_| is_message)?.get(0)
}

/// Fields of the message that begins at a part.
pub(crate) fn message_mark(part: &ContentPart) -> Option<&Fields> {
    let mark = match part {
        ContentPart::Text(text) | ContentPart::Refusal(text) => kept(&text.extra, MESSAGE_MARK),
        ContentPart::Foreign { part, .. } => part.get(MESSAGE_MARK),
        _ => None,
    };
    mark.and_then(Value::as_object)
}

/// Returns whether a part begins an item, or continues the message of the one before it.
pub(crate) fn begins_item(before: Option<&ContentPart>, part: &ContentPart) -> bool {
    let continues = is_message_part(part) && before.is_some_and(is_message_part) && message_mark(part).is_none();
    !continues
}

/// Writes a call under an id.
pub(crate) fn write_call(call: &ToolCallPart, id: &str) -> Fields {
    let mut fields = typed("function_call");
    put(&mut fields, "call_id", id);
    put(&mut fields, "name", call.name.as_str());
    put(&mut fields, "arguments", call.arguments.as_str());
    put_rest(&mut fields, &call.extra);
    fields
}

/// Writes a result of the call of an id.
pub(crate) fn write_result(result: &ToolResultPart, id: &str, path: &str) -> Result<Value, DialectError> {
    let mut output = Vec::new();
    for (at, part) in result.content.iter().enumerate() {
        output.push(write_input_part(part, "input_text", &format!("{path}.content[{at}]"))?);
    }
    let mut fields = typed("function_call_output");
    put(&mut fields, "call_id", id);
    put(&mut fields, "output", as_text(&mut output).unwrap_or(Value::Array(output)));
    put_rest(&mut fields, &result.extra);
    Ok(Value::Object(fields))
}

/// Text of content that is one plain text; empty content is an empty text.
fn as_text(content: &mut [Value]) -> Option<Value> {
    match content {
        [] => Some("".into()),
        [Value::Object(part)] if part.len() == 2 && part.get("text").is_some_and(Value::is_string) => {
            part.shift_remove("text")
        }
        _ => None,
    }
}

/// Writes a message that is sent to the model.
pub(crate) fn write_input_content(role: &str, mut content: Vec<Value>, rest: Option<&Fields>) -> Value {
    let mut fields = typed("message");
    put(&mut fields, "role", role);
    let is_plain = rest.is_none_or(Fields::is_empty) && !content.is_empty();
    let content = match is_plain.then(|| as_text(&mut content)).flatten() {
        Some(text) => text,
        None => {
            for part in content.iter_mut().filter_map(Value::as_object_mut) {
                if part.get("type").and_then(Value::as_str) == Some("output_text") {
                    put_missing(part, "annotations", || json!([]));
                }
            }
            Value::Array(content)
        }
    };
    put(&mut fields, "content", content);
    for (name, value) in rest.into_iter().flatten() {
        put_missing(&mut fields, name, || value.clone());
    }
    Value::Object(fields)
}
