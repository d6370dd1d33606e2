//! Choice of a provider secret for a model: priorities, names, projects, and what is said when there is none.

use assay_test_api::http::HttpResponse;
use assay_test_providers::Fault;
use serde_json::json;

use crate::fixture::{CHAT, GatewayNode, chat, code_of, id_of, json_of, openai, provider, text_of, with};

fn endpoint(answer: &HttpResponse) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.header("x-bt-used-endpoint").unwrap_or_default()
}

#[test]
fn calls_go_to_the_secrets_that_the_contract_names() {
    let node = GatewayNode::start(&["gateway.retry_budget_seconds=1"]);
    priorities_and_names(&node);
    projects(&node);
    no_candidate(&node);
    cooling(&node);
    refused_keys(&node);
}

fn priorities_and_names(node: &GatewayNode) {
    let servers = [provider(), provider(), provider()];
    for (server, priority) in servers.iter().zip([5, 1, 9]) {
        let metadata = with(&openai(server, "ranked"), &json!({"priority": priority}));
        node.secret(&format!("rank-{priority}"), "openai", &metadata);
    }
    for turn in 0..5 {
        assert_eq!(endpoint(&node.ask(CHAT, &[], &chat("ranked", &turn.to_string()))), "rank-1");
    }
    let named = node.ask(CHAT, &[("x-bt-endpoint-name", "rank-9")], &chat("ranked", "x"));
    assert_eq!(endpoint(&named), "rank-9");
    assert_eq!(named.header("x-bt-used-model").as_deref(), Some("ranked"));
    assert_eq!(named.header("x-bt-attempts").as_deref(), Some("1"));
    let unknown = node.ask(CHAT, &[("x-bt-endpoint-name", "RANK-9")], &chat("ranked", "x"));
    assert_eq!((unknown.status, code_of(&unknown).as_str()), (404, "model_not_found"));
    let counts = servers.each_ref().map(|server| server.requests().len());
    assert_eq!(counts, [0, 5, 1]);
}

/// A custom provider of a project takes precedence over that of the organization with its name.
fn projects(node: &GatewayNode) {
    let (of_org, of_project) = (provider(), provider());
    let project = node.project("with a provider");
    node.secret("SHARED", "openai", &openai(&of_org, "overridden"));
    let variable = json!({"object_type": "project", "object_id": project, "name": "SHARED", "secret_type": "openai",
        "value": "sk-of-the-project", "metadata": openai(&of_project, "overridden")});
    let made = node.api("POST", "/v1/env_var", &variable);
    assert_eq!(made["secret_category"], "ai_provider", "{made}");
    assert_eq!(text_of(&node.ask(CHAT, &[("x-bt-project-id", &project)], &chat("overridden", "a"))), "echo: a");
    assert_eq!((of_org.requests().len(), of_project.requests().len()), (0, 1));
    assert_eq!(of_project.requests()[0].header("authorization"), Some("Bearer sk-of-the-project"));
    assert_eq!(text_of(&node.ask(CHAT, &[], &chat("overridden", "b"))), "echo: b");
    assert_eq!((of_org.requests().len(), of_project.requests().len()), (1, 1));
    let other = "11111111-2222-4333-8444-555555555555";
    let missing = node.ask(CHAT, &[("x-bt-project-id", other)], &chat("overridden", "c"));
    assert!([403, 404].contains(&missing.status), "{}", missing.text());
}

/// A model without a server is a 404 in the form of each client.
fn no_candidate(node: &GatewayNode) {
    let messages = json!([{"role": "user", "content": "x"}]);
    let openai = [
        (CHAT, json!({"model": "nobody's", "messages": messages})),
        ("/v1/responses", json!({"model": "nobody's", "input": "x"})),
        ("/v1/embeddings", json!({"model": "nobody's", "input": "x"})),
        ("/v1/completions", json!({"model": "nobody's", "prompt": "x"})),
    ];
    for (path, body) in openai {
        let answer = node.ask(path, &[], &body);
        let error = &json_of(&answer)["error"];
        assert_eq!((answer.status, &error["code"], &error["param"]), (404, &json!("model_not_found"), &json!("model")));
        assert!(error["message"].as_str().is_some_and(|message| message.contains("nobody's")), "{path}: {error}");
    }
    let anthropic = json!({"model": "nobody's", "max_tokens": 5, "messages": messages});
    let answer = node.ask("/v1/messages", &[], &anthropic);
    let said = json_of(&answer);
    assert_eq!(
        (answer.status, &said["type"], &said["error"]["type"]),
        (404, &json!("error"), &json!("not_found_error"))
    );
    let gemini = json!({"contents": [{"role": "user", "parts": [{"text": "x"}]}]});
    let answer = node.ask("/v1beta/models/nobodys:generateContent", &[], &gemini);
    let error = &json_of(&answer)["error"];
    assert_eq!((answer.status, &error["code"], &error["status"]), (404, &json!(404), &json!("NOT_FOUND")));
    let without = node.ask(CHAT, &[], &json!({"messages": messages}));
    assert_eq!(without.status, 400, "{}", without.text());
}

/// A 429 with a delay cools its secret: the next one serves, and the calls after it go there at once.
fn cooling(node: &GatewayNode) {
    let (limited, spare) = (provider(), provider());
    for (name, server, priority) in [("limited", &limited, 0), ("spare", &spare, 1)] {
        node.secret(name, "openai", &with(&openai(server, "cooled"), &json!({"priority": priority})));
    }
    limited.inject(Fault::Status { status: 429, retry_after: Some("60".into()) });
    let first = node.ask(CHAT, &[], &chat("cooled", "a"));
    assert_eq!((endpoint(&first).as_str(), first.header("x-bt-attempts").as_deref()), ("spare", Some("2")));
    let second = node.ask(CHAT, &[], &chat("cooled", "b"));
    assert_eq!((endpoint(&second).as_str(), second.header("x-bt-attempts").as_deref()), ("spare", Some("1")));
    assert_eq!((limited.requests().len(), spare.requests().len()), (1, 2));
}

/// A refused key is the server's fault and not the caller's; another secret is tried.
fn refused_keys(node: &GatewayNode) {
    let server = provider();
    node.secret("revoked", "openai", &openai(&server, "refused"));
    for status in [401, 403] {
        server.inject(Fault::Status { status, retry_after: None });
        let answer = node.ask(CHAT, &[], &chat("refused", "a"));
        assert_eq!((answer.status, code_of(&answer).as_str()), (502, "provider_auth_error"), "{}", answer.text());
    }
    assert_eq!(server.requests().len(), 2, "it is not asked again");
    let good = provider();
    let id = node.secret("valid", "openai", &with(&openai(&good, "refused"), &json!({"priority": 1})));
    server.inject(Fault::Status { status: 401, retry_after: None });
    assert_eq!(endpoint(&node.ask(CHAT, &[], &chat("refused", "b"))), "valid");
    assert_eq!(id_of(&node.api("GET", &format!("/v1/ai_secret/{id}"), &json!({}))), id);
}
