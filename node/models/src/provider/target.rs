//! Servers that receive a provider secret, to detect when they change.

use std::collections::BTreeSet;

use super::{Provider, ProviderType, UpstreamCall, UpstreamEndpoint, endpoint_url};

/// Endpoints that together cover all hosts of a provider.
const ENDPOINTS: [UpstreamEndpoint<'static>; 4] = [
    UpstreamEndpoint::Chat,
    UpstreamEndpoint::AnthropicMessages,
    UpstreamEndpoint::Gemini("generateContent"),
    UpstreamEndpoint::Converse,
];
/// Placeholder for a model, which is never part of an origin.
const ANY_MODEL: &str = "m";

/// Destination of a secret: configured addresses, and the origins of all requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretTarget {
    /// Complete base URL, because servers of several owners may share a host.
    api_base: Option<String>,
    token_url: Option<String>,
    origins: BTreeSet<String>,
}

impl SecretTarget {
    /// Returns the target of a provider's secret, which also depends on type, region and location.
    pub fn of(provider: &Provider) -> SecretTarget {
        let call = |endpoint| UpstreamCall { endpoint, model: ANY_MODEL, stream: false };
        let urls = ENDPOINTS.into_iter().filter_map(|endpoint| endpoint_url(provider, &call(endpoint)).ok());
        let mut origins: BTreeSet<String> = urls.map(|url| origin(&url)).collect();
        if provider.provider_type == ProviderType::Bedrock {
            // Roles are assumed in the region, independent of the base URL.
            origins.extend(provider.metadata.region.as_ref().map(|region| format!("sts of {region}")));
        }
        let token_url = provider.metadata.members.get("token_url").filter(|url| !url.is_null());
        SecretTarget {
            api_base: provider.metadata.api_base.clone(),
            token_url: token_url.map(ToString::to_string),
            origins,
        }
    }
}

fn origin(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    format!("{scheme}://{authority}").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::provider::ProviderScope;

    fn target(provider_type: &str, metadata: Value) -> SecretTarget {
        let provider_type = ProviderType::parse(provider_type).expect("a type");
        let metadata = metadata.as_object().expect("an object").clone();
        SecretTarget::of(&Provider::parse("1", "n", provider_type, ProviderScope::Organization, &metadata).0)
    }

    #[test]
    fn another_host_is_another_target() {
        let none = || json!({});
        for (one, other) in [
            (target("openai", none()), target("anthropic", none())),
            (target("openai", none()), target("openai", json!({"api_base": "https://a.example"}))),
            (
                target("openai", json!({"api_base": "https://a/x"})),
                target("openai", json!({"api_base": "https://a/y"})),
            ),
            (target("bedrock", json!({"region": "eu-west-1"})), target("bedrock", json!({"region": "us-east-1"}))),
            (
                target("vertex", json!({"project": "p"})),
                target("vertex", json!({"project": "p", "location": "europe-west1"})),
            ),
            (target("azure", none()), target("azure", json!({"token_url": "https://t.example"}))),
            (
                target("bedrock", json!({"api_base": "https://a", "region": "eu-west-1"})),
                target("bedrock", json!({"api_base": "https://a", "region": "cn-north-1"})),
            ),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn what_names_no_server_changes_no_target() {
        for (one, other) in [
            (target("openai", json!({})), target("openai", json!({"models": ["m"], "weight": 2}))),
            (target("openai", json!({"api_base": "https://a"})), target("mistral", json!({"api_base": "https://a"}))),
            (target("bedrock", json!({})), target("bedrock", json!({"role_arn": "arn:aws:iam::1:role/r"}))),
            (target("azure", json!({"token_url": null})), target("azure", json!({"deployment": "d"}))),
        ] {
            assert_eq!(one, other);
        }
    }
}
