//! Tests of code functions on real nodes, in the sandbox of this machine.
//!
//! Without an interpreter or a sandbox they report "not covered" and pass, unless ASSAY_REQUIRE=all.

mod abuse;
mod forwarding;
mod inline;
mod quickjs;

use std::io::Write;

use assay_test_api::http::{HttpResponse, Request, send};
use assay_test_api::rows::call;
use assay_test_api::server::{Options, Server, TEST_KEY};
use serde_json::{Value, json};

/// Node with a project, which runs code.
struct CodeNode {
    server: Server,
    project: String,
    _dir: tempfile::TempDir,
}

impl CodeNode {
    /// Starts a node that runs code of both languages, or tells why the test is not covered on this machine.
    fn start(what: &str, settings: &[&str]) -> Option<CodeNode> {
        let trials = [javascript("const handler = () => 1", json!(null)), python("handler = lambda: 1", json!({}))];
        CodeNode::start_for(what, settings, &trials)
    }

    /// Starts a node that runs some functions, each of which returns 1.
    fn start_for(what: &str, settings: &[&str], trials: &[Value]) -> Option<CodeNode> {
        let dir = tempfile::tempdir().expect("a directory");
        let mut options = Options::new(&dir.path().join("data"));
        options.settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        options.settings.push("http.otlp_listen=off".to_owned());
        let server = Server::start(&options).unwrap_or_else(|error| panic!("{error:#}"));
        let project = call(&server.url, "POST", "/v1/project", &json!({"name": "p"})).expect("a project");
        let project = project["id"].as_str().expect("an id").to_owned();
        let node = CodeNode { server, project, _dir: dir };
        for body in trials {
            let (status, answer) = node.invoke(body);
            if status == 400 {
                assert_ne!(std::env::var("ASSAY_REQUIRE").as_deref(), Ok("all"), "{answer}");
                // To the stream itself: what a passing test prints is not shown.
                let _ = writeln!(std::io::stderr(), "NOT COVERED: {what}: {}", answer["Message"]);
                return None;
            }
            assert_eq!((status, &answer), (200, &json!(1)), "{}", node.server.log());
        }
        Some(node)
    }

    fn exchange(&self, body: &Value) -> HttpResponse {
        send(&self.server.url, &invoke_request(body)).expect("an answer")
    }

    /// Invokes a function. Returns the status, and the value or the error.
    fn invoke(&self, body: &Value) -> (u16, Value) {
        invoke_at(&self.server.url, body)
    }

    fn value(&self, body: &Value) -> Value {
        let (status, value) = self.invoke(body);
        assert_eq!(status, 200, "{value}\n{body}");
        value
    }

    /// Invokes a function that fails, and returns the message.
    fn failure(&self, body: &Value) -> Value {
        let (status, value) = self.invoke(body);
        assert_eq!(status, 500, "{value}\n{body}");
        value
    }
}

/// Returns the request of an invocation.
fn invoke_request(body: &Value) -> Request {
    Request {
        method: "POST".into(),
        target: "/function/invoke".into(),
        headers: vec![("authorization".into(), format!("Bearer {TEST_KEY}"))],
        body: Some(body.to_string().into_bytes()),
        declared_length: None,
    }
}

/// Invokes a function at an address. Returns the status, and the value or the error.
fn invoke_at(url: &str, body: &Value) -> (u16, Value) {
    let answer = send(url, &invoke_request(body)).expect("an answer");
    let value = serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("no JSON: {}", answer.text()));
    (answer.status, value)
}

fn inline(runtime: &str, version: &str, code: &str, input: Value) -> Value {
    json!({"inline_context": {"runtime": runtime, "version": version}, "code": code, "input": input})
}

fn javascript(code: &str, input: Value) -> Value {
    inline("node", "20", code, input)
}

fn python(code: &str, input: Value) -> Value {
    inline("python", "3.11", code, input)
}

/// Adds members to a body.
fn with(mut body: Value, more: Value) -> Value {
    let members = more.as_object().expect("an object").clone();
    body.as_object_mut().expect("an object").extend(members);
    body
}
