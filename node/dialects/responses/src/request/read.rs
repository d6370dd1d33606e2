//! Reading of requests.

use serde_json::Value;

use super::super::INPUT_ITEMS_MAX;
use super::super::fields::{Fields, object, rest, take, take_count, take_flag, take_text, within_limit};
use super::super::items::{ResponsesItem, is_message_part, mark_message, read_item};
use super::INCLUDE_LOGPROBS;
use super::settings::{read_reasoning_settings, read_text_settings};
use super::tools::{read_tool_choice, read_tools};
use assay_node_dialects::form::{ContentPart, Extra, Message, ModelRequest, Role, Sampling, TextPart};
use assay_node_dialects::{Dialect, DialectError};

/// Reads the body of a request.
pub fn read_request(body: &Value) -> Result<ModelRequest, DialectError> {
    let mut fields = object(body.clone(), "the body")?;
    let mut messages = Vec::new();
    if let Some(text) = take_text(&mut fields, "", "instructions")? {
        messages.push(text_message(Role::System, text));
    }
    match take(&mut fields, "input") {
        None => {}
        Some(Value::String(text)) => messages.push(text_message(Role::User, text)),
        Some(Value::Array(items)) => read_input(items, &mut messages)?,
        Some(_) => return Err(DialectError::malformed("input", "a text or a list of items")),
    }
    let (output_format, text) = read_text_settings(take(&mut fields, "text"))?;
    let request = ModelRequest {
        model: take_text(&mut fields, "", "model")?.unwrap_or_default(),
        messages,
        tools: read_tools(&mut fields)?,
        tool_choice: read_tool_choice(&mut fields)?,
        parallel_tool_calls: take_flag(&mut fields, "", "parallel_tool_calls")?,
        output_format,
        sampling: read_sampling(&mut fields)?,
        max_output_tokens: take_count(&mut fields, "", "max_output_tokens")?,
        reasoning: read_reasoning_settings(&mut fields)?,
        stream: take_flag(&mut fields, "", "stream")?.unwrap_or_default(),
        user: take_text(&mut fields, "", "user")?,
        metadata: take(&mut fields, "metadata").map(|metadata| object(metadata, "metadata")).transpose()?,
        ..ModelRequest::default()
    };
    if !text.is_empty() {
        fields.insert("text".to_owned(), Value::Object(text));
    }
    Ok(ModelRequest { extra: Extra::marked(Dialect::Responses, fields), ..request })
}

fn text_message(role: Role, text: String) -> Message {
    let parts = vec![ContentPart::Text(TextPart { text, ..TextPart::default() })];
    Message { role, name: None, parts, extra: Extra::default() }
}

fn read_sampling(fields: &mut Fields) -> Result<Sampling, DialectError> {
    let include = fields.get("include").and_then(Value::as_array);
    let logprobs = include.is_some_and(|include| include.iter().any(|one| one == INCLUDE_LOGPROBS));
    Ok(Sampling {
        temperature: take_number(fields, "temperature")?,
        top_p: take_number(fields, "top_p")?,
        top_logprobs: take_count(fields, "", "top_logprobs")?,
        logprobs: logprobs.then_some(true),
        ..Sampling::default()
    })
}

fn take_number(fields: &mut Fields, name: &str) -> Result<Option<Value>, DialectError> {
    match take(fields, name) {
        Some(value) if !value.is_number() => Err(DialectError::malformed(name, "a number")),
        number => Ok(number),
    }
}

fn read_input(items: Vec<Value>, messages: &mut Vec<Message>) -> Result<(), DialectError> {
    for (at, item) in within_limit(items, "items of input", INPUT_ITEMS_MAX)?.into_iter().enumerate() {
        match read_item(item, &format!("input[{at}]"))? {
            ResponsesItem::Message { role: Role::Assistant, parts, rest } => {
                push_assistant_message(messages, parts, rest);
            }
            ResponsesItem::Message { role, parts, rest: fields } => {
                messages.push(Message { role, name: None, parts, extra: rest(fields) });
            }
            ResponsesItem::Made(part) => open_assistant(messages).push(part),
            ResponsesItem::Result(result) => push_one(messages, Role::Tool, ContentPart::ToolResult(result)),
            ResponsesItem::Foreign { role, item } => {
                let part = ContentPart::Foreign { from: Dialect::Responses, part: item };
                match role {
                    Role::Assistant => open_assistant(messages).push(part),
                    role => push_one(messages, role, part),
                }
            }
        }
    }
    Ok(())
}

fn push_one(messages: &mut Vec<Message>, role: Role, part: ContentPart) {
    messages.push(Message { role, name: None, parts: vec![part], extra: Extra::default() });
}

/// Parts of the assistant's turn. Calls that the model made at once must be in one message, and what led to them too.
fn open_assistant(messages: &mut Vec<Message>) -> &mut Vec<ContentPart> {
    let is_open = messages.last().is_some_and(|last| last.role == Role::Assistant && !last.parts.is_empty());
    if !is_open {
        messages.push(Message { role: Role::Assistant, name: None, parts: Vec::new(), extra: Extra::default() });
    }
    let at = messages.len() - 1;
    &mut messages[at].parts
}

fn push_assistant_message(messages: &mut Vec<Message>, mut parts: Vec<ContentPart>, fields: Fields) {
    let Some(first) = parts.first_mut() else {
        messages.push(Message { role: Role::Assistant, name: None, parts, extra: rest(fields) });
        return;
    };
    let turn = messages.last().filter(|last| last.role == Role::Assistant);
    let follows_message = turn.and_then(|turn| turn.parts.last()).is_some_and(is_message_part);
    if follows_message || !fields.is_empty() {
        mark_message(first, fields);
    }
    let has_calls = |turn: &Message| turn.parts.iter().any(|part| matches!(part, ContentPart::ToolCall(_)));
    // two messages in a row are two turns, unless calls before them wait for their results
    match follows_message && !turn.is_some_and(has_calls) {
        true => messages.push(Message { role: Role::Assistant, name: None, parts, extra: Extra::default() }),
        false => open_assistant(messages).append(&mut parts),
    }
}
