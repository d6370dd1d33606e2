//! Facts about the Messages API: tables of real bodies, and properties of arbitrary ones.

mod answers;
mod fold;
mod properties;
mod requests;
mod schemas;
mod streams;
mod translated;

use serde_json::{Value, json};

use assay_node_dialects::form::{ContentPart, Extra, Message, ModelRequest, Role, TextPart};
use assay_node_dialects::{SseEvent, WriteOptions};

/// Body that a request of the form is written as.
fn written(request: &ModelRequest, options: &WriteOptions) -> Value {
    super::write_request(request, options).expect("the request can be written").body
}

/// Body after it was read and written with no options.
fn again(body: &Value) -> Value {
    written(&super::read_request(body).expect("the body can be read"), &WriteOptions::default())
}

fn text(text: &str) -> ContentPart {
    ContentPart::Text(TextPart { text: text.to_owned(), ..TextPart::default() })
}

fn message(role: Role, parts: Vec<ContentPart>) -> Message {
    Message { role, name: None, parts, extra: Extra::default() }
}

/// Request of another dialect with one question.
fn question() -> ModelRequest {
    ModelRequest {
        model: "claude-sonnet-4-5".to_owned(),
        messages: vec![message(Role::User, vec![text("hi")])],
        ..ModelRequest::default()
    }
}

fn sse(data: Value) -> SseEvent {
    SseEvent { event: data["type"].as_str().map(str::to_owned), data: data.to_string() }
}

/// Body with the fields of another one added.
fn with(mut body: Value, more: Value) -> Value {
    let fields = body.as_object_mut().expect("a body is an object");
    fields.extend(more.as_object().expect("fields are an object").clone());
    body
}

/// Smallest body of a request.
fn body() -> Value {
    json!({"model": "claude-sonnet-4-5", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]})
}
