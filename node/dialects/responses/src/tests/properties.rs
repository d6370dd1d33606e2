//! Properties of all bodies.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::{
    ResponsesStreamReader, failure, read_error, read_request, read_response, refuse_stateful, write_error,
    write_request, write_response,
};
use super::accumulator::accumulate;
use super::normal::{normal_request, normal_response};
use super::streams::served;
use super::{call, fold, read_stream, write_stream};
use assay_node_dialects::form::{
    ContentPart, FinishReason, ModelChoice, ModelResponse, PartDelta, PartStart, ReasoningPart, StreamEvent, TextPart,
    TokenUsage,
};
use assay_node_dialects::{SseEvent, WriteOptions};

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z ü\n]{1,8}"]
}

fn some_text() -> impl Strategy<Value = String> {
    "[a-zü]{1,6}"
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any_text().prop_map(Value::from)
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::hash_map("[a-z]{1,3}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// An object with unknown fields beside the known ones.
fn with_unknown(known: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    (known, proptest::collection::hash_map("x_[a-c]", any_json(), 0..2)).prop_map(|(mut known, unknown)| {
        known.as_object_mut().expect("is an object").extend(unknown);
        known
    })
}

fn input_part() -> impl Strategy<Value = Value> {
    with_unknown(prop_oneof![
        any_text().prop_map(|text| json!({"type": "input_text", "text": text})),
        some_text().prop_map(|id| json!({"type": "input_image", "image_url": format!("https://{id}"), "detail": "auto"})),
        some_text().prop_map(|data| json!({"type": "input_image", "image_url": format!("data:image/png;base64,{data}")})),
        some_text().prop_map(|id| json!({"type": "input_image", "file_id": id, "image_url": null})),
        (some_text(), any_text()).prop_map(|(data, name)| json!({"type": "input_file", "filename": name, "file_data": format!("data:text/csv;base64,{data}")})),
        some_text().prop_map(|id| json!({"type": "input_file", "file_id": id, "filename": null})),
        some_text().prop_map(|data| json!({"type": "input_audio", "input_audio": {"data": data, "format": "wav"}})),
        some_text().prop_map(|data| json!({"type": "input_new", "data": data})),
    ])
}

fn output_part() -> impl Strategy<Value = Value> {
    with_unknown(prop_oneof![
        3 => any_text().prop_map(|text| json!({"type": "output_text", "text": text})),
        1 => (any_text(), any_json()).prop_map(|(text, note)| json!({"type": "output_text", "text": text, "annotations": [note]})),
        1 => any_text().prop_map(|text| json!({"type": "refusal", "refusal": text})),
        1 => any_text().prop_map(|text| json!({"type": "output_new", "data": text})),
    ])
}

fn assistant_message() -> impl Strategy<Value = Value> {
    let content = proptest::collection::vec(output_part(), 0..3);
    (content, proptest::option::of(some_text())).prop_map(|(content, id)| {
        let mut message = json!({"type": "message", "role": "assistant", "content": content});
        if let Some(id) = id {
            message["id"] = json!(id);
        }
        message
    })
}

fn made_item() -> impl Strategy<Value = Value> {
    let summary = proptest::collection::vec(any_text(), 0..3).prop_map(|texts| {
        texts.into_iter().map(|text| json!({"type": "summary_text", "text": text})).collect::<Vec<_>>()
    });
    prop_oneof![
        with_unknown((some_text(), summary, proptest::option::of(any_text())).prop_map(|(id, summary, encrypted)| {
            json!({"type": "reasoning", "id": id, "summary": summary, "encrypted_content": encrypted})
        })),
        with_unknown((some_text(), some_text(), any_text()).prop_map(|(id, name, arguments)| {
            json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments})
        })),
        with_unknown(some_text().prop_map(|id| json!({"type": "new_call", "id": id}))),
    ]
}

fn input_item() -> impl Strategy<Value = Value> {
    let parts = || proptest::collection::vec(input_part(), 0..3);
    let role = prop_oneof![Just("user"), Just("system"), Just("developer")];
    prop_oneof![
        with_unknown(
            (role.clone(), parts())
                .prop_map(|(role, content)| json!({"type": "message", "role": role, "content": content}))
        ),
        with_unknown((role, any_text()).prop_map(|(role, content)| json!({"role": role, "content": content}))),
        with_unknown(assistant_message()),
        any_text().prop_map(|text| json!({"role": "assistant", "content": text})),
        made_item(),
        with_unknown(
            (some_text(), any_text())
                .prop_map(|(id, output)| json!({"type": "function_call_output", "call_id": id, "output": output}))
        ),
        (some_text(), proptest::collection::vec(input_part(), 1..3))
            .prop_map(|(id, output)| json!({"type": "function_call_output", "call_id": id, "output": output})),
        with_unknown(some_text().prop_map(|id| json!({"type": "new_call_output", "call_id": id}))),
        some_text().prop_map(|id| json!({"id": id})),
    ]
}

