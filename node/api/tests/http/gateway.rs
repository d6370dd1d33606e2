//! Calls of models over HTTP: what they hold and cost while they run, and which guardrails apply.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use assay_node_gateway::GatewaySettings;
use serde_json::{Value, json};

use crate::client::{ClientResponse, connect, read_answer, request};
use crate::fixture::{Fixture, KEY};

/// Model of the provider, which has a price in the built-in catalog.
const MODEL: &str = "gpt-4o-mini";
const CHAT: &str = "/v1/proxy/chat/completions";
const TRANSCRIPTIONS: &str = "/v1/proxy/audio/transcriptions";
const FORM: &str = "multipart/form-data; boundary=b";
const WITHIN: Duration = Duration::from_secs(20);
const MEMORY: &str = "gateway.calls_bytes_max";

/// Provider that answers a request when the test does.
struct ManualProvider {
    address: SocketAddr,
    requests: Receiver<OpenCall>,
}

/// Request that waits for its answer.
struct OpenCall {
    body: Vec<u8>,
    connection: TcpStream,
}

impl ManualProvider {
    fn start() -> ManualProvider {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, requests) = channel();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let sender = sender.clone();
                thread::spawn(move || sender.send(read_call(connection)));
            }
        });
        ManualProvider { address, requests }
    }

    fn next(&self) -> OpenCall {
        self.requests.recv_timeout(WITHIN).expect("a request of the node")
    }
}

fn read_call(connection: TcpStream) -> OpenCall {
    let mut reader = BufReader::new(connection);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a whole body");
    OpenCall { body, connection: reader.into_inner() }
}

impl OpenCall {
    fn answer(mut self) {
        let choice = json!({"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"});
        let answer = json!({"id": "c", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}});
        let text = answer.to_string();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
        let response = format!("{head}Content-Length: {}\r\n\r\n{text}", text.len());
        self.connection.write_all(response.as_bytes()).expect("the node reads");
    }
}

/// Node with a secret of the provider.
struct Calls {
    fixture: Fixture,
    provider: ManualProvider,
}

impl Calls {
    fn open() -> Calls {
        Calls::with(GatewaySettings::default())
    }

    fn with(settings: GatewaySettings) -> Calls {
        let (fixture, provider) = (Fixture::with_gateway(settings), ManualProvider::start());
        let metadata = json!({"api_base": format!("http://{}/v1", provider.address), "models": [MODEL]});
        let secret = json!({"name": "manual", "type": "openai", "secret": "sk-of-the-provider", "metadata": metadata});
        fixture.post("/v1/ai_secret", &secret).ok();
        Calls { fixture, provider }
    }

    /// Begins a call, whose response is read later.
    fn begin(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        self.begin_as(KEY, path, headers, body)
    }

    fn begin_as(&self, token: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let bearer = format!("Bearer {token}");
        let headers: Vec<_> = [("Authorization", bearer.as_str())].iter().chain(headers).copied().collect();
        let mut connection = connect(self.fixture.address);
        connection.write_all(&request("POST", path, &headers, body)).expect("sent");
        connection
    }

