//! Storage of openraft for the log and vote of one group.
//!
//! L1: `append`, `truncate`, `purge` and `save_vote` return only when their effect is durable, and openraft calls one
//!     after the other. A delayed purge (L5) may run concurrently with a vote, and with nothing else.
//! L2: `last` is the log id of the last record, or of the last purged one if none is left.
//! L3: an entry that names a blob is reported before it is in the log and until it is purged or truncated.
//!
//! L4: a restarted process does not lead, whatever its stored vote, and must be elected again. Its acknowledged entries
//!     may be behind its stored committed position, and a read must not miss them.
//!
//! L5: entries stay on disk until the state up to them is durable without them. openraft purges while a snapshot is
//!     still being installed, so that purge takes effect in memory only. The disk follows when the snapshot is
//!     installed, and in any case before the next entry is written. A crash meanwhile leaves the old log and state.
//!
//! L6: a late reader of purged entries finds nothing, which is no damage.
//!
//! `committed` is stored without a sync of its own: after a crash it may be outdated, but never ahead of a quorum.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, Weak};
use std::time::Duration;

use assay_storage_log::LogRecord;
use assay_storage_model::sabotage::{self, Sabotage};
use assay_storage_model::{GroupId, ReplicaId};
use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{EntryPayload, ErrorSubject, ErrorVerb, LogState, OptionalSend, RaftLogId, RaftLogReader, Vote};
use parking_lot::Mutex;
use tokio::time::sleep;

use crate::apply::backlog::Lag;
use crate::apply::machine::Machine;
use crate::log::encoding::{self, BadRecord};
use crate::log::entry_cache::{CacheBudget, EntryCache};
use crate::log::journal::Journal;
use crate::sabotaged::Late;
use crate::types::{Consensus, EntryOf, LogIdOf, Replica, StorageErrorOf};
use crate::write_path::large_writes::{LargeWrites, blob_named};

/// Upper bound of the bytes of one message to a follower, unless a single entry is larger.
pub(crate) const APPEND_BYTES_MAX: usize = 2 << 20;
/// Upper bound of one read of the log during replay.
const READ_BYTES_MAX: usize = 8 << 20;
/// Interval at which a delayed purge checks whether the snapshot is installed.
const INSTALLED_LOOK: Duration = Duration::from_millis(5);

#[derive(Clone, Debug)]
pub(crate) struct LogStore {
    shared: Arc<LogStoreState>,
}

#[derive(Debug)]
struct LogStoreState {
    group: GroupId,
    replica: ReplicaId,
    journal: Journal,
    large: Arc<dyn LargeWrites>,
    /// State machine, which reports the sealed position. With `None`, everything purged counts as sealed.
    machine: Option<Arc<dyn Machine>>,
    kept: Mutex<StoredState>,
    /// Lock held while the disk drops entries (L1).
    giving_up: tokio::sync::Mutex<GivingUp>,
    cache: Mutex<EntryCache>,
    lag: Arc<Lag>,
    late: Late,
}

/// State of delayed purges: whether the disk may still drop entries on its own.
#[derive(Debug, Default)]
struct GivingUp {
    closed: bool,
}

/// State on disk besides the entries.
#[derive(Clone, Debug, Default)]
struct StoredState {
    vote: Option<Vote<Replica>>,
    committed: Option<LogIdOf>,
    purged: Option<LogIdOf>,
    /// Position up to which the log is purged in memory but not on disk (L5).
    owed: Option<LogIdOf>,
    /// Index of the first entry, if there is one.
    first: u64,
    last: Option<LogIdOf>,
}

impl LogStore {
    pub async fn open(
        (group, replica): (GroupId, ReplicaId),
        journal: Journal,
        large: Arc<dyn LargeWrites>,
        machine: Option<Arc<dyn Machine>>,
        budget: CacheBudget,
        lag: Arc<Lag>,
    ) -> io::Result<LogStore> {
        let mut kept = load(&journal).await?;
        kept.vote =
            kept.vote.map(|vote| if vote.leader_id().voted_for() == Some(replica.0) { candidate(vote) } else { vote });
        let cache = Mutex::new(EntryCache::new(budget));
        let (kept, giving_up, late) = (Mutex::new(kept), Default::default(), Late::default());
        let shared = LogStoreState { group, replica, journal, large, machine, kept, giving_up, cache, lag, late };
        Ok(LogStore { shared: Arc::new(shared) })
    }

    /// Returns the id of the last entry in the log, or of the last one purged.
    pub fn last(&self) -> Option<LogIdOf> {
        self.shared.kept.lock().last
    }

