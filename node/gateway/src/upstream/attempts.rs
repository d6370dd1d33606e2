//! Driver for the attempts of one call, which executes the decisions of the attempt state machine.

use std::sync::Arc;
use std::time::Duration;

use assay_node_auth::Secret;
use assay_node_budgets::BudgetReservation;
use assay_node_dialects::Dialect;
use assay_node_dialects::form::ModelResponse;
use assay_node_egress::{EgressError, EgressFailure, EgressProgress, EgressResponse, HeaderMap, RequestDeparture};
use assay_node_models::attempts::{AttemptEffect, AttemptEvent, AttemptMachine, AttemptPolicy, GiveUpReason};
use assay_node_models::cooling::retry_after_ms;
use assay_node_models::resolution::Candidate;
use assay_node_response_cache::ResponseCache;
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use super::client_certificate::ProviderSecret;
use super::credentials::{AttemptCredentials, CredentialOwner};
use super::key_mask::KeyMask;
use super::plan::{AttemptPlan, PlanStep, ReplyForm, plan};
use super::remote_media::RemoteMedia;
use super::request::{AttemptParts, AttemptRequest, request};
use super::server_facts::conversation_format;
use crate::budgeting::{amounts_of, usage_of_left};
use crate::call::{CallOwner, ModelCall};
use crate::error::GatewayError;
use crate::gateway::{GatewayCore, now_ms};
use crate::kept_items;
use crate::outcome::{CallAnswer, CallPrice, CallRecorder, TakenRoute};
use crate::translation::UpstreamFormat;

/// Delay before the retry of a server whose connections are all in use.
const BUSY_MS: u64 = 100;
/// AWS header with the id of a response.
const AWS_REQUEST_ID: &str = "x-amzn-requestid";

/// Response of a server, with the plan for reading it.
#[derive(Debug)]
pub(crate) struct ServerResponse {
    pub plan: AttemptPlan,
    pub response: EgressResponse,
    /// Mask for the server's key, which errors must not reveal.
    pub mask: KeyMask,
}

/// Result of the attempts.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// Successful response whose body has not been read yet.
    Accepted(Box<ServerResponse>),
    /// Error response that is passed to the client.
    Failed { status: u16, response: Box<ServerResponse> },
}

/// Active call, from its first attempt to the end of its response.
#[derive(Debug)]
pub(crate) struct ActiveCall {
    pub core: Arc<GatewayCore>,
    pub call: Arc<ModelCall>,
    pub candidates: Vec<Candidate>,
    machine: AttemptMachine,
    /// Whether cooling candidates are tried, because there are no others.
    all_cooling: bool,
    /// Random number of this call, for cooling.
    id: u64,
    begun_ms: u64,
    /// Deadline of the call.
    ends_ms: u64,
    /// Reason why the first unfit candidate cannot serve the request.
    unfit: Option<GatewayError>,
    held: Option<ServerResponse>,
    /// Budget reservation of the call. Dropping it without a settlement releases it.
    reservation: Option<BudgetReservation>,
    /// Permit among the concurrent calls.
    _slot: OwnedSemaphorePermit,
    /// Candidate whose response came last.
    answered_by: usize,
    /// Request that a server may be executing.
    open_request: Option<OpenRequest>,
    media: RemoteMedia,
    pub recorder: CallRecorder,
}

/// Admission of a call that is not answered from the cache.
#[derive(Debug)]
pub(crate) struct CallAdmission {
    pub candidates: Vec<Candidate>,
    /// Whether all candidates are cooling.
    pub all_cooling: bool,
    /// `None` without budgets.
    pub reservation: Option<BudgetReservation>,
    pub slot: OwnedSemaphorePermit,
}

/// Request whose answer has not arrived, and which its server may be executing.
#[derive(Debug)]
struct OpenRequest {
    candidate: usize,
    /// Whether the server answers with a stream, which it ends when its reader leaves.
    is_stream: bool,
    departure: RequestDeparture,
}

/// Attempt that is ready to be sent.
struct PreparedAttempt {
    plan: AttemptPlan,
    credentials: AttemptCredentials,
    request: AttemptRequest,
    mask: KeyMask,
}

/// Next action of a call, from the last effect of a step.
#[derive(Clone, Copy, Debug)]
enum NextStep {
    Try(usize),
    Wait(u64),
    Accept,
    Pass(u16),
    GiveUp(GiveUpReason),
    Nothing,
}

