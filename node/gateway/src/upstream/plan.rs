//! Pure planning of attempts: the URL, the body, and the form of the response for one candidate.

use assay_node_dialects::Dialect;
use assay_node_dialects_chat::completions::{CompletionRequest, PromptSize};
use assay_node_dialects_chat::embeddings::EmbeddingRequest;
use assay_node_models::provider::{ProviderType, UpstreamCall, UpstreamEndpoint, endpoint_url};
use assay_node_models::resolution::Candidate;
use bytes::Bytes;
use serde_json::{Value, json};

use super::conversation::{self, UnwrittenConversation};
use super::embeddings;
use super::server_facts::write_options;
use crate::call::{CallBody, ModelCall};
use crate::endpoint::{ClientEndpoint, GeminiVerb};
use crate::error::GatewayError;
use crate::translation::{CallTranslation, UpstreamFormat};

pub(super) const JSON: &str = "application/json";

/// Form in which the response of a candidate is read and written.
#[derive(Debug)]
pub(crate) enum ReplyForm {
    /// Response of a conversation in the wire format of the client.
    Passed {
        dialect: Dialect,
        hides_usage: bool,
    },
    /// Response of a conversation in another format or mode.
    Translated(Box<CallTranslation>),
    /// Text completions, which pass untranslated.
    Completions {
        hides_usage: bool,
    },
    Embeddings(EmbeddingForm),
    Moderations,
    /// Bytes that pass unread.
    Opaque,
}

/// Conversion of an embeddings response for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EmbeddingForm {
    /// Both sides use OpenAI's format.
    Passed,
    /// Both sides use Gemini's format.
    PassedGemini,
    GeminiToOpenAi,
    OpenAiToGemini {
        is_batch: bool,
    },
}

/// Request for a candidate, and the form of its response.
#[derive(Debug)]
pub(crate) struct AttemptPlan {
    pub url: String,
    pub body: Bytes,
    pub content_type: String,
    /// Wire format of the server, including its errors.
    pub server: UpstreamFormat,
    /// Whether the server is asked for a stream.
    pub server_streams: bool,
    pub form: ReplyForm,
    pub dropped: Vec<String>,
}

/// Next step of a plan.
#[derive(Debug)]
pub(crate) enum PlanStep {
    Ready(AttemptPlan),
    /// Conversation whose media must be fetched and signatures restored before it is written.
    Conversation(Box<UnwrittenConversation>),
}

/// Begins the plan of an attempt. The error says why the candidate cannot serve the request.
pub(crate) fn plan(call: &ModelCall, candidate: &Candidate) -> Result<PlanStep, GatewayError> {
    if call.endpoint.is_conversation() {
        return conversation::begin(call, candidate);
    }
    let plan = match &call.endpoint {
        ClientEndpoint::Completions => completions(call, candidate),
        ClientEndpoint::Embeddings | ClientEndpoint::Gemini(GeminiVerb::Embed | GeminiVerb::BatchEmbed) => {
            embedding(call, candidate)
        }
        ClientEndpoint::Gemini(_) => gemini_count(call, candidate),
        ClientEndpoint::CountTokens => anthropic_count(call, candidate),
        ClientEndpoint::Moderations => opaque(call, candidate, UpstreamEndpoint::Moderations),
        ClientEndpoint::Path(path) => opaque(call, candidate, UpstreamEndpoint::Path(path)),
        _ => Err(GatewayError::invalid("this endpoint cannot be called")),
    };
    plan.map(PlanStep::Ready)
}

pub(super) fn url(candidate: &Candidate, endpoint: UpstreamEndpoint<'_>, stream: bool) -> Result<String, GatewayError> {
    let call = UpstreamCall { endpoint, model: candidate.upstream_model(), stream };
    endpoint_url(&candidate.provider, &call)
        .map_err(|error| GatewayError::new(400, "provider_not_usable", error.to_string()))
}

pub(super) fn bytes_of(body: &Value) -> Bytes {
    Bytes::from(body.to_string())
}

/// Returns the upper bound of the tokens of a response, in any wire format.
///
/// A body may have bounds of several formats, of which the server reads one. The largest one counts, so a small bound
/// that the server ignores hides no other one.
pub(crate) fn output_bound(body: &Value) -> Option<u64> {
    const NAMES: [&str; 3] = ["max_completion_tokens", "max_tokens", "max_output_tokens"];
    largest(body, &NAMES, &["maxOutputTokens", "max_output_tokens"])
}

