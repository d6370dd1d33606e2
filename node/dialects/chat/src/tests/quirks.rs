//! Tests of the differences among servers.

use super::*;
use assay_node_dialects::ReasoningHistory;

fn adapted(body: Value, options: &WriteOptions) -> (Value, Vec<String>) {
    let mut adapted = body.clone();
    let dropped = adapt(&mut adapted, options).expect("can be sent");
    let written = write_request(&read_request(&body).expect("reads"), options).expect("can be sent");
    assert_eq!(written.body, adapted, "a translated body has the same quirks");
    assert_eq!(written.dropped, dropped);
    (adapted, dropped)
}

fn with(members: Value) -> Value {
    let mut body = json!({ "model": "gpt-5-mini", "messages": [] });
    body.as_object_mut().expect("an object").extend(members.as_object().expect("an object").clone());
    body
}

#[test]
fn a_reasoning_model_gets_only_its_parameters() {
    let options = WriteOptions { is_reasoning_model: true, ..WriteOptions::default() };
    let table = [
        (json!({ "max_tokens": 5 }), json!({ "max_completion_tokens": 5 }), vec![]),
        (
            json!({ "temperature": 0, "parallel_tool_calls": true }),
            json!({}),
            vec!["temperature", "parallel_tool_calls"],
        ),
        (
            json!({ "temperature": 0, "reasoning_effort": "none" }),
            json!({ "temperature": 0, "reasoning_effort": "none" }),
            vec![],
        ),
        (
            json!({ "model": "o3", "temperature": 0, "reasoning_effort": "none" }),
            json!({ "model": "o3", "reasoning_effort": "none" }),
            vec!["temperature"],
        ),
        (
            json!({ "model": "gpt-5.1", "reasoning_effort": "minimal" }),
            json!({ "model": "gpt-5.1", "reasoning_effort": "low" }),
            vec![],
        ),
        (json!({ "reasoning_effort": "minimal" }), json!({ "reasoning_effort": "minimal" }), vec![]),
        (
            json!({ "model": "o1-mini", "messages": [{ "role": "system", "content": "a" }] }),
            json!({ "model": "o1-mini", "messages": [{ "role": "user", "content": "a" }] }),
            vec![],
        ),
        (
            json!({ "reasoning_budget": 300, "max_tokens": 1000 }),
            json!({ "reasoning_effort": "low", "max_completion_tokens": 1000 }),
            vec![],
        ),
        (
            json!({ "reasoning_budget": 500, "max_tokens": 1000 }),
            json!({ "reasoning_effort": "medium", "max_completion_tokens": 1000 }),
            vec![],
        ),
        (json!({ "reasoning_budget": 4096 }), json!({ "reasoning_effort": "high" }), vec![]),
        (json!({ "reasoning_enabled": true }), json!({}), vec![]),
        (json!({ "reasoning_enabled": false }), json!({}), vec!["reasoning_enabled"]),
    ];
    for (given, expected, dropped) in table {
        assert_eq!(
            adapted(with(given.clone()), &options),
            (with(expected), dropped.into_iter().map(str::to_owned).collect()),
            "{given}"
        );
    }
    let budget = adapted(with(json!({ "reasoning_budget": 5 })), &WriteOptions::default());
    assert_eq!(budget, (with(json!({})), vec!["reasoning_budget".to_owned()]));
}

#[test]
fn names_of_reasoning_models_are_known() {
    for name in ["o1", "o1-mini", "o3-pro-2025-06-10", "o4-mini", "gpt-5", "gpt-5.1-codex", "openai/gpt-5"] {
        assert!(is_reasoning_model_name(name), "{name}");
    }
    for name in ["gpt-4o", "o11", "olmo", "llama-3", "gpt-4.5-preview"] {
        assert!(!is_reasoning_model_name(name), "{name}");
    }
    assert_eq!(azure_deployment("gpt-3.5-turbo"), "gpt-35-turbo");
}

#[test]
fn usage_is_asked_for_where_the_server_understands() {
    let takes = WriteOptions { takes_stream_options: true, ..WriteOptions::default() };
    let asked = json!({ "stream": true, "stream_options": { "include_usage": true } });
    assert_eq!(adapted(with(json!({ "stream": true })), &takes).0, with(asked.clone()));
    assert_eq!(adapted(with(asked.clone()), &WriteOptions::default()).0, with(json!({ "stream": true })));
    assert_eq!(adapted(with(json!({})), &takes).0, with(json!({})));
    let kept = json!({ "stream": true, "stream_options": { "include_usage": true, "include_obfuscation": false } });
    assert_eq!(adapted(with(kept.clone()), &takes).0, with(kept));
    let unwanted = json!({ "stream": true, "stream_options": { "include_usage": false } });
    assert_eq!(adapted(with(unwanted), &takes).0, with(asked));
}

