//! Calls through the gateway's translation: whatever format the model server speaks, a client reads what a server of its own
//! format would have answered.

mod caller;
mod certificates;
mod clouds;
mod gateway;
mod requests;
mod seen;

use assay_node_dialects::{Dialect, WriteOptions};
use assay_node_gateway::translation::{CallTranslation, RequestTarget, read_error, write_error};
use assay_test_api::http::{Request, send};
use assay_test_providers::{Fault, ProviderServer};
use serde_json::Value;

use requests::{SCENARIOS, Scenario, body};
use seen::{SeenAnswer, seen_in_stream, seen_whole};

const MODEL: &str = "scripted-cached";

/// Path of a request in a wire format.
fn path(dialect: Dialect, stream: bool) -> String {
    match dialect {
        Dialect::Chat => "/v1/chat/completions".into(),
        Dialect::Responses => "/v1/responses".into(),
        Dialect::Anthropic => "/v1/messages".into(),
        Dialect::Gemini if stream => format!("/v1beta/models/{MODEL}:streamGenerateContent?alt=sse"),
        Dialect::Gemini => format!("/v1beta/models/{MODEL}:generateContent"),
    }
}

fn ask(server: &ProviderServer, dialect: Dialect, stream: bool, body: &Value) -> (u16, Vec<u8>) {
    let headers = vec![("content-type".into(), "application/json".into())];
    let body = Some(body.to_string().into_bytes());
    let request = Request { method: "POST".into(), target: path(dialect, stream), headers, body, ..Request::default() };
    let answer = send(&server.origin(), &request).expect("an answer");
    (answer.status, answer.body.to_vec())
}

fn translation(client: Dialect, server: Dialect, body: &Value, stream: bool) -> CallTranslation {
    let options = WriteOptions { takes_stream_options: true, takes_json_schema: true, ..WriteOptions::default() };
    let target = RequestTarget { model: MODEL, stream };
    CallTranslation::new((client, server), target, body, options)
        .unwrap_or_else(|why| panic!("{client:?} to {server:?}: {why}"))
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(bytes)))
}

/// What a client of the format reads from a server of the same format.
fn native(provider: &ProviderServer, client: Dialect, scenario: Scenario, stream: bool) -> SeenAnswer {
    let (status, bytes) = ask(provider, client, stream, &body(client, scenario, MODEL, stream));
    assert_eq!(status, 200, "{client:?}, {scenario:?}: {}", String::from_utf8_lossy(&bytes));
    if stream { seen_in_stream(client, &bytes) } else { seen_whole(client, &json(&bytes)) }
}

#[test]
fn whole_answers_are_those_of_a_server_of_the_clients_format() {
    let provider = ProviderServer::start().expect("a provider");
    for client in Dialect::ALL {
        for scenario in SCENARIOS {
            let wanted = native(&provider, client, scenario, false);
            for server in Dialect::ALL {
                let call = translation(client, server, &body(client, scenario, MODEL, false), false);
                let (status, bytes) = ask(&provider, server, false, &call.body);
                assert_eq!(status, 200, "{client:?} to {server:?}, {scenario:?}: {}", call.body);
                let response = call.read_response(&json(&bytes)).expect("a readable answer");
                let found = seen_whole(client, &call.write_response(response));
                assert_eq!(found, wanted, "{client:?} to {server:?}, {scenario:?}\nsent {}", call.body);
            }
        }
    }
}

#[test]
fn streams_are_those_of_a_server_of_the_clients_format_however_they_are_cut() {
    let provider = ProviderServer::start().expect("a provider");
    for client in Dialect::ALL {
        for scenario in SCENARIOS {
            let wanted = native(&provider, client, scenario, true);
            for server in Dialect::ALL {
                let call = translation(client, server, &body(client, scenario, MODEL, true), true);
                let (status, bytes) = ask(&provider, server, true, &call.body);
                assert_eq!(status, 200, "{client:?} to {server:?}, {scenario:?}: {}", call.body);
                for piece in [1, 7, bytes.len()] {
                    let mut stream = call.stream();
                    let mut found = Vec::new();
                    for bytes in bytes.chunks(piece) {
                        stream.push(bytes, &mut found).expect("a readable stream");
                    }
                    let finished = stream.finish().expect("a readable end");
                    found.extend(&finished.bytes);
                    assert_eq!(finished.error, None, "{client:?} to {server:?}, {scenario:?}");
                    let found = seen_in_stream(client, &found);
                    assert_eq!(found, wanted, "{client:?} to {server:?}, {scenario:?}, pieces of {piece}");
                }
            }
        }
    }
}

