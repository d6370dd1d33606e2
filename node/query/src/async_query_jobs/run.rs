//! Execution of jobs: each one runs as a normal query, and its rows are written page by page.

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_node_limits::Holder;
use assay_node_running_queries::{QueryKind, QueryOwner};
use assay_storage_disk::DiskFile;
use futures::FutureExt;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::AsyncJobs;
use super::directory::StoredError;
use super::pages::{PAGE_BYTES, Page, Pages};
use super::record::{JobEnd, JobRecord};
use crate::render::{Format, FormatError, RowWriter};
use crate::{AskError, QueryAnswer, Table, columns_of};

/// Interval of the sweep for expired jobs. New and ended jobs wake the driver themselves.
const LOOK_EVERY: Duration = Duration::from_secs(60);
const LOOK_EVERY_MIN: Duration = Duration::from_millis(50);
/// Upper bound of the bytes of one row, so that its page still fits into a message between nodes.
const ROW_BYTES_MAX: usize = 32 << 20;

/// Reason why a run ended without a result.
#[derive(Debug)]
pub(super) enum RunError {
    /// A shard or memory is temporarily unavailable.
    Passing(String),
    /// The query failed; the text is for its reader.
    Failed(String),
}

impl From<AskError> for RunError {
    fn from(why: AskError) -> RunError {
        match why {
            AskError::Busy(_) | AskError::Refused { .. } | AskError::Unavailable(_) | AskError::Damaged(_) => {
                RunError::Passing(why.to_string())
            }
            AskError::Internal(why) => {
                tracing::error!(why, "an asynchronous query failed with an internal error");
                RunError::Failed("the server failed on this query; the log of its node has the details".into())
            }
            other => RunError::Failed(other.to_string()),
        }
    }
}

impl From<StoredError> for RunError {
    fn from(why: StoredError) -> RunError {
        match why {
            StoredError::Damaged(why) => RunError::Failed(super::damaged(&why)),
            StoredError::Unread(why) => RunError::Passing(why),
        }
    }
}

impl From<FormatError> for RunError {
    fn from(why: FormatError) -> RunError {
        match why {
            FormatError::Beyond { .. } | FormatError::TooLong { .. } => RunError::Failed(why.to_string()),
            other => AskError::Internal(other.to_string()).into(),
        }
    }
}

impl From<io::Error> for RunError {
    fn from(why: io::Error) -> RunError {
        tracing::error!(%why, "the results of a query could not be written");
        RunError::Failed(format!("its results could not be written: {why}"))
    }
}

/// Writer of a job's rows into its file.
struct ResultWriter<'l> {
    jobs: &'l AsyncJobs,
    name: Uuid,
    file: Arc<dyn DiskFile>,
    writer: Option<RowWriter>,
    /// Lines of the current page, which was not written yet.
    lines: Vec<u8>,
    rows: u32,
    pages: Pages,
}

impl AsyncJobs {
    /// Runs jobs until the node stops.
    pub(super) async fn drive(self: Arc<AsyncJobs>) {
        let (mut running, mut closing) = (JoinSet::new(), self.closing.subscribe());
        loop {
            self.sweep();
            loop {
                let next = self.table.lock().queue.next(self.now());
                let Some(name) = next else { break };
                running.spawn(Arc::clone(&self).run(name));
            }
            let pause = self.pause();
            tokio::select! {
                () = self.woken.notified() => {}
                _ = running.join_next(), if !running.is_empty() => {}
                () = tokio::time::sleep(pause) => {}
                _ = closing.wait_for(|closing| *closing) => break,
            }
        }
        // Aborted runs end at their next await. Their records only get their counts corrected.
        running.shutdown().await;
        let stopped = self.table.lock().queue.running();
        stopped.into_iter().for_each(|name| self.uncounted(name));
    }

    fn pause(&self) -> Duration {
        let wakes = self.table.lock().queue.wakes_at().map(|at| at.saturating_sub(self.now()).max(0));
        let wakes = wakes.map(|micros| Duration::from_micros(micros.unsigned_abs()));
        wakes.unwrap_or(LOOK_EVERY).clamp(LOOK_EVERY_MIN, LOOK_EVERY)
    }

    /// Removes expired jobs.
    fn sweep(&self) {
        let now = self.now();
        let (gone, stale) = {
            let table = self.table.lock();
            (table.queue.gone(now), table.queue.stale(now))
        };
        for name in stale {
            self.failed(name, "it did not start within a day");
        }
        for name in gone {
            let _ending = self.ending.lock();
            self.table.lock().queue.remove(name);
            if let Err(why) = self.directory.remove(name) {
                tracing::warn!(query = %name, %why, "the results of a query could not be removed");
            }
        }
    }

