//! Positions that followers acknowledged to the leaders on this node, persisted within a second. A follower that comes
//! back with less was restored from an older copy.
//!
//! ```text
//! ACKNOWLEDGED  at <group> <replica> <vote: term replica> <matched: term replica index> <committed: the same, or ->
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use assay_cluster_raft::{Acknowledged, LogPlace, VoteFor};
use assay_storage_disk::Disk;
use assay_storage_model::{GroupId, ReplicaId};
use parking_lot::Mutex;

use crate::checksummed_file;
use crate::data_dir::HomeError;
use crate::starts::Name;

const FILE: &str = "ACKNOWLEDGED";
const WHAT: &str = "acknowledged";

type Entries = BTreeMap<Name, Acknowledged>;

#[derive(Debug, Default)]
pub struct AcknowledgedTable {
    entries: Mutex<Entries>,
    /// Content of the file.
    written: Mutex<Entries>,
}

impl AcknowledgedTable {
    pub fn open(disk: &dyn Disk, dir: &Path) -> Result<AcknowledgedTable, HomeError> {
        let entries = read(disk, dir)?;
        Ok(AcknowledgedTable { written: Mutex::new(entries.clone()), entries: Mutex::new(entries) })
    }

    pub fn get(&self, name: Name) -> Option<Acknowledged> {
        self.entries.lock().get(&name).copied()
    }

    pub fn note(&self, name: Name, acknowledged: Acknowledged) {
        let mut entries = self.entries.lock();
        let known = entries.entry(name).or_insert(acknowledged);
        *known = known.and(acknowledged);
    }

    /// Forgets replicas that are in no group any more.
    pub fn retain(&self, is_there: impl Fn(Name) -> bool) {
        self.entries.lock().retain(|name, _| is_there(*name));
    }

    /// Writes what is new. Blocking.
    pub fn write(&self, disk: &dyn Disk, dir: &Path) -> Result<(), HomeError> {
        let mut written = self.written.lock();
        let entries = self.entries.lock().clone();
        if *written != entries {
            write(disk, dir, &entries)?;
            *written = entries;
        }
        Ok(())
    }
}

pub fn read(disk: &dyn Disk, dir: &Path) -> Result<Entries, HomeError> {
    let path = dir.join(FILE);
    let lines = checksummed_file::read(disk, &path, WHAT)?.unwrap_or_default();
    let entries = lines.iter().map(|(_, value)| parse(value)).collect::<Option<Entries>>();
    entries.ok_or_else(|| HomeError::Damaged { path, what: "a line names no replica and its position".into() })
}

fn parse(value: &str) -> Option<(Name, Acknowledged)> {
    let (numbers, committed) =
        value.rsplit_once(' ').filter(|(_, last)| *last == "-").map_or((value, true), |(rest, _)| (rest, false));
    let numbers: Vec<u64> = numbers.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
    let place = |at: usize| {
        Some(LogPlace { term: *numbers.get(at)?, replica: *numbers.get(at + 1)?, index: *numbers.get(at + 2)? })
    };
    let name = (GroupId(*numbers.first()?), ReplicaId(*numbers.get(1)?));
    let vote = VoteFor { term: *numbers.get(2)?, replica: *numbers.get(3)? };
    let committed = if committed { Some(place(7)?) } else { None };
    Some((name, Acknowledged { vote, matched: place(4)?, committed }))
}

fn write(disk: &dyn Disk, dir: &Path, entries: &Entries) -> Result<(), HomeError> {
    let place = |place: LogPlace| format!("{} {} {}", place.term, place.replica, place.index);
    let line = |((group, replica), one): (&Name, &Acknowledged)| {
        let Acknowledged { vote, matched, committed } = one;
        let committed = committed.map_or_else(|| "-".to_owned(), place);
        let value = format!("{group} {replica} {} {} {} {committed}", vote.term, vote.replica, place(*matched));
        ("at".to_owned(), value)
    };
    let lines: Vec<_> = entries.iter().map(line).collect();
    checksummed_file::write(disk, &dir.join(FILE), WHAT, &lines)
}

#[cfg(test)]
mod tests {
    use assay_storage_disk::RealDisk;

    use super::*;

    fn acknowledged(index: u64, committed: bool) -> Acknowledged {
        let place = |index| LogPlace { term: 5, replica: 2, index };
        Acknowledged {
            vote: VoteFor { term: 6, replica: 3 },
            matched: place(index),
            committed: committed.then(|| place(index - 1)),
        }
    }

    #[test]
    fn what_was_acknowledged_reads_back_and_only_grows() {
        let dir = tempfile::tempdir().expect("a directory");
        let table = AcknowledgedTable::open(&RealDisk, dir.path()).expect("there is none");
        let (one, other) = ((GroupId(16), ReplicaId(7)), (GroupId(1), ReplicaId(u64::MAX)));
        table.note(one, acknowledged(9, true));
        table.note(one, acknowledged(8, false));
        table.note(other, acknowledged(3, false));
        table.write(&RealDisk, dir.path()).expect("writes");
        let back = AcknowledgedTable::open(&RealDisk, dir.path()).expect("reads");
        assert_eq!((back.get(one), back.get(other)), (Some(acknowledged(9, true)), Some(acknowledged(3, false))));
        back.retain(|name| name == one);
        back.write(&RealDisk, dir.path()).expect("writes");
        let back = AcknowledgedTable::open(&RealDisk, dir.path()).expect("reads");
        assert_eq!((back.get(one), back.get(other)), (Some(acknowledged(9, true)), None));
    }
}
