//! Executor of online scoring: follows the logs of projects on the leaders of their shards, and runs functions on rows.
//!
//! The crate `online-scoring` makes the decisions. This crate reads versions from the replica on this node, evaluates
//! filters, calls functions, and writes what that crate returns. Two executors of one log do no harm: all their writes
//! are conditional on the states of rows, and the record of the executor in the catalog has one writer at a time.
//!
//! ```text
//! run ── wanted logs ──> Follower (one for each log that this node leads)
//!          read_part -> select -> triggers of rows ──> Objects::write_scoring
//!          open triggers ──> Run::happen (slots) ──> Objects::write_scoring
//!          position, caps ──> executor_store (catalog)
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `rules`, `row_condition` | active rules of projects, and their filters |
//! | `log_reading`, `inputs`, `groups` | changed rows of a log, and what a run reads |
//! | `follower`, `selecting`, `silence` | the loop over one log, the choice of rows, and silent traces and groups |
//! | `run` | one run of a function |
//! | `executor_store` | the record from which another node continues |
//! | `status`, `counters` | states of logs over all nodes, and metrics |
//! | [`operations`] | handlers of backfills, tests and states of rules |

mod counters;
mod executor_store;
mod follower;
mod groups;
mod inputs;
mod log_reading;
pub mod operations;
mod refused;
mod row_condition;
mod rules;
mod run;
mod selecting;
mod silence;
mod status;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster::Cluster;
use assay_node_http::server::edge::Edge;
use assay_node_http::web::Data;
use assay_node_limits::Budget;
use assay_node_online_scoring::{CapLimits, GroupPlacement, OnlineRule, OpenTrigger, RuleScope};
use assay_storage_model::{GroupId, ObjectKey, ObjectKind};
use assay_storage_shard::{ShardError, View};
use parking_lot::Mutex;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use uuid::Uuid;

use crate::counters::ScoringCounters;
use crate::follower::Follower;
use crate::rules::{ProjectRules, RuleCache, logs_with_work};
use crate::status::{LogStatus, StatusService};

/// Billionths of a US dollar.
const NANO_USD: u64 = 1_000_000_000;
/// Runs of a node at the same time.
const RUNS_MAX: u64 = 64;
/// Interval in which the logs are chosen that this node follows.
const CHOICE_EVERY: Duration = Duration::from_millis(200);
/// Interval in which logs with work but without rules are looked for.
const WORK_EVERY: Duration = Duration::from_millis(500);
/// Interval in which records of deleted projects are deleted.
const SWEEP_EVERY: Duration = Duration::from_secs(600);

/// Executor of a node.
pub(crate) struct Executor {
    pub edge: Data<Edge>,
    pub cluster: Arc<Cluster>,
    pub rules: RuleCache,
    pub slots: Budget,
    pub counters: ScoringCounters,
    /// States of the logs that this node follows.
    pub logs: Mutex<BTreeMap<Uuid, LogStatus>>,
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").finish_non_exhaustive()
    }
}

/// Executor of a node once it runs, among the states of its services.
#[derive(Debug, Default)]
pub(crate) struct RunningExecutor(Mutex<Option<Arc<Executor>>>);

impl RunningExecutor {
    pub fn get(&self) -> Option<Arc<Executor>> {
        self.0.lock().clone()
    }
}

/// Task that ends when it is dropped.
#[derive(Debug)]
struct FollowerTask(JoinHandle<()>);

impl Drop for FollowerTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Follows the logs that this node leads, until the future is dropped.
pub async fn run(edge: Data<Edge>) {
    let executor = Arc::new(Executor::new(edge));
    executor.cluster.serve(status::SERVICE, Arc::new(StatusService(Arc::clone(&executor))));
    *executor.edge.state.get::<RunningExecutor>().0.lock() = Some(Arc::clone(&executor));
    let mut beside = JoinSet::new();
    beside.spawn(Arc::clone(&executor).keep_sweeping());
    let mut followers: HashMap<Uuid, FollowerTask> = HashMap::new();
    let (mut with_work, mut looked_at) = (Vec::new(), None::<Instant>);
    loop {
        if looked_at.is_none_or(|looked_at| looked_at.elapsed() >= WORK_EVERY) {
            with_work = logs_with_work(&executor.edge.records, run::now_ms());
            looked_at = Some(Instant::now());
        }
        let wanted = executor.wanted(&with_work);
        followers.retain(|project, task| wanted.contains_key(project) && !task.0.is_finished());
        executor.logs.lock().retain(|project, _| followers.contains_key(project));
        for (project, object) in wanted {
            followers.entry(project).or_insert_with(|| {
                let follower = Follower::new(Arc::clone(&executor), object);
                FollowerTask(tokio::spawn(follower.follow()))
            });
        }
        tokio::time::sleep(CHOICE_EVERY).await;
    }
}

