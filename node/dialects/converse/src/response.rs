//! Whole answers.

use serde_json::Value;

use super::BLOCKS_MAX;
use super::media::{audio_type, image_type};
use super::usage::read_usage;
use assay_node_dialects::DialectError;
use assay_node_dialects::form::{
    ContentPart, Extra, FinishReason, MediaSource, ModelChoice, ModelResponse, ReasoningPart, TextPart, ToolCallPart,
};

/// What the body of an answer does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConverseAnswer {
    /// Id of the request, from the header `x-amzn-requestid`.
    pub id: String,
    pub model: String,
}

/// Reads an answer without an id and a model.
pub fn read_response(body: &Value) -> Result<ModelResponse, DialectError> {
    read_response_of(&ConverseAnswer::default(), body)
}

/// Reads an answer.
pub fn read_response_of(answer: &ConverseAnswer, body: &Value) -> Result<ModelResponse, DialectError> {
    let path = "output.message.content";
    let content = body.pointer("/output/message/content").and_then(Value::as_array);
    let content = content.ok_or_else(|| DialectError::malformed(path, "a list"))?;
    if content.len() > BLOCKS_MAX {
        return Err(DialectError::Stream(format!("the answer has more than {BLOCKS_MAX} blocks")));
    }
    let mut parts = Vec::with_capacity(content.len());
    for (index, block) in content.iter().enumerate() {
        parts.extend(read_block(block, &format!("{path}[{index}]"))?);
    }
    let has_calls = parts.iter().any(|part| matches!(part, ContentPart::ToolCall(_)));
    let reason = body.get("stopReason").and_then(Value::as_str);
    let choice = ModelChoice {
        index: 0,
        parts,
        finish: reason.map(|reason| read_stop_reason(reason, has_calls)),
        logprobs: None,
        extra: Extra::default(),
    };
    Ok(ModelResponse {
        id: answer.id.clone(),
        model: answer.model.clone(),
        created: None,
        choices: vec![choice],
        usage: body.get("usage").filter(|usage| usage.is_object()).map(read_usage),
        extra: Extra::default(),
    })
}

/// Reads a block. None is one that the form does not have.
fn read_block(block: &Value, path: &str) -> Result<Option<ContentPart>, DialectError> {
    let Some((name, value)) = block.as_object().and_then(|fields| fields.iter().next()) else {
        return Err(DialectError::malformed(path, "an object with the kind of the block as its only member"));
    };
    let part = match name.as_str() {
        "text" => {
            let text = value.as_str().ok_or_else(|| DialectError::malformed(format!("{path}.text"), "a string"))?;
            ContentPart::Text(TextPart { text: text.to_owned(), ..TextPart::default() })
        }
        "toolUse" if value.get("type").is_none() => {
            ContentPart::ToolCall(read_call(value, &format!("{path}.toolUse"))?)
        }
        "reasoningContent" => ContentPart::Reasoning(read_reasoning(value)),
        "citationsContent" => {
            let pieces = value["content"].as_array().map(Vec::as_slice).unwrap_or_default();
            let text = pieces.iter().filter_map(|piece| piece["text"].as_str()).collect();
            ContentPart::Text(TextPart { text, ..TextPart::default() })
        }
        "image" => match media(value, image_type) {
            Some(source) => ContentPart::Image { source, detail: None, cache: None, extra: Extra::default() },
            None => return Ok(None),
        },
        "audio" => match media(value, audio_type) {
            Some(source) => ContentPart::Audio { source, cache: None, extra: Extra::default() },
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok(Some(part))
}

fn media(value: &Value, media_type: fn(&str) -> String) -> Option<MediaSource> {
    let (format, data) = (value["format"].as_str()?, value["source"]["bytes"].as_str()?);
    Some(MediaSource::Base64 { media_type: media_type(format), data: data.to_owned() })
}

fn read_call(value: &Value, path: &str) -> Result<ToolCallPart, DialectError> {
    let required = |name: &str| {
        let text = value.get(name).and_then(Value::as_str).map(str::to_owned);
        text.ok_or_else(|| DialectError::malformed(format!("{path}.{name}"), "a string"))
    };
    let input = value.get("input").filter(|input| !input.is_null());
    Ok(ToolCallPart {
        id: required("toolUseId")?,
        name: required("name")?,
        arguments: input.map_or_else(|| "{}".to_owned(), Value::to_string),
        signature: None,
        cache: None,
        extra: Extra::default(),
    })
}

fn read_reasoning(value: &Value) -> ReasoningPart {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let readable = &value["reasoningText"];
    ReasoningPart {
        text: text(&readable["text"]).unwrap_or_default(),
        signature: text(&readable["signature"]),
        encrypted: text(&value["redactedContent"]),
        extra: Extra::default(),
    }
}

/// Some models end their turn when they call tools. Clients look at the reason to find calls.
pub(super) fn read_stop_reason(reason: &str, has_calls: bool) -> FinishReason {
    match reason {
        "tool_use" => FinishReason::ToolCalls,
        "end_turn" if has_calls => FinishReason::ToolCalls,
        "end_turn" => FinishReason::Stop,
        "stop_sequence" => FinishReason::StopSequence(None),
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "content_filtered" | "guardrail_intervened" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}
