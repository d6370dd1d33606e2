//! One run: the input of a trigger, the call of its function, and the rows of its result.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use assay_node_auth::{Asker, Permission, Principal};
use assay_node_gateway::span::SpanIdentity;
use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::Refusal;
use assay_node_invocations::{
    EventOutput, FunctionReference, FunctionVersion, InvokeArguments, InvokeError, InvokeErrorKind,
};
use assay_node_invocations_http::invocations::function_calls::{
    FunctionCallRequest, SpanTarget, call_function_at_cost, resolve_function,
};
use assay_node_limits::Holder;
use assay_node_objects::{ObjectWrite, Objects, Patience, WriteError};
use assay_node_online_scoring::{
    EffectIdentity, FinishedRun, OnlineFunction, OnlineResultForm, OnlineRunError, OpenTrigger, RunEffects,
    RunFailureCause, SCORER_PURPOSE, TriggerEvent, TriggerScope, run_key,
};
use assay_node_prompts::TraceReference;
use assay_storage_model::event::SentItem;
use assay_storage_model::{ObjectKey, ObjectKind};
use futures::FutureExt;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use crate::Executor;
use crate::counters::ScoringCounters;
use crate::groups;
use crate::inputs::{RunInput, earlier_result, read_input};
use crate::rules::asker_of;

/// Upper bound of the time of one run.
const RUN_TIME_MAX: Duration = Duration::from_secs(300);
/// Upper bound of the time for which a run waits for its slot.
const SLOT_WAIT_MAX: Duration = Duration::from_secs(60);
/// Upper bound of the time for which a background read or write waits in queues.
pub(crate) const QUEUE_WAIT_MAX: Duration = Duration::from_secs(60);
/// Time until another attempt at a run that could not happen or whose result could not be written.
const POSTPONED: Duration = Duration::from_secs(5);

/// Run that is to happen.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub object: ObjectKey,
    pub trigger: OpenTrigger,
    /// User with whose rights the function runs.
    pub user: Option<Uuid>,
}

/// End of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunEnd {
    pub trigger: OpenTrigger,
    pub event: TriggerEvent,
    pub cost_nano_usd: u64,
    /// Error of a failed attempt.
    pub error: Option<String>,
    /// Whether a function was called.
    pub was_called: bool,
}

/// Result of the call of a function.
pub(crate) struct Called {
    pub result: Result<Value, OnlineRunError>,
    pub function_name: String,
    pub form: OnlineResultForm,
    pub cost_nano_usd: u64,
    pub was_called: bool,
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn later(pause: Duration) -> TriggerEvent {
    TriggerEvent::Postpone { until_ms: now_ms().saturating_add(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)) }
}

/// Error of an attempt that another one would repeat.
pub(crate) fn permanent(message: impl Into<String>) -> OnlineRunError {
    OnlineRunError { cause: RunFailureCause::Permanent, message: message.into() }
}

impl Run {
    /// Runs the function and writes its result.
    pub async fn happen(self, executor: Arc<Executor>) -> RunEnd {
        let end =
            |event| RunEnd { trigger: self.trigger.clone(), event, cost_nano_usd: 0, error: None, was_called: false };
        let author = match self.author(&executor).await {
            Ok(author) => author,
            Err(error) => return self.failed(&executor, error).await,
        };
        let holder = Holder::new(author.org.0, author.user);
        let Ok(_slot) = executor.slots.acquire(holder, 1, Instant::now() + SLOT_WAIT_MAX).await else {
            return end(later(Duration::ZERO));
        };
        let caller = Caller::of_background(executor.edge.clone(), author, Instant::now() + QUEUE_WAIT_MAX);
        let input = match self.input(&executor, &caller).await {
            Ok(Some(input)) => input,
            Ok(None) => return end(TriggerEvent::Cancel),
            Err(why) => {
                tracing::warn!(object = %self.object, why, "cannot read the input of online scoring; it is retried");
                return end(later(POSTPONED));
            }
        };
        let started_ms = now_ms();
        let called = self.call(&executor, &caller, &input).await;
        let caller = caller.waiting_until(Instant::now() + QUEUE_WAIT_MAX);
        self.finish(&executor, (caller.objects(), caller.patience()), (input, called, started_ms)).await
    }

