//! Parts of answers to content blocks, which never fails: a client gets what the model said.

use serde_json::{Map, Value};

use super::block_reader::tool_use;
use super::block_writer::{allowed_id, reasoning_block, text_block, with_source};
use super::fields::{put, put_back, put_cache};
use assay_node_dialects::Dialect;
use assay_node_dialects::form::{ContentPart, MediaSource, ReasoningPart};

/// Returns the blocks of a part; readable and encrypted reasoning are two. Media have the shape that requests have.
pub(super) fn answer_blocks(part: &ContentPart, answer_id: &str, index: usize) -> Vec<Value> {
    match part {
        ContentPart::Text(part) | ContentPart::Refusal(part) => vec![Value::Object(text_block(part))],
        ContentPart::Image { source, cache, extra, .. } => {
            vec![media("image", source, |block| {
                put_cache(block, cache);
                put_back(block, extra);
            })]
        }
        ContentPart::Audio { source, cache, extra } => {
            vec![media("document", source, |block| {
                put_cache(block, cache);
                put_back(block, extra);
            })]
        }
        ContentPart::File(file) => vec![media("document", &file.source, |block| {
            put(block, "title", file.name.clone());
            put_cache(block, &file.cache);
            put_back(block, &file.extra);
        })],
        ContentPart::ToolCall(call) => {
            let mut block = tool_use(call_id(&call.id, answer_id, index), &call.name, &call.arguments);
            put_cache(&mut block, &call.cache);
            put_back(&mut block, &call.extra);
            vec![Value::Object(block)]
        }
        // answers have no results of tools, and clients cannot read parts of other dialects
        ContentPart::ToolResult(_) => Vec::new(),
        ContentPart::Reasoning(part) => reasoning(part),
        ContentPart::Foreign { from: Dialect::Anthropic, part } => vec![part.clone()],
        ContentPart::Foreign { .. } => Vec::new(),
    }
}

/// Id of a call, made of the answer's if the model server gave none: ids must be unique in a conversation.
pub(super) fn call_id(id: &str, answer_id: &str, index: usize) -> String {
    if id.is_empty() { format!("toolu_{}_{index}", allowed_id(answer_id)) } else { id.to_owned() }
}

fn media(kind: &str, source: &MediaSource, finish: impl FnOnce(&mut Map<String, Value>)) -> Value {
    let mut block = with_source(kind, source);
    finish(&mut block);
    Value::Object(block)
}

fn reasoning(part: &ReasoningPart) -> Vec<Value> {
    match &part.encrypted {
        Some(encrypted) if !part.text.is_empty() => {
            let readable = ReasoningPart { encrypted: None, ..part.clone() };
            let hidden = ReasoningPart { encrypted: Some(encrypted.clone()), ..ReasoningPart::default() };
            [readable, hidden].iter().map(|part| Value::Object(reasoning_block(part))).collect()
        }
        _ => vec![Value::Object(reasoning_block(part))],
    }
}
