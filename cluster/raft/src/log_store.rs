//! The log and the vote of one group, as openraft wants them.
//!
//! L1: `append`, `truncate`, `purge` and `save_vote` return only when what they did is durable, and openraft calls
//!     one after the other, so no write is ever in flight beside another of the same group.
//! L2: `last` is the log id of the last record, or of the last one purged where none is left.
//! L3: an entry that names a blob is reported before it is in the log and until it is purged or truncated.
//!
//! `committed` is remembered without a sync of its own: after a crash it may be older than it was, and never newer
//! than what a quorum has.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use assay_storage_log::LogRecord;
use assay_storage_model::GroupId;
use assay_storage_model::entry::Entry;
use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{EntryPayload, ErrorSubject, ErrorVerb, LogState, OptionalSend, RaftLogId, RaftLogReader, Vote};
use parking_lot::Mutex;

use crate::cache::{CacheBudget, EntryCache};
use crate::encoding::{self, BadRecord};
use crate::journal::Journal;
use crate::large::LargeWrites;
use crate::types::{Consensus, EntryBytes, EntryOf, LogIdOf, Replica, StorageErrorOf};

/// What one message to a follower carries at most, unless a single entry is larger.
pub(crate) const APPEND_BYTES_MAX: usize = 2 << 20;
/// One read of the log while a group replays.
const READ_BYTES_MAX: usize = 8 << 20;
/// An entry that names a blob has exactly this many bytes.
const BLOB_ENTRY_BYTES: usize = 41;

#[derive(Clone, Debug)]
pub(crate) struct LogStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    group: GroupId,
    journal: Journal,
    large: Arc<dyn LargeWrites>,
    kept: Mutex<Kept>,
    cache: Mutex<EntryCache>,
}

/// What is on disk beside the entries.
#[derive(Clone, Debug, Default)]
struct Kept {
    vote: Option<Vote<Replica>>,
    committed: Option<LogIdOf>,
    purged: Option<LogIdOf>,
    /// The first entry, if there is one.
    first: u64,
    last: Option<LogIdOf>,
}

impl LogStore {
    pub async fn open(
        group: GroupId,
        journal: Journal,
        large: Arc<dyn LargeWrites>,
        budget: CacheBudget,
    ) -> io::Result<LogStore> {
        let kept = load(&journal).await?;
        let cache = Mutex::new(EntryCache::new(budget));
        Ok(LogStore { shared: Arc::new(Shared { group, journal, large, kept: Mutex::new(kept), cache }) })
    }

    /// The last entry of the log, or the last one purged.
    pub fn last(&self) -> Option<LogIdOf> {
        self.shared.kept.lock().last
    }

    /// The first entry that was not purged.
    pub fn first_index(&self) -> u64 {
        self.shared.kept.lock().first
    }

    /// Whether nothing was ever written here.
    pub fn is_new(&self) -> bool {
        let kept = self.shared.kept.lock();
        kept.vote.is_none() && kept.last.is_none()
    }

    async fn read(&self, start: u64, end: u64, bytes_max: usize) -> io::Result<Vec<EntryOf>> {
        if let Some(found) = self.shared.cache.lock().get(start, end, bytes_max) {
            return Ok(found);
        }
        let records = self.shared.journal.read(start, end, bytes_max).await?;
        records.iter().map(|record| self.decode(record)).collect()
    }

    fn decode(&self, record: &LogRecord) -> io::Result<EntryOf> {
        let entry = encoding::decode_record(record.index, record.term, &record.payload).map_err(|error| {
            self.shared.journal.broken(format_args!("group {}, entry {}: {error}", self.shared.group, record.index))
        })?;
        self.note_blob(&entry); // L3, for what was there before this process
        Ok(entry)
    }

    fn note_blob(&self, entry: &EntryOf) {
        if let EntryPayload::Normal(EntryBytes(bytes)) = &entry.payload
            && bytes.len() == BLOB_ENTRY_BYTES
            && let Ok(Entry::Blob { hash, .. }) = Entry::decode(bytes)
        {
            self.shared.large.named(self.shared.group, entry.log_id.index, hash);
        }
    }

