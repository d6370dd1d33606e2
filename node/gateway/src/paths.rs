//! Pure mapping of gateway paths to endpoints, below any of the prefixes (1.1).

use crate::endpoint::{ClientEndpoint, GeminiVerb};

/// Prefixes of the gateway's paths. Clients may use any of them as the base URL.
pub const PREFIXES: [&str; 2] = ["/v1/proxy", "/gateway"];
/// Paths of model APIs without a prefix, so that SDKs need only the address of the server.
pub const ROOT_PATHS: [&str; 9] = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/moderations",
    "/v1/responses",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/models",
    "/v1beta/models",
];
/// Start of a path, after the prefix, that names the organization.
const ORGANIZATION: &str = "btorg/";

/// Target of a request to the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayPath {
    Greeting,
    Call(CallPath),
    /// Chat or text completion, depending on the model.
    Auto,
    /// List of the models that the caller can use, or one of them.
    Models {
        form: ModelsForm,
        id: Option<String>,
    },
    Realtime,
    Unknown,
}

/// Endpoint of a call, and the model in its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallPath {
    pub endpoint: ClientEndpoint,
    pub model: Option<String>,
}

/// Form of a list of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelsForm {
    OpenAi,
    Anthropic,
    Gemini,
}

/// Parsed path of the gateway, with the organization in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedPath {
    pub organization: Option<String>,
    pub path: GatewayPath,
}

/// Returns whether a path belongs to the gateway.
pub fn is_gateway_path(path: &str) -> bool {
    let is_below =
        |prefix: &str| path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    PREFIXES.into_iter().chain(ROOT_PATHS).any(is_below)
}

/// Parses a percent-decoded path. `is_anthropic` says whether the client sends the headers of Anthropic's API.
pub fn parse(path: &str, is_anthropic: bool) -> ParsedPath {
    let below = PREFIXES.iter().find_map(|prefix| path.strip_prefix(prefix));
    let mut rest = below.unwrap_or(path).trim_start_matches('/');
    let mut organization = None;
    if below.is_some()
        && let Some((name, after)) =
            rest.strip_prefix(ORGANIZATION).map(|rest| rest.split_once('/').unwrap_or((rest, "")))
        && !name.is_empty()
    {
        organization = Some(name.to_owned());
        rest = after;
    }
    ParsedPath { organization, path: below_prefix(rest.trim_end_matches('/'), is_anthropic) }
}

fn below_prefix(path: &str, is_anthropic: bool) -> GatewayPath {
    let path = path.strip_prefix("v1/").unwrap_or(if path == "v1" { "" } else { path });
    let call = |endpoint| GatewayPath::Call(CallPath { endpoint, model: None });
    let form = if is_anthropic { ModelsForm::Anthropic } else { ModelsForm::OpenAi };
    match path {
        "" => GatewayPath::Greeting,
        "chat/completions" => call(ClientEndpoint::Chat),
        "completions" => call(ClientEndpoint::Completions),
        "embeddings" => call(ClientEndpoint::Embeddings),
        "moderations" => call(ClientEndpoint::Moderations),
        "responses" => call(ClientEndpoint::Responses),
        "messages" | "anthropic/messages" | "anthropic/v1/messages" => call(ClientEndpoint::Messages),
        "messages/count_tokens" | "anthropic/v1/messages/count_tokens" => call(ClientEndpoint::CountTokens),
        "auto" => GatewayPath::Auto,
        "realtime" => GatewayPath::Realtime,
        "models" => GatewayPath::Models { form, id: None },
        "v1beta/models" | "google/models" => GatewayPath::Models { form: ModelsForm::Gemini, id: None },
        _ => deeper(path, form),
    }
}

fn deeper(path: &str, form: ModelsForm) -> GatewayPath {
    if let Some(rest) = path.strip_prefix("v1beta/models/").or_else(|| path.strip_prefix("google/models/")) {
        return gemini(rest);
    }
    if let Some((publisher, rest)) =
        path.strip_prefix("google/publishers/").and_then(|rest| rest.split_once("/models/"))
        && !publisher.is_empty()
    {
        return gemini(rest);
    }
    match path.strip_prefix("models/") {
        // Clients of Gemini also call models below `/v1`.
        Some(rest) if rest.rsplit_once(':').is_some_and(|(_, verb)| GeminiVerb::parse(verb).is_some()) => gemini(rest),
        Some(id) => GatewayPath::Models { form, id: Some(id.to_owned()) },
        None => {
            let endpoint = ClientEndpoint::Path(format!("/{path}"));
            GatewayPath::Call(CallPath { endpoint, model: None })
        }
    }
}

