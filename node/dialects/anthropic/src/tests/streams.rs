//! Streamed answers.

use serde_json::{Value, json};

use super::fold::{fold, read_all, write_all};
use super::{sse, text};
use crate::{
    AnthropicReadOptions, AnthropicStreamReader, AnthropicStreamWriter, WAITING_EVENTS_MAX, read_response,
    write_response,
};
use assay_node_dialects::form::{
    ContentPart, Extra, FinishReason, ModelErrorKind, PartDelta, PartStart, StreamEvent, TokenUsage,
};
use assay_node_dialects::{DialectError, SseEvent};

fn start() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
        "model": "claude-sonnet-4-5", "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 1}}})
}

fn block(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn end(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ]
}

fn stream(blocks: Vec<Value>, reason: &str) -> Vec<SseEvent> {
    [start()].into_iter().chain(blocks).chain(end(reason)).map(sse).collect()
}

/// Stream with every kind of block.
fn rich_stream() -> Vec<SseEvent> {
    stream(
        vec![
            block(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
            json!({"type": "ping"}),
            delta(0, json!({"type": "thinking_delta", "thinking": "two "})),
            delta(0, json!({"type": "thinking_delta", "thinking": "cities"})),
            delta(0, json!({"type": "signature_delta", "signature": "sig=="})),
            stop(0),
            block(1, json!({"type": "redacted_thinking", "data": "enc=="})),
            stop(1),
            block(2, json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}})),
            delta(2, json!({"type": "input_json_delta", "partial_json": "{\"query\":"})),
            delta(2, json!({"type": "input_json_delta", "partial_json": "\"a\"}"})),
            stop(2),
            block(3, json!({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"url": "u"}]})),
            stop(3),
            block(4, json!({"type": "text", "text": "", "citations": []})),
            delta(4, json!({"type": "text_delta", "text": "I "})),
            delta(4, json!({"type": "citations_delta", "citation": {"type": "x", "url": "u"}})),
            delta(4, json!({"type": "text_delta", "text": "look."})),
            stop(4),
            block(
                5,
                json!({"type": "tool_use", "id": "toolu_1", "name": "w", "input": {}, "caller": {"type": "direct"}}),
            ),
            delta(5, json!({"type": "input_json_delta", "partial_json": ""})),
            delta(5, json!({"type": "input_json_delta", "partial_json": "{\"city\":"})),
            delta(5, json!({"type": "input_json_delta", "partial_json": "\"Bonn\"}"})),
            stop(5),
            block(6, json!({"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}})),
            stop(6),
        ],
        "tool_use",
    )
}

