//! Properties of a candidate's server: its wire format, and the contents that it accepts (1.12).

use assay_node_dialects::{Dialect, ReasoningHistory, WriteOptions};
use assay_node_dialects_chat::is_reasoning_model_name;
use assay_node_models::catalog::WireFormat;
use assay_node_models::provider::ProviderType;
use assay_node_models::resolution::Candidate;
use serde_json::Value;

use crate::endpoint::ClientEndpoint;
use crate::translation::UpstreamFormat;

/// Name prefixes of OpenAI models that are served only, or better, through Responses.
const RESPONSES_MODELS: [&str; 3] = ["o1-pro", "o3-pro", "gpt-5-pro"];
/// First minor version of GPT-5 that is served better through Responses.
const RESPONSES_GPT_5_MINOR_MIN: u32 = 3;

/// Returns the wire format of conversations with a candidate.
pub(crate) fn conversation_format(candidate: &Candidate, endpoint: &ClientEndpoint) -> UpstreamFormat {
    let dialect = match candidate.provider.provider_type {
        ProviderType::Anthropic => Dialect::Anthropic,
        ProviderType::Google => Dialect::Gemini,
        ProviderType::Bedrock if candidate.format() == WireFormat::Anthropic => {
            return UpstreamFormat::BedrockAnthropic;
        }
        // Converse serves all other chat models of Bedrock.
        ProviderType::Bedrock => return UpstreamFormat::Converse,
        ProviderType::Vertex => match vertex_format(candidate) {
            WireFormat::Anthropic => return UpstreamFormat::VertexAnthropic,
            WireFormat::Google => Dialect::Gemini,
            _ => Dialect::Chat,
        },
        _ if takes_responses(candidate, endpoint) => Dialect::Responses,
        _ => Dialect::Chat,
    };
    dialect.into()
}

/// Returns the format of a Vertex model. Without a description of the model, its publisher decides.
fn vertex_format(candidate: &Candidate) -> WireFormat {
    if candidate.spec.is_some() {
        return candidate.format();
    }
    match publisher_and_model(candidate.upstream_model()) {
        (Some("anthropic"), _) => WireFormat::Anthropic,
        (Some("google"), _) => WireFormat::Google,
        (None, model) if model.starts_with("claude-") => WireFormat::Anthropic,
        (None, model) if model.starts_with("gemini-") => WireFormat::Google,
        _ => WireFormat::OpenAi,
    }
}

/// Splits a Vertex model name, such as `publishers/meta/models/llama` or `meta/llama`.
fn publisher_and_model(name: &str) -> (Option<&str>, &str) {
    let split = match name.strip_prefix("publishers/") {
        Some(rest) => rest.split_once("/models/"),
        None => name.split_once('/'),
    };
    split.map_or((None, name), |(publisher, model)| (Some(publisher), model))
}

/// Returns the model name for a body. Vertex's endpoint for OpenAI's format requires another spelling.
pub(crate) fn model_in_body(candidate: &Candidate, server: UpstreamFormat) -> String {
    let model = candidate.upstream_model();
    if candidate.provider.provider_type == ProviderType::Vertex
        && server == UpstreamFormat::Client(Dialect::Chat)
        && let (Some(publisher), model) = publisher_and_model(model)
    {
        return format!("{publisher}/{model}");
    }
    model.to_owned()
}

/// Returns whether a call goes to the server's Responses endpoint.
///
/// Other OpenAI-compatible servers have that endpoint if `endpoint_types` of the model lists it.
fn takes_responses(candidate: &Candidate, endpoint: &ClientEndpoint) -> bool {
    let provider = &candidate.provider;
    if let Some(Value::Array(types)) = candidate.spec.as_ref().and_then(|spec| spec.members.get("endpoint_types")) {
        let has = |name: &str| types.iter().any(|one| one == name);
        return has("responses") && (*endpoint == ClientEndpoint::Responses || !has("chat"));
    }
    let is_openai = provider.provider_type == ProviderType::OpenAi && provider.metadata.api_base.is_none();
    is_openai && (*endpoint == ClientEndpoint::Responses || prefers_responses(candidate.upstream_model()))
}

fn prefers_responses(model: &str) -> bool {
    let minor = model.strip_prefix("gpt-5.").map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    let minor = minor.flatten().and_then(|digits| digits.parse::<u32>().ok());
    RESPONSES_MODELS.iter().any(|begin| model.starts_with(begin))
        || model.starts_with("gpt-5") && model.contains("-codex")
        || minor.is_some_and(|minor| minor >= RESPONSES_GPT_5_MINOR_MIN)
}

