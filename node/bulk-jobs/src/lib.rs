//! Registry of bulk jobs, which change every row that a query selects.
//!
//! The registry tracks the progress of each job and lets its owner cancel it from any node. The request handler that
//! creates a job also runs it.
//!
//! A job is kept only in the memory of its node. When the process ends, the registry forgets the job, but its changes
//! remain. A job id contains the number of its node, so every node can locate the job.

mod table;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster::{Cluster, NoAnswer, Service};
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::{Builder, Uuid};

use table::JobTable;
pub use table::{BulkJob, JobOwner, JobState, TooManyJobs};

const SERVICE: &str = "jobs.bulk";
/// Time limit for a request to the node that runs a job.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Number of id bytes that hold the node number.
const NODE_BYTES: usize = 6;

/// Registry of this node's jobs, which also queries the other nodes.
pub struct BulkJobs {
    cluster: Arc<Cluster>,
    table: Arc<Mutex<JobTable>>,
}

/// Clock of the caller, in microseconds since 1970.
type Clock = fn() -> i64;

/// Handle through which the runner of a job reports its progress.
///
/// Dropping the handle before [`RunningJob::end`] marks the job as failed.
#[derive(Debug)]
pub struct RunningJob {
    id: Uuid,
    table: Arc<Mutex<JobTable>>,
    clock: Clock,
}

/// Error for a job whose node does not respond.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("this job runs on node {0}, which does not respond; try again")]
pub struct SilentNode(NodeId);

/// Request from one node to another for the jobs of an owner.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct JobQuestion {
    owner: JobOwner,
    /// Id of one job, or `None` for all jobs of the owner.
    id: Option<Uuid>,
    cancel: bool,
}

impl fmt::Debug for BulkJobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BulkJobs").finish_non_exhaustive()
    }
}

impl BulkJobs {
    /// Creates the registry and starts serving requests from other nodes.
    pub fn start(cluster: &Arc<Cluster>) -> Arc<BulkJobs> {
        let table = Arc::new(Mutex::new(JobTable::default()));
        cluster.serve(SERVICE, Arc::new(JobService(Arc::clone(&table))));
        Arc::new(BulkJobs { cluster: Arc::clone(cluster), table })
    }

    /// Registers a job.
    ///
    /// `what` describes the job for its owner, and `random` makes its id unique.
    pub fn begin(&self, owner: JobOwner, what: String, random: Uuid, clock: Clock) -> Result<RunningJob, TooManyJobs> {
        let id = job_id(self.cluster.node(), random);
        self.table.lock().begin(BulkJob::new(id, owner, what, clock()))?;
        Ok(RunningJob { id, table: Arc::clone(&self.table), clock })
    }

    /// Returns a job of an owner, and cancels it first if `cancel` is set.
    pub async fn look(&self, owner: JobOwner, id: Uuid, cancel: bool) -> Result<Option<BulkJob>, SilentNode> {
        let Some(node) = node_of(id) else { return Ok(None) };
        let asked = JobQuestion { owner, id: Some(id), cancel };
        if node == self.cluster.node() {
            return Ok(self.table.lock().answer(&asked.owner, asked.id, cancel).pop());
        }
        if !self.cluster.peer_counts().contains_key(&node) {
            return Ok(None);
        }
        Ok(self.ask(node, &asked).await.ok_or(SilentNode(node))?.pop())
    }

    /// Returns the owner's jobs on all responding nodes, newest first.
    pub async fn list(&self, owner: JobOwner) -> Vec<BulkJob> {
        let own = self.cluster.node();
        let asked = JobQuestion { owner, id: None, cancel: false };
        let others = self.cluster.peer_counts().into_keys().filter(|node| *node != own);
        let found = join_all(others.map(|node| self.ask(node, &asked))).await;
        let mut jobs = self.table.lock().answer(&owner, None, false);
        jobs.extend(found.into_iter().flatten().flatten());
        jobs.sort_by(|left, right| right.started.cmp(&left.started).then(left.id.cmp(&right.id)));
        jobs
    }

    async fn ask(&self, node: NodeId, asked: &JobQuestion) -> Option<Vec<BulkJob>> {
        let body = Bytes::from(serde_json::to_vec(asked).expect("plain data encodes"));
        let answer = self.cluster.ask(node, SERVICE, body, ANSWER_WITHIN).await.ok()?;
        serde_json::from_slice(&answer).ok()
    }
}

impl RunningJob {
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Returns whether the owner cancelled the job.
    pub fn is_cancelled(&self) -> bool {
        self.table.lock().is_cancelled(self.id)
    }

    /// Sets the number of rows that the query selects.
    pub fn set_matched(&self, rows: u64) {
        self.table.lock().change(self.id, |job| job.matched = Some(rows));
    }

    /// Adds to the number of changed rows.
    pub fn add_done(&self, rows: u64) {
        self.table.lock().change(self.id, |job| job.done += rows);
    }

    /// Records the result and the end time of the job.
    pub fn end(self, result: Result<(), String>) {
        self.table.lock().end(self.id, result, (self.clock)());
    }
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        // This has no effect on a job that has already ended.
        self.table.lock().abandon(self.id, (self.clock)());
    }
}

fn job_id(node: NodeId, random: Uuid) -> Uuid {
    let mut bytes = random.into_bytes();
    bytes[16 - NODE_BYTES..].copy_from_slice(&node.0.to_be_bytes()[8 - NODE_BYTES..]);
    Builder::from_custom_bytes(bytes).into_uuid()
}

fn node_of(id: Uuid) -> Option<NodeId> {
    let mut node = [0; 8];
    node[8 - NODE_BYTES..].copy_from_slice(&id.as_bytes()[16 - NODE_BYTES..]);
    (id.get_version_num() == 8).then(|| NodeId(u64::from_be_bytes(node)))
}

/// Service that answers job requests from other nodes.
#[derive(Debug)]
struct JobService(Arc<Mutex<JobTable>>);

impl Service for JobService {
    fn answer(&self, _from: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let table = Arc::clone(&self.0);
        async move {
            let refused = |why: serde_json::Error| NoAnswer::Refused(why.to_string());
            let JobQuestion { owner, id, cancel } = serde_json::from_slice(&body).map_err(refused)?;
            let jobs = table.lock().answer(&owner, id, cancel);
            Ok(Bytes::from(serde_json::to_vec(&jobs).map_err(refused)?))
        }
        .boxed()
    }
}
