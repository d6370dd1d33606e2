//! History of a worker, one JSON line per event, in the order in which one process received them: the line number is
//! the time. An invocation's line is complete before its write is proposed, a response's line begins after it was
//! given.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use anyhow::Context;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::single_node::documents::RowSpec;

/// Event reported by a worker or the parent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum WorkerEvent {
    /// The worker has opened its directory; what comes before it in a run is recovery.
    Ready { run: u32, micros: u64 },
    /// About to be proposed. `request` names the first operation of a keyed request, `other` that its content differs.
    Invoke {
        op: String,
        client: u32,
        object: u8,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<String>,
        #[serde(default, skip_serializing_if = "is_false")]
        other: bool,
        rows: Vec<RowSpec>,
    },
    /// Written, or (`again`) found to be written before.
    Ok {
        op: String,
        xact: u64,
        #[serde(default, skip_serializing_if = "is_false")]
        again: bool,
    },
    /// Never written.
    Refused { op: String, why: String },
    /// Refused because the key was used with other content, under this id.
    Reused { op: String, xact: u64 },
    /// May be written or not.
    Unknown { op: String, why: String },
    /// A read began.
    Asks { client: u32, object: u8 },
    /// Result of a read: the digest of everything in the object at a version. `asked` is the requested version, if any;
    /// otherwise the newest was read.
    Read { client: u32, object: u8, version: u64, digest: String, asked: bool },
    /// A write of unknown outcome was seen to be there.
    Seen { write: String, xact: u64 },
    /// A seal or compaction begins or ends.
    Upkeep { what: String },
    /// Something is done to the worker: installed, skipped or indeterminate.
    Fault { what: String, outcome: String },
    /// The worker stops of its own will.
    Stopping,
}

fn is_false(truth: &bool) -> bool {
    !truth
}

/// A line of the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event<S = WorkerEvent> {
    /// Microseconds since the parent started.
    pub t: u64,
    #[serde(flatten)]
    pub said: S,
}

/// The file an unfolding history is appended to.
#[derive(Debug)]
pub struct Recorder<S = WorkerEvent> {
    file: File,
    events: Vec<Event<S>>,
    start: std::time::Instant,
}

impl<S: Serialize> Recorder<S> {
    pub fn create(path: &Path) -> anyhow::Result<Recorder<S>> {
        let file = OpenOptions::new().create_new(true).append(true).open(path);
        let file = file.with_context(|| format!("creating {}", path.display()))?;
        Ok(Recorder { file, events: Vec::new(), start: std::time::Instant::now() })
    }

    pub fn record(&mut self, said: S) -> anyhow::Result<()> {
        let t = u64::try_from(self.start.elapsed().as_micros())?;
        let event = Event { t, said };
        let mut line = serde_json::to_string(&event)?;
        line.push('\n');
        self.file.write_all(line.as_bytes())?;
        self.events.push(event);
        Ok(())
    }

    pub fn events(&self) -> &[Event<S>] {
        &self.events
    }
}

pub fn load<S: DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<Event<S>>> {
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let mut events = Vec::new();
    for line in BufReader::new(file).lines() {
        let line = line?;
        events.push(serde_json::from_str(&line).with_context(|| format!("{}: {line}", path.display()))?);
    }
    Ok(events)
}

/// One write as a client meant it: all operations that sent it.
#[derive(Clone, Debug, Default)]
pub struct WorkerWrite {
    pub object: u8,
    pub keyed: bool,
    pub rows: Vec<RowSpec>,
    /// Place of the first invocation.
    pub invoked: usize,
    pub answers: Vec<RecordedAnswer>,
    /// Operations without a response, or with an inconclusive one.
    pub open: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedAnswer {
    /// Its place in the history.
    pub at: usize,
    pub kind: AnswerKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    Written {
        xact: u64,
        again: bool,
    },
    /// A reader found it.
    Seen {
        xact: u64,
    },
    Refused,
}

impl WorkerWrite {
    /// The ids it is known to have, in order of the answers.
    pub fn xacts(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.answers.iter().filter_map(|answer| match answer.kind {
            AnswerKind::Written { xact, .. } | AnswerKind::Seen { xact } => Some((answer.at, xact)),
            AnswerKind::Refused => None,
        })
    }

