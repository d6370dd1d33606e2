//! Async query jobs (`POST /btql/async`), which run after their request and keep their results for a day.
//!
//! ```text
//! make ── record written ── name      (queue: waiting and running jobs, kept results; directory: the files)
//!              │
//!         drive ── run ── Answer, part by part ── pages of JSON lines ── record with its end written
//!
//! look ── name says the node ─┬─ here: line, then pages
//!                             └─ on another node: requested from the service `query.later`
//! ```
//! A job lives on the node that took its request. It consists of two files in `queries/` of the data directory:
//!
//! ```text
//! <name>.query   record: owner, query, settings and time; versions to read; finally the end, which is the error or the
//!                pages of the rows, each with a checksum
//! <name>.rows    rows as JSON lines
//! ```
//! A record is replaced atomically: a new file, its sync, a rename, and a sync of the directory. That happens:
//! 1. before the name is returned, so that an accepted job survives any crash;
//! 2. before each run, which is counted, so that a job that crashed the process several times is not started again;
//! 3. between the choice of the versions and the first visible row, so that later runs return the same rows;
//! 4. at the end, after the sync of the rows.
//!
//! A job has one end: the first one stays, and `ending` is held while it is decided and written. Only a succeeded job
//! can still fail, when its stored results turn out to be damaged.
//!
//! After a crash, a record may lack an end. The next start then removes its rows and runs the job from the beginning. A
//! record with an end has all of its rows. Damage is never mistaken for a missing end. A checksum or length that does
//! not match makes the job `failed`, with an error that says so. A disk that fails to read is no damage: the reader gets
//! an error, and the results stay. Results are not replicated: they can be computed again, and are lost with the disk
//! of their node.
//!
//! Jobs have a lower priority than interactive queries, part by part. The same memory and limits apply to both. A job
//! waits for a missing resource, such as a shard leader or memory.
//!
//! A running job can be cancelled like any running query. It then fails, so no job is ever `canceled`.

mod directory;
mod pages;
mod queue;
mod record;
mod run;
mod service;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use assay_node_engine::Position;
use assay_storage_disk::DiskFile;
use assay_storage_model::OrgId;
use bytes::Bytes;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::context::QueryContext;
use crate::{AskError, Home, Masks, Question};
use directory::{JobDirectory, StoredError};
use pages::{PlacedPage, ResultSlice};
use queue::{Job, JobQueue, JobState};
use record::{JobEnd, JobOwner, JobRecord};
pub(crate) use record::{name as new_name, node_of};
use service::JobsService;

pub use queue::JobCounts;

/// Default number of rows in a page of results.
const RESULT_ROWS_DEFAULT: u64 = 1000;
pub const RESULT_ROWS_MAX: u64 = 10_000;
/// Size at which a page of results ends. The row that reaches it is included.
const RESULT_BYTES_MAX: usize = 16 << 20;
/// Time that a request waits for rows that are not available yet. Clients then poll again at once.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Upper bound of the runs of one job that crash the process.
const STARTS_MAX: u32 = 5;
/// Number of threads for file access, in addition to those that run jobs.
const FILE_THREADS: usize = 4;
/// Name of the threads. A panic on these threads ends only its query, not the process.
const THREAD: &str = "assay-later";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLimits {
    /// Upper bound of the running jobs on this node.
    pub running_max: usize,
    /// Upper bound of the waiting jobs of one organization on this node.
    pub waiting_max: usize,
    /// Upper bound of all jobs on this node, including ended ones. One organization may have half of them.
    pub kept_max: usize,
    /// Upper bound of the running time of one job, without its waits.
    pub seconds_max: u64,
    /// Upper bound of the bytes of results of one job.
    pub job_bytes_max: u64,
    /// Upper bound of the bytes of all results on this node. One organization may have half of them.
    pub bytes_max: u64,
}

impl Default for JobLimits {
    fn default() -> JobLimits {
        JobLimits {
            running_max: 2,
            waiting_max: 32,
            kept_max: 4000,
            seconds_max: 900,
            job_bytes_max: 1 << 30,
            bytes_max: 8 << 30,
        }
    }
}

/// Request for a job. The caller may read all of its objects.
#[derive(Clone, Debug)]
pub struct JobRequest {
    pub org: OrgId,
    pub user: Uuid,
    pub question: Question,
    /// Objects of the query in its order.
    pub homes: Vec<Home>,
    /// Review masks of the caller.
    pub masks: Masks,
    /// Position where the previous page ended.
    pub after: Option<Position>,
    pub seconds: Option<u64>,
    /// Default number of rows in a page of results.
    pub batch: Option<u64>,
}

/// Status of a job. No job is ever `canceled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    Queued,
    Running,
    Succeeded,
    Failed,
}

