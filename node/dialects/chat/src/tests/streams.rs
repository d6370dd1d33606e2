//! Tests of streams.

use super::*;
use assay_node_dialects::form::{FinishReason, ModelErrorKind, PartDelta, PartStart, unfold};

fn chunk(delta: Value, finish: Value) -> Value {
    json!({ "id": "c1", "object": "chat.completion.chunk", "created": 5, "model": "m", "system_fingerprint": "fp",
        "choices": [{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }] })
}

fn usage_chunk() -> Value {
    json!({ "id": "c1", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [],
        "usage": { "prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11 } })
}

/// A stream of these deltas with its end.
fn stream(deltas: &[Value], finish: &str) -> Vec<Value> {
    let mut chunks: Vec<Value> = deltas.iter().map(|delta| chunk(delta.clone(), Value::Null)).collect();
    chunks.extend([chunk(json!({}), json!(finish)), usage_chunk(), json!("[DONE]")]);
    chunks
}

/// The whole answer with this message that the stream stands for.
fn whole(message: Value, finish: &str) -> Value {
    json!({ "id": "c1", "object": "chat.completion", "created": 5, "model": "m", "system_fingerprint": "fp",
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": finish }],
        "usage": { "prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11 } })
}

fn call(index: u64, id: &str, arguments: &str) -> Value {
    json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": { "name": "f", "arguments": arguments } }] })
}

fn piece(index: u64, arguments: &str) -> Value {
    json!({ "tool_calls": [{ "index": index, "function": { "arguments": arguments } }] })
}

/// Deltas, the message that they stand for, and the reason of its end.
type StreamSample = (Vec<Value>, Value, &'static str);

fn text_streams() -> Vec<StreamSample> {
    let signature = json!({ "google": { "thought_signature": "s" } });
    let role = json!({ "role": "assistant", "content": "" });
    vec![
        (vec![role.clone(), json!({ "content": "a" }), json!({ "content": "b" })], json!({ "content": "ab" }), "stop"),
        (
            vec![role.clone(), json!({ "refusal": "n" }), json!({ "refusal": "o" })],
            json!({ "content": null, "refusal": "no" }),
            "content_filter",
        ),
        (
            vec![
                json!({ "reasoning": { "content": "t" } }),
                json!({ "reasoning": { "content": "u" } }),
                json!({ "reasoning": { "id": "s" } }),
                json!({ "reasoning": { "content": "v" } }),
                json!({ "content": "a" }),
            ],
            json!({ "content": "a", "reasoning": [{ "id": "s", "content": "tu" }, { "content": "v" }] }),
            "stop",
        ),
        (
            vec![json!({ "reasoning_content": "t", "content": null }), json!({ "content": "a" })],
            json!({ "content": "a", "reasoning": [{ "content": "t" }] }),
            "length",
        ),
        (
            vec![json!({ "reasoning": "t", "reasoning_content": "t" }), json!({ "content": "a" })],
            json!({ "content": "a", "reasoning": [{ "content": "t" }] }),
            "stop",
        ),
        (
            vec![
                json!({ "content": [{ "type": "thinking", "thinking": [{ "type": "text", "text": "t" }] }] }),
                json!({ "content": "a" }),
            ],
            json!({ "content": "a", "reasoning": [{ "content": "t" }] }),
            "stop",
        ),
        (
            vec![json!({ "content": "a" }), json!({ "content": "", "extra_content": signature })],
            json!({ "content": "a", "extra_content": signature }),
            "stop",
        ),
        (
            vec![json!({ "content": "a" }), json!({ "annotations": [1] }), json!({ "annotations": [2] })],
            json!({ "content": "a", "annotations": [1, 2] }),
            "stop",
        ),
        (
            vec![
                json!({ "content": "a" }),
                json!({ "images": [{ "type": "image_url", "image_url": { "url": "data:image/png;base64,AA" } }] }),
            ],
            json!({ "content": "a", "images": [{ "type": "image_url", "image_url": { "url": "data:image/png;base64,AA" } }] }),
            "stop",
        ),
        (vec![role], json!({ "content": "" }), "stop"),
    ]
}

fn call_streams() -> Vec<StreamSample> {
    let function = |arguments: &str| json!({ "name": "f", "arguments": arguments });
    let signature = json!({ "google": { "thought_signature": "s" } });
    let role = json!({ "role": "assistant", "content": "" });
    vec![
        (
            vec![
                role.clone(),
                json!({ "content": "x" }),
                call(0, "a", ""),
                piece(0, "{\"x\""),
                piece(0, ":1}"),
                call(1, "b", "{}"),
            ],
            json!({ "content": "x", "tool_calls": [
                { "id": "a", "type": "function", "function": function("{\"x\":1}") },
                { "id": "b", "type": "function", "function": function("{}") }] }),
            "tool_calls",
        ),
        (
            vec![
                json!({ "tool_calls": [{ "index": 0, "id": "a", "type": "function", "function": function("{}"), "extra_content": signature }] }),
            ],
            json!({ "content": null, "tool_calls": [{ "id": "a", "type": "function", "function": function("{}"), "extra_content": signature }] }),
            "tool_calls",
        ),
        (
            vec![
                json!({ "tool_calls": [{ "index": 0, "id": "a", "type": "custom", "custom": { "name": "sh", "input": "" } }] }),
                json!({ "tool_calls": [{ "index": 0, "custom": { "input": "l" } }] }),
                json!({ "tool_calls": [{ "index": 0, "custom": { "input": "s" } }] }),
            ],
            json!({ "content": null, "tool_calls": [{ "id": "a", "type": "custom", "custom": { "name": "sh", "input": "ls" } }] }),
            "tool_calls",
        ),
    ]
}

#[test]
fn a_stream_is_its_whole_answer() {
    for (deltas, mut message, finish) in text_streams().into_iter().chain(call_streams()) {
        message["role"] = json!("assistant");
        let events = events_of(&stream(&deltas, finish));
        let expected = whole(message, finish);
        let response = folded(&events);
        assert_eq!(write_response(&response), expected);
        assert_eq!(write_response(&folded(&streamed(&events))), expected, "written and read again");
        let read = read_response(&expected).expect("reads");
        assert_eq!(write_response(&folded(&streamed(&unfold(&read)))), expected, "a whole answer as a stream");
        assert_eq!(events.last(), Some(&StreamEvent::End));
    }
}

#[test]
fn parts_follow_each_other() {
    let events = events_of(&stream(&[json!({ "content": "a" }), call(0, "x", "{}"), call(1, "y", "")], "tool_calls"));
    let shape: Vec<String> = events
        .iter()
        .map(|event| match event {
            StreamEvent::Start { .. } => "start".to_owned(),
            StreamEvent::PartStart { part, .. } => format!("+{part}"),
            StreamEvent::PartDelta { part, .. } => format!("{part}"),
            StreamEvent::PartEnd { part, .. } => format!("-{part}"),
            StreamEvent::Finish { .. } => "finish".to_owned(),
            StreamEvent::Usage(_) => "usage".to_owned(),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(shape, ["start", "+0", "0", "-0", "+1", "1", "-1", "+2", "-2", "finish", "usage", "End"]);
}

#[test]
fn unusual_streams_of_calls_are_understood() {
    let f = |name: &str| json!({ "name": name, "arguments": "{}" });
    let table = [
        // all calls have the index 0
        vec![
            json!({ "tool_calls": [{ "index": 0, "id": "a", "function": f("f") }] }),
            json!({ "tool_calls": [{ "index": 0, "id": "b", "function": f("g") }] }),
        ],
        // no indexes
        vec![json!({ "tool_calls": [{ "id": "a", "function": f("f") }, { "id": "b", "function": f("g") }] })],
        // the id and the name are repeated
        vec![
            json!({ "tool_calls": [{ "index": 0, "id": "a", "function": { "name": "f", "arguments": "{" } }] }),
            json!({ "tool_calls": [{ "index": 0, "id": "a", "function": { "name": "f", "arguments": "}" } }] }),
            json!({ "tool_calls": [{ "index": 1, "id": "b", "function": f("g") }] }),
        ],
        // holes, as block indexes leave them
        vec![
            json!({ "tool_calls": [{ "index": 1, "id": "a", "function": f("f") }] }),
            json!({ "tool_calls": [{ "index": 3, "id": "b", "function": f("g") }] }),
        ],
    ];
    for deltas in table {
        let written = write_response(&folded(&events_of(&stream(&deltas, "stop"))));
        let calls = &written["choices"][0]["message"]["tool_calls"];
        let names: Vec<_> = calls
            .as_array()
            .expect("calls")
            .iter()
            .map(|call| (call["id"].clone(), call["function"].clone()))
            .collect();
        assert_eq!(names, [(json!("a"), f("f")), (json!("b"), f("g"))], "{deltas:?}");
        assert_eq!(written["choices"][0]["finish_reason"], "tool_calls");
    }
    let mut reader = ChatStreamReader::default();
    let mut push = |delta| reader.push(&SseEvent::of_data(chunk(delta, Value::Null).to_string()));
    push(call(0, "a", "{")).and_then(|_| push(call(1, "b", ""))).expect("in order");
    let error = push(piece(0, "}")).expect_err("the first call has ended");
    assert!(error.to_string().contains("continue after the next call began"), "{error}");
    let mut reader = ChatStreamReader::default();
    let mut push = |delta| reader.push(&SseEvent::of_data(chunk(delta, Value::Null).to_string()));
    push(json!({ "tool_calls": [{ "index": 0, "id": "a", "type": "other", "other": {} }] })).expect("a call");
    let error = push(piece(0, "{}")).expect_err("a call of another type has no arguments");
    assert!(error.to_string().contains("changes its type"), "{error}");
}

#[test]
fn tools_are_counted_from_0_and_the_head_is_the_same_in_all_chunks() {
    let events = [
        StreamEvent::Start { id: "i".into(), model: "m".into(), created: Some(7), extra: Default::default() },
        StreamEvent::PartStart { choice: 0, part: 0, start: PartStart::Text },
        StreamEvent::PartDelta { choice: 0, part: 0, delta: PartDelta::Text("hi".into()) },
        StreamEvent::PartEnd { choice: 0, part: 0 },
        StreamEvent::PartStart { choice: 0, part: 1, start: PartStart::ToolCall { id: "a".into(), name: "f".into() } },
        StreamEvent::PartDelta { choice: 0, part: 1, delta: PartDelta::Arguments("{}".into()) },
        StreamEvent::PartDelta { choice: 0, part: 1, delta: PartDelta::Signature("s1".into()) },
        StreamEvent::PartDelta { choice: 0, part: 1, delta: PartDelta::Signature("s2".into()) },
        StreamEvent::PartEnd { choice: 0, part: 1 },
        StreamEvent::PartStart { choice: 0, part: 2, start: PartStart::ToolCall { id: "b".into(), name: "g".into() } },
        StreamEvent::Finish { choice: 0, reason: FinishReason::ToolCalls },
        StreamEvent::Usage(Default::default()),
        StreamEvent::End,
        StreamEvent::End,
    ];
    for include_usage in [false, true] {
        let mut writer = ChatStreamWriter::new(ChatStreamOptions { include_usage, function_call: false });
        let mut chunks: Vec<String> =
            events.iter().flat_map(|event| writer.write(event)).map(|event| event.data).collect();
        assert_eq!(chunks.pop().as_deref(), Some("[DONE]"));
        let mut chunks: Vec<Value> = chunks.iter().map(|chunk| serde_json::from_str(chunk).expect("JSON")).collect();
        for chunk in &chunks {
            assert_eq!((&chunk["id"], &chunk["created"], &chunk["model"]), (&json!("i"), &json!(7), &json!("m")));
            assert_eq!(chunk.get("usage").is_some(), include_usage);
        }
        if include_usage {
            let last = chunks.pop().expect("the usage");
            assert_eq!((&last["choices"], last["usage"]["total_tokens"].as_u64()), (&json!([]), Some(0)));
            assert!(is_usage_chunk(&SseEvent::of_data(last.to_string())));
        }
        let deltas: Vec<Value> = chunks.iter().map(|chunk| chunk["choices"][0]["delta"].clone()).collect();
        let signature = json!({ "google": { "thought_signature": "s1s2" } });
        assert_eq!(
            deltas,
            [
                json!({ "role": "assistant", "content": "hi" }),
                json!({ "tool_calls": [{ "index": 0, "id": "a", "type": "function", "function": { "name": "f", "arguments": "" } }] }),
                json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "{}" } }] }),
                json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "" }, "extra_content": signature }] }),
                json!({ "tool_calls": [{ "index": 1, "id": "b", "type": "function", "function": { "name": "g", "arguments": "" } }] }),
                json!({}),
            ]
        );
        assert!(!chunks.iter().any(|chunk| is_usage_chunk(&SseEvent::of_data(chunk.to_string()))));
    }
}

