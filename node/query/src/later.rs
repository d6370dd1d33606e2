//! Queries that run on after their request (`POST /btql/async`): jobs, which have a name, run when there is room, and keep
//! what they answered for a day.
//!
//! ```text
//! make ── record written ── name      (line: who waits, who runs, what is kept; folder: the files)
//!              │
//!         drive ── run ── Answer, part by part ── pages of JSON lines ── record with its end written
//!
//! look ── name says the node ─┬─ here: line, then pages
//!                             └─ on another node: `query.later` asks it
//! ```
//! A job is on one node, the one that was asked, and two files in `queries/` of its data directory:
//!
//! ```text
//! <name>.query   the record: whose, what is asked, with which settings, at which moment; the versions it reads;
//!                at last its end, which is why it failed, or the pages of its rows, each with a checksum
//! <name>.rows    its rows, JSON lines and nothing else
//! ```
//! The record is replaced whole (a new file, its sync, a rename, a sync of the folder), and that is done:
//! 1. before the name is answered, so that a job that was promised is there after any crash;
//! 2. before each run, which is counted: one that ended the process several times is not begun once more;
//! 3. once the versions are known and before a row can be seen, so that a run after a crash reads the same and a reader who
//!    has half of the rows goes on with the other half;
//! 4. at the end, behind the sync of the rows.
//!
//! So a crash leaves a record without an end: the next start takes the rows away that are beside it, and runs the job from
//! its beginning. A record with an end has all its rows. Damage is never taken for an end that is missing: a record that
//! does not match its checksum, or rows that do not match theirs or their length, make the job `failed`, and its error says
//! so. Results are in no consensus: they can be asked for again, and go with the disk of their node.
//!
//! Jobs take turns with queries that somebody waits for, and come behind them, part by part; they have the memory and the
//! limits of all others. What a job needs and does not find (a shard without a leader, no memory) is waited for.
//!
//! Nothing in the API cancels a job, so none is ever `canceled`.

mod door;
mod folder;
mod line;
mod pages;
mod record;
mod run;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
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

use crate::office::Office;
use crate::{AskError, Home, Question};
use door::LaterDoor;
use folder::Folder;
use line::{Job, Line, State};
use pages::{Cut, Placed};
use record::{End, Owner, Record};

pub use line::LaterCounts;

/// Rows of a page of results where nobody says how many, and at most.
const RESULT_ROWS_DEFAULT: u64 = 1000;
pub const RESULT_ROWS_MAX: u64 = 10_000;
/// A page of results ends behind the row that reaches it.
const RESULT_BYTES_MAX: usize = 16 << 20;
/// Who asks for rows that are not there yet waits so long for them: clients ask again at once.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Runs that ended with the process; no more are begun.
const STARTS_MAX: u32 = 5;
/// Threads that read and write files beside the runs of jobs.
const FILE_THREADS: usize = 4;
/// Not named like threads whose panic ends the process: a panic in a query ends the query.
const THREAD: &str = "assay-later";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaterLimits {
    /// At once on this node.
    pub running_max: usize,
    /// Of one organization, waiting on this node.
    pub waiting_max: usize,
    /// Waiting, running and ended ones on this node; half of them of one organization.
    pub kept_max: usize,
    /// What one may take, not counting what it waits.
    pub seconds_max: u64,
    /// Results of one.
    pub job_bytes_max: u64,
    /// Results of all on this node; half of them of one organization.
    pub bytes_max: u64,
}

impl Default for LaterLimits {
    fn default() -> LaterLimits {
        LaterLimits {
            running_max: 2,
            waiting_max: 32,
            kept_max: 4000,
            seconds_max: 900,
            job_bytes_max: 1 << 30,
            bytes_max: 8 << 30,
        }
    }
}