impl JobStatus {
    pub fn name(self) -> &'static str {
        match self {
            JobStatus::Queued => "queued",
            JobStatus::Running => "running",
            JobStatus::Succeeded => "succeeded",
            JobStatus::Failed => "failed",
        }
    }
}

/// Range of result rows that a reader requests, starting at `row`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultRange {
    pub row: u64,
    pub limit: Option<u64>,
}

/// Job as shown to a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobView {
    pub status: JobStatus,
    pub error: Option<String>,
    /// Objects of the query. A reader must be allowed to read all of them.
    pub homes: Vec<Home>,
    /// Masks that were applied to the rows. A reader's own masks must not hide more.
    pub masks: Masks,
    /// JSON rows, each followed by a line break.
    pub lines: Bytes,
    /// Number of the next row, which may not be available yet.
    pub next: Option<u64>,
}

/// All jobs of this node.
#[derive(Debug)]
pub(crate) struct AsyncJobs {
    context: Arc<QueryContext>,
    directory: JobDirectory,
    table: Mutex<JobTable>,
    /// Held while the end of a job is decided and written, and taken before `table`.
    ending: Mutex<()>,
    /// Counter of changes that readers may be waiting for.
    news: watch::Sender<u64>,
    /// Wakes the driver.
    woken: Notify,
    closing: watch::Sender<bool>,
    handle: Handle,
    runtime: Mutex<Option<Runtime>>,
    driver: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct JobTable {
    queue: JobQueue,
    /// Row files of running jobs.
    files: BTreeMap<Uuid, Arc<dyn DiskFile>>,
    /// Running jobs whose record counts the current run.
    counted: BTreeSet<Uuid>,
}

/// View of a job with the pages of results to read for it.
#[derive(Debug)]
struct JobSnapshot {
    view: JobView,
    pages: Vec<PlacedPage>,
    /// Open file of a running job. For an ended job, each reader opens the file itself.
    file: Option<Arc<dyn DiskFile>>,
    rows: u64,
    limit: u64,
}

impl JobTable {
    /// Returns whether a job still has the results of a snapshot. An ended job has no open file.
    fn has_results(&self, name: Uuid, file: Option<&Arc<dyn DiskFile>>) -> bool {
        let status = self.queue.get(name).map(Job::status);
        match file {
            Some(file) => self.files.get(&name).is_some_and(|open| Arc::ptr_eq(open, file)),
            None => status == Some(JobStatus::Succeeded),
        }
    }

    /// Returns whether a job is waiting or running.
    fn is_open(&self, name: Uuid) -> bool {
        let status = self.queue.get(name).map(Job::status);
        matches!(status, Some(JobStatus::Queued | JobStatus::Running))
    }
}

impl AsyncJobs {
    pub fn start(context: Arc<QueryContext>) -> io::Result<Arc<AsyncJobs>> {
        let limits = context.limits.jobs.clone();
        let (directory, mut found) =
            JobDirectory::open(Arc::clone(context.cluster.disk()), context.cluster.data_dir())?;
        found.sort_by_key(|(_, record)| record.as_ref().map_or(0, |record| record.made));
        let (now, mut queue) = ((context.clock)(), JobQueue::new(limits.clone()));
        for (name, record) in found {
            queue.add(name, of_before(name, record, now));
        }
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(limits.running_max.max(1) + 1).max_blocking_threads(FILE_THREADS);
        let runtime = builder.thread_name(THREAD).enable_all().build()?;
        let jobs = Arc::new(AsyncJobs {
            directory,
            table: Mutex::new(JobTable { queue, files: BTreeMap::new(), counted: BTreeSet::new() }),
            ending: Mutex::new(()),
            news: watch::Sender::new(0),
            woken: Notify::new(),
            closing: watch::Sender::new(false),
            handle: runtime.handle().clone(),
            runtime: Mutex::new(Some(runtime)),
            driver: Mutex::new(None),
            context,
        });
        *jobs.driver.lock() = Some(jobs.handle.spawn(Arc::clone(&jobs).drive()));
        jobs.context.cluster.serve_on_behalf(service::JOBS, Arc::new(JobsService(Arc::clone(&jobs))));
        Ok(jobs)
    }

    pub fn counts(&self) -> JobCounts {
        self.table.lock().queue.counts()
    }

    fn now(&self) -> i64 {
        (self.context.clock)()
    }

    /// Notifies waiting readers of a change.
    fn tell(&self) {
        self.news.send_modify(|count| *count += 1);
    }

    /// Stops running jobs. Their records stay without an end, so that the next start runs them again.
    pub async fn close(&self) {
        self.closing.send_replace(true);
        let driver = self.driver.lock().take();
        if let Some(driver) = driver
            && let Err(why) = driver.await
        {
            tracing::error!(%why, "the asynchronous queries did not shut down cleanly");
        }
        if let Some(runtime) = self.runtime.lock().take() {
            runtime.shutdown_background();
        }
    }

