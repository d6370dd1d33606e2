//! Tests of the loop with tools.

use serde_json::{Value, json};

use super::*;
use crate::tools::ToolSource;

fn tool_loop(request: Value) -> ToolLoop<&'static str> {
    let source = |slug: &str| ToolSource { slug: slug.to_owned(), ..ToolSource::default() };
    let raw = request["tools"].as_array().cloned().unwrap_or_default();
    let catalog = ToolCatalog::new(&raw, vec![(source("add"), "function-1"), (source("get"), "function-2")]);
    let Value::Object(request) = request else { panic!("a request is an object") };
    ToolLoop::new(request, catalog.expect("two tools"), InvokeMode::Auto)
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn answer(calls: &[Value]) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

#[test]
fn results_are_tool_messages_in_the_order_of_calls() {
    let mut tools = tool_loop(json!({"messages": [{"role": "user", "content": "q"}]}));
    assert_eq!(tools.request()["tools"].as_array().map(Vec::len), Some(2));
    let first = answer(&[call("1", "add", "{\"a\":1}"), call("2", "get", ""), call("3", "add", "{broken")]);
    let Ok(ToolStep::Run(calls)) = tools.answered(&first) else { panic!("calls to run") };
    assert_eq!(calls.iter().map(|call| *call.function).collect::<Vec<_>>(), ["function-1", "function-2", "function-1"]);
    assert_eq!((&calls[0].arguments, &calls[1].arguments), (&Ok(json!({"a": 1})), &Ok(json!({}))));
    let broken = calls[2].arguments.clone().expect_err("no JSON");
    assert!(broken.starts_with("the arguments are not valid JSON"), "{broken}");
    assert_eq!(tools.ran(vec![Ok(json!("text")), Ok(json!({"n": 1.0})), Err("no".into())]), ToolStep::Ask);
    let result = |id: &str, content: &str| json!({"role": "tool", "tool_call_id": id, "content": content});
    let expected = json!([
        {"role": "user", "content": "q"}, first, result("1", "text"), result("2", "{\"n\":1}"), result("3", "Error: no"),
    ]);
    assert_eq!(tools.request()["messages"], expected);
    assert_eq!(tools.answered(&json!({"content": "done"})), Ok(ToolStep::Finished(json!("done"))));
}

#[test]
fn an_answer_with_a_foreign_call_ends_the_loop() {
    let raw = json!([{"type": "function", "function": {"name": "raw"}}]);
    let mut tools = tool_loop(json!({"messages": [], "tools": raw}));
    assert_eq!(tools.request()["tools"].as_array().map(Vec::len), Some(3));
    let mixed = answer(&[call("1", "raw", "{\"x\":2}"), call("2", "add", "{}")]);
    assert_eq!(tools.answered(&mixed), Ok(ToolStep::Finished(json!({"x": 2}))));
}

#[test]
fn a_forced_choice_holds_for_the_first_round_only() {
    let forced = json!({"type": "function", "function": {"name": "add"}});
    for (choice, after) in
        [(forced, "auto"), (json!("required"), "auto"), (json!("auto"), "auto"), (json!("none"), "none")]
    {
        let mut tools = tool_loop(json!({"messages": [], "tool_choice": choice}));
        assert_eq!(tools.request()["tool_choice"], choice);
        assert!(matches!(tools.answered(&answer(&[call("1", "add", "{}")])), Ok(ToolStep::Run(_))));
        assert_eq!(tools.request()["tool_choice"], after);
    }
}

#[test]
fn missing_ids_are_made_up() {
    let mut tools = tool_loop(json!({"messages": []}));
    let calls = [
        json!({"function": {"name": "add", "arguments": "{}"}}),
        call("", "add", "{}"),
        call("x", "add", "{}"),
        call("x", "get", "{}"),
    ];
    let Ok(ToolStep::Run(run)) = tools.answered(&json!({"tool_calls": calls})) else { panic!("calls to run") };
    let ids: Vec<String> = run.iter().map(|call| call.id.clone()).collect();
    assert_eq!(ids, ["call_1_0", "call_1_1", "x", "call_1_3"]);
    tools.ran(vec![Ok(json!(1))]);
    let messages = tools.request()["messages"].as_array().expect("messages");
    assert_eq!((&messages[0]["role"], &messages[0]["tool_calls"][0]["id"]), (&json!("assistant"), &json!("call_1_0")));
    assert_eq!(messages.len(), 5);
    assert_eq!(
        messages[4],
        json!({"role": "tool", "tool_call_id": "call_1_3", "content": "Error: the tool was not run"})
    );
}

#[test]
fn rounds_and_calls_are_limited() {
    let mut tools = tool_loop(json!({"messages": []}));
    for _ in 0..TOOL_ROUNDS_MAX {
        assert!(matches!(tools.answered(&answer(&[call("1", "add", "{}")])), Ok(ToolStep::Run(_))));
        tools.ran(vec![Ok(Value::Null)]);
    }
    let last = tools.answered(&answer(&[call("1", "add", "{}")]));
    assert_eq!(last, Err(AnswerError::TooManyRounds { max: TOOL_ROUNDS_MAX }));
    let many: Vec<Value> = (0..=CALLS_MAX).map(|number| call(&number.to_string(), "add", "{}")).collect();
    let mut tools = tool_loop(json!({"messages": []}));
    assert_eq!(tools.answered(&answer(&many)), Err(AnswerError::TooManyCalls { max: CALLS_MAX }));
}
