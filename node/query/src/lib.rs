//! Queries over rows (`POST /btql`): parsed, sent to the nodes with the rows, answered page by page.
//!
//! ```text
//! Question ─ read ─ Bounded ─ (who may, where the objects are: at the rim) ─ Queries::ask ─ Answer ─ page ─ page ...
//!                                                     │
//!                      coordinate: each shard where it is led ─┬─ leaf here
//!                                                              └─ leaf on another node
//! ```
//! All pages of an answer are read at the versions of the first. A question may also be asked to be answered later, beside
//! its request, as a job: `jobs`.

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

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use assay_cluster::Cluster;
use assay_node_btql::bound::Kinds;
use assay_node_btql::schema::Column;
use assay_node_engine::{Limit, Memory, Shared, Workers, finish, innermost};
use assay_node_limits::{Holder, Reading, Refusals};
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

pub use assay_node_engine::price::{PriceError, Prices};
pub use assay_node_engine::{EngineError, Position, Table, Watch};
pub use async_query_jobs::{JobCounts, JobLimits, JobRequest, JobStatus, JobView, RESULT_ROWS_MAX, ResultRange};
pub use error::AskError;
pub use request::{Bounded, GROUPS_DEFAULT, Lint, Meant, Question, ROWS_DEFAULT, ROWS_MAX};

/// Values held at once of an answer that is longer.
const BYTES_AT_ONCE: usize = 16 << 20;
/// Bytes of one read if other nodes are involved, whose shared threads encrypt, send and receive them.
const BYTES_SENT_AT_ONCE: usize = 1 << 20;
/// Streams of results from other nodes, all queries together. Beyond them rows are requested page by page.
const RESULT_STREAMS_MAX: usize = 32;
/// Values of one page (D-17).
const PAGE_BYTES_MAX: usize = 128 << 20;
/// Time that a query of the program itself waits for its permit.
const PERMIT_WAIT: Duration = Duration::from_secs(30);
/// Time that a started response waits for the permit of its next part.
const NEXT_PERMIT_WAIT: Duration = Duration::from_secs(120);
/// Additional time for the end of a query, after which it is answered in any case.
const LATE: Duration = Duration::from_secs(5);

/// Microseconds since the epoch.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryLimits {
    pub running_max: usize,
    pub waiting_max: usize,
    pub seconds_max: u64,
    /// Memory of one query.
    pub query_bytes_max: usize,
    /// Memory of all queries.
    pub memory_bytes_max: usize,
    /// Memory of cached columns.
    pub cache_bytes_max: usize,
    /// Units of rows that are worked on at once; 0 for as many as there are cores.
    pub threads: usize,
    /// Queries that run on after their request.
    pub jobs: JobLimits,
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
        }
    }
}

/// An object of a query, and its organization and project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    pub object: ObjectKey,
    pub org: OrgId,
    pub project_id: Uuid,
}

/// A handle; clones share everything.
#[derive(Clone, Debug)]
pub struct Queries {
    context: Arc<QueryContext>,
    jobs: Arc<AsyncJobs>,
    /// Encoded principal of requests to other nodes; empty where there is none.
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

/// An answer under way.
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
    /// Rows under way, of a result that has pages.
    rows: Option<RowStreams>,
    who: Holder,
    /// Whether each part waits for a permit; the caller of one that runs on after its request waits itself.
    takes_permits: bool,
    /// Deadline of the wait of the first part for its permit; `None` after it.
    until: Option<tokio::time::Instant>,
}

/// Organization and credential of a query, and its deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    pub holder: Holder,
    /// Deadline of the wait for the permit of the first part.
    pub until: tokio::time::Instant,
}

impl Who {
    /// Returns the organization itself, for queries of the program.
    pub fn organization(org: OrgId) -> Who {
        Who { holder: Holder::new(org.0, Uuid::nil()), until: tokio::time::Instant::now() + PERMIT_WAIT }
    }
}

/// Progress of a response.
#[derive(Clone, Copy, Debug)]
struct Progress {
    after: Option<Position>,
    /// Position of the last row so far.
    end: Option<Position>,
    /// Rows that are still wanted; none where all are.
    left: Option<u64>,
    bytes: usize,
    ended: bool,
}

