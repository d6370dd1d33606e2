//! Spans of calls that `x-bt-parent` asks for: what is in them, and that they never are where nobody asked.

use std::time::Duration;

use assay_test_api::http::{HttpResponse, send};
use assay_test_providers::{Fault, ProviderServer};
use serde_json::{Value, json};

use crate::fixture::{
    CHAT, GatewayNode, Header, OpenResponse, chat, eventually, id_of, json_of, openai, provider, request, stream,
    streamed_text, text_of, with,
};

const PARENT: &str = "x-bt-parent";

/// Calls with a parent and returns the span of the call.
fn logged(node: &GatewayNode, object: &str, parent: &str, (path, body): (&str, &Value)) -> (HttpResponse, Value) {
    let answer = node.ask(path, &[(PARENT, parent)], body);
    let id = answer.header("x-bt-span-id").unwrap_or_else(|| panic!("no span: {}", answer.text()));
    let span = node.span(object, &id);
    (answer, span)
}

#[test]
fn calls_are_logged_where_their_header_says() {
    let (node, server) = (GatewayNode::start(&[]), provider());
    node.secret("one", "openai", &openai(&server, "m"));
    let project = node.project("logged");
    let logs = format!("project_logs/{project}");
    whole_answers(&node, &logs, &project);
    parents(&node, &logs, &project);
    media(&node, &logs);
    streams(&node, &logs);
    formats(&node, &logs);
    failures(&node, &logs, &server);
    gone_clients(&node, &logs, &server);
    nothing_asked(&node, &logs);
}

fn whole_answers(node: &GatewayNode, logs: &str, project: &str) {
    let body = with(&chat("m", "say hi"), &json!({"temperature": 0.5, "unknown": [1]}));
    let (answer, span) = logged(node, logs, "project_name:logged", (CHAT, &body));
    assert_eq!(text_of(&answer), "echo: say hi");
    assert_eq!(span["span_attributes"], json!({"name": "Chat Completion", "type": "llm"}));
    assert_eq!((&span["input"], &span["project_id"]), (&body["messages"], &json!(project)));
    assert_eq!(span["output"], json_of(&answer)["choices"].clone().without_refusal(&span["output"]));
    let metadata = &span["metadata"];
    for (name, value) in [
        ("model", json!("m")),
        ("temperature", json!(0.5)),
        ("unknown", json!([1])),
        ("provider", json!("openai")),
        ("endpoint", json!("one")),
    ] {
        assert_eq!(metadata[name], value, "{name}: {metadata}");
    }
    assert_eq!((&metadata["gateway"]["attempts"], &metadata["gateway"]["status"]), (&json!(1), &json!(200)));
    assert_eq!(json!(answer.header("x-bt-request-id")), metadata["gateway"]["request_id"]);
    let metrics = &span["metrics"];
    for (name, value) in [("tokens", 5), ("prompt_tokens", 2), ("completion_tokens", 3), ("retries", 0)] {
        assert_eq!(metrics[name], json!(value), "{name}: {metrics}");
    }
    let cost = metrics["estimated_cost"].as_f64().expect("a cost");
    assert!((cost - 5e-6).abs() < 1e-12, "{metrics}");
    assert_eq!(answer.header("x-bt-cost").and_then(|cost| cost.parse().ok()), Some(cost));
    assert!(metrics["start"].as_f64() <= metrics["end"].as_f64() && metrics["time_to_first_token"].is_number());
    assert!(metrics.get("cached").is_none() && span["error"].is_null(), "{span}");
}

/// Access to a span's output for the comparison with what the client got.
trait WithoutRefusal {
    fn without_refusal(self, shown: &Value) -> Value;
}

impl WithoutRefusal for Value {
    /// Leaves out the member `refusal` where the span leaves it out.
    fn without_refusal(mut self, shown: &Value) -> Value {
        if shown[0]["message"].get("refusal").is_none()
            && let Some(message) = self[0]["message"].as_object_mut()
        {
            message.remove("refusal");
        }
        self
    }
}

