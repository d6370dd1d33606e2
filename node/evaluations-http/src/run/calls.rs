//! Calls of the task and the scorers of an evaluation, with attempts after errors that may pass.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use assay_node_evaluations::{
    EvalCallOptions, EvalCallOutcome, EvalCaseIds, EvalCaseNotes, EvalDatum, EvalSpanIds, EvalTarget, SpanRow,
};
use assay_node_gateway::span::SpanIdentity;
use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::Refusal;
use assay_node_invocations::services::CaseNotes;
use assay_node_invocations::{
    EventOutput, InvokeArguments, InvokeError, InvokeErrorKind, InvokeOutcome, InvokedFunction, TaskArguments,
};
use assay_node_invocations_http::invocations::function_calls::{FunctionCallRequest, SpanTarget, call_function};
use assay_node_prompts::TraceReference;
use futures::FutureExt;
use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;
use uuid::Uuid;

use super::lease::{EvalLease, LeaseGuard};
use super::patient;
use crate::clock::now_ms;
use crate::launch::PreparedEval;
use crate::service::{EvalService, add};
use crate::target::span_of;

/// Upper bound of the time of one call (F-18).
const CALL_TIME_MAX: Duration = Duration::from_secs(900);
/// Upper bound of the attempts of one call.
const CALL_ATTEMPTS_MAX: u32 = 6;
/// First and longest pause between two attempts.
const CALL_WAITS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(20));
/// Upper bound of the time that scorers wait for the spans of the task.
const SPANS_WAIT_MAX: Duration = Duration::from_secs(10);

/// Functions of one evaluation, with everything that their calls share.
pub struct EvalCalls {
    lease: LeaseGuard,
    callers: watch::Receiver<Option<Caller>>,
    service: Arc<EvalService>,
    slots: Arc<Semaphore>,
    project: Uuid,
    target: EvalTarget,
    /// Span from which those of all calls are made.
    span: SpanTarget,
    task: InvokedFunction,
    scorers: Vec<InvokedFunction>,
    parameters: Map<String, Value>,
    options: EvalCallOptions,
    /// Whether some scorer reads the spans below the task.
    reads_traces: bool,
}

/// Call of one function.
struct OneCall<'c> {
    function: &'c InvokedFunction,
    arguments: InvokeArguments,
    trace: Option<TraceReference>,
    identity: SpanIdentity,
    propagated: Map<String, Value>,
    awaits_spans: bool,
}

impl EvalCalls {
    pub async fn new(lease: &EvalLease, prepared: PreparedEval) -> Result<EvalCalls, Refusal> {
        let PreparedEval { request, functions, plan } = prepared;
        let caller = lease.caller().await?;
        Ok(EvalCalls {
            span: span_of(&caller, plan.target()).await?,
            lease: lease.guard(),
            callers: lease.callers(),
            service: Arc::clone(&lease.service),
            slots: Arc::clone(&lease.service.calls),
            project: request.project_id,
            target: plan.target().clone(),
            task: functions.task,
            scorers: functions.scorers,
            parameters: request.parameters,
            options: request.options,
            reads_traces: plan.reads_traces(),
        })
    }

