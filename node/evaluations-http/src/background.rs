//! Background work of a node: it runs evaluations, and takes those whose process is gone.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use assay_node_http::server::edge::Edge;
use assay_node_http::web::Data;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::clock::now_ms;
use crate::jobs::{EvalJobPut, EvalJobRecord, EvalJobState, EvalJobs};
use crate::run;
use crate::service::{EvalService, HeldEval, add};
use crate::sweep::Sweeper;

/// Interval between two looks at the evaluations of all nodes.
const SCAN_EVERY: Duration = Duration::from_millis(500);
/// Upper bound of the processes that continue one evaluation after a lost lease. An evaluation that ends its processes
/// fails beyond it.
const TAKEOVERS_MAX: u32 = 20;

/// Last change of a lease that this node saw.
struct SeenLease {
    revision: Option<u64>,
    since: Instant,
}

/// Runs until it is dropped. The leases of running evaluations are then released.
pub async fn run(edge: Data<Edge>) {
    let service = edge.state.get::<EvalService>();
    let jobs = EvalJobs::new(edge.records.catalog());
    let mut running = JoinSet::new();
    let mut seen = HashMap::new();
    let mut sweeper = Sweeper::default();
    loop {
        for held in service.take_waiting() {
            running.spawn(run::run(edge.clone(), Arc::clone(&service), held));
        }
        while let Some(ended) = running.try_join_next() {
            if let Err(why) = ended {
                tracing::error!(%why, "an evaluation ended with a panic; another process continues it");
            }
        }
        for job in abandoned(&edge, &service, &jobs, &mut seen) {
            take(&edge, &service, &jobs, job).await;
        }
        sweeper.sweep(&jobs).await;
        tokio::select! {
            () = sleep(SCAN_EVERY) => {}
            () = service.woken.notified() => {}
        }
    }
}

/// Returns the evaluations that no process runs.
fn abandoned(
    edge: &Edge,
    service: &EvalService,
    jobs: &EvalJobs,
    seen: &mut HashMap<Uuid, SeenLease>,
) -> Vec<EvalJobRecord> {
    let mut all = jobs.all();
    all.retain(|job| !job.body.state.is_over());
    seen.retain(|id, _| all.iter().any(|job| job.id == *id));
    all.retain(|job| {
        let lease = seen
            .entry(job.id)
            .and_modify(|lease| {
                if lease.revision != job.revision {
                    *lease = SeenLease { revision: job.revision, since: Instant::now() };
                }
            })
            .or_insert_with(|| SeenLease { revision: job.revision, since: Instant::now() });
        is_abandoned(edge, service, job, lease.since)
    });
    all
}

fn is_abandoned(edge: &Edge, service: &EvalService, job: &EvalJobRecord, since: Instant) -> bool {
    if service.has(job.id) {
        return false;
    }
    let Some(runner) = job.body.runner else { return true };
    // An earlier process of this node is gone, because it would hold the data directory.
    let is_earlier = job.body.node.as_deref() == Some(edge.console.node.as_str()) && runner != service.runner;
    let is_own = runner == service.runner;
    is_earlier || is_own || since.elapsed() >= run::STALE_AFTER
}

/// Takes the lease of an evaluation, unless another process is faster or this node is full.
async fn take(edge: &Data<Edge>, service: &Arc<EvalService>, jobs: &EvalJobs, mut job: EvalJobRecord) {
    let id = job.id;
    let Ok(slot) = service.enter(id) else { return };
    let was_lost = job.body.runner.is_some();
    job.body.runner = Some(service.runner);
    job.body.node = Some(edge.console.node.clone());
    job.body.epoch += 1;
    job.body.takeovers += u32::from(was_lost);
    if let Some(why) = end_of_takeover(&job) {
        (job.body.state, job.body.error, job.body.ended_ms) = (EvalJobState::Failed, Some(why), Some(now_ms()));
    }
    match jobs.put(&job).await {
        Ok(EvalJobPut::Written { .. }) if job.body.state.is_over() => {
            service.note_end(job.body.state);
        }
        Ok(EvalJobPut::Written { revision }) => {
            add(&service.counts.takeovers, 1);
            tracing::info!(job = %id, takeovers = job.body.takeovers, "this node continues an evaluation");
            job.revision = Some(revision);
            service.submit(HeldEval { job, work: None, slot, outputs: None });
        }
        // Another node continues it.
        Ok(EvalJobPut::Stale) => {}
        Err(error) => tracing::warn!(job = %id, %error, "the lease of an evaluation could not be taken; retrying"),
    }
}

/// Returns why no other process can continue an evaluation.
fn end_of_takeover(job: &EvalJobRecord) -> Option<String> {
    if let Some(reason) = &job.body.bound_by {
        return Some(format!("the node that ran the evaluation is gone, and no other node can continue it: {reason}"));
    }
    let takeovers = job.body.takeovers;
    (takeovers > TAKEOVERS_MAX).then(|| {
        format!(
            "the evaluation lost its node {takeovers} times; at most {TAKEOVERS_MAX} are allowed, because it may be \
             the cause"
        )
    })
}
