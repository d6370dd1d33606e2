//! Writer thread "assay-log": takes one operation, adds the waiting ones, writes, syncs once, and completes all in
//! order.
//!
//! Only this thread changes the engine's append queue and the watermark. It checks each operation against its own copy
//! of the groups, which is ahead of readers until the sync has returned.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use assay_storage_model::GroupId;
use parking_lot::{Mutex, RwLock};
use raft_engine::{Command, LogBatch};

use crate::engine::Store;
use crate::error::{Corruption, LogError};
use crate::frame::{CHAIN_START, Frame, Mark, engine_index};
use crate::group::Group;
use crate::group_metadata::{self, COMMITTED_KEY, HEAD_KEY, OWN_GROUP, PurgedMark, VOTE_KEY, Vote};
use crate::pace::Pace;
use crate::round::Round;
use crate::watermark::{Level, Watermark};
use crate::{Completion, INDEX_MAX, LogConfig, LogRecord, ROUND_OPERATIONS_MAX};

/// Time that a committed position waits for another write before it is written alone, unsynced.
const COMMITTED_LINGER: Duration = Duration::from_millis(500);
/// Size of the log after which the watermark's anchors are renewed.
const ANCHOR_BYTES: u64 = 64 << 20;

/// Operation on one group.
pub(crate) enum Work {
    Append {
        group: GroupId,
        records: Vec<LogRecord>,
        done: Completion,
    },
    Vote {
        group: GroupId,
        vote: Vec<u8>,
        done: Completion,
    },
    Committed {
        group: GroupId,
        committed: Vec<u8>,
    },
    Truncate {
        group: GroupId,
        from: u64,
        done: Completion,
    },
    Purge {
        group: GroupId,
        up_to: u64,
        note: Vec<u8>,
        done: Completion,
    },
    Remove {
        group: GroupId,
        done: Completion,
    },
    /// Request to end the thread. `tidy` also writes deferred values.
    Stop {
        tidy: bool,
    },
}

impl Work {
    /// Returns the memory held while the operation waits, in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Work::Append { records, .. } => records.iter().map(|record| record.payload.len() as u64 + 64).sum(),
            _ => 64,
        }
    }

    pub fn refuse(self, error: LogError) {
        match self {
            Work::Append { done, .. }
            | Work::Vote { done, .. }
            | Work::Truncate { done, .. }
            | Work::Purge { done, .. }
            | Work::Remove { done, .. } => done(Err(error)),
            Work::Committed { .. } | Work::Stop { .. } => {}
        }
    }
}

/// State that the writer shares with the handles.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Durable state of the groups, updated after the sync and before the completions.
    pub groups: RwLock<BTreeMap<GroupId, Group>>,
    pub failed: RwLock<Option<String>>,
    pub queued_bytes: AtomicU64,
    /// Number of synced writes, and below it their total duration.
    pub syncs: AtomicU64,
    pub sync_micros: AtomicU64,
    pub pace: Mutex<Pace>,
}

impl Shared {
    pub fn fail(&self, what: &str) {
        tracing::error!(what, "the log has failed and accepts nothing more");
        self.failed.write().get_or_insert_with(|| what.to_string());
    }

    pub fn failure(&self) -> Option<LogError> {
        self.failed.read().clone().map(LogError::Failed)
    }
}

pub(crate) struct Writer {
    pub store: Arc<dyn Store>,
    pub watermark: Watermark,
    pub groups: BTreeMap<GroupId, Group>,
    pub shared: Arc<Shared>,
    pub config: LogConfig,
    pub dir: std::path::PathBuf,
    pub committed: BTreeMap<GroupId, Vec<u8>>,
    pub round: Round,
    pub since_anchor: u64,
}

/// Guard that marks the log as failed if the thread panics, for example in a completion.
struct Watch(Arc<Shared>);

impl Drop for Watch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail("the thread assay-log panicked");
        }
    }
}