    /// Returns the principal of the run, with its present rights.
    async fn author(&self, executor: &Executor) -> Result<Principal, OnlineRunError> {
        let gone = "nobody runs the function: the author of the rule is no longer in the organization";
        let user = self.user.ok_or_else(|| permanent(gone))?;
        executor.author(&self.object, user).await
    }

    async fn input(&self, executor: &Executor, caller: &Caller) -> Result<Option<RunInput>, String> {
        let group = match &self.trigger.scope {
            TriggerScope::Group { key, value } => {
                let max = executor.group_traces_max(&self.object, &self.trigger);
                groups::roots_of_group(caller, &self.object, (key, value), max).await?
            }
            TriggerScope::Span | TriggerScope::Trace => Vec::new(),
        };
        let (object, trigger) = (self.object, self.trigger.clone());
        let placement = executor.is_placed_on_each(&self.object, &self.trigger);
        let input = executor.read(object, move |view| read_input(view, &object, &trigger, &group)).await?;
        Ok(input.map(|input| match placement {
            true => input,
            false => RunInput { other_targets: Vec::new(), ..input },
        }))
    }

    /// Calls the function, unless an earlier run on the same input has a result.
    async fn call(&self, executor: &Executor, caller: &Caller, input: &RunInput) -> Called {
        let trigger = &self.trigger;
        let plain = run_key(&trigger.function, &trigger.scope, Some(input.digest), None);
        let is_forced = trigger.run_key.as_deref() != Some(&plain);
        if let Some(earlier) = input.earlier.as_ref().filter(|_| !is_forced)
            && let Some(result) = earlier_result(earlier)
            && let Some((function_name, form)) = named(earlier)
        {
            ScoringCounters::add(&executor.counters.reused, 1);
            let result = Ok(result.clone());
            return Called { result, function_name, form, cost_nano_usd: 0, was_called: false };
        }
        let identity = EffectIdentity::new(&input.target.row_id, &trigger.scope, &trigger.function, input.digest);
        let span = match trigger.skips_logging {
            true => None,
            false => Some((identity, input.target.span_id.as_str(), input.target.root_span_id.as_str())),
        };
        let call = FunctionCall { object: self.object, function: &trigger.function, scope: &trigger.scope, input };
        call.run(caller, span).await
    }

    async fn failed(&self, executor: &Executor, error: OnlineRunError) -> RunEnd {
        let (object, trigger) = (self.object, self.trigger.clone());
        let read = executor.read(object, move |view| read_input(view, &object, &trigger, &[])).await;
        let end =
            |event| RunEnd { trigger: self.trigger.clone(), event, cost_nano_usd: 0, error: None, was_called: false };
        let input = match read {
            Ok(Some(input)) => input,
            Ok(None) => return end(TriggerEvent::Cancel),
            Err(_) => return end(later(POSTPONED)),
        };
        let called = Called {
            result: Err(error),
            function_name: self.trigger.function.key(),
            form: OnlineResultForm::Scores,
            cost_nano_usd: 0,
            was_called: false,
        };
        let writer = (executor.edge.objects.clone(), Patience::usual());
        self.finish(executor, writer, (input, called, now_ms())).await
    }

    fn effects(&self, input: &RunInput, called: &Called, started_ms: u64) -> RunEffects {
        let run = FinishedRun {
            trigger: &self.trigger,
            digest: input.digest,
            function_name: &called.function_name,
            form: called.form,
            input: &input.arguments,
            target: &input.target,
            other_targets: &input.other_targets,
            token: input.token.as_deref(),
            started_ms,
            ended_ms: now_ms(),
            result: called.result.clone(),
        };
        run.effects()
    }

    /// Writes the result. One that cannot be stored is a failed run.
    async fn finish(
        &self,
        executor: &Executor,
        writer: (Objects, Patience),
        (input, mut called, started_ms): (RunInput, Called, u64),
    ) -> RunEnd {
        let mut effects = self.effects(&input, &called, started_ms);
        let mut error = effects.error.take();
        let event = match self.write(executor, &writer, effects).await {
            Ok(event) => event,
            Err(why) => {
                tracing::warn!(object = %self.object, %why, "a result of online scoring was refused");
                called.result = Err(permanent(format!("the result cannot be stored: {why}")));
                let mut effects = self.effects(&input, &called, started_ms);
                error = effects.error.take();
                self.write(executor, &writer, effects).await.unwrap_or(TriggerEvent::Cancel)
            }
        };
        let Called { cost_nano_usd, was_called, .. } = called;
        RunEnd { trigger: self.trigger.clone(), event, cost_nano_usd, error, was_called }
    }