/// Returns the options for writing a request to a candidate.
pub(crate) fn write_options(candidate: &Candidate, server: UpstreamFormat) -> WriteOptions {
    use ProviderType as P;
    let (provider, model) = (&candidate.provider, candidate.upstream_model());
    let provider_type = provider.provider_type;
    let spec = candidate.spec.as_deref();
    // Model names of Bedrock begin with a region and the publisher.
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.split_once("anthropic.").map_or(name, |(_, name)| name);
    let dialect = server.dialect();
    let is_openai_server = matches!(provider_type, P::OpenAi | P::Azure | P::AzureAiGateway);
    let is_own_server =
        provider.metadata.api_base.is_some() && provider_type == P::OpenAi || provider_type == P::Ollama;
    WriteOptions {
        model_max_output_tokens: spec.and_then(|spec| spec.max_output_tokens),
        schema_as_tool: !matches!(dialect, Some(Dialect::Responses | Dialect::Gemini))
            && spec.is_some_and(|spec| spec.json_schema_as_tool),
        is_reasoning_model: is_openai_server && is_reasoning_model_name(name)
            || spec.is_some_and(|spec| spec.o1_like && spec.format == WireFormat::OpenAi),
        takes_stream_options: !matches!(provider_type, P::Mistral | P::Fireworks | P::Databricks),
        reasoning_history: match provider_type {
            _ if is_own_server => ReasoningHistory::Texts,
            P::OpenAi | P::Azure => ReasoningHistory::Remove,
            _ => ReasoningHistory::Keep,
        },
        refuses_parallel_tool_calls: matches!(provider_type, P::Mistral | P::Databricks | P::Azure | P::Cohere),
        refuses_cache_control: matches!(
            provider_type,
            P::OpenAi | P::Azure | P::Mistral | P::Groq | P::Fireworks | P::Together | P::XAi | P::Cerebras
        ) && !is_own_server,
        developer_as_system: is_own_server || !matches!(provider_type, P::OpenAi | P::Azure | P::OpenRouter),
        needs_call_signatures: name.starts_with("gemini-3"),
        omits_call_ids: dialect == Some(Dialect::Gemini) && provider_type == P::Vertex,
        takes_thinking_level: name.starts_with("gemini-3"),
        takes_json_schema: takes_json_schema(name),
        schema_in_output_format: false,
        adaptive_thinking: has_adaptive_thinking(name),
    }
}

/// Returns whether a Gemini model accepts `responseJsonSchema`, as all do since 2.5.
fn takes_json_schema(name: &str) -> bool {
    let version = name.strip_prefix("gemini-").map(|rest| rest.split('-').next().unwrap_or_default());
    version.and_then(|version| version.parse::<f64>().ok()).is_some_and(|version| version >= 2.5)
}

/// Returns whether a Claude model chooses its reasoning budget itself.
fn has_adaptive_thinking(name: &str) -> bool {
    let rest = name.strip_prefix("claude-opus-").unwrap_or_default();
    let mut numbers = rest.split(['-', '@']).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if minor < 100 => (major, minor) >= (4, 7),
        (Some(Ok(major)), _) => major > 4 && major < 100,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_models_of_openai_are_called_over_responses() {
        for model in
            ["o1-pro", "o3-pro-2025", "gpt-5-pro", "gpt-5-codex", "gpt-5.1-codex-max", "gpt-5.4", "gpt-5.10-mini"]
        {
            assert!(prefers_responses(model), "{model}");
        }
        for model in ["o1", "gpt-5", "gpt-5.1", "gpt-5-mini", "gpt-4o", "my-gpt-5.4"] {
            assert!(!prefers_responses(model), "{model}");
        }
    }

    #[test]
    fn names_of_vertex_have_a_publisher() {
        assert_eq!(publisher_and_model("publishers/meta/models/llama-4"), (Some("meta"), "llama-4"));
        assert_eq!(publisher_and_model("meta/llama-4"), (Some("meta"), "llama-4"));
        assert_eq!(publisher_and_model("gemini-2.5-pro"), (None, "gemini-2.5-pro"));
    }

    #[test]
    fn versions_of_models_are_read_from_their_names() {
        for model in ["gemini-2.5-pro", "gemini-3-pro", "gemini-3.1-flash"] {
            assert!(takes_json_schema(model), "{model}");
        }
        assert!(!takes_json_schema("gemini-2.0-flash") && !takes_json_schema("gemma"));
        for model in ["claude-opus-4-7", "claude-opus-4-8-20261001", "claude-opus-5"] {
            assert!(has_adaptive_thinking(model), "{model}");
        }
        for model in ["claude-opus-4-5", "claude-opus-4-20250514", "claude-sonnet-4-5", "claude-3-opus"] {
            assert!(!has_adaptive_thinking(model), "{model}");
        }
    }
}
