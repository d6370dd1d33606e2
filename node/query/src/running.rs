//! Running queries: the tracker of each one, and their list and cancels over all nodes.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use assay_cluster::{NoAnswer, Service};
use assay_node_running_queries::{
    QueryDescription, QueryEnding, QueryKind, QueryMeters, QueryOwner, QueryProgress, QueryTicket, RunningQueries,
    RunningQuery, RunningQuestion, SlowThreshold,
};
use assay_node_usage::{UsageAmounts, UsageMeter};
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use uuid::Uuid;

use crate::context::QueryContext;
use crate::request::Bounded;
use crate::{AskError, Home, Queries, async_query_jobs};

/// Name of the service for other nodes.
const RUNNING: &str = "query.running";
/// Time limit for the answer of another node.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Upper bound of the objects in a line of the log.
const OBJECTS_LOGGED_MAX: usize = 3;

/// Registry and meters of the queries that this node coordinates.
#[derive(Debug)]
pub(crate) struct RunningState {
    pub registry: RunningQueries,
    pub meters: QueryMeters,
    slow: SlowThreshold,
    /// Usage by credential, once the program has opened it.
    usage: OnceLock<Arc<UsageMeter>>,
}

impl RunningState {
    pub fn new(slow_seconds: u64) -> RunningState {
        let slow = SlowThreshold::of_seconds(slow_seconds);
        RunningState {
            registry: RunningQueries::default(),
            meters: QueryMeters::default(),
            slow,
            usage: OnceLock::new(),
        }
    }
}

/// Tracker of one query. When it is dropped, the query has ended.
#[derive(Debug)]
pub(crate) struct QueryTracker {
    context: Arc<QueryContext>,
    ticket: QueryTicket,
    owner: QueryOwner,
    credential: Uuid,
    kind: QueryKind,
    text: Arc<str>,
    objects: String,
    /// Time that the query waited and ran so far.
    took: Duration,
    /// `None` while its client may request further rows.
    ending: Option<QueryEnding>,
}

impl QueryTracker {
    pub fn begin(
        context: &Arc<QueryContext>,
        credential: Uuid,
        (owner, kind): (QueryOwner, QueryKind),
        asked: &Bounded,
        objects: &[Home],
    ) -> QueryTracker {
        let id = async_query_jobs::new_name(context.cluster.node(), Uuid::new_v4());
        let objects: Vec<String> = objects.iter().map(|home| home.object.to_string()).collect();
        let logged = shortened(&objects);
        let (text, started) = (Arc::clone(&asked.text), (context.clock)());
        let description = QueryDescription { owner, kind, objects, text: Arc::clone(&text), started };
        let ticket = context.running.registry.begin(id, description);
        let context = Arc::clone(context);
        let took = Duration::ZERO;
        QueryTracker { context, ticket, owner, credential, kind, text, objects: logged, took, ending: None }
    }

    pub fn progress(&self) -> &Arc<QueryProgress> {
        self.ticket.progress()
    }

    /// Returns a future that ends when the query is cancelled.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        self.ticket.cancelled()
    }

    /// Notes the time and the result of a part.
    pub fn note<T>(&mut self, took: Duration, part: &Result<T, AskError>, is_last: bool) {
        self.took += took;
        self.ending = match part {
            Ok(_) => is_last.then_some(QueryEnding::Completed),
            Err(AskError::Cancelled) => Some(QueryEnding::Cancelled),
            Err(AskError::Refused { .. } | AskError::Busy(_)) => Some(QueryEnding::Refused),
            Err(_) => Some(QueryEnding::Failed),
        };
    }
}

impl Drop for QueryTracker {
    fn drop(&mut self) {
        let running = &self.context.running;
        let ending = self.ending.unwrap_or(QueryEnding::Abandoned);
        running.meters.ended(self.kind, self.owner.organization, ending, self.took);
        if let Some(usage) = running.usage.get().filter(|_| self.kind != QueryKind::Internal) {
            let amounts = UsageAmounts { queries: 1, ..UsageAmounts::default() };
            usage.count(self.owner.organization, self.credential, amounts);
        }
        if !running.slow.is_slow(self.took) {
            return;
        }
        let usage = self.ticket.progress().usage();
        tracing::info!(
            query = %self.ticket.id(),
            organization = %self.owner.organization,
            user = %self.owner.user,
            kind = self.kind.name(),
            objects = %self.objects,
            seconds = self.took.as_secs_f64(),
            rows_scanned = usage.rows_scanned,
            memory_bytes = usage.memory_bytes,
            outcome = ending.name(),
            text = %self.text,
            "a query was slow"
        );
    }
}

