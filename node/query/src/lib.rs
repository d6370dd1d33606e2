//! Queries over rows (`POST /btql`). A query is parsed, sent to the nodes that hold the rows, and answered page by
//! page.
//!
//! ```text
//! Question ─ read ─ Bounded ─ (authorization, lookup: in callers) ─ Queries::ask ─ QueryAnswer ─ part ─ part ...
//!                                                     │
//!                      coordinate: each shard at its leader ─┬─ leaf here
//!                                                            └─ leaf on another node
//! ```
//! All pages of a response are read at the versions of the first page. A query can also run as an async job after its
//! request ends; see `async_query_jobs`.

mod admission;
mod async_query_jobs;
mod context;
mod coordinate;
mod error;
mod leaf;
mod packed;
mod plan;
pub mod render;
mod request;
mod rows;
mod running;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use assay_cluster::Cluster;
use assay_node_btql::bound::Kinds;
use assay_node_btql::schema::Column;
use assay_node_engine::{Limit, Memory, Shared, Workers, finish, innermost};
use assay_node_limits::{Holder, Reading, Refusals};
use assay_node_reviews::Blindness;
use assay_node_running_queries::{QueryPhase, QueryProgress};
use assay_storage_model::{ObjectKey, ObjectKind, OrgId, ShardId, Xact};
use assay_storage_shard::ColumnCache;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::admission::Admission;
use crate::async_query_jobs::AsyncJobs;
use crate::context::{QueryContext, Threads};
use crate::coordinate::DistributedQuery;
use crate::leaf::stream::{LeafStreamService, RESULT_STREAM};
use crate::leaf::{LEAF, LeafObject, LeafPart, LeafService, StopOnDrop};
use crate::rows::{RowStreams, all_parts};
use crate::running::{QueryTracker, RunningState};

pub use assay_node_engine::price::{PriceError, Prices};
pub use assay_node_engine::{EngineError, Position, Table, Watch};
pub use assay_node_running_queries::{QueryKind, QueryOwner, RunningQuery, RunningQuestion};
pub use async_query_jobs::{JobCounts, JobLimits, JobRequest, JobStatus, JobView, RESULT_ROWS_MAX, ResultRange};
pub use error::AskError;
pub use request::{Bounded, GROUPS_DEFAULT, Lint, Meant, Question, ROWS_DEFAULT, ROWS_MAX};
pub use running::RunningList;

/// Bytes of values that a long response holds in memory at once.
const BYTES_AT_ONCE: usize = 16 << 20;
/// Bytes of one read from other nodes. A small read keeps the shared threads that encrypt and send it available.
const BYTES_SENT_AT_ONCE: usize = 1 << 20;
/// Upper bound of the result streams from other nodes, over all queries. Further queries request rows page by page.
const RESULT_STREAMS_MAX: usize = 32;
/// Upper bound of the bytes of values in one page (D-17).
const PAGE_BYTES_MAX: usize = 128 << 20;
/// Time that an internal query waits for its permit.
const PERMIT_WAIT: Duration = Duration::from_secs(30);
/// Time that a started response waits for the permit of its next part.
const NEXT_PERMIT_WAIT: Duration = Duration::from_secs(120);
/// Additional time after the deadline, within which a query must end.
const LATE: Duration = Duration::from_secs(5);

/// Clock in microseconds since the epoch.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryLimits {
    pub running_max: usize,
    pub waiting_max: usize,
    pub seconds_max: u64,
    /// Upper bound of the memory of one query, in bytes.
    pub query_bytes_max: usize,
    /// Upper bound of the memory of all queries, in bytes.
    pub memory_bytes_max: usize,
    /// Upper bound of the memory of cached columns, in bytes.
    pub cache_bytes_max: usize,
    /// Upper bound of concurrently processed row units, or 0 for the number of cores.
    pub threads: usize,
    /// Limits of async jobs.
    pub jobs: JobLimits,
    /// Time after which a query is logged as slow, or 0 for never.
    pub slow_seconds: u64,
}

impl Default for QueryLimits {
    fn default() -> QueryLimits {
        QueryLimits {
            running_max: 16,
            waiting_max: 2048,
            seconds_max: 30,
            query_bytes_max: 256 << 20,
            memory_bytes_max: 512 << 20,
            cache_bytes_max: 512 << 20,
            threads: 0,
            jobs: JobLimits::default(),
            slow_seconds: 2,
        }
    }
}

