//! URLs of upstream endpoints (1.3, 1.12).

use super::{Provider, ProviderType};

const AZURE_API_VERSION: &str = "2023-07-01-preview";
const VERTEX_GEMINI_LOCATION: &str = "us-central1";
const VERTEX_ANTHROPIC_LOCATION: &str = "us-east5";
const BEDROCK_REGION: &str = "us-east-1";
/// Upper bound of a base URL, in bytes.
const BASE_BYTES_MAX: usize = 2048;
/// Upper bound of a path that is passed through, in bytes.
const PATH_BYTES_MAX: usize = 2048;

/// Endpoint of an upstream, by its wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamEndpoint<'a> {
    Chat,
    Completions,
    Embeddings,
    Moderations,
    Responses,
    AnthropicMessages,
    /// Verb of a Gemini model, such as `generateContent`.
    Gemini(&'a str),
    /// Converse API of Bedrock.
    Converse,
    /// Other path below the base URL, such as `/images/generations`.
    Path(&'a str),
}

/// Called endpoint, with the upstream name of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamCall<'a> {
    pub endpoint: UpstreamEndpoint<'a>,
    pub model: &'a str,
    pub stream: bool,
}

/// Error of an upstream URL. It does not contain the URL, which callers must not see.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error(
        "metadata.api_base of `{provider}`: {problem}; valid is an address such as `https://models.example.com/v1`"
    )]
    Base { provider: String, problem: &'static str },
    #[error("metadata.{field} of `{provider}` is missing: secrets of type `{provider_type}` need it")]
    Missing { provider: String, provider_type: &'static str, field: &'static str },
    #[error("secrets of type `{provider_type}` have no endpoint for {endpoint}")]
    NoEndpoint { provider_type: &'static str, endpoint: &'static str },
    #[error("secrets of type `{provider_type}` are stored but models cannot be called with them")]
    NotCallable { provider_type: &'static str },
    #[error("the path is not valid: it begins with a slash and has no `..`, query or control character")]
    Path,
}

/// Returns the URL of a call. The query of the base URL is kept.
pub fn endpoint_url(provider: &Provider, call: &UpstreamCall<'_>) -> Result<String, UrlError> {
    use ProviderType as T;
    if !provider.provider_type.is_callable() {
        return Err(UrlError::NotCallable { provider_type: provider.provider_type.name() });
    }
    match provider.provider_type {
        T::Anthropic => match call.endpoint {
            UpstreamEndpoint::AnthropicMessages => joined(provider, base(provider)?, "/messages", ""),
            UpstreamEndpoint::Path(path) => joined(provider, base(provider)?, checked_path(path)?, ""),
            _ => no_endpoint(provider, call),
        },
        T::Google => match call.endpoint {
            UpstreamEndpoint::Gemini(verb) => {
                let model = call.model.trim_start_matches("models/");
                joined(provider, base(provider)?, &format!("/models/{}:{}", encoded(model), encoded(verb)), sse(verb))
            }
            _ => no_endpoint(provider, call),
        },
        T::Azure => azure(provider, call),
        T::Bedrock => bedrock(provider, call),
        T::Vertex => vertex(provider, call),
        T::Databricks => match call.endpoint {
            UpstreamEndpoint::Chat | UpstreamEndpoint::Completions | UpstreamEndpoint::Embeddings => {
                let path = format!("/serving-endpoints/{}/invocations", encoded(call.model));
                joined(provider, base(provider)?, &path, "")
            }
            _ => no_endpoint(provider, call),
        },
        _ => {
            let usual = openai_path(provider, call)?;
            let path = match (provider.provider_type, &provider.metadata.endpoint_path) {
                (T::OpenAi, Some(path)) if path.is_empty() || path.starts_with('/') => path.clone(),
                (T::OpenAi, Some(path)) => format!("/{path}"),
                _ => usual.to_owned(),
            };
            joined(provider, base(provider)?, &path, "")
        }
    }
}

/// Returns the path of an endpoint of the OpenAI format.
fn openai_path<'a>(provider: &Provider, call: &UpstreamCall<'a>) -> Result<&'a str, UrlError> {
    match call.endpoint {
        UpstreamEndpoint::Chat => Ok("/chat/completions"),
        UpstreamEndpoint::Completions => Ok("/completions"),
        UpstreamEndpoint::Embeddings => Ok("/embeddings"),
        UpstreamEndpoint::Moderations => Ok("/moderations"),
        UpstreamEndpoint::Responses => Ok("/responses"),
        UpstreamEndpoint::Path(path) => checked_path(path),
        _ => no_endpoint(provider, call),
    }
}

