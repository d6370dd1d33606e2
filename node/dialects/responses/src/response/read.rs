//! Reading of whole responses.

use serde_json::{Value, json};

use super::super::error::of_fields;
use super::super::fields::{Fields, object, put, rest, take, take_list, take_text, text_of};
use super::super::items::{ResponsesItem, empty_message, is_message_part, mark_message, read_item};
use super::super::usage::read_usage;
use super::super::{OUTPUT_ITEMS_MAX, OUTPUT_PARTS_MAX};
use super::status::{finish_of, is_cut};
use assay_node_dialects::form::{ContentPart, ModelChoice, ModelError, ModelResponse};
use assay_node_dialects::{Dialect, DialectError};

/// Reads the body of a response. Ask [`failure`] first: the form has no place for the error of a failed one.
pub fn read_response(body: &Value) -> Result<ModelResponse, DialectError> {
    let mut fields = object(body.clone(), "the body")?;
    fields.shift_remove("object");
    let id = take_text(&mut fields, "", "id")?.unwrap_or_default();
    let model = take_text(&mut fields, "", "model")?.unwrap_or_default();
    let created = created_of(&mut fields);
    let usage = take(&mut fields, "usage").map(read_usage).transpose()?;
    let output = take_list(&mut fields, "", "output", OUTPUT_ITEMS_MAX)?.unwrap_or_default();
    for name in ["error", "incomplete_details"] {
        if let Some(value) = take(&mut fields, name) {
            put(&mut fields, name, value);
        }
    }
    let has_calls = output.iter().any(|item| item.get("type").is_some_and(|kind| kind == "function_call"));
    let finish = finish_of(&mut fields, has_calls);
    let (mut parts, mut logprobs) = (Vec::new(), Vec::new());
    let last = output.len().saturating_sub(1);
    for (at, mut item) in output.into_iter().enumerate() {
        let is_incomplete = at == last && is_cut(Some(&finish));
        tidy_item(&mut item, if is_incomplete { "incomplete" } else { "completed" }, &mut logprobs);
        parts.append(&mut read_output_item(item, &format!("output[{at}]"), parts.last())?);
        if parts.len() > OUTPUT_PARTS_MAX {
            let of = "parts of an answer";
            return Err(DialectError::TooMany { dialect: Dialect::Responses, of, max: OUTPUT_PARTS_MAX });
        }
    }
    let logprobs = (!logprobs.is_empty()).then(|| json!({"content": logprobs, "refusal": null}));
    let choice = ModelChoice { index: 0, parts, finish: Some(finish), logprobs, extra: Default::default() };
    Ok(ModelResponse { id, model, created, choices: vec![choice], usage, extra: rest(fields) })
}

/// Error of a response whose status is `failed`, which comes with the HTTP status 200.
pub fn failure(body: &Value) -> Option<ModelError> {
    let is_failed = body.get("status").is_some_and(|status| status == "failed");
    let error = body.get("error").and_then(Value::as_object).cloned();
    is_failed.then(|| of_fields(error.unwrap_or_default(), None))
}

/// Takes the time of creation, which some servers send with a fraction.
pub(crate) fn created_of(fields: &mut Fields) -> Option<u64> {
    let created = take(fields, "created_at")?;
    created.as_u64().or_else(|| created.as_f64().filter(|seconds| *seconds >= 0.0).map(|seconds| seconds as u64))
}

/// Takes what a writer puts back by itself out of an item: the usual status, empty annotations, and log probabilities.
pub(crate) fn tidy_item(item: &mut Value, status: &str, logprobs: &mut Vec<Value>) {
    let Some(fields) = item.as_object_mut() else { return };
    match text_of(fields, "type") {
        // some servers leave the type of messages out
        Some("message") | None if fields.get("content").is_some_and(|content| content != &json!([])) => {}
        Some("function_call") => {}
        _ => return,
    }
    if text_of(fields, "status") == Some(status) {
        fields.shift_remove("status");
    }
    for part in fields.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(part) = part.as_object_mut() {
            logprobs.append(&mut take_logprobs(part));
        }
    }
}

/// Takes the log probabilities of a text, and annotations if there are none.
pub(crate) fn take_logprobs(part: &mut Fields) -> Vec<Value> {
    if text_of(part, "type") != Some("output_text") {
        return Vec::new();
    }
    if part.get("annotations").is_some_and(|list| list.is_null() || list.as_array().is_some_and(Vec::is_empty)) {
        part.shift_remove("annotations");
    }
    match part.shift_remove("logprobs") {
        Some(Value::Array(list)) => list,
        Some(other) if !other.is_null() => {
            put(part, "logprobs", other);
            Vec::new()
        }
        _ => Vec::new(),
    }
}

/// Parts of an item of the answer. `before` is the part before them.
pub(crate) fn read_output_item(
    item: Value,
    path: &str,
    before: Option<&ContentPart>,
) -> Result<Vec<ContentPart>, DialectError> {
    let foreign = |part| vec![ContentPart::Foreign { from: Dialect::Responses, part }];
    // of a tool that the provider runs: it is no result of the client
    if item.get("type").is_some_and(|kind| kind == "function_call_output") {
        return Ok(foreign(item));
    }
    Ok(match read_item(item, path)? {
        ResponsesItem::Message { mut parts, rest, .. } => match parts.first_mut() {
            None => foreign(empty_message(rest, "assistant")),
            Some(first) => {
                if !rest.is_empty() || before.is_some_and(is_message_part) {
                    mark_message(first, rest);
                }
                parts
            }
        },
        ResponsesItem::Made(part) => vec![part],
        ResponsesItem::Result(result) => vec![ContentPart::ToolResult(result)],
        ResponsesItem::Foreign { item, .. } => foreign(item),
    })
}
