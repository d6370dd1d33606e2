//! Properties of reading and writing.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::Map;

use super::*;
use assay_node_dialects::form::{
    ContentPart, FinishReason, ModelChoice, ReasoningPart, TextPart, TokenUsage, ToolCallPart,
};
use assay_node_dialects::form::{MediaSource, unfold};

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z\u{e9}\n ]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec(("[a-z]{1,4}", inner), 0..3).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Members with names that no part of a body knows.
fn unknown() -> impl Strategy<Value = Vec<(String, Value)>> {
    vec(("x_[a-z]{1,4}", any_value()), 0..2)
}

fn with(value: Value, unknown: Vec<(String, Value)>) -> Value {
    let mut map = value.as_object().expect("an object").clone();
    map.extend(unknown);
    Value::Object(map)
}

/// An object of required and optional members, and unknown ones.
fn object(required: BoxedStrategy<Value>, optional: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let optional: Vec<_> = optional
        .into_iter()
        .map(|(name, value)| option::of(value.prop_map(move |value| (name.to_owned(), value))))
        .collect();
    (required, optional, unknown())
        .prop_map(|(required, optional, unknown)| {
            with(with(required, optional.into_iter().flatten().collect()), unknown)
        })
        .boxed()
}

fn text() -> BoxedStrategy<Value> {
    "[a-z\u{65e5} ]{1,6}".prop_map(Value::from).boxed()
}

fn cache() -> BoxedStrategy<Value> {
    Just(json!({ "type": "ephemeral" })).boxed()
}

fn part() -> BoxedStrategy<Value> {
    let nested =
        |name: &'static str, of: Value| unknown().prop_map(move |unknown| json!({ name: with(of.clone(), unknown) }));
    let typed = |kind: &'static str, rest: BoxedStrategy<Value>| {
        let typed = rest.prop_map(move |rest| {
            with(json!({ "type": kind }), rest.as_object().expect("an object").clone().into_iter().collect())
        });
        object(typed.boxed(), vec![("cache_control", cache())])
    };
    prop_oneof![
        typed("text", text().prop_map(|text| json!({ "text": text })).boxed()),
        typed("image_url", nested("image_url", json!({ "url": "data:image/png;base64,AA", "detail": "high" })).boxed()),
        typed("image_url", nested("image_url", json!({ "url": "https://a.example/a" })).boxed()),
        typed("input_audio", nested("input_audio", json!({ "data": "AA", "format": "mp3" })).boxed()),
        typed("file", nested("file", json!({ "file_id": "f" })).boxed()),
        typed("file", nested("file", json!({ "file_data": "data:text/plain;base64,AA", "filename": "a" })).boxed()),
        typed("video_url", nested("video_url", json!({ "url": "https://a.example/a" })).boxed()),
    ]
    .boxed()
}

fn content() -> BoxedStrategy<Value> {
    prop_oneof![text(), vec(part(), 2..4).prop_map(Value::from)].boxed()
}

fn tool_call() -> BoxedStrategy<Value> {
    let function = (text(), text(), unknown())
        .prop_map(|(name, arguments, unknown)| with(json!({ "name": name, "arguments": arguments }), unknown));
    let required =
        (text(), function).prop_map(|(id, function)| json!({ "id": id, "type": "function", "function": function }));
    let signature = Just(json!({ "google": { "thought_signature": "s" } })).boxed();
    object(required.boxed(), vec![("extra_content", signature), ("cache_control", cache())])
}

fn reasoning() -> BoxedStrategy<Value> {
    let entry = object(text().prop_map(|text| json!({ "content": text })).boxed(), vec![("id", text())]);
    prop_oneof![text(), vec(entry, 1..3).prop_map(Value::from)].boxed()
}

fn assistant() -> BoxedStrategy<Value> {
    let required = content().prop_map(|content| json!({ "role": "assistant", "content": content })).boxed();
    let calls = vec(tool_call(), 1..3).prop_map(Value::from).boxed();
    object(required, vec![("tool_calls", calls), ("reasoning", reasoning()), ("refusal", text()), ("name", text())])
}

fn message() -> BoxedStrategy<Value> {
    let plain = (prop_oneof![Just("system"), Just("developer"), Just("user")], content());
    let plain = plain.prop_map(|(role, content)| json!({ "role": role, "content": content })).boxed();
    let result = (text(), content())
        .prop_map(|(id, content)| json!({ "role": "tool", "tool_call_id": id, "content": content }))
        .boxed();
    prop_oneof![object(plain, vec![("name", text())]), object(result, vec![("cache_control", cache())]), assistant()]
        .boxed()
}

