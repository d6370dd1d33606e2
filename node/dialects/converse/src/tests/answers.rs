//! Whole answers, their usage, and errors.

use serde_json::{Value, json};

use crate::{ConverseAnswer, read_error, read_response, read_response_of};
use assay_node_dialects::form::{ContentPart, FinishReason, MediaSource, ModelErrorKind, TokenUsage};

fn answer(content: Value, reason: &str) -> Value {
    json!({
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": reason,
        "usage": {"inputTokens": 10, "outputTokens": 4, "totalTokens": 14},
        "metrics": {"latencyMs": 200},
    })
}

#[test]
fn an_answer_has_its_parts_in_order() {
    let body = answer(
        json!([
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
            {"reasoningContent": {"redactedContent": "ZQ=="}},
            {"text": "so"},
            {"citationsContent": {"content": [{"text": "a"}, {"text": "b"}], "citations": []}},
            {"toolUse": {"toolUseId": "t1", "name": "a", "input": {"city": "Oslo"}}},
            {"toolUse": {"toolUseId": "t2", "name": "b", "input": {}}},
            {"toolUse": {"toolUseId": "t3", "name": "search", "input": {}, "type": "server_tool_use"}},
            {"image": {"format": "png", "source": {"bytes": "eA=="}}},
            {"kindOfTheFuture": {}},
        ]),
        "tool_use",
    );
    let named = ConverseAnswer { id: "r1".into(), model: "m".into() };
    let response = read_response_of(&named, &body).expect("an answer");
    assert_eq!((response.id.as_str(), response.model.as_str()), ("r1", "m"));
    let [choice] = response.choices.as_slice() else { panic!("one choice") };
    assert_eq!(choice.finish, Some(FinishReason::ToolCalls));
    let found: Vec<String> = choice
        .parts
        .iter()
        .map(|part| match part {
            ContentPart::Reasoning(part) => format!("{} {:?} {:?}", part.text, part.signature, part.encrypted),
            ContentPart::Text(part) => part.text.clone(),
            ContentPart::ToolCall(call) => format!("{} {} {}", call.id, call.name, call.arguments),
            ContentPart::Image { source: MediaSource::Base64 { media_type, data }, .. } => {
                format!("{media_type} {data}")
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        "hm Some(\"s\") None",
        " None Some(\"ZQ==\")",
        "so",
        "ab",
        "t1 a {\"city\":\"Oslo\"}",
        "t2 b {}",
        "image/png eA==",
    ];
    assert_eq!(found, expected);
}

#[test]
fn each_reason_has_its_meaning() {
    for (reason, expected) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::StopSequence(None)),
        ("tool_use", FinishReason::ToolCalls),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("guardrail_intervened", FinishReason::ContentFilter),
        ("content_filtered", FinishReason::ContentFilter),
        ("malformed_tool_use", FinishReason::Other("malformed_tool_use".into())),
        ("new", FinishReason::Other("new".into())),
    ] {
        let response = read_response(&answer(json!([{"text": "x"}]), reason)).expect("an answer");
        assert_eq!(response.choices[0].finish, Some(expected));
    }
    let calling = json!([{"toolUse": {"toolUseId": "t", "name": "a", "input": {}}}]);
    let response = read_response(&answer(calling, "end_turn")).expect("an answer");
    assert_eq!(response.choices[0].finish, Some(FinishReason::ToolCalls));
}

#[test]
fn cached_tokens_count_as_tokens_of_the_prompt() {
    let mut body = answer(json!([]), "end_turn");
    body["usage"] = json!({
        "inputTokens": 10, "outputTokens": 4, "totalTokens": 144, "cacheReadInputTokens": 100,
        "cacheWriteInputTokens": 30,
        "cacheDetails": [{"ttl": "5m", "inputTokens": 10}, {"ttl": "1h", "inputTokens": 20}],
    });
    let expected = TokenUsage {
        input: 140,
        output: 4,
        cached_input: Some(100),
        cache_creation: Some(30),
        cache_creation_5m: Some(10),
        cache_creation_1h: Some(20),
        ..TokenUsage::default()
    };
    assert_eq!(read_response(&body).expect("an answer").usage, Some(expected));
    body["usage"] = json!({"inputTokens": 1, "outputTokens": 2, "cacheReadInputTokenCount": 3});
    let expected = TokenUsage { input: 4, output: 2, cached_input: Some(3), ..TokenUsage::default() };
    assert_eq!(read_response(&body).expect("an answer").usage, Some(expected));
}

#[test]
fn a_body_that_is_no_answer_is_refused_with_its_path() {
    for (body, path) in [
        (json!({}), "output.message.content"),
        (answer(json!(["x"]), "end_turn"), "output.message.content[0]"),
        (answer(json!([{"text": 1}]), "end_turn"), "output.message.content[0].text"),
        (answer(json!([{"toolUse": {"name": "a"}}]), "end_turn"), "output.message.content[0].toolUse.toolUseId"),
    ] {
        let why = read_response(&body).expect_err("no answer").to_string();
        assert!(why.starts_with(path), "{why}");
    }
}

#[test]
fn errors_have_the_kind_of_their_name_or_status() {
    let too_long = "Input is too long for requested model.";
    for (status, body, kind, code) in [
        (400, json!({"message": "no"}), ModelErrorKind::InvalidRequest, None),
        (400, json!({"message": too_long}), ModelErrorKind::InvalidRequest, Some("context_length_exceeded")),
        (
            400,
            json!({"__type": "com.amazon.coral.service#ServiceQuotaExceededException:http://x/", "message": "no"}),
            ModelErrorKind::RateLimit,
            Some("ServiceQuotaExceededException"),
        ),
        (403, json!({"Message": "no"}), ModelErrorKind::Permission, None),
        (404, json!({"message": "no"}), ModelErrorKind::NotFound, None),
        (408, json!({"message": "no"}), ModelErrorKind::Timeout, None),
        (424, json!({"message": "no", "originalStatusCode": 500}), ModelErrorKind::Server, None),
        (429, json!({"message": "no"}), ModelErrorKind::RateLimit, None),
        (500, json!({"message": "no"}), ModelErrorKind::Server, None),
        (503, json!("no"), ModelErrorKind::Overloaded, None),
    ] {
        let error = read_error(status, &body);
        assert_eq!((error.kind, error.code.as_deref()), (kind, code), "{status} {body}");
        assert!(error.message == "no" || error.message == too_long, "{}", error.message);
    }
}
