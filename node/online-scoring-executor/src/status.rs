//! States of the logs that nodes follow, which every node can report.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use assay_cluster::{NoAnswer, Service};
use assay_node_online_scoring::RuleCounts;
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Executor;

pub(crate) const SERVICE: &str = "scoring.status";
/// Time limit for the answer of another node.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Errors of each rule that its state shows.
pub(crate) const LAST_ERRORS_MAX: usize = 10;

/// State of one log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LogStatus {
    pub rules: BTreeMap<Uuid, RuleStatus>,
    pub open: u64,
    pub running: u64,
    pub lag_ms: u64,
}

/// State of one rule.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RuleStatus {
    pub counts: RuleCounts,
    pub errors: VecDeque<NotedError>,
    /// Reason why the rule does not run although it is active.
    pub paused: Option<String>,
}

/// Error of a run, or a cap that was reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NotedError {
    pub at_ms: u64,
    pub row_id: Option<String>,
    pub function: Option<String>,
    pub message: String,
}

impl RuleStatus {
    pub fn note(&mut self, error: NotedError) {
        if self.errors.len() >= LAST_ERRORS_MAX {
            self.errors.pop_front();
        }
        self.errors.push_back(error);
    }

    /// Returns the answer of the operation, newest errors first.
    pub fn to_json(&self) -> Value {
        let mut answer = self.counts.to_json();
        let errors = self.errors.iter().rev().map(|error| {
            json!({"at": assay_node_online_scoring::timestamp_text(error.at_ms), "row_id": error.row_id,
                "function": error.function, "message": error.message})
        });
        answer["last_errors"] = errors.collect();
        answer["paused_reason"] = self.paused.clone().into();
        answer
    }
}

/// Service that reports the states of this node to others.
#[derive(Debug)]
pub(crate) struct StatusService(pub Arc<Executor>);

impl Service for StatusService {
    fn answer(&self, _from: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let executor = Arc::clone(&self.0);
        async move {
            let refused = |why: serde_json::Error| NoAnswer::Refused(why.to_string());
            let project: Uuid = serde_json::from_slice(&body).map_err(refused)?;
            let found = executor.logs.lock().get(&project).cloned();
            Ok(Bytes::from(serde_json::to_vec(&found).map_err(refused)?))
        }
        .boxed()
    }
}

impl Executor {
    /// Returns the state of a log from the node that follows it; `None` if no node says that it does.
    pub(crate) async fn log_status(&self, project: Uuid) -> Option<LogStatus> {
        if let Some(own) = self.logs.lock().get(&project).cloned() {
            return Some(own);
        }
        let own = self.cluster.node();
        let others = self.cluster.peer_counts().into_keys().filter(|node| *node != own);
        let answers = join_all(others.map(|node| self.ask(node, project))).await;
        answers.into_iter().flatten().next()
    }

    async fn ask(&self, node: NodeId, project: Uuid) -> Option<LogStatus> {
        let body = Bytes::from(serde_json::to_vec(&project).ok()?);
        let answer = self.cluster.ask(node, SERVICE, body, ANSWER_WITHIN).await.ok()?;
        serde_json::from_slice::<Option<LogStatus>>(&answer).ok().flatten()
    }
}
