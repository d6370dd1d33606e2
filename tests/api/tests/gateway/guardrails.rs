//! Guardrails of a project: what they refuse, mask and cap before a call, and mask in its span.

use serde_json::{Value, json};

use crate::fixture::{CHAT, GatewayNode, chat, code_of, json_of, openai, provider, text_of, with};

const PARENT: &str = "x-bt-parent";
const GUARDED: (&str, &str) = (PARENT, "project_name:guarded");

fn guard(node: &GatewayNode, project: &str, guardrails: &Value) {
    let settings = json!({"settings": {"gateway_guardrails": guardrails}});
    node.api("PATCH", &format!("/v1/project/{project}"), &settings);
}

#[test]
fn calls_of_a_project_keep_to_its_guardrails() {
    let (node, server) = (GatewayNode::start(&[]), provider());
    node.secret("one", "openai", &openai(&server, "m"));
    let project = node.project("guarded");
    let mail = |action: &str, stage: &str| json!({"rules": [{"name": "mail", "detector": "email", "action": action, "apply_to": [stage]}]});
    let written = chat("m", "write to ann@example.com");

    guard(&node, &project, &mail("block", "request"));
    let refused = node.ask(CHAT, &[GUARDED], &written);
    assert_eq!((refused.status, code_of(&refused).as_str()), (400, "guardrail_blocked"), "{}", refused.text());
    assert!(!refused.text().contains("ann@example.com"), "{}", refused.text());
    assert_eq!(text_of(&node.ask(CHAT, &[], &written)), "echo: write to ann@example.com", "a call without the project");

    guard(&node, &project, &mail("mask", "request"));
    let masked = text_of(&node.ask(CHAT, &[GUARDED], &written));
    assert!(masked.starts_with("echo: write to ") && !masked.contains("ann@example.com"), "{masked}");

    guard(&node, &project, &mail("mask", "log"));
    let answer = node.ask(CHAT, &[GUARDED], &written);
    assert_eq!(text_of(&answer), "echo: write to ann@example.com");
    let span = node.span(&format!("project_logs/{project}"), &answer.header("x-bt-span-id").expect("a span"));
    assert!(!span.to_string().contains("ann@example.com"), "{span}");

    guard(&node, &project, &json!({"allowed_models": ["other-*"], "max_output_tokens": {"limit": 5}}));
    let refused = node.ask(CHAT, &[GUARDED], &written);
    assert_eq!((refused.status, code_of(&refused).as_str()), (403, "model_not_allowed"), "{}", refused.text());
    guard(&node, &project, &json!({"max_output_tokens": {"limit": 5}}));
    text_of(&node.ask(CHAT, &[GUARDED], &with(&written, &json!({"max_tokens": 9}))));
    assert_eq!(server.requests().pop().expect("a request").json()["max_tokens"], 5);
}

#[test]
fn items_that_a_request_names_are_guarded_as_well() {
    let (node, server) = (GatewayNode::start(&[]), provider());
    let chat_only = json!({"customModels": {"m": {"format": "openai", "endpoint_types": ["chat"]}}});
    node.secret("one", "openai", &with(&openai(&server, "m"), &chat_only));
    let project = node.project("guarded");
    let question = json!({"model": "m", "input": "write to ann@example.com"});
    let items = json_of(&node.ask("/v1/responses", &[], &question))["output"].clone();
    let id = &items[0]["id"];
    assert!(items.to_string().contains("ann@example.com") && id.is_string(), "{items}");
    let rule = json!({"name": "mail", "detector": "email", "action": "mask", "apply_to": ["request"]});
    guard(&node, &project, &json!({"rules": [rule]}));
    let named =
        json!({"model": "m", "input": [{"type": "item_reference", "id": id}, {"role": "user", "content": "again"}]});
    let answer = node.ask("/v1/responses", &[GUARDED], &named);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let sent = server.requests().pop().expect("a request").json();
    let message = &sent["messages"][0];
    assert_eq!(message["role"], "assistant", "{sent}");
    assert!(!message.to_string().contains("ann@example.com"), "{sent}");
    let span = node.span(&format!("project_logs/{project}"), &answer.header("x-bt-span-id").expect("a span"));
    assert!(span["input"].to_string().contains("echo: write to"), "the span has the item: {span}");
}