/// Review masks of a caller, by project. They hide other reviewers' scores from a blind reviewer.
pub type Masks = BTreeMap<Uuid, Arc<Blindness>>;

/// Object of a query with its organization and project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    pub object: ObjectKey,
    pub org: OrgId,
    pub project_id: Uuid,
}

/// Handle of the queries of a node. Clones share all state.
#[derive(Clone, Debug)]
pub struct Queries {
    context: Arc<QueryContext>,
    jobs: Arc<AsyncJobs>,
    /// Encoded principal of requests to other nodes. It is empty for a handle without a principal.
    asker: Bytes,
}

/// Resources in use by queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryCounts {
    pub running: usize,
    pub waiting: usize,
    pub memory_bytes: usize,
    pub cache_bytes: usize,
    pub jobs: JobCounts,
}

/// Response in progress, which returns its rows part by part.
#[derive(Debug)]
pub struct QueryAnswer {
    context: Arc<QueryContext>,
    asker: Bytes,
    asked: Bounded,
    objects: Vec<LeafObject>,
    versions: BTreeMap<ShardId, Xact>,
    /// Time limit of each part.
    time: Duration,
    seed: u64,
    progress: Progress,
    /// Open row streams, for a result that has pages.
    rows: Option<RowStreams>,
    who: Holder,
    /// Whether each part waits for a permit. An async job waits for its permits itself.
    takes_permits: bool,
    /// Deadline for the permit of the first part. It is `None` after the first part.
    until: Option<tokio::time::Instant>,
    tracker: QueryTracker,
}

/// Organization, user and credential of a query, and its deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    pub holder: Holder,
    /// User on whose behalf it runs, or nil.
    pub user: Uuid,
    pub kind: QueryKind,
    /// Deadline for the permit of the first part.
    pub until: tokio::time::Instant,
}

impl Who {
    /// Returns the identity for internal queries on behalf of an organization.
    pub fn organization(org: OrgId) -> Who {
        let holder = Holder::new(org.0, Uuid::nil());
        let until = tokio::time::Instant::now() + PERMIT_WAIT;
        Who { holder, user: Uuid::nil(), kind: QueryKind::Internal, until }
    }

    fn owner(&self) -> QueryOwner {
        QueryOwner { organization: self.holder.organization, user: self.user }
    }
}

/// Progress of a response.
#[derive(Clone, Copy, Debug)]
struct Progress {
    after: Option<Position>,
    /// Position of the last row so far.
    end: Option<Position>,
    /// Number of rows still to return, or `None` for all rows.
    left: Option<u64>,
    bytes: usize,
    ended: bool,
}

