//! Facts about streams.

use serde_json::{Value, json};

use super::super::{ResponsesStreamReader, ResponsesStreamWriter, read_response, write_response};
use super::accumulator::accumulate;
use super::normal::normal_response;
use super::responses::full;
use super::{data, fold, read_stream, write_stream};
use assay_node_dialects::form::{
    ContentPart, FinishReason, ModelError, ModelErrorKind, PartDelta, PartStart, StreamEvent, TokenUsage,
};
use assay_node_dialects::{DialectError, SseEvent};

fn sse(event: Value) -> SseEvent {
    SseEvent { event: event["type"].as_str().map(str::to_owned), data: event.to_string() }
}

/// Events of a server for a whole response, each text and argument in two pieces.
pub fn served(response: &Value) -> Vec<SseEvent> {
    let mut begun = response.clone();
    begun["output"] = json!([]);
    begun["status"] = json!("in_progress");
    begun["usage"] = Value::Null;
    let mut events = vec![
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.in_progress", "response": begun}),
    ];
    for (index, item) in response["output"].as_array().expect("is a list").iter().enumerate() {
        serve_item(&mut events, index, item);
    }
    let named = format!("response.{}", response["status"].as_str().expect("has a status"));
    events.push(json!({"type": named, "response": response}));
    let numbered = events.into_iter().enumerate().map(|(number, mut event)| {
        event["sequence_number"] = json!(number);
        sse(event)
    });
    numbered.collect()
}

fn serve_item(events: &mut Vec<Value>, index: usize, item: &Value) {
    let mut begun = item.clone();
    let id = &item["id"];
    match item["type"].as_str() {
        Some("message") => begun["content"] = json!([]),
        Some("function_call") => begun["arguments"] = json!(""),
        Some("reasoning") => begun["summary"] = json!([]),
        _ => {}
    }
    begun["status"] = json!("in_progress");
    events.push(json!({"type": "response.output_item.added", "output_index": index, "item": begun}));
    let halves = |text: &Value| {
        let text = text.as_str().expect("is a text").to_owned();
        let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
        [json!(first), json!(second)]
    };
    for (at, part) in item["content"].as_array().into_iter().flatten().enumerate() {
        let event = |named: &str, name: &str, value: Value| json!({"type": format!("response.{named}"), "item_id": id, "output_index": index, "content_index": at, name: value});
        let mut empty = part.clone();
        let (named, name) = match part["type"].as_str() {
            Some("output_text") => ("output_text", "text"),
            Some("refusal") => ("refusal", "refusal"),
            _ => ("", ""),
        };
        if !named.is_empty() {
            empty[name] = json!("");
            empty["annotations"] = json!([]);
        }
        events.push(event("content_part.added", "part", empty));
        if !named.is_empty() {
            let mut logprobs = part["logprobs"].clone();
            for half in halves(&part[name]) {
                let mut delta = event(&format!("{named}.delta"), "delta", half);
                delta["logprobs"] = logprobs.take();
                events.push(delta);
            }
            events.push(event(&format!("{named}.done"), name, part[name].clone()));
        }
        events.push(event("content_part.done", "part", part.clone()));
    }
    for (at, part) in item["summary"].as_array().into_iter().flatten().enumerate() {
        let event = |named: &str, name: &str, value: Value| {
            json!({"type": format!("response.reasoning_summary_{named}"), "item_id": id, "output_index": index,
                "summary_index": at, name: value})
        };
        events.push(event("part.added", "part", json!({"type": "summary_text", "text": ""})));
        for half in halves(&part["text"]) {
            if half != "" {
                events.push(event("text.delta", "delta", half));
            }
        }
        events.push(event("text.done", "text", part["text"].clone()));
        events.push(event("part.done", "part", part.clone()));
    }
    if item["type"] == "function_call" {
        for half in halves(&item["arguments"]) {
            events.push(json!({"type": "response.function_call_arguments.delta", "item_id": id, "output_index": index, "delta": half}));
        }
        events.push(json!({"type": "response.function_call_arguments.done", "item_id": id, "output_index": index, "arguments": item["arguments"]}));
    }
    events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
}