#[test]
fn streamed_reasoning_is_a_text_too_and_is_read_once() {
    let mut writer = ChatStreamWriter::new(ChatStreamOptions::default());
    let events = [
        StreamEvent::PartStart { choice: 0, part: 0, start: PartStart::Reasoning },
        StreamEvent::PartDelta { choice: 0, part: 0, delta: PartDelta::Text("a".into()) },
        StreamEvent::PartDelta { choice: 0, part: 0, delta: PartDelta::Signature("s".into()) },
        StreamEvent::PartEnd { choice: 0, part: 0 },
        StreamEvent::Finish { choice: 0, reason: FinishReason::Stop },
        StreamEvent::End,
    ];
    let written = events.iter().flat_map(|event| writer.write(event)).filter(|event| event.data != "[DONE]");
    let chunks: Vec<Value> = written.map(|event| serde_json::from_str(&event.data).expect("JSON")).collect();
    let deltas: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]).collect();
    let text = json!({ "role": "assistant", "reasoning": { "content": "a" }, "reasoning_content": "a" });
    assert_eq!(deltas, [&text, &json!({ "reasoning": { "id": "s" } }), &json!({})]);
    let read = folded(&events_of(&chunks));
    let [assay_node_dialects::form::ContentPart::Reasoning(part)] = &read.choices[0].parts[..] else {
        panic!("{read:?}")
    };
    assert_eq!((part.text.as_str(), part.signature.as_deref()), ("a", Some("s")));
}

