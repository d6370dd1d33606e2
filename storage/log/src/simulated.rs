//! Log of a node in a simulation: the same handles over records in memory, of which a power cut may lose some.
//!
//! No thread waits for work here. The simulation is notified of new work ([`Arrived`]) and chooses when to run a round.
//! `write` takes the waiting work. `sync` makes it durable, updates the state that readers see, and completes it. A
//! crash between the two keeps everything written. A power cut keeps a random prefix of it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};

use assay_storage_disk::SimulatedDisk;
use assay_storage_model::GroupId;
use parking_lot::{Mutex, RwLock};

use crate::engine::Records;
use crate::error::LogError;
use crate::frame::{CHAIN_START, Frame};
use crate::group::Group;
use crate::group_metadata::{PurgedMark, Vote};
use crate::open::{Log, OpenLog};
use crate::writer::{Shared, Work};
use crate::{Arrived, Completion, INDEX_MAX, LogRecord};

/// Disk content of one node. Clones share it; a crash produces a separate one.
#[derive(Clone, Debug, Default)]
pub struct SimulatedFiles(Arc<Mutex<Files>>);

#[derive(Clone, Debug, Default)]
struct Files {
    durable: Book,
    written: Book,
    /// Changes that lead from `durable` to `written`.
    unsynced: Vec<Change>,
}

#[derive(Clone, Debug, Default)]
struct Book(BTreeMap<GroupId, SimulatedGroup>);

/// Records and state of one group.
#[derive(Clone, Debug, Default)]
struct SimulatedGroup {
    group: Group,
    frames: BTreeMap<u64, Frame>,
}

#[derive(Clone, Debug)]
enum Change {
    Append(GroupId, Vec<LogRecord>),
    Vote(GroupId, Vec<u8>),
    Committed(GroupId, Vec<u8>),
    Truncate(GroupId, u64),
    Purge(GroupId, u64, Vec<u8>),
    Remove(GroupId),
}

impl SimulatedFiles {
    /// Returns the files after the process was killed, which contain everything written.
    pub fn after_kill(&self) -> SimulatedFiles {
        let written = self.0.lock().written.clone();
        SimulatedFiles(Arc::new(Mutex::new(Files { durable: written.clone(), written, unsynced: Vec::new() })))
    }

    /// Returns the files after a power cut.
    ///
    /// `choose` receives the number of unsynced changes and returns how many of them, from the first on, happened.
    pub fn after_power_cut(&self, choose: impl FnOnce(usize) -> usize) -> SimulatedFiles {
        let files = self.0.lock();
        let mut left = files.durable.clone();
        let kept = choose(files.unsynced.len()).min(files.unsynced.len());
        files.unsynced[..kept].iter().for_each(|change| left.make(change));
        SimulatedFiles(Arc::new(Mutex::new(Files { durable: left.clone(), written: left, unsynced: Vec::new() })))
    }
}

impl Book {
    /// Returns why the caller must not make this change.
    fn refusal(&self, change: &Change) -> Option<LogError> {
        let refused = |what: String| Some(LogError::Refused(what));
        match change {
            Change::Append(id, records) => {
                let first = records.first()?.index;
                let expected = self.0.get(id).and_then(|kept| kept.group.next_index()).unwrap_or(first);
                let wrong = records.iter().zip(expected..).find(|(record, index)| record.index != *index);
                let (record, index) = wrong?;
                refused(format!("group {id}: record {} where {index} must be", record.index))
            }
            Change::Truncate(id, from) => {
                let purged = self.0.get(id)?.group.head.purged.as_ref()?.index;
                let below = *from <= purged;
                below.then(|| LogError::Refused(format!("group {id}: truncation from {from}, purged up to {purged}")))
            }
            Change::Purge(id, up_to, _) if *up_to >= INDEX_MAX => refused(format!("group {id}: purge up to {up_to}")),
            Change::Purge(..) | Change::Vote(..) | Change::Committed(..) | Change::Remove(_) => None,
        }
    }