fn responses() -> Vec<Value> {
    let message = |status: &str, text: &str| {
        json!({"type": "message", "id": "msg_1", "status": status, "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]})
    };
    vec![
        full(),
        json!({"id": "resp_2", "model": "gpt-5", "created_at": 1, "status": "completed", "output": [message("completed", "Hi")]}),
        json!({"id": "resp_3", "model": "gpt-5", "created_at": 1, "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"}, "output": [message("incomplete", "Hi")],
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}),
        json!({"id": "resp_4", "model": "gpt-5", "created_at": 1, "status": "incomplete",
            "incomplete_details": {"reason": "content_filter"}, "output": [
                {"type": "reasoning", "id": "rs_1", "summary": []},
                {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "think"}]},
                {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{\"a", "status": "incomplete"}]}),
        json!({"id": "resp_5", "model": "gpt-5", "created_at": 1, "status": "completed", "output": []}),
    ]
}

#[test]
fn a_stream_adds_up_to_the_whole_response() {
    for body in responses() {
        let events = read_stream(&served(&body));
        assert_eq!(events.last(), Some(&StreamEvent::End));
        let mut folded = fold(&events);
        let whole = read_response(&body).expect("reads");
        folded.extra = whole.extra.clone();
        assert_eq!(folded, whole);
        assert_eq!(normal_response(&write_response(&folded)), normal_response(&body));
    }
}

#[test]
fn a_written_stream_rebuilds_the_response_and_is_read_back() {
    for body in responses() {
        let events = read_stream(&served(&body));
        let written = write_stream(&events);
        let (output, last) = accumulate(&written);
        assert_eq!(last, write_response(&fold(&events)));
        assert_eq!(output, last["output"]);
        let again = fold(&read_stream(&written));
        assert_eq!(write_response(&again), last);
    }
}

#[test]
fn the_events_of_an_answer_have_the_order_of_the_api() {
    let delta = |part, delta| StreamEvent::PartDelta { choice: 0, part, delta };
    let begin = |part, start| StreamEvent::PartStart { choice: 0, part, start };
    let events = [
        StreamEvent::Start { id: "resp_1".into(), model: "m".into(), created: Some(7), extra: Default::default() },
        begin(0, PartStart::Reasoning),
        delta(0, PartDelta::Text("t".into())),
        delta(0, PartDelta::Signature("s".into())),
        begin(1, PartStart::Text),
        delta(1, PartDelta::Text("a".into())),
        delta(1, PartDelta::Text("b".into())),
        begin(2, PartStart::ToolCall { id: "call_1".into(), name: "f".into() }),
        begin(3, PartStart::ToolCall { id: "call_2".into(), name: "g".into() }),
        delta(3, PartDelta::Arguments("{}".into())),
        delta(2, PartDelta::Arguments("{".into())),
        delta(2, PartDelta::Arguments("}".into())),
        StreamEvent::Finish { choice: 0, reason: FinishReason::ToolCalls },
        StreamEvent::Usage(TokenUsage { input: 1, output: 2, ..TokenUsage::default() }),
        StreamEvent::End,
    ];
    let written = write_stream(&events);
    let named = written.iter().map(|event| {
        let event_data = data(event);
        format!("{} {}", &event.event.as_deref().expect("is named")["response.".len()..], event_data["output_index"])
    });
    let expected = [
        "created null",
        "in_progress null",
        "output_item.added 0",
        "reasoning_summary_part.added 0",
        "reasoning_summary_text.delta 0",
        "output_item.added 1",
        "content_part.added 1",
        "output_text.delta 1",
        "output_text.delta 1",
        "output_item.added 2",
        "output_item.added 3",
        "function_call_arguments.delta 3",
        "function_call_arguments.delta 2",
        "function_call_arguments.delta 2",
        "reasoning_summary_text.done 0",
        "reasoning_summary_part.done 0",
        "output_item.done 0",
        "output_text.done 1",
        "content_part.done 1",
        "output_item.done 1",
        "function_call_arguments.done 2",
        "output_item.done 2",
        "function_call_arguments.done 3",
        "output_item.done 3",
        "completed null",
    ];
    assert_eq!(named.collect::<Vec<_>>(), expected);
    let (output, last) = accumulate(&written);
    assert_eq!(output, last["output"]);
    assert_eq!(last, write_response(&fold(&events)));
    assert_eq!(output[2]["call_id"], "call_1");
}

