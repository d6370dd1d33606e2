//! Tests of whole answers.

use serde_json::{Value, json};

use super::{call, text};
use crate::{
    CALL_ID_BYTES_MAX, read_count_tokens, read_embed_request, read_response, write_count_tokens_response,
    write_embed_response, write_response,
};
use assay_node_dialects::form::{
    ContentPart, Extra, FinishReason, MediaSource, ModelChoice, ModelResponse, ReasoningPart, TextPart, TokenUsage,
};
use assay_node_dialects::{Dialect, DialectError};

fn bodies() -> Vec<Value> {
    vec![
        json!({
            "candidates": [{ "content": { "parts": [{ "text": "thinking", "thought": true }, { "text": "hi", "thoughtSignature": "c2ln" }], "role": "model" },
                "finishReason": "STOP", "index": 0, "avgLogprobs": -0.1,
                "safetyRatings": [{ "category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE" }],
                "groundingMetadata": { "webSearchQueries": ["a"] }, "citationMetadata": { "citationSources": [] } }],
            "usageMetadata": { "promptTokenCount": 12, "candidatesTokenCount": 5, "totalTokenCount": 20, "thoughtsTokenCount": 3,
                "cachedContentTokenCount": 4, "promptTokensDetails": [{ "modality": "TEXT", "tokenCount": 12 }] },
            "modelVersion": "gemini-2.5-pro", "responseId": "r1", "createTime": "2026-01-01T00:00:00Z",
        }),
        json!({
            "candidates": [{ "content": { "parts": [
                { "functionCall": { "name": "weather", "args": { "city": "Rome" } }, "thoughtSignature": "c2ln" },
                { "functionCall": { "id": "own", "name": "weather", "args": {} } }], "role": "model" }, "finishReason": "STOP", "index": 0 }],
            "usageMetadata": { "promptTokenCount": 2, "candidatesTokenCount": 1, "totalTokenCount": 10, "toolUsePromptTokenCount": 7 },
            "modelVersion": "gemini-3-pro", "responseId": "r2",
        }),
        json!({
            "candidates": [
                { "content": { "parts": [{ "inlineData": { "mimeType": "image/png", "data": "AA==" }, "thoughtSignature": "c2ln" },
                    { "inlineData": { "mimeType": "image/png", "data": "AA==" }, "thought": true },
                    { "executableCode": { "code": "1" } }], "role": "model", "new": 1 }, "finishReason": "STOP", "index": 0 },
                { "content": { "role": "model" }, "finishReason": "MAX_TOKENS", "index": 1 }],
        }),
        json!({ "promptFeedback": { "blockReason": "SAFETY", "safetyRatings": [] },
            "usageMetadata": { "promptTokenCount": 2, "candidatesTokenCount": 0, "totalTokenCount": 2 }, "responseId": "r3" }),
        json!({ "candidates": [{ "content": { "parts": [{ "text": "a" }], "role": "model" }, "finishReason": "STOP", "index": 0,
            "logprobsResult": { "topCandidates": [{ "candidates": [{ "token": "a", "tokenId": 5, "logProbability": -0.5 }] }],
                "chosenCandidates": [{ "token": "a", "tokenId": 5, "logProbability": -0.5 }] } }] }),
    ]
}

#[test]
fn a_body_is_written_as_it_was_read() {
    for body in bodies() {
        assert_eq!(write_response(&read_response(&body).expect("reads")), body);
    }
}

