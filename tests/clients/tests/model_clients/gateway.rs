//! A node with a provider secret for each wire format.

use assay_test_api::http::{Request, send};
use assay_test_api::server::{Options, Server};
use serde_json::{Value, json};

use crate::litellm;

/// Model of the scripted providers. A model whose name contains `cached` had a part of the prompt cached.
pub const NATIVE_MODEL: &str = "scripted-cached";
/// Models of conversations, named by the wire format of the server behind the gateway.
pub const CHAT_MODELS: [&str; 5] =
    ["chat-cached", "responses-cached", "anthropic-cached", "gemini-cached", "litellm-cached"];
/// Models of embeddings, in OpenAI's format and in Gemini's.
pub const EMBEDDING_MODELS: [&str; 2] = ["chat-embedding", "gemini-embedding"];

/// A node before the scripted providers.
#[derive(Debug)]
pub struct GatewayNode {
    server: Server,
    _folder: tempfile::TempDir,
}

impl GatewayNode {
    pub fn start(provider: &str, litellm: Option<&str>) -> GatewayNode {
        let folder = tempfile::tempdir().expect("a directory");
        let mut options = Options::new(&folder.path().join("data"));
        let loopback = r#"egress.allow=[{cidr = "127.0.0.0/8", ports = ["1024-65535"], for = ["models"]}]"#;
        // a provider's error passes at once
        options.settings = vec![loopback.to_owned(), "gateway.retry_budget_seconds=0".to_owned()];
        let server = Server::start(&options).unwrap_or_else(|error| panic!("{error:#}"));
        let node = GatewayNode { server, _folder: folder };
        let (v1, v1beta) = (format!("{provider}/v1"), format!("{provider}/v1beta"));
        node.add_provider(
            "of-chat",
            "openai",
            &v1,
            json!({
                "chat-cached": { "format": "openai", "endpoint_types": ["chat"] },
                "chat-embedding": { "format": "openai", "flavor": "embedding" }
            }),
        );
        let responses = json!({ "responses-cached": { "format": "openai", "endpoint_types": ["responses"] } });
        node.add_provider("of-responses", "openai", &v1, responses);
        node.add_provider("of-anthropic", "anthropic", &v1, json!({ "anthropic-cached": { "format": "anthropic" } }));
        node.add_provider(
            "of-gemini",
            "google",
            &v1beta,
            json!({
                "gemini-cached": { "format": "google" },
                "gemini-embedding": { "format": "google", "flavor": "embedding" }
            }),
        );
        if let Some(origin) = litellm {
            let models = json!({ "litellm-cached": {}, "mocked": {}, "limited": {} });
            node.add_provider("of-litellm", "openai", &format!("{origin}/v1"), models);
        }
        node
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

    fn add_provider(&self, name: &str, provider_type: &str, api_base: &str, models: Value) {
        let metadata = json!({ "api_base": api_base, "excludeDefaultModels": true, "customModels": models });
        let body = json!({ "name": name, "type": provider_type, "secret": litellm::KEY, "metadata": metadata });
        let request = Request {
            method: "POST".into(),
            target: "/v1/ai_secret".into(),
            headers: vec![("authorization".into(), format!("Bearer {}", self.server.key))],
            body: Some(body.to_string().into_bytes()),
            declared_length: None,
        };
        let answer = send(&self.server.url, &request).unwrap_or_else(|error| panic!("{error:#}"));
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
    }
}