    /// Writes the rows of a run in one transaction, unless its row does not wait for them any more.
    async fn write(
        &self,
        executor: &Executor,
        (objects, patience): &(Objects, Patience),
        effects: RunEffects,
    ) -> Result<TriggerEvent, WriteError> {
        let rows: Vec<SentItem> = effects.span.into_iter().chain(effects.merges).map(SentItem::from).collect();
        let write = ObjectWrite { object: self.object, rows, request: None };
        match objects.write_scoring(write, *patience).await {
            Ok(Some(_)) => Ok(effects.event),
            Ok(None) => {
                ScoringCounters::add(&executor.counters.stale, 1);
                Ok(TriggerEvent::Cancel)
            }
            Err(why) if why.may_pass() => {
                tracing::warn!(object = %self.object, %why, "cannot write a result of online scoring; it is retried");
                Ok(later(POSTPONED))
            }
            Err(why) => Err(why),
        }
    }
}

/// Returns whether a scorer's row has a result that can be written again without a run.
pub(crate) fn is_reusable(row: &Map<String, Value>) -> bool {
    earlier_result(row).is_some() && named(row).is_some()
}

/// Returns the name and the form of the function that wrote a scorer's row.
fn named(row: &Map<String, Value>) -> Option<(String, OnlineResultForm)> {
    let attributes = row.get("span_attributes")?;
    let form = match attributes.get("type")?.as_str()? {
        "score" => OnlineResultForm::Scores,
        "facet" => OnlineResultForm::Facets,
        "classifier" if row.contains_key("classifications") => OnlineResultForm::Classes,
        // tags are not kept in the span, and a classifier without classes is called again
        _ => return None,
    };
    Some((attributes.get("name")?.as_str()?.to_owned(), form))
}

/// Call of a function on an input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionCall<'c> {
    pub object: ObjectKey,
    pub function: &'c OnlineFunction,
    pub scope: &'c TriggerScope,
    pub input: &'c RunInput,
}

/// Identity of the scorer's span, with the span and the trace above it.
pub(crate) type SpanPlace<'s> = (EffectIdentity, &'s str, &'s str);

impl FunctionCall<'_> {
    /// Runs the function. Its model calls are logged below the span, if there is one.
    pub async fn run(self, caller: &Caller, span: Option<SpanPlace<'_>>) -> Called {
        let project = self.object.id;
        let refused = |error: OnlineRunError| Called {
            result: Err(error),
            function_name: self.function.key(),
            form: OnlineResultForm::Scores,
            cost_nano_usd: 0,
            was_called: false,
        };
        let (reference, version) = reference_of(self.function);
        let function = match resolve_function(caller, Some(project), (&reference, &version)).await {
            Ok(function) => function,
            Err(error) => return refused(error_of(&error)),
        };
        let Some(form) = OnlineResultForm::of_function_type(function.function_type.as_deref()) else {
            let kind = function.function_type.unwrap_or_default();
            return refused(permanent(format!("functions of the type `{kind}` cannot run online")));
        };
        let span = match span {
            None => None,
            Some(place) => match span_target(caller, project, place).await {
                Ok(target) => Some(target),
                Err(why) => return refused(permanent(why.to_string())),
            },
        };
        let function_name = function.name.clone();
        let request = FunctionCallRequest {
            arguments: self.arguments(form),
            trace: Some(self.trace()),
            function,
            project: Some(project),
            span,
            time_max: RUN_TIME_MAX,
        };
        let (result, cost_nano_usd) = call_function_at_cost(caller, request, EventOutput::default()).boxed().await;
        let result = result.map(|outcome| outcome.value).map_err(|error| error_of(&error));
        Called { result, function_name, form, cost_nano_usd, was_called: true }
    }

    fn trace(&self) -> TraceReference {
        TraceReference {
            object_type: "project_logs".to_owned(),
            object_id: self.object.id.to_string(),
            root_span_id: self.input.target.root_span_id.clone(),
        }
    }

    /// Returns the arguments of the function. A facet gets the place of its input, and others the input itself.
    fn arguments(&self, form: OnlineResultForm) -> InvokeArguments {
        let input = match form {
            OnlineResultForm::Facets => {
                let (object_type, object_id) = ("project_logs", self.object.id);
                let root_span_id = &self.input.target.root_span_id;
                match self.scope {
                    TriggerScope::Span => json!({"_full_row_id_ref": {"object_type": object_type,
                        "object_id": object_id, "row_id": self.input.target.row_id, "root_span_id": root_span_id}}),
                    TriggerScope::Trace => json!({"trace_ref": {"object_type": object_type, "object_id": object_id,
                        "root_span_id": root_span_id}}),
                    TriggerScope::Group { .. } => json!({"group_ref": {"object_type": object_type,
                        "object_id": object_id, "root_span_ids": self.input.root_span_ids}}),
                }
            }
            OnlineResultForm::Scores | OnlineResultForm::Classes | OnlineResultForm::Tags => {
                Value::Object(self.input.arguments.clone())
            }
        };
        InvokeArguments { input, ..InvokeArguments::default() }
    }
}

