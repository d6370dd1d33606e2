//! Facts about whole responses.

use serde_json::{Value, json};

use super::super::{read_response, write_response};
use super::normal::normal_response;
use super::{call, text};
use assay_node_dialects::Dialect;
use assay_node_dialects::form::{
    ContentPart, FinishReason, MediaSource, ModelChoice, ModelResponse, ReasoningPart, TextPart, TokenUsage,
};

pub fn full() -> Value {
    json!({
        "id": "resp_1", "object": "response", "created_at": 1764024000, "status": "completed", "completed_at": 1764024001,
        "background": false, "error": null, "incomplete_details": null, "instructions": "Be brief.",
        "max_output_tokens": null, "model": "gpt-5", "parallel_tool_calls": true, "previous_response_id": null,
        "reasoning": {"effort": "high", "summary": null}, "store": true, "temperature": 1.0, "tool_choice": "auto",
        "text": {"format": {"type": "text"}}, "tools": [], "top_p": 1.0, "truncation": "disabled", "metadata": {},
        "output": output(),
        "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0, "x": 1}, "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 15}
    })
}

fn output() -> Value {
    json!([
            {"type": "reasoning", "id": "rs_1", "encrypted_content": "e", "summary": [
                {"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]},
            {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
            {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "phase": "final_answer", "content": [
                {"type": "output_text", "text": "Hi.", "logprobs": [
                    {"token": "Hi", "logprob": -0.1, "bytes": [72, 105], "top_logprobs": []},
                    {"token": ".", "logprob": -0.2, "bytes": [46], "top_logprobs": []}],
                 "annotations": [{"type": "url_citation", "url": "u", "start_index": 0, "end_index": 1, "title": "t"}]},
                {"type": "refusal", "refusal": "no"},
                {"type": "output_smell", "data": "x"},
                {"type": "output_text", "text": "Yo", "annotations": [], "logprobs": [
                    {"token": "Yo", "logprob": -0.3, "bytes": [89, 111], "top_logprobs": []}]}]},
            {"type": "message", "id": "msg_2", "status": "completed", "role": "assistant", "content": []},
            {"type": "message", "id": "msg_3", "status": "completed", "role": "assistant", "content": [
                {"type": "output_text", "text": "Bye", "annotations": [], "logprobs": []}]},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{\"a\":1}", "status": "completed"},
            {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "g", "arguments": "{}", "status": "completed"}])
}

#[test]
fn a_response_is_read_and_written_without_loss() {
    let response = read_response(&full()).expect("reads");
    assert_eq!(write_response(&response), full());
    let choice = &response.choices[0];
    assert_eq!(choice.finish, Some(FinishReason::ToolCalls));
    assert_eq!(choice.parts.len(), 10);
    let ContentPart::Reasoning(reasoning) = &choice.parts[0] else { panic!("is reasoning") };
    assert_eq!((reasoning.text.as_str(), reasoning.encrypted.as_deref()), ("a\n\nb", Some("e")));
    let ContentPart::ToolCall(call) = &choice.parts[8] else { panic!("is a call") };
    assert_eq!((call.id.as_str(), call.name.as_str(), call.arguments.as_str()), ("call_1", "f", "{\"a\":1}"));
    assert_eq!(choice.logprobs.as_ref().expect("has some")["content"].as_array().expect("is a list").len(), 3);
    let usage = response.usage.expect("has usage");
    assert_eq!((usage.input, usage.output, usage.cached_input, usage.reasoning), (10, 5, Some(4), Some(2)));
}

#[test]
fn log_probabilities_stay_with_their_text() {
    let token = |text: &str| json!({"token": text, "logprob": -0.3, "bytes": text.as_bytes(), "top_logprobs": []});
    let text = |text: &str, logprobs: Value| json!({"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs});
    let content = json!([
        text("Hi.", json!([])),
        text("Yo", json!([token("Yo")])),
        text("Bye", json!([token("By"), token("e")]))
    ]);
    let mut body = full();
    body["output"] =
        json!([{"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": content}]);
    assert_eq!(write_response(&read_response(&body).expect("reads"))["output"], body["output"]);
    let mut untyped = body.clone();
    untyped["output"][0].as_object_mut().expect("an item").shift_remove("type");
    assert_eq!(write_response(&read_response(&untyped).expect("reads"))["output"], body["output"]);
}

#[test]
fn each_status_has_its_reason() {
    let table = [
        (json!({"status": "completed"}), FinishReason::Stop),
        (json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}), FinishReason::Length),
        (
            json!({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}),
            FinishReason::ContentFilter,
        ),
        (
            json!({"status": "incomplete", "incomplete_details": {"reason": "moon"}}),
            FinishReason::Other("incomplete".into()),
        ),
        (json!({"status": "incomplete"}), FinishReason::Other("incomplete".into())),
        (json!({"status": "in_progress"}), FinishReason::Other("in_progress".into())),
        (json!({"status": "cancelled"}), FinishReason::Other("cancelled".into())),
        (
            json!({"status": "failed", "error": {"code": "server_error", "message": "m"}}),
            FinishReason::Other("failed".into()),
        ),
    ];
    for (mut body, finish) in table {
        let status = if body["status"] == "incomplete" { "incomplete" } else { "completed" };
        body["output"] = json!([
            {"type": "message", "id": "a", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "x"}]},
            {"type": "message", "id": "b", "role": "assistant", "status": status, "content": [{"type": "output_text", "text": "y"}]}]);
        let response = read_response(&body).expect("reads");
        assert_eq!(response.choices[0].finish, Some(finish));
        assert_eq!(normal_response(&write_response(&response)), normal_response(&body));
    }
}

#[test]
fn an_answer_of_another_dialect_gets_ids_and_statuses() {
    let parts = vec![
        ContentPart::Reasoning(ReasoningPart { text: "t".into(), signature: Some("s".into()), ..Default::default() }),
        text("a"),
        ContentPart::Text(TextPart { text: "b".into(), signature: Some("g".into()), ..Default::default() }),
        ContentPart::Image {
            source: MediaSource::Base64 { media_type: "image/png".into(), data: "AA".into() },
            detail: None,
            cache: None,
            extra: Default::default(),
        },
        ContentPart::Foreign { from: Dialect::Anthropic, part: json!({}) },
        ContentPart::ToolCall(call("", "f", "{")),
    ];
    let choice =
        ModelChoice { index: 0, parts, finish: Some(FinishReason::Length), logprobs: None, extra: Default::default() };
    let usage = Some(TokenUsage { input: 1, output: 2, cache_creation: Some(3), ..Default::default() });
    let response =
        ModelResponse { id: "msg_01".into(), model: "m".into(), choices: vec![choice], usage, ..Default::default() };
    let body = write_response(&response);
    let google = json!({"google": {"thought_signature": "g"}});
    assert_eq!(
        body["output"],
        json!([
        {"type": "reasoning", "id": "rs_msg_01_0", "summary": [{"type": "summary_text", "text": "t"}], "signature": "s"},
        {"type": "message", "id": "msg_msg_01_1", "role": "assistant", "status": "completed", "content": [
            {"type": "output_text", "text": "a", "annotations": [], "logprobs": []},
            {"type": "output_text", "text": "b", "annotations": [], "logprobs": [], "extra_content": google}]},
        {"type": "image_generation_call", "id": "ig_msg_01_2", "status": "completed", "result": "AA", "output_format": "png"},
        {"type": "function_call", "id": "fc_msg_01_3", "call_id": "call_msg_01_3", "name": "f", "arguments": "{", "status": "incomplete"}])
    );
    assert_eq!(body["status"], "incomplete");
    assert_eq!(body["incomplete_details"], json!({"reason": "max_output_tokens"}));
    let usage = json!({"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 3},
        "output_tokens": 2, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 3});
    assert_eq!(body["usage"], usage);
    let again = read_response(&body).expect("reads");
    let ContentPart::Reasoning(reasoning) = &again.choices[0].parts[0] else { panic!("is reasoning") };
    assert_eq!(reasoning.signature.as_deref(), Some("s"), "a client that sends items back sends the signature");
}

#[test]
fn reasons_without_an_equal_are_completed() {
    let finishes = [
        None,
        Some(FinishReason::StopSequence(Some("x".into()))),
        Some(FinishReason::Pause),
        Some(FinishReason::Other("odd".into())),
    ];
    for finish in finishes {
        let choice = ModelChoice { index: 0, parts: vec![], finish, logprobs: None, extra: Default::default() };
        let response = ModelResponse { choices: vec![choice], ..Default::default() };
        assert_eq!(write_response(&response)["status"], "completed");
    }
    assert_eq!(write_response(&ModelResponse::default())["output"], json!([]));
}