/// A question to be answered later; who asks may read all of it.
#[derive(Clone, Debug)]
pub struct LaterRequest {
    pub org: OrgId,
    pub user: Uuid,
    pub question: Question,
    /// The objects that it means, in its order.
    pub homes: Vec<Home>,
    /// Where the page before ended.
    pub after: Option<Position>,
    pub seconds: Option<u64>,
    /// Rows of a page of results where its reader does not say.
    pub batch: Option<u64>,
}

/// What has become of a job. `canceled` none ever is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Queued,
    Running,
    Succeeded,
    Failed,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Status::Queued => "queued",
            Status::Running => "running",
            Status::Succeeded => "succeeded",
            Status::Failed => "failed",
        }
    }
}

/// Which rows a reader wants: from this one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    pub row: u64,
    pub limit: Option<u64>,
}

/// A job as its reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub status: Status,
    pub error: Option<String>,
    /// Who may see it may read all of these.
    pub homes: Vec<Home>,
    /// JSON, each with a line break behind it.
    pub lines: Bytes,
    /// Where the next rows are, or will be.
    pub next: Option<u64>,
}

/// All jobs of this node.
#[derive(Debug)]
pub(crate) struct Later {
    office: Arc<Office>,
    folder: Folder,
    jobs: Mutex<Jobs>,
    /// Counts what may be news to who waits for rows.
    news: watch::Sender<u64>,
    /// There may be something to do.
    woken: Notify,
    closing: watch::Sender<bool>,
    handle: Handle,
    runtime: Mutex<Option<Runtime>>,
    driver: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Jobs {
    line: Line,
    /// Rows of those that run.
    files: BTreeMap<Uuid, Arc<dyn DiskFile>>,
}

/// What is known of a job at once, and what is to be read for it.
#[derive(Debug)]
struct Glance {
    seen: Seen,
    pages: Vec<Placed>,
    /// None: it has ended, and is to be opened.
    file: Option<Arc<dyn DiskFile>>,
    rows: u64,
    limit: u64,
}

impl Later {
    pub fn start(office: Arc<Office>) -> io::Result<Arc<Later>> {
        let limits = office.limits.later.clone();
        let (folder, mut found) = Folder::open(Arc::clone(office.cluster.disk()), office.cluster.data_dir())?;
        found.sort_by_key(|(_, record)| record.as_ref().map_or(0, |record| record.made));
        let (now, mut line) = ((office.clock)(), Line::new(limits.clone()));
        for (name, record) in found {
            line.add(name, of_before(name, record, now));
        }
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(limits.running_max.max(1) + 1).max_blocking_threads(FILE_THREADS);
        let runtime = builder.thread_name(THREAD).enable_all().build()?;
        let later = Arc::new(Later {
            folder,
            jobs: Mutex::new(Jobs { line, files: BTreeMap::new() }),
            news: watch::Sender::new(0),
            woken: Notify::new(),
            closing: watch::Sender::new(false),
            handle: runtime.handle().clone(),
            runtime: Mutex::new(Some(runtime)),
            driver: Mutex::new(None),
            office,
        });
        *later.driver.lock() = Some(later.handle.spawn(Arc::clone(&later).drive()));
        later.office.cluster.serve_on_behalf(door::LATER, Arc::new(LaterDoor(Arc::clone(&later))));
        Ok(later)
    }

    pub fn counts(&self) -> LaterCounts {
        self.jobs.lock().line.counts()
    }

    fn now(&self) -> i64 {
        (self.office.clock)()
    }

    /// Something changed that somebody may wait for.
    fn tell(&self) {
        self.news.send_modify(|count| *count += 1);
    }

    /// Jobs that run are stopped where they are.
    pub async fn close(&self) {
        self.closing.send_replace(true);
        let driver = self.driver.lock().take();
        if let Some(driver) = driver
            && let Err(why) = driver.await
        {
            tracing::error!(%why, "queries that run on after their request did not end in order");
        }
        if let Some(runtime) = self.runtime.lock().take() {
            runtime.shutdown_background();
        }
    }

