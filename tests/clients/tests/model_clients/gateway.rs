//! A node with a provider secret for each wire format.

use assay_test_clients::models::{ModelNode, ModelProvider};
use serde_json::{Value, json};

use crate::litellm;

/// Model of the scripted providers. A model whose name contains `cached` had a part of the prompt cached.
pub const NATIVE_MODEL: &str = "scripted-cached";
/// Models of conversations, named by the wire format of the server behind the gateway.
pub const CHAT_MODELS: [&str; 5] =
    ["chat-cached", "responses-cached", "anthropic-cached", "gemini-cached", "litellm-cached"];
/// Models of embeddings, in OpenAI's format and in Gemini's.
pub const EMBEDDING_MODELS: [&str; 2] = ["chat-embedding", "gemini-embedding"];

/// Starts a node before the scripted providers.
pub fn gateway_node(provider: &str, litellm: Option<&str>) -> ModelNode {
    let node = ModelNode::start();
    let add = |name: &str, provider_type: &str, api_base: &str, models: Value| {
        node.add_provider(&ModelProvider { name, provider_type, api_base, secret: litellm::KEY, models });
    };
    let (v1, v1beta) = (format!("{provider}/v1"), format!("{provider}/v1beta"));
    add(
        "of-chat",
        "openai",
        &v1,
        json!({
            "chat-cached": { "format": "openai", "endpoint_types": ["chat"] },
            "chat-embedding": { "format": "openai", "flavor": "embedding" }
        }),
    );
    let responses = json!({ "responses-cached": { "format": "openai", "endpoint_types": ["responses"] } });
    add("of-responses", "openai", &v1, responses);
    add("of-anthropic", "anthropic", &v1, json!({ "anthropic-cached": { "format": "anthropic" } }));
    add(
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
        add("of-litellm", "openai", &format!("{origin}/v1"), models);
    }
    node
}