impl Queries {
    /// Starts the query threads and resumes async jobs. It may be called inside or outside of a runtime.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory of the jobs cannot be opened, or if a thread cannot be started.
    pub fn start(cluster: Arc<Cluster>, limits: QueryLimits, prices: Prices, clock: Clock) -> io::Result<Queries> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = Workers::new(if limits.threads == 0 { cores } else { limits.threads });
        let shared = Shared { cache: ColumnCache::new(limits.cache_bytes_max), prices: Arc::new(prices), workers };
        let refusals = Refusals::default();
        let context = Arc::new(QueryContext {
            cluster: Arc::clone(&cluster),
            shared,
            memory: Memory::new(limits.memory_bytes_max),
            admission: Admission::new(limits.running_max, limits.waiting_max, &refusals),
            // Parts for other nodes run beside the queries of this node.
            threads: Threads::start(2 * limits.running_max.max(1), &refusals),
            streams: Arc::new(Semaphore::new(RESULT_STREAMS_MAX)),
            running: RunningState::new(limits.slow_seconds),
            limits,
            clock,
            job_asker: OnceLock::new(),
        });
        running::serve(&context);
        cluster.serve_on_behalf(LEAF, Arc::new(LeafService { context: Arc::clone(&context) }));
        cluster.serve_stream(RESULT_STREAM, Arc::new(LeafStreamService { context: Arc::clone(&context) }));
        let jobs = AsyncJobs::start(Arc::clone(&context))?;
        Ok(Queries { context, jobs, asker: Bytes::new() })
    }

    /// Returns a handle whose requests to other nodes name this principal. The nodes that hold the rows check its
    /// rights again.
    pub fn on_behalf_of(&self, asker: impl Into<Bytes>) -> Queries {
        Queries { asker: asker.into(), ..self.clone() }
    }

    /// Sets the principal of async jobs. Without a principal, jobs cannot read from other nodes.
    pub fn run_jobs_for(&self, asker: impl Into<Bytes>) {
        // The program sets the principal once at its start. A second value would be the same.
        drop(self.context.job_asker.set(asker.into()));
    }

    pub fn now(&self) -> i64 {
        (self.context.clock)()
    }

    pub fn counts(&self) -> QueryCounts {
        let (_, Reading { held, waiting, .. }) = self.context.admission.reading();
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let (running, waiting) = (count(held), count(waiting));
        let (memory_bytes, cache_bytes) = (self.context.memory.taken(), self.context.shared.cache.bytes());
        QueryCounts { running, waiting, memory_bytes, cache_bytes, jobs: self.jobs.counts() }
    }

    /// Returns the budgets of this node's queries with their names.
    pub fn budgets(&self) -> Vec<(&'static str, Reading)> {
        vec![self.context.admission.reading(), self.context.threads.reading()]
    }

    /// Starts a response. Each of its parts waits for a permit.
    ///
    /// `after` is the end of the previous page. `objects` lists the objects of the query in its order.
    pub fn ask(
        &self,
        who: Who,
        asked: Bounded,
        objects: &[Home],
        after: Option<Position>,
        seconds: Option<u64>,
    ) -> QueryAnswer {
        let most = self.context.limits.seconds_max;
        let time = Duration::from_secs(seconds.map_or(most, |seconds| seconds.min(most)));
        let origin = (who.owner(), who.kind);
        let mut answer = QueryAnswer::of(&self.context, (who.holder, origin), asked, objects, after, time);
        (answer.takes_permits, answer.until) = (true, Some(who.until));
        answer.asker = self.asker.clone();
        answer
    }

    /// Returns a textual plan of a query over these objects.
    pub fn plan(&self, asked: &Bounded, objects: &[Home]) -> String {
        let objects = objects.iter().map(|home| home.object);
        asked.plan(&coordinate::places(&self.context.cluster, objects))
    }

    /// Stores an async job and returns its name. The job survives a crash of the node.
    pub async fn submit_job(&self, request: JobRequest) -> Result<Uuid, AskError> {
        self.jobs.make(request).await
    }

    /// Returns the state of a job on any node, or `None` if the organization has no such job.
    ///
    /// The caller must authorize the reader for all objects of the job.
    pub async fn look_at_job(
        &self,
        org: OrgId,
        name: Uuid,
        wanted: Option<ResultRange>,
    ) -> Result<Option<JobView>, AskError> {
        self.jobs.look(&self.asker, org, name, wanted).await
    }

    /// Stops jobs and query threads. Unfinished jobs resume after the next start.
    pub async fn close(&self) {
        self.jobs.close().await;
        self.context.threads.close();
    }
}

impl QueryAnswer {
    /// Creates a response whose caller waits for the permits of its parts.
    fn of(
        context: &Arc<QueryContext>,
        (who, origin): (Holder, (QueryOwner, QueryKind)),
        asked: Bounded,
        objects: &[Home],
        after: Option<Position>,
        time: Duration,
    ) -> QueryAnswer {
        let object = |(number, home): (usize, &Home)| {
            LeafObject::with(home.object, u32::try_from(number).unwrap_or(u32::MAX), &constants(home))
        };
        let (left, seed) = (asked.limit, seed(&asked));
        let progress = Progress { after, end: None, left, bytes: 0, ended: false };
        let tracker = QueryTracker::begin(context, who.credential, origin, &asked, objects);
        QueryAnswer {
            context: Arc::clone(context),
            asker: Bytes::new(),
            objects: objects.iter().enumerate().map(object).collect(),
            versions: BTreeMap::new(),
            asked,
            time,
            seed,
            progress,
            rows: None,
            who,
            takes_permits: false,
            until: None,
            tracker,
        }
    }

    /// Applies the caller's review masks. `homes` lists the objects of the query in its order.
    #[must_use]
    pub fn masked(mut self, homes: &[Home], masks: &Masks) -> QueryAnswer {
        for (object, home) in self.objects.iter_mut().zip(homes) {
            object.blind = masks.get(&home.project_id).cloned();
        }
        self
    }

