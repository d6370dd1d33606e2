//! Contents: messages of a conversation.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::UnsentNames;
use crate::call_ids::{GeminiCallIds, is_made_up};
use crate::fields::{GeminiFields, put_back, too_many};
use crate::parts::{
    ContentSpeaker, call_part, read_content_part, result_response, text_part, thought_part, write_media,
    write_media_or_text,
};
use crate::{CONTENTS_MAX, PARTS_MAX, SIGNATURE_PLACEHOLDER};
use assay_node_dialects::form::{
    ContentPart, Extra, Message, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart,
};
use assay_node_dialects::{Dialect, DialectError, WriteOptions};

/// Spelling of the role of instructions, which has no meaning.
const SYSTEM_ROLE: &str = "role";
/// Separator of instructions and of texts of one result that become one text.
const TEXT_SEPARATOR: &str = "\n";

pub(super) fn read_system(system: Value, ids: &mut GeminiCallIds) -> Result<Message, DialectError> {
    let path = "systemInstruction";
    if let Value::String(text) = system {
        let parts = vec![ContentPart::Text(TextPart { text, ..TextPart::default() })];
        return Ok(Message { role: Role::System, name: None, parts, extra: Extra::default() });
    }
    let mut content = GeminiFields::of(system, path)?;
    let role = content.text("role")?;
    let parts = read_parts(&mut content, ContentSpeaker::User, ids)?;
    let mut extra = content.extra();
    if let Some(role) = role {
        extra = extra.with_field_spelling(Dialect::Gemini, SYSTEM_ROLE, json!(role));
    }
    Ok(Message { role: Role::System, name: None, parts, extra })
}

/// Takes the contents. One that has results of functions beside other parts becomes several messages.
pub(super) fn read_contents(
    body: &mut GeminiFields,
    ids: &mut GeminiCallIds,
    messages: &mut Vec<Message>,
) -> Result<(), DialectError> {
    for (index, content) in body.list("contents", CONTENTS_MAX)?.into_iter().enumerate() {
        let mut content = GeminiFields::of(content, &format!("contents[{index}]"))?;
        let role = match content.text("role")?.as_deref() {
            None | Some("" | "user" | "function") => Role::User,
            Some("model") => Role::Assistant,
            Some(_) => return Err(DialectError::malformed(content.path_of("role"), "`user` or `model`")),
        };
        let speaker = if role == Role::User { ContentSpeaker::User } else { ContentSpeaker::Model };
        let mut parts = read_parts(&mut content, speaker, ids)?.into_iter().peekable();
        let mut extra = Some(content.extra());
        while parts.peek().is_some() || extra.is_some() {
            let is_result = parts.peek().is_some_and(is_tool_result);
            let run: Vec<ContentPart> =
                std::iter::from_fn(|| parts.next_if(|part| is_tool_result(part) == is_result)).collect();
            let role = if is_result { Role::Tool } else { role };
            messages.push(Message { role, name: None, parts: run, extra: extra.take().unwrap_or_default() });
        }
    }
    Ok(())
}

fn is_tool_result(part: &ContentPart) -> bool {
    matches!(part, ContentPart::ToolResult(_))
}

fn read_parts(
    content: &mut GeminiFields,
    speaker: ContentSpeaker,
    ids: &mut GeminiCallIds,
) -> Result<Vec<ContentPart>, DialectError> {
    // one part may come without its list
    let parts = match content.take("parts") {
        None => Vec::new(),
        Some(Value::Array(parts)) => parts,
        Some(part) => vec![part],
    };
    if parts.len() > PARTS_MAX {
        return Err(too_many("parts of a content", PARTS_MAX));
    }
    let parts = parts.into_iter().enumerate();
    parts
        .map(|(index, part)| read_content_part(part, &content.path_of(&format!("parts[{index}]")), speaker, ids))
        .collect()
}

/// Writer of the messages of a request.
pub(super) struct ContentsWriter<'a> {
    options: &'a WriteOptions,
    dropped: &'a mut UnsentNames,
    /// Names of called functions by the ids of their calls: results go back by name.
    names: HashMap<&'a str, &'a str>,
}