    /// Calls, lets the provider answer, and returns the response and the body that the provider received.
    #[track_caller]
    fn passed(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (ClientResponse, Vec<u8>) {
        let mut connection = self.begin(path, headers, body);
        let call = self.provider.next();
        let sent = call.body.clone();
        call.answer();
        let response = read_answer(&mut connection);
        assert_eq!(response.status, 200, "{}", response.text());
        (response, sent)
    }

    /// Calls, and returns the code of a refusal.
    #[track_caller]
    fn refused(&self, path: &str, headers: &[(&str, &str)], body: &[u8], status: u16) -> String {
        let response = read_answer(&mut self.begin(path, headers, body));
        assert_eq!(response.status, status, "{}", response.text());
        response.json()["error"]["code"].as_str().expect("a code").to_owned()
    }

    fn guard(&self, project: &str, guardrails: &Value) {
        let settings = json!({"settings": {"gateway_guardrails": guardrails}});
        let path = format!("/v1/project/{project}");
        let headers = [("Content-Type", "application/json")];
        self.fixture.call("PATCH", &path, &headers, settings.to_string().as_bytes()).ok();
    }

    /// Returns a metric of a budget.
    fn metric(&self, name: &str, budget: &str) -> usize {
        let text = self.fixture.knock("GET", "/metrics").text();
        let prefix = format!("assay_budget_{name}{{budget=\"{budget}\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(prefix.as_str()));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("no {prefix} in\n{text}"))
    }

    fn bytes_held(&self) -> usize {
        self.metric("held", MEMORY)
    }

    /// Returns a budget of all calls, and a function that reads its usage.
    fn budget(&self) -> impl Fn() -> Value + '_ {
        let scope = json!({"type": "model", "id": MODEL});
        let sent = json!({"scope": scope, "window": "total", "limit_usd": 5, "action": "reject"});
        let id = self.fixture.post("/v1/gateway_budget", &sent).ok()["id"].as_str().expect("an id").to_owned();
        move || self.fixture.get(&format!("/v1/gateway_budget/{id}/usage")).ok()
    }

    /// Returns the token of a service account that may read one project, and only write logs of another one.
    fn writer(&self, read: &str, written: &str) -> String {
        let owner = self.fixture.service_account("owner");
        let bearer = format!("Bearer {}", owner["service_token"].as_str().expect("a token"));
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
        let accounts = json!([{"name": "writer", "token_name": "writer"}]);
        let wanted = json!({"invite_users": {"service_accounts": accounts, "group_names": []}}).to_string();
        let sent = request("PATCH", "/v1/organization/members", &headers, wanted.as_bytes());
        let added = self.fixture.send(&sent).ok()["added_users"][0].clone();
        for (project, permission, kind) in [(read, "read", Value::Null), (written, "update", json!("project_log"))] {
            let grant = json!({"object_type": "project", "object_id": project, "user_id": added["id"],
                "permission": permission, "restrict_object_type": kind});
            self.fixture.post("/v1/acl", &grant).ok();
        }
        added["api_key"].as_str().expect("a token").to_owned()
    }
}

#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < WITHIN, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn chat(text: &str, more: Value) -> Vec<u8> {
    let mut body = json!({"model": MODEL, "messages": [{"role": "user", "content": text}]});
    for (name, value) in more.as_object().expect("members") {
        body[name] = value.clone();
    }
    body.to_string().into_bytes()
}

/// Form of a transcription, with bytes of audio that are no text.
fn transcription(prompt: &str) -> Vec<u8> {
    let field =
        |name: &str, value: &str| format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    let file = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.mp3\"\r\n\r\n";
    let begin = format!("{}{}{file}", field("model", MODEL), field("prompt", prompt));
    [begin.as_bytes(), &[0xff, 0xfb, 0x90], b"\r\n--b--\r\n"].concat()
}

#[test]
fn the_body_of_a_call_counts_until_its_end() {
    let calls = Calls::open();
    let text = "word ".repeat(20_000);
    for (path, body, headers) in
        [(CHAT, chat(&text, json!({})), &[] as &[_]), (TRANSCRIPTIONS, transcription(&text), &[("Content-Type", FORM)])]
    {
        let mut connection = calls.begin(path, headers, &body);
        let call = calls.provider.next();
        assert!(calls.bytes_held() >= body.len(), "{path}: {} of {}", calls.bytes_held(), body.len());
        for budget in ["http.bodies_bytes_max", "http.parsed_bytes_max"] {
            assert_eq!(calls.metric("held", budget), 0, "{budget} has its room for other requests");
        }
        call.answer();
        assert_eq!(read_answer(&mut connection).status, 200);
        until("the memory comes back", || calls.bytes_held() == 0);
        let left = calls.begin(path, headers, &body);
        let call = calls.provider.next();
        assert!(calls.bytes_held() >= body.len());
        drop(left);
        until("the memory of a call that was left comes back", || calls.bytes_held() == 0);
        drop(call);
    }
}

