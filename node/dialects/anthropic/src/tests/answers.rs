//! Whole answers and errors.

use serde_json::{Value, json};

use super::{text, with};
use crate::{
    AnthropicReadOptions, error_status, read_error, read_response, read_response_with, write_error, write_response,
};
use assay_node_dialects::form::{
    ContentPart, Extra, FinishReason, ModelChoice, ModelError, ModelErrorKind, ModelResponse, ReasoningPart,
    TokenUsage, ToolCallPart,
};
use assay_node_dialects::{Dialect, DialectError};

fn answer(content: Value) -> Value {
    json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": content,
        "stop_reason": "end_turn", "stop_sequence": null, "usage": {"input_tokens": 5, "output_tokens": 7}})
}

fn unchanged_answers() -> Vec<Value> {
    vec![
        answer(json!([{"type": "text", "text": "hi"}])),
        answer(json!([])),
        answer(
            json!([{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "redacted_thinking", "data": "d"},
            {"type": "text", "text": "hi", "citations": [{"type": "char_location", "cited_text": "x"}]},
            {"type": "tool_use", "id": "toolu_1", "name": "a", "input": {}, "caller": {"type": "direct"}},
            {"type": "tool_use", "id": "toolu_2", "name": "b", "input": {"c": [1, null]}}]),
        ),
        answer(json!([{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}])),
        with(answer(json!([])), json!({"stop_reason": "stop_sequence", "stop_sequence": "END"})),
        with(answer(json!([])), json!({"stop_reason": "model_context_window_exceeded"})),
        with(answer(json!([])), json!({"stop_reason": "a_new_one", "container": {"id": "c"}, "stop_details": null})),
        with(
            answer(json!([])),
            json!({"usage": {"input_tokens": 5, "cache_creation_input_tokens": 30,
            "cache_read_input_tokens": 100, "cache_creation": {"ephemeral_5m_input_tokens": 10,
            "ephemeral_1h_input_tokens": 20, "x_unknown": 1}, "output_tokens": 7, "service_tier": "standard",
            "server_tool_use": {"web_search_requests": 2}}}),
        ),
    ]
}

#[test]
fn an_answer_is_written_as_it_was_read() {
    for body in unchanged_answers() {
        assert_eq!(write_response(&read_response(&body).expect("the answer can be read")), body);
    }
}

#[test]
fn input_of_the_form_has_cached_tokens() {
    let usage = json!({"input_tokens": 5, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 100,
        "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20}, "output_tokens": 7});
    let read = read_response(&with(answer(json!([])), json!({"usage": usage}))).expect("the answer can be read");
    let expected = TokenUsage {
        input: 135,
        output: 7,
        cached_input: Some(100),
        cache_creation: Some(30),
        cache_creation_5m: Some(10),
        cache_creation_1h: Some(20),
        reasoning: None,
        extra: Extra::default(),
    };
    assert_eq!(read.usage, Some(expected));
    let split_only =
        json!({"input_tokens": 5, "cache_creation": {"ephemeral_1h_input_tokens": 20}, "output_tokens": 7});
    let read = read_response(&with(answer(json!([])), json!({"usage": split_only}))).expect("the answer can be read");
    assert_eq!(read.usage.map(|usage| usage.input), Some(25));
}

#[test]
fn every_stop_reason_has_a_meaning() {
    for (name, reason) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::StopSequence(None)),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("tool_use", FinishReason::ToolCalls),
        ("refusal", FinishReason::ContentFilter),
        ("pause_turn", FinishReason::Pause),
        ("a_new_one", FinishReason::Other("a_new_one".to_owned())),
    ] {
        let read = read_response(&with(answer(json!([])), json!({"stop_reason": name}))).expect("it can be read");
        assert_eq!(read.choices[0].finish, Some(reason));
    }
}

#[test]
fn a_reason_of_another_dialect_is_a_plain_end() {
    let finish = Some(FinishReason::Other("LANGUAGE".to_owned()));
    let choice = ModelChoice { index: 0, parts: Vec::new(), finish, logprobs: None, extra: Extra::default() };
    let written = write_response(&ModelResponse { choices: vec![choice], ..ModelResponse::default() });
    assert_eq!(written["stop_reason"], "end_turn");
    assert_eq!(written["usage"], json!({"input_tokens": 0, "output_tokens": 0}));
}

