//! Tests of streams.

use serde_json::{Value, json};

use super::{chunk, folded, joined, read_stream, sse, write_stream};
use crate::{GeminiStreamReader, GeminiStreamWriter, read_response, write_response};
use assay_node_dialects::form::{ContentPart, Extra, FinishReason, ModelErrorKind, PartDelta, PartStart, StreamEvent};
use assay_node_dialects::{Dialect, DialectError, SseEvent};

fn with_usage(mut body: Value) -> Value {
    body["usageMetadata"] =
        json!({ "promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 9, "thoughtsTokenCount": 4 });
    body
}

fn streams() -> Vec<Vec<Value>> {
    let part = |part: Value| chunk(json!([part]), json!({}));
    let end = |parts: Value| with_usage(chunk(parts, json!({ "finishReason": "STOP" })));
    vec![
        vec![
            part(json!({ "text": "Hel" })),
            part(json!({ "text": "lo" })),
            end(json!([{ "text": "" , "thoughtSignature": "c2ln" }])),
        ],
        vec![
            part(json!({ "text": "Let me", "thought": true })),
            part(json!({ "text": " see", "thought": true })),
            part(json!({ "text": "Yes" })),
            end(json!([
                { "functionCall": { "name": "a", "args": { "x": [1, "ü"] } }, "thoughtSignature": "c2ln" },
                { "functionCall": { "id": "own", "name": "b", "args": {} } }])),
        ],
        vec![
            part(json!({ "executableCode": { "code": "1" } })),
            part(json!({ "inlineData": { "mimeType": "image/png", "data": "AA==" } })),
            end(json!([{ "text": "done" }])),
        ],
    ]
}

#[test]
fn a_folded_stream_is_the_whole_answer() {
    for stream in streams() {
        let events = read_stream(&stream);
        assert_eq!(events.last(), Some(&StreamEvent::End));
        let mut whole = stream[0].clone();
        let parts: Vec<Value> = stream
            .iter()
            .flat_map(|body| body["candidates"][0]["content"]["parts"].as_array().expect("parts").clone())
            .collect();
        whole["candidates"][0]["content"]["parts"] = json!(parts);
        whole["candidates"][0]["finishReason"] = json!("STOP");
        let response = joined(read_response(&with_usage(whole)).expect("reads"));
        assert_eq!(folded(&events), response);

        let written = write_stream(&events);
        assert_eq!(folded(&read_stream(&written)), response, "and after it was written again");
        assert!(written.iter().all(|body| body["responseId"] == "r1" && body["modelVersion"] == "gemini-2.5-pro"));
        let reasons = written.iter().filter(|body| body["candidates"][0]["finishReason"] == "STOP");
        assert_eq!(reasons.count(), 1, "only the last answer has a reason to finish");
    }
}

#[test]
fn parts_are_streamed_one_after_the_other() {
    let stream = &streams()[1];
    let events = read_stream(stream);
    let starts: Vec<(usize, &PartStart)> = events
        .iter()
        .filter_map(|event| match event {
            StreamEvent::PartStart { part, start, .. } => Some((*part, start)),
            _ => None,
        })
        .collect();
    assert!(matches!(
        starts.as_slice(),
        [(0, PartStart::Reasoning), (1, PartStart::Text), (2, PartStart::ToolCall { .. }), (3, PartStart::ToolCall { id, .. })] if id == "own"
    ));
    let open = events.iter().fold(0, |open, event| match event {
        StreamEvent::PartStart { .. } => {
            assert_eq!(open, 0, "a part ends before the next starts");
            1
        }
        StreamEvent::PartEnd { .. } => open - 1,
        _ => open,
    });
    assert_eq!(open, 0);
    let finish = StreamEvent::Finish { choice: 0, reason: FinishReason::ToolCalls };
    let at = events.iter().position(|event| *event == finish).expect("a finish");
    assert!(matches!(&events[at..], [_, StreamEvent::Usage(usage), StreamEvent::End] if usage.output == 6));
}

#[test]
fn calls_of_a_stream_have_the_ids_of_the_whole_answer() {
    let stream = &streams()[1];
    let whole = chunk(stream[3]["candidates"][0]["content"]["parts"].clone(), json!({}));
    let response = read_response(&whole).expect("reads");
    let ContentPart::ToolCall(call) = &response.choices[0].parts[0] else { panic!("a call") };
    let ids = read_stream(stream).into_iter().find_map(|event| match event {
        StreamEvent::PartStart { start: PartStart::ToolCall { id, .. }, .. } => Some(id),
        _ => None,
    });
    assert_eq!(ids.as_deref(), Some(call.id.as_str()));
}

#[test]
fn a_stream_without_a_reason_to_finish_was_cut() {
    for stream in streams() {
        let events = read_stream(&stream[..2]);
        assert!(!events.contains(&StreamEvent::End));
        assert!(!events.iter().any(|event| matches!(event, StreamEvent::Finish { .. })));
        assert!(matches!(events.last(), Some(StreamEvent::PartEnd { .. })));
        let written = write_stream(&events);
        assert!(written.iter().all(|body| body["candidates"][0].get("finishReason").is_none()));
    }
    assert_eq!(read_stream(&[]), []);
}

#[test]
fn candidates_are_streamed_side_by_side() {
    let body = |one: Value, other: Value| {
        json!({ "candidates": [
            { "content": { "parts": [one], "role": "model" }, "index": 0, "finishReason": "STOP" },
            { "content": { "parts": [other], "role": "model" }, "index": 1, "finishReason": "MAX_TOKENS" }] })
    };
    let events = read_stream(&[
        body(json!({ "text": "a" }), json!({ "text": "b" })),
        body(json!({ "text": "A" }), json!({ "text": "B" })),
    ]);
    let response = folded(&events);
    assert_eq!(response.choices[0].parts, [super::text("aA")]);
    assert_eq!(response.choices[1].parts, [super::text("bB")]);
    assert_eq!(response.choices[1].finish, Some(FinishReason::Length));
    assert_eq!(folded(&read_stream(&write_stream(&events))), response);
    // the second candidate stays without a reason
    let cut = json!({ "candidates": [{ "index": 0, "finishReason": "STOP" }, { "index": 1, "content": {} }] });
    assert!(!read_stream(&[cut]).contains(&StreamEvent::End));
}

#[test]
fn a_blocked_prompt_is_filtered_without_a_part() {
    let body = json!({ "promptFeedback": { "blockReason": "SAFETY" }, "responseId": "r1",
        "usageMetadata": { "promptTokenCount": 3, "candidatesTokenCount": 0, "totalTokenCount": 3 } });
    let events = read_stream(std::slice::from_ref(&body));
    assert!(matches!(
        events.as_slice(),
        [
            StreamEvent::Start { .. },
            StreamEvent::Finish { reason: FinishReason::ContentFilter, .. },
            StreamEvent::Usage(_),
            StreamEvent::End
        ]
    ));
    assert_eq!(write_stream(&events), [body]);
}

#[test]
fn fields_of_candidates_are_kept_with_the_last_part() {
    let stream = [
        chunk(json!([{ "text": "a", "new": 1 }]), json!({ "safetyRatings": [1] })),
        chunk(
            json!([{ "text": "b" }]),
            json!({ "finishReason": "STOP", "safetyRatings": [2], "groundingMetadata": { "x": 1 } }),
        ),
    ];
    let events = read_stream(&stream);
    let last = write_stream(&events).pop().expect("a last answer");
    assert_eq!(last["candidates"][0]["safetyRatings"], json!([2]));
    assert_eq!(last["candidates"][0]["groundingMetadata"], json!({ "x": 1 }));
    let whole = write_response(&folded(&events));
    assert_eq!(whole["candidates"][0]["groundingMetadata"], json!({ "x": 1 }));
    assert_eq!(whole["candidates"][0]["content"]["parts"], json!([{ "text": "ab", "new": 1 }]));
}

#[test]
fn probabilities_are_streamed() {
    let result = json!({ "topCandidates": [{ "candidates": [] }], "chosenCandidates": [{ "token": "a", "logProbability": -0.5 }] });
    let events =
        read_stream(&[chunk(json!([{ "text": "a" }]), json!({ "finishReason": "STOP", "logprobsResult": result }))]);
    let written = write_stream(&events);
    assert!(written.iter().any(|body| body["candidates"][0]["logprobsResult"] == result), "{written:?}");
}

#[test]
fn an_error_ends_a_stream() {
    let error = json!({ "error": { "code": 503, "message": "busy", "status": "UNAVAILABLE" } });
    let mut reader = GeminiStreamReader::default();
    reader.push(&sse(&streams()[0][0])).expect("reads");
    let events = reader.push(&sse(&error)).expect("reads");
    assert!(matches!(events.as_slice(), [StreamEvent::Error(error)] if error.kind == ModelErrorKind::Overloaded));
    assert_eq!(reader.push(&sse(&streams()[0][1])), Ok(Vec::new()));
    assert_eq!(reader.finish(), []);

    let mut writer = GeminiStreamWriter::new();
    assert_eq!(writer.write(&events[0]), [sse(&error)]);
    assert_eq!(writer.write(&StreamEvent::End), []);
}

#[test]
fn what_is_no_json_is_an_error_of_the_stream() {
    let mut reader = GeminiStreamReader::default();
    let event = |data: &str| SseEvent { event: None, data: data.to_owned() };
    assert!(matches!(reader.push(&event("{")), Err(DialectError::Stream(_))));
    assert!(matches!(reader.push(&event("[]")), Err(DialectError::Malformed { .. })));
    assert_eq!(reader.push(&event("[DONE]")), Ok(Vec::new()));
    assert_eq!(reader.push(&event(" ")), Ok(Vec::new()));
}

/// Calls as chat completions stream them: pieces of two calls, ended together.
#[test]
fn a_call_is_written_when_it_is_whole() {
    let start = |part: usize, name: &str| StreamEvent::PartStart {
        choice: 0,
        part,
        start: PartStart::ToolCall { id: format!("call_{part}"), name: name.to_owned() },
    };
    let delta = |part: usize, delta: PartDelta| StreamEvent::PartDelta { choice: 0, part, delta };
    let arguments = |text: &str| PartDelta::Arguments(text.to_owned());
    let written = write_stream(&[
        StreamEvent::Start { id: "c".to_owned(), model: "gpt".to_owned(), created: Some(1), extra: Extra::default() },
        start(0, "a"),
        delta(0, arguments("{\"x\"")),
        start(1, "b"),
        delta(1, arguments("")),
        delta(0, arguments(":1}")),
        delta(0, PartDelta::Signature("si".to_owned())),
        delta(0, PartDelta::Signature("gn".to_owned())),
        delta(1, PartDelta::Foreign(Extra::of(Dialect::Chat, json!({ "x": 1 }).as_object().expect("fields").clone()))),
        StreamEvent::PartEnd { choice: 0, part: 0 },
        StreamEvent::PartEnd { choice: 0, part: 1 },
        StreamEvent::Finish { choice: 0, reason: FinishReason::ToolCalls },
        StreamEvent::End,
    ]);
    let parts: Vec<&Value> = written.iter().map(|body| &body["candidates"][0]["content"]["parts"][0]).collect();
    assert_eq!(
        parts,
        [
            &json!({ "functionCall": { "id": "call_0", "name": "a", "args": { "x": 1 } }, "thoughtSignature": "sign" }),
            &json!({ "functionCall": { "id": "call_1", "name": "b", "args": {} } }),
            &Value::Null,
        ]
    );
}

/// Some servers of chat completions end their stream without a reason to finish, which is what ends the parts.
#[test]
fn calls_that_nothing_ended_are_in_the_last_answer() {
    let start = |part: usize, name: &str| StreamEvent::PartStart {
        choice: 0,
        part,
        start: PartStart::ToolCall { id: format!("call_{part}"), name: name.to_owned() },
    };
    let delta = |part: usize, delta: PartDelta| StreamEvent::PartDelta { choice: 0, part, delta };
    let written = write_stream(&[
        start(0, "a"),
        delta(0, PartDelta::Arguments("{\"x\":1}".to_owned())),
        start(1, "b"),
        delta(1, PartDelta::Signature("sign".to_owned())),
        StreamEvent::End,
    ]);
    let [last] = written.as_slice() else { panic!("one answer") };
    let calls = json!([
        { "functionCall": { "id": "call_0", "name": "a", "args": { "x": 1 } } },
        { "functionCall": { "id": "call_1", "name": "b", "args": {} }, "thoughtSignature": "sign" },
    ]);
    assert_eq!(last["candidates"][0]["content"]["parts"], calls);
}

#[test]
fn a_malformed_call_is_the_reason_to_finish() {
    let part = 0;
    let written = write_stream(&[
        StreamEvent::PartStart {
            choice: 0,
            part,
            start: PartStart::ToolCall { id: "c".to_owned(), name: "a".to_owned() },
        },
        StreamEvent::PartDelta { choice: 0, part, delta: PartDelta::Arguments("{".to_owned()) },
        StreamEvent::PartEnd { choice: 0, part },
        StreamEvent::Finish { choice: 0, reason: FinishReason::ToolCalls },
        StreamEvent::End,
    ]);
    let [last] = written.as_slice() else { panic!("one answer") };
    assert_eq!(last["candidates"][0]["finishReason"], "MALFORMED_FUNCTION_CALL");
}

#[test]
fn held_bytes_have_a_bound() {
    let mut writer = GeminiStreamWriter::new();
    let start = PartStart::ToolCall { id: "c".to_owned(), name: "a".to_owned() };
    writer.write(&StreamEvent::PartStart { choice: 0, part: 0, start });
    let delta = PartDelta::Arguments(" ".repeat(super::super::stream_writer::HELD_BYTES_MAX / 2));
    let event = StreamEvent::PartDelta { choice: 0, part: 0, delta };
    assert_eq!((writer.write(&event), writer.write(&event)), (Vec::new(), Vec::new()));
    let written = writer.write(&event);
    assert!(written[0].data.contains("INTERNAL"), "{written:?}");
    assert_eq!(writer.write(&StreamEvent::End), []);
}
