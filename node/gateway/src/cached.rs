//! Use of the response cache for calls (1.8): keys, entries, and replays.

use assay_node_dialects::form::{FinishReason, TokenUsage};
use assay_node_models::headers::{ForwardPolicy, GatewayHeaders};
use assay_node_models::resolution::Candidate;
use assay_node_response_cache::{
    CacheEndpoint, CacheKey, CacheKeyParts, CacheLead, CachePlan, CacheRequest, CacheScope, CacheStart,
    CacheableResponse, CachedResponse, ENTRY_BYTES_MAX, ResponseCache,
};
use assay_storage_model::OrgId;
use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};

use crate::call::ModelCall;
use crate::endpoint::{ClientEndpoint, GeminiVerb};
use crate::error::GatewayError;
use crate::outcome::{CallAnswer, CallOutcome, TakenRoute};
use crate::reply::{ModelReply, ReplyBody};
use crate::span::output;

/// Cache entry in the making, which is stored when the response is complete.
#[derive(Debug)]
pub(crate) struct CacheEntry {
    lead: CacheLead,
    bytes: BytesMut,
    is_too_large: bool,
}

/// Result of a cache lookup.
#[derive(Debug)]
pub(crate) enum CacheAnswer {
    /// The call does not use the cache.
    NotAsked,
    Hit(Box<CachedResponse>),
    /// The call goes upstream, and its response may be stored.
    Miss(Option<CacheEntry>),
}

/// Looks up the response to a call. Concurrent identical calls wait for the first one.
pub(crate) async fn ask(
    cache: Option<&ResponseCache>,
    (call, forward): (&ModelCall, &ForwardPolicy),
    candidates: &[Candidate],
) -> Result<CacheAnswer, GatewayError> {
    let headers = || call.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let request = CacheRequest::from_headers(headers()).map_err(|error| GatewayError::invalid(error.to_string()))?;
    let (Some(cache), Some(endpoint)) = (cache, endpoint_of(&call.endpoint)) else { return Ok(CacheAnswer::NotAsked) };
    let plan: CachePlan = request.plan(endpoint, call.body.json());
    if !plan.uses_cache() {
        return Ok(CacheAnswer::NotAsked);
    }
    let class = candidate_class(candidates);
    let forwarded = forward.answer_headers(headers());
    let headers: Vec<(&str, &str)> = forwarded.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let key = CacheKey::new(&CacheKeyParts {
        endpoint,
        model: &call.model,
        is_stream: call.stream,
        organization: OrgId(call.owner.organization),
        scope: CacheScope::Principal(call.owner.principal),
        project: call.owner.project,
        endpoint_name: call.endpoint_name.as_deref(),
        candidate_class: &class,
        headers: &headers,
        body: call.body.bytes(),
    });
    let key = key.map_err(|error| GatewayError::invalid(error.to_string()))?;
    // The future is boxed because it is large, and most calls do not use the cache.
    Ok(match Box::pin(cache.begin(&key, plan)).await {
        CacheStart::Hit(response) => CacheAnswer::Hit(Box::new(response)),
        CacheStart::Lead(lead) => {
            let entry = lead.ttl_s().map(|_| CacheEntry { lead, bytes: BytesMut::new(), is_too_large: false });
            CacheAnswer::Miss(entry)
        }
    })
}

fn endpoint_of(endpoint: &ClientEndpoint) -> Option<CacheEndpoint> {
    match endpoint {
        ClientEndpoint::Chat => Some(CacheEndpoint::Chat),
        ClientEndpoint::Completions => Some(CacheEndpoint::Completions),
        ClientEndpoint::Embeddings | ClientEndpoint::Gemini(GeminiVerb::Embed | GeminiVerb::BatchEmbed) => {
            Some(CacheEndpoint::Embeddings)
        }
        ClientEndpoint::Moderations => Some(CacheEndpoint::Moderations),
        ClientEndpoint::Responses => Some(CacheEndpoint::Responses),
        ClientEndpoint::Messages => Some(CacheEndpoint::Messages),
        ClientEndpoint::Gemini(GeminiVerb::Generate | GeminiVerb::StreamGenerate) => Some(CacheEndpoint::Generate),
        ClientEndpoint::CountTokens | ClientEndpoint::Gemini(GeminiVerb::CountTokens) | ClientEndpoint::Path(_) => None,
    }
}