fn request() -> impl Strategy<Value = Value> {
    let tool = prop_oneof![
        with_unknown((some_text(), proptest::option::of(any::<bool>())).prop_map(|(name, strict)| match strict {
            Some(strict) =>
                json!({"type": "function", "name": name, "strict": strict, "parameters": {"type": "object"}}),
            None => json!({"type": "function", "name": name, "description": "d"}),
        })),
        with_unknown(Just(json!({"type": "web_search"}))),
    ];
    let choice = prop_oneof![
        Just(json!("auto")),
        Just(json!("none")),
        Just(json!("required")),
        Just(Value::Null),
        with_unknown(some_text().prop_map(|name| json!({"type": "function", "name": name}))),
        with_unknown(Just(
            json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]})
        )),
    ];
    let format = with_unknown(prop_oneof![
        Just(json!({"type": "text"})),
        Just(json!({"type": "json_object"})),
        Just(json!({"type": "new"})),
        Just(json!({"type": "json_schema", "name": "n", "schema": {"type": "object"}})),
    ]);
    let text = with_unknown(format.prop_map(|format| json!({"format": format})));
    let reasoning = with_unknown(prop_oneof![
        Just(json!({})),
        Just(json!({"effort": "low"})),
        Just(json!({"summary": "auto", "effort": "odd"}))
    ]);
    let items = proptest::collection::vec(input_item(), 0..6);
    let fields = (items, proptest::collection::vec(tool, 0..3), choice, text, reasoning, any::<bool>(), any::<u32>());
    with_unknown(fields.prop_map(|(input, tools, tool_choice, text, reasoning, stream, count)| {
        json!({"model": "m", "input": input, "tools": tools, "tool_choice": tool_choice, "text": text, "reasoning": reasoning,
            "stream": stream, "max_output_tokens": count, "store": stream, "temperature": 0.5})
    }))
}

fn response() -> impl Strategy<Value = Value> {
    let message = assistant_message().prop_map(|mut message| {
        message["id"] = json!(format!("m{}", message["id"].as_str().unwrap_or_default()));
        message
    });
    let items = proptest::collection::vec(prop_oneof![with_unknown(message), made_item()], 0..5);
    let usage = with_unknown((0..9u64, 0..9u64).prop_map(
        |(input, output)| json!({"input_tokens": input, "output_tokens": output, "total_tokens": input + output}),
    ));
    with_unknown(
        (items, usage).prop_map(|(output, usage)| json!({"id": "", "model": "m", "output": output, "usage": usage})),
    )
}

fn form_part() -> impl Strategy<Value = ContentPart> {
    prop_oneof![
        any_text().prop_map(|text| super::text(&text)),
        any_text().prop_map(|text| ContentPart::Refusal(TextPart { text, ..Default::default() })),
        (any_text(), proptest::option::of(some_text()), proptest::option::of(some_text())).prop_map(
            |(text, signature, encrypted)| {
                ContentPart::Reasoning(ReasoningPart { text, signature, encrypted, ..Default::default() })
            }
        ),
        (some_text(), some_text(), any_text())
            .prop_map(|(id, name, arguments)| ContentPart::ToolCall(call(&id, &name, &arguments))),
    ]
}

fn form_response() -> impl Strategy<Value = ModelResponse> {
    let finish = prop_oneof![
        Just(FinishReason::Stop),
        Just(FinishReason::Length),
        Just(FinishReason::ContentFilter),
        Just(FinishReason::ToolCalls)
    ];
    let usage = (0..9u64, 0..9u64, 0..9u64).prop_map(|(input, output, cached)| TokenUsage {
        input,
        output,
        cached_input: Some(cached),
        cache_creation: Some(0),
        reasoning: Some(1),
        ..Default::default()
    });
    (proptest::collection::vec(form_part(), 0..6), finish, proptest::option::of(usage)).prop_map(
        |(parts, finish, usage)| {
            let choice =
                ModelChoice { index: 0, parts, finish: Some(finish), logprobs: None, extra: Default::default() };
            ModelResponse {
                id: "resp_1".into(),
                model: "m".into(),
                created: Some(5),
                choices: vec![choice],
                usage,
                ..Default::default()
            }
        },
    )
}

/// Events of an answer. Parts end at once or only with the stream.
fn events_of(response: &ModelResponse, ends_late: bool) -> Vec<StreamEvent> {
    let mut events = vec![StreamEvent::Start {
        id: response.id.clone(),
        model: response.model.clone(),
        created: response.created,
        extra: response.extra.clone(),
    }];
    let choice = &response.choices[0];
    for (part, content) in choice.parts.iter().enumerate() {
        let (start, deltas) = match content {
            ContentPart::Text(text) => (PartStart::Text, texts(&text.text, PartDelta::Text)),
            ContentPart::Refusal(text) => (PartStart::Refusal, texts(&text.text, PartDelta::Text)),
            ContentPart::ToolCall(call) => (
                PartStart::ToolCall { id: call.id.clone(), name: call.name.clone() },
                texts(&call.arguments, PartDelta::Arguments),
            ),
            ContentPart::Reasoning(reasoning) => {
                let mut deltas = texts(&reasoning.text, PartDelta::Text);
                deltas.extend(reasoning.signature.clone().map(PartDelta::Signature));
                deltas.extend(reasoning.encrypted.clone().map(PartDelta::Encrypted));
                (PartStart::Reasoning, deltas)
            }
            other => (PartStart::Whole(Box::new(other.clone())), vec![]),
        };
        events.push(StreamEvent::PartStart { choice: 0, part, start });
        events.extend(deltas.into_iter().map(|delta| StreamEvent::PartDelta { choice: 0, part, delta }));
        if !ends_late {
            events.push(StreamEvent::PartEnd { choice: 0, part });
        }
    }
    events.extend(choice.finish.clone().map(|reason| StreamEvent::Finish { choice: 0, reason }));
    events.extend(response.usage.clone().map(StreamEvent::Usage));
    events.push(StreamEvent::End);
    events
}