fn tool() -> BoxedStrategy<Value> {
    let function = object(
        text().prop_map(|name| json!({ "name": name })).boxed(),
        vec![
            ("description", text()),
            ("parameters", any_value().prop_map(|value| json!({ "a": value })).boxed()),
            ("strict", any::<bool>().prop_map(Value::from).boxed()),
        ],
    );
    let required = function.prop_map(|function| json!({ "type": "function", "function": function })).boxed();
    object(required, vec![("cache_control", cache())])
}

fn request() -> BoxedStrategy<Value> {
    let required = (text(), vec(message(), 0..4))
        .prop_map(|(model, messages)| json!({ "model": model, "messages": messages }))
        .boxed();
    let number = || any::<u16>().prop_map(Value::from).boxed();
    let format = unknown().prop_map(
        |unknown| json!({ "type": "json_schema", "json_schema": with(json!({ "name": "a", "schema": {} }), unknown) }),
    );
    object(
        required,
        vec![
            ("tools", vec(tool(), 1..3).prop_map(Value::from).boxed()),
            (
                "tool_choice",
                prop_oneof![Just(json!("auto")), Just(json!({ "type": "function", "function": { "name": "f" } }))]
                    .boxed(),
            ),
            ("response_format", format.boxed()),
            ("temperature", number()),
            ("top_k", number()),
            ("seed", number()),
            ("max_completion_tokens", number()),
            ("n", number()),
            ("stop", vec(text(), 1..3).prop_map(Value::from).boxed()),
            ("reasoning_effort", text()),
            ("user", text()),
            ("metadata", Just(json!({ "a": "b" })).boxed()),
        ],
    )
}

