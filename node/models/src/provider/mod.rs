//! Providers of models: types of secrets, and the typed view of one secret (1.3).

mod auth;
mod header_rules;
mod metadata;
mod target;
mod tls;
mod url;

use serde_json::{Map, Value};

use crate::complaint::MetadataComplaint;

pub use auth::{AuthPlan, TokenExchange, auth_plan, bearer_headers};
pub use header_rules::{
    HeaderRefusal, HeaderVariables, RenderedHeaders, check_header, is_hop_by_hop, render_additional_headers,
};
pub use metadata::{AuthFormat, HiddenText, PRIORITY_MAX, ProviderMetadata, TIMEOUT_MS_MAX, WEIGHT_MAX};
pub use target::SecretTarget;
pub use tls::{ProviderTls, TLS_KEY_MEMBER, check_tls};
pub use url::{UpstreamCall, UpstreamEndpoint, UrlError, endpoint_url};

/// Type of a provider secret, named as in the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProviderType {
    OpenAi,
    Anthropic,
    Google,
    Azure,
    AzureAiGateway,
    Bedrock,
    Vertex,
    Databricks,
    Mistral,
    Cohere,
    Ollama,
    Groq,
    Together,
    Fireworks,
    Perplexity,
    XAi,
    Cerebras,
    OpenRouter,
    Baseten,
    Replicate,
    Lepton,
    Braintrust,
    Js,
}

/// Facts about one type: its name, the usual name of its secret, and its default base URL.
struct ProviderFacts {
    provider: ProviderType,
    name: &'static str,
    secret_name: Option<&'static str>,
    base: Option<&'static str>,
}

const fn facts(
    provider: ProviderType,
    name: &'static str,
    secret_name: Option<&'static str>,
    base: Option<&'static str>,
) -> ProviderFacts {
    ProviderFacts { provider, name, secret_name, base }
}

/// Facts in the order of [`ProviderType`].
const FACTS: [ProviderFacts; 23] = [
    facts(ProviderType::OpenAi, "openai", Some("OPENAI_API_KEY"), Some("https://api.openai.com/v1")),
    facts(ProviderType::Anthropic, "anthropic", Some("ANTHROPIC_API_KEY"), Some("https://api.anthropic.com/v1")),
    facts(
        ProviderType::Google,
        "google",
        Some("GEMINI_API_KEY"),
        Some("https://generativelanguage.googleapis.com/v1beta"),
    ),
    facts(ProviderType::Azure, "azure", Some("AZURE_DEFAULT_CREDENTIALS"), None),
    facts(ProviderType::AzureAiGateway, "azure_ai_gateway", Some("AZURE_AI_GATEWAY_API_KEY"), None),
    facts(ProviderType::Bedrock, "bedrock", Some("AWS_DEFAULT_CREDENTIALS"), None),
    facts(ProviderType::Vertex, "vertex", Some("GOOGLE_DEFAULT_CREDENTIALS"), None),
    facts(ProviderType::Databricks, "databricks", Some("DATABRICKS_DEFAULT_CREDENTIALS"), None),
    facts(ProviderType::Mistral, "mistral", Some("MISTRAL_API_KEY"), Some("https://api.mistral.ai/v1")),
    facts(ProviderType::Cohere, "cohere", Some("COHERE_API_KEY"), Some("https://api.cohere.com/compatibility/v1")),
    facts(ProviderType::Ollama, "ollama", Some("OLLAMA_DEFAULT_CREDENTIALS"), Some("http://127.0.0.1:11434/v1")),
    facts(ProviderType::Groq, "groq", Some("GROQ_API_KEY"), Some("https://api.groq.com/openai/v1")),
    facts(ProviderType::Together, "together", Some("TOGETHER_API_KEY"), Some("https://api.together.xyz/v1")),
    facts(
        ProviderType::Fireworks,
        "fireworks",
        Some("FIREWORKS_API_KEY"),
        Some("https://api.fireworks.ai/inference/v1"),
    ),
    facts(ProviderType::Perplexity, "perplexity", Some("PERPLEXITY_API_KEY"), Some("https://api.perplexity.ai")),
    facts(ProviderType::XAi, "xAI", Some("XAI_API_KEY"), Some("https://api.x.ai/v1")),
    facts(ProviderType::Cerebras, "cerebras", Some("CEREBRAS_API_KEY"), Some("https://api.cerebras.ai/v1")),
    facts(ProviderType::OpenRouter, "openrouter", Some("OPENROUTER_API_KEY"), Some("https://openrouter.ai/api/v1")),
    facts(ProviderType::Baseten, "baseten", Some("BASETEN_API_KEY"), Some("https://inference.baseten.co/v1")),
    facts(ProviderType::Replicate, "replicate", None, None),
    facts(ProviderType::Lepton, "lepton", None, None),
    facts(ProviderType::Braintrust, "braintrust", None, None),
    facts(ProviderType::Js, "js", None, None),
];

