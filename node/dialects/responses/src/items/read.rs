//! Reading of items.

use serde_json::{Value, json};

use super::super::fields::{Fields, object, rest, take, take_needed_text, text_of, typed, within, within_limit};
use super::super::{CONTENT_PARTS_MAX, fields};
use super::content::{MESSAGE_MARK, read_part, signature_of};
use super::reasoning::read_reasoning;
use assay_node_dialects::form::{ContentPart, Role, TextPart, ToolCallPart, ToolResultPart};
use assay_node_dialects::{Dialect, DialectError};

/// Item in the terms of the form.
#[derive(Debug)]
pub(crate) enum ResponsesItem {
    /// Message, with the fields that the form does not have.
    Message { role: Role, parts: Vec<ContentPart>, rest: Fields },
    /// Reasoning or a call, which the assistant made.
    Made(ContentPart),
    /// Result of a call, which the client sends.
    Result(ToolResultPart),
    /// Item that only this dialect has.
    Foreign { role: Role, item: Value },
}

/// Reads an item. `path` is where it is in the body.
pub(crate) fn read_item(item: Value, path: &str) -> Result<ResponsesItem, DialectError> {
    let fields = object(item, path)?;
    match fields.get("type").unwrap_or(&Value::Null) {
        Value::String(kind) => match kind.as_str() {
            "message" => read_message(fields, path),
            "reasoning" => Ok(ResponsesItem::Made(ContentPart::Reasoning(read_reasoning(fields, path)?))),
            "function_call" => Ok(ResponsesItem::Made(ContentPart::ToolCall(read_call(fields, path)?))),
            "function_call_output" => read_result(fields, path).map(ResponsesItem::Result),
            _ => Ok(foreign(fields)),
        },
        Value::Null if fields.contains_key("role") => read_message(fields, path),
        Value::Null if fields.contains_key("id") => Ok(foreign(fields)),
        _ => Err(DialectError::malformed(within(path, "type"), "the type of an item")),
    }
}

fn foreign(fields: Fields) -> ResponsesItem {
    let is_sent =
        text_of(&fields, "type").is_some_and(|kind| kind.ends_with("_output") || kind == "mcp_approval_response");
    let role = if is_sent { Role::Tool } else { Role::Assistant };
    ResponsesItem::Foreign { role, item: Value::Object(fields) }
}

fn read_message(mut fields: Fields, path: &str) -> Result<ResponsesItem, DialectError> {
    fields.shift_remove("type");
    let role = match take_needed_text(&mut fields, path, "role")?.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        "developer" => Role::Developer,
        _ => return Err(DialectError::malformed(within(path, "role"), "user, assistant, system or developer")),
    };
    let parts = read_content(take(&mut fields, "content"), &within(path, "content"))?;
    let parts = match role {
        Role::Assistant => parts.into_iter().map(wrap_content).collect(),
        _ => parts,
    };
    Ok(ResponsesItem::Message { role, parts, rest: fields })
}

/// Parts of a text or of a list.
fn read_content(content: Option<Value>, path: &str) -> Result<Vec<ContentPart>, DialectError> {
    match content {
        Some(Value::String(text)) => Ok(vec![ContentPart::Text(TextPart { text, ..TextPart::default() })]),
        Some(Value::Array(list)) => {
            let parts = within_limit(list, "parts of a message", CONTENT_PARTS_MAX)?.into_iter().enumerate();
            parts.map(|(at, part)| read_part(part, &format!("{path}[{at}]"))).collect()
        }
        _ => Err(DialectError::malformed(path, "a text or a list of parts")),
    }
}

/// An unknown part of the assistant's message within a message of its own, which tells it from an item.
pub(crate) fn wrap_content(part: ContentPart) -> ContentPart {
    match part {
        ContentPart::Foreign { from: Dialect::Responses, part } => {
            ContentPart::Foreign { from: Dialect::Responses, part: json!({"type": "message", "content": [part]}) }
        }
        part => part,
    }
}

/// Marks the first part of a message with the fields of the message.
pub(crate) fn mark_message(part: &mut ContentPart, message: Fields) {
    match part {
        ContentPart::Text(text) | ContentPart::Refusal(text) => {
            let mut kept = text.extra.for_dialect(Dialect::Responses).cloned().unwrap_or_default();
            fields::put(&mut kept, MESSAGE_MARK, message);
            text.extra = rest(kept);
        }
        ContentPart::Foreign { part: Value::Object(wrapper), .. } => fields::put(wrapper, MESSAGE_MARK, message),
        _ => {}
    }
}

fn read_call(mut fields: Fields, path: &str) -> Result<ToolCallPart, DialectError> {
    fields.shift_remove("type");
    let id = take_needed_text(&mut fields, path, "call_id")?;
    let name = take_needed_text(&mut fields, path, "name")?;
    let arguments = match take(&mut fields, "arguments") {
        Some(Value::String(arguments)) => arguments,
        // some servers send the object itself
        Some(arguments @ Value::Object(_)) => arguments.to_string(),
        None => String::new(),
        Some(_) => return Err(DialectError::malformed(within(path, "arguments"), "a JSON text")),
    };
    Ok(ToolCallPart { id, name, arguments, signature: signature_of(&fields), cache: None, extra: rest(fields) })
}

fn read_result(mut fields: Fields, path: &str) -> Result<ToolResultPart, DialectError> {
    fields.shift_remove("type");
    let call_id = take_needed_text(&mut fields, path, "call_id")?;
    let content = read_content(take(&mut fields, "output"), &within(path, "output"))?;
    let name = text_of(&fields, "name").map(str::to_owned);
    Ok(ToolResultPart { call_id, name, is_error: false, content, cache: None, extra: rest(fields) })
}

/// Message without content, which has no part in the form.
pub(crate) fn empty_message(mut rest: Fields, role: &str) -> Value {
    let mut fields = typed("message");
    fields::put(&mut fields, "role", role);
    fields::put(&mut fields, "content", Vec::<Value>::new());
    fields.append(&mut rest);
    Value::Object(fields)
}