#[test]
fn an_item_is_done_when_the_next_begins() {
    let events = [
        StreamEvent::PartStart { choice: 0, part: 0, start: PartStart::Text },
        StreamEvent::PartDelta { choice: 0, part: 0, delta: PartDelta::Text("a".into()) },
        StreamEvent::PartEnd { choice: 0, part: 0 },
        StreamEvent::PartStart { choice: 0, part: 1, start: PartStart::ToolCall { id: "c".into(), name: "f".into() } },
        StreamEvent::PartDelta { choice: 0, part: 1, delta: PartDelta::Arguments("{}".into()) },
    ];
    let named: Vec<_> = write_stream(&events).into_iter().filter_map(|event| event.event).collect();
    let at = |name: &str| named.iter().position(|named| named.ends_with(name)).expect("is there");
    assert!(at("output_item.done") < at("function_call_arguments.delta"));
    assert!(!named.iter().any(|named| named.ends_with("completed")), "a cut stream has no end");
}

#[test]
fn an_error_ends_a_stream() {
    let error = ModelError {
        kind: ModelErrorKind::RateLimit,
        message: "slow".into(),
        code: None,
        param: None,
        extra: Default::default(),
    };
    let mut writer = ResponsesStreamWriter::new();
    let early = writer.write(&StreamEvent::Error(error.clone()));
    let expected =
        json!({"type": "error", "sequence_number": 0, "code": "rate_limit_exceeded", "message": "slow", "param": null});
    assert_eq!(data(&early[0]), expected);
    assert_eq!(writer.write(&StreamEvent::End), []);

    let start = StreamEvent::Start { id: "r".into(), model: "m".into(), created: None, extra: Default::default() };
    let late = write_stream(&[start, StreamEvent::Error(error)]);
    let last = data(&late[2]);
    assert_eq!((&last["type"], &last["response"]["status"]), (&json!("response.failed"), &json!("failed")));
    assert_eq!(last["response"]["error"], json!({"code": "rate_limit_exceeded", "message": "slow"}));
    for events in [early, late] {
        let read = read_stream(&events);
        let Some(StreamEvent::Error(error)) = read.last() else { panic!("is an error") };
        assert_eq!((error.kind, error.message.as_str()), (ModelErrorKind::RateLimit, "slow"));
    }
    let nested = read_stream(&[SseEvent {
        event: None,
        data: json!({"error": {"message": "m", "type": "server_error"}}).to_string(),
    }]);
    assert!(matches!(&nested[0], StreamEvent::Error(error) if error.message == "m"));
}

#[test]
fn a_cut_stream_has_no_end() {
    let mut events = served(&full());
    events.pop();
    assert!(!read_stream(&events).contains(&StreamEvent::End));
}

#[test]
fn servers_that_leave_events_out_are_understood() {
    let body = &responses()[1];
    let whole = read_response(body).expect("reads");
    let all = served(body);
    let without = |names: &[&str]| {
        let kept = all.iter().filter(|event| {
            !names.iter().any(|name| event.event.as_deref().is_some_and(|named| named.ends_with(name)))
        });
        kept.cloned().collect::<Vec<_>>()
    };
    let table: [&[&str]; 6] = [
        &["delta"],
        &["content_part.added", "content_part.done"],
        &["delta", "content_part.added", "content_part.done", "text.done"],
        &["output_item.added"],
        &["created", "in_progress"],
        &["added", "delta", "done"],
    ];
    for names in table {
        let mut folded = fold(&read_stream(&without(names)));
        folded.extra = whole.extra.clone();
        if names[0] != "created" {
            assert_eq!(write_response(&folded)["output"][0]["content"], body["output"][0]["content"], "{names:?}");
        }
        assert_eq!(folded.choices[0].parts.len(), 1, "{names:?}");
        assert!(matches!(folded.choices[0].parts[0], ContentPart::Text(_)));
    }
}

