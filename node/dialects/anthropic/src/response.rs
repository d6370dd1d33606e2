//! Whole answers.

use serde_json::{Map, Value};

use super::SCHEMA_TOOL;
use super::answer_blocks::answer_blocks;
use super::block_reader::read_content;
use super::fields::{extra, object, put_back, require_text, take, take_text, typed};
use super::request::AnthropicReadOptions;
use super::usage::{read_usage, unknown_usage, write_usage};
use assay_node_dialects::form::{ContentPart, Extra, FinishReason, ModelChoice, ModelResponse, TextPart};
use assay_node_dialects::{Dialect, DialectError};

/// Reason of an answer that filled the model's context, which other dialects do not tell from a reached bound.
const CONTEXT_IS_FULL: &str = "model_context_window_exceeded";

/// Reads an answer to a request that was not given the tool `json` for its output format.
pub fn read_response(body: &Value) -> Result<ModelResponse, DialectError> {
    read_response_with(body, AnthropicReadOptions::default())
}

/// Reads an answer as the written request demands.
pub fn read_response_with(body: &Value, options: AnthropicReadOptions) -> Result<ModelResponse, DialectError> {
    let mut fields = object(body, "body")?;
    if require_text(&mut fields, "", "type")? != "message" {
        return Err(DialectError::malformed("type", "message"));
    }
    fields.shift_remove("role");
    let id = take_text(&mut fields, "", "id")?.unwrap_or_default();
    let model = take_text(&mut fields, "", "model")?.unwrap_or_default();
    let content = take(&mut fields, "content").unwrap_or_default();
    let parts = read_content(&content, "content")?;
    let reason = take_text(&mut fields, "", "stop_reason")?;
    let sequence = take_text(&mut fields, "", "stop_sequence")?;
    let usage = take(&mut fields, "usage").map(|usage| read_usage(&usage, "usage")).transpose()?;
    let kept = reason.clone().filter(|reason| reason == CONTEXT_IS_FULL);
    let kept = kept.map(|reason| Map::from_iter([("stop_reason".to_owned(), Value::from(reason))]));
    let mut choice = ModelChoice {
        index: 0,
        parts,
        finish: reason.map(|reason| read_stop_reason(reason, sequence)),
        logprobs: None,
        extra: extra(kept.unwrap_or_default()),
    };
    if options.schema_tool {
        choice = schema_answer(choice);
    }
    let extra = Extra::marked(Dialect::Anthropic, fields);
    Ok(ModelResponse { id, model, created: None, choices: vec![choice], usage, extra })
}

/// Makes the input of the first call of `json` the only text. Without such a call the answer stays as it is.
fn schema_answer(mut choice: ModelChoice) -> ModelChoice {
    let is_json = |part: &ContentPart| matches!(part, ContentPart::ToolCall(call) if call.name == SCHEMA_TOOL);
    if !choice.parts.iter().any(is_json) {
        return choice;
    }
    let mut has_answer = false;
    let mut parts = Vec::with_capacity(choice.parts.len());
    for part in choice.parts {
        match part {
            ContentPart::ToolCall(call) if call.name == SCHEMA_TOOL => {
                if !has_answer {
                    parts.push(ContentPart::Text(TextPart { text: call.arguments, ..TextPart::default() }));
                }
                has_answer = true;
            }
            ContentPart::Text(_) => {}
            part => parts.push(part),
        }
    }
    let has_calls = parts.iter().any(|part| matches!(part, ContentPart::ToolCall(_)));
    if choice.finish == Some(FinishReason::ToolCalls) && !has_calls {
        choice.finish = Some(FinishReason::Stop);
    }
    choice.parts = parts;
    choice
}

/// Writes an answer. Clients of this API get the first choice.
pub fn write_response(response: &ModelResponse) -> Value {
    let choice = response.choices.first();
    let parts = choice.map(|choice| choice.parts.as_slice()).unwrap_or_default();
    let blocks = parts.iter().enumerate().flat_map(|(index, part)| answer_blocks(part, &response.id, index));
    let mut body = Map::new();
    body.insert("id".into(), response.id.clone().into());
    body.extend(typed("message"));
    body.insert("role".into(), "assistant".into());
    body.insert("model".into(), response.model.clone().into());
    body.insert("content".into(), blocks.collect::<Vec<_>>().into());
    let is_own = response.extra.dialect() == Some(Dialect::Anthropic);
    put_stop_reason(&mut body, choice.and_then(|choice| choice.finish.as_ref()), is_own);
    body.insert("usage".into(), response.usage.as_ref().map_or_else(unknown_usage, write_usage).into());
    if let Some(choice) = choice {
        put_back(&mut body, &choice.extra);
    }
    put_back(&mut body, &response.extra);
    Value::Object(body)
}

pub(super) fn read_stop_reason(reason: String, sequence: Option<String>) -> FinishReason {
    match reason.as_str() {
        "end_turn" => FinishReason::Stop,
        "stop_sequence" => FinishReason::StopSequence(sequence),
        "max_tokens" | CONTEXT_IS_FULL => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "refusal" => FinishReason::ContentFilter,
        "pause_turn" => FinishReason::Pause,
        _ => FinishReason::Other(reason),
    }
}

/// Writes why the answer ended. Unknown reasons are passed on if they are of this API, and else are a plain end.
pub(super) fn put_stop_reason(into: &mut Map<String, Value>, finish: Option<&FinishReason>, is_own: bool) {
    let reason = finish.map(|finish| match finish {
        FinishReason::Stop => "end_turn",
        FinishReason::StopSequence(_) => "stop_sequence",
        FinishReason::Length => "max_tokens",
        FinishReason::ToolCalls => "tool_use",
        FinishReason::ContentFilter => "refusal",
        FinishReason::Pause => "pause_turn",
        FinishReason::Other(reason) if is_own => reason,
        FinishReason::Other(_) => "end_turn",
    });
    let sequence = match finish {
        Some(FinishReason::StopSequence(sequence)) => sequence.clone(),
        _ => None,
    };
    into.insert("stop_reason".into(), reason.into());
    into.insert("stop_sequence".into(), sequence.into());
}
