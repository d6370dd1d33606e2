//! AI gateway, which finds servers for model calls and returns their responses.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use assay_node_budgets::{BudgetReservation, Budgets};
use assay_node_egress::EgressClient;
use assay_node_limits::{Budget, Refusals};
use assay_node_models::catalog::Catalog;
use assay_node_models::cooling::{CoolingKey, CoolingTable};
use assay_node_models::headers::{ForwardPolicy, GatewayHeaders, response_headers};
use assay_node_models::provider::Provider;
use assay_node_models::resolution::{Candidate, CandidateOrder, RouteQuery, resolve, session_key};
use assay_node_response_cache::ResponseCache;
use assay_node_usage::UsageMeter;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::background::BackgroundTasks;
use crate::budgeting::budget_call;
use crate::cached::{self, CacheAnswer, CacheEntry};
use crate::call::ModelCall;
use crate::endpoint::ClientEndpoint;
use crate::error::GatewayError;
use crate::kept_items;
use crate::outcome::{CallCounters, CallObserver, CallOutcome, CallRecorder};
use crate::reply::{BrokenStream, EVENT_STREAM, ModelReply, ReplyBody, begin_stream, failed_reply, read_whole};
use crate::settings::GatewaySettings;
use crate::translation::error_status;
use crate::upstream::{ActiveCall, Arrival, CallAdmission, CallSignatures, CredentialSource, ServerResponse};

/// Number of bytes of a server's error response after which reading stops.
const ERROR_BYTES_MAX: usize = 1 << 20;
/// `Retry-After` of a call that is refused because the node is busy.
const BUSY_RETRY_S: u64 = 1;

/// Time limit for the wait of a call while the maximum number of calls is active.
const SLOT_WAIT: Duration = Duration::from_secs(30);

/// Receiver of changes to cooling states, for other nodes.
pub type CoolingListener = Box<dyn Fn(&CoolingKey) + Send + Sync>;

/// Parts of a gateway.
pub struct GatewayParts {
    pub egress: EgressClient,
    pub settings: GatewaySettings,
    pub catalog: Catalog,
    /// `None` without a cache.
    pub cache: Option<ResponseCache>,
    /// `None` without budgets.
    pub budgets: Option<Budgets>,
    /// Cooling states, shared with other nodes.
    pub cooling: Arc<Mutex<CoolingTable>>,
    pub on_cooling: Option<CoolingListener>,
    /// Runtime of the background tasks that continue after responses.
    pub runtime: Handle,
}

impl GatewayParts {
    /// Creates the parts of a gateway without a cache, budgets, and other nodes.
    pub fn new(egress: EgressClient, settings: GatewaySettings, catalog: Catalog, runtime: Handle) -> GatewayParts {
        let (cache, budgets, on_cooling) = (None, None, None);
        GatewayParts { egress, settings, catalog, cache, budgets, cooling: Arc::default(), on_cooling, runtime }
    }
}

impl fmt::Debug for GatewayParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayParts").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// AI gateway of a node. Clones share all state.
#[derive(Clone, Debug)]
pub struct Gateway(Arc<GatewayCore>);

/// State that calls share.
pub(crate) struct GatewayCore {
    pub egress: EgressClient,
    pub settings: GatewaySettings,
    pub forward: ForwardPolicy,
    catalog: Arc<Catalog>,
    pub cooling: Arc<Mutex<CoolingTable>>,
    on_cooling: Option<CoolingListener>,
    pub counters: Arc<CallCounters>,
    pub credentials: CredentialSource,
    pub signatures: Mutex<CallSignatures>,
    /// `None` without a cache.
    pub cache: Option<ResponseCache>,
    /// `None` without budgets.
    budgets: Option<Budgets>,
    /// Permits that bound the concurrent calls.
    slots: Arc<Semaphore>,
    /// Bytes that bodies of running calls take.
    memory: Budget,
    background: BackgroundTasks,
}

impl fmt::Debug for GatewayCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayCore").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl GatewayCore {
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog)
    }

    pub fn cooling_changed(&self, key: &CoolingKey) {
        if let Some(listener) = &self.on_cooling {
            listener(key);
        }
    }

    /// Stores a response in the cache, in the background. The body of the call is not kept meanwhile.
    pub fn store(&self, entry: CacheEntry, call: &ModelCall, content_type: String, outcome: CallOutcome) {
        let (endpoint, is_stream) = (call.endpoint.clone(), call.stream);
        self.background.spawn(async move {
            entry.store((&endpoint, is_stream), content_type, outcome).await;
        });
    }
}