    /// Every entry of `start..end` that is in the log.
    async fn read_all(&self, mut start: u64, end: u64) -> io::Result<Vec<EntryOf>> {
        let mut found = Vec::new();
        while start < end {
            let more = self.read(start, end, READ_BYTES_MAX).await?;
            let Some(last) = more.last() else { break };
            start = last.log_id.index + 1;
            found.extend(more);
        }
        Ok(found)
    }

    /// The part of a range that the log has.
    fn present(&self, range: impl RangeBounds<u64>) -> (u64, u64) {
        let kept = self.shared.kept.lock();
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => u64::MAX,
        };
        (start.max(kept.first), end.min(next_index(kept.last)))
    }
}

fn id_of(entry: &EntryOf) -> LogIdOf {
    entry.log_id
}

fn next_index(id: Option<LogIdOf>) -> u64 {
    id.map_or(0, |id| id.index + 1)
}

async fn load(journal: &Journal) -> io::Result<Kept> {
    let state = journal.state();
    let damaged = |what: &str, error: BadRecord| journal.broken(format_args!("{what}: {error}"));
    let vote = state.vote.as_deref().map(encoding::decode_vote).transpose();
    let committed = state.committed.as_deref().map(encoding::decode_log_id).transpose();
    let purged = state.purged.as_ref().map(|purged| encoding::decode_log_id(&purged.note)).transpose();
    let purged = purged.map_err(|error| damaged("the position it was purged to", error))?;
    let last = match state.last {
        Some((index, _)) if purged.is_none_or(|purged| purged.index < index) => {
            let records = journal.read(index, index + 1, usize::MAX).await?;
            let record = records.first().ok_or_else(|| journal.broken(format_args!("entry {index} is missing")))?;
            let id = encoding::decode_record_id(record.index, record.term, &record.payload);
            Some(id.map_err(|error| damaged("its last entry", error))?)
        }
        _ => purged,
    };
    Ok(Kept {
        vote: vote.map_err(|error| damaged("the vote", error))?,
        committed: committed.map_err(|error| damaged("the committed position", error))?,
        first: state.first.max(next_index(purged)),
        purged,
        last,
    })
}

fn failed(subject: ErrorSubject<Replica>, verb: ErrorVerb) -> impl FnOnce(io::Error) -> StorageErrorOf {
    move |error| StorageErrorOf::from_io_error(subject, verb, error)
}

impl RaftLogReader<Consensus> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<EntryOf>, StorageErrorOf> {
        let (start, end) = self.present(range);
        self.read_all(start, end).await.map_err(failed(ErrorSubject::Logs, ErrorVerb::Read))
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<EntryOf>, StorageErrorOf> {
        if start >= end {
            return Ok(Vec::new());
        }
        self.read(start, end, APPEND_BYTES_MAX).await.map_err(failed(ErrorSubject::Logs, ErrorVerb::Read))
    }
}

impl RaftLogStorage<Consensus> for LogStore {
    type LogReader = LogStore;

    async fn get_log_state(&mut self) -> Result<LogState<Consensus>, StorageErrorOf> {
        let kept = self.shared.kept.lock();
        Ok(LogState { last_purged_log_id: kept.purged, last_log_id: kept.last })
    }