    async fn at_the_disk<T: Send + 'static>(
        self: &Arc<AsyncJobs>,
        work: impl FnOnce(&AsyncJobs) -> T + Send + 'static,
    ) -> Result<T, AskError> {
        let jobs = Arc::clone(self);
        let done = self.handle.spawn_blocking(move || work(&jobs)).await;
        done.map_err(|_| AskError::Unavailable("this node is shutting down".into()))
    }

    pub async fn make(self: &Arc<AsyncJobs>, request: JobRequest) -> Result<Uuid, AskError> {
        if *self.closing.borrow() {
            return Err(AskError::Unavailable("this node is shutting down".into()));
        }
        // The task completes even if its caller is gone, so that the reserved place is never leaked.
        self.at_the_disk(|jobs| jobs.make_here(request)).await?
    }

    fn make_here(&self, request: JobRequest) -> Result<Uuid, AskError> {
        let name = record::name(self.context.cluster.node(), Uuid::new_v4());
        let record = JobRecord {
            owner: JobOwner { org: request.org, user: request.user, homes: request.homes, masks: request.masks },
            made: self.now(),
            question: request.question,
            after: request.after.map(|Position { place, xact, object, write }| (place, xact, object, write)),
            seconds: request.seconds,
            batch: request.batch,
            versions: Vec::new(),
            starts: 0,
            end: None,
        };
        if let Some(why) = self.directory.full() {
            return Err(AskError::NoSpace(format!("the query was not stored: {why}")));
        }
        {
            let mut table = self.table.lock();
            table.queue.admit(request.org).map_err(|queue::QueueFull(why)| AskError::Busy(why))?;
            // The job reserves its place now, and becomes ready once its record is written.
            let state = JobState::Queued { not_before: i64::MAX, tries: 0 };
            table.queue.add(name, Job::new(Some(Arc::new(record.owner.clone())), record.batch, record.made, state));
        }
        let written = self.directory.put(name, &record);
        let mut table = self.table.lock();
        match written {
            Ok(()) => table.queue.ready(name),
            Err(why) => {
                table.queue.remove(name);
                drop(table);
                // The file may already have its final name, which nobody knows.
                let _ = self.directory.remove(name);
                tracing::error!(%why, "an asynchronous query could not be stored");
                return Err(AskError::Internal(format!("the asynchronous query could not be stored: {why}")));
            }
        }
        self.woken.notify_one();
        Ok(name)
    }

    /// Returns a job of this node. Waits briefly for rows that are not available yet.
    async fn look_here(
        self: &Arc<AsyncJobs>,
        org: OrgId,
        name: Uuid,
        wanted: Option<ResultRange>,
    ) -> Result<Option<JobView>, AskError> {
        let (until, mut news) = (Instant::now() + WAIT_MAX, self.news.subscribe());
        loop {
            news.borrow_and_update();
            let Some(JobSnapshot { view, pages, file, rows, limit }) = self.snapshot(org, name, wanted) else {
                return Ok(None);
            };
            let Some(ResultRange { row, .. }) = wanted else { return Ok(Some(view)) };
            if pages.is_empty() {
                let is_to_come = matches!(view.status, JobStatus::Queued | JobStatus::Running);
                if is_to_come && timeout_at(until, news.changed()).await.is_ok_and(|news| news.is_ok()) {
                    continue;
                }
                return Ok(Some(view));
            }
            let cut = ResultSlice::new(row, limit, RESULT_BYTES_MAX);
            let read = self.at_the_disk(move |jobs| jobs.read(name, file.as_ref(), &pages, cut)).await??;
            // The job has changed since the snapshot.
            let Some(cut) = read else { continue };
            let is_last = view.status == JobStatus::Succeeded && cut.next >= rows;
            return Ok(Some(JobView { lines: cut.lines.into(), next: (!is_last).then_some(cut.next), ..view }));
        }
    }

    fn snapshot(&self, org: OrgId, name: Uuid, wanted: Option<ResultRange>) -> Option<JobSnapshot> {
        let table = self.table.lock();
        let job = table.queue.get(name)?;
        // A damaged record has no known owner. A caller that knows its name only learns that it failed.
        let owner = job.owner.as_deref();
        if owner.is_some_and(|owner| owner.org != org) {
            return None;
        }
        let row = wanted.map_or(0, |wanted| wanted.row);
        let limit = wanted.and_then(|wanted| wanted.limit).or(job.batch).unwrap_or(RESULT_ROWS_DEFAULT);
        let limit = limit.min(RESULT_ROWS_MAX);
        let status = job.status();
        let (all, error) = match &job.state {
            JobState::Running { pages, .. } | JobState::Succeeded { pages, .. } => (Some(pages), None),
            JobState::Queued { .. } => (None, None),
            JobState::Failed { why, .. } => (None, Some(why.clone())),
        };
        let pages = all.filter(|_| wanted.is_some()).map(|all| all.from(row, limit, RESULT_BYTES_MAX));
        let is_to_come = matches!(status, JobStatus::Queued | JobStatus::Running);
        let homes = owner.map(|owner| owner.homes.clone()).unwrap_or_default();
        let masks = owner.map(|owner| owner.masks.clone()).unwrap_or_default();
        Some(JobSnapshot {
            view: JobView { status, error, homes, masks, lines: Bytes::new(), next: is_to_come.then_some(row) },
            pages: pages.unwrap_or_default(),
            file: table.files.get(&name).cloned(),
            rows: all.map_or(0, |all| all.rows()),
            limit,
        })
    }

