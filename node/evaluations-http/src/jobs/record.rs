//! Record of one evaluation, as the catalog stores it.
//!
//! Nodes of several versions read the same record, so that new members need a default.

use assay_node_auth::Asker;
use assay_node_evaluations::{EvalEnd, EvalTarget};
use assay_storage_model::OrgId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// Evaluation with the revision of its record.
#[derive(Clone, Debug, PartialEq)]
pub struct EvalJobRecord {
    pub id: Uuid,
    pub org: OrgId,
    /// Revision of the stored record, or `None` before its first write.
    pub revision: Option<u64>,
    pub body: EvalJobBody,
}

/// Content of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvalJobBody {
    /// Principal on whose behalf the evaluation runs, with its rights at each time.
    pub asker: Asker,
    pub project_id: Uuid,
    pub request: EvalJobRequest,
    /// Version at which the rows of the source are read.
    #[serde(default)]
    pub data_version: Option<String>,
    pub target: EvalTarget,
    /// Experiment that the evaluation created.
    #[serde(default)]
    pub experiment: Option<EvalJobExperiment>,
    /// Name of the evaluation.
    pub name: String,
    /// Origin of the addresses in answers.
    pub origin: String,
    pub started_ms: u64,
    /// Process that runs the evaluation, or `None` if any node may continue it.
    #[serde(default)]
    pub runner: Option<Uuid>,
    /// Name of the node of the process.
    #[serde(default)]
    pub node: Option<String>,
    /// Number of the lease, which increases with each change of the process.
    pub epoch: u64,
    /// Number of renewals of the lease, so that each renewal changes the record.
    #[serde(default)]
    pub renewals: u64,
    /// Number of changes to another process that followed a lost lease.
    #[serde(default)]
    pub takeovers: u32,
    pub state: EvalJobState,
    #[serde(default)]
    pub is_cancelled: bool,
    /// Reason why no other process can continue the evaluation.
    #[serde(default)]
    pub bound_by: Option<String>,
    #[serde(default)]
    pub progress: EvalJobProgress,
    #[serde(default)]
    pub ended_ms: Option<u64>,
    /// Reason of a failure.
    #[serde(default)]
    pub error: Option<String>,
    /// Means of the scores of an evaluation without an experiment, by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub scores: Map<String, Value>,
    /// Summary from the server of a remote evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Value>,
}

/// Request of an evaluation, with pinned versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvalJobRequest {
    Body(Map<String, Value>),
    /// Key of the file with a body that is too large for the record.
    File(String),
}

/// Experiment that an evaluation created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalJobExperiment {
    pub id: Uuid,
    pub name: String,
}

/// State of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvalJobState {
    Running,
    Completed,
    TimedOut,
    Cancelled,
    Failed,
}

/// Progress of an evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalJobProgress {
    /// Cases of the evaluation. Each trial is one.
    pub cases: u64,
    /// Cases that have ended, written or not.
    pub done: u64,
    /// Written cases with an error.
    pub errors: u64,
    /// Scorers and classifiers that failed.
    pub scorer_errors: u64,
    /// Cases whose rows could not be written.
    pub unwritten: u64,
}

impl EvalJobState {
    pub fn name(self) -> &'static str {
        match self {
            EvalJobState::Running => "running",
            EvalJobState::Completed => "completed",
            EvalJobState::TimedOut => "timed_out",
            EvalJobState::Cancelled => "cancelled",
            EvalJobState::Failed => "failed",
        }
    }

    pub fn is_over(self) -> bool {
        self != EvalJobState::Running
    }

    pub fn of_end(end: EvalEnd) -> EvalJobState {
        match end {
            EvalEnd::Completed => EvalJobState::Completed,
            EvalEnd::TimedOut => EvalJobState::TimedOut,
            EvalEnd::Cancelled => EvalJobState::Cancelled,
            EvalEnd::WritesFailed => EvalJobState::Failed,
        }
    }
}

impl EvalJobRecord {
    /// Returns whether this process holds this lease according to the record.
    pub fn is_held_by(&self, runner: Uuid, epoch: u64) -> bool {
        self.body.runner == Some(runner) && self.body.epoch == epoch && !self.body.state.is_over()
    }
}
