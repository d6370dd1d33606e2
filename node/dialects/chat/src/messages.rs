//! Messages of a chat request.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value};

use super::fields::{ChatFields, put_extra, put_signature, take_signature};
use super::parts::{self, LISTED_IMAGE, put_cache, take_cache};
use super::{reasoning, tools};
use assay_node_dialects::form::{ContentPart, Message, Role, TextPart, ToolCallPart, ToolResultPart};
use assay_node_dialects::{Dialect, DialectError};

/// Upper bound of the messages of a request.
pub const CHAT_MESSAGES_MAX: usize = 100_000;

/// Ids that legacy calls get, by the names of their functions.
#[derive(Debug, Default)]
struct LegacyCallIds {
    last: HashMap<String, String>,
}

pub(super) fn read_messages(values: Vec<Value>) -> Result<Vec<Message>, DialectError> {
    if values.len() > CHAT_MESSAGES_MAX {
        return Err(DialectError::TooMany { dialect: Dialect::Chat, of: "messages", max: CHAT_MESSAGES_MAX });
    }
    let mut ids = LegacyCallIds::default();
    values.into_iter().enumerate().map(|(at, value)| read_message(value, at, &mut ids)).collect()
}

fn read_message(value: Value, at: usize, ids: &mut LegacyCallIds) -> Result<Message, DialectError> {
    let mut fields = ChatFields::of(format!("messages[{at}]"), value)?;
    let role = match fields.required_text("role")?.as_str() {
        "system" => Role::System,
        "developer" => Role::Developer,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        "function" => return read_legacy_result(fields, at, ids),
        _ => {
            let expected = "system, developer, user, assistant, tool or function";
            return Err(DialectError::malformed(fields.path_of("role"), expected));
        }
    };
    let name = fields.text("name")?;
    if role == Role::Tool {
        return read_tool_result(fields, name);
    }
    let parts = match role {
        Role::Assistant => {
            let parts = take_answer(&mut fields, format!("call_f{at}"))?;
            if let Some(ContentPart::ToolCall(call)) = parts.iter().find(|part| tools::is_legacy_call(part)) {
                ids.last.insert(call.name.clone(), call.id.clone());
            }
            parts
        }
        _ => take_content(&mut fields)?,
    };
    Ok(Message { role, name, parts, extra: fields.into_extra() })
}

fn take_content(fields: &mut ChatFields) -> Result<Vec<ContentPart>, DialectError> {
    let path = fields.path_of("content");
    fields.take("content").map_or(Ok(Vec::new()), |content| parts::read_content(content, &path))
}

fn read_tool_result(mut fields: ChatFields, name: Option<String>) -> Result<Message, DialectError> {
    let call_id = fields.required_text("tool_call_id")?;
    let (content, cache) = (take_content(&mut fields)?, take_cache(&mut fields));
    let extra = fields.into_extra();
    let result = ToolResultPart { call_id, name, is_error: false, content, cache, extra };
    Ok(Message {
        role: Role::Tool,
        name: None,
        parts: vec![ContentPart::ToolResult(result)],
        extra: Default::default(),
    })
}

/// Reads a message of the legacy role `function`, which answers the last call of its function.
fn read_legacy_result(mut fields: ChatFields, at: usize, ids: &LegacyCallIds) -> Result<Message, DialectError> {
    let name = fields.required_text("name")?;
    let content = take_content(&mut fields)?;
    let call_id = ids.last.get(&name).cloned().unwrap_or_else(|| format!("call_f{at}"));
    let extra = fields.into_extra().spelled(tools::LEGACY);
    let result = ToolResultPart { call_id, name: Some(name), is_error: false, content, cache: None, extra };
    Ok(Message {
        role: Role::Tool,
        name: None,
        parts: vec![ContentPart::ToolResult(result)],
        extra: Default::default(),
    })
}

