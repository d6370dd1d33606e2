//! Run of a code task on this node, with the present rights of its caller.

use std::sync::Arc;
use std::time::Duration;

use assay_node_auth::Principal;
use assay_node_http::requests::caller::Caller;
use assay_node_identity::Identity;
use assay_node_invocations::{CodeFailure, InvokeError, InvokeErrorKind};
use assay_node_records::RecordsError;
use assay_node_runner::runtimes::{CallForm, FunctionCall};
use assay_node_runner::{
    CallRights, CodeCall, CodeError, CodeEvent, FunctionSlot, SecretLoan, WorkerOwner, WorkerSecret,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::task::CodeTask;
use super::{environment, units};

/// Time that the rights of a call last beyond its longest time.
const CREDENTIAL_MARGIN: Duration = Duration::from_secs(60);
/// Seconds after which a call makes sense again for which a node had no credential.
const BUSY_RETRY_SECONDS: u64 = 5;

/// Failure of a code task.
#[derive(Debug)]
pub(super) struct CodeTaskFailure {
    pub error: InvokeError,
    /// Whether the node refused the task before any of its code ran.
    pub is_refused: bool,
}

impl From<InvokeError> for CodeTaskFailure {
    fn from(error: InvokeError) -> CodeTaskFailure {
        CodeTaskFailure { error, is_refused: false }
    }
}

impl From<CodeError> for CodeTaskFailure {
    fn from(error: CodeError) -> CodeTaskFailure {
        let is_refused = matches!(error, CodeError::NotRun(_) | CodeError::Busy { .. });
        CodeTaskFailure { error: invoke_error(error), is_refused }
    }
}

/// Runs a task in a slot of this node. Dropping the future ends the function.
pub(super) async fn run_here(
    caller: &Caller,
    task: CodeTask,
    (slot, time_max): (FunctionSlot, Duration),
    events: Option<mpsc::Sender<CodeEvent>>,
) -> Result<Value, CodeTaskFailure> {
    let runner = caller.edge.code.runner().await?;
    let unit = units::of_data(caller, &task.data).await?;
    runner.can_run(unit.unit.wanted())?;
    let variables = environment::variables(caller, task.project, task.function).await?;
    let (environment, secret_names) = environment::of_cluster(caller, &variables);
    let form = task.form;
    let rights = CallerRights {
        identity: caller.edge.identity.clone(),
        principal: caller.principal.clone(),
        depth: task.depth,
        time_max: time_max + CREDENTIAL_MARGIN,
    };
    let call = CodeCall {
        owner: owner_of(caller, task.project),
        unit: unit.unit.clone(),
        call: FunctionCall {
            id: String::new(),
            form: task.form,
            input: task.input,
            parent: task.parent,
            trace: task.trace,
            environment,
            hooks: task.hooks,
        },
        variables,
        rights: Arc::new(rights),
        secret_names,
        time_max,
        events,
    };
    let ran = runner.call(slot, call).await;
    // The bundle may be removed after the call.
    drop(unit);
    let output = ran?.output;
    Ok(match form {
        CallForm::EvalTask => json!({"value": output.value, "notes": output.notes}),
        _ => output.value,
    })
}

/// Rights of a caller, which the secret of a worker has during the caller's invocation.
#[derive(Debug)]
struct CallerRights {
    identity: Identity,
    principal: Principal,
    /// Number of invocations around this one.
    depth: u32,
    time_max: Duration,
}

impl CallRights for CallerRights {
    fn issue(&self) -> Result<WorkerSecret, CodeError> {
        let issued = self.identity.issue_worker_credential().map_err(rights_error)?;
        Ok(WorkerSecret::new(issued.secret.expose().to_owned(), issued))
    }

    fn lend(&self, secret: &WorkerSecret) -> Result<SecretLoan, CodeError> {
        let lent = self.identity.lend_worker_credential(secret.expose(), &self.principal, self.depth, self.time_max);
        lent.map(SecretLoan::new).map_err(rights_error)
    }
}

fn rights_error(error: RecordsError) -> CodeError {
    match error {
        RecordsError::Busy(why) => CodeError::Busy { why, retry_after_seconds: BUSY_RETRY_SECONDS },
        RecordsError::Internal(why) => CodeError::Node(why),
        why => CodeError::NotRun(why.to_string()),
    }
}

/// Returns the owner of the worker: nobody else's call reaches it.
pub(super) fn owner_of(caller: &Caller, project: Option<Uuid>) -> WorkerOwner {
    let principal = &caller.principal;
    let acting = principal.impersonator.map_or(principal.user, |other| {
        // A worker of an impersonator is neither that of the user nor that of the impersonator.
        Uuid::new_v5(&principal.user, other.as_bytes())
    });
    WorkerOwner { organization: principal.org.0, project, principal: acting }
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
            InvokeError::new(InvokeErrorKind::Failed, "the function could not be started; the log of its node says why")
        }
    }
}
