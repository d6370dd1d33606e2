//! Properties of bodies and answers that are made up.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::again;
use super::fold::{fold, read_all, write_all};
use crate::{
    AnthropicReadOptions, AnthropicStreamReader, AnthropicStreamWriter, read_error, read_request, read_response_with,
    write_request, write_response,
};
use assay_node_dialects::form::{
    ContentPart, Extra, FinishReason, ModelChoice, ModelResponse, PartDelta, PartStart, ReasoningPart, StreamEvent,
    TextPart, TokenUsage, ToolCallPart,
};
use assay_node_dialects::{Dialect, SseEvent, WriteOptions};

/// Names of fields and types that the API has.
const WORDS: [&str; 40] = [
    "type",
    "model",
    "messages",
    "system",
    "role",
    "user",
    "assistant",
    "content",
    "text",
    "image",
    "document",
    "source",
    "base64",
    "media_type",
    "data",
    "url",
    "tool_use",
    "tool_result",
    "tool_use_id",
    "id",
    "name",
    "input",
    "thinking",
    "signature",
    "usage",
    "input_tokens",
    "output_tokens",
    "cache_creation",
    "tools",
    "tool_choice",
    "input_schema",
    "message",
    "delta",
    "index",
    "content_block",
    "text_delta",
    "partial_json",
    "error",
    "output_config",
    "stop_reason",
];
const EVENTS: [&str; 8] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
    "ping",
];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(|number: f64| Value::from(number)),
        "[a-zä\"\\\\ ]{0,6}".prop_map(Value::from),
        proptest::sample::select(&WORDS[..]).prop_map(Value::from),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![4 => proptest::sample::select(&WORDS[..]).prop_map(str::to_owned), 1 => "[a-z]{1,4}"];
    scalar().prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((key.clone(), inner), 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Fields that the API does not have.
fn unknown() -> impl Strategy<Value = Map<String, Value>> {
    vec(("x_[a-z]{1,3}", any_json()), 0..3).prop_map(|fields| fields.into_iter().collect())
}

/// Object with unknown fields and maybe a cache mark.
fn extended(body: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let cache = proptest::option::weighted(0.2, Just(json!({"type": "ephemeral", "ttl": "1h"})));
    (body, unknown(), cache).prop_map(|(body, unknown, cache)| {
        let mut fields = body.as_object().cloned().unwrap_or_default();
        fields.extend(unknown);
        fields.extend(cache.map(|cache| ("cache_control".to_owned(), cache)));
        Value::Object(fields)
    })
}

fn word() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_-]{1,8}"
}

