//! Bodies of requests: each is refused, or read, written in every format, and read again.

use assay_node_dialects::form::{ContentPart, Message, ModelRequest, Role};
use assay_node_dialects::{Dialect, WriteOptions};
use assay_node_dialects_anthropic::body_for_bedrock;
use assay_node_dialects_chat::completions::CompletionRequest;
use assay_node_dialects_chat::embeddings::EmbeddingRequest;
use assay_node_dialects_chat::{self as chat};
use assay_node_dialects_gemini::{from_openapi, read_count_tokens, read_embed_request, to_openapi};
use serde_json::Value;

use crate::head::{Head, body};
use crate::translation::{CallTranslation, UpstreamFormat, read_request};
use crate::{MODEL, SERVERS, assert_same, target};

pub fn run(input: &[u8]) {
    let Some((head, rest)) = Head::read(input) else { return };
    let Some(body) = body(rest) else { return };
    if head.server == 9 {
        return views(&body, &head.write_options());
    }
    let request = match read_request(head.client, target(false), &body) {
        Ok(request) => request,
        Err(why) => return assert_ne!(why.to_string(), ""),
    };
    for options in [WriteOptions::default(), head.write_options()] {
        stable(head.client, &request, &options);
        for server in SERVERS {
            translated(head.client, server, &request, &options);
        }
    }
    if head.client == Dialect::Chat {
        let mut adapted = body;
        if chat::adapt(&mut adapted, &head.write_options()).is_ok() {
            read_request(head.client, target(false), &adapted).unwrap_or_else(|why| panic!("{why}: {adapted}"));
        }
    }
}

/// Checks that what a dialect writes of its own request is what it writes of that again.
fn stable(dialect: Dialect, request: &ModelRequest, options: &WriteOptions) {
    let write = |request: &ModelRequest| {
        CallTranslation::of_request((dialect, dialect.into()), request.clone(), options.clone())
    };
    let Ok(written) = write(request) else { return };
    if request.messages.iter().any(has_nested_message) {
        return;
    }
    let again = read_request(dialect, target(false), &written.body)
        .and_then(|request| write(&request))
        .unwrap_or_else(|why| panic!("{why}: {}", written.body));
    assert_same("a request", dialect, &written.body, &again.body);
}

/// Returns whether a part of a message calls itself a message. Responses have no such part, and the form keeps those parts
/// of answers that it does not know in one, so that they are told apart by nothing.
fn has_nested_message(message: &Message) -> bool {
    let is_nested = |part: &ContentPart| matches!(part, ContentPart::Foreign { part, .. } if part["type"] == "message");
    message.role != Role::Assistant && message.parts.iter().any(is_nested)
}

/// Checks that what is written for a server is a request of its dialect.
fn translated(client: Dialect, server: UpstreamFormat, request: &ModelRequest, options: &WriteOptions) {
    let call = match CallTranslation::of_request((client, server), request.clone(), options.clone()) {
        Ok(call) => call,
        Err(why) => return assert_ne!(why.to_string(), ""),
    };
    if let UpstreamFormat::Client(dialect) = server {
        let again =
            read_request(dialect, target(false), &call.body).unwrap_or_else(|why| panic!("{why}: {}", call.body));
        stable(dialect, &again, options);
    }
}

/// Reads bodies of which only parts are read.
fn views(body: &Value, options: &WriteOptions) {
    if let Ok(request) = CompletionRequest::read(body) {
        let written = request.body_for(MODEL, options);
        let again = CompletionRequest::read(&written).unwrap_or_else(|why| panic!("{why}: {written}"));
        assert_eq!((again.prompt, again.answers), (request.prompt, request.answers));
        request.prompt.estimated_tokens();
    }
    if let Ok(request) = EmbeddingRequest::read(body) {
        let written = request.body_for(MODEL);
        let again = EmbeddingRequest::read(&written).unwrap_or_else(|why| panic!("{why}: {written}"));
        assert_eq!((again.input, again.dimensions), (request.input, request.dimensions));
    }
    let _ = (read_embed_request(body), read_count_tokens(MODEL, body), body_for_bedrock(body, Some("a,b")));
    schemas(body);
}

/// Checks that a schema of Gemini is the same after it was a JSON schema once more. The first time it may have members
/// that Gemini does not know.
fn schemas(body: &Value) {
    let _ = to_openapi(body, "");
    let rewritten = |schema: &Value| from_openapi(schema, "").and_then(|read| to_openapi(&read, ""));
    let again = |schema: &Value| rewritten(schema).unwrap_or_else(|why| panic!("{why}: {schema}"));
    let Ok(first) = rewritten(body) else { return };
    let second = again(&first);
    assert_same("a schema", Dialect::Gemini, &second, &again(&second));
}