fn azure(provider: &Provider, call: &UpstreamCall<'_>) -> Result<String, UrlError> {
    let path = openai_path(provider, call)?;
    let version = provider.metadata.api_version.as_deref().unwrap_or(AZURE_API_VERSION);
    let query = format!("api-version={}", encoded(version));
    let prefix = match (&provider.metadata.deployment, call.endpoint) {
        // The request body contains the model.
        (_, UpstreamEndpoint::Responses) => "/openai".to_owned(),
        (Some(deployment), _) => format!("/openai/deployments/{}", encoded(deployment)),
        (None, _) if provider.metadata.no_named_deployment => String::new(),
        (None, _) => format!("/openai/deployments/{}", encoded(&call.model.replace("gpt-3.5", "gpt-35"))),
    };
    joined(provider, base(provider)?, &format!("{prefix}{path}"), &query)
}

fn bedrock(provider: &Provider, call: &UpstreamCall<'_>) -> Result<String, UrlError> {
    let verb = match (call.endpoint, call.stream) {
        (UpstreamEndpoint::Converse, false) => "converse",
        (UpstreamEndpoint::Converse, true) => "converse-stream",
        (UpstreamEndpoint::AnthropicMessages, false) => "invoke",
        (UpstreamEndpoint::AnthropicMessages, true) => "invoke-with-response-stream",
        _ => return no_endpoint(provider, call),
    };
    let region = provider.metadata.region.as_deref().unwrap_or(BEDROCK_REGION);
    let usual = format!("https://bedrock-runtime.{}.amazonaws.com", host_label(provider, "region", region)?);
    let base = provider.base().unwrap_or(&usual);
    joined(provider, base, &format!("/model/{}/{verb}", encoded(call.model)), "")
}

fn vertex(provider: &Provider, call: &UpstreamCall<'_>) -> Result<String, UrlError> {
    let Some(project) = &provider.metadata.project else {
        return Err(missing(provider, "project"));
    };
    let model = call.model.rsplit('/').next().unwrap_or_default();
    let usual_location = match call.endpoint {
        UpstreamEndpoint::AnthropicMessages => VERTEX_ANTHROPIC_LOCATION,
        _ => VERTEX_GEMINI_LOCATION,
    };
    let location = provider.metadata.location.as_deref().unwrap_or(usual_location);
    let location = host_label(provider, "location", location)?;
    let usual = match location {
        "global" => "https://aiplatform.googleapis.com".to_owned(),
        location => format!("https://{location}-aiplatform.googleapis.com"),
    };
    let within = format!("projects/{}/locations/{location}", encoded(project));
    let (path, query) = match call.endpoint {
        UpstreamEndpoint::Gemini(verb) => {
            (format!("/v1/{within}/publishers/google/models/{}:{}", encoded(model), encoded(verb)), sse(verb))
        }
        UpstreamEndpoint::AnthropicMessages => {
            let verb = if call.stream { "streamRawPredict" } else { "rawPredict" };
            (format!("/v1/{within}/publishers/anthropic/models/{}:{verb}", encoded(model)), "")
        }
        UpstreamEndpoint::Chat => (format!("/v1beta1/{within}/endpoints/openapi/chat/completions"), ""),
        _ => return no_endpoint(provider, call),
    };
    joined(provider, provider.base().unwrap_or(&usual), &path, query)
}

fn sse(verb: &str) -> &'static str {
    if verb == "streamGenerateContent" { "alt=sse" } else { "" }
}

fn base(provider: &Provider) -> Result<&str, UrlError> {
    provider.base().ok_or_else(|| missing(provider, "api_base"))
}

fn missing(provider: &Provider, field: &'static str) -> UrlError {
    UrlError::Missing { provider: provider.name.clone(), provider_type: provider.provider_type.name(), field }
}

fn no_endpoint<T>(provider: &Provider, call: &UpstreamCall<'_>) -> Result<T, UrlError> {
    let endpoint = match call.endpoint {
        UpstreamEndpoint::Chat => "chat completions",
        UpstreamEndpoint::Completions => "completions",
        UpstreamEndpoint::Embeddings => "embeddings",
        UpstreamEndpoint::Moderations => "moderations",
        UpstreamEndpoint::Responses => "responses",
        UpstreamEndpoint::AnthropicMessages => "Anthropic messages",
        UpstreamEndpoint::Gemini(_) => "Gemini models",
        UpstreamEndpoint::Converse => "Converse",
        UpstreamEndpoint::Path(_) => "other paths",
    };
    Err(UrlError::NoEndpoint { provider_type: provider.provider_type.name(), endpoint })
}