    /// Returns the last vote.
    pub fn vote(&self) -> Option<Vote<Replica>> {
        self.shared.kept.lock().vote
    }

    /// Returns the last entry that is known to be committed.
    pub fn committed(&self) -> Option<LogIdOf> {
        self.shared.kept.lock().committed
    }

    /// Returns the id of one entry, or `None` if it is not in the log.
    pub async fn id_at(&self, index: u64) -> io::Result<Option<LogIdOf>> {
        let (start, end) = self.present(index..=index);
        if start >= end {
            return Ok(None);
        }
        Ok(self.read(start, end, 1).await?.first().map(id_of))
    }

    /// Returns the index of the first entry that is not purged.
    pub fn first_index(&self) -> u64 {
        self.shared.kept.lock().first
    }

    /// Returns entries of a range that the log has, from its first one on. Stops at about this many bytes.
    pub async fn entries(&self, start: u64, end: u64, bytes_max: usize) -> io::Result<Vec<EntryOf>> {
        let (start, end) = self.present(start..end);
        if start >= end { Ok(Vec::new()) } else { self.read(start, end, bytes_max).await }
    }

    /// Reports the blobs that entries name. Sealed entries count too, because other members may request them.
    pub async fn note_blobs(&self) -> io::Result<()> {
        let (mut start, end) = self.present(..);
        while start < end {
            let read = self.read(start, end, READ_BYTES_MAX).await?;
            let Some(last) = read.last() else { break };
            start = last.log_id.index + 1;
        }
        Ok(())
    }

    /// Returns whether the last vote was for this replica.
    fn leads(&self) -> bool {
        self.shared.kept.lock().vote.is_some_and(|vote| vote.leader_id().voted_for() == Some(self.shared.replica.0))
    }

    /// Returns whether nothing was ever written here.
    pub fn is_new(&self) -> bool {
        let kept = self.shared.kept.lock();
        kept.vote.is_none() && kept.last.is_none()
    }

    async fn read(&self, start: u64, end: u64, bytes_max: usize) -> io::Result<Vec<EntryOf>> {
        if let Some(found) = self.cached(start, end, bytes_max) {
            return Ok(found);
        }
        self.decode_all(&self.shared.journal.read(start, end, bytes_max).await?)
    }

    fn cached(&self, start: u64, end: u64, bytes_max: usize) -> Option<Vec<EntryOf>> {
        self.shared.cache.lock().get(start, end, bytes_max)
    }

    fn decode_all(&self, records: &[LogRecord]) -> io::Result<Vec<EntryOf>> {
        records.iter().map(|record| self.decode(record)).collect()
    }

    fn decode(&self, record: &LogRecord) -> io::Result<EntryOf> {
        let entry = encoding::decode_record(record.index, record.term, &record.payload).map_err(|error| {
            self.shared.journal.broken(format_args!("group {}, entry {}: {error}", self.shared.group, record.index))
        })?;
        self.note_blob(&entry); // L3, for entries from before this process
        Ok(entry)
    }

    fn note_blob(&self, entry: &EntryOf) {
        if let Some((hash, _)) = blob_named(&entry.payload) {
            self.shared.large.named(self.shared.group, entry.log_id.index, hash);
        }
    }

    /// Returns the entries of `start..end` that are in the log.
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