impl<'a> ContentsWriter<'a> {
    pub fn new(messages: &'a [Message], options: &'a WriteOptions, dropped: &'a mut UnsentNames) -> ContentsWriter<'a> {
        let parts = messages.iter().flat_map(|message| &message.parts);
        let names = parts.filter_map(|part| match part {
            ContentPart::ToolCall(call) => Some((call.id.as_str(), call.name.as_str())),
            _ => None,
        });
        ContentsWriter { options, names: names.collect(), dropped }
    }

    /// Writes the instructions as one content. None without any.
    pub fn system(&mut self, messages: &[Message]) -> Result<Option<Map<String, Value>>, DialectError> {
        let mut content = Map::new();
        let (mut parts, mut role) = (Vec::new(), None);
        for (index, message) in messages.iter().enumerate().filter(|(_, message)| is_system(message)) {
            parts.extend(self.parts(message, index)?);
            role = role.or_else(|| message.extra.field_spelling(Dialect::Gemini, SYSTEM_ROLE));
            put_back(&mut content, &message.extra);
            self.about(message);
        }
        if let Some(role) = role {
            content.insert("role".to_owned(), role.clone());
        }
        if parts.is_empty() && content.is_empty() {
            return Ok(None);
        }
        content.insert("parts".to_owned(), Value::Array(parts));
        Ok(Some(content))
    }

    /// Writes the other messages. Results of neighbouring messages become one content, as their calls are.
    pub fn contents(&mut self, messages: &[Message]) -> Result<Vec<Value>, DialectError> {
        let mut contents: Vec<(Role, Map<String, Value>)> = Vec::new();
        for (index, message) in messages.iter().enumerate().filter(|(_, message)| !is_system(message)) {
            let mut parts = self.parts(message, index)?;
            self.about(message);
            let mut extra = Map::new();
            put_back(&mut extra, &message.extra);
            if parts.is_empty() && extra.is_empty() {
                continue;
            }
            if message.role == Role::Tool
                && extra.is_empty()
                && let Some((Role::Tool, content)) = contents.last_mut()
                && let Some(Value::Array(before)) = content.get_mut("parts")
            {
                before.append(&mut parts);
                continue;
            }
            let role = if message.role == Role::Assistant { "model" } else { "user" };
            let mut content = Map::from_iter([("role".to_owned(), json!(role))]);
            content.insert("parts".to_owned(), Value::Array(parts));
            content.extend(extra);
            contents.push((message.role, content));
        }
        Ok(contents.into_iter().map(|(_, content)| Value::Object(content)).collect())
    }

    fn about(&mut self, message: &Message) {
        self.dropped.add_if(message.name.is_some() && message.role != Role::Tool, "name");
        self.dropped.add_extra(&message.extra);
    }

    fn parts(&mut self, message: &Message, index: usize) -> Result<Vec<Value>, DialectError> {
        let mut parts = Vec::with_capacity(message.parts.len());
        let mut has_calls = false;
        for (at, part) in message.parts.iter().enumerate() {
            let path = format!("messages[{index}].parts[{at}]");
            let written = match part {
                ContentPart::Text(text) if is_empty(text) && message.parts.len() > 1 => None,
                ContentPart::Text(text) | ContentPart::Refusal(text) => Some(self.text(text)),
                ContentPart::Reasoning(reasoning) => self.reasoning(reasoning),
                ContentPart::ToolCall(call) => {
                    let is_first = !std::mem::replace(&mut has_calls, true);
                    Some(self.call(call, is_first, &path)?)
                }
                ContentPart::ToolResult(result) => Some(self.result(result, message, &path)?),
                ContentPart::Foreign { from: Dialect::Gemini, part } => {
                    parts.push(part.clone());
                    None
                }
                ContentPart::Foreign { from, .. } => {
                    return Err(DialectError::unsupported(path, format!("a part that only {from:?} has")));
                }
                media => Some(self.media(media, &path)?),
            };
            parts.extend(written.map(Value::Object));
        }
        Ok(parts)
    }

    fn text(&mut self, text: &TextPart) -> Map<String, Value> {
        self.dropped.add_if(text.cache.is_some(), "cache_control");
        self.dropped.add_extra(&text.extra);
        text_part(text)
    }

    /// Writes reasoning of this dialect. That of others is left out: its signatures are refused, and no answer needs it.
    fn reasoning(&mut self, reasoning: &ReasoningPart) -> Option<Map<String, Value>> {
        if reasoning.extra.field_spelling(Dialect::Gemini, "thought").is_none() {
            self.dropped.add("reasoning");
            return None;
        }
        Some(thought_part(reasoning))
    }

    /// Writes a call. The first of parallel calls has the signature of all of them.
    fn call(&mut self, call: &ToolCallPart, is_first: bool, path: &str) -> Result<Map<String, Value>, DialectError> {
        self.dropped.add_if(call.cache.is_some(), "cache_control");
        self.dropped.add_extra(&call.extra);
        let part = call_part(call, self.options.omits_call_ids);
        let mut part =
            part.ok_or_else(|| DialectError::malformed(format!("{path}.arguments"), "the JSON text of an object"))?;
        if self.options.needs_call_signatures && is_first && !part.contains_key("thoughtSignature") {
            part.insert("thoughtSignature".to_owned(), json!(SIGNATURE_PLACEHOLDER));
        }
        Ok(part)
    }

    fn result(
        &mut self,
        result: &ToolResultPart,
        message: &Message,
        path: &str,
    ) -> Result<Map<String, Value>, DialectError> {
        self.dropped.add_if(result.cache.is_some(), "cache_control");
        self.dropped.add_extra(&result.extra);
        let own = result.name.as_deref().filter(|name| !name.is_empty());
        let name = own.or_else(|| self.names.get(result.call_id.as_str()).copied()).or(message.name.as_deref());
        let name = name.ok_or_else(|| {
            DialectError::malformed(format!("{path}.call_id"), "the id of a call in an earlier message")
        })?;
        let (mut texts, mut media) = (Vec::new(), Vec::new());
        for (at, part) in result.content.iter().enumerate() {
            let path = format!("{path}.content[{at}]");
            match part {
                ContentPart::Text(text) | ContentPart::Refusal(text) => {
                    self.dropped.add_if(text.cache.is_some(), "cache_control");
                    self.dropped.add_extra(&text.extra);
                    texts.push(text.text.as_str());
                }
                ContentPart::Foreign { from: Dialect::Gemini, part } => media.push(part.clone()),
                part @ (ContentPart::Image { .. } | ContentPart::Audio { .. } | ContentPart::File(_)) => {
                    media.push(Value::Object(self.media(part, &path)?));
                }
                _ => return Err(DialectError::unsupported(path, "this part of a result")),
            }
        }
        let mut function = Map::new();
        if !self.options.omits_call_ids && !result.call_id.is_empty() && !is_made_up(&result.call_id) {
            function.insert("id".to_owned(), json!(result.call_id));
        }
        function.insert("name".to_owned(), json!(name));
        let response = result_response(&texts.join(TEXT_SEPARATOR), result.is_error);
        function.insert("response".to_owned(), Value::Object(response));
        if !media.is_empty() {
            function.insert("parts".to_owned(), Value::Array(media));
        }
        let mut part = Map::from_iter([("functionResponse".to_owned(), Value::Object(function))]);
        put_back(&mut part, &result.extra);
        Ok(part)
    }

    fn media(&mut self, media: &ContentPart, path: &str) -> Result<Map<String, Value>, DialectError> {
        let (source, name, cache, extra) = match media {
            ContentPart::Image { source, detail, cache, extra } => {
                self.dropped.add_if(detail.is_some(), "detail");
                (source, None, cache, extra)
            }
            ContentPart::Audio { source, cache, extra } => (source, None, cache, extra),
            ContentPart::File(file) => (&file.source, file.name.as_deref(), &file.cache, &file.extra),
            _ => return Err(DialectError::unsupported(path, "this part")),
        };
        self.dropped.add_if(cache.is_some(), "cache_control");
        self.dropped.add_extra(extra);
        match media {
            ContentPart::File(_) => write_media_or_text(source, name, extra, path),
            _ => write_media(source, name, extra, path),
        }
    }
}

fn is_system(message: &Message) -> bool {
    matches!(message.role, Role::System | Role::Developer)
}

fn is_empty(text: &TextPart) -> bool {
    text.text.is_empty() && text.signature.is_none() && text.extra.for_dialect(Dialect::Gemini).is_none()
}