impl Writer {
    pub fn run(mut self, inbox: Receiver<Work>) {
        let _watch = Watch(self.shared.clone());
        loop {
            let first = if self.committed.is_empty() {
                inbox.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                inbox.recv_timeout(COMMITTED_LINGER)
            };
            match first {
                Ok(Work::Stop { tidy }) => return self.stop(tidy),
                Ok(work) => self.take(work),
                Err(RecvTimeoutError::Timeout) => self.write_committed(false),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let mut count = 1;
            while count < ROUND_OPERATIONS_MAX && self.round.bytes < self.config.batch_bytes_max {
                match inbox.try_recv() {
                    Ok(Work::Stop { tidy }) => {
                        self.commit();
                        return self.stop(tidy);
                    }
                    Ok(work) => self.take(work),
                    Err(_) => break,
                }
                count += 1;
            }
            self.commit();
        }
    }

    fn take(&mut self, work: Work) {
        self.shared.queued_bytes.fetch_sub(work.bytes(), Ordering::Relaxed);
        if let Some(failure) = self.shared.failure() {
            return work.refuse(failure);
        }
        let (done, outcome) = match work {
            Work::Append { group, records, done } => (done, self.append(group, &records)),
            Work::Vote { group, vote, done } => (done, self.vote(group, vote)),
            Work::Truncate { group, from, done } => (done, self.truncate(group, from)),
            Work::Purge { group, up_to, note, done } => (done, self.purge(group, up_to, note)),
            Work::Remove { group, done } => (done, self.remove(group)),
            Work::Committed { group, committed } => return self.remember_committed(group, committed),
            Work::Stop { .. } => return,
        };
        match outcome {
            Ok(()) => self.round.dones.push((done, Ok(()))),
            Err(Trouble::Refused(error)) => self.round.dones.push((done, Err(error))),
            Err(Trouble::Broken(what)) => {
                self.round.dones.push((done, Ok(())));
                self.give_up(&what);
            }
        }
    }

    fn append(&mut self, id: GroupId, records: &[LogRecord]) -> Result<(), Trouble> {
        let Some(first) = records.first() else { return Ok(()) };
        let known = self.groups.get(&usable(id)?);
        let expected = known.and_then(Group::next_index).unwrap_or(first.index);
        for (record, index) in records.iter().zip(expected..) {
            if record.index != index || index >= INDEX_MAX {
                let what = format!("group {id}: record {} where {index} must be", record.index);
                return Err(LogError::Refused(what).into());
            }
        }
        let mut previous = known.map_or(CHAIN_START, Group::tail_checksum);
        let frames: Vec<Frame> = records
            .iter()
            .map(|record| {
                let frame = Frame::of(id, record, previous);
                previous = frame.mark().checksum;
                frame
            })
            .collect();
        let group = self.groups.entry(id).or_default();
        if group.last.is_none() {
            group.first = first.index;
        }
        group.last = frames.last().map(Frame::mark);
        if group.head.end.take().is_some() {
            // The head goes into the batch that overwrites the truncated records, so that both are stored or neither
            // is.
            self.round.put(id, HEAD_KEY, group.head.encode())?;
        }
        self.round.add(id, &frames, self.config.batch_bytes_max)?;
        Ok(())
    }

    fn vote(&mut self, id: GroupId, bytes: Vec<u8>) -> Result<(), Trouble> {
        let group = usable(id).map(|id| self.groups.entry(id).or_default())?;
        let number = group.vote.as_ref().map_or(1, |vote| vote.number + 1);
        let vote = Vote { number, bytes };
        self.round.put(id, VOTE_KEY, vote.encode())?;
        group.vote = Some(vote);
        Ok(())
    }

    fn remember_committed(&mut self, id: GroupId, committed: Vec<u8>) {
        if usable(id).is_ok() {
            self.groups.entry(id).or_default().committed = Some(committed.clone());
            self.shared.groups.write().entry(id).or_default().committed = Some(committed.clone());
            self.committed.insert(id, committed);
        }
    }

    /// Truncates a group after the pending round is committed. The watermark is lowered and synced before the mark is
    /// written.
    fn truncate(&mut self, id: GroupId, from: u64) -> Result<(), Trouble> {
        self.commit();
        self.still_working()?;
        let Some(mut group) = self.groups.get(&id).cloned() else { return Ok(()) };
        if let Some(purged) = group.head.purged.as_ref().filter(|purged| from <= purged.index) {
            let what = format!("group {id}: truncation from {from}, purged up to {}", purged.index);
            return Err(LogError::Refused(what).into());
        }
        let from = from.max(group.first);
        if group.last.is_none_or(|last| last.index < from) {
            return Ok(());
        }
        group.last = if from > group.first { Some(self.stored_mark(id, from - 1)?) } else { None };
        group.head.end = Some(from);
        group.moved += 1;
        self.watermark.set([(id, Level::of(&group))]).map_err(|error| error.to_string())?;
        self.round.put(id, HEAD_KEY, group.head.encode())?;
        self.groups.insert(id, group);
        Ok(())
    }

    fn purge(&mut self, id: GroupId, up_to: u64, note: Vec<u8>) -> Result<(), Trouble> {
        if self.round.has(id) {
            self.commit(); // the record at `up_to` may be in this round, and is read below
            self.still_working()?;
        }
        let mut group = usable(id).map(|id| self.groups.get(&id).cloned().unwrap_or_default())?;
        if group.head.purged.as_ref().is_some_and(|purged| up_to <= purged.index) {
            return Ok(());
        }
        if up_to >= INDEX_MAX || (group.last.is_some() && up_to + 1 < group.first) {
            return Err(LogError::Refused(format!("group {id}: purge up to {up_to}, the log begins later")).into());
        }
        let checksum = match group.last {
            Some(last) if last.index > up_to && group.first <= up_to => self.stored_mark(id, up_to)?.checksum,
            Some(last) if last.index > up_to => CHAIN_START,
            Some(last) if last.index == up_to => last.checksum,
            _ => CHAIN_START,
        };
        group.last = group.last.filter(|last| last.index > up_to);
        group.first = up_to + 1;
        group.head.end = group.head.end.map(|end| end.max(up_to + 1));
        group.head.purged = Some(PurgedMark { index: up_to, checksum, note });
        group.moved += 1;
        self.round.put(id, HEAD_KEY, group.head.encode())?;
        let index = engine_index(up_to + 1);
        self.round.batch(id).add_command(id.0, Command::Compact { index });
        self.groups.insert(id, group);
        Ok(())
    }

    fn remove(&mut self, id: GroupId) -> Result<(), Trouble> {
        self.commit();
        self.still_working()?;
        usable(id)?;
        self.watermark.remove(id).map_err(|error| error.to_string())?;
        self.groups.remove(&id);
        self.committed.remove(&id);
        self.round.batch(id).add_command(id.0, Command::Clean);
        Ok(())
    }

    /// Returns the stored mark of a record that is not in the round.
    fn stored_mark(&self, id: GroupId, index: u64) -> Result<Mark, LogError> {
        let damaged = |what| Corruption { group: Some(id), file: self.dir.clone(), index: Some(index), what };
        let frame = self.store.fetch(id, index, index + 1, 0).map_err(damaged)?.pop();
        let frame = frame.ok_or_else(|| damaged("the record is missing".to_string()))?;
        Ok(frame.verify(id, index).map_err(damaged)?.0)
    }

    fn still_working(&self) -> Result<(), Trouble> {
        self.shared.failure().map_or(Ok(()), |failure| Err(Trouble::Refused(failure)))
    }

    /// Writes the round, syncs once, updates the watermark and the readers' state, and runs the completions.
    fn commit(&mut self) {
        let mut batches = std::mem::take(&mut self.round.batches);
        if let Some(last) = batches.last_mut() {
            let waiting = std::mem::take(&mut self.committed);
            let bytes = self.round.bytes as u64;
            let written = ride_along(last, waiting).and_then(|()| self.write(&mut batches, bytes));
            if let Err(what) = written {
                return self.give_up(&what);
            }
        }
        self.round.reuse(batches);
        for (done, outcome) in self.round.dones.drain(..) {
            done(outcome);
        }
    }

    fn write(&mut self, batches: &mut [LogBatch], bytes: u64) -> Result<(), String> {
        let (count, began) = (batches.len(), Instant::now());
        self.shared.pace.lock().begin(began);
        if let Some(delay) = &self.config.write_delay {
            std::thread::sleep(Duration::from_millis(delay.load(Ordering::Relaxed)));
        }
        for (place, batch) in batches.iter_mut().enumerate() {
            self.store.write(batch, place + 1 == count)?;
        }
        self.shared.syncs.fetch_add(1, Ordering::Relaxed);
        self.shared.pace.lock().end(Instant::now());
        let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.shared.sync_micros.fetch_add(micros, Ordering::Relaxed);
        let touched = std::mem::take(&mut self.round.touched);
        let raise =
            |id: &GroupId| self.groups.get(id).map_or(Ok(()), |group| self.watermark.raise(*id, Level::of(group)));
        touched.iter().try_for_each(raise).map_err(|error| error.to_string())?;
        self.since_anchor += bytes;
        if self.since_anchor >= ANCHOR_BYTES {
            self.watermark.sync().map_err(|error| error.to_string())?;
            self.since_anchor = 0;
        }
        let mut published = self.shared.groups.write();
        for id in touched {
            match self.groups.get(&id) {
                Some(group) => published.insert(id, group.clone()),
                None => published.remove(&id),
            };
        }
        Ok(())
    }

    fn write_committed(&mut self, sync: bool) {
        let mut batch = LogBatch::default();
        let waiting = std::mem::take(&mut self.committed);
        let written = ride_along(&mut batch, waiting).and_then(|()| self.store.write(&mut batch, sync));
        if let Err(what) = written {
            self.give_up(&what);
        }
    }

    fn stop(&mut self, tidy: bool) {
        if !tidy || self.shared.failure().is_some() {
            return;
        }
        self.write_committed(true);
        let levels: Vec<_> = self.groups.iter().map(|(id, group)| (*id, Level::of(group))).collect();
        if let Err(error) = self.watermark.set(levels) {
            self.shared.fail(&error.to_string());
        }
    }

    /// Fails all operations of the round and refuses later ones.
    fn give_up(&mut self, what: &str) {
        self.shared.fail(what);
        self.round.batches.clear();
        self.committed.clear();
        for (done, _) in self.round.dones.drain(..) {
            done(Err(LogError::Failed(what.to_string())));
        }
    }
}

/// Adds committed positions of any groups to the last batch.
fn ride_along(batch: &mut LogBatch, waiting: BTreeMap<GroupId, Vec<u8>>) -> Result<(), String> {
    for (id, committed) in waiting {
        let value = group_metadata::encode_committed(&committed);
        batch.put(id.0, COMMITTED_KEY.to_vec(), value).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn usable(id: GroupId) -> Result<GroupId, LogError> {
    if id.0 == OWN_GROUP { Err(LogError::Refused(format!("group {id} is the log's own"))) } else { Ok(id) }
}

/// Reason why an operation did not happen.
enum Trouble {
    /// Refusal of this operation only; the log continues.
    Refused(LogError),
    /// Failure of the log.
    Broken(String),
}

impl From<LogError> for Trouble {
    fn from(error: LogError) -> Self {
        Trouble::Refused(error)
    }
}

impl From<String> for Trouble {
    fn from(what: String) -> Self {
        Trouble::Broken(what)
    }
}