    fn make(&mut self, change: &Change) {
        match change {
            Change::Append(id, records) => self.0.entry(*id).or_default().append(*id, records),
            Change::Vote(id, bytes) => {
                let group = &mut self.0.entry(*id).or_default().group;
                let number = group.vote.as_ref().map_or(1, |vote| vote.number + 1);
                group.vote = Some(Vote { number, bytes: bytes.clone() });
            }
            Change::Committed(id, committed) => {
                self.0.entry(*id).or_default().group.committed = Some(committed.clone());
            }
            Change::Truncate(id, from) => {
                if let Some(kept) = self.0.get_mut(id) {
                    kept.truncate(*from);
                }
            }
            Change::Purge(id, up_to, note) => self.0.entry(*id).or_default().purge(*up_to, note),
            Change::Remove(id) => drop(self.0.remove(id)),
        }
    }
}

impl SimulatedGroup {
    fn append(&mut self, id: GroupId, records: &[LogRecord]) {
        let Some(first) = records.first() else { return };
        if self.group.last.is_none() {
            self.group.first = first.index;
        }
        let mut previous = self.group.tail_checksum();
        for record in records {
            let frame = Frame::of(id, record, previous);
            previous = frame.mark().checksum;
            self.group.last = Some(frame.mark());
            self.frames.insert(record.index, frame);
        }
        self.group.head.end = None;
    }

    fn truncate(&mut self, from: u64) {
        let from = from.max(self.group.first);
        if self.group.last.is_none_or(|last| last.index < from) {
            return;
        }
        drop(self.frames.split_off(&from));
        self.group.last = self.frames.last_key_value().map(|(_, frame)| frame.mark());
        self.group.head.end = Some(from);
        self.group.moved += 1;
    }

    fn purge(&mut self, up_to: u64, note: &[u8]) {
        if self.group.head.purged.as_ref().is_some_and(|purged| up_to <= purged.index) {
            return;
        }
        let checksum = self.frames.get(&up_to).map_or(CHAIN_START, |frame| frame.mark().checksum);
        self.frames = self.frames.split_off(&(up_to + 1));
        self.group.last = self.group.last.filter(|last| last.index > up_to);
        self.group.first = up_to + 1;
        self.group.head.end = self.group.head.end.map(|end| end.max(up_to + 1));
        self.group.head.purged = Some(PurgedMark { index: up_to, checksum, note: note.to_vec() });
        self.group.moved += 1;
    }
}

/// Durable part of the files, which readers may see.
struct Durable(SimulatedFiles);

impl Records for Durable {
    fn fetch(&self, group: GroupId, from: u64, to: u64, bytes_max: usize) -> Result<Vec<Frame>, String> {
        let files = self.0.0.lock();
        let kept = files.durable.0.get(&group).ok_or("no such group")?;
        let (mut found, mut bytes) = (Vec::new(), 0);
        for (_, frame) in kept.frames.range(from..to) {
            bytes += frame.len();
            if !found.is_empty() && bytes > bytes_max {
                break;
            }
            found.push(frame.clone());
        }
        Ok(found)
    }

    fn give_back(&self) -> Result<Vec<u64>, String> {
        Ok(Vec::new())
    }

    fn renew(&self) -> Result<(), String> {
        Ok(())
    }

    fn bytes(&self) -> u64 {
        let files = self.0.0.lock();
        files.durable.0.values().flat_map(|kept| kept.frames.values()).map(|frame| frame.len() as u64).sum()
    }
}

/// Writer of a simulated log.
pub struct Rounds {
    inbox: Receiver<Work>,
    shared: Arc<Shared>,
    files: SimulatedFiles,
    /// Completions that wait for the next `sync`.
    dones: Vec<(Completion, Result<(), LogError>)>,
}

impl std::fmt::Debug for Rounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rounds").field("waiting", &self.dones.len()).finish_non_exhaustive()
    }
}

