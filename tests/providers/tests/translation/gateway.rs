//! Calls of clouds through the gateway: each client reads what a server of its own format would have answered, and every
//! cloud gets the credentials that it wants.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{SystemTime, UNIX_EPOCH};

use assay_node_cloud_credentials::aws::{AwsCredentials, AwsRequest, BEDROCK_SERVICE, SigningScope, signature_headers};
use assay_node_dialects::Dialect;
use assay_node_models::provider::{HiddenText, ProviderType};
use assay_test_providers::{Fault, ProviderServer, RecordedRequest};
use serde_json::{Value, json};

use crate::caller::{GatewayCaller, TestSecret};
use crate::native;
use crate::requests::{SCENARIOS, Scenario, body};
use crate::seen::{seen_in_stream, seen_whole};

const BEDROCK: &str = "eu.anthropic.scripted-cached-v1:0";
const AWS_KEY: &str = "the-aws-key";
const AZURE: &str = "scripted-cached";
const VERTEX_GEMINI: &str = "publishers/google/models/gemini-2.5-scripted-cached";
const VERTEX_ANTHROPIC: &str = "publishers/anthropic/models/claude-scripted-cached@1";
const VERTEX_OPEN: &str = "publishers/meta/models/scripted-cached";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\nabcd";

fn bedrock(server: &ProviderServer, format: &str) -> TestSecret {
    let metadata = json!({
        "access_key": "AKID", "region": "eu-central-1", "customModels": {BEDROCK: {"format": format}}
    });
    TestSecret::new(server, ProviderType::Bedrock, AWS_KEY, metadata)
}

fn vertex(server: &ProviderServer, model: &str, format: &str) -> TestSecret {
    let token_url = format!("{}/sts/token", server.origin());
    let metadata = json!({"project": "p", "authType": "workload_identity_federation", "token_url": token_url,
        "customModels": {model: {"format": format}}});
    let key = json!({"audience": "a", "subject_token": "of the workload"}).to_string();
    TestSecret::new(server, ProviderType::Vertex, &key, metadata)
}

fn azure(server: &ProviderServer, client_secret: &str) -> TestSecret {
    let token_url = format!("{}/t/oauth2/v2.0/token", server.origin());
    let metadata = json!({"auth_type": "entra_api", "token_url": token_url, "customModels": {AZURE: {}}});
    let key = json!({"client_id": "c", "client_secret": client_secret, "tenant_id": "t"}).to_string();
    TestSecret::new(server, ProviderType::Azure, &key, metadata)
}

fn databricks(server: &ProviderServer) -> TestSecret {
    let metadata = json!({"auth_type": "service_principal_oauth", "customModels": {AZURE: {}}});
    let key = json!({"client_id": "c", "client_secret": "k"}).to_string();
    TestSecret::new(server, ProviderType::Databricks, &key, metadata)
}

/// Compares all scenarios, whole and streamed, with a server of the client's format.
fn compare(caller: &GatewayCaller, server: &ProviderServer, secret: &TestSecret, model: &str) {
    for client in Dialect::ALL {
        for (scenario, stream) in SCENARIOS.into_iter().flat_map(|scenario| [(scenario, false), (scenario, true)]) {
            let wanted = native(server, client, scenario, stream);
            let sent = body(client, scenario, model, stream);
            let answer = caller.call(secret, (client, model, stream), sent);
            let named = format!("{client:?} to {model} of {:?}, {scenario:?}", secret.provider.provider_type);
            assert_eq!(answer.status, 200, "{named}: {}", String::from_utf8_lossy(&answer.bytes));
            let content_type = if stream { "text/event-stream; charset=utf-8" } else { "application/json" };
            let is_said = answer.headers.iter().any(|(name, value)| name == "content-type" && value == content_type);
            assert!(is_said, "{named}: {:?}", answer.headers);
            let mut found = match stream {
                true => seen_in_stream(client, &answer.bytes),
                false => seen_whole(client, &answer.json()),
            };
            // it is not asked for the usage of streams, which it would refuse
            if stream && secret.provider.provider_type == ProviderType::Databricks {
                found.usage = wanted.usage;
            }
            assert_eq!(found, wanted, "{named}");
        }
    }
}

fn paths(server: &ProviderServer) -> Vec<String> {
    server.requests().into_iter().map(|request| request.path).collect()
}

fn last(server: &ProviderServer) -> RecordedRequest {
    server.requests().pop().expect("a request")
}