#[test]
fn a_stream_that_is_cut_ends_in_an_error_and_never_as_a_success() {
    let provider = ProviderServer::start().expect("a provider");
    for client in Dialect::ALL {
        for server in Dialect::ALL {
            let call = translation(client, server, &body(client, Scenario::Plain, MODEL, true), true);
            let (_, whole) = ask(&provider, server, true, &call.body);
            for end in [whole.len() / 4, whole.len() / 2] {
                let mut stream = call.stream();
                let mut bytes = Vec::new();
                stream.push(&whole[..end], &mut bytes).expect("a readable stream");
                let finished = stream.finish().expect("a readable end");
                bytes.extend(&finished.bytes);
                assert!(finished.error.is_some(), "{client:?} to {server:?}, {end}");
                let text = String::from_utf8(bytes).expect("text");
                assert!(text.contains("ended its answer early"), "{client:?} to {server:?}: {text}");
                let ends = ["[DONE]", "message_stop", "response.completed", r#""finishReason":"STOP""#];
                assert!(ends.iter().all(|end| !text.contains(end)), "{client:?} to {server:?}: {text}");
            }
        }
    }
}

#[test]
fn what_came_before_an_unreadable_event_reaches_the_client() {
    let provider = ProviderServer::start().expect("a provider");
    for client in Dialect::ALL {
        for server in Dialect::ALL {
            let call = translation(client, server, &body(client, Scenario::Plain, MODEL, true), true);
            let (_, whole) = ask(&provider, server, true, &call.body);
            let whole = String::from_utf8(whole.to_vec()).expect("text");
            let events: Vec<&str> = whole.split_inclusive("\n\n").collect();
            let begin = events[..events.len() / 2].concat();
            let (mut wanted, mut found) = (Vec::new(), Vec::new());
            call.stream().push(begin.as_bytes(), &mut wanted).expect("a readable stream");
            assert!(!wanted.is_empty(), "{client:?} to {server:?}");
            let broken = format!("{begin}data: {{\n\n");
            call.stream().push(broken.as_bytes(), &mut found).expect_err("an event that is no JSON");
            assert_eq!(found, wanted, "{client:?} to {server:?}");
        }
    }
}

#[test]
fn an_error_event_in_a_stream_reaches_the_client_as_an_error() {
    let provider = ProviderServer::start().expect("a provider");
    for client in Dialect::ALL {
        for server in Dialect::ALL {
            let call = translation(client, server, &body(client, Scenario::Plain, MODEL, true), true);
            provider.inject(Fault::ErrorEventAfter(3));
            let (status, bytes) = ask(&provider, server, true, &call.body);
            assert_eq!(status, 200);
            let mut stream = call.stream();
            let mut found = Vec::new();
            stream.push(&bytes, &mut found).expect("a readable stream");
            let finished = stream.finish().expect("a readable end");
            found.extend(&finished.bytes);
            let error = finished.error.unwrap_or_else(|| panic!("{client:?} to {server:?}"));
            assert!(error.message.contains("scripted error 500"), "{server:?}: {error:?}");
            let text = String::from_utf8(found).expect("text");
            assert!(text.contains("scripted error 500"), "{client:?} to {server:?}: {text}");
        }
    }
}

#[test]
fn errors_before_the_answer_keep_their_status_and_message() {
    let provider = ProviderServer::start().expect("a provider");
    for client in Dialect::ALL {
        for server in Dialect::ALL {
            let call = translation(client, server, &body(client, Scenario::Fails, MODEL, false), false);
            let (status, bytes) = ask(&provider, server, false, &call.body);
            assert_eq!(status, 429, "{client:?} to {server:?}");
            let error = read_error(server, status, &json(&bytes));
            let written = write_error(client, status, &error);
            let message = written["error"]["message"].as_str().unwrap_or_default();
            assert!(message.contains("scripted error 429"), "{client:?} to {server:?}: {written}");
        }
    }
}
