//! Jobs as they are run: by turns, each through the same `Answer` as a query that somebody waits for, its rows written page
//! by page.

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_node_limits::Holder;
use assay_storage_disk::DiskFile;
use futures::FutureExt;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::Later;
use super::pages::{PAGE_BYTES, Page, Pages};
use super::record::{End, Record};
use crate::render::{Format, FormatError, RowWriter};
use crate::{Answer, AskError, Table, columns_of};

/// What is gone is looked for this often; a job that is made or ends wakes up by itself.
const LOOK_EVERY: Duration = Duration::from_secs(60);
const LOOK_EVERY_MIN: Duration = Duration::from_millis(50);
/// One row: a page of results with it behind others still is a message between nodes.
const ROW_BYTES_MAX: usize = 32 << 20;

/// Why a run came to no answer.
#[derive(Debug)]
enum Stop {
    /// What it needs is not there just now.
    Passing(String),
    /// The words are for who asked.
    Failed(String),
}

impl From<AskError> for Stop {
    fn from(why: AskError) -> Stop {
        match why {
            AskError::Busy(_) | AskError::Refused { .. } | AskError::Unavailable(_) | AskError::Damaged(_) => {
                Stop::Passing(why.to_string())
            }
            AskError::Internal(why) => {
                tracing::error!(why, "a query that runs on after its request failed inside");
                Stop::Failed("the server failed on this query; the log of its node has more".into())
            }
            other => Stop::Failed(other.to_string()),
        }
    }
}

impl From<FormatError> for Stop {
    fn from(why: FormatError) -> Stop {
        match why {
            FormatError::Beyond { .. } | FormatError::TooLong { .. } => Stop::Failed(why.to_string()),
            other => AskError::Internal(other.to_string()).into(),
        }
    }
}

impl From<io::Error> for Stop {
    fn from(why: io::Error) -> Stop {
        tracing::error!(%why, "results of a query could not be written");
        Stop::Failed(format!("its results could not be written: {why}"))
    }
}

/// Rows on their way into a file.
struct Writing<'l> {
    later: &'l Later,
    name: Uuid,
    file: Arc<dyn DiskFile>,
    writer: Option<RowWriter>,
    /// Of the page that is not written yet.
    lines: Vec<u8>,
    rows: u32,
    pages: Pages,
}

