//! Outcomes of calls, for spans, the usage log, budgets and metrics.

use std::fmt;
use std::sync::{Arc, OnceLock};

use assay_node_dialects::form::{ContentPart, ModelResponse, TokenUsage};
use assay_node_models::catalog::{self, Catalog, ModelSpec, estimate_tokens};
use assay_node_usage::{UsageAmounts, UsageMeter};
use serde_json::Value;

use crate::budgeting::charged_input;
use crate::cached::CacheEntry;
use crate::call::ModelCall;

/// Answer of a model, in the form for spans.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum CallAnswer {
    /// No answer, or an answer that is not read.
    #[default]
    None,
    Conversation(Box<ModelResponse>),
    /// Unmodified choices of the server.
    Choices(Vec<Value>),
    /// Unmodified output items of a Responses server.
    Output(Value),
    EmbeddingLength(usize),
    /// Results of a moderation.
    Results(Value),
    /// Output of a cached response, as logged in its first span.
    Logged(Value),
}

/// Server to which the last request was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenRoute {
    pub provider_type: String,
    pub secret_id: String,
    pub secret_name: String,
    pub model: String,
}

/// Outcome of a call.
#[derive(Clone, Debug, Default)]
pub struct CallOutcome {
    pub status: u16,
    /// Reason why the call failed or its answer is incomplete.
    pub error: Option<String>,
    pub answer: CallAnswer,
    pub usage: Option<TokenUsage>,
    /// Whether the usage is estimated from bytes, because the server reported none (G-33).
    pub is_estimated: bool,
    pub cost_usd: Option<f64>,
    pub route: Option<TakenRoute>,
    pub attempts: u32,
    pub is_cached: bool,
    pub started_ms: u64,
    pub first_token_ms: Option<u64>,
    pub ended_ms: u64,
    pub dropped: Vec<String>,
}

/// Receiver of the outcome of one call. It is called exactly once, even if the client disconnects.
pub trait CallObserver: Send + fmt::Debug {
    fn ended(self: Box<Self>, outcome: CallOutcome);
}

/// Source of the price of a call.
#[derive(Clone, Debug)]
pub(crate) struct CallPrice {
    pub catalog: Arc<Catalog>,
    pub spec: Option<Arc<ModelSpec>>,
    pub is_custom: bool,
    pub model: String,
}

impl CallPrice {
    pub fn price(&self, at_ms: u64) -> Option<catalog::ModelPrice> {
        let custom = self.spec.as_deref().filter(|_| self.is_custom);
        self.catalog.call_price(custom, &self.model, at_ms)
    }

    fn cost(&self, usage: &TokenUsage, at_ms: u64) -> Option<f64> {
        let tokens = catalog::TokenUsage {
            prompt: usage.input,
            completion: usage.output,
            cache_read: usage.cached_input.unwrap_or(0),
            cache_write: usage.cache_creation.unwrap_or(0),
            cache_write_5m: usage.cache_creation_5m.unwrap_or(0),
            cache_write_1h: usage.cache_creation_1h.unwrap_or(0),
        };
        Some(self.price(at_ms)?.cost(&tokens))
    }
}

/// Recorder of a call's outcome. Dropping it before the end reports that the client disconnected.
#[derive(Debug)]
pub(crate) struct CallRecorder {
    observer: Option<Box<dyn CallObserver>>,
    pub outcome: CallOutcome,
    pub price: Option<CallPrice>,
    /// Whether the end of the call has not been reported yet.
    is_open: bool,
    counters: Arc<CallCounters>,
    /// Cache entry for the response.
    pub entry: Option<CacheEntry>,
    /// Call, for the usage log and estimates of its tokens.
    pub call: Option<Arc<ModelCall>>,
    /// Headers with the remaining amounts of the budgets.
    pub limits: Vec<(&'static str, String)>,
}

/// Counters of calls, for metrics.
#[derive(Debug, Default)]
pub struct CallCounters {
    pub calls: Counter,
    pub failures: Counter,
    pub abandoned: Counter,
    pub attempts: Counter,
    pub lost_spans: Counter,
    pub cached: Counter,
    pub provider_refusals: Counter,
    pub prompt_tokens: Counter,
    pub completion_tokens: Counter,
    /// Millionths of a USD.
    pub cost_micros: Counter,
    /// Usage by credential, once the program has opened it.
    pub usage: OnceLock<Arc<UsageMeter>>,
}

/// Monotonic counter.
#[derive(Debug, Default)]
pub struct Counter(std::sync::atomic::AtomicU64);

impl Counter {
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, std::sync::atomic::Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

impl CallRecorder {
    pub fn new(observer: Option<Box<dyn CallObserver>>, counters: Arc<CallCounters>, started_ms: u64) -> CallRecorder {
        counters.calls.add(1);
        let outcome = CallOutcome { started_ms, ..CallOutcome::default() };
        CallRecorder {
            observer,
            outcome,
            price: None,
            is_open: true,
            counters,
            entry: None,
            call: None,
            limits: Vec::new(),
        }
    }