#[test]
fn reasoning_of_open_models_is_its_content() {
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "raw"}]});
    let body = json!({"id": "resp_1", "status": "completed", "output": [item]});
    let delta = |delta: &str| json!({"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0, "delta": delta});
    let events: Vec<_> = [
        json!({"type": "response.created", "response": {"id": "resp_1", "output": []}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1", "summary": []}}),
        delta("r"), delta("aw"),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": body}),
    ].into_iter().map(sse).collect();
    let folded = fold(&read_stream(&events));
    assert_eq!(folded.choices[0].parts, read_response(&body).expect("reads").choices[0].parts);
    assert_eq!(write_response(&folded)["output"], body["output"]);
}

#[test]
fn what_is_no_event_is_refused() {
    let push = |data: &str| ResponsesStreamReader::default().push(&SseEvent { event: None, data: data.into() });
    for bad in ["{", "[]", "{}", "{\"type\":\"response.output_item.added\"}"] {
        assert!(matches!(push(bad), Err(DialectError::Stream(_))), "{bad}");
    }
    for unknown in ["", "[DONE]", "{\"type\":\"keepalive\"}"] {
        assert_eq!(push(unknown), Ok(vec![]));
    }
    let mut reader = ResponsesStreamReader::default();
    let added = |index: usize| {
        sse(json!({"type": "response.output_item.added", "output_index": index, "item": {"type": "x_call"}}))
    };
    let refused = (0..5_000).find_map(|index| reader.push(&added(index)).err());
    assert!(matches!(refused, Some(DialectError::TooMany { .. })));
}

#[test]
fn log_probabilities_go_with_the_text() {
    let token = |token: &str| json!({"token": token, "logprob": -0.5, "bytes": null, "top_logprobs": []});
    let logprobs =
        |name: &str| StreamEvent::Logprobs { choice: 0, logprobs: json!({"content": [token(name)], "refusal": null}) };
    let delta = |text: &str| StreamEvent::PartDelta { choice: 0, part: 0, delta: PartDelta::Text(text.into()) };
    let start = StreamEvent::PartStart { choice: 0, part: 0, start: PartStart::Text };
    let written = write_stream(&[start, logprobs("a"), delta("a"), delta("b"), logprobs("b"), StreamEvent::End]);
    let deltas: Vec<_> =
        written.iter().map(data).filter(|event| event["type"] == "response.output_text.delta").collect();
    assert_eq!(deltas[0]["logprobs"], json!([token("a")]));
    let (output, _) = accumulate(&written);
    assert_eq!(output[0]["content"][0]["logprobs"], json!([token("a"), token("b")]));
}

#[test]
fn messages_of_unusual_shapes_are_read_as_in_a_whole_response() {
    let content = json!([{"type": "output_text", "text": "b", "annotations": []}]);
    let items = [
        json!({"type": "message", "role": "assistant", "content": "b"}),
        json!({"role": "assistant", "content": content}),
        json!({"type": null, "role": "assistant", "content": content}),
    ];
    for item in items {
        let whole = json!({"id": "r", "model": "m", "status": "completed", "output": [item]});
        let created = json!({"type": "response.created", "response": {"id": "r", "model": "m", "output": []}});
        let completed = json!({"type": "response.completed", "response": whole});
        let added = json!({"type": "response.output_item.added", "output_index": 0, "item": item});
        let done = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
        let expected = write_response(&read_response(&whole).expect("reads"))["output"].clone();
        assert_eq!(expected[0]["content"][0]["text"], "b");
        for between in [vec![], vec![done.clone()], vec![added, done]] {
            let events: Vec<SseEvent> =
                [vec![created.clone()], between, vec![completed.clone()]].concat().into_iter().map(sse).collect();
            assert_eq!(write_response(&fold(&read_stream(&events)))["output"], expected);
        }
    }
}

/// The arguments of the call were added to the reasoning, which no fold takes.
#[test]
fn an_item_that_ends_as_another_adds_nothing() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"});
    for (begun, ended) in [(&reasoning, &call), (&call, &reasoning)] {
        let events = [
            json!({"type": "response.created", "response": {"id": "r", "model": "m", "output": []}}),
            json!({"type": "response.output_item.added", "output_index": 0, "item": begun}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": ended}),
            json!({"type": "response.completed", "response": {"id": "r", "model": "m", "status": "completed"}}),
        ];
        let read = fold(&read_stream(&events.map(sse)));
        let whole = json!({"id": "r", "model": "m", "status": "completed", "output": [begun]});
        assert_eq!(read.choices[0].parts, read_response(&whole).expect("reads").choices[0].parts);
    }
}