impl Gateway {
    pub fn new(parts: GatewayParts) -> Gateway {
        let GatewayParts { egress, settings, catalog, cache, budgets, cooling, on_cooling, runtime } = parts;
        let forward = ForwardPolicy { trace: settings.forward_trace_headers, names: settings.forward_headers.clone() };
        let credentials = CredentialSource::new(egress.clone(), runtime.clone());
        let slots = settings.calls_max;
        let memory = Budget::new("gateway.calls_bytes_max", settings.calls_bytes_max as u64, &Refusals::default());
        Gateway(Arc::new(GatewayCore {
            egress,
            settings,
            forward,
            catalog: Arc::new(catalog),
            cooling,
            on_cooling,
            counters: Arc::default(),
            credentials,
            signatures: Mutex::default(),
            cache,
            budgets,
            slots: Arc::new(Semaphore::new(slots)),
            memory,
            background: BackgroundTasks::new(runtime),
        }))
    }

    /// Runs a background task that continues after a response, such as writing a span.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.background.spawn(task);
    }

    /// Waits for the background tasks, for at most `within`.
    pub async fn settle(&self, within: Duration) {
        self.0.background.settle(within).await;
    }

    /// Counts a span that could not be written.
    pub fn span_lost(&self) {
        self.0.counters.lost_spans.add(1);
    }

    pub fn settings(&self) -> &GatewaySettings {
        &self.0.settings
    }

    /// Returns the budget for the memory of running calls. Callers reserve the memory of a body before a call.
    pub fn memory(&self) -> &Budget {
        &self.0.memory
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        self.0.catalog()
    }

    /// Returns the outbound client, which also fetches media and calls tools.
    pub fn egress(&self) -> &EgressClient {
        &self.0.egress
    }

    /// Replaces item references in a request of the Responses API by the kept items of earlier responses.
    ///
    /// Items that are not kept remain references.
    pub async fn restore_items(&self, call: &mut ModelCall) {
        if let Some(cache) = &self.0.cache
            && call.endpoint == ClientEndpoint::Responses
        {
            // The future is boxed because it is large, and most calls have no references.
            Box::pin(kept_items::restore(cache, call)).await;
        }
    }

    /// Calls a model. The observer is always notified of the end of the call.
    pub async fn call(
        &self,
        call: ModelCall,
        observer: Option<Box<dyn CallObserver>>,
    ) -> Result<ModelReply, GatewayError> {
        let call = Arc::new(call);
        let mut recorder = CallRecorder::new(observer, Arc::clone(&self.0.counters), now_ms());
        recorder.call = Some(Arc::clone(&call));
        let admission = match self.begin(&call, &mut recorder).await {
            Ok(BegunCall::Upstream(admission)) => admission,
            Ok(BegunCall::Cached(reply)) => return Ok(reply),
            Err(error) => {
                recorder.fail(error.status, error.to_string(), now_ms());
                return Err(error);
            }
        };
        let mut active = Box::new(ActiveCall::new(Arc::clone(&self.0), (call, recorder), *admission));
        let mut arrival = active.arrive().await;
        loop {
            let response = match arrival {
                Err(error) => {
                    active.recorder.outcome.attempts = active.attempts();
                    active.recorder.fail(error.status, error.to_string(), now_ms());
                    return Err(error);
                }
                Ok(Arrival::Failed { status, response }) => {
                    took(&mut active, &response);
                    return failed(active, status, *response).await;
                }
                Ok(Arrival::Accepted(response)) => *response,
            };
            took(&mut active, &response);
            let head = ResponseHead::of(&response);
            if !head.is_stream(&response) {
                match whole(active, response, &head).await {
                    Ok(reply) => return Ok(reply),
                    Err(broken) => (active, arrival) = again(*broken).await,
                }
                continue;
            }
            match begin_stream(active, response).await {
                Ok(stream) => return Ok(head.streamed(stream)),
                Err(broken) => (active, arrival) = again(*broken).await,
            }
        }
    }

    /// Finds servers for a call, queries the cache, and admits the call.
    async fn begin(&self, call: &Arc<ModelCall>, recorder: &mut CallRecorder) -> Result<BegunCall, GatewayError> {
        let started_ms = recorder.outcome.started_ms;
        let (candidates, all_cooling) = self.candidates(call, started_ms)?;
        match cached::ask(self.0.cache.as_ref(), (call, &self.0.forward), &candidates).await? {
            CacheAnswer::NotAsked => {}
            CacheAnswer::Miss(entry) => recorder.entry = entry,
            CacheAnswer::Hit(hit) => {
                let now = now_ms();
                cached::outcome_of_hit(&hit, &mut recorder.outcome, now);
                let reply = cached::replay(call, *hit, &recorder.outcome, now);
                recorder.end(now);
                return Ok(BegunCall::Cached(reply));
            }
        }
        let slot = self.slot().await?;
        let reservation = self.admitted(call, &candidates, started_ms).await?;
        recorder.limits = reservation.as_ref().map(|reservation| reservation.headers().pairs()).unwrap_or_default();
        let admission = CallAdmission { candidates, all_cooling, reservation, slot };
        Ok(BegunCall::Upstream(Box::new(admission)))
    }

    /// Counts and reports a call that a guardrail refuses before it begins.
    pub fn refused(&self, observer: Option<Box<dyn CallObserver>>, error: &GatewayError) {
        let now = now_ms();
        let mut recorder = CallRecorder::new(observer, Arc::clone(&self.0.counters), now);
        tracing::info!(code = error.error.code, "a model call is refused by a guardrail");
        recorder.fail(error.status, error.to_string(), now);
    }

    /// Waits for a permit to begin the call.
    async fn slot(&self) -> Result<OwnedSemaphorePermit, GatewayError> {
        let permit = tokio::time::timeout(SLOT_WAIT, Arc::clone(&self.0.slots).acquire_owned()).await;
        permit.ok().and_then(Result::ok).ok_or_else(|| {
            let why = "this node is busy with as many model calls as it may run (`gateway.calls_max`): try again later";
            let mut error = GatewayError::new(429, "rate_limit_exceeded", why);
            error.retry_after_s = Some(BUSY_RETRY_S);
            error
        })
    }

    /// Reserves the estimated price of a call in its budgets.
    async fn admitted(
        &self,
        call: &ModelCall,
        candidates: &[Candidate],
        now_ms: u64,
    ) -> Result<Option<BudgetReservation>, GatewayError> {
        let Some(budgets) = &self.0.budgets else { return Ok(None) };
        let times = (now_ms, self.0.settings.call_time());
        let reservation = budgets.admit(budget_call(&self.catalog(), call, candidates, times)).await;
        Ok(Some(reservation.map_err(|refusal| GatewayError::of_budget(&refusal))?))
    }

    fn candidates(&self, call: &ModelCall, now_ms: u64) -> Result<(Vec<Candidate>, bool), GatewayError> {
        let catalog = self.catalog();
        let session = match self.0.settings.affinity && call.endpoint.is_conversation() {
            true => session_key(|name| call.header(name), call.body.json()),
            false => None,
        };
        let principal = call.owner.principal.to_string();
        let order = match &session {
            Some(session) => CandidateOrder::Session { principal: &principal, session },
            None => CandidateOrder::Random { seed: call.random_number("order") },
        };
        let cooling = self.0.cooling.lock();
        let resolved = resolve(&RouteQuery {
            model: &call.model,
            endpoint_name: call.endpoint_name.as_deref(),
            providers: &call.providers,
            catalog: &catalog,
            order,
            cooling: &cooling,
            now_ms,
        })?;
        Ok((resolved.candidates, resolved.all_cooling))
    }

    /// Returns the models that the providers serve, sorted by name, each with the name of one provider secret.
    pub fn models(&self, providers: &Arc<[Arc<Provider>]>) -> Vec<(String, String)> {
        let (catalog, cooling, now_ms) = (self.catalog(), CoolingTable::new(), now_ms());
        let custom = providers.iter().flat_map(|provider| provider.metadata.custom_models.keys().map(String::as_str));
        let listed =
            providers.iter().flat_map(|provider| provider.metadata.models.iter().flatten().map(String::as_str));
        let names: BTreeSet<&str> = catalog.names().chain(custom).chain(listed).collect();
        let served = names.into_iter().filter_map(|model| {
            let order = CandidateOrder::Random { seed: 0 };
            let query = RouteQuery {
                model,
                endpoint_name: None,
                providers,
                catalog: &catalog,
                order,
                cooling: &cooling,
                now_ms,
            };
            let candidates = resolve(&query).ok()?.candidates;
            Some((model.to_owned(), candidates.first()?.provider.name.clone()))
        });
        served.collect()
    }

    /// Counts later calls as usage of their credentials.
    pub fn count_usage(&self, usage: Arc<UsageMeter>) {
        // The program sets it once at its start.
        drop(self.0.counters.usage.set(usage));
    }

    /// Returns metrics in Prometheus text format.
    pub fn metrics_text(&self) -> String {
        let counters = &self.0.counters;
        let mut text = String::new();
        for (name, help, value) in [
            ("calls_total", "Calls of models", counters.calls.get()),
            ("call_failures_total", "Calls of models that failed", counters.failures.get()),
            ("calls_abandoned_total", "Calls of models whose clients left", counters.abandoned.get()),
            ("lost_spans_total", "Spans of model calls that could not be written", counters.lost_spans.get()),
            ("attempts_total", "Requests to model servers", counters.attempts.get()),
            ("provider_refusals_total", "Provider secrets that were refused", counters.provider_refusals.get()),
            ("cached_calls_total", "Calls of models that the cache answered", counters.cached.get()),
            ("prompt_tokens_total", "Tokens of prompts", counters.prompt_tokens.get()),
            ("completion_tokens_total", "Tokens of answers", counters.completion_tokens.get()),
            ("cost_micro_usd_total", "Cost of calls in millionths of a USD", counters.cost_micros.get()),
        ] {
            let name = format!("assay_gateway_{name}");
            text.push_str(&format!("# HELP {name} {help}.\n# TYPE {name} counter\n{name} {value}\n"));
        }
        text
    }
}

