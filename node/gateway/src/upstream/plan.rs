//! Plan of one attempt: URL, body and reading of the response, for one candidate. Pure.

use assay_node_dialects::Dialect;
use assay_node_dialects_chat::completions::CompletionRequest;
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

/// How the response of a candidate is read and written.
#[derive(Debug)]
pub(crate) enum ReplyForm {
    /// The answer of a conversation, in the wire format of the client already.
    Passed {
        dialect: Dialect,
        hides_usage: bool,
    },
    /// The answer of a conversation in another format, or in another mode.
    Translated(Box<CallTranslation>),
    /// Text completions, which pass.
    Completions {
        hides_usage: bool,
    },
    Embeddings(EmbeddingForm),
    Moderations,
    /// Bytes that nobody reads.
    Opaque,
}

/// How a response with embeddings becomes the client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EmbeddingForm {
    /// OpenAI's format at both ends.
    Passed,
    /// Gemini's format at both ends.
    PassedGemini,
    GeminiToOpenAi,
    OpenAiToGemini {
        is_batch: bool,
    },
}

/// What is sent to a candidate.
#[derive(Debug)]
pub(crate) struct AttemptPlan {
    pub url: String,
    pub body: Bytes,
    pub content_type: String,
    /// Wire format of the server, also of its errors.
    pub server: UpstreamFormat,
    /// Whether the server is asked for a stream.
    pub server_streams: bool,
    pub form: ReplyForm,
    pub dropped: Vec<String>,
}

/// What an attempt needs next.
#[derive(Debug)]
pub(crate) enum PlanStep {
    Ready(AttemptPlan),
    /// Media are fetched and signatures restored before the request is written.
    Conversation(Box<UnwrittenConversation>),
}

/// Begins the plan of an attempt. The error says that the candidate cannot serve such a request.
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

/// Returns the upper bound of the tokens of an answer, in any wire format.
pub(crate) fn output_bound(body: &Value) -> Option<u64> {
    let members = ["max_completion_tokens", "max_tokens", "max_output_tokens"];
    let direct = members.iter().filter_map(|name| body.get(*name)?.as_u64()).max();
    let config = body.get("generationConfig").or_else(|| body.get("generation_config"));
    let of_gemini = || {
        let config = config?;
        config.get("maxOutputTokens").or_else(|| config.get("max_output_tokens"))?.as_u64()
    };
    direct.or_else(of_gemini)
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

/// Returns a body of embeddings whose model is the candidate's, also in the entries of a batch.
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

/// Returns the error of a server that does not count tokens in the client's wire format.
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

/// Returns a body for the server: with the candidate's model, without members that only the gateway reads.
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
        CallBody::Opaque { bytes, content_type } => (bytes.clone(), content_type.clone()),
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