    /// Returns whether the answer is logged or stored in the cache.
    pub fn has_reader(&self) -> bool {
        self.observer.is_some() || self.entry.is_some()
    }

    /// Completes the usage and computes the cost. The answer must be set before.
    pub fn reckon(&mut self) {
        if self.outcome.usage.is_none()
            && matches!(self.outcome.answer, CallAnswer::Conversation(_) | CallAnswer::Choices(_))
        {
            let output = estimate_tokens(answer_bytes(&self.outcome.answer));
            let spec = self.price.as_ref().and_then(|price| price.spec.as_deref());
            let input = self.call.as_deref().map_or(0, |call| charged_input(call, spec));
            self.outcome.usage = Some(TokenUsage { input, output, ..TokenUsage::default() });
            self.outcome.is_estimated = true;
        }
        let started_ms = self.outcome.started_ms;
        let usage = self.outcome.usage.as_ref();
        self.outcome.cost_usd = usage.and_then(|usage| self.price.as_ref()?.cost(usage, started_ms));
    }

    /// Completes the usage of an answer that was cut.
    ///
    /// Some servers report the output only at the end of an answer. `unreported_bytes` counts the text that arrived
    /// after the last report.
    pub fn reckon_cut(&mut self, unreported_bytes: u64) {
        if let Some(usage) = &mut self.outcome.usage {
            usage.output = usage.output.saturating_add(estimate_tokens(unreported_bytes));
            self.outcome.is_estimated |= unreported_bytes > 0;
        }
        self.reckon();
    }

    /// Sets the estimated usage of a call without an answer, and computes its cost.
    pub fn suppose(&mut self, usage: TokenUsage) {
        self.outcome.usage = Some(usage);
        self.outcome.is_estimated = true;
        self.reckon();
    }

    /// Reports the end of the call.
    pub fn end(&mut self, now_ms: u64) {
        self.outcome.ended_ms = now_ms;
        self.count();
        if let Some(observer) = self.observer.take() {
            observer.ended(std::mem::take(&mut self.outcome));
        }
    }

    /// Reports a call that failed.
    pub fn fail(&mut self, status: u16, error: impl Into<String>, now_ms: u64) {
        self.outcome.status = status;
        self.outcome.error = Some(error.into());
        self.end(now_ms);
    }

    fn count(&mut self) {
        if !std::mem::replace(&mut self.is_open, false) {
            return;
        }
        if let Some(call) = &self.call {
            log_usage(call, &self.outcome);
        }
        self.count_usage();
        let (outcome, counters) = (&self.outcome, &self.counters);
        counters.attempts.add(u64::from(outcome.attempts));
        if outcome.error.is_some() {
            counters.failures.add(1);
        }
        if outcome.is_cached {
            counters.cached.add(1);
            return;
        }
        if let Some(usage) = &outcome.usage {
            counters.prompt_tokens.add(usage.input);
            counters.completion_tokens.add(usage.output);
        }
        counters.cost_micros.add(micros(outcome.cost_usd));
    }

    /// Counts the call as usage of its credential. A cached answer has no cost.
    fn count_usage(&self) {
        let (Some(usage), Some(call)) = (self.counters.usage.get(), &self.call) else { return };
        let cost = self.outcome.cost_usd.filter(|_| !self.outcome.is_cached);
        let amounts = UsageAmounts { model_calls: 1, cost_micro_usd: micros(cost), ..UsageAmounts::default() };
        usage.count(call.owner.organization, call.owner.credential.unwrap_or_default(), amounts);
    }

