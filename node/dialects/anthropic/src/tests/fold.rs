//! Whole answers made of stream events, to compare streams with answers.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use assay_node_dialects::form::{
    ContentPart, Extra, ModelChoice, ModelResponse, PartDelta, PartStart, ReasoningPart, StreamEvent, TextPart,
    ToolCallPart,
};
use assay_node_dialects::{Dialect, SseEvent};

/// Reads all events of a stream.
pub(super) fn read_all(events: &[SseEvent]) -> Vec<StreamEvent> {
    let mut reader = crate::AnthropicStreamReader::default();
    let mut read: Vec<StreamEvent> =
        events.iter().flat_map(|event| reader.push(event).expect("the event can be read")).collect();
    read.extend(reader.finish());
    read
}

/// Writes all events of a stream.
pub(super) fn write_all(events: &[StreamEvent]) -> Vec<SseEvent> {
    let mut writer = crate::AnthropicStreamWriter::new();
    events.iter().flat_map(|event| writer.write(event)).collect()
}

/// Whole answer that the events amount to.
pub(super) fn fold(events: &[StreamEvent]) -> ModelResponse {
    let mut response = ModelResponse::default();
    let mut parts: BTreeMap<usize, ContentPart> = BTreeMap::new();
    let mut finish = None;
    for event in events {
        match event {
            StreamEvent::Start { id, model, created, extra } => {
                (response.id, response.model) = (id.clone(), model.clone());
                (response.created, response.extra) = (*created, extra.clone());
            }
            StreamEvent::PartStart { part, start, .. } => {
                assert!(parts.insert(*part, started(start)).is_none(), "part {part} starts once");
            }
            StreamEvent::PartDelta { part, delta, .. } => {
                add(parts.get_mut(part).expect("a delta follows the start of its part"), delta);
            }
            StreamEvent::Finish { reason, .. } => finish = Some(reason.clone()),
            StreamEvent::Usage(usage) => response.usage = Some(usage.clone()),
            StreamEvent::Error(error) => panic!("the stream failed: {error}"),
            StreamEvent::PartEnd { .. } | StreamEvent::Logprobs { .. } | StreamEvent::End => {}
        }
    }
    let parts = parts.into_values().collect();
    response.choices = vec![ModelChoice { index: 0, parts, finish, logprobs: None, extra: Extra::default() }];
    response
}

fn started(start: &PartStart) -> ContentPart {
    match start {
        PartStart::Text => ContentPart::Text(TextPart::default()),
        PartStart::Refusal => ContentPart::Refusal(TextPart::default()),
        PartStart::Reasoning => ContentPart::Reasoning(ReasoningPart::default()),
        PartStart::ToolCall { id, name } => ContentPart::ToolCall(ToolCallPart {
            id: id.clone(),
            name: name.clone(),
            arguments: String::new(),
            signature: None,
            cache: None,
            extra: Extra::default(),
        }),
        PartStart::Whole(part) => (**part).clone(),
    }
}

fn add(part: &mut ContentPart, delta: &PartDelta) {
    match (part, delta) {
        (ContentPart::Text(part) | ContentPart::Refusal(part), PartDelta::Text(text)) => part.text.push_str(text),
        (ContentPart::Reasoning(part), PartDelta::Text(text)) => part.text.push_str(text),
        (ContentPart::Reasoning(part), PartDelta::Signature(text)) => {
            part.signature.get_or_insert_default().push_str(text);
        }
        (ContentPart::Reasoning(part), PartDelta::Encrypted(text)) => {
            part.encrypted.get_or_insert_default().push_str(text);
        }
        (ContentPart::ToolCall(part), PartDelta::Arguments(text)) => part.arguments.push_str(text),
        (ContentPart::Text(TextPart { extra, .. }), PartDelta::Foreign(more))
        | (ContentPart::ToolCall(ToolCallPart { extra, .. }), PartDelta::Foreign(more))
        | (ContentPart::Reasoning(ReasoningPart { extra, .. }), PartDelta::Foreign(more)) => {
            *extra = joined(extra, more)
        }
        (part, delta) => panic!("{delta:?} does not belong to {part:?}"),
    }
}

/// Joins unknown fields; lists of one name are appended.
fn joined(extra: &Extra, more: &Extra) -> Extra {
    let fields = |extra: &Extra| extra.for_dialect(Dialect::Anthropic).cloned().unwrap_or_default();
    let mut all: Map<String, Value> = fields(extra);
    for (name, value) in fields(more) {
        match (all.get_mut(&name), value) {
            (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
            (_, value) => drop(all.insert(name, value)),
        }
    }
    Extra::of(Dialect::Anthropic, all)
}