impl ProviderType {
    /// Returns all types, in the order of the contract.
    pub fn all() -> impl Iterator<Item = ProviderType> {
        FACTS.iter().map(|facts| facts.provider)
    }

    /// Returns the type with this name, which is case-sensitive.
    pub fn parse(name: &str) -> Option<ProviderType> {
        FACTS.iter().find(|facts| facts.name == name).map(|facts| facts.provider)
    }

    fn facts(self) -> &'static ProviderFacts {
        &FACTS[self as usize]
    }

    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Returns the usual name of secrets of this type.
    pub fn usual_secret_name(self) -> Option<&'static str> {
        self.facts().secret_name
    }

    pub fn default_base(self) -> Option<&'static str> {
        self.facts().base
    }

    /// Returns whether models can be called with such a secret. Other secrets are only stored (G-09).
    pub fn is_callable(self) -> bool {
        self.usual_secret_name().is_some()
    }

    /// Returns whether upstreams of this type accept OpenAI's wire format at `base + path`.
    pub fn speaks_openai(self) -> bool {
        use ProviderType::{Anthropic, Azure, Bedrock, Databricks, Google, Vertex};
        self.is_callable() && !matches!(self, Anthropic | Google | Azure | Bedrock | Vertex | Databricks)
    }
}

/// Owner of a provider secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProviderScope {
    Organization,
    Project,
}

/// Provider secret without its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// Id of the secret's record.
    pub id: String,
    pub name: String,
    pub provider_type: ProviderType,
    pub scope: ProviderScope,
    pub metadata: ProviderMetadata,
}

impl Provider {
    /// Returns the view of a secret, and complaints about metadata members that count as absent.
    ///
    /// Metadata never disable a provider, in contrast to the vendor's product (trap 14).
    pub fn parse(
        id: impl Into<String>,
        name: impl Into<String>,
        provider_type: ProviderType,
        scope: ProviderScope,
        metadata: &Map<String, Value>,
    ) -> (Provider, Vec<MetadataComplaint>) {
        let (metadata, complaints) = ProviderMetadata::parse(metadata);
        (Provider { id: id.into(), name: name.into(), provider_type, scope, metadata }, complaints)
    }

    /// Returns whether the provider is custom, which means that it defines its own models.
    pub fn is_custom(&self) -> bool {
        !self.metadata.custom_models.is_empty()
    }

    /// Returns the configured base URL or the default one, without trailing slashes.
    pub fn base(&self) -> Option<&str> {
        let configured = self.metadata.api_base.as_deref();
        configured.or(self.provider_type.default_base()).map(|base| base.trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_type_has_its_own_facts() {
        for (index, provider) in ProviderType::all().enumerate() {
            assert_eq!(provider as usize, index);
            assert_eq!(ProviderType::parse(provider.name()), Some(provider));
            assert_eq!(FACTS[index].provider, provider);
        }
        assert_eq!(ProviderType::parse("xai"), None, "names are case-sensitive");
        assert_eq!(ProviderType::parse("OpenAI"), None);
    }

    #[test]
    fn stored_types_are_not_called() {
        let stored: Vec<_> = ProviderType::all().filter(|one| !one.is_callable()).map(ProviderType::name).collect();
        assert_eq!(stored, ["replicate", "lepton", "braintrust", "js"]);
    }

    #[test]
    fn an_empty_base_is_the_default_one() {
        let base = |metadata: Value| {
            let metadata = metadata.as_object().expect("an object").clone();
            let (provider, complaints) =
                Provider::parse("1", "n", ProviderType::OpenAi, ProviderScope::Organization, &metadata);
            assert!(complaints.is_empty(), "{complaints:?}");
            provider.base().map(str::to_owned)
        };
        assert_eq!(base(json!({"api_base": ""})).as_deref(), Some("https://api.openai.com/v1"));
        assert_eq!(base(json!({"api_base": null})).as_deref(), Some("https://api.openai.com/v1"));
        assert_eq!(base(json!({"api_base": "http://gpu:8000/v1/"})).as_deref(), Some("http://gpu:8000/v1"));
    }
}