fn reference_of(function: &OnlineFunction) -> (FunctionReference, FunctionVersion) {
    match function {
        OnlineFunction::Saved { id, version } => {
            let version = FunctionVersion { version: version.clone(), environment: None };
            (FunctionReference::Id(id.clone()), version)
        }
        OnlineFunction::Global { function_type, name } => {
            let function_type = function_type.name().to_owned();
            (FunctionReference::Global { name: name.clone(), function_type }, FunctionVersion::default())
        }
    }
}

/// Returns the target of the scorer's span. All spans below it have the purpose of scorers, so that no rule scores them.
async fn span_target(
    caller: &Caller,
    project: Uuid,
    (identity, parent, root): SpanPlace<'_>,
) -> Result<SpanTarget, Refusal> {
    let header = format!("project_id:{project}");
    let base = SpanTarget::of_header(caller, &header).await?;
    let base = base.ok_or_else(|| Refusal::internal("the log of a project is no parent of spans"))?;
    let identity = SpanIdentity {
        row_id: identity.row_id.to_string(),
        span_id: identity.span_id,
        root_span_id: root.to_owned(),
        parent_span_id: Some(parent.to_owned()),
    };
    let purpose = json!({"purpose": SCORER_PURPOSE});
    Ok(base.another(identity, Map::from_iter([("span_attributes".to_owned(), purpose)])))
}

/// Returns the error of a run for that of an invocation.
fn error_of(error: &InvokeError) -> OnlineRunError {
    let cause = match error.kind {
        // A repeated run has the effect of one.
        InvokeErrorKind::Lost
        | InvokeErrorKind::Upstream
        | InvokeErrorKind::RateLimited
        | InvokeErrorKind::Unavailable
        | InvokeErrorKind::TooLate => RunFailureCause::Transient,
        InvokeErrorKind::Failed => RunFailureCause::UserCode,
        InvokeErrorKind::Invalid
        | InvokeErrorKind::Forbidden
        | InvokeErrorKind::NotFound
        | InvokeErrorKind::TooLarge
        | InvokeErrorKind::NotServed => RunFailureCause::Permanent,
    };
    OnlineRunError { cause, message: error.to_string() }
}

impl Executor {
    /// Returns the principal with the present rights of a user, who has to be able to change the log.
    pub(crate) async fn author(&self, object: &ObjectKey, user: Uuid) -> Result<Principal, OnlineRunError> {
        let asker: Asker = asker_of(object.org, user);
        let principal = self.edge.identity.principal_now(&asker).await;
        let principal = principal.map_err(|why| self.unauthorized(&why, "is no longer in the organization"))?;
        let records = &self.edge.records;
        let home = records.object(&principal, ObjectKind::ProjectLogs, object.id, Permission::Update).await;
        home.map_err(|why| self.unauthorized(&why, "may not change the log"))?;
        Ok(principal)
    }

    fn unauthorized(&self, why: &assay_node_records::RecordsError, what: &str) -> OnlineRunError {
        match why.may_be_stale() {
            true => permanent(format!("the author of the rule {what}")),
            false => OnlineRunError { cause: RunFailureCause::Transient, message: why.to_string() },
        }
    }
}
