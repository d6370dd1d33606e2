//! Items of an answer.

use std::ops::Range;

use serde_json::{Value, json};

use super::super::fields::{Fields, put, put_missing, put_rest, typed};
use super::super::items::{
    MESSAGE_MARK, begins_item, message_mark, put_signature, wrapped_content, write_call, write_reasoning,
};
use assay_node_dialects::Dialect;
use assay_node_dialects::form::{ContentPart, MediaSource, TextPart};

/// Item of an answer: a message of some parts, or one other part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutputItem {
    /// Parts of the answer that are in the item.
    pub parts: Range<usize>,
    pub output_index: usize,
}

/// Items that the parts of an answer become. Parts without an equal in this dialect are left out.
pub(crate) fn output_items(parts: &[ContentPart]) -> Vec<OutputItem> {
    let mut items: Vec<OutputItem> = Vec::new();
    for (at, part) in parts.iter().enumerate().filter(|(_, part)| is_expressible(part)) {
        let before = at.checked_sub(1).map(|before| &parts[before]);
        match items.last_mut() {
            Some(last) if !begins_item(before, part) => last.parts.end = at + 1,
            _ => items.push(OutputItem { parts: at..at + 1, output_index: items.len() }),
        }
    }
    items
}

/// Returns whether a part of an answer has an equal in this dialect.
pub(crate) fn is_expressible(part: &ContentPart) -> bool {
    match part {
        ContentPart::Text(_) | ContentPart::Refusal(_) | ContentPart::ToolCall(_) | ContentPart::Reasoning(_) => true,
        ContentPart::Image { source, .. } => matches!(source, MediaSource::Base64 { .. }),
        ContentPart::Foreign { from, .. } => *from == Dialect::Responses,
        ContentPart::Audio { .. } | ContentPart::File(_) | ContentPart::ToolResult(_) => false,
    }
}

impl OutputItem {
    /// Writes the whole item. `logprobs` are those of the answer.
    pub fn write(&self, response_id: &str, parts: &[ContentPart], logprobs: &[Value], is_cut: bool) -> Fields {
        let status = if is_cut { "incomplete" } else { "completed" };
        let own = &parts[self.parts.clone()];
        let mut fields = match &own[0] {
            ContentPart::ToolCall(call) => {
                let mut fields = write_call(call, &call_id(&call.id, response_id, self.output_index));
                put_missing(&mut fields, "status", || status.into());
                put_signature(&mut fields, call.signature.as_ref());
                fields
            }
            ContentPart::Reasoning(reasoning) => write_reasoning(reasoning),
            ContentPart::Image { source: MediaSource::Base64 { media_type, data }, .. } => {
                let mut fields = typed("image_generation_call");
                put(&mut fields, "status", "completed");
                put(&mut fields, "result", data.as_str());
                put(&mut fields, "output_format", media_type.trim_start_matches("image/"));
                fields
            }
            ContentPart::Foreign { part: Value::Object(item), .. } if wrapped_content(&own[0]).is_none() => {
                return item.clone();
            }
            first => {
                let mut fields = typed("message");
                put(&mut fields, "role", "assistant");
                let written = self.parts.clone().map(|at| write_content(parts, at, logprobs));
                put(&mut fields, "content", written.collect::<Vec<_>>());
                for (name, value) in message_mark(first).into_iter().flatten() {
                    put_missing(&mut fields, name, || value.clone());
                }
                put_missing(&mut fields, "status", || status.into());
                fields
            }
        };
        self.put_id(&mut fields, response_id);
        fields
    }

    /// Writes the item as it is announced: without its content.
    pub fn write_begun(&self, response_id: &str, parts: &[ContentPart]) -> Fields {
        let mut fields = self.write(response_id, parts, &[], false);
        let part = &parts[self.parts.start];
        match part {
            ContentPart::Foreign { .. } if wrapped_content(part).is_none() => return fields,
            ContentPart::ToolCall(_) => put(&mut fields, "arguments", ""),
            ContentPart::Reasoning(_) => {
                put(&mut fields, "summary", json!([]));
                for name in ["content", "encrypted_content", "signature"] {
                    fields.shift_remove(name);
                }
                return fields;
            }
            ContentPart::Image { .. } => put(&mut fields, "result", Value::Null),
            _ => put(&mut fields, "content", json!([])),
        }
        put(&mut fields, "status", "in_progress");
        fields
    }

