//! Log of events, which assigns their time and their line. Rows read by clients go to a file beside it, for the
//! explanation of findings.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::events::RunEvent;
use crate::cluster::workload::rows::Rows;
use crate::single_node::worker_history::Recorder;

pub const HISTORY: &str = "history.jsonl";
pub const READS: &str = "reads.jsonl";
/// Bytes of rows that are kept of reads; later reads have digests alone.
const READS_BYTES_MAX: u64 = 1 << 30;

#[derive(Debug)]
pub struct Journal {
    recorder: Mutex<Recorder<RunEvent>>,
    reads: Mutex<Reads>,
    operations: AtomicU64,
    trouble: Mutex<Option<String>>,
}

#[derive(Debug)]
struct Reads {
    file: BufWriter<File>,
    bytes: u64,
}

/// Beginning of a line.
const OP: &str = "{\"op\":";

/// The rows that a read found.
#[derive(Debug, Serialize, Deserialize)]
struct Body<'a> {
    op: u64,
    rows: Cow<'a, Rows>,
}

impl Journal {
    pub fn create(dir: &Path) -> anyhow::Result<Journal> {
        let reads = File::create_new(dir.join(READS)).context("creating the file of what is read")?;
        Ok(Journal {
            recorder: Mutex::new(Recorder::create(&dir.join(HISTORY))?),
            reads: Mutex::new(Reads { file: BufWriter::new(reads), bytes: 0 }),
            operations: AtomicU64::new(1),
            trouble: Mutex::new(None),
        })
    }

    /// A number that no other operation has.
    pub fn operation(&self) -> u64 {
        self.operations.fetch_add(1, Ordering::Relaxed)
    }

    /// A history with a hole proves nothing: the first failure makes the run unknown.
    pub fn say(&self, said: RunEvent) {
        let done = self.recorder.lock().unwrap_or_else(PoisonError::into_inner).record(said);
        self.note(done);
    }

    /// Stores the rows of a read, before its end is recorded. `needed` rows are stored without a limit.
    pub fn keep(&self, op: u64, rows: &Rows, needed: bool) {
        let done = self.keep_body(op, rows, needed);
        self.note(done);
    }

    fn keep_body(&self, op: u64, rows: &Rows, needed: bool) -> anyhow::Result<()> {
        let mut line = serde_json::to_string(&Body { op, rows: Cow::Borrowed(rows) })?;
        line.push('\n');
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        if needed || reads.bytes + line.len() as u64 <= READS_BYTES_MAX {
            reads.bytes += line.len() as u64;
            reads.file.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    pub fn flush(&self) {
        let done = self.reads.lock().unwrap_or_else(PoisonError::into_inner).file.flush();
        self.note(done.map_err(Into::into));
    }

    fn note(&self, done: anyhow::Result<()>) {
        if let Err(why) = done {
            let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
            trouble.get_or_insert_with(|| format!("the history has a hole: {why:#}"));
        }
    }

    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Stored rows of reads, found by operation.
#[derive(Clone, Debug)]
pub struct Bodies(PathBuf);

impl Bodies {
    pub fn of(dir: &Path) -> Bodies {
        Bodies(dir.join(READS))
    }

    /// Goes through the file each time: only what is wrong is explained.
    pub fn find(&self, op: u64) -> Option<Rows> {
        self.load(&BTreeSet::from([op])).ok()?.remove(&op)
    }

    /// The rows of these reads, as far as they were kept.
    pub fn load(&self, ops: &BTreeSet<u64>) -> anyhow::Result<BTreeMap<u64, Rows>> {
        let file = File::open(&self.0).with_context(|| format!("opening {}", self.0.display()))?;
        let mut found = BTreeMap::new();
        for line in BufReader::new(file).lines() {
            let line = line?;
            let op = line.strip_prefix(OP).and_then(|rest| rest.split_once(',')?.0.parse().ok());
            if op.is_some_and(|op: u64| ops.contains(&op)) {
                let body: Body<'_> = serde_json::from_str(&line).context("a read that does not parse")?;
                found.insert(body.op, body.rows.into_owned());
            }
        }
        Ok(found)
    }
}