    async fn at_the_disk<T: Send + 'static>(
        self: &Arc<Later>,
        work: impl FnOnce(&Later) -> T + Send + 'static,
    ) -> Result<T, AskError> {
        let later = Arc::clone(self);
        let done = self.handle.spawn_blocking(move || work(&later)).await;
        done.map_err(|_| AskError::Unavailable("this node shuts down".into()))
    }

    pub async fn make(self: &Arc<Later>, request: LaterRequest) -> Result<Uuid, AskError> {
        if *self.closing.borrow() {
            return Err(AskError::Unavailable("this node shuts down".into()));
        }
        // Whether or not anybody waits for it still: a place that was taken is given back.
        self.at_the_disk(|later| later.make_here(request)).await?
    }

    fn make_here(&self, request: LaterRequest) -> Result<Uuid, AskError> {
        let name = record::name(self.office.cluster.node(), Uuid::new_v4());
        let record = Record {
            owner: Owner { org: request.org, user: request.user, homes: request.homes },
            made: self.now(),
            question: request.question,
            after: request.after.map(|Position { place, xact, object, write }| (place, xact, object, write)),
            seconds: request.seconds,
            batch: request.batch,
            versions: Vec::new(),
            starts: 0,
            end: None,
        };
        if let Some(why) = self.folder.full() {
            return Err(AskError::NoSpace(format!("a query is not kept: {why}")));
        }
        {
            let mut jobs = self.jobs.lock();
            jobs.line.admit(request.org).map_err(|line::Full(why)| AskError::Busy(why))?;
            // Its place is taken; it runs once it is written.
            let state = State::Queued { not_before: i64::MAX, tries: 0 };
            jobs.line.add(name, Job::new(Some(Arc::new(record.owner.clone())), record.batch, record.made, state));
        }
        let written = self.folder.put(name, &record);
        let mut jobs = self.jobs.lock();
        match written {
            Ok(()) => jobs.line.ready(name),
            Err(why) => {
                jobs.line.remove(name);
                drop(jobs);
                // It may have its name already, and nobody knows it.
                let _ = self.folder.remove(name);
                tracing::error!(%why, "a query to be answered later could not be kept");
                return Err(AskError::Internal(format!("a query to be answered later could not be kept: {why}")));
            }
        }
        self.woken.notify_one();
        Ok(name)
    }

    /// On this node. Who wants rows that are not there yet waits a moment.
    async fn look_here(
        self: &Arc<Later>,
        org: OrgId,
        name: Uuid,
        wanted: Option<Wanted>,
    ) -> Result<Option<Seen>, AskError> {
        let (until, mut news) = (Instant::now() + WAIT_MAX, self.news.subscribe());
        loop {
            news.borrow_and_update();
            let Some(Glance { seen, pages, file, rows, limit }) = self.glance(org, name, wanted) else {
                return Ok(None);
            };
            let Some(Wanted { row, .. }) = wanted else { return Ok(Some(seen)) };
            if pages.is_empty() {
                let is_to_come = matches!(seen.status, Status::Queued | Status::Running);
                if is_to_come && timeout_at(until, news.changed()).await.is_ok_and(|news| news.is_ok()) {
                    continue;
                }
                return Ok(Some(seen));
            }
            let cut = Cut::new(row, limit, RESULT_BYTES_MAX);
            let read = self.at_the_disk(move |later| later.read(name, file, &pages, cut)).await?;
            // What could not be read is gone by now, or failed.
            let Some(cut) = read else { continue };
            let is_last = seen.status == Status::Succeeded && cut.next >= rows;
            return Ok(Some(Seen { lines: cut.lines.into(), next: (!is_last).then_some(cut.next), ..seen }));
        }
    }