    async fn get_log_reader(&mut self) -> LogStore {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote<Replica>) -> Result<(), StorageErrorOf> {
        let saved = self.shared.journal.save_vote(encoding::encode_vote(vote)).await;
        saved.map_err(failed(ErrorSubject::Vote, ErrorVerb::Write))?;
        self.shared.kept.lock().vote = Some(*vote);
        Ok(())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote<Replica>>, StorageErrorOf> {
        Ok(self.shared.kept.lock().vote)
    }

    async fn save_committed(&mut self, committed: Option<LogIdOf>) -> Result<(), StorageErrorOf> {
        if let Some(committed) = committed {
            self.shared.journal.save_committed(encoding::encode_log_id(&committed));
            self.shared.kept.lock().committed = Some(committed);
        }
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogIdOf>, StorageErrorOf> {
        Ok(self.shared.kept.lock().committed)
    }

    async fn append<I>(&mut self, entries: I, callback: LogFlushed<Consensus>) -> Result<(), StorageErrorOf>
    where
        I: IntoIterator<Item = EntryOf> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let (cached, records) = self.prepare(entries);
        let (Some(first), Some(last)) = (cached.first().map(id_of), cached.last().map(id_of)) else {
            callback.log_io_completed(Ok(()));
            return Ok(());
        };
        if let Err(error) = self.shared.journal.append(records).await {
            callback.log_io_completed(Err(io::Error::new(error.kind(), error.to_string())));
            return Err(failed(ErrorSubject::Log(last), ErrorVerb::Write)(error));
        }
        {
            let mut cache = self.shared.cache.lock();
            cached.into_iter().for_each(|entry| cache.push(entry));
        }
        {
            let mut kept = self.shared.kept.lock();
            if kept.last == kept.purged {
                kept.first = first.index;
            }
            kept.last = Some(last);
        }
        callback.log_io_completed(Ok(())); // L1
        Ok(())
    }

    async fn truncate(&mut self, since: LogIdOf) -> Result<(), StorageErrorOf> {
        let last = self.shared.kept.lock().last;
        if next_index(last) <= since.index {
            return Ok(());
        }
        let failed_at = || failed(ErrorSubject::Log(since), ErrorVerb::Delete);
        self.shared.cache.lock().truncate(since.index);
        self.shared.journal.truncate(since.index).await.map_err(failed_at())?;
        self.shared.large.truncated(self.shared.group, since.index);
        let before = match since.index.checked_sub(1) {
            Some(before) => self.read_all(before, since.index).await.map_err(failed_at())?,
            None => Vec::new(),
        };
        let mut kept = self.shared.kept.lock();
        kept.last = before.last().map(|entry| *entry.get_log_id()).or(kept.purged); // L2
        Ok(())
    }

    async fn purge(&mut self, up_to: LogIdOf) -> Result<(), StorageErrorOf> {
        let purged = self.shared.journal.purge(up_to.index, encoding::encode_log_id(&up_to)).await;
        purged.map_err(failed(ErrorSubject::Log(up_to), ErrorVerb::Delete))?;
        self.shared.cache.lock().purge(up_to.index);
        self.shared.large.purged(self.shared.group, up_to.index);
        let mut kept = self.shared.kept.lock();
        kept.purged = Some(up_to);
        kept.first = kept.first.max(up_to.index + 1);
        if next_index(kept.last) <= up_to.index + 1 {
            kept.last = Some(up_to); // L2
        }
        Ok(())
    }
}

impl LogStore {
    /// Entries for the cache and their records for the disk, both over the same bytes. What the log was purged past is
    /// part of a seal and not written again.
    fn prepare(&self, entries: impl IntoIterator<Item = EntryOf>) -> (Vec<EntryOf>, Vec<LogRecord>) {
        let purged = next_index(self.shared.kept.lock().purged);
        entries
            .into_iter()
            .filter(|entry| entry.log_id.index >= purged)
            .map(|entry| {
                self.note_blob(&entry); // L3
                let EntryOf { log_id, .. } = entry;
                let payload = match &entry.payload {
                    EntryPayload::Normal(_) => None,
                    other => Some(other.clone()),
                };
                let record = encoding::encode_record(entry);
                let payload = payload.unwrap_or_else(|| EntryPayload::Normal(encoding::entry_of_record(&record)));
                let record = LogRecord { index: log_id.index, term: log_id.leader_id.term, payload: record };
                (EntryOf { log_id, payload }, record)
            })
            .unzip()
    }
}