/// Checks a part of a host name, so that it cannot lead to another host.
fn host_label<'a>(provider: &Provider, field: &'static str, label: &'a str) -> Result<&'a str, UrlError> {
    let is_label = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if label.bytes().all(is_label) { Ok(label) } else { Err(missing(provider, field)) }
}

fn checked_path(path: &str) -> Result<&str, UrlError> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"?#\\".contains(&byte);
    let decoded = path.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/");
    let climbs = decoded.split('/').any(|part| part == ".." || part == ".");
    let valid = path.starts_with('/') && path.len() <= PATH_BYTES_MAX && path.bytes().all(is_plain) && !climbs;
    if valid { Ok(path) } else { Err(UrlError::Path) }
}

/// Checks a base URL, and appends the path and the query.
fn joined(provider: &Provider, base: &str, path: &str, query: &str) -> Result<String, UrlError> {
    let bad = |problem| Err(UrlError::Base { provider: provider.name.clone(), problem });
    let (address, own_query) = base.split_once('?').unwrap_or((base, ""));
    let Some((scheme, rest)) = address.split_once("://") else { return bad("it has no scheme") };
    if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
        return bad("its scheme is neither `https` nor `http`");
    }
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.is_empty() {
        return bad("it has no host");
    }
    if authority.contains('@') {
        return bad("it has a user name or password");
    }
    if base.len() > BASE_BYTES_MAX {
        return bad("it is too long");
    }
    if !base.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\' && byte != b'#') {
        return bad("it has a blank, a fragment or another invalid character");
    }
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(UrlError::Path);
    }
    let mut url = format!("{}{path}", address.trim_end_matches('/'));
    let mut separator = if path.contains('?') { '&' } else { '?' };
    for part in [own_query, query].into_iter().filter(|part| !part.is_empty()) {
        url.push(separator);
        url.push_str(part);
        separator = '&';
    }
    Ok(url)
}