/// Returns whether the signature of a request is that of its headers and its body, as Bedrock checks it.
fn is_signed_by(server: &ProviderServer, request: &RecordedRequest, credentials: &AwsCredentials) -> bool {
    let found = request.header("authorization").expect("a signature");
    let (_, names) = found.split_once("SignedHeaders=").expect("names");
    let names: Vec<&str> = names.split(',').next().expect("names").split(';').collect();
    for needed in ["host", "content-type", "accept", "x-amz-date"] {
        assert!(names.contains(&needed), "{needed} in {names:?}");
    }
    let is_added = |name: &str| ["host", "x-amz-date", "x-amz-security-token"].contains(&name);
    let headers = request.headers.iter().filter(|(name, _)| names.contains(&name.as_str()) && !is_added(name));
    let headers: Vec<_> = headers.cloned().collect();
    let url = format!("{}{}", server.origin(), request.path);
    let signed = AwsRequest { method: "POST", url: &url, headers: &headers, body: &request.body };
    let scope = SigningScope { region: "eu-central-1", service: BEDROCK_SERVICE };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs();
    (0..120).any(|ago| {
        let at_ms = i64::try_from((now - ago) * 1000).expect("a time");
        let wanted = signature_headers(&signed, credentials, &scope, at_ms).expect("a signature");
        wanted.iter().any(|(name, value)| name == "authorization" && value == found)
    })
}

#[test]
fn models_of_bedrock_answer_every_client() {
    let (server, caller) = (ProviderServer::start().expect("a provider"), GatewayCaller::new());
    let key = HiddenText::new(AWS_KEY);
    let own = AwsCredentials { access_key_id: "AKID".into(), secret_access_key: key, session_token: None };
    for (format, verb) in [("converse", "converse-stream"), ("anthropic", "invoke-with-response-stream")] {
        compare(&caller, &server, &bedrock(&server, format), BEDROCK);
        let request = last(&server);
        assert_eq!(request.path, format!("/model/eu.anthropic.scripted-cached-v1%3A0/{verb}"));
        assert_eq!(request.header("accept"), Some("application/vnd.amazon.eventstream"));
        assert!(is_signed_by(&server, &request, &own), "{format}");
    }
}

#[test]
fn betas_of_anthropic_are_in_the_body_at_bedrock() {
    let (server, caller) = (ProviderServer::start().expect("a provider"), GatewayCaller::new());
    let sent = body(Dialect::Anthropic, Scenario::Plain, BEDROCK, false);
    let headers = [("anthropic-beta", "a-1,b-2"), ("anthropic-version", "2023-06-01")];
    let how = (Dialect::Anthropic, BEDROCK, false);
    assert_eq!(caller.call_with(&bedrock(&server, "anthropic"), how, &headers, sent).status, 200);
    let request = last(&server);
    assert_eq!(request.json()["anthropic_beta"], json!(["a-1", "b-2"]));
    assert_eq!((request.header("anthropic-beta"), request.header("anthropic-version")), (None, None));
}

#[test]
fn models_of_vertex_answer_every_client() {
    let (server, caller) = (ProviderServer::start().expect("a provider"), GatewayCaller::new());
    for (model, format, path) in [
        (VERTEX_GEMINI, "google", "/v1/projects/p/locations/us-central1/publishers/google/models/"),
        (VERTEX_ANTHROPIC, "anthropic", "/v1/projects/p/locations/us-east5/publishers/anthropic/models/"),
        (VERTEX_OPEN, "openai", "/v1beta1/projects/p/locations/us-central1/endpoints/openapi/chat/completions"),
    ] {
        compare(&caller, &server, &vertex(&server, model, format), model);
        let request = last(&server);
        assert!(request.path.starts_with(path), "{}", request.path);
        assert!(request.header("authorization").expect("a token").starts_with("Bearer scripted-token-"));
    }
    assert_eq!(last(&server).json()["model"], "meta/scripted-cached");
    let tokens = paths(&server).iter().filter(|path| path.ends_with("/token")).count();
    assert_eq!(tokens, 3, "one for each secret");
}

#[test]
fn tokens_are_got_once_for_azure_and_databricks() {
    let (server, caller) = (ProviderServer::start().expect("a provider"), GatewayCaller::new());
    for (secret, path) in [
        (azure(&server, "k"), "/openai/deployments/scripted-cached/chat/completions?api-version=2023-07-01-preview"),
        (databricks(&server), "/serving-endpoints/scripted-cached/invocations"),
    ] {
        let before = server.requests().len();
        compare(&caller, &server, &secret, AZURE);
        assert_eq!(last(&server).path, path);
        assert!(last(&server).header("authorization").expect("a token").starts_with("Bearer scripted-token-"));
        let tokens = paths(&server)[before..].iter().filter(|path| path.ends_with("/token")).count();
        assert_eq!(tokens, 1, "{path}");
    }
}