/// Takes the parts of a message of the model: reasoning, content, refusal, images, calls. An empty content is no part.
pub(super) fn take_answer(fields: &mut ChatFields, legacy_id: String) -> Result<Vec<ContentPart>, DialectError> {
    let mut parts = reasoning::take(fields)?;
    if fields.get("content").is_some_and(|content| content == "") {
        fields.take("content");
    }
    parts.extend(take_content(fields)?);
    if let Some(text) = fields.text("refusal")? {
        parts.push(ContentPart::Refusal(TextPart { text, ..TextPart::default() }));
    }
    if let Some(ContentPart::Text(text)) = parts.iter_mut().rfind(|part| matches!(part, ContentPart::Text(_))) {
        text.signature = text.signature.take().or_else(|| take_signature(fields));
    }
    if let Some(images) = fields.list("images")? {
        parts.extend(read_images(images, &fields.path_of("images"))?);
    }
    if let Some(calls) = fields.list("tool_calls")? {
        let path = fields.path_of("tool_calls");
        for (at, call) in calls.into_iter().enumerate() {
            parts.push(tools::read_tool_call(call, format!("{path}[{at}]"))?);
        }
    }
    parts.extend(tools::take_legacy_call(fields, legacy_id)?);
    Ok(parts)
}

/// Reads `images` of an answer, as OpenRouter sends them.
pub(super) fn read_images(images: Vec<Value>, path: &str) -> Result<Vec<ContentPart>, DialectError> {
    let read = |(at, image)| {
        let mut fields = ChatFields::of(format!("{path}[{at}]"), image)?;
        fields.take("type");
        let mut part = parts::read_image(fields)?;
        if let ContentPart::Image { extra, .. } = &mut part {
            *extra = std::mem::take(extra).spelled(LISTED_IMAGE);
        }
        Ok(part)
    };
    images.into_iter().enumerate().map(read).collect()
}

/// Ids of calls that came from a dialect without ids.
#[derive(Debug, Default)]
struct MadeUpCallIds {
    made: usize,
    /// Calls without a result yet, by the names of their tools.
    open: HashMap<String, VecDeque<String>>,
}

impl MadeUpCallIds {
    fn call(&mut self, call: &ToolCallPart) -> String {
        let id = format!("call_{}", self.made);
        self.made += 1;
        self.open.entry(call.name.clone()).or_default().push_back(id.clone());
        id
    }

    /// Returns the id of the first open call of the same name.
    fn result(&mut self, result: &ToolResultPart, path: &str) -> Result<String, DialectError> {
        let open = result.name.as_ref().and_then(|name| self.open.get_mut(name)).and_then(VecDeque::pop_front);
        open.ok_or_else(|| DialectError::unsupported(path, "a tool result without its call"))
    }
}

/// Writes messages. Each tool result becomes a message of its own.
pub(super) fn write_messages(messages: &[Message]) -> Result<Vec<Value>, DialectError> {
    let mut ids = MadeUpCallIds::default();
    let mut written = Vec::with_capacity(messages.len());
    for (at, message) in messages.iter().enumerate() {
        let path = format!("messages[{at}]");
        let (results, others): (Vec<&ContentPart>, Vec<&ContentPart>) =
            message.parts.iter().partition(|part| matches!(part, ContentPart::ToolResult(_)));
        for part in &results {
            if let ContentPart::ToolResult(result) = part {
                written.push(write_tool_result(result, &path, &mut ids)?);
            }
        }
        match message.role {
            Role::Tool if others.is_empty() => {}
            Role::Tool => return Err(DialectError::unsupported(path, "a part of a tool message that is no result")),
            Role::Assistant => written.push(write_answer(message, &others, &path, &mut ids)?),
            _ if others.is_empty() && !results.is_empty() => {}
            role => written.push(write_plain(role, message, &others, &path)?),
        }
    }
    Ok(written)
}

fn write_tool_result(result: &ToolResultPart, path: &str, ids: &mut MadeUpCallIds) -> Result<Value, DialectError> {
    let mut map = Map::new();
    let is_legacy = result.extra.spelling() == Some(tools::LEGACY);
    map.insert("role".to_owned(), Value::from(if is_legacy { "function" } else { "tool" }));
    if let Some(name) = &result.name {
        map.insert("name".to_owned(), Value::String(name.clone()));
    }
    if !is_legacy {
        let id = if result.call_id.is_empty() { ids.result(result, path)? } else { result.call_id.clone() };
        map.insert("tool_call_id".to_owned(), Value::String(id));
    }
    let content: Vec<&ContentPart> = result.content.iter().collect();
    let content = match parts::write_content(&content, &format!("{path}.content"))? {
        Value::Null => Value::String(String::new()),
        content => content,
    };
    map.insert("content".to_owned(), content);
    put_cache(&mut map, result.cache.as_ref());
    put_extra(&mut map, &result.extra);
    Ok(Value::Object(map))
}

