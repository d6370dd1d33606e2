//! Streams: their events, and that they fold to the whole answer.

use serde_json::{Value, json};

use super::{event, read_stream};
use crate::{ConverseStreamReader, read_response};
use assay_node_dialects::form::{
    ContentPart, FinishReason, FoldLimits, ModelErrorKind, ModelResponse, ResponseFold, StreamEvent,
};

fn folded(events: &[StreamEvent]) -> ModelResponse {
    let mut fold = ResponseFold::new(FoldLimits::default());
    for event in events {
        fold.push(event).expect("events in order");
    }
    fold.into_response()
}

fn delta(index: u64, delta: Value) -> (&'static str, Value) {
    ("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta, "p": "abc"}))
}

fn stop(index: u64) -> (&'static str, Value) {
    ("contentBlockStop", json!({"contentBlockIndex": index}))
}

fn call(index: u64, id: &str, name: &str) -> (&'static str, Value) {
    let start = json!({"toolUse": {"toolUseId": id, "name": name}});
    ("contentBlockStart", json!({"contentBlockIndex": index, "start": start}))
}

fn usage() -> Value {
    json!({"inputTokens": 10, "outputTokens": 4, "totalTokens": 24, "cacheReadInputTokens": 10})
}

fn long_stream() -> Vec<(&'static str, Value)> {
    vec![
        ("messageStart", json!({"role": "assistant"})),
        delta(0, json!({"reasoningContent": {"text": "h"}})),
        delta(0, json!({"reasoningContent": {"text": "m"}})),
        delta(0, json!({"reasoningContent": {"signature": "s"}})),
        stop(0),
        delta(1, json!({"text": "so "})),
        delta(1, json!({"text": "it is"})),
        stop(1),
        call(2, "t1", "a"),
        delta(2, json!({"toolUse": {"input": ""}})),
        delta(2, json!({"toolUse": {"input": "{\"city\":"}})),
        delta(2, json!({"toolUse": {"input": "\"Oslo\"}"}})),
        stop(2),
        call(3, "t2", "b"),
        stop(3),
        ("messageStop", json!({"stopReason": "tool_use"})),
        ("metadata", json!({"usage": usage(), "metrics": {"latencyMs": 1}})),
    ]
}

#[test]
fn a_stream_folds_to_the_whole_answer() {
    let events = read_stream(&long_stream());
    assert_eq!(events.last(), Some(&StreamEvent::End));
    let whole = json!({
        "output": {"message": {"role": "assistant", "content": [
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
            {"text": "so it is"},
            {"toolUse": {"toolUseId": "t1", "name": "a", "input": {"city": "Oslo"}}},
            {"toolUse": {"toolUseId": "t2", "name": "b", "input": {}}},
        ]}},
        "stopReason": "tool_use",
        "usage": usage(),
    });
    assert_eq!(folded(&events), read_response(&whole).expect("an answer"));
}

#[test]
fn a_stream_that_ends_early_has_no_end() {
    let all = long_stream();
    for length in 0..all.len() {
        let events = read_stream(&all[..length]);
        let is_whole = length + 1 == all.len();
        assert_eq!(events.last() == Some(&StreamEvent::End), is_whole, "{length} events");
        let starts = events.iter().filter(|event| matches!(event, StreamEvent::PartStart { .. })).count();
        let ends = events.iter().filter(|event| matches!(event, StreamEvent::PartEnd { .. })).count();
        assert_eq!(starts, ends, "{length} events");
    }
}

#[test]
fn encrypted_reasoning_and_changes_of_kind_are_parts_of_their_own() {
    let events = read_stream(&[
        ("messageStart", json!({"role": "assistant"})),
        delta(0, json!({"reasoningContent": {"redactedContent": "ZQ=="}})),
        delta(0, json!({"text": "so"})),
        stop(0),
        ("messageStop", json!({"stopReason": "end_turn"})),
        ("metadata", json!({"usage": usage()})),
    ]);
    let response = folded(&events);
    let [ContentPart::Reasoning(reasoning), ContentPart::Text(text)] = response.choices[0].parts.as_slice() else {
        panic!("{response:?}")
    };
    assert_eq!((reasoning.encrypted.as_deref(), text.text.as_str()), (Some("ZQ=="), "so"));
    assert_eq!(response.choices[0].finish, Some(FinishReason::Stop));
}

#[test]
fn what_the_form_does_not_have_is_skipped() {
    let events = read_stream(&[
        ("initial-response", json!({})),
        ("messageStart", json!({"role": "assistant"})),
        ("contentBlockStart", json!({"contentBlockIndex": 0, "start": {"toolResult": {"toolUseId": "x"}}})),
        delta(0, json!({"toolResult": [{"text": "x"}]})),
        stop(0),
        ("contentBlockStart", json!({"contentBlockIndex": 1, "start": {}})),
        delta(1, json!({"citation": {"title": "t"}})),
        delta(1, json!({"text": "so"})),
        ("eventOfTheFuture", json!({})),
        ("messageStop", json!({"stopReason": "end_turn"})),
        ("metadata", json!({})),
    ]);
    let response = folded(&events);
    assert_eq!(response.choices[0].parts.len(), 1);
    assert_eq!(events.last(), Some(&StreamEvent::End));
}

#[test]
fn an_exception_ends_the_stream() {
    let events = read_stream(&[
        ("messageStart", json!({"role": "assistant"})),
        delta(0, json!({"text": "so"})),
        ("exception", json!({"__type": "throttlingException", "message": "Too many tokens"})),
        delta(0, json!({"text": "no more"})),
    ]);
    let Some(StreamEvent::Error(error)) = events.last() else { panic!("{events:?}") };
    assert_eq!((error.kind, error.message.as_str()), (ModelErrorKind::RateLimit, "Too many tokens"));
}

#[test]
fn events_out_of_order_are_errors() {
    let mut reader = ConverseStreamReader::default();
    let (kind, data) = delta(0, json!({"toolUse": {"input": "{}"}}));
    assert!(reader.push(&event(kind, &data)).is_err(), "a call that has not started");
    let (kind, data) = call(0, "t", "a");
    reader.push(&event(kind, &data)).expect("a good event");
    assert!(reader.push(&event(kind, &data)).is_err(), "a block that starts twice");
    assert!(reader.push(&event("contentBlockDelta", &json!({"delta": {"text": "x"}}))).is_err(), "no index");
}
