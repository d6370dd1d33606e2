//! A node with provider secrets, and requests to its gateway.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use assay_test_api::http::{HttpResponse, Request, SILENCE_MAX, request_bytes, send};
use assay_test_api::server::{Options, Server, TEST_KEY};
use assay_test_providers::ProviderServer;
use serde_json::{Value, json};

/// Lets the node call scripted providers on this machine.
pub const EGRESS: &str =
    r#"egress.allow=[{cidr = "127.0.0.0/8", ports = ["1024-65535"], for = ["models","mcp","media"]}]"#;
pub const CHAT: &str = "/v1/proxy/chat/completions";
/// Time until something that goes on behind a response must be visible.
const SHOWN_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// Header as a test writes it.
pub type Header<'a> = (&'a str, &'a str);

/// A node with a directory of its own.
#[derive(Debug)]
pub struct GatewayNode {
    pub server: Server,
    pub options: Options,
    pub dir: tempfile::TempDir,
}

impl GatewayNode {
    pub fn start(settings: &[&str]) -> GatewayNode {
        let dir = tempfile::tempdir().expect("a directory");
        let mut options = Options::new(&dir.path().join("data"));
        options.settings = settings.iter().chain(&[EGRESS]).map(|setting| (*setting).to_owned()).collect();
        let server = Server::start(&options).unwrap_or_else(|error| panic!("{error:#}"));
        GatewayNode { server, options, dir }
    }

    pub fn url(&self) -> &str {
        &self.server.url
    }