fn write_plain(role: Role, message: &Message, parts: &[&ContentPart], path: &str) -> Result<Value, DialectError> {
    let role = match role {
        Role::System => "system",
        Role::Developer => "developer",
        _ => "user",
    };
    let mut map = Map::new();
    map.insert("role".to_owned(), Value::from(role));
    put_name(&mut map, message);
    map.insert("content".to_owned(), parts::write_content(parts, &format!("{path}.content"))?);
    put_extra(&mut map, &message.extra);
    Ok(Value::Object(map))
}

fn put_name(map: &mut Map<String, Value>, message: &Message) {
    if let Some(name) = &message.name {
        map.insert("name".to_owned(), Value::String(name.clone()));
    }
}

fn write_answer(
    message: &Message,
    parts: &[&ContentPart],
    path: &str,
    ids: &mut MadeUpCallIds,
) -> Result<Value, DialectError> {
    let mut map = Map::new();
    map.insert("role".to_owned(), Value::from("assistant"));
    put_name(&mut map, message);
    let mut content: Vec<ContentPart> =
        parts.iter().filter(|part| is_content(part)).map(|part| (*part).clone()).collect();
    let signature = take_last_signature(&mut content);
    // Servers accept a message without content only if it says something beside its reasoning.
    let has_other_parts = parts.iter().any(|part| !is_content(part) && !matches!(part, ContentPart::Reasoning(_)));
    let content: Vec<&ContentPart> = content.iter().collect();
    let content = match parts::write_content(&content, &format!("{path}.content"))? {
        Value::Null if !has_other_parts => Value::String(String::new()),
        content => content,
    };
    map.insert("content".to_owned(), content);
    put_answer_members(&mut map, parts.iter().copied(), |call| ids.call(call));
    put_signature(&mut map, signature.as_ref());
    put_extra(&mut map, &message.extra);
    Ok(Value::Object(map))
}

/// Takes the signature of the last text, which belongs to the message.
fn take_last_signature(content: &mut [ContentPart]) -> Option<String> {
    match content.iter_mut().rfind(|part| matches!(part, ContentPart::Text(_))) {
        Some(ContentPart::Text(text)) => text.signature.take(),
        _ => None,
    }
}

/// Returns whether a part of a message of the model is written into its content.
fn is_content(part: &ContentPart) -> bool {
    match part {
        ContentPart::Refusal(refusal) => parts::is_content_refusal(refusal),
        ContentPart::Image { extra, .. } => extra.spelling() != Some(LISTED_IMAGE),
        ContentPart::Reasoning(part) => reasoning::is_spelled_thinking(part),
        ContentPart::ToolCall(_) => false,
        ContentPart::Foreign { .. } => tools::other_call(part).is_none(),
        _ => true,
    }
}

/// Puts the parts of a message of the model that are members beside its content.
pub(super) fn put_answer_members<'a>(
    map: &mut Map<String, Value>,
    parts: impl Iterator<Item = &'a ContentPart> + Clone,
    made_up_id: impl FnMut(&ToolCallPart) -> String,
) {
    let thoughts = parts.clone().filter_map(|part| match part {
        ContentPart::Reasoning(part) if !reasoning::is_spelled_thinking(part) => Some(part),
        _ => None,
    });
    reasoning::put(map, thoughts);
    let mut refusal: Option<String> = None;
    let mut images = Vec::new();
    for part in parts.clone() {
        match part {
            ContentPart::Refusal(part) if !parts::is_content_refusal(part) => {
                refusal.get_or_insert_default().push_str(&part.text);
            }
            ContentPart::Image { extra, .. } if extra.spelling() == Some(LISTED_IMAGE) => images.push(part),
            _ => {}
        }
    }
    if let Some(refusal) = refusal {
        map.insert("refusal".to_owned(), Value::String(refusal));
    }
    let images: Vec<Value> = images.into_iter().filter_map(parts::write_listed_image).collect();
    if !images.is_empty() {
        map.insert("images".to_owned(), Value::Array(images));
    }
    tools::put_calls(map, parts, made_up_id);
}