/// Admitted call.
#[derive(Debug)]
enum BegunCall {
    /// The response is in the cache.
    Cached(ModelReply),
    Upstream(Box<CallAdmission>),
}

/// Status and headers of a response for the client.
#[derive(Debug)]
struct ResponseHead {
    status: u16,
    passed: Vec<(String, String)>,
    content_type: String,
}

impl ResponseHead {
    fn of(response: &ServerResponse) -> ResponseHead {
        let mut passed = response_headers(crate::upstream::texts(&response.response.headers));
        let is_type = |(name, _): &(String, String)| name == "content-type";
        let content_type = passed.iter().position(is_type).map(|at| passed.remove(at).1);
        let content_type = content_type.unwrap_or_else(|| "application/json".to_owned());
        passed.retain(|(name, _)| name != "content-encoding");
        ResponseHead { status: response.response.status.as_u16(), passed, content_type }
    }

    /// Returns whether the response is a stream. Some servers do not stream although the request asks for a stream.
    fn is_stream(&self, response: &ServerResponse) -> bool {
        response.plan.server_streams && !self.content_type.to_ascii_lowercase().contains("json")
    }

    fn headers(
        &self,
        content_type: &str,
        recorder: &CallRecorder,
        request_id: &str,
        is_stream: bool,
    ) -> Vec<(String, String)> {
        let outcome = &recorder.outcome;
        let route = outcome.route.as_ref();
        let dropped = (!outcome.dropped.is_empty()).then(|| outcome.dropped.join(","));
        let ours = GatewayHeaders {
            request_id,
            used_endpoint: route.map(|route| route.secret_name.as_str()),
            used_model: route.map(|route| route.model.as_str()),
            attempts: Some(outcome.attempts),
            cost: outcome.cost_usd,
            cached: recorder.entry.as_ref().map(|_| false),
            ttl_s: recorder.entry.as_ref().and_then(CacheEntry::ttl_s),
            dropped_params: dropped.as_deref(),
            is_stream,
            ..GatewayHeaders::default()
        };
        let mut headers = self.passed.clone();
        headers.push(("content-type".to_owned(), content_type.to_owned()));
        headers.extend(ours.to_headers().into_iter().map(|(name, value)| (name.to_owned(), value)));
        if !recorder.limits.is_empty() {
            // Limits of the caller's budgets are more useful than those of the provider's account.
            headers.retain(|(name, _)| !name.starts_with("x-ratelimit-"));
            headers.extend(recorder.limits.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        }
        headers
    }

    fn streamed(&self, stream: crate::reply::ReplyStream) -> ModelReply {
        let content_type = match stream.is_opaque() {
            true => self.content_type.as_str(),
            false => EVENT_STREAM,
        };
        let headers = self.headers(content_type, stream.recorder(), stream.request_id(), true);
        ModelReply { status: self.status, headers, body: ReplyBody::Stream(Box::new(stream)) }
    }
}

/// Records the response of a server.
fn took(active: &mut ActiveCall, response: &ServerResponse) {
    let attempts = active.attempts();
    let outcome = &mut active.recorder.outcome;
    outcome.status = response.response.status.as_u16();
    outcome.attempts = attempts;
    outcome.dropped.clone_from(&response.plan.dropped);
}

/// Retries a call whose response broke before its content.
async fn again(broken: BrokenStream) -> (Box<ActiveCall>, Result<Arrival, GatewayError>) {
    let BrokenStream { status, error, mut active } = broken;
    let mut arrival = active.broken(status).await;
    // The error of the server is more specific than the gateway's.
    if let (Err(failure), Some(error)) = (&mut arrival, error)
        && failure.error.code.as_deref() == Some("upstream_error")
    {
        *failure.error = error;
    }
    (active, arrival)
}

/// Reads a whole response.
async fn whole(
    mut active: Box<ActiveCall>,
    response: ServerResponse,
    head: &ResponseHead,
) -> Result<ModelReply, Box<BrokenStream>> {
    let ServerResponse { plan, response, mask } = response;
    let collected = response.body.collect().await;
    let body = match collected {
        Ok(body) => body,
        Err(error) => {
            tracing::warn!(reason = error.operator_reason(), "the response of a model server broke");
            return Err(Box::new(BrokenStream { status: None, error: None, active }));
        }
    };
    let call = Arc::clone(&active.call);
    let how = (now_ms() / 1000, active.recorder.has_reader());
    let reply = match read_whole(&call, &plan, (body, head.content_type.clone()), how) {
        Ok(reply) => reply,
        Err(why) => {
            tracing::warn!(why, "the response of a model server cannot be read");
            return Err(Box::new(BrokenStream { status: None, error: None, active }));
        }
    };
    if let Some(failure) = reply.failure {
        let status = Some(error_status(plan.server, &failure));
        return Err(Box::new(BrokenStream { status, error: Some(mask.error(failure)), active }));
    }
    active.finished(&reply.answer);
    let attempts = active.attempts();
    let outcome = &mut active.recorder.outcome;
    outcome.answer = reply.answer;
    outcome.usage = reply.usage;
    outcome.first_token_ms = Some(now_ms());
    outcome.attempts = attempts;
    active.recorder.reckon();
    active.settle().await;
    let headers = head.headers(&reply.content_type, &active.recorder, &call.request_id, call.stream);
    if let Some(mut entry) = active.recorder.entry.take() {
        entry.add(&reply.bytes);
        active.core.store(entry, &call, reply.content_type, active.recorder.outcome.clone());
    }
    active.recorder.end(now_ms());
    Ok(ModelReply { status: head.status, headers, body: ReplyBody::Whole(reply.bytes) })
}

/// Returns the error response of a server to the client.
async fn failed(
    mut active: Box<ActiveCall>,
    status: u16,
    response: ServerResponse,
) -> Result<ModelReply, GatewayError> {
    let head = ResponseHead::of(&response);
    let body = response.mask.bytes(error_body(response.response.body).await);
    let (bytes, message) = failed_reply(&active.call, &response.plan, status, &body);
    active.recorder.entry = None;
    let headers = head.headers("application/json", &active.recorder, &active.call.request_id, false);
    active.recorder.fail(status, message, now_ms());
    Ok(ModelReply { status, headers, body: ReplyBody::Whole(bytes) })
}

/// Returns the start of a body, or the part before a read error. The status alone is sufficient.
async fn error_body(mut body: assay_node_egress::EgressBody) -> Bytes {
    let mut bytes = bytes::BytesMut::new();
    while bytes.len() < ERROR_BYTES_MAX
        && let Ok(Some(chunk)) = body.next().await
    {
        bytes.extend_from_slice(&chunk);
    }
    bytes.freeze()
}

/// Returns the time in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