/// Returns the metrics of online scoring in Prometheus text format.
pub fn metrics_text(edge: &Edge) -> String {
    edge.state.get::<RunningExecutor>().get().map(|executor| executor.metrics_text()).unwrap_or_default()
}

impl Executor {
    fn new(edge: Data<Edge>) -> Executor {
        Executor {
            cluster: Arc::clone(edge.records.catalog().cluster()),
            rules: RuleCache::default(),
            slots: Budget::new("runs of online scoring", RUNS_MAX, &edge.budgets.refusals),
            counters: ScoringCounters::default(),
            logs: Mutex::default(),
            edge,
        }
    }

    /// Returns the logs with rules or other work that this node leads, by their projects.
    fn wanted(&self, with_work: &[ObjectKey]) -> BTreeMap<Uuid, ObjectKey> {
        let table = self.rules.table(&self.edge.records);
        let with_rules =
            table.iter().map(|(project, rules)| ObjectKey::new(rules.org, ObjectKind::ProjectLogs, *project));
        let all = with_rules.chain(with_work.iter().copied()).filter(|object| self.leads(object));
        all.map(|object| (object.id, object)).collect()
    }

    /// Returns the caps of rules that set none.
    pub(crate) fn default_caps(&self) -> CapLimits {
        let settings = self.edge.gateway.settings();
        let limit = |setting: u64| Some(setting).filter(|limit| *limit > 0);
        let dollars = limit(settings.scoring_dollars_per_day);
        CapLimits {
            runs_per_minute: limit(settings.scoring_runs_per_minute),
            nano_usd_per_day: dollars.map(|dollars| dollars.saturating_mul(NANO_USD)),
        }
    }

    /// Returns whether this node leads the shard of a log.
    pub(crate) fn leads(&self, object: &ObjectKey) -> bool {
        let group = GroupId::of_shard(self.cluster.locate(object));
        self.cluster.group(group).is_some_and(|group| group.leads())
    }

    /// Returns the active rules of a project, if it has any.
    pub(crate) fn rules_of(&self, project: Uuid) -> Option<Arc<ProjectRules>> {
        self.rules.table(&self.edge.records).get(&project).cloned()
    }

    /// Returns the active rule that pays for a run.
    fn payer(&self, object: &ObjectKey, trigger: &OpenTrigger) -> Option<Arc<OnlineRule>> {
        let payer = trigger.rules.first()?;
        self.rules_of(object.id)?.rules.iter().find(|rule| rule.id == *payer).cloned()
    }

    /// Returns how many traces of its group a run reads.
    pub(crate) fn group_traces_max(&self, object: &ObjectKey, trigger: &OpenTrigger) -> usize {
        match self.payer(object, trigger).map(|rule| rule.config.scope.clone()) {
            Some(RuleScope::Group(group)) => group.traces_max,
            _ => assay_node_online_scoring::GROUP_TRACES_MAX,
        }
    }

    /// Returns whether the result of a run goes to each trace of its group.
    pub(crate) fn is_placed_on_each(&self, object: &ObjectKey, trigger: &OpenTrigger) -> bool {
        match self.payer(object, trigger).map(|rule| rule.config.scope.clone()) {
            Some(RuleScope::Group(group)) => group.placement == GroupPlacement::Each,
            _ => true,
        }
    }

    /// Reads the replica on this node, on a thread that may block.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        object: ObjectKey,
        read: impl FnOnce(&View) -> Result<T, ShardError> + Send + 'static,
    ) -> Result<T, String> {
        let number = self.cluster.locate(&object);
        let shard = self.cluster.shard(number).ok_or("the replica of the shard has left this node")?;
        let found = tokio::task::spawn_blocking(move || read(&shard.view())).await.map_err(|why| why.to_string())?;
        if matches!(found, Err(ShardError::Damaged(_))) {
            self.cluster.suspect(number);
        }
        found.map_err(|why| why.to_string())
    }

    async fn keep_sweeping(self: Arc<Executor>) {
        loop {
            tokio::time::sleep(SWEEP_EVERY).await;
            if !self.cluster.group(GroupId::CATALOG).is_some_and(|catalog| catalog.leads()) {
                continue;
            }
            match executor_store::sweep(self.edge.records.catalog()).await {
                Ok(0) => {}
                Ok(records) => tracing::info!(records, "deleted records of online scoring of deleted projects"),
                Err(why) => tracing::warn!(%why, "could not delete records of online scoring; it is retried later"),
            }
        }
    }

    fn metrics_text(&self) -> String {
        let logs = self.logs.lock();
        let open = logs.values().map(|log| log.open).sum();
        let running = logs.values().map(|log| log.running).sum();
        let lag_ms = logs.values().map(|log| log.lag_ms).max().unwrap_or_default();
        self.counters.text(logs.len(), open, running, lag_ms)
    }
}