impl ActiveCall {
    pub fn new(
        core: Arc<GatewayCore>,
        (call, recorder): (Arc<ModelCall>, CallRecorder),
        admission: CallAdmission,
    ) -> ActiveCall {
        let CallAdmission { candidates, all_cooling, reservation, slot } = admission;
        let id = call.random_number("attempts");
        let retry_uncertain = core.settings.retry_uncertain || call.endpoint.is_repeatable();
        let mut policy = AttemptPolicy::new(retry_uncertain, id);
        policy.budget_ms = core.settings.retry_budget_seconds.saturating_mul(1000);
        policy.total_ms = core.settings.call_seconds_max.saturating_mul(1000);
        let now = now_ms();
        let ends_ms = now.saturating_add(policy.total_ms);
        let machine = AttemptMachine::new(policy, candidates.len(), now);
        ActiveCall {
            core,
            call,
            candidates,
            machine,
            all_cooling,
            id,
            begun_ms: now,
            ends_ms,
            unfit: None,
            held: None,
            reservation,
            _slot: slot,
            answered_by: 0,
            open_request: None,
            media: RemoteMedia::default(),
            recorder,
        }
    }

    pub fn attempts(&self) -> u32 {
        self.machine.attempts()
    }

    /// Tries candidates until one responds. Errors come from the gateway itself.
    pub async fn arrive(&mut self) -> Result<Arrival, GatewayError> {
        self.go_on(AttemptEvent::Started).await
    }

    /// Retries after an accepted response broke before its content.
    pub async fn broken(&mut self, status: Option<u16>) -> Result<Arrival, GatewayError> {
        self.open_request = None;
        self.go_on(AttemptEvent::Broken { status }).await
    }

    async fn go_on(&mut self, event: AttemptEvent) -> Result<Arrival, GatewayError> {
        let mut event = event;
        loop {
            event = match self.step(event)? {
                NextStep::Try(candidate) => self.attempt(candidate).await,
                NextStep::Wait(until_ms) => {
                    tokio::time::sleep(Duration::from_millis(until_ms.saturating_sub(now_ms()))).await;
                    AttemptEvent::Woken
                }
                NextStep::Accept => return Ok(Arrival::Accepted(Box::new(self.take_held()?))),
                NextStep::Pass(status) => {
                    return Ok(Arrival::Failed { status, response: Box::new(self.take_held()?) });
                }
                NextStep::GiveUp(reason) => return Err(self.failure(reason)),
                NextStep::Nothing => return Err(unexpected("an attempt ended without a next step")),
            };
        }
    }

    fn take_held(&mut self) -> Result<ServerResponse, GatewayError> {
        self.held.take().ok_or_else(|| unexpected("there is no response to pass"))
    }

    fn failure(&mut self, reason: GiveUpReason) -> GatewayError {
        match self.unfit.take() {
            Some(error) if self.machine.attempts() == 0 => error,
            _ => GatewayError::of_reason(reason, now_ms()),
        }
    }