/// Parses `{model}:{verb}`, or only a model.
fn gemini(rest: &str) -> GatewayPath {
    let Some((model, verb)) = rest.rsplit_once(':').filter(|(model, _)| !model.is_empty()) else {
        return GatewayPath::Models { form: ModelsForm::Gemini, id: Some(rest.to_owned()) };
    };
    match GeminiVerb::parse(verb) {
        Some(verb) => {
            GatewayPath::Call(CallPath { endpoint: ClientEndpoint::Gemini(verb), model: Some(model.to_owned()) })
        }
        None => GatewayPath::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> GatewayPath {
        parse(path, false).path
    }

    #[test]
    fn every_prefix_serves_every_endpoint() {
        for (path, endpoint) in [
            ("chat/completions", ClientEndpoint::Chat),
            ("completions", ClientEndpoint::Completions),
            ("embeddings", ClientEndpoint::Embeddings),
            ("moderations", ClientEndpoint::Moderations),
            ("responses", ClientEndpoint::Responses),
            ("messages", ClientEndpoint::Messages),
        ] {
            for prefix in ["/v1/proxy/", "/v1/proxy/v1/", "/gateway/", "/gateway/v1/", "/v1/"] {
                let full = format!("{prefix}{path}");
                let call = CallPath { endpoint: endpoint.clone(), model: None };
                assert_eq!(read(&full), GatewayPath::Call(call), "{full}");
                assert!(is_gateway_path(&full), "{full}");
            }
        }
        for path in ["/v1/proxy/anthropic/messages", "/v1/proxy/anthropic/v1/messages", "/gateway/v1/messages"] {
            let call = CallPath { endpoint: ClientEndpoint::Messages, model: None };
            assert_eq!(read(path), GatewayPath::Call(call), "{path}");
        }
        assert!(!is_gateway_path("/v1/project") && !is_gateway_path("/v1/modelsx") && !is_gateway_path("/v1/proxyx"));
    }

    #[test]
    fn models_of_gemini_are_in_the_path() {
        let call = |model: &str, verb| {
            GatewayPath::Call(CallPath { endpoint: ClientEndpoint::Gemini(verb), model: Some(model.to_owned()) })
        };
        for path in [
            "/v1beta/models/gemini-2.5-pro:generateContent",
            "/v1/models/gemini-2.5-pro:generateContent",
            "/v1/proxy/google/models/gemini-2.5-pro:generateContent",
            "/gateway/v1beta/models/gemini-2.5-pro:generateContent",
            "/v1/proxy/google/publishers/google/models/gemini-2.5-pro:generateContent",
        ] {
            assert_eq!(read(path), call("gemini-2.5-pro", GeminiVerb::Generate), "{path}");
        }
        assert_eq!(read("/v1beta/models/a:b:streamGenerateContent"), call("a:b", GeminiVerb::StreamGenerate));
        assert_eq!(read("/v1beta/models/m:unknownVerb"), GatewayPath::Unknown);
    }

    #[test]
    fn a_path_may_name_its_organization() {
        let parsed = parse("/v1/proxy/btorg/acme inc/chat/completions", false);
        assert_eq!(parsed.organization.as_deref(), Some("acme inc"));
        assert_eq!(parsed.path, GatewayPath::Call(CallPath { endpoint: ClientEndpoint::Chat, model: None }));
        assert_eq!(parse("/v1/proxy/btorg/acme", false).path, GatewayPath::Greeting);
    }

    #[test]
    fn lists_have_the_form_of_their_clients() {
        assert_eq!(read("/v1/models"), GatewayPath::Models { form: ModelsForm::OpenAi, id: None });
        assert_eq!(parse("/v1/models", true).path, GatewayPath::Models { form: ModelsForm::Anthropic, id: None });
        assert_eq!(read("/v1beta/models"), GatewayPath::Models { form: ModelsForm::Gemini, id: None });
        let one = GatewayPath::Models { form: ModelsForm::OpenAi, id: Some("org/m".into()) };
        assert_eq!(read("/v1/models/org/m"), one);
        for path in ["/v1/proxy", "/v1/proxy/", "/gateway", "/v1/proxy/v1"] {
            assert_eq!(read(path), GatewayPath::Greeting, "{path}");
        }
        let images = CallPath { endpoint: ClientEndpoint::Path("/images/generations".into()), model: None };
        assert_eq!(read("/v1/proxy/images/generations"), GatewayPath::Call(images));
    }
}
