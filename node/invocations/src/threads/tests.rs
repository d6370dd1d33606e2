//! Tests of messages in spans of many forms.

use serde_json::{Value, json};

use super::*;

fn thread(spans: Value) -> Value {
    Value::Array(thread_of_spans(spans.as_array().expect("a list")))
}

fn said(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

#[test]
fn plain_texts_are_a_question_and_an_answer() {
    let spans = json!([{"input": "q", "output": "a"}, {"input": {"a": 1}, "output": ""}, {"input": 5, "output": null}]);
    assert_eq!(thread(spans), json!([said("user", "q"), said("assistant", "a")]));
}

#[test]
fn spans_of_scorers_are_left_out_and_repeated_messages_count_once() {
    let parts = json!({"role": "user", "content": [{"type": "text", "text": "q"}]});
    let spans = json!([
        {"input": [said("user", "q")], "output": [{"message": said("assistant", "a")}], "span_attributes": {"type": "llm"}},
        {"input": "score", "output": 1, "span_attributes": {"purpose": "scorer"}},
        {"input": [parts, said("assistant", "a"), said("user", "r")], "output": null},
    ]);
    assert_eq!(thread(spans), json!([said("user", "q"), said("assistant", "a"), said("user", "r")]));
}

#[test]
fn the_output_of_a_span_follows_the_messages_below_it() {
    let span = |id: &str, parent: &str, input: Value, output: &str| json!({"span_id": id, "span_parents": [parent], "input": input, "output": output});
    let call = |id: &str, parent: &str, text: &str| {
        span(id, parent, json!([said("system", "s"), said("user", text)]), &format!("to {text}"))
    };
    let outer = |id: &str, parent: &str, output: &str| span(id, parent, json!({"question": 1}), output);
    let expected = json!([
        said("system", "s"),
        said("user", "a"),
        said("assistant", "to a"),
        said("user", "b"),
        said("assistant", "to b"),
        said("assistant", "done"),
    ]);
    let (root, first, second) = (outer("r", "none", "done"), outer("f", "r", "to a"), outer("g", "r", "to b"));
    let (a, b) = (call("a", "f", "a"), call("b", "g", "b"));
    assert_eq!(thread(json!([root, first, a, second, b])), expected);
    // A call that was written before the span above it.
    assert_eq!(thread(json!([a, first, b, second, root])), expected);
}

#[test]
fn spans_that_are_above_each_other_end_once() {
    let span = |id: &str, parent: &str| json!({"span_id": id, "span_parents": [parent], "input": null, "output": id});
    let spans = json!([span("a", "b"), span("b", "a"), span("c", "c"), span("d", "a")]);
    assert_eq!(
        thread(spans),
        json!([said("assistant", "c"), said("assistant", "d"), said("assistant", "a"), said("assistant", "b")])
    );
}

#[test]
fn instructions_in_the_metadata_go_first() {
    let metadata = json!({"instructions": "be brief"});
    let spans = json!([{"input": "q", "metadata": metadata, "output": "a"}]);
    assert_eq!(thread(spans), json!([said("system", "be brief"), said("user", "q"), said("assistant", "a")]));
    let spans = json!([{"input": [said("system", "s"), said("user", "q")], "metadata": metadata}]);
    assert_eq!(thread(spans), json!([said("system", "s"), said("user", "q")]));
}

#[test]
fn calls_of_tools_have_one_form() {
    let call = json!({"type": "tool_call", "tool_call_id": "1", "tool_name": "f", "arguments": {"type": "valid", "value": {"a": 1}}});
    let result = json!({"role": "tool", "content": [{"type": "tool_result", "tool_call_id": "1", "tool_name": "", "output": "r"}]});
    let answer = json!({"role": "assistant", "content": [call]});
    let forms = [
        // OpenAI
        json!([
            {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "r"},
        ]),
        // Responses
        json!([
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{\"a\":1}"},
            {"type": "function_call_output", "call_id": "1", "output": "r"},
        ]),
        // Anthropic
        json!({"messages": [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "r"}]},
        ]}),
        // Bedrock
        json!({"messages": [
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "f", "input": {"a": 1}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": "r"}}]},
        ]}),
        // AI SDK
        json!({"prompt": [
            {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "1", "toolName": "f", "args": {"a": 1}}]},
            {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "1", "result": "r"}]},
        ]}),
    ];
    for form in forms {
        assert_eq!(thread(json!([{"input": form}])), json!([answer, result]), "{form}");
    }
    let broken =
        json!([{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{"}}]}]);
    let found = thread(json!([{"input": broken}]));
    assert_eq!(found[0]["content"][0]["arguments"], json!({"type": "invalid", "value": "{"}));
}

#[test]
fn answers_of_model_apis_are_messages() {
    let forms = [
        json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}}]}),
        json!([{"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}]),
        json!({"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}]}),
        json!({"role": "assistant", "content": [{"type": "text", "text": "a"}]}),
        json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "a"}]}}]}),
        json!({"output": {"message": {"role": "assistant", "content": [{"text": "a"}]}}, "usage": {}}),
        json!({"text": "a", "finishReason": "stop"}),
        json!({"response": "a"}),
        json!({"generations": [[{"text": "a", "message": {"type": "constructor", "id": ["langchain", "AIMessage"], "kwargs": {"content": "a"}}}]]}),
        json!([{"kind": "response", "parts": [{"part_kind": "text", "content": "a"}]}]),
    ];
    for form in forms {
        assert_eq!(thread(json!([{"output": form}])), json!([said("assistant", "a")]), "{form}");
    }
}

#[test]
fn requests_of_model_apis_are_messages() {
    let expected = json!([said("system", "s"), said("user", "q")]);
    let forms = [
        json!({"messages": [said("system", "s"), said("user", "q")]}),
        json!({"system": "s", "messages": [said("user", "q")]}),
        json!({"system": [{"type": "text", "text": "s"}], "messages": [said("user", "q")]}),
        json!({"instructions": "s", "input": "q"}),
        json!({"systemInstruction": {"parts": [{"text": "s"}]}, "contents": [{"role": "user", "parts": [{"text": "q"}]}]}),
        json!([[{"type": "system", "content": "s"}, {"type": "human", "data": {"content": "q"}}]]),
        json!([{"kind": "request", "parts": [{"part_kind": "system-prompt", "content": "s"}, {"part_kind": "user-prompt", "content": "q"}]}]),
    ];
    for form in forms {
        assert_eq!(thread(json!([{"input": form}])), expected, "{form}");
    }
}

#[test]
fn deep_wrappers_end() {
    let mut value = json!("q");
    for _ in 0..100 {
        value = json!({"input": value});
    }
    assert_eq!(thread(json!([{"input": value}])), json!([]));
}
