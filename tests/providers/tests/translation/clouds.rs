//! Calls of models at Bedrock and Vertex: with credentials as those clouds want them, a client reads what a server of its own
//! format would have answered.

use assay_node_cloud_credentials::aws::{
    AwsRequest, BEDROCK_SERVICE, SigningScope, assume_role_request, aws_credentials, parse_assumed_role,
    signature_headers,
};
use assay_node_cloud_credentials::{ExchangeCall, TokenRequest, parse_token, token_request};
use assay_node_dialects::form::{FoldLimits, ModelResponse, ResponseFold, StreamEvent};
use assay_node_dialects::sse::write_event;
use assay_node_dialects::{Dialect, SseEvent, WriteOptions};
use assay_node_dialects_anthropic::{body_for_bedrock, body_for_vertex};
use assay_node_dialects_converse::{
    ConverseAnswer, ConverseStreamReader, EventStreamParser, read_error, read_invoke_event, read_response_of,
    write_request,
};
use assay_node_gateway::translation::{RequestTarget, read_request};
use assay_node_models::provider::{
    AuthPlan, Provider, ProviderScope, ProviderType, UpstreamCall, UpstreamEndpoint, auth_plan, bearer_headers,
    endpoint_url,
};
use assay_test_api::http::{Request, send};
use assay_test_providers::{Fault, ProviderServer};
use serde_json::{Value, json};

use crate::requests::{SCENARIOS, Scenario, body};
use crate::seen::{seen_in_stream, seen_whole};
use crate::{MODEL, json as parsed, native, translation};

const BEDROCK_MODEL: &str = "eu.anthropic.scripted-cached-v1:0";
const NOW_MS: i64 = 1_764_000_000_000;

fn provider(server: &ProviderServer, provider_type: ProviderType, metadata: Value) -> Provider {
    let mut members = metadata.as_object().expect("an object").clone();
    members.insert("api_base".to_owned(), server.origin().into());
    Provider::parse("1", "p", provider_type, ProviderScope::Organization, &members).0
}

fn bedrock(server: &ProviderServer) -> Provider {
    provider(server, ProviderType::Bedrock, json!({"access_key": "AKID", "region": "eu-central-1"}))
}

fn post(server: &ProviderServer, url: &str, headers: Vec<(String, String)>, body: &str) -> (u16, Vec<u8>) {
    let target = url.strip_prefix(&server.origin()).expect("a URL of the server").to_owned();
    let body = Some(body.as_bytes().to_vec());
    let request = Request { method: "POST".into(), target, headers, body, ..Request::default() };
    let answer = send(&server.origin(), &request).expect("an answer");
    (answer.status, answer.body.to_vec())
}

/// Sends a signed request to Bedrock.
fn ask_bedrock(server: &ProviderServer, endpoint: UpstreamEndpoint<'_>, stream: bool, body: &Value) -> (u16, Vec<u8>) {
    let provider = bedrock(server);
    let call = UpstreamCall { endpoint, model: BEDROCK_MODEL, stream };
    let url = endpoint_url(&provider, &call).expect("a URL");
    let credentials = aws_credentials(&provider, "secret").expect("a key");
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    let body = body.to_string();
    let request = AwsRequest { method: "POST", url: &url, headers: &headers, body: body.as_bytes() };
    let scope = SigningScope { region: "eu-central-1", service: BEDROCK_SERVICE };
    let added = signature_headers(&request, &credentials, &scope, NOW_MS).expect("a signature");
    headers.extend(added);
    post(server, &url, headers, &body)
}

fn converse_body(client: Dialect, scenario: Scenario, stream: bool) -> Value {
    let target = RequestTarget { model: BEDROCK_MODEL, stream };
    let mut request = read_request(client, target, &body(client, scenario, MODEL, stream)).expect("a request");
    request.model = BEDROCK_MODEL.to_owned();
    write_request(&request, &WriteOptions::default()).expect("a request for Converse").body
}

fn answer() -> ConverseAnswer {
    ConverseAnswer { id: "r1".to_owned(), model: MODEL.to_owned() }
}

/// Events of a binary stream, cut into pieces.
fn events(bytes: &[u8], piece: usize) -> Vec<SseEvent> {
    let mut parser = EventStreamParser::new();
    let mut events = Vec::new();
    for bytes in bytes.chunks(piece) {
        events.extend(parser.push(bytes).expect("good messages").iter().map(|message| message.event()));
    }
    parser.finish().expect("a whole message at the end");
    events
}

