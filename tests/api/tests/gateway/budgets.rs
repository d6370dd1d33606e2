//! Gateway budgets: calls beyond them are refused, before a model server is asked, and their usage can be read.

use assay_test_api::http::HttpResponse;
use serde_json::{Value, json};

use crate::fixture::{CHAT, GatewayNode, chat, code_of, eventually, id_of, json_of, openai, provider, stream, with};

fn budget(node: &GatewayNode, scope: &Value, limits: &Value) -> String {
    let sent = with(&json!({"scope": scope, "window": "day", "action": "reject"}), limits);
    id_of(&node.api("POST", "/v1/gateway_budget", &sent))
}

fn usage(node: &GatewayNode, id: &str) -> Value {
    node.api("GET", &format!("/v1/gateway_budget/{id}/usage"), &json!({}))
}

/// Waits until a budget has nothing reserved, and returns its usage.
fn settled(node: &GatewayNode, id: &str) -> Value {
    eventually("a settled budget", || {
        let usage = usage(node, id);
        (usage["usd"]["reserved"] == 0.0 && usage["concurrent"]["running"] == 0).then_some(usage)
    })
}

fn refused(answer: &HttpResponse) {
    assert_eq!(answer.status, 429, "{}", answer.text());
    let seconds: u64 = answer.header("retry-after").and_then(|after| after.parse().ok()).expect("a delay");
    assert!((1..=86_400).contains(&seconds), "{seconds}");
}

#[test]
fn calls_beyond_a_budget_are_refused() {
    let (node, server) = (GatewayNode::start(&[]), provider());
    for model in ["counted", "priced"] {
        node.secret(model, "openai", &openai(&server, model));
    }
    let free = json!({"format": "openai", "flavor": "chat"});
    node.secret("free", "openai", &with(&openai(&server, "free"), &json!({"customModels": {"free": free}})));
    requests(&node, || server.requests().len());
    dollars(&node, || server.requests().len());
    unpriced(&node);
}

fn requests(node: &GatewayNode, asked: impl Fn() -> usize) {
    let id = budget(node, &json!({"type": "model", "id": "counted"}), &json!({"limit_requests": 3}));
    for turn in 0..3 {
        let answer = node.ask(CHAT, &[], &chat("counted", "x"));
        assert_eq!(answer.status, 200, "{turn}: {}", answer.text());
    }
    let before = asked();
    let answer = node.ask(CHAT, &[], &chat("counted", "x"));
    refused(&answer);
    assert_eq!((code_of(&answer).as_str(), asked()), ("budget_exceeded", before));
    let told = ["limit", "remaining"].map(|what| answer.header(&format!("x-ratelimit-{what}-requests")));
    assert_eq!(told, [Some("3".to_owned()), Some("0".to_owned())]);
    let messages = json!([{"role": "user", "content": "x"}]);
    let answer = node.ask("/v1/messages", &[], &json!({"model": "counted", "max_tokens": 5, "messages": messages}));
    refused(&answer);
    assert_eq!(json_of(&answer)["error"]["type"], "rate_limit_error", "{}", answer.text());
    let usage = usage(node, &id);
    let expected = json!({"limit": 3, "spent": 3, "reserved": 0, "remaining": 0});
    assert_eq!((&usage["requests"], &usage["exceeded"]), (&expected, &json!(true)), "{usage}");
    node.api("PATCH", &format!("/v1/gateway_budget/{id}"), &json!({"limit_requests": 4}));
    let raised = eventually("a raised limit", || {
        Some(node.ask(CHAT, &[], &chat("counted", "x"))).filter(|answer| answer.status == 200)
    });
    assert_eq!(raised.status, 200);
}

/// A model at a dollar for a million tokens. A call is admitted while something is left, so the last one may exceed it.
fn dollars(node: &GatewayNode, asked: impl Fn() -> usize) {
    let id = budget(node, &json!({"type": "model", "id": "priced"}), &json!({"limit_usd": 0.000_008}));
    let failed = node.ask(CHAT, &[], &chat("priced", "fail 400"));
    assert_eq!(failed.status, 400, "{}", failed.text());
    assert_eq!(settled(node, &id)["usd"]["spent"], 0.0, "a call that fails costs nothing");
    let body = with(&chat("priced", "one two"), &json!({"max_tokens": 100}));
    let answer = node.ask(CHAT, &[], &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let spent = settled(node, &id);
    assert_eq!(spent["usd"]["spent"], 5e-6, "two words in, three out: {spent}");
    let streamed = node.ask(CHAT, &[], &with(&stream("priced", "one two"), &json!({"max_tokens": 100})));
    assert_eq!(streamed.status, 200);
    let spent = settled(node, &id);
    assert_eq!((&spent["usd"]["spent"], &spent["exceeded"]), (&json!(1e-5), &json!(true)), "{spent}");
    let before = asked();
    let answer = node.ask(CHAT, &[], &body);
    refused(&answer);
    assert_eq!((code_of(&answer).as_str(), asked()), ("budget_exceeded", before));
    assert_eq!(settled(node, &id)["usd"]["spent"], 1e-5, "a refused call costs nothing");
}

/// A model without a price has no part in a budget of dollars, unless that says so.
fn unpriced(node: &GatewayNode) {
    let id = budget(node, &json!({"type": "model", "id": "free"}), &json!({"limit_usd": 1}));
    let answer = node.ask(CHAT, &[], &chat("free", "x"));
    assert!((400..500).contains(&answer.status), "{}: {}", answer.status, answer.text());
    node.api("PATCH", &format!("/v1/gateway_budget/{id}"), &json!({"allow_unpriced": true}));
    eventually("a budget that allows it", || (node.ask(CHAT, &[], &chat("free", "x")).status == 200).then_some(()));
}
