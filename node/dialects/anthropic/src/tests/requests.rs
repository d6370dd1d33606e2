//! Requests of this dialect, which are passed on as they came.

use serde_json::{Value, json};

use super::{again, body, with};
use crate::{MESSAGES_MAX, read_request, write_request};
use assay_node_dialects::form::{ContentPart, MediaSource, OutputFormat, ReasoningEffort, Role, ToolChoice};
use assay_node_dialects::{DialectError, WriteOptions};

/// Bodies that are written as they were read.
fn unchanged_bodies() -> Vec<Value> {
    let turn = |messages: Value| with(body(), json!({"messages": messages}));
    vec![
        body(),
        with(
            body(),
            json!({"system": "be brief", "stream": true, "stop_sequences": ["END"], "temperature": 0.5,
            "top_p": 0.9, "top_k": 5, "metadata": {"user_id": "u1"}, "service_tier": "auto", "container": "c1"}),
        ),
        with(
            body(),
            json!({"system": [{"type": "text", "text": "a"},
            {"type": "text", "text": "b", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]}),
        ),
        turn(json!([{"role": "user", "content": [
            {"type": "text", "text": "what is this?"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            {"type": "image", "source": {"type": "url", "url": "https://a.example/b.png"}, "cache_control": {"type": "ephemeral"}},
            {"type": "image", "source": {"type": "file", "file_id": "file_1"}}]}])),
        turn(json!([{"role": "user", "content": [
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
             "title": "a.pdf", "context": "found", "citations": {"enabled": true}},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hello"}},
            {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "x"}]}},
            {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "x"}]}]}])),
        turn(json!([
            {"role": "user", "content": "weather?"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "two cities", "signature": "sig=="},
                {"type": "redacted_thinking", "data": "enc=="},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bonn"}},
                {"type": "tool_use", "id": "toolu_2", "name": "weather", "input": {"city": "Köln", "n": 1.5},
                 "caller": {"type": "direct"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "12"},
                {"type": "tool_result", "tool_use_id": "toolu_2", "is_error": true, "content": [
                    {"type": "text", "text": "no", "citations": null},
                    {"type": "image", "source": {"type": "url", "url": "https://a.example/b.png"}},
                    {"type": "tool_reference", "tool_name": "x"}], "cache_control": {"type": "ephemeral"}},
                {"type": "text", "text": "and now?"}]}])),
        turn(json!([
            {"role": "user", "content": "search", "x_unknown": 1},
            {"role": "assistant", "content": [
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "a"}},
                {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
                    {"type": "web_search_result", "url": "https://a.example", "encrypted_content": "e"}]},
                {"type": "text", "text": "found", "citations": [{"type": "web_search_result_location", "url": "https://a.example"}]}]},
            {"role": "user", "content": "more"}])),
    ]
}

