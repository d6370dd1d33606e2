//! Deletion of the records of old evaluations.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::now_ms;
use crate::jobs::{EvalJobRecord, EvalJobs};

/// Interval between two sweeps of a node.
const SWEEP_EVERY: Duration = Duration::from_secs(600);
/// Upper bound of the records of ended evaluations of one organization.
const KEPT_PER_ORGANIZATION_MAX: usize = 500;
/// Time for which the record of an ended evaluation is kept, in milliseconds.
const KEPT_MS: u64 = 30 * 24 * 3_600_000;
/// Upper bound of the records that one sweep deletes.
const DELETED_AT_ONCE_MAX: usize = 200;

/// Sweeper of one node. Several nodes may sweep at once without harm.
#[derive(Debug, Default)]
pub struct Sweeper {
    last: Option<Instant>,
}

impl Sweeper {
    /// Sweeps if the last sweep is long ago.
    pub async fn sweep(&mut self, jobs: &EvalJobs) {
        let now = Instant::now();
        let last = *self.last.get_or_insert(now);
        if now < last + SWEEP_EVERY {
            return;
        }
        self.last = Some(now);
        for job in expired(jobs.all(), now_ms()).into_iter().take(DELETED_AT_ONCE_MAX) {
            if let Err(error) = jobs.delete(&job).await {
                tracing::warn!(job = %job.id, %error, "the record of an old evaluation could not be deleted");
                return;
            }
        }
    }
}

/// Returns the records that are too old, or too many for their organization.
fn expired(mut jobs: Vec<EvalJobRecord>, now_ms: u64) -> Vec<EvalJobRecord> {
    jobs.retain(|job| job.body.state.is_over());
    let ended = |job: &EvalJobRecord| job.body.ended_ms.unwrap_or(job.body.started_ms);
    jobs.sort_by_key(|job| std::cmp::Reverse(ended(job)));
    let mut kept: HashMap<_, usize> = HashMap::new();
    jobs.retain(|job| {
        let count = kept.entry(job.org).or_default();
        *count += 1;
        *count > KEPT_PER_ORGANIZATION_MAX || ended(job).saturating_add(KEPT_MS) < now_ms
    });
    jobs
}