#[test]
fn calls_wait_for_their_memory_and_other_requests_do_not() {
    const BODY_BYTES: usize = 400_000;
    let calls = Calls::with(GatewaySettings { calls_bytes_max: 1_000_000, ..GatewaySettings::default() });
    let project = calls.fixture.project("p");
    let body = chat(&"word ".repeat(BODY_BYTES / 5), json!({}));
    let mut first = calls.begin(CHAT, &[], &body);
    let running = calls.provider.next();
    let began = Instant::now();
    let refused = read_answer(&mut calls.begin(CHAT, &[("x-stainless-timeout", "2")], &body));
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(refused.text().contains(MEMORY), "{}", refused.text());
    assert!(refused.header("retry-after").is_some_and(|seconds| seconds.parse::<u64>().is_ok()));
    assert!(began.elapsed() >= Duration::from_millis(950), "{:?}", began.elapsed());
    let mut second = calls.begin(CHAT, &[], &body);
    until("the second call waits", || calls.metric("waiting", MEMORY) == 1);
    assert_eq!(calls.metric("held", "http.bodies_bytes_max"), 0, "a call waits before its body is read");
    let rows = json!({"events": [{"input": "x".repeat(BODY_BYTES)}]});
    calls.fixture.post(&format!("/v1/project_logs/{project}/insert"), &rows).ok();
    running.answer();
    assert_eq!(read_answer(&mut first).status, 200);
    calls.provider.next().answer();
    assert_eq!(read_answer(&mut second).status, 200);
    until("the memory comes back", || calls.bytes_held() == 0);
}

/// The server may complete an answer that nobody reads. It costs as much as was reserved.
#[test]
fn a_call_that_is_left_before_its_answer_counts_in_its_budget() {
    const MAX_TOKENS: u64 = 100;
    let calls = Calls::open();
    let project = calls.fixture.project("logs");
    let usage = calls.budget();
    let parent = format!("project_id:{project}");
    let (mut spent, mut spans) = (0, 0);
    for (stream, output) in [(false, MAX_TOKENS), (true, 0)] {
        let body = chat("hello", json!({"max_tokens": MAX_TOKENS, "stream": stream}));
        let connection = calls.begin(CHAT, &[("x-bt-parent", &parent)], &body);
        let call = calls.provider.next();
        drop(connection);
        spent += (body.len() as u64).div_ceil(4) + output;
        spans += 1;
        until("the call is settled", || {
            let usage = usage();
            usage["tokens"]["spent"] == spent && usage["concurrent"]["running"] == 0
        });
        drop(call);
        let usage = usage();
        assert_eq!((&usage["usd"]["reserved"], &usage["requests"]["spent"]), (&json!(0.0), &json!(spans)), "{usage}");
        let left = || {
            let rows = calls.fixture.events("project_logs", &project);
            rows.into_iter().find(|row| row["error"] == "client disconnected" && row["metadata"]["stream"] == stream)
        };
        until("the span", || left().is_some());
        let metrics = &left().expect("a span")["metrics"];
        assert_eq!((&metrics["completion_tokens"], &metrics["tokens_estimated"]), (&json!(output), &json!(1)));
        assert!(metrics["estimated_cost"].as_f64().is_some_and(|cost| cost > 0.0), "{metrics}");
    }
    calls.passed(CHAT, &[], &chat("hello", json!({})));
    assert_eq!(usage()["tokens"]["spent"], spent + 5, "a call that is not left costs what its server reports");
}

/// The bytes of images and recordings are far more than their tokens.
#[test]
fn media_of_a_call_that_is_left_do_not_count_in_its_budget() {
    const MEDIA_BYTES: usize = 2 << 20;
    let calls = Calls::open();
    let usage = calls.budget();
    let image = format!("data:image/png;base64,{}", "aGk/".repeat(MEDIA_BYTES / 4));
    let content = json!([{"type": "text", "text": "hello"}, {"type": "image_url", "image_url": {"url": image}}]);
    let with_image = chat("", json!({"messages": [{"role": "user", "content": content}], "stream": true}));
    let recording = transcription(&"word ".repeat(MEDIA_BYTES / 5));
    let headers = [("Content-Type", FORM)];
    for (number, (path, headers, body)) in
        [(CHAT, &[] as &[_], with_image), (TRANSCRIPTIONS, &headers, recording)].into_iter().enumerate()
    {
        let connection = calls.begin(path, headers, &body);
        let call = calls.provider.next();
        drop(connection);
        until("the call is settled", || {
            let usage = usage();
            usage["requests"]["spent"] == json!(number + 1) && usage["concurrent"]["running"] == 0
        });
        let usage = usage();
        let spent = usage["tokens"]["spent"].as_u64().expect("tokens");
        assert!((1..100).contains(&spent), "{path}: {usage}");
        drop(call);
    }
}