    /// Returns the next rows with their column names, or `None` after the last part.
    ///
    /// The first call always returns a table. The call waits for a permit and releases it when the rows are available.
    pub async fn next(&mut self) -> Result<Option<Table>, AskError> {
        if self.progress.ended {
            return Ok(None);
        }
        let began = Instant::now();
        let part = tokio::select! {
            biased;
            () = self.tracker.cancelled() => Err(AskError::Cancelled),
            part = self.next_part() => part,
        };
        self.tracker.progress().enter(QueryPhase::Sending);
        self.tracker.note(began.elapsed(), &part, self.progress.ended);
        part
    }

    async fn next_part(&mut self) -> Result<Option<Table>, AskError> {
        self.tracker.progress().enter(QueryPhase::Waiting);
        let permit = if self.takes_permits {
            let until = self.until.take().unwrap_or_else(|| tokio::time::Instant::now() + NEXT_PERMIT_WAIT);
            Some(self.context.admission.enter(self.who, until).await?)
        } else {
            None
        };
        self.tracker.progress().enter(QueryPhase::Running);
        let until = Instant::now() + self.time;
        let part = tokio::time::timeout_at((until + LATE).into(), self.part(until)).await;
        drop(permit);
        part.unwrap_or_else(|_| Err(AskError::TooLate(EngineError::TooLate.to_string())))
    }

    async fn part(&mut self, until: Instant) -> Result<Option<Table>, AskError> {
        let mut query = DistributedQuery {
            context: &self.context,
            asker: &self.asker,
            asked: &self.asked,
            objects: &self.objects,
            until,
            who: self.who,
            progress: self.tracker.progress(),
            seed: self.seed,
            versions: std::mem::take(&mut self.versions),
        };
        if self.asked.bound.has_pages() {
            let bytes = if query.asks_others() { BYTES_SENT_AT_ONCE } else { BYTES_AT_ONCE };
            let Progress { left, after, .. } = self.progress;
            let mut rows = match self.rows.take() {
                Some(rows) => rows,
                None => RowStreams::open(&mut query, left, bytes, after).await?,
            };
            let executor = self.executor();
            let table = rows.next(&mut query, &executor, left, Limit { rows: left, bytes: BYTES_AT_ONCE }).await?;
            self.versions = query.versions;
            self.advance(&table, rows.has_ended());
            self.rows = Some(rows).filter(|_| !self.progress.ended);
            return Ok(Some(table));
        }
        let rows = self.progress.left;
        let inner_limit = match &self.asked.bound.rows {
            assay_node_btql::bound::Rows::Query(_) => innermost(&self.asked.bound).limit,
            assay_node_btql::bound::Rows::Objects { .. } => rows,
        };
        let parts = all_parts(&mut query, inner_limit).await?;
        self.versions = query.versions;
        let table = whole(self.finish(parts, Limit { rows, bytes: PAGE_BYTES_MAX }, until).await?)?;
        self.advance(&table, true);
        Ok(Some(table))
    }

    async fn finish(&self, parts: Vec<LeafPart>, limit: Limit, until: Instant) -> Result<Table, AskError> {
        let (bound, seed) = (self.asked.bound.clone(), self.seed);
        let work = move |QueryThread { watch, .. }: QueryThread<'_>| {
            let inner = innermost(&bound);
            let decoded = |part: LeafPart| {
                watch.check()?;
                part.decoded(inner, seed)
            };
            let partials = parts.into_iter().map(decoded).collect::<Result<Vec<_>, AskError>>()?;
            Ok(finish(&bound, partials, watch, &limit, seed)?)
        };
        self.executor().run_until(until, work).await?
    }

    /// Returns an executor for work on this response, such as rendering.
    pub fn executor(&self) -> Executor {
        let (context, progress) = (Arc::clone(&self.context), Arc::clone(self.tracker.progress()));
        Executor { context, who: self.who, time: self.time, progress }
    }

    fn advance(&mut self, table: &Table, has_ended: bool) {
        let progress = &mut self.progress;
        if let Some(end) = table.end {
            (progress.after, progress.end) = (Some(end), Some(end));
        }
        progress.left = progress.left.map(|left| left.saturating_sub(table.counted));
        progress.bytes += table.bytes();
        let is_page = self.asked.limit.is_some() && !self.asked.question.whole;
        let is_full = is_page && progress.bytes >= PAGE_BYTES_MAX;
        progress.ended = has_ended || progress.left == Some(0) || is_full;
    }

    /// Returns the position of the last row, if the result has pages and rows.
    pub fn end(&self) -> Option<Position> {
        self.progress.end
    }

    /// Returns the version of the response: no later write is visible in it.
    pub fn version(&self) -> Xact {
        self.versions.values().copied().max().unwrap_or(Xact::ZERO)
    }
}

