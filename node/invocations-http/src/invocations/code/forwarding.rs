//! Code tasks that run on another node of the cluster, and those of other nodes that run here.

use std::sync::{Arc, Weak};
use std::time::Duration;

use assay_node_auth::Asker;
use assay_node_code_forwarding::{CodeExecutor, ExecutionRequest, ForwardedCall, ForwardingError, Outcome};
use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::server::edge::Edge;
use assay_node_http::web::Data;
use assay_node_invocations::{CodeFailure, InvokeError, InvokeErrorKind};
use assay_node_runner::interpreters::WantedVersion;
use assay_node_runner::{CodeEvent, RunnerOffer};
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::services::error_of;
use super::CodeRunError;
use super::execution::{CodeTaskFailure, run_here};
use super::place::wait_here;
use super::task::CodeTask;

/// Seconds after which a call that no node took makes sense again.
const NOT_TAKEN_RETRY_SECONDS: u64 = 1;
/// Kinds of errors by their names between nodes.
const KINDS: [(InvokeErrorKind, &str); 11] = [
    (InvokeErrorKind::Invalid, "invalid"),
    (InvokeErrorKind::Forbidden, "forbidden"),
    (InvokeErrorKind::NotFound, "not_found"),
    (InvokeErrorKind::TooLarge, "too_large"),
    (InvokeErrorKind::Failed, "failed"),
    (InvokeErrorKind::Lost, "lost"),
    (InvokeErrorKind::NotServed, "not_served"),
    (InvokeErrorKind::Upstream, "upstream"),
    (InvokeErrorKind::RateLimited, "rate_limited"),
    (InvokeErrorKind::Unavailable, "unavailable"),
    (InvokeErrorKind::TooLate, "too_late"),
];

/// Task with the principal of its caller, whose rights the executing node works out.
#[derive(Debug, Serialize, Deserialize)]
struct ForwardedTask {
    asker: Asker,
    task: CodeTask,
}

/// Outcome of a task on another node.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ForwardedOutcome {
    Value(Value),
    Error(ForwardedFailure),
}

/// Error of a task on another node.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ForwardedFailure {
    kind: String,
    message: String,
    #[serde(default)]
    retry_after_s: Option<u64>,
    /// Name, message and stack of the error that the code raised.
    #[serde(default)]
    code: Option<(String, String, String)>,
}

impl ForwardedFailure {
    fn of(error: InvokeError) -> ForwardedFailure {
        let InvokeError { kind, message, retry_after_s, failure } = error;
        let name = KINDS.iter().find(|(known, _)| *known == kind).map_or("failed", |(_, name)| name);
        let code = failure.map(|failure| (failure.name, failure.message, failure.stack));
        ForwardedFailure { kind: name.to_owned(), message, retry_after_s, code }
    }

    fn into_error(self) -> InvokeError {
        let ForwardedFailure { kind, message, retry_after_s, code } = self;
        let known = KINDS.iter().find(|(_, name)| *name == kind);
        let kind = known.map_or(InvokeErrorKind::Failed, |(kind, _)| *kind);
        let failure = code.map(|(name, message, stack)| Box::new(CodeFailure { name, message, stack }));
        InvokeError { kind, message, retry_after_s, failure }
    }
}