#[test]
fn a_role_signs_with_its_own_keys() {
    let (server, caller) = (ProviderServer::start().expect("a provider"), GatewayCaller::new());
    let secret = |role: &str| {
        let metadata = json!({"access_key": "AKID", "region": "eu-central-1", "auth_type": "assume_role",
            "role_arn": format!("arn:aws:iam::1:role/{role}"), "token_url": server.origin(),
            "customModels": {BEDROCK: {"format": "converse"}}});
        TestSecret::new(&server, ProviderType::Bedrock, AWS_KEY, metadata)
    };
    let how = (Dialect::Chat, BEDROCK, false);
    let sent = || body(Dialect::Chat, Scenario::Plain, BEDROCK, false);
    for _ in 0..2 {
        assert_eq!(caller.call(&secret("right"), how, sent()).status, 200);
    }
    assert_eq!(server.requests().len(), 3, "the role is assumed once");
    let role = AwsCredentials {
        access_key_id: "ASIA1".into(),
        secret_access_key: HiddenText::new("scripted-key-1"),
        session_token: Some(HiddenText::new("scripted-session-1")),
    };
    assert!(is_signed_by(&server, &last(&server), &role));
    assert_eq!(last(&server).header("x-amz-security-token"), Some("scripted-session-1"));
    let refused = caller.call(&secret("wrong"), how, sent());
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (502, &json!("provider_auth_error")));
}

#[test]
fn a_wrong_secret_is_an_error_of_the_provider_and_is_not_shown() {
    let (server, caller) = (ProviderServer::start().expect("a provider"), GatewayCaller::new());
    let secret = azure(&server, "wrong-and-secret");
    for _ in 0..2 {
        let refused =
            caller.call(&secret, (Dialect::Chat, AZURE, false), body(Dialect::Chat, Scenario::Plain, AZURE, false));
        let error = refused.json()["error"].clone();
        assert_eq!((refused.status, &error["code"]), (502, &json!("provider_auth_error")), "{error}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains("invalid_client AADSTS7000215"), "{message}");
        assert!(!message.contains("wrong-and-secret") && !message.contains(&server.origin()), "{message}");
    }
    assert_eq!(server.requests().len(), 1, "a refused secret is not tried again at once");
}

#[test]
fn a_token_that_the_server_refuses_is_fetched_anew_by_the_next_call() {
    let (server, caller) = (ProviderServer::start().expect("a provider"), GatewayCaller::new());
    let secret = azure(&server, "k");
    let call =
        || caller.call(&secret, (Dialect::Chat, AZURE, false), body(Dialect::Chat, Scenario::Plain, AZURE, false));
    assert_eq!(call().status, 200);
    server.inject(Fault::Status { status: 401, retry_after: None });
    assert_eq!((call().status, paths(&server).len()), (502, 3));
    assert_eq!(call().status, 200);
    assert_eq!(last(&server).header("authorization"), Some("Bearer scripted-token-4"));
}

#[test]
fn a_stream_of_bedrock_that_breaks_never_ends_as_a_success() {
    let (server, caller) = (ProviderServer::start().expect("a provider"), GatewayCaller::new());
    for format in ["converse", "anthropic"] {
        for fault in [Fault::CutAfter(900), Fault::ErrorEventAfter(4), Fault::ErrorEventAfter(1)] {
            server.inject(fault.clone());
            let sent = body(Dialect::Chat, Scenario::Plain, BEDROCK, true);
            let answer = caller.call(&bedrock(&server, format), (Dialect::Chat, BEDROCK, true), sent);
            let text = String::from_utf8(answer.bytes).expect("text");
            assert!(!text.contains("[DONE]") && !text.contains("credentials"), "{format}, {fault:?}: {text}");
            assert!(text.contains("\"error\""), "{format}, {fault:?}: {text}");
        }
        let failed = body(Dialect::Chat, Scenario::Fails, BEDROCK, false);
        let answer = caller.call(&bedrock(&server, format), (Dialect::Chat, BEDROCK, false), failed);
        assert_eq!((answer.status, &answer.json()["error"]["message"]), (429, &json!("scripted error 429")));
    }
}

/// Serves an image at every path but `/missing`, `/page` and `/huge`.
fn media_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let origin = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = [0; 4096];
            let length = stream.read(&mut head).unwrap_or_default();
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            let huge = vec![0; (5 << 20) + 1];
            let (status, kind, bytes): (_, _, &[u8]) = match head.split(' ').nth(1) {
                Some("/missing") => ("404 Not Found", "text/plain", b"no"),
                Some("/page") => ("200 OK", "text/html", b"<html>"),
                Some("/huge") => ("200 OK", "image/png", &huge),
                _ => ("200 OK", "application/octet-stream", PNG),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                bytes.len()
            );
            drop(stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(bytes)));
        }
    });
    origin
}