/// Percent-encodes a path segment or a query value.
fn encoded(text: &str) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("a String takes all that is written");
        }
    }
    // A segment of only dots would change the directory.
    if out.bytes().all(|byte| byte == b'.') { out.replace('.', "%2E") } else { out }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::UpstreamEndpoint as E;
    use super::*;
    use crate::provider::ProviderScope;

    fn url(provider_type: &str, metadata: Value, endpoint: E<'_>, model: &str) -> Result<String, UrlError> {
        let provider_type = ProviderType::parse(provider_type).expect("a type");
        let metadata = metadata.as_object().expect("an object").clone();
        let (provider, _) = Provider::parse("1", "n", provider_type, ProviderScope::Organization, &metadata);
        endpoint_url(&provider, &UpstreamCall { endpoint, model, stream: false })
    }

    #[test]
    fn urls_are_those_of_the_contract() {
        let none = || json!({});
        for (name, metadata, endpoint, model, expected) in [
            ("openai", none(), E::Chat, "m", "https://api.openai.com/v1/chat/completions"),
            ("openai", none(), E::Responses, "m", "https://api.openai.com/v1/responses"),
            ("openai", none(), E::Embeddings, "m", "https://api.openai.com/v1/embeddings"),
            ("openai", none(), E::Completions, "m", "https://api.openai.com/v1/completions"),
            ("openai", none(), E::Path("/images/generations"), "m", "https://api.openai.com/v1/images/generations"),
            ("openai", json!({"api_base": "http://gpu:8000/v1/"}), E::Chat, "m", "http://gpu:8000/v1/chat/completions"),
            ("openai", json!({"api_base": "http://g/a", "endpoint_path": "gen"}), E::Chat, "m", "http://g/a/gen"),
            ("openai", json!({"api_base": "http://g/a", "endpoint_path": ""}), E::Chat, "m", "http://g/a"),
            ("openai", json!({"api_base": "http://g/v1?key=1"}), E::Chat, "m", "http://g/v1/chat/completions?key=1"),
            ("mistral", none(), E::Chat, "m", "https://api.mistral.ai/v1/chat/completions"),
            ("mistral", json!({"endpoint_path": "x"}), E::Chat, "m", "https://api.mistral.ai/v1/chat/completions"),
            ("perplexity", none(), E::Chat, "m", "https://api.perplexity.ai/chat/completions"),
            ("anthropic", none(), E::AnthropicMessages, "m", "https://api.anthropic.com/v1/messages"),
            ("anthropic", json!({"api_base": "https://p/v1"}), E::AnthropicMessages, "m", "https://p/v1/messages"),
            (
                "google",
                none(),
                E::Gemini("generateContent"),
                "gemini-2.5-pro",
                "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent",
            ),
            (
                "google",
                json!({"api_base": "https://g/v1beta"}),
                E::Gemini("streamGenerateContent"),
                "models/g",
                "https://g/v1beta/models/g:streamGenerateContent?alt=sse",
            ),
        ] {
            assert_eq!(url(name, metadata.clone(), endpoint, model).as_deref(), Ok(expected), "{name} {metadata}");
        }
    }

    #[test]
    fn clouds_have_urls_of_their_own() {
        for (name, metadata, endpoint, model, expected) in [
            (
                "azure",
                json!({"api_base": "https://r.openai.azure.com/"}),
                E::Chat,
                "gpt-3.5-turbo",
                "https://r.openai.azure.com/openai/deployments/gpt-35-turbo/chat/completions?api-version=2023-07-01-preview",
            ),
            (
                "azure",
                json!({"api_base": "https://r", "deployment": "my d", "api_version": "2024-10-21"}),
                E::Embeddings,
                "m",
                "https://r/openai/deployments/my%20d/embeddings?api-version=2024-10-21",
            ),
            (
                "azure",
                json!({"api_base": "https://r/x", "no_named_deployment": true, "api_version": "v"}),
                E::Chat,
                "m",
                "https://r/x/chat/completions?api-version=v",
            ),
            (
                "databricks",
                json!({"api_base": "https://d"}),
                E::Chat,
                "m/1",
                "https://d/serving-endpoints/m%2F1/invocations",
            ),
            (
                "bedrock",
                json!({"region": "eu-west-1"}),
                E::Converse,
                "a.b:0",
                "https://bedrock-runtime.eu-west-1.amazonaws.com/model/a.b%3A0/converse",
            ),
            (
                "vertex",
                json!({"project": "p"}),
                E::AnthropicMessages,
                "publishers/anthropic/models/c@1",
                "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models/c%401:rawPredict",
            ),
            (
                "vertex",
                json!({"project": "p", "location": "global"}),
                E::Gemini("countTokens"),
                "g",
                "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google/models/g:countTokens",
            ),
        ] {
            assert_eq!(url(name, metadata.clone(), endpoint, model).as_deref(), Ok(expected), "{name} {metadata}");
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_named_without_the_url() {
        for (name, metadata, endpoint, expected) in [
            ("azure", json!({}), E::Chat, "metadata.api_base of `n` is missing"),
            ("databricks", json!({}), E::Chat, "metadata.api_base of `n` is missing"),
            ("vertex", json!({}), E::Gemini("x"), "metadata.project of `n` is missing"),
            ("bedrock", json!({"region": "evil.example/"}), E::Converse, "metadata.region"),
            ("anthropic", json!({}), E::Chat, "no endpoint for chat completions"),
            ("openai", json!({}), E::AnthropicMessages, "no endpoint for Anthropic messages"),
            ("replicate", json!({}), E::Chat, "stored"),
            ("openai", json!({"api_base": "gpu:8000"}), E::Chat, "it has no scheme"),
            ("openai", json!({"api_base": "file:///etc"}), E::Chat, "its scheme"),
            ("openai", json!({"api_base": "http://"}), E::Chat, "it has no"),
            ("openai", json!({"api_base": "http://u:pw@h/"}), E::Chat, "user name"),
            ("openai", json!({"api_base": "http://h/ x"}), E::Chat, "a blank"),
            ("openai", json!({"api_base": "http://h/#x"}), E::Chat, "a fragment"),
            ("openai", json!({}), E::Path("images"), "path"),
            ("openai", json!({}), E::Path("/a/../b"), "path"),
            ("openai", json!({}), E::Path("/a/%2E%2e/b"), "path"),
            ("openai", json!({}), E::Path("/a/..%2f..%2Fb"), "path"),
            ("openai", json!({}), E::Path("/a/..%5Cb"), "path"),
            ("openai", json!({}), E::Path("/a?b"), "path"),
        ] {
            let error = url(name, metadata.clone(), endpoint, "m").expect_err(name).to_string();
            assert!(error.contains(expected), "{name} {metadata}: {error}");
            assert!(!error.contains("pw"), "{error}");
        }
    }

    #[test]
    fn a_model_name_cannot_leave_its_segment() {
        let found = url("google", json!({"api_base": "https://g"}), E::Gemini("x"), "../../a?b#c").expect("a URL");
        assert_eq!(found, "https://g/models/..%2F..%2Fa%3Fb%23c:x");
        let found = url("databricks", json!({"api_base": "https://d"}), E::Chat, "..").expect("a URL");
        assert_eq!(found, "https://d/serving-endpoints/%2E%2E/invocations");
    }
}