fn any_object() -> impl Strategy<Value = Value> {
    vec((word(), any_json()), 0..3).prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

fn text_block() -> impl Strategy<Value = Value> {
    extended("[ -~ä]{1,8}".prop_map(|text| json!({"type": "text", "text": text})))
}

fn media_block() -> impl Strategy<Value = Value> {
    let source = prop_oneof![
        word().prop_map(|data| json!({"type": "base64", "media_type": "image/png", "data": data})),
        word().prop_map(|url| json!({"type": "url", "url": url})),
        word().prop_map(|id| json!({"type": "file", "file_id": id})),
        word().prop_map(|data| json!({"type": "a_new_source", "data": data})),
    ];
    let source = (source, unknown()).prop_map(|(source, unknown)| {
        let mut fields = source.as_object().cloned().unwrap_or_default();
        fields.extend(unknown);
        Value::Object(fields)
    });
    let kind = prop_oneof![Just("image"), Just("document")];
    extended((kind, source).prop_map(|(kind, source)| json!({"type": kind, "source": source})))
}

fn other_block() -> impl Strategy<Value = Value> {
    extended(word().prop_map(|id| json!({"type": "container_upload", "file_id": id})))
}

fn call_block() -> impl Strategy<Value = Value> {
    let call = (word(), word(), any_object());
    extended(call.prop_map(|(id, name, input)| json!({"type": "tool_use", "id": id, "name": name, "input": input})))
}

fn thinking_block() -> impl Strategy<Value = Value> {
    prop_oneof![
        (word(), word()).prop_map(|(text, sig)| json!({"type": "thinking", "thinking": text, "signature": sig})),
        word().prop_map(|data| json!({"type": "redacted_thinking", "data": data})),
    ]
}

fn result_block() -> impl Strategy<Value = Value> {
    let content = vec(prop_oneof![text_block(), media_block(), other_block()], 0..3);
    let result = (word(), content, any::<bool>()).prop_map(|(id, content, is_error)| {
        let mut block = json!({"type": "tool_result", "tool_use_id": id});
        if !content.is_empty() {
            block["content"] = lone(content);
        }
        if is_error {
            block["is_error"] = true.into();
        }
        block
    });
    extended(result)
}

/// Blocks as they are written: one plain text is a string.
fn lone(blocks: Vec<Value>) -> Value {
    match blocks.as_slice() {
        [block] if block["type"] == "text" && block.as_object().is_some_and(|fields| fields.len() == 2) => {
            block["text"].clone()
        }
        _ => Value::Array(blocks),
    }
}

/// Turns of user and assistant, in which results of tools come first.
fn messages() -> impl Strategy<Value = Vec<Value>> {
    let user = (vec(result_block(), 0..3), vec(prop_oneof![text_block(), media_block(), other_block()], 1..3))
        .prop_map(|(results, rest)| lone([results, rest].concat()));
    let blocks = prop_oneof![text_block(), thinking_block(), call_block(), other_block()];
    let assistant = vec(blocks, 1..4).prop_map(lone);
    vec((user, unknown(), assistant, unknown()), 1..3).prop_map(|turns| {
        let message = |role: &str, content: Value, unknown: Map<String, Value>| {
            let mut fields = Map::from_iter([("role".to_owned(), role.into()), ("content".to_owned(), content)]);
            fields.extend(unknown);
            Value::Object(fields)
        };
        let turn = |(user, one, assistant, two)| [message("user", user, one), message("assistant", assistant, two)];
        turns.into_iter().flat_map(turn).collect()
    })
}

fn tools() -> impl Strategy<Value = Vec<Value>> {
    let own = (word(), any_object()).prop_map(|(name, schema)| json!({"name": name, "input_schema": schema}));
    let hosted = word().prop_map(|name| json!({"type": "web_search_20250305", "name": name, "max_uses": 3}));
    vec(extended(prop_oneof![own, hosted]), 1..3)
}

fn reasoning() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u64>().prop_map(|budget| json!({"thinking": {"type": "enabled", "budget_tokens": budget}})),
        Just(json!({"thinking": {"type": "disabled"}})),
        unknown().prop_map(|mut fields| {
            fields.insert("type".to_owned(), "adaptive".into());
            json!({"thinking": fields, "output_config": {"effort": "xhigh", "x_budget": 1}})
        }),
        any_object().prop_map(|schema| json!({"output_config": {"format": {"type": "json_schema", "schema": schema}}})),
        Just(json!({})),
    ]
}

prop_compose! {
    fn request()(
        messages in messages(), system in proptest::option::of(vec(text_block(), 1..3).prop_map(lone)),
        tools in proptest::option::of(tools()), reasoning in reasoning(), unknown in unknown(),
        max_tokens in any::<u32>(), stop in vec(word(), 0..2), is_stream in any::<bool>(),
    ) -> Value {
        let mut body = json!({"model": "m", "max_tokens": max_tokens, "messages": messages});
        let fields = body.as_object_mut().expect("a body is an object");
        fields.extend(system.map(|system| ("system".to_owned(), system)));
        if let Some(tools) = tools {
            fields.insert("tools".to_owned(), tools.into());
            fields.insert("tool_choice".to_owned(), json!({"type": "any", "disable_parallel_tool_use": is_stream}));
        }
        fields.extend((!stop.is_empty()).then(|| ("stop_sequences".to_owned(), stop.into())));
        fields.extend(is_stream.then(|| ("stream".to_owned(), true.into())));
        fields.extend(reasoning.as_object().expect("an object").clone());
        fields.extend(unknown);
        body
    }
}

/// Replaces the value at a place of the body.
fn damage(body: &mut Value, place: usize, other: Value) {
    let mut values = vec![body];
    let mut seen = 0;
    while let Some(value) = values.pop() {
        if seen == place {
            *value = other;
            return;
        }
        seen += 1;
        match value {
            Value::Array(items) => values.extend(items),
            Value::Object(fields) => values.extend(fields.values_mut()),
            _ => {}
        }
    }
}

fn extra(fields: Map<String, Value>) -> Extra {
    Extra::of(Dialect::Anthropic, fields)
}