/// Logging needs no permission to read the project, and its guardrails apply nevertheless.
#[test]
fn a_credential_that_only_writes_a_project_can_log_calls_there() {
    let calls = Calls::open();
    let (named, logged) = (calls.fixture.project("named"), calls.fixture.project("logged"));
    let token = calls.writer(&named, &logged);
    let parent = format!("project_id:{logged}");
    let rule = json!({"name": "mail", "detector": "email", "action": "mask"});
    calls.guard(&logged, &json!({"rules": [rule]}));
    for headers in [
        &[("x-bt-project-id", named.as_str()), ("x-bt-parent", parent.as_str())] as &[_],
        &[("x-bt-parent", parent.as_str())],
    ] {
        let body = chat("write to ann@example.com", json!({}));
        let mut connection = calls.begin_as(&token, CHAT, headers, &body);
        // A refusal is shown instead of a wait for the provider.
        let Ok(call) = calls.provider.requests.recv_timeout(WITHIN) else {
            panic!("{headers:?}: {}", read_answer(&mut connection).text());
        };
        let sent: Value = serde_json::from_slice(&call.body).expect("JSON");
        assert_eq!(sent["messages"][0]["content"], "write to [EMAIL]");
        call.answer();
        assert_eq!(read_answer(&mut connection).status, 200);
    }
    until("both spans", || calls.fixture.events("project_logs", &logged).len() == 2);
}

#[test]
fn a_call_keeps_to_the_guardrails_of_both_its_projects() {
    let calls = Calls::open();
    let (strict, lenient) = (calls.fixture.project("strict"), calls.fixture.project("lenient"));
    let rule = |action: &str| json!({"name": "mail", "detector": "email", "action": action, "apply_to": ["request"]});
    calls.guard(&strict, &json!({"rules": [rule("block")], "max_output_tokens": {"limit": 5}}));
    let ticket = json!({"name": "ticket", "pattern": "TICKET-[0-9]+", "action": "mask"});
    calls.guard(&lenient, &json!({"rules": [ticket], "max_output_tokens": {"limit": 9}}));
    let parents = [&strict, &lenient].map(|project| format!("project_id:{project}"));
    let mail = chat("write to ann@example.com", json!({}));
    for (project, parent) in [(&lenient, &parents[0]), (&strict, &parents[1]), (&strict, &parents[0])] {
        let headers = [("x-bt-project-id", project.as_str()), ("x-bt-parent", parent.as_str())];
        assert_eq!(calls.refused(CHAT, &headers, &mail, 400), "guardrail_blocked", "{project} {parent}");
    }
    let headers = [("x-bt-project-id", strict.as_str()), ("x-bt-parent", parents[1].as_str())];
    let (_, sent) = calls.passed(CHAT, &headers, &chat("see TICKET-7", json!({"max_tokens": 99})));
    let sent: Value = serde_json::from_slice(&sent).expect("JSON");
    assert_eq!((&sent["messages"][0]["content"], &sent["max_tokens"]), (&json!("see [REDACTED]"), &json!(5)));
    calls.guard(&strict, &json!({"allowed_models": ["other-*"]}));
    let headers = [("x-bt-project-id", lenient.as_str()), ("x-bt-parent", parents[0].as_str())];
    assert_eq!(calls.refused(CHAT, &headers, &chat("hi", json!({})), 403), "model_not_allowed");
}

#[test]
fn the_texts_of_a_form_keep_to_guardrails() {
    let calls = Calls::open();
    let project = calls.fixture.project("guarded");
    let headers = [("Content-Type", FORM), ("x-bt-project-id", project.as_str())];
    let rule = |action: &str| json!({"name": "mail", "detector": "email", "action": action});
    calls.guard(&project, &json!({"rules": [rule("block")]}));
    let mail = transcription("names: ann@example.com");
    assert_eq!(calls.refused(TRANSCRIPTIONS, &headers, &mail, 400), "guardrail_blocked");
    let (_, sent) = calls.passed(TRANSCRIPTIONS, &headers, &transcription("names: Ann"));
    assert_eq!(sent, transcription("names: Ann"), "a form without findings passes as it is");
    calls.guard(&project, &json!({"rules": [rule("mask")]}));
    let (_, sent) = calls.passed(TRANSCRIPTIONS, &headers, &mail);
    assert_eq!(sent, transcription("names: [EMAIL]"));
    calls.guard(&project, &json!({"allowed_models": ["other-*"]}));
    assert_eq!(calls.refused(TRANSCRIPTIONS, &headers, &mail, 403), "model_not_allowed");
}