    /// Puts an id where the item has none: the same for a stream and for the whole response.
    fn put_id(&self, fields: &mut Fields, response_id: &str) {
        let prefix = match fields.get("type").and_then(Value::as_str) {
            Some("function_call") => "fc",
            Some("reasoning") => "rs",
            Some("image_generation_call") => "ig",
            _ => "msg",
        };
        put_missing(fields, "id", || made_up_id(prefix, response_id, self.output_index).into());
    }
}

fn made_up_id(prefix: &str, response_id: &str, output_index: usize) -> String {
    format!("{prefix}_{}_{output_index}", response_id.trim_start_matches("resp_"))
}

/// Id of a call; a made-up one for a dialect without ids.
pub(crate) fn call_id(id: &str, response_id: &str, output_index: usize) -> String {
    match id.is_empty() {
        true => made_up_id("call", response_id, output_index),
        false => id.to_owned(),
    }
}

/// Writes a part of the content of a message.
pub(crate) fn write_content(parts: &[ContentPart], at: usize, logprobs: &[Value]) -> Value {
    let part = &parts[at];
    if let Some(content) = wrapped_content(part) {
        return content.clone();
    }
    let mut fields = match part {
        ContentPart::Refusal(TextPart { text, extra, .. }) => {
            let mut fields = typed("refusal");
            put(&mut fields, "refusal", text.as_str());
            put_rest(&mut fields, extra);
            fields
        }
        ContentPart::Text(TextPart { text, extra, signature, .. }) => {
            let mut fields = typed("output_text");
            put(&mut fields, "text", text.as_str());
            put_rest(&mut fields, extra);
            put_missing(&mut fields, "annotations", || json!([]));
            put_missing(&mut fields, "logprobs", || logprobs_of(parts, at, logprobs).into());
            put_signature(&mut fields, signature.as_ref());
            fields
        }
        _ => Fields::new(),
    };
    fields.shift_remove(MESSAGE_MARK);
    Value::Object(fields)
}

/// Log probabilities of a text among those of the answer, whose tokens are the texts one after another. A text that does
/// not begin with the next token has none, and the last text has all that are left.
pub(crate) fn logprobs_of<'a>(parts: &[ContentPart], at: usize, logprobs: &'a [Value]) -> &'a [Value] {
    if logprobs.is_empty() {
        return logprobs;
    }
    let texts = parts.iter().enumerate().filter_map(|(at, part)| match part {
        ContentPart::Text(text) => Some((at, text.text.as_str())),
        _ => None,
    });
    let texts: Vec<_> = texts.collect();
    let mut begin = 0;
    for (index, (text_at, text)) in texts.iter().enumerate() {
        let mut end = begin;
        let mut bytes = 0;
        let is_last = index + 1 == texts.len();
        let has_some = is_last || logprobs.get(begin).is_some_and(|token| begins_with(text, token));
        while has_some && end < logprobs.len() && (bytes < text.len() || is_last) {
            bytes += token_bytes(&logprobs[end]);
            end += 1;
        }
        if *text_at == at {
            return &logprobs[begin..end];
        }
        begin = end;
    }
    &[]
}

/// Returns whether a text begins with a token, as far as the token names its text.
fn begins_with(text: &str, token: &Value) -> bool {
    match (token.get("bytes"), token.get("token")) {
        (Some(Value::Array(bytes)), _) => {
            let text = text.as_bytes().iter().map(|byte| Some(u64::from(*byte)));
            text.take(bytes.len()).eq(bytes.iter().map(Value::as_u64))
        }
        (_, Some(Value::String(token))) => text.starts_with(token.as_str()),
        _ => true,
    }
}

fn token_bytes(token: &Value) -> usize {
    match (token.get("bytes"), token.get("token")) {
        (Some(Value::Array(bytes)), _) => bytes.len(),
        (_, Some(Value::String(token))) => token.len(),
        _ => 0,
    }
}