fn texts(text: &str, delta: fn(String) -> PartDelta) -> Vec<PartDelta> {
    text.chars().map(|c| delta(c.to_string())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_request_survives(body in request()) {
        let request = read_request(&body).expect("reads");
        let written = write_request(&request, &WriteOptions::default()).expect("writes").body;
        prop_assert_eq!(normal_request(&written), normal_request(&body));
        let _ = refuse_stateful(&request);
    }

    #[test]
    fn a_response_survives(body in response()) {
        let written = write_response(&read_response(&body).expect("reads"));
        prop_assert_eq!(normal_response(&written), normal_response(&body));
    }

    #[test]
    fn an_answer_survives(response in form_response()) {
        let body = write_response(&response);
        let again = read_response(&body).expect("reads");
        prop_assert_eq!(write_response(&again), body);
        let summary = |response: &ModelResponse| {
            let parts = response.choices[0].parts.iter().map(|part| match part {
                ContentPart::Text(text) => format!("text {}", text.text),
                ContentPart::Refusal(text) => format!("refusal {}", text.text),
                ContentPart::Reasoning(part) => format!("reasoning {} {:?} {:?}", part.text, part.signature, part.encrypted),
                ContentPart::ToolCall(part) => format!("call {} {} {}", part.id, part.name, part.arguments),
                _ => String::new(),
            });
            parts.collect::<Vec<_>>()
        };
        prop_assert_eq!(summary(&again), summary(&response));
        prop_assert_eq!(again.usage, response.usage);
    }

    #[test]
    fn a_stream_is_the_whole_answer(response in form_response(), ends_late in any::<bool>()) {
        let events = events_of(&response, ends_late);
        prop_assert_eq!(&fold(&events), &response);
        let written = write_stream(&events);
        let (output, last) = accumulate(&written);
        prop_assert_eq!(&last, &write_response(&response));
        prop_assert_eq!(&output, &last["output"]);
        prop_assert_eq!(write_response(&fold(&read_stream(&written))), last);
    }

    #[test]
    fn a_stream_of_a_server_is_the_whole_response(mut body in response()) {
        body["status"] = json!("completed");
        let whole = read_response(&body).expect("reads");
        let events = read_stream(&served(&body));
        prop_assert_eq!(write_response(&fold(&events)), write_response(&whole));
        let written = write_stream(&events);
        let (output, last) = accumulate(&written);
        prop_assert_eq!(&last, &write_response(&whole));
        prop_assert_eq!(output, last["output"].clone());
    }

    #[test]
    fn reading_never_panics(body in any_json(), known in request(), other in response(), at in 0usize..10, junk in any_json()) {
        let mut bodies = vec![body];
        for mut broken in [known, other] {
            let fields: &mut Map<String, Value> = broken.as_object_mut().expect("is an object");
            let name = fields.keys().nth(at % fields.len()).expect("is there").clone();
            fields.insert(name, junk.clone());
            bodies.push(broken);
        }
        for body in &bodies {
            let _ = read_request(body).map(|request| write_request(&request, &WriteOptions::default()));
            let _ = read_response(body).map(|response| write_response(&response));
            let _ = (write_error(400, &read_error(400, body)), failure(body));
        }
    }

    #[test]
    fn reading_a_stream_never_panics(picks in proptest::collection::vec((0usize..12, 0u64..3, 0u64..3, any_json(), made_item(), output_part()), 0..12)) {
        let names = ["created", "output_item.added", "output_item.done", "content_part.added", "content_part.done",
            "output_text.delta", "refusal.delta", "function_call_arguments.delta", "reasoning_summary_text.delta",
            "reasoning_text.delta", "output_item.added", "completed"];
        let mut reader = ResponsesStreamReader::default();
        let mut writer = super::ResponsesStreamWriter::new();
        for (pick, index, inner, junk, item, part) in picks {
            let item = if pick == 10 { json!({"type": "message", "content": junk.clone()}) } else { item };
            let event = json!({"type": format!("response.{}", names[pick]), "output_index": index, "content_index": inner,
                "summary_index": inner, "item": item, "part": part, "delta": "d", "response": junk});
            for event in reader.push(&SseEvent { event: None, data: event.to_string() }).unwrap_or_default() {
                writer.write(&event);
            }
        }
        reader.finish();
    }
}
