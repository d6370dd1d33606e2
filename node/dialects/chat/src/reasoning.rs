//! Reasoning in chat messages, which servers spell in four ways (G-73).
//!
//! | spelling | server |
//! |---|---|
//! | `reasoning: [{id, content}]` | the gateway's own |
//! | `reasoning: "text"` | vLLM, OpenRouter, Ollama |
//! | `reasoning_content: "text"` | DeepSeek, llama-server, older vLLM |
//! | part `{type: "thinking", thinking: [{type: "text", text}]}` of the content | Mistral |

use serde_json::{Map, Value, json};

use super::fields::{ChatFields, put_extra, put_some};
use assay_node_dialects::DialectError;
use assay_node_dialects::form::{ContentPart, ReasoningPart};

const TEXT: &str = "reasoning";
const OLD_TEXT: &str = "reasoning_content";
const BOTH_TEXTS: &str = "reasoning and reasoning_content";
const THINKING: &str = "thinking";
/// Member of the gateway's own spelling for reasoning without a readable text.
pub(super) const ENCRYPTED: &str = "encrypted";

/// Takes the reasoning of a message. Values of other types stay.
pub(super) fn take(fields: &mut ChatFields) -> Result<Vec<ContentPart>, DialectError> {
    if fields.get(TEXT).is_some_and(Value::is_array) {
        let path = fields.path_of(TEXT);
        let entries = fields.list(TEXT)?.unwrap_or_default();
        // clients send back what `put_reasoning_text` added
        if fields.get(OLD_TEXT).is_some_and(|old| old.as_str() == Some(text_of(&entries).as_str())) {
            fields.take(OLD_TEXT);
        }
        let read = |(at, entry)| read_entry(entry, format!("{path}[{at}]"));
        return entries.into_iter().enumerate().map(read).collect();
    }
    let texts = [(TEXT, fields.take_text(TEXT)), (OLD_TEXT, fields.take_text(OLD_TEXT))];
    let part = |text, spelling| {
        let extra = assay_node_dialects::form::Extra::default().spelled(spelling);
        ContentPart::Reasoning(ReasoningPart { text, extra, ..ReasoningPart::default() })
    };
    match texts {
        [(_, Some(new)), (_, Some(old))] if new == old => {
            Ok(if new.is_empty() { Vec::new() } else { vec![part(new, BOTH_TEXTS)] })
        }
        texts => {
            let texts = texts.into_iter().filter_map(|(spelling, text)| Some((text?, spelling)));
            Ok(texts.filter(|(text, _)| !text.is_empty()).map(|(text, spelling)| part(text, spelling)).collect())
        }
    }
}

fn read_entry(value: Value, path: String) -> Result<ContentPart, DialectError> {
    if let Value::String(text) = value {
        return Ok(ContentPart::Reasoning(ReasoningPart { text, ..ReasoningPart::default() }));
    }
    let mut fields = ChatFields::of(path, value)?;
    let text = fields.text("content")?.unwrap_or_default();
    let (signature, encrypted) = (fields.text("id")?, fields.text(ENCRYPTED)?);
    Ok(ContentPart::Reasoning(ReasoningPart { text, signature, encrypted, extra: fields.into_extra() }))
}

fn write_entry(part: &ReasoningPart) -> Value {
    let mut map = Map::new();
    put_some(&mut map, "id", part.signature.clone());
    map.insert("content".to_owned(), Value::String(part.text.clone()));
    put_some(&mut map, ENCRYPTED, part.encrypted.clone());
    put_extra(&mut map, &part.extra);
    Value::Object(map)
}

/// Puts reasoning into a message in the spelling it had, or else in the gateway's own.
pub(super) fn put<'a>(map: &mut Map<String, Value>, parts: impl Iterator<Item = &'a ReasoningPart>) {
    let mut entries = Vec::new();
    let (mut new, mut old) = (String::new(), String::new());
    for part in parts {
        match part.extra.spelling() {
            Some(TEXT) => new.push_str(&part.text),
            Some(OLD_TEXT) => old.push_str(&part.text),
            Some(BOTH_TEXTS) => {
                new.push_str(&part.text);
                old.push_str(&part.text);
            }
            _ => entries.push(write_entry(part)),
        }
    }
    if !entries.is_empty() {
        // an object has only one member of the name
        if old.is_empty() {
            old = new;
        }
        map.insert(TEXT.to_owned(), Value::Array(entries));
    } else if !new.is_empty() {
        map.insert(TEXT.to_owned(), Value::String(new));
    }
    if !old.is_empty() {
        map.insert(OLD_TEXT.to_owned(), Value::String(old));
    }
}

/// Adds the text of reasoning to an answer whose messages have the gateway's own spelling only. Many clients read the
/// text, and LiteLLM refuses an answer with a list alone.
pub fn put_reasoning_text(answer: &mut Value) {
    for choice in answer["choices"].as_array_mut().into_iter().flatten() {
        let Some(message) = choice["message"].as_object_mut() else { continue };
        if let Some(Value::Array(entries)) = message.get(TEXT) {
            let text = text_of(entries);
            if !text.is_empty() {
                message.entry(OLD_TEXT).or_insert(Value::String(text));
            }
        }
    }
}

fn text_of(entries: &[Value]) -> String {
    entries.iter().filter_map(|entry| entry["content"].as_str()).collect()
}

/// Returns the change of a stream that adds to reasoning, as the gateway spells it and as a text.
pub(super) fn delta(text: &str) -> Map<String, Value> {
    let own = (TEXT.to_owned(), json!({ "content": text }));
    let old = (!text.is_empty()).then(|| (OLD_TEXT.to_owned(), json!(text)));
    Map::from_iter([own].into_iter().chain(old))
}

/// Returns whether a part of the content is reasoning of Mistral.
pub(super) fn is_thinking(fields: &ChatFields) -> bool {
    match fields.get(THINKING) {
        Some(Value::Array(pieces)) => pieces.iter().all(is_text_piece),
        Some(text) => text.is_string(),
        None => false,
    }
}

fn is_text_piece(piece: &Value) -> bool {
    piece["type"] == "text" && piece["text"].is_string() && piece.as_object().is_some_and(|piece| piece.len() == 2)
}

pub(super) fn read_thinking(mut fields: ChatFields) -> ContentPart {
    let text = match fields.take(THINKING) {
        Some(Value::Array(pieces)) => pieces.iter().filter_map(|piece| piece["text"].as_str()).collect(),
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let extra = fields.into_extra().spelled(THINKING);
    ContentPart::Reasoning(ReasoningPart { text, extra, ..ReasoningPart::default() })
}

pub(super) fn is_spelled_thinking(part: &ReasoningPart) -> bool {
    part.extra.spelling() == Some(THINKING)
}

pub(super) fn write_thinking(part: &ReasoningPart) -> Value {
    let mut map = Map::new();
    map.insert("type".to_owned(), Value::String(THINKING.to_owned()));
    map.insert(THINKING.to_owned(), json!([{ "type": "text", "text": part.text }]));
    put_extra(&mut map, &part.extra);
    Value::Object(map)
}
