//! Place of a call that this node can run: a slot here, or an idle node of the cluster.

use std::pin::pin;
use std::time::Duration;

use assay_node_http::requests::caller::Caller;
use assay_node_invocations::InvokeError;
use assay_node_runner::interpreters::WantedVersion;
use assay_node_runner::{CodeError, CodeEvent, FunctionSlot};
use assay_storage_model::NodeId;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::execution::{CodeTaskFailure, invoke_error, owner_of, run_here};
use super::forwarding::run_on;
use super::task::CodeTask;

/// Time that a call waits for a slot before it looks for an idle node. Another node has to start a worker first.
const IDLE_LOOK_AFTER: Duration = Duration::from_millis(100);
/// Interval between two looks for an idle node.
const IDLE_LOOK_EVERY: Duration = Duration::from_millis(250);

/// Place at which a call can run now.
enum CallPlace {
    Here(FunctionSlot),
    Idle(NodeId),
}

/// Runs a task where it can start first: on this node, or on one that is idle while this one is busy.
pub(super) async fn run_soonest(
    caller: &Caller,
    task: CodeTask,
    wanted: WantedVersion<'_>,
    events: Option<mpsc::Sender<CodeEvent>>,
) -> Result<Value, InvokeError> {
    let time_max = caller.edge.code.time_max();
    let slot = match first_place(caller, &task, wanted).await.map_err(invoke_error)? {
        CallPlace::Here(slot) => slot,
        CallPlace::Idle(node) => match run_on(node, caller, task.clone(), events.clone()).await? {
            Some(value) => return Ok(value),
            None => wait_here(caller, &task, time_max).await.map_err(invoke_error)?,
        },
    };
    let ran = run_here(caller, task, (slot, time_max), events).await;
    ran.map_err(|CodeTaskFailure { error, .. }| error)
}

/// Waits for a slot of this node. Dropping the future leaves the queue.
pub(super) async fn wait_here(caller: &Caller, task: &CodeTask, time_max: Duration) -> Result<FunctionSlot, CodeError> {
    let runner = caller.edge.code.runner().await?;
    let owner = owner_of(caller, task.project);
    runner.slot(&owner, task.depth as usize, Instant::now() + time_max).await
}

/// Waits for a slot of this node, or for an idle node that can run the code.
///
/// Calls of functions stay on their node: the call around them waits there.
async fn first_place(caller: &Caller, task: &CodeTask, wanted: WantedVersion<'_>) -> Result<CallPlace, CodeError> {
    let forwarding = &caller.edge.code_forwarding;
    let mut slot = pin!(wait_here(caller, task, caller.edge.code.time_max()));
    if task.depth > 0 {
        return slot.await.map(CallPlace::Here);
    }
    let idle = async {
        sleep(IDLE_LOOK_AFTER).await;
        loop {
            if let Some(node) = forwarding.idle_node(wanted).await {
                return node;
            }
            sleep(IDLE_LOOK_EVERY).await;
        }
    };
    tokio::select! {
        biased;
        slot = &mut slot => match slot {
            Ok(slot) => Ok(CallPlace::Here(slot)),
            // All places in the queue are taken.
            Err(busy @ CodeError::Busy { .. }) => forwarding.idle_node(wanted).await.map(CallPlace::Idle).ok_or(busy),
            Err(error) => Err(error),
        },
        node = idle => Ok(CallPlace::Idle(node)),
    }
}
