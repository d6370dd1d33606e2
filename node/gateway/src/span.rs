//! Pure conversion of calls to rows for their spans (1.9).

use assay_node_dialects::WriteOptions;
use assay_node_dialects::form::{ModelResponse, TokenUsage};
use assay_node_dialects_chat as chat;
use assay_node_dialects_responses as responses;
use serde_json::{Map, Value, json};

use crate::call::{CallBody, ModelCall};
use crate::endpoint::ClientEndpoint;
use crate::outcome::{CallAnswer, CallOutcome};
use crate::translation::{RequestTarget, read_request};

/// Ids of a span and its place in the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanIdentity {
    pub row_id: String,
    pub span_id: String,
    pub root_span_id: String,
    /// Parent span, or `None` for the root of a trace.
    pub parent_span_id: Option<String>,
}

/// Request of a call, in the form for spans.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedRequest {
    pub name: &'static str,
    pub input: Value,
    pub metadata: Map<String, Value>,
}

/// Returns the request in the form for spans. Requests in the formats of Anthropic and Gemini use OpenAI's format
/// (G-22).
pub fn logged_request(call: &ModelCall, with_content: bool) -> LoggedRequest {
    let name = call.endpoint.span_name();
    let Some(body) = call.body.json().as_object() else {
        let content_type = match &call.body {
            CallBody::Opaque { content_type, .. } => content_type.as_str(),
            CallBody::Json { .. } => "application/json",
        };
        let metadata =
            Map::from_iter([("model".to_owned(), json!(call.model)), ("content_type".to_owned(), json!(content_type))]);
        return LoggedRequest { name, input: Value::Null, metadata };
    };
    let mut metadata = match &call.endpoint {
        ClientEndpoint::Messages | ClientEndpoint::Gemini(_) => as_chat(call).unwrap_or_else(|| body.clone()),
        _ => body.clone(),
    };
    metadata.insert("model".to_owned(), json!(call.model));
    let input = match &call.endpoint {
        ClientEndpoint::Completions => metadata.shift_remove("prompt"),
        ClientEndpoint::Responses => metadata.shift_remove("input"),
        ClientEndpoint::Embeddings | ClientEndpoint::Moderations | ClientEndpoint::Path(_) => {
            let whole = Value::Object(std::mem::take(&mut metadata));
            metadata.insert("model".to_owned(), json!(call.model));
            Some(whole)
        }
        _ => metadata.shift_remove("messages").or_else(|| metadata.shift_remove("contents")),
    };
    let input = input.unwrap_or_default();
    if with_content {
        return LoggedRequest { name, input, metadata };
    }
    const KEPT: [&str; 6] = ["model", "stream", "temperature", "top_p", "max_tokens", "max_completion_tokens"];
    metadata.retain(|name, _| KEPT.contains(&name.as_str()));
    LoggedRequest { name, input: Value::Null, metadata }
}

fn as_chat(call: &ModelCall) -> Option<Map<String, Value>> {
    let target = RequestTarget { model: &call.model, stream: call.stream };
    let request = read_request(call.endpoint.dialect(), target, call.body.json()).ok()?;
    let written = chat::write_request(&request, &WriteOptions::default()).ok()?;
    let Value::Object(body) = written.body else { return None };
    Some(body)
}

/// Returns the row at the start of a call.
pub fn start_row(identity: &SpanIdentity, request: LoggedRequest, started_ms: u64) -> Map<String, Value> {
    let mut row = Map::new();
    row.insert("id".into(), json!(identity.row_id));
    row.insert("span_id".into(), json!(identity.span_id));
    row.insert("root_span_id".into(), json!(identity.root_span_id));
    row.insert("span_parents".into(), json!(identity.parent_span_id.as_ref().map(|parent| [parent])));
    row.insert("span_attributes".into(), json!({"name": request.name, "type": "llm"}));
    row.insert("input".into(), request.input);
    row.insert("metadata".into(), Value::Object(request.metadata));
    row.insert("metrics".into(), json!({"start": seconds(started_ms)}));
    row
}

