//! The file that stores the starts.
//!
//! ```text
//! STARTS        start <id> ...                          this node's, oldest first
//!               seen <node> <id> ...                    the last of each other node
//!               closed <group> <replica> ...            replicas that must not run again
//!               floor unknown | <replica>               where this directory was an older copy
//! log/START     previous <id>, current <id>             that the log was last used by
//! ```
//! `log/START` is written before `STARTS`, so a crash between the two leaves it one start ahead. A log that was put back
//! from an older copy has neither the last start nor the one before it.

use std::path::Path;

use assay_storage_disk::Disk;
use assay_storage_model::{GroupId, NodeId, ReplicaId};

use super::{Floor, KeptStarts, StartId};
use crate::checksummed_file;
use crate::data_dir::HomeError;

const FILE: &str = "STARTS";
const WHAT: &str = "starts";
const MARKER: &str = "START";
const MARKER_WHAT: &str = "start of a log";

/// None in a directory that was never opened by a program from 0.5 on.
pub fn read(disk: &dyn Disk, dir: &Path) -> Result<Option<KeptStarts>, HomeError> {
    let path = dir.join(FILE);
    let Some(lines) = checksummed_file::read(disk, &path, WHAT)? else { return Ok(None) };
    let mut kept = KeptStarts::default();
    for (name, value) in lines {
        let known = take(&mut kept, &name, &value);
        known.ok_or_else(|| HomeError::Damaged {
            path: path.clone(),
            what: format!("the line `{name}` cannot be parsed"),
        })?;
    }
    Ok(Some(kept))
}

fn take(kept: &mut KeptStarts, name: &str, value: &str) -> Option<()> {
    let two = || value.split_once(' ');
    match name {
        "start" => kept.history.push(value.parse().ok()?),
        "seen" => {
            let (node, start) = two()?;
            kept.seen.insert(NodeId(node.parse().ok()?), start.parse().ok()?);
        }
        "closed" => {
            let (group, replica) = two()?;
            kept.closed.insert((GroupId(group.parse().ok()?), ReplicaId(replica.parse().ok()?)));
        }
        "floor" if value == "unknown" => kept.floor = Floor::Unknown,
        "floor" => kept.floor = Floor::At(ReplicaId(value.parse().ok()?)),
        _ => return None,
    }
    Some(())
}

pub fn write(disk: &dyn Disk, dir: &Path, kept: &KeptStarts) -> Result<(), HomeError> {
    let line = |name: &str, value: String| (name.to_owned(), value);
    let mut lines: Vec<_> = kept.history.iter().map(|start| line("start", start.to_string())).collect();
    lines.extend(kept.seen.iter().map(|(node, start)| line("seen", format!("{node} {start}"))));
    lines.extend(kept.closed.iter().map(|(group, replica)| line("closed", format!("{group} {replica}"))));
    match kept.floor {
        Floor::None => {}
        Floor::Unknown => lines.push(line("floor", "unknown".into())),
        Floor::At(replica) => lines.push(line("floor", replica.to_string())),
    }
    checksummed_file::write(disk, &dir.join(FILE), WHAT, &lines)
}

/// The starts that a log was last used by: the one before, and the last. None in a log of a program before 0.5.
pub fn read_marker(disk: &dyn Disk, log: &Path) -> Result<Option<(Option<StartId>, StartId)>, HomeError> {
    let path = log.join(MARKER);
    let Some(lines) = checksummed_file::read(disk, &path, MARKER_WHAT)? else { return Ok(None) };
    let value = |name: &str| lines.iter().find(|(found, _)| found == name).and_then(|(_, value)| value.parse().ok());
    let current = value("current").ok_or(HomeError::Damaged { path, what: "it names no start".into() })?;
    Ok(Some((value("previous"), current)))
}

pub fn write_marker(disk: &dyn Disk, log: &Path, previous: Option<StartId>, current: StartId) -> Result<(), HomeError> {
    let mut lines: Vec<_> = previous.iter().map(|previous| ("previous".to_owned(), previous.to_string())).collect();
    lines.push(("current".to_owned(), current.to_string()));
    checksummed_file::write(disk, &log.join(MARKER), MARKER_WHAT, &lines)
}

/// Returns whether a log was used by the last start of the history, or by the one that a crash kept out of it.
pub fn fits(history: &[StartId], marker: Option<(Option<StartId>, StartId)>) -> bool {
    match (history.last(), marker) {
        (None, None) => true,
        (Some(last), Some((previous, current))) => current == *last || previous == Some(*last),
        // A first start that was cut short wrote the marker and not the history.
        (None, Some((previous, _))) => previous.is_none(),
        (Some(_), None) => false,
    }
}

#[cfg(test)]
mod tests {
    use assay_storage_disk::RealDisk;

    use super::*;

    #[test]
    fn what_is_kept_reads_back() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(read(&RealDisk, dir.path()).expect("reads"), None);
        for floor in [Floor::None, Floor::Unknown, Floor::At(ReplicaId(77))] {
            let kept = KeptStarts {
                history: vec![StartId(1), StartId(u128::MAX), StartId(0)],
                seen: [(NodeId(2), StartId(9)), (NodeId(3), StartId(8))].into(),
                closed: [(GroupId(16), ReplicaId(4)), (GroupId(1), ReplicaId(4))].into(),
                floor,
            };
            write(&RealDisk, dir.path(), &kept).expect("writes");
            assert_eq!(read(&RealDisk, dir.path()).expect("reads"), Some(kept));
        }
    }

    #[test]
    fn a_log_of_another_time_does_not_fit() {
        let [a, b, c] = [1, 2, 3].map(StartId);
        let dir = tempfile::tempdir().expect("a directory");
        let marker = || read_marker(&RealDisk, dir.path()).expect("reads");
        assert!(fits(&[], marker()), "an upgrade");
        write_marker(&RealDisk, dir.path(), None, a).expect("writes");
        assert!(fits(&[], marker()), "the first start was cut short");
        assert!(fits(&[a], marker()));
        assert!(!fits(&[a, b, c], marker()), "the log is older");
        write_marker(&RealDisk, dir.path(), Some(a), b).expect("writes");
        assert!(fits(&[a], marker()), "the second start was cut short");
        assert!(fits(&[a, b], marker()));
        assert!(!fits(&[a, b, c], marker()));
        assert!(!fits(&[], marker()), "the history is gone, or older than the log");
        assert!(!fits(&[a], None), "the log is of before there was a history");
    }
}