#[test]
fn a_call_gets_an_id_and_an_input() {
    let call = |id: &str, arguments: &str| {
        ContentPart::ToolCall(ToolCallPart {
            id: id.to_owned(),
            name: "a".to_owned(),
            arguments: arguments.to_owned(),
            signature: Some("of Gemini".to_owned()),
            cache: None,
            extra: Extra::of(Dialect::Gemini, serde_json::Map::from_iter([("x".to_owned(), json!(1))])),
        })
    };
    let parts = vec![call("", ""), call("c", r#"{"b":1}"#), call("d", r#"{"cut"#)];
    let choice = ModelChoice { index: 0, parts, finish: None, logprobs: None, extra: Extra::default() };
    let response = ModelResponse { id: "r.1".to_owned(), choices: vec![choice], ..ModelResponse::default() };
    assert_eq!(
        write_response(&response)["content"],
        json!([{"type": "tool_use", "id": "toolu_r_1_0", "name": "a", "input": {}},
            {"type": "tool_use", "id": "c", "name": "a", "input": {"b": 1}},
            {"type": "tool_use", "id": "d", "name": "a", "input": "{\"cut"}])
    );
}

#[test]
fn readable_and_encrypted_reasoning_are_two_blocks() {
    let reasoning = ReasoningPart { text: "a".to_owned(), encrypted: Some("e".to_owned()), ..ReasoningPart::default() };
    let parts = vec![ContentPart::Reasoning(reasoning), text("b")];
    let choice = ModelChoice { index: 0, parts, finish: None, logprobs: None, extra: Extra::default() };
    let written = write_response(&ModelResponse { choices: vec![choice], ..ModelResponse::default() });
    assert_eq!(
        written["content"],
        json!([{"type": "thinking", "thinking": "a", "signature": ""}, {"type": "redacted_thinking", "data": "e"},
            {"type": "text", "text": "b"}])
    );
}

#[test]
fn the_input_of_the_json_tool_is_the_answer() {
    let read = |content: Value, reason: &str| {
        let body = with(answer(content), json!({"stop_reason": reason}));
        let options = AnthropicReadOptions { schema_tool: true };
        let choice = read_response_with(&body, options).expect("it can be read").choices.remove(0);
        (choice.parts, choice.finish)
    };
    let json_call = json!({"type": "tool_use", "id": "t", "name": "json", "input": {"a": 1}});
    let said = json!({"type": "text", "text": "Here it is."});
    let other = json!({"type": "tool_use", "id": "u", "name": "b", "input": {}});
    let (parts, finish) = read(json!([said, json_call, json_call]), "tool_use");
    assert_eq!((parts, finish), (vec![text(r#"{"a":1}"#)], Some(FinishReason::Stop)));
    let (parts, finish) = read(json!([json_call, other]), "tool_use");
    assert_eq!((parts.len(), finish), (2, Some(FinishReason::ToolCalls)));
    let (parts, finish) = read(json!([said]), "max_tokens");
    assert_eq!((parts, finish), (vec![text("Here it is.")], Some(FinishReason::Length)));
}

#[test]
fn a_body_that_is_no_answer_is_refused() {
    for (body, path) in [
        (json!([]), "body"),
        (json!({"type": "error", "error": {}}), "type"),
        (json!({"type": "message"}), "content"),
        (with(answer(json!([])), json!({"usage": {"input_tokens": "5"}})), "usage.input_tokens"),
    ] {
        let error = read_response(&body).expect_err("it is no answer");
        assert!(matches!(&error, DialectError::Malformed { path: found, .. } if found == path), "{error}");
    }
}

#[test]
fn every_error_type_has_a_kind_and_a_status() {
    for (name, kind, status) in [
        ("invalid_request_error", ModelErrorKind::InvalidRequest, 400),
        ("authentication_error", ModelErrorKind::Authentication, 401),
        ("permission_error", ModelErrorKind::Permission, 403),
        ("not_found_error", ModelErrorKind::NotFound, 404),
        ("request_too_large", ModelErrorKind::TooLarge, 413),
        ("rate_limit_error", ModelErrorKind::RateLimit, 429),
        ("api_error", ModelErrorKind::Server, 500),
        ("timeout_error", ModelErrorKind::Timeout, 504),
        ("overloaded_error", ModelErrorKind::Overloaded, 529),
    ] {
        let body = json!({"type": "error", "error": {"type": name, "message": "m"}, "request_id": "req_1"});
        let error = read_error(status, &body);
        assert_eq!((error.kind, error.message.as_str(), &error.code), (kind, "m", &None));
        assert_eq!((error_status(&error), write_error(status, &error)), (status, body));
    }
}

#[test]
fn an_unknown_error_keeps_its_type_and_gets_the_kind_of_its_status() {
    let body = json!({"type": "error", "error": {"type": "billing_error", "message": "m", "details": {"a": 1}}});
    let error = read_error(403, &body);
    assert_eq!((error.kind, error.code.as_deref()), (ModelErrorKind::Permission, Some("billing_error")));
    assert_eq!(write_error(403, &error), body);
    let long =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}});
    assert_eq!(read_error(400, &long).code.as_deref(), Some("context_length_exceeded"));
    assert_eq!(read_error(400, &json!({"message": "of a cloud"})).message, "of a cloud");
    let error = read_error(503, &json!("upstream is down"));
    assert_eq!((error.kind, error.message.as_str()), (ModelErrorKind::Overloaded, "upstream is down"));
    assert_eq!(
        write_error(503, &error),
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "upstream is down"}})
    );
}

#[test]
fn an_error_of_another_dialect_has_the_shape_of_this_one() {
    let error = ModelError {
        kind: ModelErrorKind::RateLimit,
        message: "too fast".to_owned(),
        code: Some("budget_exceeded".to_owned()),
        param: Some("model".to_owned()),
        extra: Extra::of(Dialect::Chat, serde_json::Map::from_iter([("x".to_owned(), json!(1))])),
    };
    assert_eq!(
        write_error(429, &error),
        json!({"type": "error", "error": {"type": "rate_limit_error", "message": "too fast"}})
    );
}