    /// Reads rows. Returns `None` if the job has other results by now, or has failed because these are damaged.
    fn read(
        &self,
        name: Uuid,
        file: Option<&Arc<dyn DiskFile>>,
        pages: &[PlacedPage],
        cut: ResultSlice,
    ) -> Result<Option<ResultSlice>, AskError> {
        let read = match file {
            Some(file) => directory::read(&**file, pages, cut),
            None => self.directory.rows(name).and_then(|file| directory::read(&*file, pages, cut)),
        };
        match read {
            Ok(cut) => Ok(Some(cut)),
            Err(_) if !self.table.lock().has_results(name, file) => Ok(None),
            Err(StoredError::Damaged(why)) => {
                self.results_damaged(name, file, &why);
                Ok(None)
            }
            Err(StoredError::Unread(why)) => {
                tracing::warn!(query = %name, why, "the results of a query could not be read");
                let why = format!("the results of this query could not be read: {why}. Request them again");
                Err(AskError::Unavailable(why))
            }
        }
    }

    /// Marks a job as failed because these results of it are damaged.
    fn results_damaged(&self, name: Uuid, file: Option<&Arc<dyn DiskFile>>, why: &str) {
        {
            let _ending = self.ending.lock();
            if !self.table.lock().has_results(name, file) {
                return;
            }
            tracing::error!(query = %name, why, "the results of a query are damaged");
            self.write_failure(name, &damaged(why));
        }
        self.tell();
    }

    /// Marks a job as failed, unless it has ended already.
    fn failed(&self, name: Uuid, why: &str) {
        {
            let _ending = self.ending.lock();
            if !self.table.lock().is_open(name) {
                return;
            }
            self.write_failure(name, why);
        }
        self.tell();
    }

    /// Marks a job as failed, and records that on disk if possible. The caller holds `ending`.
    fn write_failure(&self, name: Uuid, why: &str) {
        let at = self.now();
        let written = self.directory.get(name).map_err(|why| why.to_string()).and_then(|mut record| {
            record.end = Some(JobEnd::Failed { at, why: why.to_owned() });
            self.directory.put(name, &record).map_err(|why| why.to_string())
        });
        if let Err(why) = written {
            tracing::warn!(query = %name, why, "the failure of a query could not be recorded");
        }
        {
            let mut table = self.table.lock();
            table.queue.fail(name, at, why);
            table.files.remove(&name);
        }
        if let Err(why) = self.directory.remove_rows(name) {
            tracing::warn!(query = %name, %why, "the results of a failed query could not be removed");
        }
    }
}

impl Drop for AsyncJobs {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.lock().take() {
            runtime.shutdown_background(); // a runtime must not be dropped inside of another one
        }
    }
}

/// Restores a job from the record that was found at the start.
fn of_before(name: Uuid, record: Result<JobRecord, StoredError>, now: i64) -> Job {
    let record = match record {
        Ok(record) => record,
        Err(why) => {
            tracing::error!(query = %name, %why, "the record of a query is damaged or could not be read");
            let why = match why {
                StoredError::Damaged(why) => damaged(&why),
                StoredError::Unread(why) => {
                    format!(
                        "the stored data of this query could not be read: {why}. It is read again at the next start"
                    )
                }
            };
            return Job::new(None, None, now, JobState::Failed { at: now, why });
        }
    };
    let state = match record.end {
        Some(JobEnd::Succeeded { at, pages }) => JobState::Succeeded { at, pages: pages::Pages::new(&pages) },
        Some(JobEnd::Failed { at, why }) => JobState::Failed { at, why },
        None if record.starts >= STARTS_MAX => {
            let why = format!("its node stopped {} times while the query ran; it is not run again", record.starts);
            JobState::Failed { at: record.made, why }
        }
        None => JobState::queued(),
    };
    Job::new(Some(Arc::new(record.owner)), record.batch, record.made, state)
}

fn damaged(why: &str) -> String {
    format!("the stored data of this query is damaged: {why}. Start the query again")
}
