//! Code functions on behalf of the caller: their code, their environment, and their run in a sandbox.

mod environment;
mod units;

use assay_node_http::responses::refusal::Refusal;
use assay_node_identity::InvocationCredential;
use assay_node_invocations::services::{CodeForm, CodeRequest};
use assay_node_invocations::{
    CodeFailure, EventOutput, InvokeError, InvokeErrorKind, InvokeEvent, InvokedFunction, LogScope,
};
use assay_node_prompts::TraceReference;
use assay_node_runner::runtimes::{CallForm, FunctionCall, WorkerTrace};
use assay_node_runner::{CodeCall, CodeError, CodeEvent, CodeRunner, WorkerOwner};
use assay_node_scorers::schema_complaint;
use serde_json::Value;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::services::{CallerServices, error_of};
use super::spans::target_of;

/// Upper bound of the events of a function that wait for their reader.
const EVENTS_WAITING_MAX: usize = 64;

/// Checks an input by the schema of the function's parameters (F-16).
pub(super) fn check_input(function: &InvokedFunction, input: &Value) -> Result<(), InvokeError> {
    let schema = &function.function_schema["parameters"];
    if !schema.is_object() || function.is_scorer() || function.is_classifier() {
        return Ok(());
    }
    schema_complaint(input, schema)
        .map_err(|why| InvokeError::invalid(format!("`input` does not fit the parameters of the function: {why}")))
}

/// Runs a code function.
pub(super) async fn run(
    services: &CallerServices,
    request: CodeRequest,
    output: EventOutput,
) -> Result<Value, InvokeError> {
    let caller = services.caller();
    let host = &caller.edge.code;
    let CodeRequest { function, form, input, trace, scope } = request;
    let runner = host.runner().await.map_err(invoke_error)?;
    let unit = units::of_function(services, &function).await?;
    runner.can_run(unit.unit.wanted()).map_err(invoke_error)?;
    let time_max = host.time_max();
    let credential = credential_of(services, time_max)?;
    let variables = environment::variables(services, &function).await?;
    let call = CodeCall {
        owner: owner_of(services),
        unit: unit.unit.clone(),
        call: FunctionCall {
            id: String::new(),
            form: call_form(form),
            input,
            parent: scope.as_ref().and_then(|scope| slug_of(services, scope)),
            trace: trace.map(worker_trace),
            environment: environment::of_call(services, &credential, &variables),
            hooks: None,
        },
        variables,
        time_max,
        events: None,
        depth: caller.invocation.map_or(0, |around| around.depth as usize + 1),
    };
    let ran = with_events(runner, call, output).await;
    // The credential ends with the call, and the bundle may be removed after it.
    drop((credential, unit));
    ran
}

/// Runs a call, and passes its events on while it runs.
async fn with_events(runner: &CodeRunner, call: CodeCall, output: EventOutput) -> Result<Value, InvokeError> {
    if !output.is_wanted() {
        return runner.call(call).await.map(|outcome| outcome.output.value).map_err(invoke_error);
    }
    let (sender, mut events) = mpsc::channel(EVENTS_WAITING_MAX);
    let running = runner.call(CodeCall { events: Some(sender), ..call });
    let passing = async {
        while let Some(event) = events.recv().await {
            if let CodeEvent::Console { stream, message } = event {
                output.send(InvokeEvent::Console { stream: stream.name(), message }).await;
            }
        }
    };
    // The events end with the call, which drops their sender.
    let (result, ()) = futures::join!(running, passing);
    result.map(|outcome| outcome.output.value).map_err(invoke_error)
}

fn credential_of(
    services: &CallerServices,
    time_max: std::time::Duration,
) -> Result<InvocationCredential, InvokeError> {
    let caller = services.caller();
    let lives = time_max + environment::CREDENTIAL_MARGIN;
    let issued = caller.edge.identity.issue_invocation(&caller.principal, caller.invocation, lives);
    issued.map_err(|why| error_of(Refusal::from(why)))
}

/// Returns the owner of the worker: nobody else's call reaches it.
fn owner_of(services: &CallerServices) -> WorkerOwner {
    let principal = &services.caller().principal;
    let acting = principal.impersonator.map_or(principal.user, |other| {
        // A worker of an impersonator is neither that of the user nor that of the impersonator.
        Uuid::new_v5(&principal.user, other.as_bytes())
    });
    WorkerOwner { organization: principal.org.0, project: services.project(), principal: acting }
}

fn call_form(form: CodeForm) -> CallForm {
    match form {
        CodeForm::Function => CallForm::Function,
        CodeForm::Scorer => CallForm::Scorer,
        CodeForm::Preprocessor => CallForm::Preprocessor,
    }
}

fn worker_trace(trace: TraceReference) -> WorkerTrace {
    let TraceReference { object_type, object_id, root_span_id } = trace;
    WorkerTrace { object_type, object_id, root_span_id }
}

/// Returns the span of the function in the form that SDKs accept as a parent.
fn slug_of(services: &CallerServices, scope: &LogScope) -> Option<String> {
    target_of(services.logged_object()?, scope).export()
}

/// Returns the id of a stored function.
fn id_of(function: &InvokedFunction) -> Option<Uuid> {
    function.id.as_deref().and_then(|id| Uuid::parse_str(id).ok())
}

/// Returns the invocation error for an error of the runner.
pub(super) fn invoke_error(error: CodeError) -> InvokeError {
    match error {
        CodeError::NotRun(why) => InvokeError::invalid(why),
        CodeError::Function(failure) => {
            InvokeError::of_code(CodeFailure { name: failure.name, message: failure.message, stack: failure.stack })
        }
        CodeError::Busy { why, retry_after_seconds } => InvokeError {
            retry_after_s: Some(retry_after_seconds),
            ..InvokeError::new(InvokeErrorKind::Unavailable, why)
        },
        CodeError::Node(why) => {
            tracing::error!(%why, "a function could not be run");
            InvokeError::new(InvokeErrorKind::Failed, "this node could not run the function; its log says why")
        }
    }
}