#[test]
fn a_client_of_functions_gets_one_function_call_in_a_stream() {
    let events = events_of(&stream(&[call(0, "a", "{"), piece(0, "}"), call(1, "b", "{}")], "tool_calls"));
    let mut writer = ChatStreamWriter::new(ChatStreamOptions { include_usage: false, function_call: true });
    let chunks: Vec<Value> = events
        .iter()
        .flat_map(|event| writer.write(event))
        .filter_map(|event| serde_json::from_str(&event.data).ok())
        .collect();
    let deltas: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]).collect();
    assert_eq!(deltas[0], &json!({ "role": "assistant", "function_call": { "name": "f", "arguments": "" } }));
    assert!(deltas.iter().all(|delta| delta.get("tool_calls").is_none()), "{deltas:?}");
    assert_eq!(chunks.last().expect("chunks")["choices"][0]["finish_reason"], "function_call");
    let chunks: Vec<Value> = chunks.into_iter().chain([json!("[DONE]")]).collect();
    let read = folded(&events_of(&chunks));
    assert_eq!(read.choices[0].finish, Some(FinishReason::ToolCalls));
    assert!(
        matches!(&read.choices[0].parts[..], [assay_node_dialects::form::ContentPart::ToolCall(call)] if call.arguments == "{}")
    );
}