#[test]
fn refused_members_are_not_sent() {
    let options = WriteOptions {
        refuses_parallel_tool_calls: true,
        refuses_cache_control: true,
        developer_as_system: true,
        ..WriteOptions::default()
    };
    let cache = json!({ "type": "ephemeral" });
    let given = json!({ "parallel_tool_calls": false, "messages": [
        { "role": "developer", "content": [
            { "type": "text", "text": "a", "cache_control": cache }, { "type": "text", "text": "b" }] },
    ] });
    let expected = json!({ "messages": [
        { "role": "system", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] },
    ] });
    let dropped = vec!["parallel_tool_calls".to_owned(), "cache_control".to_owned()];
    assert_eq!(adapted(with(given), &options), (with(expected), dropped));
}

#[test]
fn reasoning_of_earlier_turns_is_sent_as_the_server_takes_it() {
    let list = json!([{ "id": "s", "content": "a" }, { "content": "b" }]);
    let table = [
        (ReasoningHistory::Keep, json!({ "reasoning": list }), json!({ "reasoning": list })),
        (
            ReasoningHistory::Texts,
            json!({ "reasoning": list }),
            json!({ "reasoning": "ab", "reasoning_content": "ab" }),
        ),
        (ReasoningHistory::Texts, json!({ "reasoning": "a" }), json!({ "reasoning": "a" })),
        (ReasoningHistory::Texts, json!({ "reasoning_content": "a" }), json!({ "reasoning_content": "a" })),
        (ReasoningHistory::Remove, json!({ "reasoning": list }), json!({})),
        (ReasoningHistory::Remove, json!({ "reasoning": "a", "reasoning_content": "a" }), json!({})),
    ];
    for (reasoning_history, given, expected) in table {
        let message = |members: &Value| {
            let mut message = json!({ "role": "assistant", "content": "x" });
            message.as_object_mut().expect("an object").extend(members.as_object().expect("an object").clone());
            request_of(message)
        };
        let options = WriteOptions { reasoning_history, ..WriteOptions::default() };
        assert_eq!(adapted(message(&given), &options).0, message(&expected));
    }
}

#[test]
fn a_schema_becomes_a_tool_and_its_call_the_answer() {
    let options = WriteOptions { schema_as_tool: true, ..WriteOptions::default() };
    let schema = json!({ "type": "object" });
    let format = json!({ "type": "json_schema", "json_schema": { "name": "x", "schema": schema, "strict": true } });
    let (body, _) = adapted(with(json!({ "response_format": format })), &options);
    let function = json!({ "name": "json", "parameters": schema, "strict": true });
    assert_eq!(body["tools"], json!([{ "type": "function", "function": function }]));
    assert_eq!(body["tool_choice"]["function"]["name"], "json");
    assert!(body.get("response_format").is_none());
    let tools = json!([{ "type": "function", "function": { "name": "f" } }]);
    let refused = adapt(&mut with(json!({ "response_format": format, "tools": tools })), &options);
    assert_eq!(
        refused.expect_err("no place").to_string(),
        "response_format: a JSON schema together with tools cannot be sent to this model"
    );

    let call = json!({ "id": "a", "type": "function", "function": { "name": "json", "arguments": "{\"a\":1}" } });
    let answer = json!({ "id": "i", "model": "m", "created": 1, "choices": [
        { "index": 0, "message": { "role": "assistant", "content": null, "tool_calls": [call] }, "finish_reason": "tool_calls" }] });
    let mut response = read_response(&answer).expect("reads");
    let events = assay_node_dialects::form::unfold(&response);
    text_of_json_tool(&mut response);
    let written = write_response(&response);
    assert_eq!(written["choices"][0]["message"], json!({ "role": "assistant", "content": "{\"a\":1}" }));
    assert_eq!(written["choices"][0]["finish_reason"], "stop");
    let mut stream = JsonToolStream::default();
    assert_eq!(folded(&events.into_iter().map(|event| stream.map(event)).collect::<Vec<_>>()), response);
}