fn read_stream(events: &[SseEvent]) -> Vec<StreamEvent> {
    let mut reader = ConverseStreamReader::new(answer());
    let mut read: Vec<_> = events.iter().flat_map(|event| reader.push(event).expect("a good event")).collect();
    read.extend(reader.finish());
    read
}

fn folded(events: &[StreamEvent]) -> ModelResponse {
    let mut fold = ResponseFold::new(FoldLimits::default());
    events.iter().for_each(|event| fold.push(event).expect("events in order"));
    fold.into_response()
}

#[test]
fn answers_of_converse_are_those_of_a_server_of_the_clients_format() {
    let server = ProviderServer::start().expect("a provider");
    for client in Dialect::ALL {
        for scenario in SCENARIOS {
            let wanted = native(&server, client, scenario, false);
            let sent = converse_body(client, scenario, false);
            let (status, bytes) = ask_bedrock(&server, UpstreamEndpoint::Converse, false, &sent);
            assert_eq!(status, 200, "{client:?}, {scenario:?}: {sent}");
            let response = read_response_of(&answer(), &parsed(&bytes)).expect("a readable answer");
            // the translation between equal formats writes the answer
            let call = translation(client, client, &body(client, scenario, MODEL, false), false);
            let found = seen_whole(client, &call.write_response(response.clone()));
            assert_eq!(found, wanted, "{client:?}, {scenario:?}\nsent {sent}");
            let (status, bytes) = ask_bedrock(&server, UpstreamEndpoint::Converse, true, &sent);
            assert_eq!(status, 200);
            for piece in [1, 7, bytes.len()] {
                let read = read_stream(&events(&bytes, piece));
                assert_eq!(read.last(), Some(&StreamEvent::End), "{client:?}, {scenario:?}");
                assert_eq!(folded(&read), response, "{client:?}, {scenario:?}, pieces of {piece}");
            }
        }
    }
    let last = server.requests().pop().expect("a request");
    assert_eq!(last.path, "/model/eu.anthropic.scripted-cached-v1%3A0/converse-stream");
    let authorization = last.header("authorization").expect("a signature");
    assert!(authorization.contains("/eu-central-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date"));
}

#[test]
fn messages_at_bedrock_and_vertex_are_those_of_anthropic() {
    let server = ProviderServer::start().expect("a provider");
    let vertex = provider(&server, ProviderType::Vertex, json!({"project": "p"}));
    let bearer = bearer_headers(&vertex, "token").expect("a header");
    for client in Dialect::ALL {
        for (scenario, stream) in SCENARIOS.into_iter().flat_map(|scenario| [(scenario, false), (scenario, true)]) {
            let wanted = native(&server, client, scenario, stream);
            let call = translation(client, Dialect::Anthropic, &body(client, scenario, MODEL, stream), stream);
            let sent = body_for_bedrock(&call.body, None).expect("a body");
            let at_bedrock = ask_bedrock(&server, UpstreamEndpoint::AnthropicMessages, stream, &sent);
            let model = UpstreamCall { endpoint: UpstreamEndpoint::AnthropicMessages, model: MODEL, stream };
            let url = endpoint_url(&vertex, &model).expect("a URL");
            let sent = body_for_vertex(&call.body).expect("a body").to_string();
            let at_vertex = post(&server, &url, bearer.clone(), &sent);
            for (at, (status, bytes)) in [("Bedrock", at_bedrock), ("Vertex", at_vertex)] {
                assert_eq!(status, 200, "{at}, {client:?}, {scenario:?}: {}", String::from_utf8_lossy(&bytes));
                let found = if stream {
                    let bytes = if at == "Bedrock" { unpacked(&bytes) } else { bytes };
                    let mut stream = call.stream();
                    let mut found = Vec::new();
                    stream.push(&bytes, &mut found).expect("a readable stream");
                    found.extend(stream.finish().expect("a readable end").bytes);
                    seen_in_stream(client, &found)
                } else {
                    let response = call.read_response(&parsed(&bytes)).expect("a readable answer");
                    seen_whole(client, &call.write_response(response))
                };
                assert_eq!(found, wanted, "{at}, {client:?}, {scenario:?}");
            }
        }
    }
}

/// Makes a stream of InvokeModel one of Anthropic's.
fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let inner = events(bytes, 1000).into_iter().filter_map(|event| read_invoke_event(&event).expect("a good event"));
    inner.flat_map(|event| write_event(&event)).collect()
}

