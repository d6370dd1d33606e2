//! Cached responses: who gets them, what they say of themselves, and that they cost nothing.

use assay_test_api::http::HttpResponse;
use serde_json::{Value, json};

use crate::fixture::{
    CHAT, GatewayNode, Header, chat, eventually, id_of, openai, provider, stream, streamed_text, text_of, with,
};

const ALWAYS: Header<'static> = ("x-bt-use-cache", "always");

fn cached(answer: &HttpResponse) -> Option<String> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.header("x-bt-cached")
}

/// Asks until the answer comes from the cache: streams are stored behind their end.
fn hit(node: &GatewayNode, path: &str, headers: &[Header<'_>], body: &Value) -> HttpResponse {
    eventually("a hit", || {
        let answer = node.ask(path, headers, body);
        (cached(&answer).as_deref() == Some("HIT")).then_some(answer)
    })
}

#[test]
fn responses_are_cached_as_the_caller_says() {
    let (node, server) = (GatewayNode::start(&[]), provider());
    let secret = node.secret("one", "openai", &openai(&server, "m"));
    let asked = || server.requests().len();
    let first = node.ask(CHAT, &[ALWAYS], &chat("m", "a"));
    assert_eq!(cached(&first).as_deref(), Some("MISS"));
    assert_eq!(first.header("cache-control").as_deref(), Some("max-age=604800"));
    let second = node.ask(CHAT, &[ALWAYS], &chat("m", "a"));
    assert_eq!(cached(&second).as_deref(), Some("HIT"));
    assert_eq!((&second.body, asked()), (&first.body, 1));
    assert!(second.header("age").is_some_and(|age| age.parse::<u64>().is_ok()), "{second:?}");
    assert_eq!(second.header("cache-control").as_deref(), Some("max-age=604800"));
    assert_eq!(second.header("x-bt-used-endpoint").as_deref(), Some("one"));
    let spaced: Value = json!({"messages": [{"content": "a", "role": "user"}], "model": "m"});
    assert_eq!(cached(&node.ask(CHAT, &[ALWAYS], &spaced)).as_deref(), Some("HIT"), "the order of members is none");
    streams(&node);
    spans(&node);
    others(&node, &secret);
    directives(&node);
    modes(&node);
    bad_answers(&node, &server);
}

fn streams(node: &GatewayNode) {
    let body = stream("m", "a stream of words");
    let first = node.ask(CHAT, &[ALWAYS], &body);
    assert_eq!(cached(&first).as_deref(), Some("MISS"));
    let second = hit(node, CHAT, &[ALWAYS], &body);
    assert_eq!(second.text(), first.text());
    assert_eq!(streamed_text(&second.text()), "echo: a stream of words");
    assert!(second.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")));
    assert!(second.header("cache-control").is_some_and(|value| value.contains("no-transform")), "{second:?}");
    let whole = node.ask(CHAT, &[ALWAYS], &chat("m", "a stream of words"));
    assert_eq!(cached(&whole).as_deref(), Some("MISS"), "a stream is no whole answer");
}

fn spans(node: &GatewayNode) {
    let project = node.project("cached");
    let headers = [ALWAYS, ("x-bt-parent", "project_name:cached")];
    let spans = ["MISS", "HIT"].map(|expected| {
        let answer = node.ask(CHAT, &headers, &chat("m", "in a span"));
        assert_eq!(cached(&answer).as_deref(), Some(expected));
        let id = answer.header("x-bt-span-id").expect("a span");
        node.span(&format!("project_logs/{project}"), &id)
    });
    let [missed, hit] = &spans;
    assert!(missed["metrics"].get("cached").is_none(), "{missed}");
    assert!(missed["metrics"]["estimated_cost"].as_f64().is_some_and(|cost| cost > 0.0), "{missed}");
    assert_eq!((&hit["metrics"]["cached"], &hit["metrics"]["estimated_cost"]), (&json!(1), &json!(0.0)), "{hit}");
    assert_eq!((&hit["output"], &hit["metrics"]["tokens"]), (&missed["output"], &missed["metrics"]["tokens"]));
}

/// Entries belong to one principal.
fn others(node: &GatewayNode, secret: &str) {
    let invited = json!({"invite_users": {"emails": ["ann@example.com"]}});
    let added = node.api("PATCH", "/v1/organization/members", &invited);
    let ann = id_of(&added["added_users"][0]);
    let acl = json!({"object_type": "ai_secret", "object_id": secret, "user_id": ann, "permission": "read"});
    node.api("POST", "/v1/acl", &acl);
    let as_ann = [ALWAYS, ("x-bt-impersonate-user", ann.as_str())];
    assert_eq!(cached(&node.ask(CHAT, &as_ann, &chat("m", "a"))).as_deref(), Some("MISS"));
    assert_eq!(cached(&node.ask(CHAT, &as_ann, &chat("m", "a"))).as_deref(), Some("HIT"));
    let key = node.api("POST", "/v1/api_key", &json!({"name": "another"}));
    let bearer = format!("Bearer {}", key["key"].as_str().expect("a key"));
    let rotated = node.ask(CHAT, &[ALWAYS, ("authorization", &bearer)], &chat("m", "a"));
    assert_eq!(cached(&rotated).as_deref(), Some("HIT"), "another key of the same user");
}

fn directives(node: &GatewayNode) {
    let ask =
        |control: &str, text: &str| cached(&node.ask(CHAT, &[ALWAYS, ("cache-control", control)], &chat("m", text)));
    assert_ne!(ask("no-store", "unstored").as_deref(), Some("HIT"));
    assert_eq!(ask("max-age=60", "unstored").as_deref(), Some("MISS"), "nothing was stored");
    assert_ne!(ask("no-cache", "unstored").as_deref(), Some("HIT"));
    assert_ne!(ask("max-age=0", "unstored").as_deref(), Some("HIT"));
    assert_eq!(ask("max-age=60", "unstored").as_deref(), Some("HIT"));
    let short = [ALWAYS, ("x-bt-cache-ttl", "30")];
    let answer = node.ask(CHAT, &short, &chat("m", "short"));
    assert_eq!(answer.header("cache-control").as_deref(), Some("max-age=30"));
}

fn modes(node: &GatewayNode) {
    let twice = |headers: &[Header<'_>], path: &str, body: &Value| {
        [(); 2].map(|()| cached(&node.ask(path, headers, body)).unwrap_or_else(|| "-".into()))
    };
    let body = |members: &Value, text: &str| with(&chat("m", text), members);
    let missed_and_hit = ["MISS", "HIT"].map(str::to_owned);
    assert_eq!(twice(&[], CHAT, &body(&json!({"temperature": 0}), "t")), missed_and_hit);
    assert_eq!(twice(&[], CHAT, &body(&json!({"seed": 7}), "s")), missed_and_hit);
    assert_eq!(twice(&[], "/v1/embeddings", &json!({"model": "m", "input": "e"})), missed_and_hit);
    for members in [json!({}), json!({"temperature": 0.1}), json!({"seed": null})] {
        let found = twice(&[], CHAT, &body(&members, "u"));
        assert!(!found.contains(&"HIT".to_owned()), "{members}: {found:?}");
    }
    let never = twice(&[("x-bt-use-cache", "never")], CHAT, &body(&json!({"temperature": 0}), "n"));
    assert!(!never.contains(&"HIT".to_owned()), "{never:?}");
}

/// What failed or ended early is never replayed.
fn bad_answers(node: &GatewayNode, server: &assay_test_providers::ProviderServer) {
    use assay_test_providers::Fault;
    server.inject(Fault::Status { status: 400, retry_after: None });
    assert_eq!(node.ask(CHAT, &[ALWAYS], &chat("m", "bad")).status, 400);
    assert_eq!(text_of(&node.ask(CHAT, &[ALWAYS], &chat("m", "bad"))), "echo: bad");
    let long = "word ".repeat(60);
    for fault in [Fault::CutAfter(900), Fault::ErrorEventAfter(5)] {
        server.inject(fault);
        let broken = node.ask(CHAT, &[ALWAYS], &stream("m", &long));
        assert!(!broken.text().contains("[DONE]"), "{}", broken.text());
    }
    let whole = node.ask(CHAT, &[ALWAYS], &stream("m", &long));
    assert_eq!(cached(&whole).as_deref(), Some("MISS"));
    assert_eq!(streamed_text(&whole.text()), format!("echo: {long}"));
}