    pub(super) async fn run(self: Arc<AsyncJobs>, name: Uuid) {
        self.tell();
        let ended = AssertUnwindSafe(self.attempt(name)).catch_unwind().await;
        if !matches!(ended, Ok(Err(RunError::Passing(_)))) {
            self.table.lock().counted.remove(&name);
        }
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(RunError::Passing(why))) => self.again(name, &why),
            Ok(Err(RunError::Failed(why))) => self.failed(name, &why),
            Err(_) => self.failed(name, "the query panicked; the log of its node has the details"),
        }
        self.tell();
    }

    fn again(&self, name: Uuid, why: &str) {
        tracing::info!(query = %name, why, "a query waits for what it needs");
        self.uncounted(name);
        let waits = {
            let mut table = self.table.lock();
            table.files.remove(&name);
            table.queue.again(name, self.now())
        };
        if !waits {
            self.failed(name, &format!("it did not complete within a day: {why}"));
        }
    }

    /// Reverts the count of a run that ended orderly, or for reasons other than the query.
    ///
    /// A run may end before it is counted, and earlier runs keep their counts.
    fn uncounted(&self, name: Uuid) {
        let _ending = self.ending.lock();
        if !self.table.lock().counted.remove(&name) {
            return;
        }
        let uncounted = self.directory.get(name).map_err(|why| why.to_string()).and_then(|mut record| {
            record.starts = record.starts.saturating_sub(1);
            self.directory.put(name, &record).map_err(|why| why.to_string())
        });
        if let Err(why) = uncounted {
            tracing::warn!(query = %name, why, "the record of a query could not be written");
        }
    }

    /// Runs a job to its end.
    ///
    /// Its record is written without `ending` only before its first page is visible. Nobody else ends the job until
    /// then.
    async fn attempt(&self, name: Uuid) -> Result<(), RunError> {
        let mut record = self.directory.get(name)?;
        record.starts += 1;
        self.directory.put(name, &record)?;
        self.table.lock().counted.insert(name);
        let asked = record.question.clone().read()?;
        let most = self.context.limits.jobs.seconds_max;
        let mut left = Duration::from_secs(record.seconds.map_or(most, |seconds| seconds.min(most)));
        let who = Holder::new(record.owner.org.0, record.owner.user);
        let owner = QueryOwner { organization: record.owner.org.0, user: record.owner.user };
        let origin = (owner, QueryKind::Job);
        let mut answer =
            QueryAnswer::of(&self.context, (who, origin), asked, &record.owner.homes, record.after(), left)
                .masked(&record.owner.homes, &record.owner.masks);
        answer.asker = self.context.job_asker.get().cloned().unwrap_or_default();
        answer.versions = record.versions.iter().copied().collect();
        let file = self.directory.new_rows(name)?;
        self.table.lock().files.insert(name, Arc::clone(&file));
        let mut writing = ResultWriter {
            jobs: self,
            name,
            file: Arc::clone(&file),
            writer: None,
            lines: Vec::new(),
            rows: 0,
            pages: Pages::default(),
        };
        while let Some(table) = self.part(&mut answer, &mut left).await? {
            if record.versions.is_empty() {
                record.versions = answer.versions.iter().map(|(shard, at)| (*shard, *at)).collect();
                self.directory.put(name, &record)?;
            }
            writing.table(&answer, &table)?;
        }
        file.sync()?;
        self.end(name, record)
    }

    /// Records the success of a job, unless it has failed meanwhile.
    pub(super) fn end(&self, name: Uuid, mut record: JobRecord) -> Result<(), RunError> {
        let _ending = self.ending.lock();
        let Some(pages) = self.table.lock().queue.pages(name) else { return Ok(()) };
        let at = self.now();
        record.end = Some(JobEnd::Succeeded { at, pages });
        self.directory.put(name, &record)?;
        let mut table = self.table.lock();
        table.queue.succeed(name, at);
        table.files.remove(&name);
        Ok(())
    }

    /// Returns the next rows, after interactive queries got their permits. That wait does not count as running time.
    async fn part(&self, answer: &mut QueryAnswer, left: &mut Duration) -> Result<Option<Table>, AskError> {
        let _permit = self.context.admission.enter_behind(answer.who).await;
        let begun = Instant::now();
        answer.time = *left;
        let table = answer.next().await;
        *left = left.saturating_sub(begun.elapsed());
        table
    }
}

impl ResultWriter<'_> {
    fn table(&mut self, answer: &QueryAnswer, table: &Table) -> Result<(), RunError> {
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => RowWriter::new(Format::JsonLines, &columns_of(answer.asked.columns(), table))?,
        };
        for row in 0..table.len {
            let line = writer.rows(&table.slice(row, 1))?;
            if line.len() > ROW_BYTES_MAX {
                let (bytes, mib) = (line.len(), ROW_BYTES_MAX >> 20);
                return Err(RunError::Failed(format!(
                    "a row of the results has {bytes} bytes; the maximum is {mib} MiB: select fewer columns"
                )));
            }
            self.lines.extend_from_slice(&line);
            self.rows += 1;
            if self.lines.len() >= PAGE_BYTES {
                self.page()?;
            }
        }
        self.writer = Some(writer);
        // Readers see the rows of a running job after each table.
        self.page()
    }

    fn page(&mut self) -> Result<(), RunError> {
        if self.rows == 0 {
            return Ok(());
        }
        if let Some(why) = self.jobs.directory.full() {
            return Err(RunError::Failed(format!("there is no room for its results: {why}")));
        }
        let full = |super::queue::QueueFull(why)| RunError::Failed(why);
        self.jobs.table.lock().queue.may_grow(self.name, self.lines.len()).map_err(full)?;
        let page = Page::of(self.pages.bytes(), self.rows, &self.lines);
        self.file.append(&self.lines)?;
        self.pages.push(page);
        self.jobs.table.lock().queue.page(self.name, page);
        self.lines.clear();
        self.rows = 0;
        self.jobs.tell();
        Ok(())
    }
}