#[test]
fn errors_of_bedrock_come_as_bodies_and_within_streams() {
    let server = ProviderServer::start().expect("a provider");
    let sent = converse_body(Dialect::Chat, Scenario::Fails, false);
    let (status, bytes) = ask_bedrock(&server, UpstreamEndpoint::Converse, false, &sent);
    let error = read_error(status, &parsed(&bytes));
    assert_eq!((status, error.kind.status(), error.message.as_str()), (429, 429, "scripted error 429"));
    server.inject(Fault::ErrorEventAfter(3));
    let sent = converse_body(Dialect::Chat, Scenario::Plain, true);
    let (_, bytes) = ask_bedrock(&server, UpstreamEndpoint::Converse, true, &sent);
    let read = read_stream(&events(&bytes, 100));
    let Some(StreamEvent::Error(error)) = read.last() else { panic!("{read:?}") };
    assert_eq!((error.kind.status(), error.message.as_str()), (500, "scripted error 500"));
    server.inject(Fault::ErrorEventAfter(3));
    let call = translation(Dialect::Chat, Dialect::Anthropic, &body(Dialect::Chat, Scenario::Plain, MODEL, true), true);
    let sent = body_for_bedrock(&call.body, None).expect("a body");
    let (_, bytes) = ask_bedrock(&server, UpstreamEndpoint::AnthropicMessages, true, &sent);
    let mut stream = call.stream();
    stream.push(&unpacked(&bytes), &mut Vec::new()).expect("a readable stream");
    let error = stream.finish().expect("a readable end").error.expect("an error");
    assert!(error.message.contains("scripted error 500"), "{error:?}");
    server.inject(Fault::HugeEvent(2 << 20));
    let sent = converse_body(Dialect::Chat, Scenario::Plain, true);
    let (_, bytes) = ask_bedrock(&server, UpstreamEndpoint::Converse, true, &sent);
    let mut parser = EventStreamParser::new();
    assert_eq!(parser.push(&bytes).expect("the first message").len(), 1);
    assert!(parser.finish().is_err());
}

#[test]
fn requests_without_credentials_are_refused() {
    let server = ProviderServer::start().expect("a provider");
    for (path, expected) in [("/model/m/converse", 403), ("/v1/publishers/anthropic/models/m:rawPredict", 401)] {
        let (status, _) = post(&server, &format!("{}{path}", server.origin()), Vec::new(), "{}");
        assert_eq!(status, expected, "{path}");
    }
}

fn sent(server: &ProviderServer, request: &TokenRequest) -> (u16, Vec<u8>) {
    post(server, &request.url, request.headers.clone(), &request.body)
}

#[test]
fn tokens_and_roles_are_got_from_servers() {
    let server = ProviderServer::start().expect("a provider");
    let token_url = format!("{}/t/oauth2/v2.0/token", server.origin());
    let azure = provider(&server, ProviderType::Azure, json!({"auth_type": "entra_api", "token_url": token_url}));
    let secret = |client_secret: &str| {
        json!({"client_id": "c", "client_secret": client_secret, "tenant_id": "t", "scope": "s"}).to_string()
    };
    let Ok(AuthPlan::Exchange(exchange)) = auth_plan(&azure, &secret("k")) else { panic!("no exchange") };
    let ask = |client_secret: &str| {
        let secret = secret(client_secret);
        let call = ExchangeCall { exchange, provider: &azure, secret: &secret, identity_token: None, now_ms: NOW_MS };
        let (status, body) = sent(&server, &token_request(&call).expect("a request"));
        parse_token(status, &body)
    };
    let token = ask("right").expect("a token");
    assert_eq!((token.value.reveal(), token.expires_in), ("scripted-token-1", 3600));
    let why = ask("wrong").expect_err("a refusal");
    assert!(why.blames_secret() && why.to_string().contains("invalid_client AADSTS7000215"), "{why}");
    let role = |arn: &str| {
        let metadata = json!({"access_key": "AKID", "role_arn": arn, "token_url": server.origin()});
        let request = assume_role_request(&provider(&server, ProviderType::Bedrock, metadata), "k", NOW_MS);
        let (status, body) = sent(&server, &request.expect("a request"));
        parse_assumed_role(status, &body)
    };
    let (credentials, expires_ms) = role("arn:aws:iam::1:role/right").expect("credentials");
    assert!(credentials.session_token.is_some() && expires_ms > NOW_MS);
    assert!(role("arn:aws:iam::1:role/wrong").expect_err("a refusal").blames_secret());
}