/// Opens a log over these files and returns it with its writer.
pub fn open(files: &SimulatedFiles, arrived: Arrived) -> (Log, Rounds) {
    let shared = Arc::new(Shared::default());
    *shared.groups.write() = files.groups();
    let (inbox, work) = channel();
    let records: Arc<dyn Records> = Arc::new(Durable(files.clone()));
    let inner = OpenLog {
        shared: Arc::clone(&shared),
        store: RwLock::new(Some(records)),
        inbox,
        arrived: Some(arrived),
        thread: Mutex::new(None),
        disk: Arc::new(SimulatedDisk::new()), // where `Log::bytes` finds nothing
        dir: PathBuf::from("/log"),
    };
    (Log(Arc::new(inner)), Rounds { inbox: work, shared, files: files.clone(), dones: Vec::new() })
}

impl SimulatedFiles {
    /// Returns whether this record of a group is durable here, or was and has been purged.
    pub fn holds(&self, group: GroupId, index: u64, term: u64) -> bool {
        let files = self.0.lock();
        let Some(kept) = files.durable.0.get(&group) else { return false };
        let purged = kept.group.head.purged.as_ref().is_some_and(|purged| purged.index >= index);
        purged || kept.frames.get(&index).is_some_and(|frame| frame.mark().term == term)
    }

    /// Returns the position up to which the group's log was purged.
    pub fn purged(&self, group: GroupId) -> Option<u64> {
        Some(self.0.lock().durable.0.get(&group)?.group.head.purged.as_ref()?.index)
    }

    /// Returns whether a vote of this group is durable here.
    pub fn has_vote(&self, group: GroupId) -> bool {
        self.0.lock().durable.0.get(&group).is_some_and(|kept| kept.group.vote.is_some())
    }

    fn groups(&self) -> BTreeMap<GroupId, Group> {
        self.0.lock().durable.0.iter().map(|(id, kept)| (*id, kept.group.clone())).collect()
    }
}

impl Rounds {
    /// Takes the waiting work and returns whether there was any.
    pub fn write(&mut self) -> bool {
        let before = self.dones.len();
        let mut took = false;
        while let Ok(work) = self.inbox.try_recv() {
            took = true;
            self.shared.queued_bytes.fetch_sub(work.bytes(), Ordering::Relaxed);
            self.take(work);
        }
        took || self.dones.len() > before
    }

    fn take(&mut self, work: Work) {
        if let Some(failure) = self.shared.failure() {
            return work.refuse(failure);
        }
        let (change, done) = match work {
            Work::Append { group, records, done } => (Change::Append(group, records), Some(done)),
            Work::Vote { group, vote, done } => (Change::Vote(group, vote), Some(done)),
            Work::Committed { group, committed } => (Change::Committed(group, committed), None),
            Work::Truncate { group, from, done } => (Change::Truncate(group, from), Some(done)),
            Work::Purge { group, up_to, note, done } => (Change::Purge(group, up_to, note), Some(done)),
            Work::Remove { group, done } => (Change::Remove(group), Some(done)),
            Work::Stop { .. } => return,
        };
        let mut files = self.files.0.lock();
        let refusal = files.written.refusal(&change);
        if refusal.is_none() {
            files.written.make(&change);
            files.unsynced.push(change);
        }
        self.dones.extend(done.map(|done| (done, refusal.map_or(Ok(()), Err))));
    }

    /// Makes the written changes durable and completes them.
    pub fn sync(&mut self) {
        {
            let mut files = self.files.0.lock();
            let Files { durable, unsynced, .. } = &mut *files;
            unsynced.drain(..).for_each(|change| durable.make(&change));
        }
        *self.shared.groups.write() = self.files.groups();
        self.shared.syncs.fetch_add(1, Ordering::Relaxed);
        for (done, outcome) in self.dones.drain(..) {
            done(outcome);
        }
    }

    /// Simulates the end of the process: no further work is taken, and waiting callers get an unknown outcome.
    pub fn fail(&mut self, what: &str) {
        self.shared.fail(what);
        while let Ok(work) = self.inbox.try_recv() {
            work.refuse(LogError::Failed(what.to_owned()));
        }
        for (done, _) in self.dones.drain(..) {
            done(Err(LogError::Failed(what.to_owned())));
        }
    }
}
