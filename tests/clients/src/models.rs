//! A node whose models are servers on this machine.

use assay_test_api::http::{HttpResponse, Request, send};
use assay_test_api::server::{Options, Server};
use serde_json::{Value, json};

/// Lets the node call model servers on this machine.
const EGRESS: &str = r#"egress.allow=[{cidr = "127.0.0.0/8", ports = ["1024-65535"], for = ["models"]}]"#;
/// Passes the error of a provider on at once.
const NO_RETRIES: &str = "gateway.retry_budget_seconds=0";

/// A provider secret of a node.
#[derive(Clone, Debug)]
pub struct ModelProvider<'a> {
    pub name: &'a str,
    /// Type of the secret, which decides the wire format.
    pub provider_type: &'a str,
    pub api_base: &'a str,
    /// Key that the provider gets.
    pub secret: &'a str,
    /// Models by name, each with its properties.
    pub models: Value,
}

/// A node in a directory of its own.
#[derive(Debug)]
pub struct ModelNode {
    server: Server,
    _folder: tempfile::TempDir,
}

impl ModelNode {
    pub fn start() -> ModelNode {
        let folder = tempfile::tempdir().expect("a directory");
        let mut options = Options::new(&folder.path().join("data"));
        options.settings = [EGRESS, NO_RETRIES].map(str::to_owned).into();
        let server = Server::start(&options).unwrap_or_else(|error| panic!("{error:#}"));
        ModelNode { server, _folder: folder }
    }

    /// Stores a provider secret, whose models are the only ones of its provider.
    pub fn add_provider(&self, provider: &ModelProvider<'_>) {
        let ModelProvider { name, provider_type, api_base, secret, models } = provider;
        let metadata = json!({ "api_base": api_base, "excludeDefaultModels": true, "customModels": models });
        let body = json!({ "name": name, "type": provider_type, "secret": secret, "metadata": metadata });
        self.api("POST", "/v1/ai_secret", &body);
    }

    /// Sends a request to the API.
    pub fn send(&self, method: &str, target: &str, body: &Value) -> HttpResponse {
        let request = Request {
            method: method.into(),
            target: target.into(),
            headers: vec![
                ("authorization".into(), format!("Bearer {}", self.server.key)),
                ("content-type".into(), "application/json".into()),
            ],
            body: Some(body.to_string().into_bytes()),
            declared_length: None,
        };
        send(&self.server.url, &request).unwrap_or_else(|error| panic!("{error:#}"))
    }

    /// Sends a request to the API. Returns the JSON of a 200.
    pub fn api(&self, method: &str, target: &str, body: &Value) -> Value {
        let answer = self.send(method, target, body);
        assert_eq!(answer.status, 200, "{method} {target}: {}\nthe node said:\n{}", answer.text(), self.log());
        serde_json::from_slice(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", answer.text()))
    }

    /// Address and key for clients.
    pub fn caller(&self) -> (&str, &str) {
        (&self.server.url, &self.server.key)
    }

    pub fn log(&self) -> String {
        self.server.log()
    }

    pub fn assert_lives(&mut self) {
        assert!(self.server.lives(), "the node died:\n{}", self.server.log());
    }
}
