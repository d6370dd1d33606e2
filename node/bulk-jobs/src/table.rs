//! Bounded table of the jobs of one node, which performs no I/O.

use std::collections::BTreeMap;

use assay_storage_model::OrgId;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

/// Upper bound of the number of running jobs per user on a node.
const RUNNING_OF_USER_MAX: usize = 4;
/// Upper bound of the number of running jobs on a node.
const RUNNING_MAX: usize = 16;
/// Upper bound of the number of jobs that a node keeps. The oldest ended job is evicted first.
const KEPT_MAX: usize = 500;

/// Owner of a job: a user in an organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOwner {
    pub org: OrgId,
    pub user: Uuid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    Running,
    Done,
    Failed,
    Cancelled,
}

/// Bulk job and its progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkJob {
    pub id: Uuid,
    pub owner: JobOwner,
    /// Description of the job for its owner.
    pub what: String,
    pub state: JobState,
    /// Number of rows that the query selects, once known.
    pub matched: Option<u64>,
    pub done: u64,
    /// Start time in microseconds since 1970.
    pub started: i64,
    pub ended: Option<i64>,
    pub error: Option<String>,
    cancelled: bool,
}

/// Error for a job that would exceed the limit of running jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TooManyJobs {
    #[error("this user already runs {RUNNING_OF_USER_MAX} jobs; wait until one has ended, or cancel one")]
    OfUser,
    #[error("this node already runs {RUNNING_MAX} jobs; try again later")]
    OfNode,
}

impl BulkJob {
    pub fn new(id: Uuid, owner: JobOwner, what: String, started: i64) -> BulkJob {
        BulkJob {
            id,
            owner,
            what,
            state: JobState::Running,
            matched: None,
            done: 0,
            started,
            ended: None,
            error: None,
            cancelled: false,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct JobTable(BTreeMap<Uuid, BulkJob>);

impl JobTable {
    pub fn begin(&mut self, job: BulkJob) -> Result<(), TooManyJobs> {
        let running = || self.0.values().filter(|job| job.state == JobState::Running);
        if running().filter(|other| other.owner == job.owner).count() >= RUNNING_OF_USER_MAX {
            return Err(TooManyJobs::OfUser);
        }
        if running().count() >= RUNNING_MAX {
            return Err(TooManyJobs::OfNode);
        }
        while self.0.len() >= KEPT_MAX {
            let ended = self.0.values().filter(|job| job.state != JobState::Running);
            let Some(oldest) = ended.min_by_key(|job| job.started).map(|job| job.id) else { break };
            self.0.remove(&oldest);
        }
        self.0.insert(job.id, job);
        Ok(())
    }

    /// Returns the owner's job with the given id, or all jobs of the owner.
    ///
    /// If `cancel` is set, a running job that `id` names is cancelled first.
    pub fn answer(&mut self, owner: &JobOwner, id: Option<Uuid>, cancel: bool) -> Vec<BulkJob> {
        let wanted = self.0.values_mut().filter(|job| job.owner == *owner && id.is_none_or(|id| id == job.id));
        wanted
            .map(|job| {
                job.cancelled |= cancel && id.is_some() && job.state == JobState::Running;
                job.clone()
            })
            .collect()
    }

    pub fn is_cancelled(&self, id: Uuid) -> bool {
        self.0.get(&id).is_none_or(|job| job.cancelled)
    }

    pub fn change(&mut self, id: Uuid, change: impl FnOnce(&mut BulkJob)) {
        if let Some(job) = self.0.get_mut(&id) {
            change(job);
        }
    }

    pub fn end(&mut self, id: Uuid, result: Result<(), String>, now: i64) {
        self.change(id, |job| {
            job.ended = Some(now);
            job.state = match (&result, job.cancelled) {
                (Err(_), _) => JobState::Failed,
                (Ok(()), true) => JobState::Cancelled,
                (Ok(()), false) => JobState::Done,
            };
            job.error = result.err();
        });
    }

    /// Marks a running job as failed after its runner is gone.
    pub fn abandon(&mut self, id: Uuid, now: i64) {
        self.change(id, |job| {
            if job.state == JobState::Running {
                job.state = JobState::Failed;
                job.ended = Some(now);
                job.error = Some("the job stopped before it was complete; the changes that it made remain".into());
            }
        });
    }
}