    /// Runs the task of a case.
    pub async fn task(&self, datum: Arc<EvalDatum>, trial: u32, ids: Arc<EvalCaseIds>) -> EvalCallOutcome {
        let messages = match self.options.extra_messages.as_ref().map(|path| path.messages(&datum)).transpose() {
            Ok(messages) => messages.unwrap_or_default(),
            Err(why) => return EvalCallOutcome::new(Err(why.to_string())),
        };
        let metadata = match datum.metadata.is_empty() {
            true => Value::Null,
            false => Value::Object(datum.metadata.clone()),
        };
        let arguments = InvokeArguments {
            input: datum.input.clone(),
            expected: datum.expected.clone(),
            metadata,
            tags: if datum.tags.is_empty() { Value::Null } else { json!(datum.tags) },
            messages,
            task: Some(TaskArguments { parameters: self.parameters.clone(), trial_index: trial }),
            ..self.common()
        };
        let mut row = self.function_row(&arguments, &ids);
        let propagated = self.target.propagated.clone();
        let call = OneCall {
            function: &self.task,
            arguments,
            trace: None,
            identity: identity(&ids.function, &ids.task, &ids.root_span_id),
            propagated,
            awaits_spans: self.reads_traces,
        };
        let (result, notes) = match self.call(call).await {
            Ok(outcome) => (Ok(outcome.value), outcome.notes.map(notes_of)),
            Err(why) => (Err(why), None),
        };
        end_row(&mut row, &result);
        EvalCallOutcome { result, spans: vec![row], notes }
    }

    /// Runs a scorer of a case, whose span is that of the function (F-68).
    pub async fn scorer(
        &self,
        scorer: usize,
        input: Arc<Map<String, Value>>,
        ids: Arc<EvalCaseIds>,
    ) -> EvalCallOutcome {
        let (Some(function), Some(span)) = (self.scorers.get(scorer), ids.scorers.get(scorer)) else {
            return EvalCallOutcome::new(Err("the evaluation has no such scorer".to_owned()));
        };
        let arguments = InvokeArguments { input: Value::Object((*input).clone()), ..self.common() };
        let mut propagated = self.target.propagated.clone();
        let attributes = propagated.entry("span_attributes").or_insert_with(|| json!({}));
        if let Value::Object(attributes) = attributes {
            attributes.insert("purpose".to_owned(), "scorer".into());
        }
        let trace = TraceReference {
            object_type: self.target.object_type.name().to_owned(),
            object_id: self.target.object_id.to_string(),
            root_span_id: ids.root_span_id.clone(),
        };
        let identity = identity(span, &ids.root, &ids.root_span_id);
        let call = OneCall { function, arguments, trace: Some(trace), identity, propagated, awaits_spans: false };
        EvalCallOutcome::new(self.call(call).await.map(|outcome| outcome.value))
    }

    /// Returns the arguments that all calls share.
    fn common(&self) -> InvokeArguments {
        let EvalCallOptions { is_strict, mcp_auth, endpoint_name, .. } = &self.options;
        let mcp_auth = if mcp_auth.is_empty() { Value::Null } else { Value::Object(mcp_auth.clone()) };
        InvokeArguments {
            is_strict: *is_strict,
            mcp_auth,
            endpoint_name: endpoint_name.clone(),
            ..InvokeArguments::default()
        }
    }

    /// Calls a function, and repeats the call after errors that may pass. A panic is an error of the call.
    async fn call(&self, call: OneCall<'_>) -> Result<InvokeOutcome, String> {
        let (mut attempts, mut wait) = (0, CALL_WAITS.0);
        loop {
            attempts += 1;
            let attempt = AssertUnwindSafe(self.attempt(&call)).catch_unwind().await;
            let error = match attempt {
                Ok(Ok(outcome)) => return Ok(outcome),
                Ok(Err(error)) => error,
                Err(_) => return Err("the server failed while it ran the function; its log says why".to_owned()),
            };
            if !may_pass(error.kind) || attempts >= CALL_ATTEMPTS_MAX {
                if matches!(error.kind, InvokeErrorKind::Forbidden | InvokeErrorKind::NotFound) {
                    self.lease.confirm_rights().await;
                }
                return Err(error.message);
            }
            add(&self.service.counts.repeated_calls, 1);
            sleep(error.retry_after_s.map_or(wait, Duration::from_secs).min(CALL_WAITS.1)).await;
            wait = (wait * 2).min(CALL_WAITS.1);
        }
    }

