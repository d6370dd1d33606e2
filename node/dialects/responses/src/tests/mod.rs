//! Tests of the dialect.

mod accumulator;
mod errors;
mod normal;
mod properties;
mod requests;
mod responses;
mod streams;

use serde_json::Value;

use super::stream_writer::{add_logprobs, apply_delta};
use super::*;
use assay_node_dialects::SseEvent;
use assay_node_dialects::form::{
    ContentPart, ModelChoice, ModelResponse, PartStart, ReasoningPart, StreamEvent, TextPart, ToolCallPart,
};

/// Answer that the events of a stream add up to.
fn fold(events: &[StreamEvent]) -> ModelResponse {
    let mut response = ModelResponse::default();
    let mut choice = ModelChoice { index: 0, parts: vec![], finish: None, logprobs: None, extra: Default::default() };
    for event in events.iter().cloned() {
        match event {
            StreamEvent::Start { id, model, created, extra } => {
                response = ModelResponse { id, model, created, extra, ..response };
            }
            StreamEvent::PartStart { part, start, .. } => {
                assert_eq!(part, choice.parts.len(), "parts are numbered in the order of their starts");
                choice.parts.push(match start {
                    PartStart::Text => ContentPart::Text(TextPart::default()),
                    PartStart::Refusal => ContentPart::Refusal(TextPart::default()),
                    PartStart::Reasoning => ContentPart::Reasoning(ReasoningPart::default()),
                    PartStart::ToolCall { id, name } => ContentPart::ToolCall(call(&id, &name, "")),
                    PartStart::Whole(part) => *part,
                });
            }
            StreamEvent::PartDelta { part, delta, .. } => apply_delta(&mut choice.parts[part], &delta),
            StreamEvent::Logprobs { logprobs, .. } => add_logprobs(&mut choice.logprobs, &logprobs),
            StreamEvent::Finish { reason, .. } => choice.finish = Some(reason),
            StreamEvent::Usage(usage) => response.usage = Some(usage),
            StreamEvent::PartEnd { .. } | StreamEvent::Error(_) | StreamEvent::End => {}
        }
    }
    response.choices.push(choice);
    response
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCallPart {
    ToolCallPart {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
        signature: None,
        cache: None,
        extra: Default::default(),
    }
}

fn text(text: &str) -> ContentPart {
    ContentPart::Text(TextPart { text: text.into(), ..TextPart::default() })
}

fn read_stream(events: &[SseEvent]) -> Vec<StreamEvent> {
    let mut reader = ResponsesStreamReader::default();
    let mut read: Vec<_> = events.iter().flat_map(|event| reader.push(event).expect("reads")).collect();
    read.extend(reader.finish());
    read
}

fn write_stream(events: &[StreamEvent]) -> Vec<SseEvent> {
    let mut writer = ResponsesStreamWriter::new();
    events.iter().flat_map(|event| writer.write(event)).collect()
}

fn data(event: &SseEvent) -> Value {
    serde_json::from_str(&event.data).expect("is JSON")
}
