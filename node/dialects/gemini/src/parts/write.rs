//! Writing of parts that requests and answers share.

use serde_json::{Map, Value, json};

use super::arguments_object;
use crate::call_ids::is_made_up;
use crate::fields::put_back;
use assay_node_dialects::form::{ReasoningPart, TextPart, ToolCallPart};

pub(crate) fn text_part(text: &TextPart) -> Map<String, Value> {
    let mut part = Map::from_iter([("text".to_owned(), json!(text.text))]);
    if let Some(signature) = &text.signature {
        part.insert("thoughtSignature".to_owned(), json!(signature));
    }
    put_back(&mut part, &text.extra);
    part
}

pub(crate) fn thought_part(reasoning: &ReasoningPart) -> Map<String, Value> {
    let mut part = Map::from_iter([("text".to_owned(), json!(reasoning.text)), ("thought".to_owned(), json!(true))]);
    if let Some(signature) = &reasoning.signature {
        part.insert("thoughtSignature".to_owned(), json!(signature));
    }
    put_back(&mut part, &reasoning.extra);
    part
}

/// Writes a call with its signature. None if its arguments are no object.
pub(crate) fn call_part(call: &ToolCallPart, omits_id: bool) -> Option<Map<String, Value>> {
    let arguments = arguments_object(&call.arguments)?;
    let mut function = Map::new();
    if !omits_id && !call.id.is_empty() && !is_made_up(&call.id) {
        function.insert("id".to_owned(), json!(call.id));
    }
    function.insert("name".to_owned(), json!(call.name));
    function.insert("args".to_owned(), Value::Object(arguments));
    let mut part = Map::from_iter([("functionCall".to_owned(), Value::Object(function))]);
    if let Some(signature) = &call.signature {
        part.insert("thoughtSignature".to_owned(), json!(signature));
    }
    put_back(&mut part, &call.extra);
    Some(part)
}