    /// Returns whether the end of the call has not been reported yet.
    pub fn is_open(&self) -> bool {
        self.is_open
    }
}

/// Converts US dollars to millionths of one.
fn micros(usd: Option<f64>) -> u64 {
    usd.map_or(0, |usd| (usd.max(0.0) * 1e6).round() as u64)
}

/// Logs the usage of a call without its content (G-23).
fn log_usage(call: &ModelCall, outcome: &CallOutcome) {
    let (usage, route) = (outcome.usage.as_ref(), outcome.route.as_ref());
    tracing::info!(
        request = call.request_id,
        organization = %call.owner.organization,
        project = call.owner.project.map(tracing::field::display),
        principal = %call.owner.principal,
        credential = call.owner.credential.map(tracing::field::display),
        secret = route.map(|route| route.secret_id.as_str()),
        model = call.model,
        status = outcome.status,
        prompt_tokens = usage.map(|usage| usage.input),
        completion_tokens = usage.map(|usage| usage.output),
        cost_usd = outcome.cost_usd,
        is_cached = outcome.is_cached,
        attempts = outcome.attempts,
        ms = outcome.ended_ms.saturating_sub(outcome.started_ms),
        is_failed = outcome.error.is_some(),
        "called a model"
    );
}

impl Drop for CallRecorder {
    fn drop(&mut self) {
        if self.is_open() {
            self.counters.abandoned.add(1);
            self.reckon();
            let status = self.outcome.status;
            self.fail(status, "client disconnected", crate::gateway::now_ms());
        }
    }
}

/// Returns the number of bytes in the texts of an answer.
fn answer_bytes(answer: &CallAnswer) -> u64 {
    match answer {
        CallAnswer::Conversation(response) => response_text_bytes(response),
        CallAnswer::Choices(choices) => choices_text_bytes(choices),
        _ => 0,
    }
}

/// Returns the number of bytes in the texts of a conversation's answer.
pub(crate) fn response_text_bytes(response: &ModelResponse) -> u64 {
    let parts = response.choices.iter().flat_map(|choice| &choice.parts);
    parts.map(part_bytes).sum::<usize>() as u64
}

fn part_bytes(part: &ContentPart) -> usize {
    match part {
        ContentPart::Text(text) | ContentPart::Refusal(text) => text.text.len(),
        ContentPart::ToolCall(call) => call.name.len() + call.arguments.len(),
        ContentPart::Reasoning(reasoning) => reasoning.text.len(),
        _ => 0,
    }
}

/// Returns the number of bytes in the texts of unmodified choices, such as messages. Probabilities are no text.
pub(crate) fn choices_text_bytes(choices: &[Value]) -> u64 {
    choices.iter().map(|choice| text_bytes(&choice["text"]) + text_bytes(&choice["message"])).sum::<usize>() as u64
}

fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(members) => members.values().map(text_bytes).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use assay_node_dialects::form::TextPart;
    use serde_json::json;

    use super::*;

    fn recorder() -> CallRecorder {
        CallRecorder::new(None, Arc::default(), 0)
    }

    #[test]
    fn a_cut_answer_costs_what_was_reported_and_the_text_after_it() {
        for (reported, unreported, expected) in
            [(Some(7), 0, (7, false)), (Some(1), 10, (4, true)), (Some(0), 8, (2, true))]
        {
            let mut recorder = recorder();
            recorder.outcome.usage = reported.map(|output| TokenUsage { output, ..TokenUsage::default() });
            recorder.outcome.answer = CallAnswer::Choices(vec![json!({"text": "a".repeat(4000)})]);
            recorder.reckon_cut(unreported);
            let output = recorder.outcome.usage.as_ref().map(|usage| usage.output);
            assert_eq!((output, recorder.outcome.is_estimated), (Some(expected.0), expected.1));
            recorder.end(1);
        }
    }

    #[test]
    fn only_texts_of_an_answer_are_estimated() {
        let logprobs = json!({"tokens": vec!["aaaa"; 1000], "token_logprobs": vec![-0.25; 1000]});
        let text = TextPart { text: "eight by".to_owned(), ..TextPart::default() };
        let choice = assay_node_dialects::form::ModelChoice {
            index: 0,
            parts: vec![ContentPart::Text(text)],
            finish: None,
            logprobs: Some(logprobs.clone()),
            extra: Default::default(),
        };
        let response = ModelResponse { choices: vec![choice], ..ModelResponse::default() };
        for answer in [
            CallAnswer::Conversation(Box::new(response)),
            CallAnswer::Choices(vec![json!({"index": 0, "text": "eight by", "logprobs": logprobs})]),
            CallAnswer::Choices(vec![json!({"message": {"content": "eight by"}, "logprobs": logprobs})]),
        ] {
            let mut recorder = recorder();
            recorder.outcome.answer = answer;
            recorder.reckon_cut(0);
            assert_eq!(recorder.outcome.usage.as_ref().map(|usage| usage.output), Some(2));
            recorder.end(1);
        }
    }
}