    /// Settles the price of the recorded outcome.
    ///
    /// The future completes when the settlement is stored, and the items to which a later request may refer.
    pub fn settle(&mut self) -> impl Future<Output = ()> + Send + 'static + use<> {
        self.open_request = None;
        let amounts = amounts_of(&self.recorder.outcome);
        let items = self.items_to_keep();
        let settlement = self.reservation.take().map(|reservation| reservation.settle(amounts));
        let request_id = self.call.request_id.clone();
        async move {
            if let Some(settlement) = settlement
                && let Err(pending) = settlement.await
            {
                tracing::warn!(request = request_id, %pending, "a model call is not settled yet");
            }
            if let Some((cache, owner, response)) = items {
                kept_items::keep(cache, owner, response).await;
            }
        }
    }

    /// Returns the response to whose items a later request may refer, unless its server stores them.
    fn items_to_keep(&self) -> Option<(ResponseCache, CallOwner, Box<ModelResponse>)> {
        let outcome = &self.recorder.outcome;
        let CallAnswer::Conversation(response) = &outcome.answer else { return None };
        let server = conversation_format(self.candidates.get(self.answered_by)?, &self.call.endpoint);
        let is_kept = outcome.error.is_none()
            && server != UpstreamFormat::Client(Dialect::Responses)
            && kept_items::may_be_named(&self.call);
        let cache = self.core.cache.clone().filter(|_| is_kept)?;
        Some((cache, self.call.owner.clone(), response.clone()))
    }

    /// Reports that the first content is being sent to the client. From then on, the stream knows what to charge.
    pub fn delivering(&mut self) {
        self.open_request = None;
        self.report(AttemptEvent::FirstByte);
    }

    /// Reports that the accepted response is complete. Keeps its signatures for later requests of the same principal.
    pub fn finished(&mut self, answer: &CallAnswer) {
        self.report(AttemptEvent::Finished);
        if let (CallAnswer::Conversation(response), Some(candidate)) = (answer, self.candidates.get(self.answered_by)) {
            let (principal, secret_id) = (self.call.owner.principal, &candidate.provider.id);
            self.core.signatures.lock().keep(principal, secret_id, response, now_ms());
        }
    }

    /// Reports that the response broke after its first content.
    pub fn interrupted(&mut self, status: Option<u16>) {
        self.report(AttemptEvent::Broken { status });
    }

    /// Reports an event that affects only cooling states.
    fn report(&mut self, event: AttemptEvent) {
        if let Err(error) = self.step(event) {
            tracing::error!(%error, "a model call took a wrong step");
        }
    }

    /// Executes the effects of an event, and returns the next action.
    fn step(&mut self, event: AttemptEvent) -> Result<NextStep, GatewayError> {
        let now = now_ms();
        let effects = self.machine.step(now, event).map_err(|error| unexpected(&error.to_string()))?;
        let mut next = NextStep::Nothing;
        for effect in effects {
            match effect {
                AttemptEffect::Try { candidate } => next = NextStep::Try(candidate),
                AttemptEffect::WaitUntil { at_ms } => next = NextStep::Wait(at_ms),
                AttemptEffect::Accept { .. } => next = NextStep::Accept,
                AttemptEffect::Pass { status, .. } => next = NextStep::Pass(status),
                AttemptEffect::GiveUp(reason) => next = NextStep::GiveUp(reason),
                AttemptEffect::Cancel { .. } => self.held = None,
                AttemptEffect::RecordFailure { candidate, failure } => {
                    let key = self.candidates[candidate].cooling_key();
                    self.core.cooling.lock().fail(&key, now, self.id, failure);
                    self.core.cooling_changed(&key);
                }
                AttemptEffect::RecordSuccess { candidate } => self.succeeded(candidate),
                AttemptEffect::MarkInvalid { candidate } => {
                    let provider = &self.candidates[candidate].provider;
                    tracing::warn!(secret = %provider.id, name = %provider.name, "a provider refused its secret");
                    self.core.counters.provider_refusals.add(1);
                }
                AttemptEffect::Succeeded { .. } => {}
            }
        }
        Ok(next)
    }

    fn succeeded(&mut self, candidate: usize) {
        let key = self.candidates[candidate].cooling_key();
        let mut cooling = self.core.cooling.lock();
        let before = cooling.phase(&key, self.begun_ms);
        cooling.succeed(&key, self.begun_ms);
        let changed = cooling.phase(&key, self.begun_ms) != before;
        drop(cooling);
        if changed {
            self.core.cooling_changed(&key);
        }
    }

    /// Sends the request to a candidate, and returns the result as an event. A response is stored in `held`.
    async fn attempt(&mut self, index: usize) -> AttemptEvent {
        let candidate = self.candidates[index].clone();
        self.begun_ms = now_ms();
        if !self.all_cooling {
            let begun = self.core.cooling.lock().begin(&candidate.cooling_key(), self.begun_ms, self.id);
            if let Err(until_ms) = begun {
                return AttemptEvent::Skipped { until_ms };
            }
        }
        if let Err(error) = self.reserve_for(&candidate).await {
            self.unfit.get_or_insert(error);
            return AttemptEvent::Unfit;
        }
        let PreparedAttempt { mut plan, credentials, request, mask } = match self.prepared(&candidate).await {
            Ok(prepared) => prepared,
            Err(error) => {
                self.unfit.get_or_insert(error);
                return AttemptEvent::Unfit;
            }
        };
        self.record_route(index);
        let (is_stream, departure) = (plan.server_streams, request.options.departure.clone());
        self.open_request = Some(OpenRequest { candidate: index, is_stream, departure });
        let sent = self.core.egress.send(&request.request, &request.options).await;
        if !sent.as_ref().is_ok_and(|response| response.status.is_success()) {
            self.open_request = None;
        }
        match sent {
            Ok(response) => {
                let status = response.status.as_u16();
                self.core.credentials.answered(&credentials, status, &response.headers);
                if let ReplyForm::Translated(translation) = &mut plan.form
                    && let Some(id) = response.headers.get(AWS_REQUEST_ID).and_then(|id| id.to_str().ok())
                {
                    translation.set_answer_id(id);
                }
                let retry_after_ms = retry_after_ms(texts(&response.headers), now_ms());
                self.answered_by = index;
                self.held = Some(ServerResponse { plan, response, mask });
                AttemptEvent::Head { status, retry_after_ms }
            }
            Err(error) => self.not_answered(&candidate, &error),
        }
    }

    /// Records the server to which a request is sent, and the source of its price.
    fn record_route(&mut self, index: usize) {
        let candidate = &self.candidates[index];
        let model = candidate.upstream_model().to_owned();
        self.recorder.price = Some(CallPrice {
            catalog: self.core.catalog(),
            spec: candidate.spec.clone(),
            is_custom: candidate.is_custom,
            model: model.clone(),
        });
        self.recorder.outcome.route = Some(TakenRoute {
            provider_type: candidate.provider.provider_type.name().to_owned(),
            secret_id: candidate.provider.id.clone(),
            secret_name: candidate.provider.name.clone(),
            model,
        });
    }

    /// Reserves the price in the budgets of the candidate's secret.
    async fn reserve_for(&mut self, candidate: &Candidate) -> Result<(), GatewayError> {
        let Some(reservation) = &mut self.reservation else { return Ok(()) };
        let Ok(secret) = candidate.provider.id.parse::<Uuid>() else { return Ok(()) };
        reservation.use_secret(secret).await.map_err(|refusal| GatewayError::of_budget(&refusal))
    }

    async fn prepared(&mut self, candidate: &Candidate) -> Result<PreparedAttempt, GatewayError> {
        let (core, call) = (Arc::clone(&self.core), Arc::clone(&self.call));
        let owner = &call.owner;
        let plan = match plan(&call, candidate)? {
            PlanStep::Ready(plan) => plan,
            PlanStep::Conversation(mut conversation) => {
                self.media.fill(&core.egress, owner.organization, &mut conversation).await?;
                let secret_id = &candidate.provider.id;
                core.signatures.lock().restore(owner.principal, secret_id, &mut conversation, now_ms());
                conversation.write(&call)?
            }
        };
        let key = call.keys.key(&candidate.provider.id).await;
        let key = key.map_err(|why| {
            tracing::error!(secret = %candidate.provider.id, why, "the key of a provider cannot be read");
            GatewayError::new(502, "provider_auth_error", "the key of the provider cannot be read by this server")
        })?;
        let secret = ProviderSecret::read(&candidate.provider, key.as_ref(), core.egress.roots())?;
        let owner = CredentialOwner { organization: owner.organization, provider: Arc::clone(&candidate.provider) };
        let credentials = core.credentials.credentials(&owner, &secret).await?;
        let time_left = Duration::from_millis(self.ends_ms.saturating_sub(now_ms()));
        let parts =
            AttemptParts { call: &call, candidate, plan: &plan, secret: &secret, credentials: &credentials, time_left };
        let request = request(&parts, &core.forward)?;
        // The mask covers only the key for requests, not the whole JSON that also contains the key of a certificate.
        let mask = KeyMask::new(Some(Secret::new(secret.auth().to_owned())));
        Ok(PreparedAttempt { plan, credentials, request, mask })
    }

    fn not_answered(&mut self, candidate: &Candidate, error: &EgressError) -> AttemptEvent {
        let reason = error.operator_reason();
        tracing::warn!(secret = %candidate.provider.id, request = self.call.request_id, reason, "a model server did not answer");
        match (error.progress(), error.failure()) {
            (EgressProgress::NothingSent, EgressFailure::Refused) => {
                self.unfit.get_or_insert_with(|| GatewayError::of_reason(GiveUpReason::Unreachable, now_ms()));
                AttemptEvent::Unfit
            }
            (EgressProgress::NothingSent, EgressFailure::Busy) => {
                AttemptEvent::Skipped { until_ms: now_ms().saturating_add(BUSY_MS) }
            }
            (EgressProgress::NothingSent, _) => AttemptEvent::NotSent,
            (_, failure) => AttemptEvent::Uncertain { is_late: failure == EgressFailure::HeadLate },
        }
    }
}

/// Charges a call whose client leaves before the answer, because its server may have executed it.
impl Drop for ActiveCall {
    fn drop(&mut self) {
        let departed = |request: &OpenRequest| request.departure.is_marked();
        let Some(request) = self.open_request.take().filter(departed) else { return };
        if !self.recorder.is_open() {
            return;
        }
        let candidate = &self.candidates[request.candidate];
        let usage = usage_of_left(&self.call, candidate, request.is_stream);
        self.recorder.outcome.attempts = self.attempts();
        if let Some(usage) = usage {
            self.recorder.suppose(usage);
        }
        // The settlement continues without its future.
        drop(self.settle());
    }
}

/// Returns the headers whose values are text.
pub(crate) fn texts(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
}

fn unexpected(why: &str) -> GatewayError {
    tracing::error!(why, "a model call took a wrong step");
    GatewayError::new(500, "internal_error", "the gateway failed on this call; its log has the details")
}
