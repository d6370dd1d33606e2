//! Run of one evaluation on this node, under its lease.
//!
//! | module | subject |
//! |---|---|
//! | `lease` | renewal of the lease, and the signals that stop a run |
//! | `driver` | effects of the state machine |
//! | `calls` | calls of tasks and scorers |
//! | `writes` | writes of rows |
//! | `restore` | cases that an earlier process has written |

mod calls;
mod driver;
mod lease;
mod restore;
mod writes;

use std::sync::Arc;
use std::time::Duration;

use assay_node_evaluations::{EvalEnd, EvalTotals};
use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::Data;
use serde_json::Map;
use tokio::time::{Instant, sleep};

use crate::clock::now_ms;
use crate::jobs::{EvalJobBody, EvalJobState};
use crate::launch::{EvalWork, PreparedEval, prepare_again};
use crate::service::{EvalService, EvalSlot, HeldEval, add};
pub use driver::Driven;
use driver::EvalDriver;
use lease::LeaseStop;
pub use lease::{EvalLease, STALE_AFTER};

/// Upper bound of the attempts to prepare an evaluation again.
const PREPARE_ATTEMPTS_MAX: u32 = 20;
/// Pause between two attempts.
const PREPARE_WAIT: Duration = Duration::from_secs(1);
/// Upper bound of the time that one step of background work waits in queues.
pub const QUEUE_WAIT: Duration = Duration::from_secs(30);

/// Runs an evaluation to its end, or until its lease is lost.
pub async fn run(edge: Data<Edge>, service: Arc<EvalService>, held: HeldEval) {
    let HeldEval { job, work, mut slot, outputs } = held;
    let id = job.id;
    add(&service.counts.started, 1);
    let lease = EvalLease::start(edge.clone(), Arc::clone(&service), job, slot.cancelled.clone());
    let ended = async {
        let caller = lease.caller().await?;
        let (prepared, restored) = match work {
            Some(EvalWork::Remote(remote)) => return remote.run(&lease, outputs).await,
            Some(EvalWork::Here(prepared)) => (*prepared, Vec::new()),
            None => {
                let prepared = Box::pin(prepared_again(&lease, &mut slot)).await?;
                let written = restore::written_cases(&caller, &prepared.plan).await?;
                (prepared, written)
            }
        };
        let driver = Box::pin(EvalDriver::new(&lease, prepared, outputs)).await?;
        Ok::<Driven, Refusal>(driver.run(restored).await)
    };
    let stopped = lease.stopped();
    let ended = tokio::select! {
        ended = ended => ended,
        // Only signals that no driver can answer end the run from outside.
        stop = stopped => Ok(Driven::Stopped(stop)),
    };
    match ended {
        Ok(Driven::Ended { end, totals, has_experiment }) => {
            service.note_end(EvalJobState::of_end(end));
            lease.finish(|body| finished(body, end, &totals, has_experiment)).await;
        }
        Ok(Driven::Stopped(LeaseStop::Lost)) => {
            add(&service.counts.lost_leases, 1);
            tracing::warn!(job = %id, "this node stopped an evaluation, because it lost its lease");
            lease.abandon();
        }
        Ok(Driven::Remote { state, summary }) => {
            service.note_end(state);
            let ended = |body: &mut EvalJobBody| {
                over(body, state);
                body.summary.clone_from(&summary);
            };
            lease.finish(ended).await;
        }
        Ok(Driven::Stopped(LeaseStop::Failed(why))) => fail(&service, lease, why).await,
        Err(refusal) => fail(&service, lease, refusal.message).await,
    }
}

async fn fail(service: &EvalService, lease: EvalLease, why: String) {
    service.note_end(EvalJobState::Failed);
    let failed = |body: &mut EvalJobBody| {
        over(body, EvalJobState::Failed);
        body.error = Some(why.clone());
    };
    lease.finish(failed).await;
}

/// Enters a state in which an evaluation has ended into its record.
fn over(body: &mut EvalJobBody, state: EvalJobState) {
    (body.state, body.ended_ms) = (state, Some(now_ms()));
    // A cancel on this node may end the run before it is in the record.
    body.is_cancelled |= state == EvalJobState::Cancelled;
}

/// Enters the end of a run into its record.
fn finished(body: &mut EvalJobBody, end: EvalEnd, totals: &EvalTotals, has_experiment: bool) {
    over(body, EvalJobState::of_end(end));
    body.progress = driver::progress_of(totals);
    if end == EvalEnd::WritesFailed {
        body.error = Some("the rows of several cases in a row could not be written".to_owned());
    }
    // The summary of an experiment comes from its rows.
    body.scores = match has_experiment {
        true => Map::new(),
        false => totals.scores.iter().filter_map(|(name, score)| Some((name.clone(), score.mean()?.into()))).collect(),
    };
}

/// Prepares an evaluation of another process. Errors that may pass are repeated.
async fn prepared_again(lease: &EvalLease, slot: &mut EvalSlot) -> Result<PreparedEval, Refusal> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let caller = lease.caller().await?;
        match prepare_again(&caller, &lease.job(), slot).await {
            Err(refusal) if may_pass(&refusal) && attempts < PREPARE_ATTEMPTS_MAX => sleep(PREPARE_WAIT).await,
            prepared => return prepared,
        }
    }
}

/// Returns whether the same request may succeed soon.
pub fn may_pass(refusal: &Refusal) -> bool {
    matches!(refusal.kind, ErrorKind::Busy | ErrorKind::Unavailable)
}

/// Returns the caller with a new deadline for its next step.
pub fn patient(caller: &Caller) -> Caller {
    caller.waiting_until(Instant::now() + QUEUE_WAIT)
}
