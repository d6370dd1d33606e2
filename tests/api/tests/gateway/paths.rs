//! Paths of the gateway beside calls: lists of models, what passes as it is, and what is refused.

use assay_test_api::http::{HttpResponse, send};
use serde_json::{Value, json};

use crate::fixture::{CHAT, GatewayNode, Header, chat, code_of, json_of, openai, provider, request, text_of};

fn get(node: &GatewayNode, target: &str, headers: &[Header<'_>]) -> HttpResponse {
    send(node.url(), &request("GET", target, headers, None)).unwrap_or_else(|error| panic!("{error:#}"))
}

#[test]
fn the_paths_beside_calls_answer_as_the_contract_says() {
    let (node, server) = (GatewayNode::start(&[]), provider());
    node.secret("one", "openai", &openai(&server, "m"));
    lists(&node);
    prefixes(&node);
    passed_on(&node);
    refused(&node);
    organizations(&node);
    assert!(server.requests().iter().all(|sent| sent.header("authorization") == Some("Bearer sk-of-one")));
}

fn lists(node: &GatewayNode) {
    let listed = |target: &str, headers: &[Header<'_>]| {
        let answer = get(node, target, headers);
        assert_eq!(answer.status, 200, "{target}: {}", answer.text());
        json_of(&answer)
    };
    let openai = json!({"object": "list", "data": [{"id": "m", "object": "model", "created": 0, "owned_by": "one"}]});
    for target in ["/v1/models", "/v1/proxy/models", "/v1/proxy/v1/models", "/gateway/models", "/gateway/v1/models"] {
        assert_eq!(listed(target, &[]), openai, "{target}");
    }
    assert_eq!(listed("/v1/models/m", &[])["id"], "m");
    let anthropic = listed("/v1/models", &[("anthropic-version", "2023-06-01")]);
    assert_eq!((&anthropic["data"][0]["id"], &anthropic["data"][0]["type"]), (&json!("m"), &json!("model")));
    assert_eq!((&anthropic["first_id"], &anthropic["has_more"]), (&json!("m"), &json!(false)));
    for target in ["/v1beta/models", "/v1/proxy/google/models"] {
        assert_eq!(listed(target, &[])["models"][0]["name"], "models/m", "{target}");
    }
    let unknown = get(node, "/v1/models/unknown", &[]);
    assert_eq!((unknown.status, code_of(&unknown).as_str()), (404, "model_not_found"), "{}", unknown.text());
}

fn prefixes(node: &GatewayNode) {
    let paths =
        [CHAT, "/v1/proxy/v1/chat/completions", "/gateway/chat/completions", "/v1/chat/completions", "/v1/proxy/auto"];
    for path in paths {
        assert_eq!(text_of(&node.ask(path, &[], &chat("m", path))), format!("echo: {path}"));
    }
    for target in ["/v1/proxy", "/v1/proxy/", "/gateway"] {
        let greeting = get(node, target, &[]);
        assert!(greeting.status == 200 && greeting.text().contains("gateway"), "{target}: {}", greeting.text());
    }
}

fn passed_on(node: &GatewayNode) {
    let sent = json!({"model": "m", "query": "q", "documents": ["a", "b"], "unknown": 1});
    let answer = node.ask("/v1/proxy/rerank", &[], &sent);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let read = json_of(&answer);
    assert_eq!((&read["results"][0]["index"], &read["read"]), (&json!(0), &sent));
    for path in ["files", "batches", "fine_tuning/jobs", "assistants", "threads"] {
        let refused = node.ask(&format!("/v1/proxy/{path}"), &[], &sent);
        assert_eq!((refused.status, code_of(&refused).as_str()), (404, "not_found"), "{path}");
    }
}

fn refused(node: &GatewayNode) {
    let wrong = get(node, CHAT, &[]);
    assert_eq!((wrong.status, wrong.header("allow").as_deref()), (405, Some("POST")), "{}", wrong.text());
    let wrong = node.ask("/v1/models", &[], &json!({}));
    assert_eq!((wrong.status, wrong.header("allow").as_deref()), (405, Some("GET")), "{}", wrong.text());
    let upgrade = [("connection", "Upgrade"), ("upgrade", "websocket"), ("sec-websocket-version", "13")];
    let realtime = get(node, "/v1/proxy/realtime?model=m", &upgrade);
    assert_eq!((realtime.status, code_of(&realtime).as_str()), (501, "not_implemented"), "{}", realtime.text());
    let without_key = node.ask(CHAT, &[("authorization", "Bearer sk-of-one")], &chat("m", "x"));
    assert_eq!(
        (without_key.status, code_of(&without_key).as_str()),
        (401, "invalid_api_key"),
        "{}",
        without_key.text()
    );
    for (header, value) in [("x-bt-use-cache", "often"), ("x-bt-stream-fmt", "xml"), ("x-bt-project-id", "p")] {
        let answer = node.ask(CHAT, &[(header, value)], &chat("m", "x"));
        assert_eq!(answer.status, 400, "{header}: {}", answer.text());
        assert!(answer.text().contains(header), "{header}: {}", answer.text());
    }
}

/// A path and a header that name organizations have to agree.
fn organizations(node: &GatewayNode) {
    let me: Value = node.api("POST", "/api/self/me", &json!({}));
    let name = me["organizations"][0]["name"].as_str().expect("a name").to_owned();
    let encoded = assay_test_api::http::percent_encoded(&name);
    let path = format!("/v1/proxy/btorg/{encoded}/chat/completions");
    assert_eq!(text_of(&node.ask(&path, &[], &chat("m", "hi"))), "echo: hi");
    assert_eq!(text_of(&node.ask(&path, &[("x-bt-org-name", &name)], &chat("m", "ho"))), "echo: ho");
    let conflict = node.ask(&path, &[("x-bt-org-name", "another")], &chat("m", "hi"));
    assert_eq!(conflict.status, 400, "{}", conflict.text());
    assert!(conflict.text().contains("Conflicting organization selectors"), "{}", conflict.text());
}