fn media(node: &GatewayNode, logs: &str) {
    let url = "data:image/png;base64,aGVsbG8=";
    let image = json!({"type": "image_url", "image_url": {"url": url}});
    let body = json!({"model": "m", "messages": [{"role": "user", "content": [image, {"type": "text", "text": url}]}]});
    let (answer, span) = logged(node, logs, "project_name:logged", (CHAT, &body));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let content = &span["input"][0]["content"];
    let reference = &content[0]["image_url"]["url"];
    let key = reference["key"].as_str().unwrap_or_else(|| panic!("no attachment: {span}"));
    let expected =
        json!({"type": "braintrust_attachment", "filename": "file.png", "content_type": "image/png", "key": key});
    assert_eq!((reference, &content[1]["text"]), (&expected, &expected), "the same media are stored once");
    let found = node.api("GET", &format!("/attachment?key={key}"), &json!({}));
    let address = found["downloadUrl"].as_str().expect("an address");
    let path = &address[address.find("/attachment/bytes").expect("a path")..];
    let stored = send(node.url(), &request("GET", path, &[], None)).expect("an answer");
    assert_eq!((stored.status, stored.body.as_slice()), (200, b"hello".as_slice()));
}

fn parents(node: &GatewayNode, logs: &str, project: &str) {
    let (answer, root) = logged(node, logs, &format!("project_id:{project}"), (CHAT, &chat("m", "root")));
    assert!(root["span_parents"].is_null() && root["is_root"] == true, "{root}");
    assert_eq!(root["root_span_id"], root["span_id"]);
    let slug = answer.header("x-bt-span-export").expect("an exported span");
    let (_, child) = logged(node, logs, &slug, (CHAT, &chat("m", "child")));
    assert_eq!(child["root_span_id"], root["root_span_id"]);
    assert_eq!(child["span_parents"], json!([root["span_id"]]));
    let experiment = id_of(&node.api("POST", "/v1/experiment", &json!({"project_id": project, "name": "e"})));
    let parent = format!("experiment_id:{experiment}");
    let (_, span) = logged(node, &format!("experiment/{experiment}"), &parent, (CHAT, &chat("m", "in an experiment")));
    assert_eq!(
        (&span["experiment_id"], &span["input"][0]["content"]),
        (&json!(experiment), &json!("in an experiment"))
    );
    for bad in ["project", "project_id:", "what:x", "project_id:no-uuid", "a:b:c", "AAAA"] {
        let answer = node.ask(CHAT, &[(PARENT, bad)], &chat("m", "bad"));
        let expected = format!("Invalid parent header '{bad}'");
        assert_eq!(answer.status, 400, "{bad}: {}", answer.text());
        let message = json_of(&answer)["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(&expected), "{bad}: {message}");
    }
    let missing = "experiment_id:11111111-2222-4333-8444-555555555555";
    let answer = node.ask(CHAT, &[(PARENT, missing)], &chat("m", "bad"));
    assert!([400, 403, 404].contains(&answer.status), "{}", answer.text());
}

fn streams(node: &GatewayNode, logs: &str) {
    let (answer, span) = logged(node, logs, "project_name:logged", (CHAT, &stream("m", "one two three")));
    assert_eq!(streamed_text(&answer.text()), "echo: one two three");
    assert!(answer.text().trim_end().ends_with("data: [DONE]"), "{}", answer.text());
    assert!(!answer.text().contains("\"usage\":{"), "the client did not ask for the usage: {}", answer.text());
    let choice = &span["output"][0];
    assert_eq!(choice["message"]["content"], "echo: one two three");
    assert_eq!((&choice["message"]["role"], &choice["finish_reason"]), (&json!("assistant"), &json!("stop")));
    let metrics = &span["metrics"];
    assert_eq!((&metrics["tokens"], &metrics["prompt_tokens"]), (&json!(7), &json!(3)));
    assert!(metrics["time_to_first_token"].is_number() && metrics["estimated_cost"].is_number(), "{metrics}");
    let asked = with(&stream("m", "with usage"), &json!({"stream_options": {"include_usage": true}}));
    let (answer, _) = logged(node, logs, "project_name:logged", (CHAT, &asked));
    assert!(answer.text().contains("\"total_tokens\":5"), "{}", answer.text());
}

/// Calls of other formats are shown as those of OpenAI.
fn formats(node: &GatewayNode, logs: &str) {
    let parent = "project_name:logged";
    let shown = |span: &Value, text: &str| {
        assert_eq!(span["input"], json!([{"role": "system", "content": "brief"}, {"role": "user", "content": text}]));
        let message = &span["output"][0]["message"];
        assert_eq!(message["content"], format!("echo: {text} (told: brief)"), "{span}");
        assert_eq!(span["metrics"]["prompt_tokens"], 2, "{span}");
        assert_eq!((&span["metadata"]["model"], &span["metadata"]["endpoint"]), (&json!("m"), &json!("one")));
    };
    let anthropic =
        json!({"model": "m", "max_tokens": 50, "system": "brief", "messages": [{"role": "user", "content": "a"}]});
    let (answer, span) = logged(node, logs, parent, ("/v1/messages", &anthropic));
    assert_eq!(json_of(&answer)["content"][0]["text"], "echo: a (told: brief)");
    shown(&span, "a");
    let streamed = with(&anthropic, &json!({"stream": true}));
    let (answer, span) = logged(node, logs, parent, ("/v1/proxy/anthropic/v1/messages", &streamed));
    assert!(answer.text().contains("event: message_stop"), "{}", answer.text());
    shown(&span, "a");
    let gemini = json!({"contents": [{"role": "user", "parts": [{"text": "g"}]}],
        "systemInstruction": {"parts": [{"text": "brief"}]}});
    let (_, span) = logged(node, logs, parent, ("/v1beta/models/m:generateContent", &gemini));
    shown(&span, "g");
    let (_, span) = logged(node, logs, parent, ("/v1beta/models/m:streamGenerateContent?alt=sse", &gemini));
    shown(&span, "g");
    let (_, span) = logged(node, logs, parent, ("/v1/responses", &json!({"model": "m", "input": "r"})));
    assert_eq!((&span["input"], &span["span_attributes"]["name"]), (&json!("r"), &json!("Response")));
    assert_eq!(span["output"][0]["content"][0]["text"], "echo: r", "{span}");
}

fn failures(node: &GatewayNode, logs: &str, server: &ProviderServer) {
    server.inject(Fault::Status { status: 400, retry_after: None });
    let (answer, span) = logged(node, logs, "project_name:logged", (CHAT, &chat("m", "refused")));
    assert_eq!(answer.status, 400);
    assert!(span["error"].as_str().is_some_and(|error| error.contains("scripted error 400")), "{span}");
    server.inject(Fault::CutAfter(900));
    let long = "word ".repeat(60);
    let (answer, span) = logged(node, logs, "project_name:logged", (CHAT, &stream("m", &long)));
    assert!(answer.text().contains("ended its answer early") && !answer.text().contains("[DONE]"), "{}", answer.text());
    assert_eq!(span["error"], "the model server ended its answer early");
    let content = span["output"][0]["message"]["content"].as_str().expect("what came");
    assert!(!content.is_empty() && format!("echo: {long}").starts_with(content), "{span}");
}

/// A client that leaves ends the call of the model server at once, and what came is logged.
fn gone_clients(node: &GatewayNode, logs: &str, server: &ProviderServer) {
    let abandoned = server.abandoned();
    server.inject(Fault::SlowEvents(Duration::from_millis(50)));
    let long = "word ".repeat(400);
    let mut response = OpenResponse::begin(node.url(), &[(PARENT, "project_name:logged")], &stream("m", &long));
    let head = response.until("wo");
    let id = head.lines().find_map(|line| line.strip_prefix("x-bt-span-id: ")).expect("a span").to_owned();
    drop(response);
    eventually("the end of the connection to the model server", || (server.abandoned() > abandoned).then_some(()));
    let span = node.span(logs, &id);
    assert_eq!(span["error"], "client disconnected", "{span}");
    let content = span["output"][0]["message"]["content"].as_str().expect("what came");
    assert!(!content.is_empty() && content.len() < long.len(), "{span}");
}

fn nothing_asked(node: &GatewayNode, logs: &str) {
    let count = node.rows(logs).len();
    let headers: [&[Header<'_>]; 2] = [&[], &[(PARENT, "")]];
    for headers in headers {
        let answer = node.ask(CHAT, headers, &chat("m", "unlogged"));
        assert_eq!(text_of(&answer), "echo: unlogged");
        assert_eq!(answer.header("x-bt-span-id"), None);
    }
    // a later span is there: those before it would be too
    logged(node, logs, "project_name:logged", (CHAT, &chat("m", "last")));
    let rows = node.rows(logs);
    assert_eq!(rows.len(), count + 1);
    assert!(rows.iter().all(|row| !row.to_string().contains("unlogged")));
}
