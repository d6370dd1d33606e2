//! Calls of models over HTTP: what they hold and cost while they run, and which guardrails apply.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{ClientResponse, connect, read_answer, request};
use crate::fixture::{Fixture, KEY};

/// Model of the provider, which has a price in the built-in catalog.
const MODEL: &str = "gpt-4o-mini";
const CHAT: &str = "/v1/proxy/chat/completions";
const TRANSCRIPTIONS: &str = "/v1/proxy/audio/transcriptions";
const FORM: &str = "multipart/form-data; boundary=b";
const WITHIN: Duration = Duration::from_secs(20);

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
        let (fixture, provider) = (Fixture::open(), ManualProvider::start());
        let metadata = json!({"api_base": format!("http://{}/v1", provider.address), "models": [MODEL]});
        let secret = json!({"name": "manual", "type": "openai", "secret": "sk-of-the-provider", "metadata": metadata});
        fixture.post("/v1/ai_secret", &secret).ok();
        Calls { fixture, provider }
    }

    /// Begins a call, whose response is read later.
    fn begin(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let bearer = format!("Bearer {KEY}");
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

    fn bytes_held(&self) -> usize {
        let text = self.fixture.knock("GET", "/metrics").text();
        let line = text.lines().find_map(|line| line.strip_prefix("assay_http_body_bytes_held "));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("no metric in\n{text}"))
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

/// The server may complete an answer that nobody reads. It costs as much as was reserved.
#[test]
fn a_call_that_is_left_before_its_answer_counts_in_its_budget() {
    const MAX_TOKENS: u64 = 100;
    let calls = Calls::open();
    let project = calls.fixture.project("logs");
    let sent = json!({"scope": {"type": "model", "id": MODEL}, "window": "total", "limit_usd": 5, "action": "reject"});
    let id = calls.fixture.post("/v1/gateway_budget", &sent).ok()["id"].as_str().expect("an id").to_owned();
    let usage = || calls.fixture.get(&format!("/v1/gateway_budget/{id}/usage")).ok();
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