/// Returns the upper bound of the number of answers to a request, in any wire format.
///
/// Like `output_bound`, it counts the largest number of a body. Text completions have as many answers to each prompt.
pub(crate) fn answer_bound(endpoint: &ClientEndpoint, body: &Value) -> u64 {
    let answers = largest(body, &["n", "best_of"], &["candidateCount", "candidate_count"]).unwrap_or(1).max(1);
    let prompts = match (endpoint, &body["prompt"]) {
        (ClientEndpoint::Completions, Value::Null) => 1,
        (ClientEndpoint::Completions, prompt) => PromptSize::of("prompt", prompt).map_or(1, |size| size.inputs as u64),
        _ => 1,
    };
    answers.saturating_mul(prompts)
}

/// Returns the largest number among members of a body and of its configuration in Gemini's format.
fn largest(body: &Value, names: &[&str], of_gemini: &[&str]) -> Option<u64> {
    let configs = ["generationConfig", "generation_config"].into_iter().filter_map(|name| body.get(name));
    let of_gemini = configs.flat_map(|config| of_gemini.iter().filter_map(|name| config.get(*name)));
    let number = |value: &Value| value.as_u64().or_else(|| Some(value.as_f64()?.ceil() as u64));
    names.iter().filter_map(|name| body.get(*name)).chain(of_gemini).filter_map(number).max()
}

fn completions(call: &ModelCall, candidate: &Candidate) -> Result<AttemptPlan, GatewayError> {
    let request = CompletionRequest::read(call.body.json())?;
    let options = write_options(candidate, Dialect::Chat.into());
    let body = request.body_for(candidate.upstream_model(), &options);
    Ok(AttemptPlan {
        url: url(candidate, UpstreamEndpoint::Completions, request.stream)?,
        body: bytes_of(&body),
        content_type: JSON.to_owned(),
        server: Dialect::Chat.into(),
        server_streams: request.stream,
        form: ReplyForm::Completions { hides_usage: !request.include_usage },
        dropped: Vec::new(),
    })
}

fn embedding(call: &ModelCall, candidate: &Candidate) -> Result<AttemptPlan, GatewayError> {
    let (model, body) = (candidate.upstream_model(), call.body.json());
    let is_gemini_server = candidate.provider.provider_type == ProviderType::Google;
    let (endpoint, body, form) = match (&call.endpoint, is_gemini_server) {
        (ClientEndpoint::Gemini(verb), true) => {
            (UpstreamEndpoint::Gemini(verb.name()), with_model_of_batch(body, model), EmbeddingForm::PassedGemini)
        }
        (ClientEndpoint::Gemini(verb), false) => {
            let form = EmbeddingForm::OpenAiToGemini { is_batch: *verb == GeminiVerb::BatchEmbed };
            (UpstreamEndpoint::Embeddings, embeddings::gemini_to_openai_request(model, body)?, form)
        }
        (_, true) => {
            let verb = UpstreamEndpoint::Gemini("batchEmbedContents");
            (verb, embeddings::openai_to_gemini(model, body)?, EmbeddingForm::GeminiToOpenAi)
        }
        (_, false) => {
            let request = EmbeddingRequest::read(body)?;
            (UpstreamEndpoint::Embeddings, request.body_for(model), EmbeddingForm::Passed)
        }
    };
    Ok(AttemptPlan {
        url: url(candidate, endpoint, false)?,
        body: bytes_of(&body),
        content_type: JSON.to_owned(),
        server: if is_gemini_server { Dialect::Gemini } else { Dialect::Chat }.into(),
        server_streams: false,
        form: ReplyForm::Embeddings(form),
        dropped: Vec::new(),
    })
}

/// Sets the candidate's model in an embeddings body, including the entries of a batch.
fn with_model_of_batch(body: &Value, model: &str) -> Value {
    let mut body = body.clone();
    let name = json!(format!("models/{}", model.trim_start_matches("models/")));
    for request in body.get_mut("requests").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(request) = request.as_object_mut() {
            request.insert("model".to_owned(), name.clone());
        }
    }
    if let Some(members) = body.as_object_mut().filter(|members| members.contains_key("model")) {
        members.insert("model".to_owned(), name);
    }
    body
}

fn gemini_count(call: &ModelCall, candidate: &Candidate) -> Result<AttemptPlan, GatewayError> {
    let provider_type = candidate.provider.provider_type;
    if !matches!(provider_type, ProviderType::Google | ProviderType::Vertex) {
        return Err(does_not_count("countTokens", "Google"));
    }
    let body = bytes_of(call.body.json());
    Ok(count(url(candidate, UpstreamEndpoint::Gemini("countTokens"), false)?, body, Dialect::Gemini))
}