/// Runs a task on a node that can. `refusal_here` says why this node does not run it.
pub(super) async fn run_elsewhere(
    caller: &Caller,
    task: CodeTask,
    (wanted, refusal_here): (WantedVersion<'_>, &str),
    events: Option<mpsc::Sender<CodeEvent>>,
) -> Result<Value, CodeRunError> {
    let call = forwarded_call(caller, task, events)?;
    match caller.edge.code_forwarding.call(call, wanted, refusal_here).await {
        Ok(outcome) => Ok(value_of(&outcome)?),
        Err(ForwardingError::NoNode(why)) => Err(CodeRunError::NoNode(why)),
        Err(error) => Err(forwarding_error(error).into()),
    }
}

/// Runs a task on an idle node. Returns `None` if the node did not start it.
pub(super) async fn run_on(
    node: NodeId,
    caller: &Caller,
    task: CodeTask,
    events: Option<mpsc::Sender<CodeEvent>>,
) -> Result<Option<Value>, InvokeError> {
    let call = forwarded_call(caller, task, events)?;
    match caller.edge.code_forwarding.call_on(node, call).await {
        Ok(outcome) if outcome.is_refused => Ok(None),
        Ok(outcome) => value_of(&outcome).map(Some),
        Err(ForwardingError::TooLarge(_) | ForwardingError::NotTaken(_)) => Ok(None),
        Err(error) => Err(forwarding_error(error)),
    }
}

fn forwarded_call(
    caller: &Caller,
    task: CodeTask,
    events: Option<mpsc::Sender<CodeEvent>>,
) -> Result<ForwardedCall, InvokeError> {
    let request = encoded(&ForwardedTask { asker: Asker::of(&caller.principal), task })?;
    Ok(ForwardedCall { request, time_max: caller.edge.code.time_max(), events })
}

/// Returns the value in the outcome of another node.
fn value_of(outcome: &Outcome) -> Result<Value, InvokeError> {
    let outcome = serde_json::from_slice(&outcome.content).map_err(|why| {
        tracing::error!(%why, "the outcome of a function on another node cannot be read");
        InvokeError::new(InvokeErrorKind::Failed, "the node that ran the function sent an outcome that cannot be read")
    });
    match outcome? {
        ForwardedOutcome::Value(value) => Ok(value),
        ForwardedOutcome::Error(failure) => Err(failure.into_error()),
    }
}

fn encoded(value: &impl Serialize) -> Result<Bytes, InvokeError> {
    serde_json::to_vec(value).map(Bytes::from).map_err(|why| {
        tracing::error!(%why, "a function call cannot be encoded for another node");
        InvokeError::new(InvokeErrorKind::Failed, "the call cannot be sent to the node that runs the function")
    })
}

fn forwarding_error(error: ForwardingError) -> InvokeError {
    let message = error.to_string();
    match error {
        ForwardingError::NoNode(_) => InvokeError::invalid(message),
        ForwardingError::TooLarge(_) => InvokeError::new(InvokeErrorKind::TooLarge, message),
        ForwardingError::NotTaken(_) => InvokeError {
            retry_after_s: Some(NOT_TAKEN_RETRY_SECONDS),
            ..InvokeError::new(InvokeErrorKind::Unavailable, message)
        },
        // Clients do not repeat this kind of error, and the function may have had effects.
        ForwardingError::Lost { .. } => InvokeError::new(InvokeErrorKind::Lost, message),
    }
}

/// Runs tasks of other nodes on this one from now on.
pub fn execute_forwarded_calls(edge: &Data<Edge>) {
    let edge = Arc::downgrade(&edge.clone().into_inner());
    edge.upgrade().inspect(|known| known.code_forwarding.execute_with(Arc::new(EdgeExecutor { edge })));
}

/// Execution of tasks of other nodes.
#[derive(Debug)]
struct EdgeExecutor {
    /// The edge owns what owns the executor.
    edge: Weak<Edge>,
}

impl CodeExecutor for EdgeExecutor {
    fn offer(&self) -> BoxFuture<'static, RunnerOffer> {
        let code = self.edge.upgrade().map(|edge| edge.code.clone());
        let refused = |why: &str| RunnerOffer { refusal: Some(why.to_owned()), ..RunnerOffer::default() };
        async move {
            let Some(code) = code else { return refused("this server is stopping") };
            match code.runner().await {
                Ok(runner) => runner.offer(),
                Err(why) => {
                    tracing::error!(%why, "code functions do not run");
                    refused("code functions could not be prepared; the log of this node says why")
                }
            }
        }
        .boxed()
    }

    fn execute(&self, request: ExecutionRequest) -> BoxFuture<'static, Outcome> {
        let edge = self.edge.upgrade();
        async move {
            let ran = match edge {
                Some(edge) => execute(Data::from(edge), request).await,
                None => Err(InvokeError::new(InvokeErrorKind::Unavailable, "the node is stopping").into()),
            };
            let (is_refused, outcome) = match ran {
                Ok(value) => (false, ForwardedOutcome::Value(value)),
                Err(CodeTaskFailure { error, is_refused }) => {
                    (is_refused, ForwardedOutcome::Error(ForwardedFailure::of(error)))
                }
            };
            // An empty outcome cannot be read, which its origin reports.
            Outcome { is_refused, content: encoded(&outcome).unwrap_or_default() }
        }
        .boxed()
    }
}

/// Runs a task of another node with the present rights of its caller.
async fn execute(edge: Data<Edge>, request: ExecutionRequest) -> Result<Value, CodeTaskFailure> {
    let ExecutionRequest { request, time_max, events } = request;
    let unreadable = |why: serde_json::Error| {
        InvokeError::new(InvokeErrorKind::Failed, format!("the call cannot be read by the node that runs it: {why}"))
    };
    let ForwardedTask { asker, task } = serde_json::from_slice(&request).map_err(unreadable)?;
    drop(request);
    let time_max: Duration = time_max.min(edge.code.time_max());
    let principal = edge.identity.principal_now(&asker).await.map_err(|why| error_of(Refusal::from(why)))?;
    let caller = Caller::of_background(edge, principal, Instant::now() + time_max);
    let slot = wait_here(&caller, &task, time_max).await?;
    run_here(&caller, task, (slot, time_max), events).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_survive_the_way_between_nodes() {
        let failure =
            CodeFailure { name: "TypeError".into(), message: "bad".into(), stack: "TypeError: bad\n at 3".into() };
        let busy =
            InvokeError { retry_after_s: Some(5), ..InvokeError::new(InvokeErrorKind::Unavailable, "too many run") };
        let errors = KINDS.iter().map(|(kind, name)| InvokeError::new(*kind, *name));
        for error in errors.chain([InvokeError::of_code(failure), busy]) {
            let sent = encoded(&ForwardedOutcome::Error(ForwardedFailure::of(error.clone()))).expect("bytes");
            let Ok(ForwardedOutcome::Error(read)) = serde_json::from_slice(&sent) else { panic!("an error") };
            assert_eq!(read.into_error(), error);
        }
    }

    #[test]
    fn an_error_of_an_unknown_kind_is_a_failure() {
        let sent = serde_json::json!({"error": {"kind": "a kind of a later version", "message": "m"}});
        let Ok(ForwardedOutcome::Error(read)) = serde_json::from_value(sent) else { panic!("an error") };
        assert_eq!(read.into_error(), InvokeError::new(InvokeErrorKind::Failed, "m"));
    }

    #[test]
    fn a_lost_call_is_not_repeated_by_clients_and_one_that_nobody_took_is() {
        let lost = forwarding_error(ForwardingError::Lost { node: NodeId(3), why: "does not respond".into() });
        assert_eq!((lost.kind, lost.retry_after_s), (InvokeErrorKind::Lost, None));
        let not_taken = forwarding_error(ForwardingError::NotTaken("busy".into()));
        assert_eq!((not_taken.kind, not_taken.retry_after_s), (InvokeErrorKind::Unavailable, Some(1)));
        let nobody = forwarding_error(ForwardingError::NoNode("no python".into()));
        assert_eq!(nobody.kind, InvokeErrorKind::Invalid);
    }
}