fn answer() -> BoxedStrategy<Value> {
    let message = (text(), option::of(vec(tool_call(), 1..3)), option::of(reasoning()), unknown());
    let message = message.prop_map(|(content, calls, reasoning, unknown)| {
        let mut message = json!({ "role": "assistant", "content": content });
        for (name, value) in [("tool_calls", calls.map(Value::from)), ("reasoning", reasoning)] {
            if let Some(value) = value {
                message[name] = value;
            }
        }
        with(message, unknown)
    });
    let finish = prop_oneof![Just("stop"), Just("length"), Just("tool_calls"), Just("content_filter"), Just("other")];
    let choice = (message, finish, unknown()).prop_map(|(message, finish, unknown)| (message, finish, unknown));
    let usage = (any::<u16>(), any::<u16>(), option::of(any::<u16>()), unknown()).prop_map(|(input, output, cached, unknown)| {
        let mut usage = json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": u32::from(input) + u32::from(output) });
        if let Some(cached) = cached {
            usage["prompt_tokens_details"] = json!({ "cached_tokens": cached, "audio_tokens": 0 });
        }
        with(usage, unknown)
    });
    (text(), vec(choice, 0..3), usage, unknown()).prop_map(|(id, choices, usage, unknown)| {
        let choices: Vec<Value> = choices.into_iter().enumerate().map(|(index, (message, finish, unknown))| {
            with(json!({ "index": index, "message": message, "logprobs": null, "finish_reason": finish }), unknown)
        }).collect();
        with(json!({ "id": id, "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage }), unknown)
    }).boxed()
}

/// Answers that chat can say: reasoning, at most one text and refusal, images, calls.
fn any_response() -> impl Strategy<Value = ModelResponse> {
    let text = || "[a-z]{1,6}";
    let reasoning = (text(), option::of(text())).prop_map(|(text, signature)| {
        ContentPart::Reasoning(ReasoningPart { text, signature, ..ReasoningPart::default() })
    });
    let texts = (text(), option::of(text()))
        .prop_map(|(text, signature)| ContentPart::Text(TextPart { text, signature, ..TextPart::default() }));
    let refusal = text().prop_map(|text| ContentPart::Refusal(TextPart { text, ..TextPart::default() }));
    let call = (text(), text(), text(), option::of(text())).prop_map(|(id, name, arguments, signature)| {
        ContentPart::ToolCall(ToolCallPart { id, name, arguments, signature, cache: None, extra: Default::default() })
    });
    let parts = (vec(reasoning, 0..2), option::of(texts), option::of(refusal), vec(call, 0..3));
    let parts = parts.prop_map(|(reasoning, text, refusal, calls)| {
        reasoning.into_iter().chain(text).chain(refusal).chain(calls).collect::<Vec<_>>()
    });
    let usage = (any::<u32>(), any::<u32>(), option::of(any::<u32>()), option::of(any::<u32>())).prop_map(
        |(input, output, cached, reasoning)| TokenUsage {
            input: input.into(),
            output: output.into(),
            cached_input: cached.map(u64::from),
            reasoning: reasoning.map(u64::from),
            ..TokenUsage::default()
        },
    );
    (text(), vec((parts, any::<bool>()), 1..3), option::of(usage)).prop_map(|(id, choices, usage)| {
        let choices = choices.into_iter().enumerate().map(|(index, (parts, is_cut))| {
            let has_calls = parts.iter().any(|part| matches!(part, ContentPart::ToolCall(_)));
            let finish = if is_cut {
                FinishReason::Length
            } else if has_calls {
                FinishReason::ToolCalls
            } else {
                FinishReason::Stop
            };
            ModelChoice { index: index as u64, parts, finish: Some(finish), logprobs: None, extra: Default::default() }
        });
        ModelResponse {
            id,
            model: "m".into(),
            created: Some(1),
            choices: choices.collect(),
            usage,
            extra: Default::default(),
        }
    })
}

/// Any JSON with the names and values that the readers look for.
fn lookalike() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec![
        "model",
        "messages",
        "role",
        "content",
        "type",
        "text",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "id",
        "tools",
        "choices",
        "message",
        "delta",
        "index",
        "finish_reason",
        "usage",
        "prompt_tokens",
        "reasoning",
        "error",
        "image_url",
        "url",
        "file",
        "file_data",
        "tool_choice",
        "extra_content",
        "google",
        "thought_signature",
        "response_format",
        "json_schema",
        "stream_options",
        "function_call",
        "stop",
        "prompt_tokens_details",
        "custom",
    ]);
    let word = prop::sample::select(vec![
        "user",
        "assistant",
        "tool",
        "text",
        "image_url",
        "function",
        "json_schema",
        "data:a;base64,",
        "",
        "thinking",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.prop_map(Value::from)
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((name.clone(), inner), 0..6).prop_map(|members| Value::Object(
                members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>()
            )),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_request_survives(body in request()) {
        prop_assert_eq!(rewritten(&body), body);
    }

    #[test]
    fn an_answer_survives(body in answer()) {
        prop_assert_eq!(write_response(&read_response(&body).expect("reads")), body);
    }

    #[test]
    fn a_response_survives_its_body_and_its_stream(response in any_response()) {
        let body = write_response(&response);
        prop_assert_eq!(&read_response(&body).expect("reads"), &response);
        prop_assert_eq!(write_response(&folded(&streamed(&unfold(&response)))), body);
    }

    #[test]
    fn no_body_makes_a_reader_panic(body in lookalike()) {
        if let Ok(request) = read_request(&body) {
            let _ = write_request(&request, &WriteOptions { is_reasoning_model: true, ..WriteOptions::default() });
        }
        if let Ok(response) = read_response(&body) {
            write_response(&response);
        }
        write_error(400, &read_error(400, &body));
        let mut adapted = body.clone();
        let options = WriteOptions { takes_stream_options: true, schema_as_tool: true, refuses_cache_control: true, ..WriteOptions::default() };
        let _ = adapt(&mut adapted, &options);
        let mut reader = ChatStreamReader::default();
        for _ in 0..2 {
            let _ = reader.push(&SseEvent::of_data(json!({ "choices": [body.clone(), { "delta": body.clone() }] }).to_string()));
            let _ = reader.push(&SseEvent::of_data(body.to_string()));
        }
        reader.finish();
    }

    #[test]
    fn a_source_survives(url in "(data:)?[a-z/]{0,5}(;base64,)?[a-zA-Z;,]{0,6}") {
        let source = parts::source_of(url.clone());
        let is_plain = !matches!(&source, MediaSource::Base64 { media_type, .. } if !url.starts_with(&format!("data:{media_type};base64,")));
        prop_assert!(!is_plain || parts::url_of(&source) == Some(url));
    }
}
