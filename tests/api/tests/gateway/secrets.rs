//! Keys of providers and of this server are in no file, log line, metric, span, cache entry or error, however calls end.

use std::io::Read;

use assay_test_api::http::{HttpResponse, Request, send};
use assay_test_api::search::Texts;
use assay_test_api::server::TEST_KEY;
use assay_test_providers::{Fault, ProviderServer};
use serde_json::{Value, json};

use crate::fixture::{CHAT, GatewayNode, Header, chat, openai, provider, request, stream, with};

/// Public value that has to be found, which proves that the search works.
const MARK: &str = "a-model-that-may-be-named";
const ALWAYS: Header<'static> = ("x-bt-use-cache", "always");

/// Returns an incompressible secret.
fn new_secret() -> String {
    let mut random = [0; 24];
    let mut source = std::fs::File::open("/dev/urandom").expect("the system's randomness");
    source.read_exact(&mut random).expect("random bytes");
    random.iter().fold("sk-".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// Everything that a client was told, and the secrets that must be in none of it.
struct ConfidentialNode {
    node: GatewayNode,
    secrets: Vec<String>,
    told: Vec<u8>,
}

impl ConfidentialNode {
    fn secret(&mut self) -> String {
        let secret = new_secret();
        self.secrets.push(secret.clone());
        secret
    }

    fn provider(&mut self, name: &str, secret_type: &str, metadata: &Value) {
        let secret = self.secret();
        let sent = json!({"name": name, "type": secret_type, "secret": secret, "metadata": metadata});
        let made = self.node.api("POST", "/v1/ai_secret", &sent);
        self.told.extend(made.to_string().bytes());
    }

    fn ask(&mut self, path: &str, headers: &[Header<'_>], body: &Value) -> HttpResponse {
        let answer = self.node.ask(path, headers, body);
        self.keep(&answer);
        answer
    }

    fn keep(&mut self, answer: &HttpResponse) {
        for (name, value) in &answer.headers {
            self.told.extend(format!("{name}: {value}\n").bytes());
        }
        self.told.extend(&answer.body);
    }
}

fn models(server: &ProviderServer, model: &str, members: &Value) -> Value {
    with(&openai(server, model), members)
}

/// Keys of seven kinds, each behind a model of its own name.
fn make_all(all: &mut ConfidentialNode, server: &ProviderServer, project: &str) -> Vec<&'static str> {
    let origin = server.origin();
    let spec = |format: &str| json!({"format": format, "flavor": "chat", "input_cost_per_mil_tokens": 1, "output_cost_per_mil_tokens": 1});
    all.provider("plain", "openai", &models(server, MARK, &json!({})));
    let header = json!({"additionalHeaders": {"x-key": "Key {{api_key}}"}});
    all.provider("in-a-header", "openai", &models(server, "in-a-header", &header));
    let api_key = json!({"auth_format": "api_key"});
    all.provider("api-key", "openai", &models(server, "api-key", &api_key));
    let anthropic = json!({"api_base": format!("{origin}/v1"), "customModels": {"of-anthropic": spec("anthropic")}});
    all.provider("anthropic", "anthropic", &anthropic);
    let google = json!({"api_base": format!("{origin}/v1beta"), "customModels": {"of-google": spec("google")}});
    all.provider("google", "google", &google);
    let dead = json!({"api_base": "http://127.0.0.1:1024/v1", "customModels": {"unreachable": spec("openai")}});
    all.provider("dead", "openai", &dead);
    let value = all.secret();
    let variable = json!({"object_type": "project", "object_id": project, "name": "OF_PROJECT", "secret_type": "openai",
        "value": value, "metadata": openai(server, "of-project")});
    all.node.api("POST", "/v1/env_var", &variable);
    vec![MARK, "in-a-header", "api-key", "of-anthropic", "of-google", "unreachable", "of-project"]
}

/// Calls with every key: answers, streams, a hit of the cache, refusals, errors that tell the request, cut responses.
fn call_all(all: &mut ConfidentialNode, server: &ProviderServer, models: &[&str], headers: &[Header<'_>]) {
    let faults = [
        None,
        Some(Fault::Status { status: 401, retry_after: None }),
        Some(Fault::TellsHeaders(400)),
        Some(Fault::TellsHeaders(404)),
        Some(Fault::TellsHeaders(500)),
        Some(Fault::CutAfter(30)),
        Some(Fault::ErrorEventAfter(4)),
        Some(Fault::WrongContentType),
    ];
    for model in models {
        for (number, fault) in faults.iter().enumerate() {
            // the unreachable one would leave its faults to the others
            if let (Some(fault), true) = (fault, *model != "unreachable") {
                server.inject(fault.clone());
            }
            let text = format!("call {number}");
            let body = if number % 2 == 0 { stream(model, &text) } else { chat(model, &text) };
            all.ask(CHAT, headers, &body);
            if fault.is_none() {
                all.ask(CHAT, headers, &body);
            }
        }
        let anthropic = with(&chat(model, "as Anthropic"), &json!({"max_tokens": 9}));
        all.ask("/v1/messages", headers, &anthropic);
    }
}

#[test]
fn keys_are_nowhere_but_in_requests_to_their_providers() {
    let settings = ["log.filter=debug", "gateway.retry_budget_seconds=0"];
    let mut all = ConfidentialNode { node: GatewayNode::start(&settings), secrets: Vec::new(), told: Vec::new() };
    let server = provider();
    let project = all.node.project("of the keys");
    let models = make_all(&mut all, &server, &project);
    let own = all.node.api("POST", "/v1/api_key", &json!({"name": "own"}))["key"].as_str().expect("a key").to_owned();
    let temporary = all.node.api("POST", "/v1/proxy/credentials", &json!({"logging": {"project_name": "of the keys"}}));
    let temporary = temporary["key"].as_str().expect("a key").to_owned();
    let bearer = format!("Bearer {own}");
    let parent = [ALWAYS, ("x-bt-parent", "project_name:of the keys"), ("x-bt-project-id", &project)];
    call_all(&mut all, &server, &models, &[&parent[..], &[("authorization", &bearer)]].concat());
    for key in [&own, &temporary] {
        let in_header = [&parent[..], &[("x-api-key", key.as_str())]].concat();
        all.ask(CHAT, &in_header, &chat(MARK, "by a header"));
        let google = [&parent[..], &[("x-goog-api-key", key.as_str())]].concat();
        all.ask(CHAT, &google, &stream(MARK, "by a header of Google"));
        let unknown = format!("Bearer {key}x");
        assert_eq!(all.ask(CHAT, &[("authorization", &unknown)], &chat(MARK, "unknown")).status, 401);
        let queried = request("POST", &format!("{CHAT}?key={key}"), &[("x-other", "1")], Some(&chat(MARK, "query")));
        let headers = queried.headers.iter().filter(|(name, _)| name != "authorization").cloned().collect();
        let answer = send(all.node.url(), &Request { headers, ..queried }).expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
        all.keep(&answer);
    }
    all.secrets.extend([own, temporary, TEST_KEY.to_owned()]);
    assert_eq!(all.secrets.len(), 10);
    reached_providers(&all, &server);
    shown(&mut all, &project);
    nowhere(all);
}

/// Each key reached its provider, and none of this server's.
fn reached_providers(all: &ConfidentialNode, server: &ProviderServer) {
    let sent: Vec<String> = server.requests().iter().map(|request| format!("{request:?}")).collect();
    let unreachable = 5;
    for (number, secret) in all.secrets.iter().enumerate() {
        let is_sent = sent.iter().any(|request| request.contains(secret.as_str()));
        assert_eq!(is_sent, number < 7 && number != unreachable, "the key number {number}");
    }
    assert!(sent.iter().any(|request| request.contains(&format!("Key {}", all.secrets[1]))));
}

/// Keeps what the API shows: spans, metrics, records.
fn shown(all: &mut ConfidentialNode, project: &str) {
    let last = all.ask(CHAT, &[("x-bt-parent", "project_name:of the keys")], &chat(MARK, "the last one"));
    let id = last.header("x-bt-span-id").expect("a span");
    all.node.span(&format!("project_logs/{project}"), &id);
    let rows = all.node.rows(&format!("project_logs/{project}"));
    assert!(rows.len() > 60, "{}", rows.len());
    all.told.extend(json!(rows).to_string().bytes());
    for target in ["/metrics", "/v1/ai_secret", "/v1/env_var", "/v1/api_key", "/v1/proxy/models"] {
        let answer = send(all.node.url(), &request("GET", target, &[], None)).expect("an answer");
        assert_eq!(answer.status, 200, "{target}: {}", answer.text());
        all.keep(&answer);
    }
}

/// Looks through all that was told, the log, and every file of the node while it runs and when it is stopped.
fn nowhere(all: ConfidentialNode) {
    let ConfidentialNode { node, secrets, told } = all;
    // the end of a key is as secret as the whole, where it is random
    let ends = secrets.iter().filter(|text| *text != TEST_KEY).map(|text| &text[text.len() - 24..]);
    let parts = secrets.iter().map(String::as_str).chain(ends);
    let sought = Texts::new(parts.chain([MARK]));
    let log = node.options.data_dir.with_extension("log");
    let GatewayNode { server, options, dir: _dir } = node;
    let mut found = sought.below(&options.data_dir);
    assert!(server.stop().expect("stops").success());
    found.extend(sought.below(&options.data_dir));
    let log = std::fs::read(log).expect("the log");
    for (what, bytes) in [("the log", &log), ("what clients were told", &told)] {
        found.extend(sought.within(bytes).into_iter().map(|text| format!("{what}: {text}")));
    }
    let (marked, secret): (Vec<_>, Vec<_>) = found.into_iter().partition(|at| at.ends_with(MARK));
    let number = |at: &String| secrets.iter().position(|secret| at.ends_with(secret.as_str()));
    let secret: Vec<_> = secret.iter().map(|at| (number(at), at)).collect();
    assert!(secret.is_empty(), "{secret:#?}");
    assert!(!marked.is_empty(), "not even what is no secret was found");
}