fn rich_answer() -> Value {
    json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [
        {"type": "thinking", "thinking": "two cities", "signature": "sig=="},
        {"type": "redacted_thinking", "data": "enc=="},
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "a"}},
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"url": "u"}]},
        {"type": "text", "text": "I look.", "citations": [{"type": "x", "url": "u"}]},
        {"type": "tool_use", "id": "toolu_1", "name": "w", "input": {"city": "Bonn"}, "caller": {"type": "direct"}},
        {"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}}],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": {"input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 7}})
}

#[test]
fn a_stream_amounts_to_the_whole_answer() {
    let folded = fold(&read_all(&rich_stream()));
    assert_eq!(folded, read_response(&rich_answer()).expect("the answer can be read"));
    assert_eq!(write_response(&folded), rich_answer());
}

#[test]
fn a_stream_that_is_written_again_amounts_to_the_same_answer() {
    let events = read_all(&rich_stream());
    let written = write_all(&events);
    assert_eq!(fold(&read_all(&written)), fold(&events));
    let names: Vec<&str> = written.iter().filter_map(|event| event.event.as_deref()).collect();
    assert_eq!(
        (names[0], names[names.len() - 2], names[names.len() - 1]),
        ("message_start", "message_delta", "message_stop")
    );
    assert!(written.iter().all(|event| event.data.contains(event.event.as_deref().expect("each event has a name"))));
}

#[test]
fn a_plain_stream_is_written_as_it_came() {
    let events = stream(
        vec![
            block(0, json!({"type": "text", "text": ""})),
            delta(0, json!({"type": "text_delta", "text": "h"})),
            delta(0, json!({"type": "text_delta", "text": "i"})),
            stop(0),
            block(1, json!({"type": "tool_use", "id": "t", "name": "w", "input": {}})),
            delta(1, json!({"type": "input_json_delta", "partial_json": "{}"})),
            stop(1),
        ],
        "a_new_reason",
    );
    let written = write_all(&read_all(&events));
    let value = |event: &SseEvent| serde_json::from_str::<Value>(&event.data).expect("data is JSON");
    let (mut came, mut goes): (Vec<Value>, Vec<Value>) =
        (events.iter().map(value).collect(), written.iter().map(value).collect());
    let delta = came.len() - 2;
    assert_eq!(goes[delta]["usage"], json!({"input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 7}));
    (came[delta]["usage"], goes[delta]["usage"]) = (Value::Null, Value::Null);
    assert_eq!(goes, came);
}

#[test]
fn usage_of_the_end_completes_that_of_the_start() {
    let usages = |events: Vec<StreamEvent>| {
        events
            .into_iter()
            .filter_map(|event| match event {
                StreamEvent::Usage(usage) => Some((usage.input, usage.cached_input, usage.output)),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(usages(read_all(&stream(Vec::new(), "end_turn"))), [(105, Some(100), 1), (105, Some(100), 7)]);
}

#[test]
fn an_error_ends_the_stream() {
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
    let mut reader = AnthropicStreamReader::default();
    reader.push(&sse(start())).expect("it can be read");
    let events = reader.push(&sse(error.clone())).expect("it can be read");
    let [StreamEvent::Error(found)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((found.kind, found.message.as_str()), (ModelErrorKind::Overloaded, "busy"));
    assert!(reader.push(&sse(json!({"type": "message_stop"}))).expect("it can be read").is_empty());
    assert!(reader.finish().is_empty());
    let mut writer = AnthropicStreamWriter::new();
    assert_eq!(writer.write(&events[0]), [sse(error)]);
    assert!(writer.write(&StreamEvent::End).is_empty());
}

#[test]
fn a_cut_stream_has_no_end() {
    let mut reader = AnthropicStreamReader::default();
    for event in &rich_stream()[..4] {
        reader.push(event).expect("it can be read");
    }
    assert_eq!(reader.finish(), [StreamEvent::PartEnd { choice: 0, part: 0 }]);
}

#[test]
fn events_without_meaning_are_ignored() {
    let mut reader = AnthropicStreamReader::default();
    for event in [
        SseEvent { event: None, data: String::new() },
        SseEvent { event: Some("ping".to_owned()), data: "{}".to_owned() },
        sse(json!({"type": "ping"})),
        sse(json!({"type": "a_new_event", "x": 1})),
    ] {
        assert_eq!(reader.push(&event), Ok(Vec::new()));
    }
}

#[test]
fn a_broken_stream_is_refused() {
    let push = |events: &[Value]| {
        let mut reader = AnthropicStreamReader::default();
        events.iter().map(|event| reader.push(&sse(event.clone()))).find(Result::is_err).expect("one is wrong")
    };
    let text_block = block(0, json!({"type": "text", "text": ""}));
    for events in [
        vec![start(), start()],
        vec![delta(0, json!({"type": "text_delta", "text": "a"}))],
        vec![stop(0)],
        vec![text_block.clone(), text_block],
    ] {
        assert!(matches!(push(&events), Err(DialectError::Stream(_))), "{events:?}");
    }
    let mut reader = AnthropicStreamReader::default();
    let cut = SseEvent { event: None, data: "{\"type\":".to_owned() };
    assert!(matches!(reader.push(&cut), Err(DialectError::Stream(_))));
}

/// Streamed answer to a request for JSON.
fn read_json(blocks: Vec<Value>) -> (Vec<ContentPart>, Option<FinishReason>) {
    let mut reader = AnthropicStreamReader::with_options(AnthropicReadOptions { schema_tool: true });
    let events: Vec<StreamEvent> =
        stream(blocks, "tool_use").iter().flat_map(|event| reader.push(event).expect("it can be read")).collect();
    let choice = fold(&events).choices.remove(0);
    (choice.parts, choice.finish)
}

#[test]
fn the_streamed_input_of_the_json_tool_is_the_answer() {
    let said = vec![
        block(0, json!({"type": "text", "text": ""})),
        delta(0, json!({"type": "text_delta", "text": "Here:"})),
        stop(0),
    ];
    let json_call = |index: u64| {
        vec![
            block(index, json!({"type": "tool_use", "id": "t", "name": "json", "input": {}})),
            delta(index, json!({"type": "input_json_delta", "partial_json": "{\"a\":"})),
            delta(index, json!({"type": "input_json_delta", "partial_json": "1}"})),
            stop(index),
        ]
    };
    let other = vec![block(3, json!({"type": "tool_use", "id": "u", "name": "b", "input": {"c": 1}})), stop(3)];
    let (parts, finish) = read_json([said.clone(), json_call(1), json_call(2)].concat());
    assert_eq!((parts, finish), (vec![text(r#"{"a":1}"#)], Some(FinishReason::Stop)));
    let (parts, finish) = read_json([json_call(1), other].concat());
    assert!(matches!(&parts[1], ContentPart::ToolCall(call) if call.arguments == r#"{"c":1}"#));
    assert_eq!(finish, Some(FinishReason::ToolCalls));
    assert_eq!(read_json(said).0, [text("Here:")], "a text is the answer if the tool was not called");
}

#[test]
fn parts_that_overlap_become_blocks_in_turn() {
    let call = |part: usize| StreamEvent::PartStart {
        choice: 0,
        part,
        start: PartStart::ToolCall { id: format!("c{part}"), name: "w".to_owned() },
    };
    let arguments = |part: usize, piece: &str| StreamEvent::PartDelta {
        choice: 0,
        part,
        delta: PartDelta::Arguments(piece.to_owned()),
    };
    let mut events = vec![
        StreamEvent::Start { id: "r".to_owned(), model: "m".to_owned(), created: Some(1), extra: Extra::default() },
        call(0),
        call(1),
        arguments(1, "{\"b\":"),
        arguments(0, "{\"a\":"),
        arguments(1, "2}"),
        arguments(0, "1}"),
        StreamEvent::PartEnd { choice: 0, part: 1 },
        StreamEvent::PartStart { choice: 1, part: 0, start: PartStart::Text },
        StreamEvent::Finish { choice: 0, reason: FinishReason::ToolCalls },
        StreamEvent::Usage(TokenUsage { input: 3, output: 4, ..TokenUsage::default() }),
        StreamEvent::End,
    ];
    let folded = fold(&read_all(&write_all(&events)));
    events.retain(|event| !matches!(event, StreamEvent::PartStart { choice: 1, .. }));
    assert_eq!(folded.choices, fold(&events).choices);
    assert_eq!(folded.usage, Some(TokenUsage { input: 3, output: 4, ..TokenUsage::default() }));
}

#[test]
fn too_many_overlapping_events_end_the_stream_in_an_error() {
    let mut writer = AnthropicStreamWriter::new();
    for part in 0..2 {
        writer.write(&StreamEvent::PartStart { choice: 0, part, start: PartStart::Text });
    }
    let piece = StreamEvent::PartDelta { choice: 0, part: 1, delta: PartDelta::Text("a".to_owned()) };
    let written: Vec<SseEvent> = (0..=WAITING_EVENTS_MAX).flat_map(|_| writer.write(&piece)).collect();
    assert_eq!(written.last().and_then(|event| event.event.as_deref()), Some("error"));
    assert!(writer.write(&StreamEvent::End).is_empty());
}