fn answer_part() -> impl Strategy<Value = ContentPart> {
    prop_oneof![
        ("[ -~ä]{1,8}", unknown()).prop_map(|(text, unknown)| {
            ContentPart::Text(TextPart { text, extra: extra(unknown), ..TextPart::default() })
        }),
        (word(), proptest::option::of(word()), unknown()).prop_map(|(text, signature, unknown)| {
            ContentPart::Reasoning(ReasoningPart { text, signature, encrypted: None, extra: extra(unknown) })
        }),
        (word(), unknown()).prop_map(|(data, unknown)| {
            let encrypted = Some(data);
            ContentPart::Reasoning(ReasoningPart { encrypted, extra: extra(unknown), ..ReasoningPart::default() })
        }),
        (word(), word(), any_object(), unknown()).prop_map(|(id, name, input, unknown)| {
            let (arguments, extra) = (input.to_string(), extra(unknown));
            ContentPart::ToolCall(ToolCallPart { id, name, arguments, signature: None, cache: None, extra })
        }),
        other_block().prop_map(|part| ContentPart::Foreign { from: Dialect::Anthropic, part }),
    ]
}

fn finish() -> impl Strategy<Value = FinishReason> {
    prop_oneof![
        Just(FinishReason::Stop),
        proptest::option::of(word()).prop_map(FinishReason::StopSequence),
        Just(FinishReason::Length),
        Just(FinishReason::ToolCalls),
        Just(FinishReason::ContentFilter),
        Just(FinishReason::Pause),
        "new_[a-z]{1,4}".prop_map(FinishReason::Other),
    ]
}

prop_compose! {
    fn usage()(
        fresh in any::<u32>(), output in any::<u32>(), cached_input in proptest::option::of(0..9_u64),
        cache_creation in proptest::option::of(0..9_u64), split in proptest::option::of((0..9_u64, 0..9_u64)),
        unknown in unknown(),
    ) -> TokenUsage {
        let (cache_creation_5m, cache_creation_1h) = split.unzip();
        let split = cache_creation_5m.unwrap_or(0) + cache_creation_1h.unwrap_or(0);
        let cached = cached_input.unwrap_or(0) + cache_creation.unwrap_or(split);
        TokenUsage {
            input: u64::from(fresh) + cached, output: output.into(), cached_input, cache_creation, cache_creation_5m,
            cache_creation_1h, reasoning: None, extra: extra(unknown),
        }
    }
}

prop_compose! {
    fn response()(
        id in word(), parts in vec(answer_part(), 0..4), finish in finish(), usage in usage(), unknown in unknown(),
    ) -> ModelResponse {
        let choice = ModelChoice { index: 0, parts, finish: Some(finish), logprobs: None, extra: Extra::default() };
        let extra = Extra::marked(Dialect::Anthropic, unknown);
        ModelResponse { id, model: "m".into(), created: None, choices: vec![choice], usage: Some(usage), extra }
    }
}

/// Events that amount to the answer. Texts are cut in two.
fn events(response: &ModelResponse) -> Vec<StreamEvent> {
    let (id, model, extra) = (response.id.clone(), response.model.clone(), response.extra.clone());
    let mut events = vec![StreamEvent::Start { id, model, created: None, extra }];
    events.extend(response.usage.clone().map(StreamEvent::Usage));
    let choice = &response.choices[0];
    for (part, content) in choice.parts.iter().enumerate() {
        let (start, extra, deltas) = match content {
            ContentPart::Text(text) => (PartStart::Text, &text.extra, cut(&text.text).map(PartDelta::Text).to_vec()),
            ContentPart::ToolCall(call) => {
                let start = PartStart::ToolCall { id: call.id.clone(), name: call.name.clone() };
                (start, &call.extra, cut(&call.arguments).map(PartDelta::Arguments).to_vec())
            }
            ContentPart::Reasoning(part) => {
                let mut deltas = part.encrypted.clone().map_or_else(
                    || cut(&part.text).map(PartDelta::Text).to_vec(),
                    |encrypted| vec![PartDelta::Encrypted(encrypted)],
                );
                deltas.extend(part.signature.clone().map(PartDelta::Signature));
                (PartStart::Reasoning, &part.extra, deltas)
            }
            other => {
                let start = PartStart::Whole(Box::new(other.clone()));
                events.push(StreamEvent::PartStart { choice: 0, part, start });
                events.push(StreamEvent::PartEnd { choice: 0, part });
                continue;
            }
        };
        events.push(StreamEvent::PartStart { choice: 0, part, start });
        let deltas = (!extra.is_empty()).then(|| PartDelta::Foreign(extra.clone())).into_iter().chain(deltas);
        events.extend(deltas.map(|delta| StreamEvent::PartDelta { choice: 0, part, delta }));
        events.push(StreamEvent::PartEnd { choice: 0, part });
    }
    events.extend(choice.finish.clone().map(|reason| StreamEvent::Finish { choice: 0, reason }));
    events.push(StreamEvent::End);
    events
}