    /// Every operation that sent it was refused: it must never be there.
    pub fn refused(&self) -> bool {
        self.open == 0 && self.xacts().next().is_none() && !self.answers.is_empty()
    }
}

/// A read of a whole object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerRead {
    /// Place where it began; the place of its answer where that is all there is.
    pub began: usize,
    pub at: usize,
    pub client: u32,
    pub object: u8,
    pub version: u64,
    pub digest: String,
    pub asked: bool,
}

/// A key that was refused with other content, and the id that was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReusedRecord {
    pub write: String,
    pub xact: u64,
}

/// A history by what the checkers ask of it.
#[derive(Clone, Debug, Default)]
pub struct WorkerHistory {
    pub writes: BTreeMap<String, WorkerWrite>,
    pub reads: Vec<WorkerRead>,
    pub reused: Vec<ReusedRecord>,
    /// Contradictions in the history itself: errors of the harness.
    pub broken: Vec<String>,
}

impl WorkerHistory {
    pub fn of(events: &[Event]) -> WorkerHistory {
        let mut history = WorkerHistory::default();
        let mut names: BTreeMap<&str, (String, Option<&str>)> = BTreeMap::new();
        let mut asking: BTreeMap<u32, usize> = BTreeMap::new();
        for (at, event) in events.iter().enumerate() {
            match &event.said {
                WorkerEvent::Invoke { op, object, request, other, rows, .. } => {
                    let name = if *other { op.clone() } else { request.clone().unwrap_or_else(|| op.clone()) };
                    names.insert(op, (name.clone(), request.as_deref()));
                    let keyed = request.is_some();
                    let fresh = WorkerWrite {
                        object: *object,
                        keyed,
                        rows: rows.clone(),
                        invoked: at,
                        ..WorkerWrite::default()
                    };
                    let record = history.writes.entry(name).or_insert(fresh);
                    record.open += 1;
                }
                WorkerEvent::Ok { op, xact, again } => {
                    history.answer(&names, op, at, AnswerKind::Written { xact: *xact, again: *again });
                }
                WorkerEvent::Refused { op, .. } => history.answer(&names, op, at, AnswerKind::Refused),
                WorkerEvent::Reused { op, xact } => {
                    history.answer(&names, op, at, AnswerKind::Refused);
                    let first = names.get(op.as_str()).and_then(|(_, request)| *request);
                    let write = first.unwrap_or(op).to_owned();
                    history.reused.push(ReusedRecord { write, xact: *xact });
                }
                WorkerEvent::Seen { write, xact } => match history.writes.get_mut(write) {
                    Some(record) => record.answers.push(RecordedAnswer { at, kind: AnswerKind::Seen { xact: *xact } }),
                    None => history.broken.push(format!("line {at}: {write} was seen but never sent")),
                },
                WorkerEvent::Asks { client, .. } => {
                    asking.insert(*client, at);
                }
                WorkerEvent::Read { client, object, version, digest, asked } => history.reads.push(WorkerRead {
                    began: asking.remove(client).unwrap_or(at),
                    at,
                    client: *client,
                    object: *object,
                    version: *version,
                    digest: digest.clone(),
                    asked: *asked,
                }),
                WorkerEvent::Ready { .. } => asking.clear(),
                WorkerEvent::Unknown { .. }
                | WorkerEvent::Upkeep { .. }
                | WorkerEvent::Fault { .. }
                | WorkerEvent::Stopping => {}
            }
        }
        history
    }

    fn answer(&mut self, names: &BTreeMap<&str, (String, Option<&str>)>, op: &str, at: usize, kind: AnswerKind) {
        match names.get(op).and_then(|(name, _)| self.writes.get_mut(name)) {
            Some(record) => {
                record.open = record.open.saturating_sub(1);
                record.answers.push(RecordedAnswer { at, kind });
            }
            None => self.broken.push(format!("line {at}: an answer to {op}, which was never sent")),
        }
    }

    /// Writes that were answered with success.
    pub fn acknowledged(&self) -> usize {
        self.writes.values().filter(|write| write.xacts().next().is_some()).count()
    }
}