fn anthropic_count(call: &ModelCall, candidate: &Candidate) -> Result<AttemptPlan, GatewayError> {
    if candidate.provider.provider_type != ProviderType::Anthropic {
        return Err(does_not_count("count_tokens", "Anthropic"));
    }
    let body = bytes_of(&with_model(call.body.json(), candidate.upstream_model()));
    Ok(count(url(candidate, UpstreamEndpoint::Path("/messages/count_tokens"), false)?, body, Dialect::Anthropic))
}

/// Returns the error for a server that does not count tokens in the client's wire format.
fn does_not_count(verb: &str, vendor: &str) -> GatewayError {
    let why = format!("`{verb}` is served for models of {vendor} only: this model's server does not count tokens so");
    GatewayError::new(400, "unsupported_parameter", why)
}

fn count(url: String, body: Bytes, dialect: Dialect) -> AttemptPlan {
    AttemptPlan {
        url,
        body,
        content_type: JSON.to_owned(),
        server: dialect.into(),
        server_streams: false,
        form: ReplyForm::Opaque,
        dropped: Vec::new(),
    }
}

/// Sets the candidate's model in a body, and removes members that only the gateway reads.
fn with_model(body: &Value, model: &str) -> Value {
    let mut body = body.clone();
    if let Some(members) = body.as_object_mut() {
        members.insert("model".to_owned(), json!(model));
        members.shift_remove("use_cache");
    }
    body
}

fn opaque(
    call: &ModelCall,
    candidate: &Candidate,
    endpoint: UpstreamEndpoint<'_>,
) -> Result<AttemptPlan, GatewayError> {
    let form = match endpoint {
        UpstreamEndpoint::Moderations => ReplyForm::Moderations,
        _ => ReplyForm::Opaque,
    };
    let (body, content_type) = match &call.body {
        CallBody::Opaque { bytes, content_type, .. } => (bytes.clone(), content_type.clone()),
        CallBody::Json { value, .. } => (bytes_of(&with_model(value, candidate.upstream_model())), JSON.to_owned()),
    };
    Ok(AttemptPlan {
        url: url(candidate, endpoint, false)?,
        body,
        content_type,
        server: Dialect::Chat.into(),
        server_streams: call.stream,
        form,
        dropped: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_bound_of_a_body_counts() {
        for (body, expected) in [
            (json!({"max_tokens": null}), None),
            (json!({"max_tokens": 9}), Some(9)),
            (json!({"max_tokens": 1, "max_completion_tokens": 99.5}), Some(100)),
            (json!({"max_tokens": 1, "generationConfig": {"maxOutputTokens": 50}}), Some(50)),
            (json!({"generationConfig": {}, "generation_config": {"max_output_tokens": 50}}), Some(50)),
        ] {
            assert_eq!(output_bound(&body), expected, "{body}");
        }
    }

    #[test]
    fn all_answers_of_a_request_count() {
        let gemini = ClientEndpoint::Gemini(GeminiVerb::Generate);
        for (endpoint, body, expected) in [
            (ClientEndpoint::Chat, json!({}), 1),
            (ClientEndpoint::Chat, json!({"n": 0}), 1),
            (ClientEndpoint::Chat, json!({"n": 3.0, "prompt": ["a", "b"]}), 3),
            (gemini.clone(), json!({"generationConfig": {"candidateCount": 4}}), 4),
            (gemini, json!({"n": 2, "generation_config": {"candidate_count": 5}}), 5),
            (ClientEndpoint::Completions, json!({"prompt": "a", "n": 2, "best_of": 6}), 6),
            (ClientEndpoint::Completions, json!({"prompt": ["a", "b", "c"], "n": 2}), 6),
            (ClientEndpoint::Completions, json!({"prompt": [1, 2, 3]}), 1),
            (ClientEndpoint::Completions, json!({"prompt": [[1, 2], [3]], "best_of": 2}), 4),
            (ClientEndpoint::Completions, json!({"prompt": {}, "n": 2}), 2),
            (ClientEndpoint::Completions, json!({"n": u64::MAX, "prompt": ["a", "b"]}), u64::MAX),
        ] {
            assert_eq!(answer_bound(&endpoint, &body), expected, "{endpoint:?} {body}");
        }
    }
}