#[test]
fn the_form_says_what_an_answer_means() {
    let response = read_response(&bodies()[0]).expect("reads");
    assert_eq!((response.id.as_str(), response.model.as_str()), ("r1", "gemini-2.5-pro"));
    let parts = &response.choices[0].parts;
    assert!(matches!(&parts[0], ContentPart::Reasoning(ReasoningPart { text, .. }) if text == "thinking"));
    assert!(
        matches!(&parts[1], ContentPart::Text(TextPart { text, signature: Some(sign), .. }) if text == "hi" && sign == "c2ln")
    );
    let usage = response.usage.expect("usage");
    let numbers = (usage.input, usage.output, usage.cached_input, usage.reasoning);
    assert_eq!(numbers, (12, 8, Some(4), Some(3)), "the output has the thoughts");

    let response = read_response(&bodies()[1]).expect("reads");
    assert_eq!(response.choices[0].finish, Some(FinishReason::ToolCalls));
    let [ContentPart::ToolCall(first), ContentPart::ToolCall(second)] = response.choices[0].parts.as_slice() else {
        panic!("two calls")
    };
    assert_eq!((first.arguments.as_str(), first.signature.as_deref()), (r#"{"city":"Rome"}"#, Some("c2ln")));
    assert!(!first.id.is_empty() && first.id.len() <= CALL_ID_BYTES_MAX && second.id == "own");
    assert_eq!(response.usage.map(|usage| usage.input), Some(9), "prompts of tools are input");

    let response = read_response(&bodies()[2]).expect("reads");
    assert!(
        matches!(&response.choices[0].parts[0], ContentPart::Image { source: MediaSource::Base64 { data, .. }, .. } if data == "AA==")
    );
    assert!(
        matches!(&response.choices[0].parts[1], ContentPart::Foreign { .. }),
        "a thought is no image of the answer"
    );

    let blocked = read_response(&bodies()[3]).expect("reads");
    assert_eq!(blocked.choices.len(), 1);
    assert_eq!(blocked.choices[0].finish, Some(FinishReason::ContentFilter));

    let probable = read_response(&bodies()[4]).expect("reads").choices.remove(0);
    let token = json!({ "token": "a", "logprob": -0.5, "bytes": [97] });
    let mut chosen = token.clone();
    chosen["top_logprobs"] = json!([token]);
    assert_eq!(probable.logprobs, Some(json!({ "content": [chosen] })));
}

#[test]
fn equal_calls_of_two_answers_have_different_ids() {
    let id_of = |response_id: &str| {
        let mut body = bodies()[1].clone();
        body["responseId"] = json!(response_id);
        match read_response(&body).expect("reads").choices.remove(0).parts.remove(0) {
            ContentPart::ToolCall(call) => call.id,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(id_of("r2"), id_of("r2"));
    assert_ne!(id_of("r2"), id_of("r3"));
}

#[test]
fn every_reason_to_finish_is_known_and_comes_back() {
    let filter = || FinishReason::ContentFilter;
    let other = |reason: &str| FinishReason::Other(reason.to_owned());
    for (reason, finish) in [
        ("STOP", FinishReason::Stop),
        ("MAX_TOKENS", FinishReason::Length),
        ("SAFETY", filter()),
        ("RECITATION", filter()),
        ("BLOCKLIST", filter()),
        ("PROHIBITED_CONTENT", filter()),
        ("SPII", filter()),
        ("MALFORMED_FUNCTION_CALL", filter()),
        ("UNEXPECTED_TOOL_CALL", filter()),
        ("TOO_MANY_TOOL_CALLS", filter()),
        ("MISSING_THOUGHT_SIGNATURE", filter()),
        ("MALFORMED_RESPONSE", filter()),
        ("MODEL_ARMOR", filter()),
        ("IMAGE_SAFETY", filter()),
        ("IMAGE_PROHIBITED_CONTENT", filter()),
        ("IMAGE_RECITATION", filter()),
        ("LANGUAGE", other("LANGUAGE")),
        ("OTHER", other("OTHER")),
        ("NO_IMAGE", other("NO_IMAGE")),
        ("FINISH_REASON_UNSPECIFIED", other("FINISH_REASON_UNSPECIFIED")),
        ("BRAND_NEW", other("BRAND_NEW")),
    ] {
        let body = json!({ "candidates": [{ "content": { "role": "model" }, "finishReason": reason, "index": 0 }] });
        let response = read_response(&body).expect("reads");
        assert_eq!(response.choices[0].finish, Some(finish));
        assert_eq!(write_response(&response), body);
    }
}

#[test]
fn reasons_of_other_dialects_become_the_nearest() {
    for (finish, reason) in [
        (FinishReason::Stop, "STOP"),
        (FinishReason::StopSequence(Some("x".to_owned())), "STOP"),
        (FinishReason::ToolCalls, "STOP"),
        (FinishReason::Pause, "STOP"),
        (FinishReason::Length, "MAX_TOKENS"),
        (FinishReason::ContentFilter, "SAFETY"),
        (FinishReason::Other("model_context".to_owned()), "OTHER"),
    ] {
        let choice = ModelChoice {
            index: 0,
            parts: vec![text("a")],
            finish: Some(finish),
            logprobs: None,
            extra: Extra::default(),
        };
        let body = write_response(&ModelResponse { choices: vec![choice], ..ModelResponse::default() });
        assert_eq!(body["candidates"][0]["finishReason"], reason);
    }
}

#[test]
fn parts_of_other_dialects_are_written_as_far_as_they_can_be() {
    let image = |source| ContentPart::Image { source, detail: None, cache: None, extra: Extra::default() };
    let parts = vec![
        ContentPart::Refusal(TextPart { text: "no".to_owned(), ..TextPart::default() }),
        ContentPart::Reasoning(ReasoningPart {
            text: "hm".to_owned(),
            signature: Some("s".to_owned()),
            ..ReasoningPart::default()
        }),
        ContentPart::Reasoning(ReasoningPart { encrypted: Some("x".to_owned()), ..ReasoningPart::default() }),
        image(MediaSource::Url("data:image/png;base64,AA==".to_owned())),
        image(MediaSource::Url("https://a.example/b.png?c".to_owned())),
        ContentPart::Foreign { from: Dialect::Anthropic, part: json!({ "type": "server_tool_use" }) },
        ContentPart::ToolCall(call("call_1", "a", "")),
    ];
    let choice =
        ModelChoice { index: 0, parts, finish: Some(FinishReason::ToolCalls), logprobs: None, extra: Extra::default() };
    let usage = TokenUsage { input: 3, output: 2, cache_creation: Some(1), ..TokenUsage::default() };
    let response =
        ModelResponse { choices: vec![choice], usage: Some(usage), created: Some(1), ..ModelResponse::default() };
    assert_eq!(
        write_response(&response),
        json!({
            "candidates": [{ "content": { "parts": [
                { "text": "no" },
                { "text": "hm", "thought": true, "thoughtSignature": "s" },
                { "inlineData": { "mimeType": "image/png", "data": "AA==" } },
                { "fileData": { "mimeType": "image/png", "fileUri": "https://a.example/b.png?c" } },
                { "functionCall": { "id": "call_1", "name": "a", "args": {} } }], "role": "model" }, "finishReason": "STOP", "index": 0 }],
            "usageMetadata": { "promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5 },
        })
    );
}

#[test]
fn a_call_whose_arguments_are_no_object_is_malformed() {
    for arguments in ["[1]", "{", "5"] {
        let parts = vec![ContentPart::ToolCall(call("c", "a", arguments))];
        let choice = ModelChoice {
            index: 0,
            parts,
            finish: Some(FinishReason::ToolCalls),
            logprobs: None,
            extra: Extra::default(),
        };
        let body = write_response(&ModelResponse { choices: vec![choice], ..ModelResponse::default() });
        assert_eq!(body["candidates"][0]["finishReason"], "MALFORMED_FUNCTION_CALL");
        assert_eq!(body["candidates"][0]["finishMessage"], format!("Malformed function call: a({arguments})"));
    }
}

#[test]
fn embeddings_and_counts_of_tokens_are_viewed() {
    let body = json!({ "content": { "parts": [{ "text": "a" }, { "text": "b" }] }, "taskType": "RETRIEVAL_QUERY", "output_dimensionality": 8 });
    let read = read_embed_request(&body).expect("reads");
    assert_eq!((read[0].text.as_str(), read[0].dimensions), ("a\nb", Some(8)));
    assert_eq!(read[0].extra.dropped_by(Dialect::Chat).collect::<Vec<_>>(), ["taskType"]);
    assert_eq!(read_embed_request(&json!({ "requests": [body.clone(), body] })).expect("reads").len(), 2);
    let image = json!({ "content": { "parts": [{ "inlineData": {} }] } });
    assert!(matches!(read_embed_request(&image), Err(DialectError::Unsupported { .. })));
    assert_eq!(write_embed_response(&[vec![0.5]], false), json!({ "embedding": { "values": [0.5] } }));
    assert_eq!(write_embed_response(&[vec![0.5]], true), json!({ "embeddings": [{ "values": [0.5] }] }));

    let contents = json!({ "contents": [{ "role": "user", "parts": [{ "text": "a" }] }] });
    let whole = json!({ "generateContentRequest": contents });
    let read = read_count_tokens("m", &contents).expect("reads");
    assert_eq!(read.messages[0].parts, [text("a")]);
    assert_eq!(read_count_tokens("m", &whole).expect("reads"), read);
    assert_eq!(write_count_tokens_response(5, None), json!({ "totalTokens": 5 }));
    assert_eq!(write_count_tokens_response(5, Some(2)), json!({ "totalTokens": 5, "cachedContentTokenCount": 2 }));
}