/// Bodies with other fields than messages, which are written as they were read.
fn unchanged_settings() -> Vec<Value> {
    vec![
        with(
            body(),
            json!({"tools": [
            {"name": "weather", "description": "d", "input_schema": {"type": "object", "properties": {}}, "strict": true,
             "cache_control": {"type": "ephemeral", "ttl": "5m"}, "defer_loading": true},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}],
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": true}}),
        ),
        with(
            body(),
            json!({"tools": [{"name": "a", "input_schema": {"type": "object"}}],
            "tool_choice": {"type": "tool", "name": "a", "disable_parallel_tool_use": false, "x_unknown": 1}}),
        ),
        with(body(), json!({"tools": [{"name": "a", "input_schema": {}}], "tool_choice": {"type": "any"}})),
        with(body(), json!({"tools": [{"name": "a", "input_schema": {}}], "tool_choice": {"type": "none"}})),
        with(body(), json!({"tools": [{"name": "a", "input_schema": {}}], "tool_choice": {"type": "later", "x": 1}})),
        with(body(), json!({"thinking": {"type": "enabled", "budget_tokens": 10}, "temperature": 0.3, "top_k": 3})),
        with(
            body(),
            json!({"thinking": {"type": "adaptive", "display": "omitted"},
            "output_config": {"effort": "xhigh", "task_budget": {"type": "tokens", "total": 9}}}),
        ),
        with(body(), json!({"thinking": {"type": "disabled"}, "output_config": {"effort": "max"}})),
        with(body(), json!({"thinking": {"type": "between"}})),
        with(
            body(),
            json!({"output_config": {"effort": "low",
            "format": {"type": "json_schema", "schema": {"type": "array", "minItems": 7}, "x_unknown": 1}}}),
        ),
        with(
            body(),
            json!({"cache_control": {"type": "ephemeral"}, "mcp_servers": [{"type": "url", "name": "m"}],
            "context_management": {"edits": []}, "metadata": {"user_id": "u", "x_unknown": 1}}),
        ),
    ]
}

#[test]
fn a_body_is_written_as_it_was_read() {
    for body in [unchanged_bodies(), unchanged_settings()].concat() {
        assert_eq!(again(&body), body);
    }
}

#[test]
fn nothing_of_a_passed_body_is_reported_as_dropped() {
    for body in [unchanged_bodies(), unchanged_settings()].concat() {
        let request = read_request(&body).expect("the body can be read");
        let written = write_request(&request, &WriteOptions::default()).expect("the request can be written");
        assert_eq!(written.dropped, Vec::<String>::new(), "{body}");
    }
}

#[test]
fn equal_spellings_are_written_in_one_way() {
    let turn = |messages: Value| with(body(), json!({"messages": messages}));
    let one = json!({"role": "user", "content": "hi"});
    for (came, goes) in [
        (turn(json!([{"role": "user", "content": [{"type": "text", "text": "hi"}]}])), body()),
        (with(body(), json!({"stream": false, "system": null, "tools": [], "stop_sequences": []})), body()),
        (with(body(), json!({"system": [{"type": "text", "text": "a"}]})), with(body(), json!({"system": "a"}))),
        (turn(json!([one, {"role": "assistant", "content": ""}])), body()),
        (turn(json!([one, {"role": "assistant", "content": []}])), body()),
        (
            turn(json!([one, {"role": "user", "content": "you"}])),
            turn(
                json!([{"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "you"}]}]),
            ),
        ),
        (
            turn(json!([{"role": "user", "content": [{"type": "text", "text": "hi"},
                {"type": "tool_result", "tool_use_id": "t", "is_error": false}]}])),
            turn(json!([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"},
                {"type": "text", "text": "hi"}]}])),
        ),
        (
            with(body(), json!({"tools": [{"type": "custom", "name": "a", "input_schema": {}}]})),
            with(body(), json!({"tools": [{"name": "a", "input_schema": {}}]})),
        ),
        (
            with(body(), json!({"output_format": {"type": "json_schema", "schema": {}}})),
            with(body(), json!({"output_config": {"format": {"type": "json_schema", "schema": {}}}})),
        ),
        (with(body(), json!({"seed": 1, "use_cache": true, "reasoning_enabled": true, "reasoning_budget": 1})), body()),
    ] {
        assert_eq!(again(&came), goes, "{came}");
        assert_eq!(again(&goes), goes);
    }
}

#[test]
fn neighbours_with_unknown_fields_stay_apart() {
    let body = with(
        body(),
        json!({"messages": [
        {"role": "user", "content": "a", "x": 1}, {"role": "user", "content": "b", "x": 2}]}),
    );
    assert_eq!(again(&body), body);
}

#[test]
fn the_older_place_of_a_schema_is_chosen_by_an_option() {
    let request = read_request(&with(body(), json!({"output_format": {"type": "json_schema", "schema": {}}})));
    let options = WriteOptions { schema_in_output_format: true, ..WriteOptions::default() };
    let written = super::written(&request.expect("the body can be read"), &options);
    assert_eq!(written["output_format"], json!({"type": "json_schema", "schema": {}}));
    assert_eq!(written.get("output_config"), None);
}

#[test]
fn a_body_has_the_meaning_of_its_fields() {
    let body = with(
        body(),
        json!({
            "system": "s", "temperature": 0.5, "metadata": {"user_id": "u"},
            "thinking": {"type": "enabled", "budget_tokens": 2000}, "output_config": {"effort": "high",
                "format": {"type": "json_schema", "schema": {"type": "object"}}},
            "tools": [{"name": "a", "description": "d", "input_schema": {"type": "object"}}],
            "tool_choice": {"type": "tool", "name": "a", "disable_parallel_tool_use": true},
            "messages": [
                {"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}]},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "a", "input": {"b": 1}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}, {"type": "text", "text": "x"}]}]
        }),
    );
    let request = read_request(&body).expect("the body can be read");
    let roles: Vec<Role> = request.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool, Role::User]);
    assert!(matches!(&request.messages[1].parts[0],
        ContentPart::Image { source: MediaSource::Base64 { media_type, .. }, .. } if media_type == "image/png"));
    assert!(matches!(&request.messages[2].parts[0], ContentPart::ToolCall(call) if call.arguments == r#"{"b":1}"#));
    assert!(matches!(&request.messages[3].parts[0], ContentPart::ToolResult(result) if result.call_id == "t"));
    assert_eq!(request.tool_choice, Some(ToolChoice::Named(vec!["a".to_owned()])));
    assert_eq!(request.parallel_tool_calls, Some(false));
    assert_eq!((request.max_output_tokens, request.user.as_deref()), (Some(64), Some("u")));
    let reasoning = request.reasoning.expect("the request thinks");
    assert_eq!((reasoning.enabled, reasoning.budget_tokens), (Some(true), Some(2000)));
    assert_eq!((reasoning.effort, reasoning.include_text), (Some(ReasoningEffort::High), Some(true)));
    assert!(matches!(request.output_format, Some(OutputFormat::JsonSchema(format)) if format.strict == Some(true)));
}

#[test]
fn a_wrong_body_is_refused_with_the_path() {
    let turn = |messages: Value| with(body(), json!({"messages": messages}));
    for (body, path) in [
        (json!(1), "body"),
        (json!({"messages": []}), "model"),
        (json!({"model": "m"}), "messages"),
        (turn(json!([{"role": "robot", "content": "x"}])), "messages[0].role"),
        (turn(json!([{"role": "user"}])), "messages[0].content"),
        (turn(json!([{"role": "user", "content": [{"type": "text"}]}])), "messages[0].content[0].text"),
        (
            turn(json!([{"role": "user", "content": [{"type": "image", "source": {"type": "url"}}]}])),
            "messages[0].content[0].source.url",
        ),
        (with(body(), json!({"max_tokens": -1})), "max_tokens"),
        (with(body(), json!({"temperature": "1"})), "temperature"),
        (with(body(), json!({"tools": [{"description": "d"}]})), "tools[0].name"),
        (with(body(), json!({"tools": [{"name": ""}]})), "tools[0].name"),
        (with(body(), json!({"tool_choice": {"type": "tool"}})), "tool_choice.name"),
        (with(body(), json!({"thinking": true})), "thinking"),
        (with(body(), json!({"stop_sequences": [1]})), "stop_sequences[0]"),
        (with(body(), json!({"output_config": {"format": {"type": "xml"}}})), "output_config.format.type"),
    ] {
        let error = read_request(&body).expect_err("the body is wrong");
        assert!(matches!(&error, DialectError::Malformed { path: found, .. } if found == path), "{error}");
    }
}

#[test]
fn more_messages_than_the_api_takes_are_refused() {
    let messages = vec![json!({"role": "user", "content": "a"}); MESSAGES_MAX + 1];
    let error = read_request(&with(body(), json!({"messages": messages}))).expect_err("too many");
    assert!(matches!(error, DialectError::TooMany { max: MESSAGES_MAX, .. }));
}