    async fn attempt(&self, call: &OneCall<'_>) -> Result<InvokeOutcome, InvokeError> {
        let unavailable = |why: &str| InvokeError::new(InvokeErrorKind::Unavailable, why);
        let _slot = self.slots.acquire().await.map_err(|_| unavailable("this node is shutting down"))?;
        let caller = self.callers.borrow().clone().ok_or_else(|| unavailable("the evaluation has no caller"))?;
        let (span, pending) = self.span.another(call.identity.clone(), call.propagated.clone()).awaited();
        let request = FunctionCallRequest {
            function: call.function.clone(),
            arguments: call.arguments.clone(),
            trace: call.trace.clone(),
            project: Some(self.project),
            span: Some(span),
            time_max: CALL_TIME_MAX,
        };
        let outcome = call_function(&patient(&caller), request, EventOutput::default()).await?;
        if call.awaits_spans && !pending.written(SPANS_WAIT_MAX).await {
            tracing::warn!("the spans of a task are not written yet, so its scorers may not see all of them");
        }
        Ok(outcome)
    }

    /// Returns the row of the task's function, a child of the task's span.
    fn function_row(&self, arguments: &InvokeArguments, ids: &EvalCaseIds) -> SpanRow {
        let mut row = SpanRow::new();
        let mut set = |name: &str, value: Value| drop(row.insert(name.to_owned(), value));
        set("id", ids.function.row_id.to_string().into());
        set("span_id", ids.function.span_id.to_string().into());
        set("root_span_id", ids.root_span_id.as_str().into());
        set("span_parents", json!([ids.task.span_id]));
        set("span_attributes", json!({"name": self.task.name, "type": self.task.span_type()}));
        set("input", arguments.input.clone());
        for (name, value) in [("expected", &arguments.expected), ("metadata", &arguments.metadata)] {
            if !value.is_null() {
                set(name, value.clone());
            }
        }
        set("metrics", json!({"start": seconds(now_ms())}));
        merge(&mut row, &self.target.propagated);
        row
    }
}

/// Returns what a task left in its hooks. Values of other types count as none.
fn notes_of(notes: CaseNotes) -> EvalCaseNotes {
    let metadata = match notes.metadata {
        Value::Object(metadata) => metadata,
        _ => Map::new(),
    };
    let tags = notes.tags.as_array().into_iter().flatten();
    EvalCaseNotes { metadata, tags: tags.filter_map(|tag| tag.as_str().map(str::to_owned)).collect() }
}

fn end_row(row: &mut SpanRow, result: &Result<Value, String>) {
    match result {
        Ok(value) => row.insert("output".to_owned(), value.clone()),
        Err(error) => row.insert("error".to_owned(), error.as_str().into()),
    };
    if let Some(Value::Object(metrics)) = row.get_mut("metrics") {
        metrics.insert("end".to_owned(), seconds(now_ms()).into());
    }
}

fn seconds(time_ms: u64) -> f64 {
    time_ms as f64 / 1000.0
}

/// Merges members deeply. Those of `from` count.
fn merge(into: &mut SpanRow, from: &Map<String, Value>) {
    for (name, value) in from {
        match (into.get_mut(name), value) {
            (Some(Value::Object(known)), Value::Object(members)) => merge(known, members),
            _ => drop(into.insert(name.clone(), value.clone())),
        }
    }
}

fn identity(span: &EvalSpanIds, parent: &EvalSpanIds, root_span_id: &str) -> SpanIdentity {
    SpanIdentity {
        row_id: span.row_id.to_string(),
        span_id: span.span_id.to_string(),
        root_span_id: root_span_id.to_owned(),
        parent_span_id: Some(parent.span_id.to_string()),
    }
}

/// Returns whether the same call may succeed soon. A case may run twice, as after the loss of this node.
fn may_pass(kind: InvokeErrorKind) -> bool {
    matches!(
        kind,
        InvokeErrorKind::RateLimited | InvokeErrorKind::Unavailable | InvokeErrorKind::Upstream | InvokeErrorKind::Lost
    )
}