/// Lists the first objects, and the number of further ones.
fn shortened(objects: &[String]) -> String {
    let shown = objects.iter().take(OBJECTS_LOGGED_MAX).map(String::as_str).collect::<Vec<_>>().join(" ");
    match objects.len().saturating_sub(OBJECTS_LOGGED_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Running queries of all nodes.
#[derive(Clone, Debug, Default)]
pub struct RunningList {
    /// Queries, oldest first.
    pub queries: Vec<RunningQuery>,
    /// Nodes that did not answer, whose queries are missing.
    pub silent: Vec<NodeId>,
}

impl Queries {
    /// Returns running queries of all nodes.
    pub async fn running(&self, question: RunningQuestion) -> RunningList {
        let cluster = &self.context.cluster;
        let question = RunningQuestion { cancel: false, ..question };
        let others: Vec<NodeId> = cluster.peer_counts().into_keys().filter(|node| *node != cluster.node()).collect();
        let asked = others.iter().map(|node| async move { (*node, self.ask_node(*node, &question).await) });
        let mut list = RunningList { queries: self.context.running.registry.answer(&question), silent: Vec::new() };
        for (node, answer) in join_all(asked).await {
            match answer {
                Some(queries) => list.queries.extend(queries),
                None => list.silent.push(node),
            }
        }
        list.queries.sort_by_key(|query| (query.started, query.id));
        list
    }

    /// Cancels a query on the node that runs it. Returns it, or `None` if no such query runs.
    pub async fn cancel(&self, id: Uuid, question: RunningQuestion) -> Result<Option<RunningQuery>, AskError> {
        let cluster = &self.context.cluster;
        let question = RunningQuestion { id: Some(id), cancel: true, ..question };
        let found = match async_query_jobs::node_of(id) {
            Some(node) if node == cluster.node() => self.context.running.registry.answer(&question),
            Some(node) if cluster.has_node(node) => {
                let silent = || format!("this query runs on node {node}, which does not respond; try again");
                self.ask_node(node, &question).await.ok_or_else(|| AskError::Unavailable(silent()))?
            }
            Some(_) | None => Vec::new(),
        };
        Ok(found.into_iter().next())
    }

    async fn ask_node(&self, node: NodeId, question: &RunningQuestion) -> Option<Vec<RunningQuery>> {
        let body = Bytes::from(serde_json::to_vec(question).expect("plain data encodes"));
        let answer = self.context.cluster.ask(node, RUNNING, body, ANSWER_WITHIN).await.ok()?;
        serde_json::from_slice(&answer).ok()
    }

    /// Counts later queries as usage of their credentials.
    pub fn count_usage(&self, usage: Arc<UsageMeter>) {
        // The program sets it once at its start.
        drop(self.context.running.usage.set(usage));
    }

    /// Returns the metrics of queries in the text format of Prometheus.
    pub fn metrics_text(&self) -> String {
        self.context.running.meters.text()
    }
}

/// Starts to answer other nodes. They authorize the users whose queries they request.
pub(crate) fn serve(context: &Arc<QueryContext>) {
    context.cluster.serve(RUNNING, Arc::new(RunningService(context.running.registry.clone())));
}

/// Service that other nodes call.
#[derive(Debug)]
struct RunningService(RunningQueries);

impl Service for RunningService {
    fn answer(&self, _from: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let registry = self.0.clone();
        async move {
            let refused = |why: serde_json::Error| NoAnswer::Refused(format!("the request cannot be decoded: {why}"));
            let question: RunningQuestion = serde_json::from_slice(&body).map_err(refused)?;
            Ok(Bytes::from(serde_json::to_vec(&registry.answer(&question)).map_err(refused)?))
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_names_few_objects() {
        let names = |count: usize| (0..count).map(|number| format!("o{number}")).collect::<Vec<_>>();
        assert_eq!(shortened(&names(0)), "");
        assert_eq!(shortened(&names(3)), "o0 o1 o2");
        assert_eq!(shortened(&names(5)), "o0 o1 o2 and 2 more");
    }
}
