//! Handle of one group's log for its owner.
//!
//! It is cheap, puts work into the writer's channel and reads durable records.

use assay_storage_model::GroupId;

use crate::error::{Corruption, LogError};
use crate::frame::{CHAIN_START, Frame, Mark};
use crate::group_metadata::{Head, Vote};
use crate::open::Log;
use crate::writer::Work;
use crate::{Completion, GroupState, LogRecord, NOTE_BYTES_MAX, PAYLOAD_BYTES_MAX, Purged};

/// Upper bound of the attempts of a read that restarts because the log changed.
const READ_ATTEMPTS_MAX: usize = 4;

/// In-memory state of a group. The writer has its own copy, which is ahead of readers by one round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    /// Index of the first record, if there is one.
    pub first: u64,
    pub last: Option<Mark>,
    pub head: Head,
    pub vote: Option<Vote>,
    pub committed: Option<Vec<u8>>,
    /// Number of truncations and purges, by which a reader detects a changed log.
    pub moved: u64,
}

impl Group {
    /// Returns the index that the next record must have, or `None` if any is allowed because there never was a record.
    pub fn next_index(&self) -> Option<u64> {
        let after = |index: u64| index.saturating_add(1);
        let last = self.last.map(|mark| after(mark.index));
        last.or(self.head.end).or(self.head.purged.as_ref().map(|purged| after(purged.index)))
    }

    /// Checksum that the next record carries for its predecessor.
    pub fn tail_checksum(&self) -> u32 {
        self.last.map_or(self.before_first(), |mark| mark.checksum)
    }

    /// Checksum that the first record carries for its predecessor.
    pub fn before_first(&self) -> u32 {
        self.head.purged.as_ref().map_or(CHAIN_START, |purged| purged.checksum)
    }

    pub fn state(&self) -> GroupState {
        let first = if self.last.is_some() { self.first } else { self.next_index().unwrap_or(0) };
        GroupState {
            purged: self.head.purged.as_ref().map(|purged| Purged { index: purged.index, note: purged.note.clone() }),
            first,
            last: self.last.map(|mark| (mark.index, mark.term)),
            vote: self.vote.as_ref().map(|vote| vote.bytes.clone()),
            committed: self.committed.clone(),
        }
    }
}

/// Group of a [`Log`]. It need not exist yet, because its first write creates it.
#[derive(Clone, Debug)]
pub struct GroupLog {
    pub(crate) log: Log,
    pub(crate) group: GroupId,
}

impl GroupLog {
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// Returns the durable state.
    pub fn state(&self) -> GroupState {
        self.log.published(self.group).state()
    }

    /// Appends records behind the last, with consecutive indexes.
    ///
    /// A conflicting tail must be truncated first. `done` runs when the records are durable, in the order of the calls.
    /// This never blocks. A group has one append in flight; see the crate documentation.
    pub fn append(&self, records: Vec<LogRecord>, done: Completion) {
        if let Some(record) = records.iter().find(|record| record.payload.len() > PAYLOAD_BYTES_MAX) {
            let bytes = record.payload.len();
            return done(Err(LogError::Refused(format!("a record of {bytes} bytes, at most {PAYLOAD_BYTES_MAX}"))));
        }
        self.log.submit(Work::Append { group: self.group, records, done });
    }

    /// Saves a vote in order with the appends. It is durable when `done` runs.
    pub fn save_vote(&self, vote: Vec<u8>, done: Completion) {
        if let Some(done) = self.fits(&vote, done) {
            self.log.submit(Work::Vote { group: self.group, vote, done });
        }
    }

    /// Saves the committed position without a sync. It is written with the next write, or unsynced after a while.
    pub fn save_committed(&self, committed: Vec<u8>) {
        if committed.len() <= NOTE_BYTES_MAX {
            self.log.submit(Work::Committed { group: self.group, committed });
        } else {
            tracing::error!(group = %self.group, bytes = committed.len(), "a committed position is too long to keep");
        }
    }

    /// Removes the records from `from_index` on, which must be above the purged ones.
    pub fn truncate(&self, from_index: u64, done: Completion) {
        self.log.submit(Work::Truncate { group: self.group, from: from_index, done });
    }

    /// Purges everything up to `index`, which may be behind the last record after a snapshot was installed.
    ///
    /// The next record is then the one after it.
    pub fn purge(&self, up_to_index: u64, purged_note: Vec<u8>, done: Completion) {
        if let Some(done) = self.fits(&purged_note, done) {
            self.log.submit(Work::Purge { group: self.group, up_to: up_to_index, note: purged_note, done });
        }
    }

    /// Removes the group with its log and vote, after its replica left this node.
    pub fn remove(&self, done: Completion) {
        self.log.submit(Work::Remove { group: self.group, done });
    }

    /// Reads and verifies the durable records of `[from, to_exclusive)`.
    ///
    /// The result has up to about `bytes_max` bytes, but at least one record if there is one. This blocks on the disk.
    pub fn read(&self, from: u64, to_exclusive: u64, bytes_max: usize) -> Result<Vec<LogRecord>, LogError> {
        let mut attempts = 0;
        loop {
            let group = self.log.published(self.group);
            let Some(last) = group.last else { return self.nothing_at(&group, from, to_exclusive) };
            let to = to_exclusive.min(last.index.saturating_add(1));
            if from >= to || from < group.first {
                return self.nothing_at(&group, from, to);
            }
            let frames = self.log.engine()?.fetch(self.group, from, to, bytes_max);
            let what = match frames.map(|frames| self.verified(&group, frames, from)) {
                Ok(Ok(records)) => return Ok(records),
                Ok(Err(corruption)) => corruption,
                // A file that is deleted between lookup and read causes this error once.
                Err(what) => Corruption { group: Some(self.group), file: self.log.dir(), index: Some(from), what },
            };
            attempts += 1;
            let moved = self.log.published(self.group).moved != group.moved;
            if attempts >= READ_ATTEMPTS_MAX || (attempts > 1 && !moved) {
                return Err(what.into());
            }
        }
    }

    fn verified(&self, group: &Group, frames: Vec<Frame>, from: u64) -> Result<Vec<LogRecord>, Corruption> {
        let mut previous = (from == group.first).then(|| group.before_first());
        let mut records = Vec::with_capacity(frames.len());
        for (frame, index) in frames.into_iter().zip(from..) {
            let damaged = |what| Corruption { group: Some(self.group), file: self.log.dir(), index: Some(index), what };
            let (mark, record) = frame.verify(self.group, index).map_err(damaged)?;
            if previous.is_some_and(|previous| previous != mark.previous) {
                return Err(damaged("this record does not follow its predecessor".to_string()));
            }
            previous = Some(mark.checksum);
            records.push(record);
        }
        if records.is_empty() {
            let what = "the record is missing".to_string();
            return Err(Corruption { group: Some(self.group), file: self.log.dir(), index: Some(from), what });
        }
        Ok(records)
    }

    fn nothing_at(&self, group: &Group, from: u64, to: u64) -> Result<Vec<LogRecord>, LogError> {
        let first = group.state().first;
        if from < first && from < to { Err(LogError::Purged { group: self.group, first }) } else { Ok(Vec::new()) }
    }

    fn fits(&self, bytes: &[u8], done: Completion) -> Option<Completion> {
        if bytes.len() <= NOTE_BYTES_MAX {
            return Some(done);
        }
        done(Err(LogError::Refused(format!("a note of {} bytes, at most {NOTE_BYTES_MAX}", bytes.len()))));
        None
    }
}