    fn glance(&self, org: OrgId, name: Uuid, wanted: Option<Wanted>) -> Option<Glance> {
        let jobs = self.jobs.lock();
        let job = jobs.line.get(name)?;
        // Of a damaged record nobody knows whose it was: who knows its name is told that it failed, and nothing else.
        let owner = job.owner.as_deref();
        if owner.is_some_and(|owner| owner.org != org) {
            return None;
        }
        let row = wanted.map_or(0, |wanted| wanted.row);
        let limit = wanted.and_then(|wanted| wanted.limit).or(job.batch).unwrap_or(RESULT_ROWS_DEFAULT);
        let limit = limit.min(RESULT_ROWS_MAX);
        let status = job.status();
        let (all, error) = match &job.state {
            State::Running { pages, .. } | State::Succeeded { pages, .. } => (Some(pages), None),
            State::Queued { .. } => (None, None),
            State::Failed { why, .. } => (None, Some(why.clone())),
        };
        let pages = all.filter(|_| wanted.is_some()).map(|all| all.from(row, limit, RESULT_BYTES_MAX));
        let is_to_come = matches!(status, Status::Queued | Status::Running);
        let homes = owner.map(|owner| owner.homes.clone()).unwrap_or_default();
        Some(Glance {
            seen: Seen { status, error, homes, lines: Bytes::new(), next: is_to_come.then_some(row) },
            pages: pages.unwrap_or_default(),
            file: jobs.files.get(&name).cloned(),
            rows: all.map_or(0, |all| all.rows()),
            limit,
        })
    }

    /// None where there is nothing to read any more: the job is gone, or failed by this.
    fn read(&self, name: Uuid, file: Option<Arc<dyn DiskFile>>, pages: &[Placed], cut: Cut) -> Option<Cut> {
        let read = match file {
            Some(file) => folder::read(&*file, pages, cut),
            None => match self.folder.rows(name) {
                Ok(file) => folder::read(&*file, pages, cut),
                Err(why) => Err(why.to_string()),
            },
        };
        match read {
            Ok(cut) => Some(cut),
            Err(why) => {
                let is_there = self.jobs.lock().line.get(name).is_some_and(|job| job.status() != Status::Queued);
                if is_there {
                    tracing::error!(query = %name, why, "results of a query are damaged");
                    self.failed(name, &damaged(&why));
                }
                None
            }
        }
    }

    /// Written down, if that can be done; else it is so until the next start.
    fn failed(&self, name: Uuid, why: &str) {
        let at = self.now();
        let written = self.folder.get(name).and_then(|mut record| {
            record.end = Some(End::Failed { at, why: why.to_owned() });
            self.folder.put(name, &record).map_err(|why| why.to_string())
        });
        if let Err(why) = written {
            tracing::warn!(query = %name, why, "that a query failed could not be written down");
        }
        {
            let mut jobs = self.jobs.lock();
            jobs.line.fail(name, at, why);
            jobs.files.remove(&name);
        }
        if let Err(why) = self.folder.remove_rows(name) {
            tracing::warn!(query = %name, %why, "results of a query that failed are left");
        }
        self.tell();
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.lock().take() {
            runtime.shutdown_background(); // a runtime may not be dropped where one runs
        }
    }
}

/// A job that a start finds.
fn of_before(name: Uuid, record: Result<Record, String>, now: i64) -> Job {
    let record = match record {
        Ok(record) => record,
        Err(why) => {
            tracing::error!(query = %name, why, "what is kept of a query is damaged");
            return Job::new(None, None, now, State::Failed { at: now, why: damaged(&why) });
        }
    };
    let state = match record.end {
        Some(End::Succeeded { at, pages }) => State::Succeeded { at, pages: pages::Pages::new(&pages) },
        Some(End::Failed { at, why }) => State::Failed { at, why },
        None if record.starts >= STARTS_MAX => {
            let why =
                format!("the process of its node ended {} times while it ran; it is not run again", record.starts);
            State::Failed { at: record.made, why }
        }
        None => State::queued(),
    };
    Job::new(Some(Arc::new(record.owner)), record.batch, record.made, state)
}

fn damaged(why: &str) -> String {
    format!("what its node keeps of this query is damaged: {why}. Ask it again")
}
