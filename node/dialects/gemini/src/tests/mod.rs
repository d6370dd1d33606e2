//! Tests of both directions: tables of bodies, streams and properties.

mod answers;
mod errors;
mod grammar;
mod properties;
mod requests;
mod streams;
mod translation;

use serde_json::{Value, json};

use super::{GeminiStreamReader, GeminiStreamWriter, read_request, write_request};
use assay_node_dialects::form::{
    ContentPart, Extra, ModelChoice, ModelResponse, PartDelta, PartStart, ReasoningPart, StreamEvent, TextPart,
    ToolCallPart,
};
use assay_node_dialects::{Dialect, SseEvent, WriteOptions};

/// The body after it was read and written again.
fn rewritten(body: &Value) -> Value {
    let request = read_request("gemini-3-pro", false, body).expect("reads");
    let written = write_request(&request, &WriteOptions::default()).expect("writes");
    assert_eq!(written.dropped, Vec::<String>::new(), "of {body}");
    written.body
}

fn text(text: &str) -> ContentPart {
    ContentPart::Text(TextPart { text: text.to_owned(), ..TextPart::default() })
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCallPart {
    ToolCallPart {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        signature: None,
        cache: None,
        extra: Extra::default(),
    }
}

fn sse(body: &Value) -> SseEvent {
    SseEvent { event: None, data: body.to_string() }
}

/// All events of a stream of bodies.
fn read_stream(bodies: &[Value]) -> Vec<StreamEvent> {
    let mut reader = GeminiStreamReader::default();
    let mut events: Vec<StreamEvent> = bodies.iter().flat_map(|body| reader.push(&sse(body)).expect("reads")).collect();
    events.extend(reader.finish());
    events
}

fn write_stream(events: &[StreamEvent]) -> Vec<Value> {
    let mut writer = GeminiStreamWriter::new();
    let written = events.iter().flat_map(|event| writer.write(event));
    written.map(|event| serde_json::from_str(&event.data).expect("JSON")).collect()
}

/// Events that a stream of a whole answer has.
fn events_of(response: &ModelResponse) -> Vec<StreamEvent> {
    let ModelResponse { id, model, extra, .. } = response.clone();
    let mut events = vec![StreamEvent::Start { id, model, created: None, extra }];
    for choice in &response.choices {
        let index = choice.index;
        for (part, content) in choice.parts.iter().enumerate() {
            let (start, deltas) = steps_of(content);
            events.push(StreamEvent::PartStart { choice: index, part, start });
            events.extend(deltas.into_iter().map(|delta| StreamEvent::PartDelta { choice: index, part, delta }));
            events.push(StreamEvent::PartEnd { choice: index, part });
        }
        events.extend(choice.finish.clone().map(|reason| StreamEvent::Finish { choice: index, reason }));
    }
    events.extend(response.usage.clone().map(StreamEvent::Usage));
    events.push(StreamEvent::End);
    events
}

fn steps_of(part: &ContentPart) -> (PartStart, Vec<PartDelta>) {
    let signed = |signature: &Option<String>| signature.clone().map(PartDelta::Signature);
    match part.clone() {
        ContentPart::Text(text) => {
            (PartStart::Text, [PartDelta::Text(text.text)].into_iter().chain(signed(&text.signature)).collect())
        }
        ContentPart::Reasoning(text) => {
            (PartStart::Reasoning, [PartDelta::Text(text.text)].into_iter().chain(signed(&text.signature)).collect())
        }
        ContentPart::ToolCall(call) => {
            let (first, second) = call.arguments.split_at(1);
            let pieces = [first, second].map(|piece| PartDelta::Arguments(piece.to_owned()));
            let start = PartStart::ToolCall { id: call.id, name: call.name };
            (start, pieces.into_iter().chain(signed(&call.signature)).collect())
        }
        whole => (PartStart::Whole(Box::new(whole)), Vec::new()),
    }
}

/// The answer that a whole stream is.
fn folded(events: &[StreamEvent]) -> ModelResponse {
    let mut response = ModelResponse::default();
    for event in events {
        match event.clone() {
            StreamEvent::Start { id, model, extra, .. } => {
                (response.id, response.model, response.extra) = (id, model, extra);
            }
            StreamEvent::PartStart { choice, part, start } => {
                let choice = choice_of(&mut response, choice);
                assert_eq!(choice.parts.len(), part, "parts are numbered in order");
                choice.parts.push(match start {
                    PartStart::Text => text(""),
                    PartStart::Refusal => panic!("the dialect has no refusals"),
                    PartStart::Reasoning => ContentPart::Reasoning(ReasoningPart::default()),
                    PartStart::ToolCall { id, name } => ContentPart::ToolCall(call(&id, &name, "")),
                    PartStart::Whole(part) => *part,
                });
            }
            StreamEvent::PartDelta { choice, part, delta } => {
                let choice = choice_of(&mut response, choice);
                add(choice, part, delta);
            }
            StreamEvent::Finish { choice, reason } => choice_of(&mut response, choice).finish = Some(reason),
            StreamEvent::Usage(usage) => response.usage = Some(usage),
            StreamEvent::Logprobs { choice, logprobs } => choice_of(&mut response, choice).logprobs = Some(logprobs),
            StreamEvent::PartEnd { .. } | StreamEvent::Error(_) | StreamEvent::End => {}
        }
    }
    // a candidate without parts comes at the end only
    response.choices.sort_by_key(|choice| choice.index);
    response
}

fn choice_of(response: &mut ModelResponse, index: u64) -> &mut ModelChoice {
    let at = response.choices.iter().position(|choice| choice.index == index).unwrap_or_else(|| {
        let (parts, extra) = (Vec::new(), Extra::default());
        response.choices.push(ModelChoice { index, parts, finish: None, logprobs: None, extra });
        response.choices.len() - 1
    });
    &mut response.choices[at]
}

fn add(choice: &mut ModelChoice, part: usize, delta: PartDelta) {
    match (delta, &mut choice.parts[part]) {
        (PartDelta::Text(more), ContentPart::Text(text)) => text.text.push_str(&more),
        (PartDelta::Text(more), ContentPart::Reasoning(text)) => text.text.push_str(&more),
        (PartDelta::Arguments(more), ContentPart::ToolCall(call)) => call.arguments.push_str(&more),
        (PartDelta::Signature(more), ContentPart::Text(TextPart { signature, .. }))
        | (PartDelta::Signature(more), ContentPart::Reasoning(ReasoningPart { signature, .. }))
        | (PartDelta::Signature(more), ContentPart::ToolCall(ToolCallPart { signature, .. })) => {
            signature.get_or_insert_default().push_str(&more);
        }
        (PartDelta::Foreign(fields), part) => {
            // fields of the candidate are kept with its last part
            let fields = fields.for_dialect(Dialect::Gemini).expect("own fields").clone();
            let extra = match part {
                ContentPart::Text(text) => &mut text.extra,
                ContentPart::Reasoning(text) => &mut text.extra,
                ContentPart::ToolCall(call) => &mut call.extra,
                ContentPart::Image { extra, .. } | ContentPart::Audio { extra, .. } => extra,
                ContentPart::File(file) => &mut file.extra,
                other => panic!("{other:?} has no fields"),
            };
            let mut all = extra.for_dialect(Dialect::Gemini).cloned().unwrap_or_default();
            all.extend(fields);
            *extra = Extra::of(Dialect::Gemini, all);
        }
        (delta, part) => panic!("{delta:?} does not belong to {part:?}"),
    }
}

/// Neighbouring texts without a signature, which a stream cannot tell apart, as one.
fn joined(mut response: ModelResponse) -> ModelResponse {
    for choice in &mut response.choices {
        let mut parts: Vec<ContentPart> = Vec::new();
        for part in std::mem::take(&mut choice.parts) {
            match (parts.last_mut(), part) {
                (Some(ContentPart::Text(last)), ContentPart::Text(next)) if last.signature.is_none() => {
                    last.text.push_str(&next.text);
                    last.signature = next.signature;
                }
                (Some(ContentPart::Reasoning(last)), ContentPart::Reasoning(next)) if last.signature.is_none() => {
                    last.text.push_str(&next.text);
                    last.signature = next.signature;
                }
                (_, part) => parts.push(part),
            }
        }
        choice.parts = parts;
    }
    response
}

/// A body of a streamed answer with these parts.
fn chunk(parts: Value, more: Value) -> Value {
    let mut candidate = json!({ "content": { "parts": parts, "role": "model" }, "index": 0 });
    let fields = candidate.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    json!({ "candidates": [candidate], "modelVersion": "gemini-2.5-pro", "responseId": "r1" })
}
