//! Model calls for invocations, through the gateway in this process.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use assay_node_dialects::form::{PartDelta, PartStart, StreamEvent};
use assay_node_gateway::{
    BodyReservation, CallBody, CallOwner, ClientEndpoint, Conversation, GatewayError, ModelCall, read_target,
};
use assay_node_http::requests::admission::Applicant;
use assay_node_http::requests::caller::Caller;
use assay_node_http::requests::wait::{REQUEST_WAIT, Wait};
use assay_node_invocations::services::{CacheUse, ModelAnswer, ModelDelta, ModelRequest};
use assay_node_invocations::{InvokeError, InvokeErrorKind};
use assay_node_models::provider::Provider;
use assay_node_scorers::ModelOperation;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::services::{CallerServices, error_of};
use super::spans;
use crate::gateway::calls::{JSON_TIMES, credential_of};
use crate::gateway::providers::CallerProviders;
use crate::gateway::span_log::{log_call, merge};

/// Error code of the gateway for a secret that the provider refuses.
const PROVIDER_AUTH: &str = "provider_auth_error";
const USE_CACHE: &str = "x-bt-use-cache";
const COST: &str = "x-bt-cost";
/// Headers of the gateway's response that callers of functions receive.
const PASSED_HEADERS: [&str; 3] = ["x-bt-cached", "x-bt-used-endpoint", "age"];

/// Calls a model.
pub(super) async fn call(
    services: &CallerServices,
    request: ModelRequest,
) -> Result<Box<dyn ModelAnswer>, InvokeError> {
    let caller = services.caller();
    if !caller.edge.gateway.settings().enabled {
        let why = "the function calls a model, and the AI gateway is switched off on this server (`gateway.enabled`)";
        return Err(InvokeError::new(InvokeErrorKind::NotServed, why));
    }
    let CallerProviders { providers, keys } = services.providers().await?;
    let endpoint = match request.operation {
        ModelOperation::ChatCompletions => ClientEndpoint::Chat,
        ModelOperation::Embeddings => ClientEndpoint::Embeddings,
        ModelOperation::Moderations => ClientEndpoint::Moderations,
    };
    let mut body = request.body;
    if request.is_stream {
        body.insert("stream".into(), true.into());
        body.insert("stream_options".into(), json!({"include_usage": true}));
    }
    let body = reserved(caller, Value::Object(body)).await?;
    let target = read_target(&endpoint, &body, None).map_err(|error| failure(&error, None))?;
    let mut guards = services.guards().await?;
    let mut call = ModelCall {
        request_id: Uuid::new_v4().to_string(),
        owner: owner_of(services),
        endpoint,
        model: target.model,
        stream: target.stream,
        body,
        headers: cache_headers(services.cache_headers(), request.cache),
        endpoint_name: request.endpoint_name.clone(),
        providers,
        keys,
    };
    let guarded = guards.guard(&mut call);
    let asked = (call.model.clone(), Arc::clone(&call.providers));
    let observer = services.logged_object().zip(request.scope).map(|(object, scope)| {
        let mut scope = scope.child();
        let with_content = caller.edge.gateway.settings().log_content;
        if let Some(mut prompt) = request.prompt.filter(|_| with_content) {
            guards.mask_log(&mut prompt);
            let metadata = Map::from_iter([("metadata".to_owned(), json!({ "prompt": prompt }))]);
            merge(&mut scope.propagated, metadata);
        }
        let started_ms = (spans::now_seconds() * 1000.0) as u64;
        log_call(caller, spans::target_of(object, &scope), (&call, guards), started_ms)
    });
    if let Err(error) = guarded {
        caller.edge.gateway.refused(observer, &error);
        // The caller has to change the request, whatever the status of the guardrail.
        return Err(InvokeError::invalid(error.to_string()));
    }
    let conversation = caller.edge.gateway.converse(call, observer).await;
    let conversation = conversation.map_err(|error| {
        let is_of_secret = error.error.code.as_deref() == Some(PROVIDER_AUTH);
        let known =
            request.endpoint_name.clone().or_else(|| is_of_secret.then(|| secret_of(services, &asked)).flatten());
        failure(&error, known.as_deref())
    })?;
    services.note_cost(conversation.header(COST));
    let passed = PASSED_HEADERS.into_iter().filter_map(|name| Some((name, conversation.header(name)?)));
    services.note_model_headers(passed.map(|(name, value)| (name.to_owned(), value.to_owned())).collect());
    Ok(Box::new(GatewayAnswer { conversation, special: HashMap::new(), ready: VecDeque::new() }))
}