impl Queries {
    /// Starts the threads of queries and continues async jobs. May be called inside or outside of a runtime. An error
    /// is one of the directory of jobs.
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
            // Parts for other nodes run beside the queries of this one.
            threads: Threads::start(2 * limits.running_max.max(1), &refusals),
            streams: Arc::new(Semaphore::new(RESULT_STREAMS_MAX)),
            limits,
            clock,
            job_asker: OnceLock::new(),
        });
        cluster.serve_on_behalf(LEAF, Arc::new(LeafService { context: Arc::clone(&context) }));
        cluster.serve_stream(RESULT_STREAM, Arc::new(LeafStreamService { context: Arc::clone(&context) }));
        let jobs = AsyncJobs::start(Arc::clone(&context))?;
        Ok(Queries { context, jobs, asker: Bytes::new() })
    }

    /// Returns a handle whose requests to other nodes name this principal. The nodes with the rows check its rights
    /// again.
    pub fn on_behalf_of(&self, asker: impl Into<Bytes>) -> Queries {
        Queries { asker: asker.into(), ..self.clone() }
    }

    /// Sets the principal of async jobs. Until then they wait for other nodes.
    pub fn run_jobs_for(&self, asker: impl Into<Bytes>) {
        // The start says it once; a second time it would be the same.
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

    /// Budgets of this node's queries, by their names.
    pub fn budgets(&self) -> Vec<(&'static str, Reading)> {
        vec![self.context.admission.reading(), self.context.threads.reading()]
    }

    /// Starts a response, whose parts wait for their permits. `after` is the end of the previous page; `objects` are
    /// those of the query, in its order.
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
        let mut answer = QueryAnswer::of(&self.context, who.holder, asked, objects, after, time);
        (answer.takes_permits, answer.until) = (true, Some(who.until));
        answer.asker = self.asker.clone();
        answer
    }

    /// Returns a textual plan of a query over these objects.
    pub fn plan(&self, asked: &Bounded, objects: &[Home]) -> String {
        let objects = objects.iter().map(|home| home.object);
        asked.plan(&coordinate::places(&self.context.cluster, objects))
    }

    /// Keeps a question that is answered beside its request; the name under which its answer is found. It is there after
    /// any crash.
    pub async fn submit_job(&self, request: JobRequest) -> Result<Uuid, AskError> {
        self.jobs.make(request).await
    }

    /// Returns the state of a job on any node; `None` if the organization has no such job. The caller must authorize
    /// the reader for all of its objects.
    pub async fn look_at_job(
        &self,
        org: OrgId,
        name: Uuid,
        wanted: Option<ResultRange>,
    ) -> Result<Option<JobView>, AskError> {
        self.jobs.look(&self.asker, org, name, wanted).await
    }

    /// Stops jobs, which start again after the next start.
    pub async fn close(&self) {
        self.jobs.close().await;
        self.context.threads.close();
    }
}

impl QueryAnswer {
    /// Creates a response whose caller waits for the permits of its parts.
    fn of(
        context: &Arc<QueryContext>,
        who: Holder,
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
        }
    }

    /// The next rows, with the names of their columns; none where there are no more. The first is there always. Waits for
    /// a permit, which is free again when the rows are there.
    pub async fn next(&mut self) -> Result<Option<Table>, AskError> {
        if self.progress.ended {
            return Ok(None);
        }
        let permit = if self.takes_permits {
            let until = self.until.take().unwrap_or_else(|| tokio::time::Instant::now() + NEXT_PERMIT_WAIT);
            Some(self.context.admission.enter(self.who, until).await?)
        } else {
            None
        };
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
            let executor = Executor { context: Arc::clone(&self.context), who: self.who, time: self.time };
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
        let table = self.finish(parts, Limit { rows, bytes: PAGE_BYTES_MAX }, until).await?;
        // Who wants all rows is not told that some are all.
        let is_whole = self.asked.question.whole || self.asked.limit.is_none();
        if is_whole && table.cut {
            return Err(AskError::TooMuch(format!(
                "the rows have more than {} MiB, and in this order there are no pages: set a limit, or sort by \
                 _pagination_key",
                PAGE_BYTES_MAX >> 20
            )));
        }
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
        Executor { context: Arc::clone(&self.context), who: self.who, time: self.time }
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

    /// The last write that any of it may show.
    pub fn version(&self) -> Xact {
        self.versions.values().copied().max().unwrap_or(Xact::ZERO)
    }
}

/// Runs work for the reader of an answer, on threads for queries and in their turns.
#[derive(Debug)]
pub struct Executor {
    context: Arc<QueryContext>,
    who: Holder,
    time: Duration,
}

impl Executor {
    /// Runs work that calls [`Watch::check`] between its steps, none of which takes long. It waits for a thread as long as
    /// a part waits for its permit.
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
        let watch = Watch::new(until, context.limits.query_bytes_max, &context.memory);
        let _stop = StopOnDrop(watch.clone());
        let workers = context.shared_by(self.who).workers;
        let work = move || workers.work(&watch, || work(QueryThread { watch: &watch, workers: &workers }));
        Ok(context.threads.run(self.who, until, work).await??)
    }
}

/// Thread for a query in its turn: what stops it, and workers that share its turns.
#[derive(Clone, Copy, Debug)]
pub struct QueryThread<'a> {
    pub watch: &'a Watch,
    pub workers: &'a Workers,
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

/// The columns that all rows of an object share.
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
