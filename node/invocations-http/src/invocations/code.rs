//! Code functions on behalf of the caller: their code, their environment, and their run in a sandbox.
//!
//! ```text
//! request ── task ──▶ this node can run it? ── yes ──▶ place: a slot here, or an idle node if that comes first
//!                                           │            └─▶ execution: bundle, variables, credential, worker
//!                                           └─ no ───▶ forwarding ──▶ place and execution on another node
//! ```

mod environment;
mod execution;
mod forwarding;
mod input;
mod place;
mod task;
mod units;

use assay_node_http::requests::caller::Caller;
use assay_node_invocations::services::{CaseNotes, CodeForm, CodeRequest, CodeValue};
use assay_node_invocations::{EventOutput, InvokeError, InvokeEvent};
use assay_node_runner::interpreters::WantedVersion;
use assay_node_runner::{CodeError, CodeEvent, CodeHost};
use serde_json::Value;
use tokio::sync::mpsc;

use super::services::CallerServices;
use forwarding::run_elsewhere;
use place::run_soonest;
use task::CodeTask;

pub use forwarding::execute_forwarded_calls;
pub(super) use input::checked_input;

/// Upper bound of the events of a function that wait for their reader.
const EVENTS_WAITING_MAX: usize = 64;

/// Runs a code function on a node of the cluster that can.
pub(super) async fn run(
    services: &CallerServices,
    request: CodeRequest,
    output: EventOutput,
) -> Result<CodeValue, InvokeError> {
    let is_eval_task = request.form == CodeForm::EvalTask;
    let value = run_task(services.caller(), CodeTask::new(services, request), output).await?;
    match is_eval_task {
        true => Ok(with_notes(value)),
        false => Ok(CodeValue { value, notes: None }),
    }
}

/// Lists the evaluators of a bundle by name. `data` is the member of that name in a function's `function_data`.
pub(super) async fn list_evaluators(services: &CallerServices, data: Value) -> Result<Value, InvokeError> {
    let task = CodeTask::of_evaluators(services, data);
    run_task(services.caller(), task, EventOutput::default()).await
}

/// Splits the value of an evaluation's task from what the task left in its hooks.
fn with_notes(mut value: Value) -> CodeValue {
    let mut notes = value["notes"].take();
    let notes = notes.is_object().then(|| CaseNotes { metadata: notes["metadata"].take(), tags: notes["tags"].take() });
    CodeValue { value: value["value"].take(), notes }
}

/// Runs a task on a node of the cluster that can.
async fn run_task(caller: &Caller, task: CodeTask, output: EventOutput) -> Result<Value, InvokeError> {
    // A second try, if no node of the cluster has Node.js.
    let again = match caller.edge.code.has_quickjs_for_node() {
        true => units::for_quickjs(&task.data).map(|data| CodeTask { data, ..task.clone() }),
        false => None,
    };
    let ran = match (run_somewhere(caller, task, &output).await, again) {
        (Err(CodeRunError::NoNode(_)), Some(again)) => run_somewhere(caller, again, &output).await,
        (ran, _) => ran,
    };
    ran.map_err(CodeRunError::into_error)
}

/// Reason why a task has no value.
#[derive(Debug)]
enum CodeRunError {
    /// No node of the cluster can run the code. The text says what is missing where.
    NoNode(String),
    Failed(InvokeError),
}

impl CodeRunError {
    fn into_error(self) -> InvokeError {
        match self {
            CodeRunError::NoNode(why) => InvokeError::invalid(why),
            CodeRunError::Failed(error) => error,
        }
    }
}

impl From<InvokeError> for CodeRunError {
    fn from(error: InvokeError) -> CodeRunError {
        CodeRunError::Failed(error)
    }
}

/// Runs a task on this node, or on another one if this node cannot or is busy.
async fn run_somewhere(caller: &Caller, task: CodeTask, output: &EventOutput) -> Result<Value, CodeRunError> {
    let runtime = units::runtime_of(&task.data)?;
    let wanted = runtime.wanted();
    let code = &caller.edge.code;
    match refusal_here(code, wanted).await {
        None => Ok(with_events(output, |events| run_soonest(caller, task, wanted, events)).await?),
        Some(why) => with_events(output, |events| run_elsewhere(caller, task, (wanted, &why), events)).await,
    }
}

/// Returns why this node does not run code of a runtime and a version, or `None` if it does.
async fn refusal_here(code: &CodeHost, wanted: WantedVersion<'_>) -> Option<String> {
    let can_run = match code.runner().await {
        Ok(runner) => runner.can_run(wanted),
        Err(why) => Err(why),
    };
    can_run.err().map(|why| match why {
        CodeError::Node(why) => {
            tracing::error!(%why, "code functions do not run");
            "code functions could not be prepared; the log of this node says why".to_owned()
        }
        why => why.to_string(),
    })
}

/// Runs a call, and passes its events on while it runs.
async fn with_events<F: Future>(
    output: &EventOutput,
    run: impl FnOnce(Option<mpsc::Sender<CodeEvent>>) -> F,
) -> F::Output {
    if !output.is_wanted() {
        return run(None).await;
    }
    let (sender, mut events) = mpsc::channel(EVENTS_WAITING_MAX);
    let passing = async {
        while let Some(event) = events.recv().await {
            if let CodeEvent::Console { stream, message } = event {
                output.send(InvokeEvent::Console { stream: stream.name(), message }).await;
            }
        }
    };
    // The events end with the call, which drops their sender.
    let (result, ()) = futures::join!(run(Some(sender)), passing);
    result
}