impl Later {
    /// Until the node stops.
    pub(super) async fn drive(self: Arc<Later>) {
        let (mut running, mut closing) = (JoinSet::new(), self.closing.subscribe());
        loop {
            self.sweep();
            loop {
                let next = self.jobs.lock().line.next(self.now());
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
        // They end where they wait, and no more is written of them but that this was no fault of theirs.
        running.shutdown().await;
        let stopped = self.jobs.lock().line.running();
        stopped.into_iter().for_each(|name| self.uncounted(name));
    }

    fn pause(&self) -> Duration {
        let wakes = self.jobs.lock().line.wakes_at().map(|at| at.saturating_sub(self.now()).max(0));
        let wakes = wakes.map(|micros| Duration::from_micros(micros.unsigned_abs()));
        wakes.unwrap_or(LOOK_EVERY).clamp(LOOK_EVERY_MIN, LOOK_EVERY)
    }

    /// Takes away what was kept long enough.
    fn sweep(&self) {
        let now = self.now();
        let (gone, stale) = {
            let jobs = self.jobs.lock();
            (jobs.line.gone(now), jobs.line.stale(now))
        };
        for name in stale {
            self.failed(name, "it had no turn within a day");
        }
        for name in gone {
            self.jobs.lock().line.remove(name);
            if let Err(why) = self.folder.remove(name) {
                tracing::warn!(query = %name, %why, "results of a query are left");
            }
        }
    }

    async fn run(self: Arc<Later>, name: Uuid) {
        self.tell();
        let ended = AssertUnwindSafe(self.attempt(name)).catch_unwind().await;
        match ended {
            Ok(Ok(())) => {
                let mut jobs = self.jobs.lock();
                jobs.line.succeed(name, self.now());
                jobs.files.remove(&name);
            }
            Ok(Err(Stop::Passing(why))) => self.again(name, &why),
            Ok(Err(Stop::Failed(why))) => self.failed(name, &why),
            Err(_) => self.failed(name, "the query ended in a panic; the log of its node has more"),
        }
        self.tell();
    }

    fn again(&self, name: Uuid, why: &str) {
        tracing::info!(query = %name, why, "a query waits for what it needs");
        self.uncounted(name);
        let waits = {
            let mut jobs = self.jobs.lock();
            jobs.files.remove(&name);
            jobs.line.again(name, self.now())
        };
        if !waits {
            self.failed(name, &format!("it had no answer within a day: {why}"));
        }
    }

    /// A run that was no fault of the query's, or came to its end.
    fn uncounted(&self, name: Uuid) {
        let uncounted = self.folder.get(name).and_then(|mut record| {
            record.starts = record.starts.saturating_sub(1);
            self.folder.put(name, &record).map_err(|why| why.to_string())
        });
        if let Err(why) = uncounted {
            tracing::warn!(query = %name, why, "the record of a query could not be written");
        }
    }

    async fn attempt(&self, name: Uuid) -> Result<(), Stop> {
        let mut record = self.folder.get(name).map_err(|why| Stop::Failed(super::damaged(&why)))?;
        record.starts += 1;
        self.folder.put(name, &record)?;
        let asked = record.question.clone().read()?;
        let most = self.office.limits.later.seconds_max;
        let mut left = Duration::from_secs(record.seconds.map_or(most, |seconds| seconds.min(most)));
        let who = Holder::new(record.owner.org.0, record.owner.user);
        let mut answer = Answer::of(&self.office, who, asked, &record.owner.homes, record.after(), left);
        answer.asker = self.office.later_asker.get().cloned().unwrap_or_default();
        answer.versions = record.versions.iter().copied().collect();
        let file = self.folder.new_rows(name)?;
        self.jobs.lock().files.insert(name, Arc::clone(&file));
        let mut writing = Writing {
            later: self,
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
                self.folder.put(name, &record)?;
            }
            writing.table(&answer, &table)?;
        }
        file.sync()?;
        self.end(name, record)
    }

    fn end(&self, name: Uuid, mut record: Record) -> Result<(), Stop> {
        let pages = self.jobs.lock().line.pages(name);
        record.end = Some(End::Succeeded { at: self.now(), pages });
        Ok(self.folder.put(name, &record)?)
    }

    /// The next rows, once nobody else waits for a turn. That is not counted to its time.
    async fn part(&self, answer: &mut Answer, left: &mut Duration) -> Result<Option<Table>, AskError> {
        let _permit = self.office.admission.enter_behind(answer.who).await;
        let begun = Instant::now();
        answer.time = *left;
        let table = answer.next().await;
        *left = left.saturating_sub(begun.elapsed());
        table
    }
}

impl Writing<'_> {
    fn table(&mut self, answer: &Answer, table: &Table) -> Result<(), Stop> {
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => RowWriter::new(Format::JsonLines, &columns_of(answer.asked.columns(), table))?,
        };
        for row in &table.rows {
            let line = writer.rows(std::slice::from_ref(row))?;
            if line.len() > ROW_BYTES_MAX {
                let (bytes, mib) = (line.len(), ROW_BYTES_MAX >> 20);
                return Err(Stop::Failed(format!(
                    "a row of the results has {bytes} bytes; at most {mib} MiB are kept: select less of it"
                )));
            }
            self.lines.extend_from_slice(&line);
            self.rows += 1;
            if self.lines.len() >= PAGE_BYTES {
                self.page()?;
            }
        }
        self.writer = Some(writer);
        // Whoever reads along sees what there is.
        self.page()
    }

    fn page(&mut self) -> Result<(), Stop> {
        if self.rows == 0 {
            return Ok(());
        }
        if let Some(why) = self.later.folder.full() {
            return Err(Stop::Failed(format!("there is no room for its results: {why}")));
        }
        let full = |super::line::Full(why)| Stop::Failed(why);
        self.later.jobs.lock().line.may_grow(self.name, self.lines.len()).map_err(full)?;
        let page = Page::of(self.pages.bytes(), self.rows, &self.lines);
        self.file.append(&self.lines)?;
        self.pages.push(page);
        self.later.jobs.lock().line.page(self.name, page);
        self.lines.clear();
        self.rows = 0;
        self.later.tell();
        Ok(())
    }
}