/// Executor of work on a response, such as rendering. The work takes turns with queries on the query threads.
#[derive(Debug)]
pub struct Executor {
    context: Arc<QueryContext>,
    who: Holder,
    time: Duration,
    progress: Arc<QueryProgress>,
}

impl Executor {
    /// Runs work on a query thread. The work must call [`Watch::check`] between short steps.
    ///
    /// It waits for a thread as long as a part waits for its permit.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(QueryThread<'_>) -> T + Send + 'static,
    ) -> Result<T, AskError> {
        self.run_until(Instant::now() + self.time.max(NEXT_PERMIT_WAIT), work).await
    }

    pub(crate) async fn run_until<T: Send + 'static>(
        &self,
        until: Instant,
        work: impl FnOnce(QueryThread<'_>) -> T + Send + 'static,
    ) -> Result<T, AskError> {
        let context = &self.context;
        let progress = Arc::clone(&self.progress);
        let watch = Watch::counting(until, context.limits.query_bytes_max, &context.memory, progress);
        let _stop = StopOnDrop(watch.clone());
        let workers = context.shared_by(self.who).workers;
        let work = move || workers.work(&watch, || work(QueryThread { watch: &watch, workers: &workers }));
        Ok(context.threads.run(self.who, until, work).await??)
    }
}

/// Query thread that currently has its turn: the watch that can stop it, and the workers that share its turns.
#[derive(Clone, Copy, Debug)]
pub struct QueryThread<'a> {
    pub watch: &'a Watch,
    pub workers: &'a Workers,
}

/// Returns the table of a result without pages, which has all rows.
///
/// No cursor leads to rows that were cut off, so a shorter table is an error.
fn whole(table: Table) -> Result<Table, AskError> {
    if table.cut {
        return Err(AskError::TooMuch(format!(
            "the rows have more than {} MiB, and this result has no pages: set a lower limit, or select fewer columns. \
             Rows that are not unpivoted have pages without a sort, or sorted by _pagination_key",
            PAGE_BYTES_MAX >> 20
        )));
    }
    Ok(table)
}

/// Returns all columns of a result, including those of a pivot that depend on the data.
pub fn columns_of(mut columns: Vec<Column>, first: &Table) -> Vec<Column> {
    for name in first.columns.iter().skip(columns.len()) {
        columns.push(Column { name: name.clone(), kinds: Kinds::Any, nullable: true });
    }
    columns
}

/// Returns the seed of hashes: equal for equal queries, so that pages and nodes agree.
fn seed(asked: &Bounded) -> u64 {
    asked.question.now.cast_unsigned()
}

/// Returns the columns that are constant for all rows of an object.
fn constants(home: &Home) -> Vec<(&'static str, String)> {
    let (id, project, org) = (home.object.id.to_string(), home.project_id.to_string(), home.org.to_string());
    let logs = |log: &str| vec![("org_id", org.clone()), ("project_id", project.clone()), ("log_id", log.to_owned())];
    match home.object.kind {
        ObjectKind::ProjectLogs => logs("g"),
        ObjectKind::Experiment => vec![("project_id", project), ("experiment_id", id)],
        ObjectKind::Dataset => vec![("project_id", project), ("dataset_id", id)],
        ObjectKind::PlaygroundLogs => [logs("x"), vec![("prompt_session_id", id)]].concat(),
        ObjectKind::ProjectPrompts => logs("p"),
        ObjectKind::AuditLog | ObjectKind::Files => vec![("org_id", org)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_without_pages_is_whole_or_an_error() {
        assert!(whole(Table::default()).is_ok());
        let error = whole(Table { cut: true, ..Table::default() }).expect_err("rows are missing");
        assert!(matches!(&error, AskError::TooMuch(why) if why.contains("more than 128 MiB")), "{error}");
    }
}
