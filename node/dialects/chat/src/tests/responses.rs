//! Tests of whole answers and errors.

use super::*;
use assay_node_dialects::form::{ContentPart, FinishReason, ModelErrorKind, ReasoningPart, TextPart, TokenUsage};

fn answer(message: Value, finish: &str) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1764024000, "model": "gpt-4o",
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": finish }],
        "usage": { "prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11 },
    })
}

fn rewritten_answer(body: &Value) -> Value {
    write_response(&read_response(body).unwrap_or_else(|error| panic!("{body}: {error}")))
}

#[test]
fn an_answer_is_written_as_it_was_read() {
    let calls = json!([
        { "id": "a", "type": "function", "function": { "name": "f", "arguments": "{\"x\": 1}" } },
        { "id": "b", "type": "function", "function": { "name": "g", "arguments": "" },
          "extra_content": { "google": { "thought_signature": "s" } } },
        { "id": "c", "type": "custom", "custom": { "name": "h", "input": "i" } },
    ]);
    let mut rich = answer(
        json!({ "role": "assistant", "content": "hi", "annotations": [{ "type": "url_citation" }],
        "audio": null, "unknown": 1 }),
        "stop",
    );
    rich["system_fingerprint"] = json!("fp");
    rich["service_tier"] = json!(null);
    rich["choices"][0]["content_filter_results"] = json!({ "hate": { "filtered": false } });
    rich["choices"][0]["logprobs"] = json!({ "content": [{ "token": "hi", "logprob": -0.1 }] });
    rich["usage"] = json!({
        "prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 20, "queue_time": 0.1,
        "prompt_tokens_details": { "cached_tokens": 4, "audio_tokens": 0, "cache_creation_tokens": 5,
            "cache_creation_token_details": { "ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 2 } },
        "completion_tokens_details": { "reasoning_tokens": 1, "accepted_prediction_tokens": 0 },
    });
    let bodies = [
        answer(json!({ "role": "assistant", "content": "hi" }), "stop"),
        answer(json!({ "role": "assistant", "content": "" }), "length"),
        answer(json!({ "role": "assistant", "content": null, "refusal": "no" }), "content_filter"),
        answer(json!({ "role": "assistant", "content": null, "tool_calls": calls }), "tool_calls"),
        answer(json!({ "role": "assistant", "content": null, "tool_calls": calls }), "stop"),
        answer(
            json!({ "role": "assistant", "content": null, "function_call": { "name": "f", "arguments": "{}" } }),
            "function_call",
        ),
        answer(json!({ "role": "assistant", "content": "hi", "reasoning": [{ "id": "s", "content": "t" }] }), "stop"),
        answer(json!({ "role": "assistant", "content": "hi", "reasoning": "t" }), "stop"),
        answer(
            json!({ "role": "assistant", "content": "hi", "reasoning_content": "t" }),
            "insufficient_system_resource",
        ),
        answer(
            json!({ "role": "assistant", "content": "hi", "reasoning_details": [{ "type": "reasoning.text" }] }),
            "stop",
        ),
        answer(
            json!({ "role": "assistant", "content": "hi",
            "images": [{ "type": "image_url", "image_url": { "url": "data:image/png;base64,AA" } }] }),
            "stop",
        ),
        answer(
            json!({ "role": "assistant", "content": "hi", "extra_content": { "google": { "thought_signature": "s" } } }),
            "stop",
        ),
        rich,
    ];
    for body in bodies {
        assert_eq!(rewritten_answer(&body), body);
    }
}

#[test]
fn every_reason_has_its_meaning() {
    let text = json!({ "role": "assistant", "content": "a" });
    let calls =
        json!({ "role": "assistant", "tool_calls": [{ "id": "a", "function": { "name": "f", "arguments": "" } }] });
    let table = [
        (&text, "stop", FinishReason::Stop),
        (&text, "length", FinishReason::Length),
        (&text, "content_filter", FinishReason::ContentFilter),
        (&calls, "tool_calls", FinishReason::ToolCalls),
        (&calls, "stop", FinishReason::ToolCalls),
        (&text, "eos", FinishReason::Other("eos".into())),
    ];
    for (message, word, expected) in table {
        let response = read_response(&answer(message.clone(), word)).expect("reads");
        assert_eq!(response.choices[0].finish, Some(expected), "{word}");
    }
    let mut stopped = answer(text, "stop");
    stopped["choices"][0]["stop_reason"] = json!("###");
    let finish = read_response(&stopped).expect("reads").choices.remove(0).finish;
    assert_eq!(finish, Some(FinishReason::StopSequence(Some("###".into()))));
    assert_eq!(rewritten_answer(&stopped), stopped);
}

#[test]
fn reasons_without_a_name_are_written_as_stop() {
    let mut response = read_response(&answer(json!({ "content": "a" }), "stop")).expect("reads");
    for reason in [FinishReason::Pause, FinishReason::Other("x".into()), FinishReason::StopSequence(None)] {
        response.choices[0].finish = Some(reason);
        assert_eq!(write_response(&response)["choices"][0]["finish_reason"], "stop");
    }
}

#[test]
fn thinking_pieces_of_content_become_reasoning() {
    let content = json!([
        { "type": "thinking", "thinking": [{ "type": "text", "text": "t" }] }, { "type": "text", "text": "hi" }]);
    let written = rewritten_answer(&answer(json!({ "role": "assistant", "content": content }), "stop"));
    let expected = json!({ "role": "assistant", "content": "hi", "reasoning": [{ "content": "t" }] });
    assert_eq!(written["choices"][0]["message"], expected);
}

#[test]
fn an_answer_of_another_dialect_is_written_with_all_its_parts() {
    let text = |text: &str| ContentPart::Text(TextPart { text: text.into(), ..TextPart::default() });
    let mut response = read_response(&answer(json!({ "content": "a" }), "stop")).expect("reads");
    let reasoning = ReasoningPart { text: "t".into(), signature: Some("s".into()), ..ReasoningPart::default() };
    let redacted = ReasoningPart { encrypted: Some("e".into()), ..ReasoningPart::default() };
    let image = ContentPart::Image {
        source: assay_node_dialects::form::MediaSource::Base64 { media_type: "image/png".into(), data: "AA".into() },
        detail: None,
        cache: None,
        extra: Default::default(),
    };
    let foreign = ContentPart::Foreign { from: assay_node_dialects::Dialect::Anthropic, part: json!({ "type": "x" }) };
    response.choices[0].parts =
        vec![ContentPart::Reasoning(reasoning), text("a"), ContentPart::Reasoning(redacted), text("b"), image, foreign];
    let expected = json!({ "role": "assistant", "content": "ab",
        "reasoning": [{ "id": "s", "content": "t" }, { "content": "", "encrypted": "e" }],
        "images": [{ "type": "image_url", "image_url": { "url": "data:image/png;base64,AA" } }] });
    assert_eq!(write_response(&response)["choices"][0]["message"], expected);
}

#[test]
fn reasoning_is_a_text_too_and_is_read_once() {
    let list = json!([{ "id": "s", "content": "ab" }, { "content": "c" }]);
    let mut body = answer(json!({ "role": "assistant", "content": "x", "reasoning": list }), "stop");
    let read = |body: &Value| read_response(body).expect("an answer").choices[0].parts.len();
    let parts = read(&body);
    put_reasoning_text(&mut body);
    assert_eq!(body["choices"][0]["message"]["reasoning_content"], "abc");
    assert_eq!((read(&body), rewritten_answer(&body)["choices"][0]["message"].get("reasoning_content")), (parts, None));
    for message in [
        json!({ "role": "assistant", "content": "x" }),
        json!({ "role": "assistant", "content": "x", "reasoning": "a" }),
        json!({ "role": "assistant", "content": "x", "reasoning": [{ "encrypted": "e", "content": "" }] }),
    ] {
        let mut body = answer(message.clone(), "stop");
        put_reasoning_text(&mut body);
        assert_eq!(body["choices"][0]["message"], message);
    }
}

#[test]
fn a_client_of_functions_gets_one_function_call() {
    let call = |id: &str| json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": "{}" } });
    let mut response =
        read_response(&answer(json!({ "tool_calls": [call("a"), call("b")] }), "tool_calls")).expect("reads");
    use_function_call(&mut response);
    let choice = &write_response(&response)["choices"][0];
    let call = json!({ "name": "f", "arguments": "{}" });
    assert_eq!(choice["message"], json!({ "role": "assistant", "content": null, "function_call": call }));
    assert_eq!(choice["finish_reason"], "function_call");
}

#[test]
fn calls_without_ids_get_short_stable_ones() {
    let call = json!({ "function": { "name": "f", "arguments": "{}" } });
    let response = read_response(&answer(json!({ "tool_calls": [call, call] }), "tool_calls")).expect("reads");
    let ids: Vec<_> = response.choices[0]
        .parts
        .iter()
        .filter_map(|part| match part {
            ContentPart::ToolCall(call) => Some(call.id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(ids, ["call_chatcmpl1_0_0", "call_chatcmpl1_0_1"]);
    let long = super::super::response::call_id(&"é".repeat(90), u64::MAX, usize::MAX);
    assert!(long.len() <= 40, "{long}");
}

#[test]
fn usage_keeps_unknown_apart_from_zero() {
    let table = [
        (json!({ "prompt_tokens": 1 }), TokenUsage { input: 1, ..TokenUsage::default() }),
        (
            json!({ "prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "prompt_tokens_details": { "cached_tokens": 0 } }),
            TokenUsage { input: 1, output: 2, cached_input: Some(0), ..TokenUsage::default() },
        ),
    ];
    for (given, expected) in table {
        assert_eq!(read_usage(&given), Some(expected));
    }
    assert_eq!(read_usage(&Value::Null), None);
    let deepseek = read_usage(&json!({ "prompt_tokens": 5, "prompt_cache_hit_tokens": 4 })).expect("an object");
    assert_eq!(deepseek.cached_input, Some(4));
    assert_eq!(write_usage(&deepseek)["prompt_tokens_details"], json!({ "cached_tokens": 4 }));
}

#[test]
fn errors_of_all_servers_are_read() {
    let openai = json!({ "error": { "message": "no", "type": "invalid_request_error", "param": "model", "code": "model_not_found" } });
    let vllm = json!({ "object": "error", "message": "no", "type": "BadRequestError", "param": null, "code": 400 });
    let table = [
        (404, openai, ModelErrorKind::NotFound, "no", Some("model_not_found")),
        (400, vllm, ModelErrorKind::InvalidRequest, "no", Some("400")),
        (500, json!({ "error": "boom" }), ModelErrorKind::Server, "boom", None),
        (422, json!({ "detail": "bad" }), ModelErrorKind::InvalidRequest, "bad", None),
        (422, json!({ "detail": [{ "loc": 1 }] }), ModelErrorKind::InvalidRequest, "{\"detail\":[{\"loc\":1}]}", None),
        (429, json!([{ "error": { "code": 429, "message": "slow" } }]), ModelErrorKind::RateLimit, "slow", Some("429")),
        (503, json!("down"), ModelErrorKind::Overloaded, "down", None),
        (502, Value::Null, ModelErrorKind::Server, "the model server answered with status 502", None),
    ];
    for (status, body, kind, message, code) in table {
        let error = read_error(status, &body);
        assert_eq!((error.kind, error.message.as_str(), error.code.as_deref()), (kind, message, code), "{body}");
    }
}

#[test]
fn errors_are_written_as_openai_does() {
    let body = json!({ "error": { "message": "no", "type": "insufficient_quota", "param": null, "code": "insufficient_quota", "x": 1 } });
    assert_eq!(write_error(429, &read_error(429, &body)), body);
    for status in [400, 401, 403, 404, 413, 429, 500, 503, 504] {
        let error = read_error(status, &json!({ "error": { "message": "m" } }));
        assert_eq!(error_status(&error), status);
        let written = write_error(status, &error);
        assert!(written["error"]["type"].is_string() && written["error"]["code"].is_null(), "{written}");
        assert_eq!(read_error(status, &written), error);
    }
}