fn with_image(url: &str, model: &str) -> Value {
    let image = json!({"type": "image_url", "image_url": {"url": url}});
    json!({"model": model, "messages": [{"role": "user", "content": [{"type": "text", "text": "what?"}, image]}]})
}

#[test]
fn images_by_url_are_fetched_for_servers_that_fetch_none() {
    let (server, caller) = (ProviderServer::start().expect("a provider"), GatewayCaller::new());
    let media = media_server();
    let anthropic = json!({"customModels": {"claude": {"format": "anthropic"}}});
    for (secret, model) in [
        (bedrock(&server, "converse"), BEDROCK),
        (bedrock(&server, "anthropic"), BEDROCK),
        (vertex(&server, VERTEX_ANTHROPIC, "anthropic"), VERTEX_ANTHROPIC),
        (vertex(&server, VERTEX_GEMINI, "google"), VERTEX_GEMINI),
        (TestSecret::new(&server, ProviderType::Anthropic, "k", anthropic), "claude"),
    ] {
        let how = (Dialect::Chat, model, false);
        let answer = caller.call(&secret, how, with_image(&format!("{media}/a?signature=1"), model));
        let text = answer.json()["choices"][0]["message"]["content"].clone();
        assert_eq!(text, format!("images: image/png of {} bytes", PNG.len()), "{model}");
        for (path, why) in [("/missing", "404"), ("/page", "text/html")] {
            let refused = caller.call(&secret, how, with_image(&format!("{media}{path}"), model));
            let message = refused.json()["error"]["message"].to_string();
            assert_eq!(refused.status, 400, "{message}");
            assert!(message.contains(why), "{message}");
        }
    }
    let refused = caller.call(
        &bedrock(&server, "anthropic"),
        (Dialect::Chat, BEDROCK, false),
        with_image(&format!("{media}/huge"), BEDROCK),
    );
    assert_eq!(refused.status, 400, "{}", refused.json());
    // servers of OpenAI's format fetch by themselves
    let url = format!("{media}/a");
    assert_eq!(caller.call(&azure(&server, "k"), (Dialect::Chat, AZURE, false), with_image(&url, AZURE)).status, 200);
    assert!(last(&server).json().to_string().contains(&url));
}

#[test]
fn media_are_fetched_from_permitted_targets_only() {
    let (server, caller) = (ProviderServer::start().expect("a provider"), GatewayCaller::new());
    for url in ["http://169.254.169.254/latest", "http://10.0.0.1/a.png", "https://user@example.com/a"] {
        let how = (Dialect::Chat, BEDROCK, false);
        let refused = caller.call(&bedrock(&server, "converse"), how, with_image(url, BEDROCK));
        assert_eq!(refused.status, 400, "{url}: {}", refused.json());
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_lost_signature_of_a_call_is_restored() {
    let (server, caller) = (ProviderServer::start().expect("a provider"), GatewayCaller::new());
    let model = "publishers/google/models/gemini-3-scripted";
    let secret = vertex(&server, model, "google");
    for stream in [false, true] {
        let asked = body(Dialect::Chat, Scenario::Tools, model, false);
        let how = (Dialect::Chat, model, false);
        let calls = caller.call(&secret, how, asked.clone()).json()["choices"][0]["message"]["tool_calls"].clone();
        let id = calls[0]["id"].as_str().expect("an id");
        assert!(id.len() <= 40, "{id}");
        if stream {
            assert_eq!(
                caller
                    .call(&secret, (Dialect::Chat, model, true), body(Dialect::Chat, Scenario::Tools, model, true))
                    .status,
                200
            );
        }
        let mut again = asked;
        let messages = again["messages"].as_array_mut().expect("messages");
        let lost = |call: &Value| json!({"id": call["id"], "type": "function", "function": call["function"]});
        let calls: Vec<Value> = calls.as_array().expect("calls").iter().map(lost).collect();
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": calls}));
        for call in &calls {
            messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "rain"}));
        }
        assert_eq!(caller.call(&secret, how, again.clone()).status, 200);
        let parts = last(&server).json()["contents"][1]["parts"].clone();
        assert_eq!(parts[0]["thoughtSignature"], assay_test_providers::script::SIGNATURE, "{parts}");
        // another secret has another route
        let mut other = vertex(&server, model, "google");
        other.provider.id = "another".to_owned();
        assert_eq!(caller.call(&other, how, again).status, 200);
        let parts = last(&server).json()["contents"][1]["parts"].clone();
        assert_eq!(parts[0]["thoughtSignature"], "skip_thought_signature_validator", "{parts}");
    }
}