fn cut(text: &str) -> [String; 2] {
    let middle = text.char_indices().nth(1).map_or(text.len(), |(at, _)| at);
    [text[..middle].to_owned(), text[middle..].to_owned()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_request_with_unknown_fields_survives(body in request()) {
        prop_assert_eq!(again(&body), body);
    }

    #[test]
    fn an_answer_survives(response in response()) {
        let read = read_response_with(&write_response(&response), AnthropicReadOptions::default());
        prop_assert_eq!(read, Ok(response));
    }

    #[test]
    fn a_streamed_answer_is_the_whole_one(response in response()) {
        let events = events(&response);
        prop_assert_eq!(&fold(&events), &response);
        prop_assert_eq!(fold(&read_all(&write_all(&events))), response);
    }

    #[test]
    fn parts_in_any_order_are_all_written(response in response(), order in any::<u64>()) {
        let all = events(&response);
        let (mut rest, mut mixed, mut order) = (all, Vec::new(), order);
        // a deterministic shuffle that keeps the order within each part
        while !rest.is_empty() {
            order = order.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let part_of = |event: &StreamEvent| match event {
                StreamEvent::PartStart { part, .. } | StreamEvent::PartDelta { part, .. }
                    | StreamEvent::PartEnd { part, .. } => Some(*part),
                _ => None,
            };
            let movable = rest.iter().take_while(|event| part_of(event).is_some()).count().max(1);
            let chosen = (order >> 33) as usize % movable;
            let is_start = |event: &StreamEvent| matches!(event, StreamEvent::PartStart { .. });
            let at = rest[..=chosen].iter().position(|event| part_of(event) == part_of(&rest[chosen])).unwrap_or(0);
            let at = if is_start(&rest[at]) { rest.iter().position(is_start).unwrap_or(at) } else { at };
            mixed.push(rest.remove(at));
        }
        prop_assert_eq!(fold(&read_all(&write_all(&mixed))), response);
    }

    #[test]
    fn reading_anything_never_panics(body in any_json(), is_schema in any::<bool>(), bytes in ".{0,20}") {
        let options = AnthropicReadOptions { schema_tool: is_schema };
        if let Ok(request) = read_request(&body) {
            let _ = write_request(&request, &WriteOptions { schema_as_tool: is_schema, ..WriteOptions::default() });
        }
        if let Ok(response) = read_response_with(&body, options) {
            write_response(&response);
        }
        read_error(500, &body);
        let mut reader = AnthropicStreamReader::with_options(options);
        let _ = reader.push(&SseEvent { event: None, data: bytes });
    }

    #[test]
    fn a_damaged_body_never_panics(
        request in request(), response in response(), place in 0..60_usize, other in any_json(), is_schema in any::<bool>(),
    ) {
        let mut body = request;
        damage(&mut body, place, other.clone());
        if let Ok(mut request) = read_request(&body) {
            // the same request as that of another dialect
            for is_own in [true, false] {
                request.extra = if is_own { request.extra } else { Extra::default() };
                let options = WriteOptions { schema_as_tool: is_schema, ..WriteOptions::default() };
                let _ = write_request(&request, &options);
            }
        }
        let mut body = write_response(&response);
        damage(&mut body, place, other);
        if let Ok(response) = read_response_with(&body, AnthropicReadOptions { schema_tool: is_schema }) {
            write_response(&response);
        }
    }

    #[test]
    fn a_stream_of_anything_never_panics(
        pieces in vec((proptest::sample::select(&EVENTS[..]), 0..3_u64, any_json(), any_json()), 0..12),
        is_schema in any::<bool>(),
    ) {
        let mut reader = AnthropicStreamReader::with_options(AnthropicReadOptions { schema_tool: is_schema });
        let mut writer = AnthropicStreamWriter::new();
        for (kind, index, block, delta) in pieces {
            let data = json!({"type": kind, "index": index, "content_block": block, "delta": delta, "message": block});
            for event in reader.push(&SseEvent { event: None, data: data.to_string() }).unwrap_or_default() {
                writer.write(&event);
            }
        }
        reader.finish().iter().for_each(|event| drop(writer.write(event)));
    }
}