#[test]
fn a_cut_stream_has_no_end() {
    let mut chunks = stream(&[json!({ "content": "a" })], "stop");
    chunks.pop();
    let events = events_of(&chunks);
    assert!(!events.contains(&StreamEvent::End));
    assert!(events.contains(&StreamEvent::Finish { choice: 0, reason: FinishReason::Stop }));
    let events = events_of(&chunks[..1]);
    assert!(!events.iter().any(|event| matches!(event, StreamEvent::Finish { .. } | StreamEvent::End)));
}

#[test]
fn an_error_ends_a_stream_without_its_mark() {
    let table = [
        (
            json!({ "error": { "message": "slow", "type": "rate_limit_error", "code": null } }),
            ModelErrorKind::RateLimit,
        ),
        (json!({ "error": { "message": "slow", "type": "x", "code": 400 } }), ModelErrorKind::InvalidRequest),
        (json!({ "error": "boom" }), ModelErrorKind::Server),
        (json!({ "object": "error", "message": "slow", "code": 503 }), ModelErrorKind::Overloaded),
    ];
    for (error, kind) in table {
        let events = events_of(&[chunk(json!({ "content": "a" }), Value::Null), error, json!("[DONE]")]);
        let Some(StreamEvent::Error(error)) = events.last() else { panic!("{events:?}") };
        assert_eq!(error.kind, kind);
        let mut writer = ChatStreamWriter::new(ChatStreamOptions::default());
        let chunks: Vec<SseEvent> =
            events.iter().chain([&StreamEvent::End]).flat_map(|event| writer.write(event)).collect();
        let last: Value = serde_json::from_str(&chunks.last().expect("chunks").data).expect("JSON");
        assert_eq!(last["error"]["message"], json!(error.message));
    }
    let mut reader = ChatStreamReader::default();
    assert!(reader.push(&SseEvent::of_data("{\"a\":")).is_err());
}