    /// Returns the part of a range that the log has.
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

/// Returns the same vote before it was won (L4).
fn candidate(vote: Vote<Replica>) -> Vote<Replica> {
    Vote { leader_id: *vote.leader_id(), committed: false }
}

async fn load(journal: &Journal) -> io::Result<StoredState> {
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
    Ok(StoredState {
        vote: vote.map_err(|error| damaged("the vote", error))?,
        committed: committed.map_err(|error| damaged("the committed position", error))?,
        first: state.first.max(next_index(purged)),
        purged,
        owed: None,
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

    /// Implements L6. The caller led in an earlier term and has not yet noticed its end. With no entries, openraft
    /// sends a heartbeat instead, whose response carries the new term.
    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<EntryOf>, StorageErrorOf> {
        if start >= end {
            return Ok(Vec::new());
        }
        let failed = failed(ErrorSubject::Logs, ErrorVerb::Read);
        if let Some(found) = self.cached(start, end, APPEND_BYTES_MAX) {
            return Ok(found);
        }
        let records = self.shared.journal.read_unless_purged(start, end, APPEND_BYTES_MAX).await;
        let decoded = records.and_then(|records| self.decode_all(&records.unwrap_or_default()));
        decoded.map_err(failed)
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
        if let Some(committed) = committed.filter(|_| !sabotage::is(Sabotage::AckOnLeaderOnly)) {
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
        let records = self.shared.late.due(records, self.leads());
        let written = match self.purge_what_is_owed().await {
            Ok(()) => self.shared.journal.append(records).await,
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            callback.log_io_completed(Err(io::Error::new(error.kind(), error.to_string())));
            return Err(failed(ErrorSubject::Log(last), ErrorVerb::Write)(error));
        }
        self.shared.lag.appended(cached.iter());
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
        let _giving_up = self.shared.giving_up.lock().await;
        self.shared.cache.lock().truncate(since.index);
        self.shared.late.truncate(since.index);
        self.shared.journal.truncate(since.index).await.map_err(failed_at())?;
        self.shared.large.truncated(self.shared.group, since.index);
        self.shared.lag.truncated(since.index);
        let first = self.shared.kept.lock().first;
        let before = match since.index.checked_sub(1).filter(|before| *before >= first) {
            Some(before) => self.read_all(before, since.index).await.map_err(failed_at())?,
            None => Vec::new(), // earlier entries were purged, or there are none
        };
        let mut kept = self.shared.kept.lock();
        kept.last = before.last().map(|entry| *entry.get_log_id()).or(kept.purged); // L2
        Ok(())
    }

    async fn purge(&mut self, up_to: LogIdOf) -> Result<(), StorageErrorOf> {
        let _giving_up = self.shared.giving_up.lock().await;
        let owed = (!self.is_sealed(up_to)).then_some(up_to);
        match owed {
            None => self.purge_on_disk(up_to).await.map_err(failed(ErrorSubject::Log(up_to), ErrorVerb::Delete))?,
            Some(_) => drop(tokio::spawn(give_up_when_sealed(Arc::downgrade(&self.shared)))),
        }
        self.shared.cache.lock().purge(up_to.index);
        self.shared.lag.passed(up_to.index);
        let mut kept = self.shared.kept.lock();
        kept.purged = Some(up_to);
        kept.owed = owed; // L5
        kept.first = kept.first.max(up_to.index + 1);
        if next_index(kept.last) <= up_to.index + 1 {
            kept.last = Some(up_to); // L2
        }
        Ok(())
    }
}

impl LogStore {
    fn is_sealed(&self, id: LogIdOf) -> bool {
        let sealed = |machine: &Arc<dyn Machine>| machine.sealed().position.is_some_and(|at| at.index >= id.index);
        self.shared.machine.as_ref().is_none_or(sealed)
    }

    /// Waits until the disk has caught up with the purge in memory, so that the next entry can follow (L5).
    async fn purge_what_is_owed(&self) -> io::Result<()> {
        while !self.give_up_owed().await? {
            self.shared.journal.check()?; // a failed installation of a snapshot has ended the node
            sleep(INSTALLED_LOOK).await;
        }
        Ok(())
    }

    /// Purges the disk if the state is sealed, and returns whether nothing is owed any more (L5).
    async fn give_up_owed(&self) -> io::Result<bool> {
        let giving_up = self.shared.giving_up.lock().await;
        let owed = self.shared.kept.lock().owed;
        let Some(owed) = owed else { return Ok(true) };
        if giving_up.closed {
            return Err(io::Error::other("the group has stopped"));
        }
        if !self.is_sealed(owed) {
            return Ok(false);
        }
        self.purge_on_disk(owed).await?;
        self.shared.kept.lock().owed = None;
        Ok(true)
    }

    /// Stops delayed purges. Called when consensus has stopped and the log is about to be closed.
    pub async fn close(&self) {
        self.shared.giving_up.lock().await.closed = true;
    }

    async fn purge_on_disk(&self, up_to: LogIdOf) -> io::Result<()> {
        self.shared.journal.purge(up_to.index, encoding::encode_log_id(&up_to)).await?;
        self.shared.late.purge(up_to.index);
        self.shared.large.purged(self.shared.group, up_to.index);
        Ok(())
    }
}

/// Purges the disk once the state is sealed (L5). Ends when the log store is dropped.
async fn give_up_when_sealed(shared: Weak<LogStoreState>) {
    loop {
        sleep(INSTALLED_LOOK).await;
        let Some(store) = shared.upgrade().map(|shared| LogStore { shared }) else { return };
        match store.give_up_owed().await {
            Ok(false) if store.shared.journal.check().is_ok() => {}
            // The error was reported as fatal, or the group has stopped.
            Ok(_) | Err(_) => return,
        }
    }
}

impl LogStore {
    /// Returns the entries for the cache and their records for the disk, both over the same bytes. Entries below the
    /// purged position are part of a seal and are not written again.
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