/// Returns the members that the end of a call adds to its row.
pub fn end_row(call: (&str, &ClientEndpoint), outcome: &CallOutcome, with_content: bool) -> Map<String, Value> {
    let (request_id, endpoint) = call;
    let mut row = Map::new();
    if with_content && let Some(output) = output(endpoint, &outcome.answer) {
        row.insert("output".into(), output);
    }
    let mut metadata = Map::new();
    if let Some(route) = &outcome.route {
        metadata.insert("provider".into(), json!(route.provider_type));
        metadata.insert("endpoint".into(), json!(route.secret_name));
    }
    let mut gateway = json!({"attempts": outcome.attempts, "request_id": request_id, "status": outcome.status});
    if let Some(route) = &outcome.route {
        gateway["model"] = json!(route.model);
    }
    if !outcome.dropped.is_empty() {
        gateway["dropped_params"] = json!(outcome.dropped);
    }
    metadata.insert("gateway".into(), gateway);
    row.insert("metadata".into(), Value::Object(metadata));
    row.insert("metrics".into(), Value::Object(metrics(outcome)));
    if let Some(error) = &outcome.error {
        row.insert("error".into(), json!(error));
    }
    row
}

/// Returns the answer in the form for spans of the endpoint.
pub(crate) fn output(endpoint: &ClientEndpoint, answer: &CallAnswer) -> Option<Value> {
    match answer {
        CallAnswer::None => None,
        CallAnswer::Conversation(response) if *endpoint == ClientEndpoint::Responses => {
            Some(responses::write_response(response)["output"].take())
        }
        CallAnswer::Conversation(response) => Some(choices(response)),
        CallAnswer::Choices(choices) => Some(Value::Array(choices.clone())),
        CallAnswer::Output(items) => Some(items.clone()),
        CallAnswer::EmbeddingLength(length) => Some(json!({"embedding_length": length})),
        CallAnswer::Results(results) => Some(results.clone()),
        CallAnswer::Logged(output) => Some(output.clone()),
    }
}

fn choices(response: &ModelResponse) -> Value {
    let mut choices = chat::write_response(response)["choices"].take();
    for choice in choices.as_array_mut().into_iter().flatten() {
        if let Some(choice) = choice.as_object_mut() {
            choice.entry("logprobs").or_insert(Value::Null);
        }
    }
    choices
}

fn metrics(outcome: &CallOutcome) -> Map<String, Value> {
    let mut metrics = Map::new();
    metrics.insert("start".into(), seconds(outcome.started_ms));
    metrics.insert("end".into(), seconds(outcome.ended_ms));
    if let Some(first) = outcome.first_token_ms {
        let after = first.saturating_sub(outcome.started_ms);
        metrics.insert("time_to_first_token".into(), seconds(after));
    }
    if let Some(usage) = &outcome.usage {
        add_tokens(&mut metrics, usage);
    }
    if outcome.is_estimated {
        metrics.insert("tokens_estimated".into(), json!(1));
    }
    if let Some(cost) = outcome.cost_usd {
        metrics.insert("estimated_cost".into(), json!(cost));
    }
    metrics.insert("retries".into(), json!(outcome.attempts.saturating_sub(1)));
    if outcome.is_cached {
        metrics.insert("cached".into(), json!(1));
    }
    metrics
}

fn add_tokens(metrics: &mut Map<String, Value>, usage: &TokenUsage) {
    metrics.insert("tokens".into(), json!(usage.input.saturating_add(usage.output)));
    metrics.insert("prompt_tokens".into(), json!(usage.input));
    metrics.insert("completion_tokens".into(), json!(usage.output));
    for (name, tokens) in [
        ("prompt_cached_tokens", usage.cached_input),
        ("prompt_cache_creation_tokens", usage.cache_creation),
        ("prompt_cache_creation_5m_tokens", usage.cache_creation_5m),
        ("prompt_cache_creation_1h_tokens", usage.cache_creation_1h),
        ("completion_reasoning_tokens", usage.reasoning),
    ] {
        if let Some(tokens) = tokens {
            metrics.insert(name.into(), json!(tokens));
        }
    }
}

fn seconds(ms: u64) -> Value {
    json!(ms as f64 / 1000.0)
}