#[test]
fn the_end_is_told_once_and_last() {
    let repeated = [
        chunk(json!({ "content": "a" }), json!("stop")),
        chunk(json!({ "content": "b" }), json!("stop")),
        json!("[DONE]"),
    ];
    let events = events_of(&repeated);
    let finishes = events.iter().filter(|event| matches!(event, StreamEvent::Finish { .. })).count();
    assert_eq!((finishes, events.last()), (1, Some(&StreamEvent::End)));
    assert_eq!(write_response(&folded(&events))["choices"][0]["message"]["content"], "ab");
}

#[test]
fn the_first_chunk_of_azure_is_part_of_the_start() {
    let first =
        json!({ "id": "", "model": "", "created": 0, "object": "", "choices": [], "prompt_filter_results": [1] });
    let events = events_of(&[first, chunk(json!({ "content": "a" }), json!("stop")), json!("[DONE]")]);
    let StreamEvent::Start { id, model, created, extra } = &events[0] else { panic!("{events:?}") };
    assert_eq!((id.as_str(), model.as_str(), *created), ("c1", "m", Some(5)));
    let extra = extra.for_dialect(assay_node_dialects::Dialect::Chat).expect("kept");
    assert_eq!(extra.keys().collect::<Vec<_>>(), ["prompt_filter_results", "system_fingerprint"]);
}

#[test]
fn choices_are_kept_apart_and_log_probabilities_are_joined() {
    let of = |index: u64, text: &str| {
        json!({ "id": "c1", "created": 5, "model": "m", "choices": [
        { "index": index, "delta": { "content": text }, "logprobs": { "content": [text] }, "finish_reason": null }] })
    };
    let end = json!({ "id": "c1", "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }, { "index": 1, "delta": {}, "finish_reason": "length" }] });
    let events = events_of(&[of(0, "a"), of(1, "x"), of(0, "b"), of(1, "y"), end, json!("[DONE]")]);
    for events in [&events, &streamed(&events)] {
        let written = write_response(&folded(events));
        let contents: Vec<&Value> = (0..2).map(|at| &written["choices"][at]["message"]["content"]).collect();
        assert_eq!(contents, [&json!("ab"), &json!("xy")]);
        assert_eq!(written["choices"][1]["logprobs"], json!({ "content": ["x", "y"] }));
        assert_eq!(written["choices"][1]["finish_reason"], "length");
    }
}
