//! Writing of whole responses.

use serde_json::{Value, json};

use super::super::error::code_of;
use super::super::fields::{Fields, put, put_missing, put_rest};
use super::super::usage::write_usage;
use super::output::output_items;
use super::status::{is_cut, put_status};
use assay_node_dialects::form::{ModelChoice, ModelError, ModelResponse};

/// Writes the body of a response. It has the first choice only.
pub fn write_response(response: &ModelResponse) -> Value {
    Value::Object(write_fields(response, response.choices.first()))
}

fn write_fields(response: &ModelResponse, choice: Option<&ModelChoice>) -> Fields {
    let mut body = Fields::new();
    put(&mut body, "id", response.id.as_str());
    put(&mut body, "object", "response");
    put(&mut body, "created_at", response.created.unwrap_or_default());
    put_status(&mut body, choice.and_then(|choice| choice.finish.as_ref()), &response.extra);
    put(&mut body, "model", response.model.as_str());
    put(&mut body, "output", choice.map(|choice| write_output(&response.id, choice)).unwrap_or_default());
    put(&mut body, "usage", response.usage.as_ref().map(write_usage));
    put_rest(&mut body, &response.extra);
    // what the schema requires, and only the request tells
    let required = json!({
        "instructions": null, "metadata": {}, "parallel_tool_calls": true, "temperature": null, "tool_choice": "auto",
        "tools": [], "top_p": null,
    });
    for (name, value) in required.as_object().into_iter().flatten() {
        put_missing(&mut body, name, || value.clone());
    }
    body
}

fn write_output(response_id: &str, choice: &ModelChoice) -> Vec<Value> {
    let logprobs = choice_logprobs(choice);
    let items = output_items(&choice.parts);
    let last = items.len().saturating_sub(1);
    let is_cut = is_cut(choice.finish.as_ref());
    let written = items
        .iter()
        .enumerate()
        .map(|(at, item)| Value::Object(item.write(response_id, &choice.parts, logprobs, is_cut && at == last)));
    written.collect()
}

/// Log probabilities of the tokens of an answer.
pub(crate) fn choice_logprobs(choice: &ModelChoice) -> &[Value] {
    let content = choice.logprobs.as_ref().and_then(|logprobs| logprobs.get("content"));
    content.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Writes a response that has only begun.
pub(crate) fn in_progress(response: &ModelResponse) -> Value {
    let mut body = write_fields(response, None);
    put(&mut body, "status", "in_progress");
    put(&mut body, "usage", Value::Null);
    Value::Object(body)
}

/// Writes a response that failed, with what came of it.
pub(crate) fn with_error(response: &ModelResponse, error: &ModelError) -> Value {
    let mut body = write_fields(response, response.choices.first());
    put(&mut body, "status", "failed");
    put(&mut body, "error", json!({"code": code_of(error), "message": error.message}));
    put(&mut body, "incomplete_details", Value::Null);
    Value::Object(body)
}