    pub fn ask(&self, path: &str, headers: &[Header<'_>], body: &Value) -> HttpResponse {
        ask(self.url(), path, headers, body)
    }

    /// Calls the API and returns the JSON of a 200.
    pub fn api(&self, method: &str, target: &str, body: &Value) -> Value {
        api(self.url(), method, target, body)
    }

    pub fn project(&self, name: &str) -> String {
        id_of(&self.api("POST", "/v1/project", &json!({"name": name})))
    }

    /// Stores a provider secret and returns its id.
    pub fn secret(&self, name: &str, secret_type: &str, metadata: &Value) -> String {
        secret(self.url(), name, secret_type, metadata)
    }

    /// Waits for the complete row of a span.
    pub fn span(&self, object: &str, row_id: &str) -> Value {
        let read = || {
            let page = self.api("POST", &format!("/v1/{object}/fetch"), &json!({"limit": 1000}));
            let rows = page["events"].as_array().cloned().unwrap_or_default();
            rows.into_iter().find(|row| row["id"] == row_id && row["metrics"]["end"].is_number())
        };
        eventually(&format!("the span {row_id} of {object}"), read)
    }

    /// Rows of an object.
    pub fn rows(&self, object: &str) -> Vec<Value> {
        let page = self.api("POST", &format!("/v1/{object}/fetch"), &json!({"limit": 1000}));
        page["events"].as_array().cloned().unwrap_or_default()
    }
}

/// Sends a request with the key of the server, unless the headers name another credential.
pub fn ask(url: &str, path: &str, headers: &[Header<'_>], body: &Value) -> HttpResponse {
    send(url, &request("POST", path, headers, Some(body))).unwrap_or_else(|error| panic!("{error:#}"))
}

pub fn request(method: &str, target: &str, headers: &[Header<'_>], body: Option<&Value>) -> Request {
    const CREDENTIALS: [&str; 3] = ["authorization", "x-api-key", "x-goog-api-key"];
    let mut all: Vec<(String, String)> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    if !headers.iter().any(|(name, _)| CREDENTIALS.contains(name)) {
        all.push(("authorization".into(), format!("Bearer {TEST_KEY}")));
    }
    all.push(("content-type".into(), "application/json".into()));
    let body = body.map(|body| body.to_string().into_bytes());
    Request { method: method.into(), target: target.into(), headers: all, body, declared_length: None }
}

pub fn api(url: &str, method: &str, target: &str, body: &Value) -> Value {
    let body = (method != "GET").then_some(body);
    let answer = send(url, &request(method, target, &[], body)).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(answer.status, 200, "{method} {target}: {}", answer.text());
    json_of(&answer)
}

pub fn secret(url: &str, name: &str, secret_type: &str, metadata: &Value) -> String {
    let sent = json!({"name": name, "type": secret_type, "secret": format!("sk-of-{name}"), "metadata": metadata});
    id_of(&api(url, "POST", "/v1/ai_secret", &sent))
}

pub fn json_of(answer: &HttpResponse) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", answer.text()))
}

pub fn id_of(object: &Value) -> String {
    object["id"].as_str().unwrap_or_else(|| panic!("no id: {object}")).to_owned()
}

/// Metadata of an OpenAI-compatible server with one model, at a dollar for a million tokens of each kind.
pub fn metadata_at(origin: &str, model: &str) -> Value {
    let spec =
        json!({"format": "openai", "flavor": "chat", "input_cost_per_mil_tokens": 1, "output_cost_per_mil_tokens": 1});
    json!({"api_base": format!("{origin}/v1"), "customModels": {model: spec}, "excludeDefaultModels": true})
}

pub fn openai(provider: &ProviderServer, model: &str) -> Value {
    metadata_at(&provider.origin(), model)
}

/// Returns metadata with further members.
pub fn with(metadata: &Value, members: &Value) -> Value {
    let mut all = metadata.clone();
    for (name, value) in members.as_object().expect("members") {
        all[name] = value.clone();
    }
    all
}

pub fn provider() -> ProviderServer {
    ProviderServer::start().unwrap_or_else(|error| panic!("{error:#}"))
}

/// Body of a chat completion.
pub fn chat(model: &str, text: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": text}]})
}

pub fn stream(model: &str, text: &str) -> Value {
    with(&chat(model, text), &json!({"stream": true}))
}

/// Text of the answer of a chat completion.
pub fn text_of(answer: &HttpResponse) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text());
    json_of(answer)["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned()
}

/// Text of a stream of chat completions.
pub fn streamed_text(body: &str) -> String {
    let events = body.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    let read = events.map(|data| serde_json::from_str::<Value>(data).unwrap_or_else(|error| panic!("{error}: {data}")));
    read.map(|event| event["choices"][0]["delta"]["content"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Code of an error in OpenAI's form.
pub fn code_of(answer: &HttpResponse) -> String {
    json_of(answer)["error"]["code"].as_str().unwrap_or_default().to_owned()
}

/// Polls until there is a value.
pub fn eventually<T>(what: &str, read: impl FnMut() -> Option<T>) -> T {
    eventually_within(SHOWN_MAX, what, read)
}

pub fn eventually_within<T>(time: Duration, what: &str, mut read: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + time;
    loop {
        if let Some(found) = read() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not come within {time:?}");
        std::thread::sleep(POLL);
    }
}

/// A response that is read piece by piece.
#[derive(Debug)]
pub struct OpenResponse {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl OpenResponse {
    pub fn begin(url: &str, headers: &[Header<'_>], body: &Value) -> OpenResponse {
        let address = url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).expect("the node accepts");
        stream.set_read_timeout(Some(SILENCE_MAX)).expect("a timeout");
        stream.write_all(&request_bytes(address, &request("POST", CHAT, headers, Some(body)))).expect("is sent");
        OpenResponse { stream, bytes: Vec::new() }
    }

    /// Reads until the response has this text.
    pub fn until(&mut self, text: &str) -> String {
        let mut piece = [0; 4096];
        loop {
            let read = String::from_utf8_lossy(&self.bytes).into_owned();
            if read.contains(text) {
                return read;
            }
            let count = self.stream.read(&mut piece).expect("the response goes on");
            assert!(count > 0, "the response ended without {text:?}: {read}");
            self.bytes.extend_from_slice(&piece[..count]);
        }
    }
}