/// Returns a text that identifies the possible servers, each once: its type, address, model, system prompt and headers.
fn candidate_class(candidates: &[Candidate]) -> String {
    let name = |candidate: &Candidate| {
        let provider = &candidate.provider;
        let prompt = provider.metadata.override_system_prompt.as_deref().unwrap_or_default();
        let base = provider.base().unwrap_or_default();
        let (kind, model) = (provider.provider_type.name(), candidate.upstream_model());
        format!("{kind}|{base}|{model}|{prompt}|{:?}", provider.metadata.additional_headers)
    };
    let mut names: Vec<String> = candidates.iter().map(name).collect();
    names.sort();
    names.dedup();
    names.join("\n")
}

impl CacheEntry {
    pub fn ttl_s(&self) -> Option<u64> {
        self.lead.ttl_s().map(u64::from)
    }

    /// Adds bytes that were sent to the client.
    pub fn add(&mut self, bytes: &[u8]) {
        self.is_too_large |= self.bytes.len() + bytes.len() > ENTRY_BYTES_MAX;
        if self.is_too_large {
            self.bytes = BytesMut::new();
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Stores the response, unless it is too large, failed, or was filtered.
    pub async fn store(self, call: (&ClientEndpoint, bool), content_type: String, outcome: CallOutcome) {
        if self.is_too_large
            || outcome.error.is_some()
            || !(200..300).contains(&outcome.status)
            || is_filtered(&outcome.answer)
        {
            return;
        }
        let (endpoint, is_stream) = call;
        let note = note_of(endpoint, &outcome);
        let response =
            CacheableResponse { status: outcome.status, content_type, is_stream, body: self.bytes.freeze(), note };
        self.lead.store(response).await;
    }
}

/// Returns whether a content filter ended the response.
fn is_filtered(answer: &CallAnswer) -> bool {
    match answer {
        CallAnswer::Conversation(response) => {
            response.choices.iter().any(|choice| choice.finish == Some(FinishReason::ContentFilter))
        }
        CallAnswer::Choices(choices) => choices.iter().any(|choice| choice["finish_reason"] == "content_filter"),
        _ => false,
    }
}

/// Returns the data of an entry besides its bytes: its route, tokens and logged output.
fn note_of(endpoint: &ClientEndpoint, outcome: &CallOutcome) -> Value {
    let mut note = json!({ "output": output(endpoint, &outcome.answer) });
    if let Some(route) = &outcome.route {
        note["route"] = json!({"type": route.provider_type, "id": route.secret_id, "name": route.secret_name,
            "model": route.model});
    }
    if let Some(usage) = &outcome.usage {
        note["usage"] = json!({"input": usage.input, "output": usage.output, "cached": usage.cached_input,
            "reasoning": usage.reasoning});
    }
    note
}

/// Fills in the outcome of a cache hit, which costs nothing.
pub(crate) fn outcome_of_hit(hit: &CachedResponse, outcome: &mut CallOutcome, now_ms: u64) {
    let (route, usage) = (&hit.note["route"], &hit.note["usage"]);
    let text = |name: &str| route[name].as_str().unwrap_or_default().to_owned();
    outcome.status = hit.status;
    outcome.is_cached = true;
    outcome.cost_usd = Some(0.0);
    outcome.first_token_ms = Some(now_ms);
    outcome.answer = CallAnswer::Logged(hit.note["output"].clone());
    outcome.route = route.is_object().then(|| TakenRoute {
        provider_type: text("type"),
        secret_id: text("id"),
        secret_name: text("name"),
        model: text("model"),
    });
    outcome.usage = usage.is_object().then(|| TokenUsage {
        input: usage["input"].as_u64().unwrap_or(0),
        output: usage["output"].as_u64().unwrap_or(0),
        cached_input: usage["cached"].as_u64(),
        reasoning: usage["reasoning"].as_u64(),
        ..TokenUsage::default()
    });
}

/// Returns the response of a cache hit.
pub(crate) fn replay(call: &ModelCall, hit: CachedResponse, outcome: &CallOutcome, now_ms: u64) -> ModelReply {
    let route = outcome.route.as_ref();
    let ours = GatewayHeaders {
        request_id: &call.request_id,
        cached: Some(true),
        used_endpoint: route.map(|route| route.secret_name.as_str()),
        used_model: route.map(|route| route.model.as_str()),
        attempts: Some(0),
        cost: Some(0.0),
        age_s: Some(hit.age_s(now_ms)),
        ttl_s: Some(u64::from(hit.ttl_s)),
        is_stream: hit.is_stream,
        ..GatewayHeaders::default()
    };
    let mut headers = vec![("content-type".to_owned(), hit.content_type.clone())];
    headers.extend(ours.to_headers().into_iter().map(|(name, value)| (name.to_owned(), value)));
    let body: Bytes = hit.body;
    ModelReply { status: hit.status, headers, body: ReplyBody::Whole(body) }
}