/// Reserves the memory of a call, for which it waits like other calls. An invocation may call long after its request.
async fn reserved(caller: &Caller, body: Value) -> Result<CallBody, InvokeError> {
    let who = Applicant::new(&caller.principal, Wait::new(Instant::now() + REQUEST_WAIT));
    let bytes = body.to_string().len() as u64 * JSON_TIMES;
    let memory = who.reserve(caller.edge.gateway.memory(), bytes).await.map_err(error_of)?;
    Ok(CallBody::reserved(body, BodyReservation::of(memory)))
}

/// Returns the owner of the model calls of an invocation.
fn owner_of(services: &CallerServices) -> CallOwner {
    let caller = services.caller();
    let principal = &caller.principal;
    CallOwner {
        organization: principal.org.0,
        project: services.project(),
        principal: principal.user,
        is_service_account: caller.edge.records.is_service_account(principal.user),
        credential: credential_of(principal.credential),
        temporary: None,
        email: Some(principal.user_email.clone()).filter(|email| !email.is_empty()),
    }
}

/// Returns the name of the secret that serves a model.
fn secret_of(services: &CallerServices, (model, providers): &(String, Arc<[Arc<Provider>]>)) -> Option<String> {
    let served = services.caller().edge.gateway.models(providers);
    served.into_iter().find(|(known, _)| known == model).map(|(_, secret)| secret)
}

/// Returns the caller's cache headers, or a header that disables the cache.
fn cache_headers(requested: &[(String, String)], cache: CacheUse) -> Vec<(String, String)> {
    match cache {
        CacheUse::AsRequested => requested.to_vec(),
        CacheUse::Never => vec![(USE_CACHE.to_owned(), "never".to_owned())],
    }
}

/// Returns the error of an invocation whose model call failed.
fn failure(error: &GatewayError, endpoint_name: Option<&str>) -> InvokeError {
    let is_of_secret = error.error.code.as_deref() == Some(PROVIDER_AUTH) || matches!(error.status, 401 | 403);
    let message = match endpoint_name.filter(|_| is_of_secret) {
        Some(name) => format!("the provider refused the AI secret `{name}`: {error}"),
        None => error.to_string(),
    };
    // The gateway responds with 502 if a secret is refused, but a retry would fail again.
    let status = if is_of_secret { 400 } else { error.status };
    InvokeError::of_model_status(status, message, error.retry_after_s)
}

/// Kind of a part that is not plain text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpecialPart {
    Reasoning,
    Refusal,
}

/// Answer of the gateway.
#[derive(Debug)]
struct GatewayAnswer {
    conversation: Conversation,
    /// Parts that are not plain text.
    special: HashMap<usize, SpecialPart>,
    ready: VecDeque<ModelDelta>,
}

impl GatewayAnswer {
    /// Queues the texts of the first choice, which callers receive.
    fn take(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::PartStart { choice: 0, part, start: PartStart::Reasoning } => {
                self.special.insert(part, SpecialPart::Reasoning);
            }
            StreamEvent::PartStart { choice: 0, part, start: PartStart::Refusal } => {
                self.special.insert(part, SpecialPart::Refusal);
            }
            StreamEvent::PartDelta { choice: 0, part, delta: PartDelta::Text(text) } if !text.is_empty() => {
                let delta = match self.special.get(&part) {
                    None => ModelDelta::Text(text),
                    Some(SpecialPart::Reasoning) => ModelDelta::Reasoning(text),
                    // A refusal makes the whole answer a failure.
                    Some(SpecialPart::Refusal) => return,
                };
                self.ready.push_back(delta);
            }
            _ => {}
        }
    }
}

impl ModelAnswer for GatewayAnswer {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<ModelDelta>, InvokeError>> {
        async move {
            loop {
                if let Some(delta) = self.ready.pop_front() {
                    return Ok(Some(delta));
                }
                let events = self.conversation.next_events().await.map_err(|error| failure(&error, None))?;
                let Some(events) = events else { return Ok(None) };
                for event in events {
                    self.take(event);
                }
            }
        }
        .boxed()
    }

    fn into_response(self: Box<Self>) -> Value {
        self.conversation.into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_of_a_provider_names_its_secret() {
        let error = failure(&GatewayError::new(401, "invalid_api_key", "wrong key"), Some("s"));
        assert_eq!(error.kind, InvokeErrorKind::Invalid);
        assert_eq!(error.message, "the provider refused the AI secret `s`: wrong key");
        assert_eq!(failure(&GatewayError::new(502, "x", "m"), None).kind, InvokeErrorKind::Upstream);
        assert_eq!(failure(&GatewayError::new(404, "model_not_found", "m"), None).kind, InvokeErrorKind::Invalid);
    }

    #[test]
    fn calls_that_must_differ_do_not_ask_the_cache() {
        let requested = [(USE_CACHE.to_owned(), "always".to_owned())];
        assert_eq!(cache_headers(&requested, CacheUse::AsRequested), requested);
        assert_eq!(cache_headers(&requested, CacheUse::Never)[0].1, "never");
    }
}
