//! `assay doctor`: checks a data directory that no node uses, and changes nothing in it.
//!
//! Our own files are read through a disk that refuses to write. sled changes its files whenever it opens them, so the
//! keyed stores, which are small, are copied to a temporary directory and opened there. The order is the order of
//! trust: whose directory this is, the log, what each group has kept, whether the log goes on from there, the blobs.

mod code_functions;
mod directory_copy;
mod finding;
mod groups;
mod read_only;

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Arc;

use assay_cluster::{
    Format, HomeError, check_node_files, closed_groups, contradiction_in, log_is_of_other_time, read_format,
};
use assay_storage_blobs::Blobs;
use assay_storage_disk::SharedDisk;
use assay_storage_log::Verdict;

pub use finding::{EXIT_NOT_CHECKED, Report};
use groups::Group;
use read_only::ReadOnlyDisk;

const REBUILD: &str =
    "restore this directory from a backup or, in a cluster, remove the node and join it again as a new node";

/// Checks a data directory.
pub fn examine(dir: &Path) -> Report {
    let mut report = Report::new(dir);
    // Held until the end, so that no node starts meanwhile.
    let Some(_lock) = lock(dir, &mut report) else { return report };
    let disk: SharedDisk = Arc::new(ReadOnlyDisk);
    let format = check_format(&disk, dir, &mut report);
    let log = check_log(&disk, dir, &mut report);
    check_own_files(&disk, dir, &mut report);
    check_closed(&disk, dir, &mut report);
    for group in groups::all(&disk, dir, format, &mut report) {
        progress(&format!("checking {}", group.name()));
        check_group(&disk, &group, &log, &mut report);
    }
    check_blobs(&disk, dir, &mut report);
    code_functions::examine(&mut report);
    report
}

/// Prints progress to stderr.
fn progress(text: &str) {
    eprintln!("{text} ...");
}

/// Takes the lock that a node holds while it runs.
fn lock(dir: &Path, report: &mut Report) -> Option<File> {
    if !dir.is_dir() {
        report.not_checked("data directory", "the directory does not exist: name the data directory of the node");
        return None;
    }
    let path = dir.join("LOCK");
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) => {
            let hint = "is this the data directory of a node?";
            report.not_checked("LOCK", format!("{}: {error}; {hint}", path.display()));
            return None;
        }
    };
    match file.try_lock() {
        Ok(()) => Some(file),
        Err(TryLockError::WouldBlock) => {
            report.not_checked("LOCK", "a process is using this directory: stop the node first, then try again");
            None
        }
        Err(TryLockError::Error(error)) => {
            report.not_checked("LOCK", format!("{}: {error}", path.display()));
            None
        }
    }
}

/// Checks the format file, which has the number of shards.
fn check_format(disk: &SharedDisk, dir: &Path, report: &mut Report) -> Option<Format> {
    match read_format(disk.as_ref(), dir) {
        Ok(Some(format)) if !format.founded => {
            report.ok(
                "FORMAT",
                "the founding of this directory was interrupted: nothing was acknowledged, and the next start begins \
                 again",
            );
            None
        }
        Ok(Some(format)) => {
            report.ok("FORMAT", format!("cluster {}, {} shards", format.cluster, format.shards));
            Some(format)
        }
        Ok(None) => {
            let to_do = "if this is a data directory, restore the file from a backup";
            report.damaged("FORMAT", format!("{} is missing", dir.join("FORMAT").display()), to_do);
            None
        }
        Err(error @ (HomeError::Newer { .. } | HomeError::Io { .. })) => {
            report.not_checked("FORMAT", error.to_string());
            None
        }
        Err(error) => {
            report.damaged("FORMAT", error.to_string(), "restore the file from a backup");
            None
        }
    }
}

fn check_log(disk: &SharedDisk, dir: &Path, report: &mut Report) -> Option<assay_storage_log::Report> {
    progress("checking the log");
    let log = assay_storage_log::check(disk.as_ref(), &dir.join("log"));
    for remark in &log.remarks {
        if log.verdict == Verdict::TornTail && remark.contains("torn, above the watermark") {
            report.ambiguous("log", remark);
        } else {
            report.ok("log", remark.clone());
        }
    }
    match log.verdict {
        Verdict::Sound | Verdict::TornTail => {
            let bytes: u64 = log.files.iter().map(|file| file.bytes).sum();
            let records: u64 = log.groups.iter().map(|group| group.records).sum();
            let (files, groups) = (log.files.len(), log.groups.len());
            report.ok(
                "log",
                format!(
                    "{records} records of {groups} groups in {files} files, {bytes} bytes; it is complete up to its \
                     watermark"
                ),
            );
            return Some(log);
        }
        Verdict::Corrupt => log.problems.iter().for_each(|problem| report.damaged("log", problem.clone(), REBUILD)),
        Verdict::Unreadable => log.problems.iter().for_each(|problem| report.not_checked("log", problem.clone())),
    }
    None
}

/// Checks the node's own files.
fn check_own_files(disk: &SharedDisk, dir: &Path, report: &mut Report) {
    for (file, error) in check_node_files(Arc::clone(disk), dir) {
        match error {
            HomeError::Newer { .. } | HomeError::Io { .. } => report.not_checked(file, error.to_string()),
            _ => report.damaged(file, error.to_string(), "restore the file from a backup"),
        }
    }
}

/// Replicas that the node itself found must not vote again.
fn check_closed(disk: &SharedDisk, dir: &Path, report: &mut Report) {
    let to_do = "start this node together with the others, which then fill a new replica. If no majority is left, \
                 run `assay cluster recover` on the node with the most data";
    if log_is_of_other_time(disk.as_ref(), dir) {
        let what = "this log and the rest of the data directory are from different times. The next start closes all \
                    replicas of this node";
        report.damaged("log/START", what, to_do);
    }
    // Where the list cannot be read, that has been said already.
    for group in closed_groups(Arc::clone(disk), dir).unwrap_or_default() {
        let what = "its replica here is closed: this directory, or this replica, was restored from an older copy, or \
                    the group continued without its committed entries";
        report.damaged(&groups::name_of(group), what, to_do);
    }
}

/// Checks a group's stored state, and whether the log continues at its end.
fn check_group(disk: &SharedDisk, group: &Group, log: &Option<assay_storage_log::Report>, report: &mut Report) {
    let place = group.name();
    let Some(applied) = group.check(disk, report) else { return };
    // Where the log is damaged, that has been said already.
    let Some(log) = log else { return };
    let position = applied.position;
    let applied = position.map(|position| position.index);
    let found = log.groups.iter().find(|found| found.group == group.id);
    let Some(found) = found else {
        match applied {
            None => report.ok(&place, "no stored state, and no entries in the log"),
            Some(index) => report.damaged(
                &place,
                format!("the stored state ends at {index}, but the log has no entries of the group"),
                REBUILD,
            ),
        }
        return;
    };
    let state = &found.state;
    let purged = state.purged.as_ref().map(|purged| purged.note.as_slice());
    if let Some(why) = contradiction_in(state.last, purged, state.committed.as_deref(), position) {
        report.damaged(&place, why, REBUILD);
        return;
    }
    let (state, next) = (&found.state, applied.map_or(0, |index| index + 1));
    let last = state.last.map(|(index, _)| index).or(state.purged.as_ref().map(|purged| purged.index));
    if state.first > next {
        let (first, last) = (state.first, next);
        report.damaged(
            &place,
            format!(
                "the stored state continues at {last}, but the log begins at {first}: the entries between are missing"
            ),
            REBUILD,
        );
    } else if let Some(index) = applied.filter(|index| last.is_none_or(|last| last < *index)) {
        report.damaged(
            &place,
            format!("the stored state ends at {index}, but the log already ends at {last:?}"),
            REBUILD,
        );
    } else {
        let open = last.map_or(0, |last| (last + 1).saturating_sub(next));
        report.ok(
            &place,
            format!("the log continues where the stored state ends; the next start applies {open} entries"),
        );
    }
}

fn check_blobs(disk: &SharedDisk, dir: &Path, report: &mut Report) {
    const FILES_PER_LINE: u64 = 1000;
    let path = dir.join("blobs");
    if !path.is_dir() {
        report.damaged("blobs", format!("{} is missing", path.display()), REBUILD);
        return;
    }
    progress("checking blobs");
    let mut so_far = (0, 0);
    let checked = Blobs::open(Arc::clone(disk), &path).and_then(|blobs| {
        blobs.verify_all(|progress| {
            so_far = (progress.files_checked, progress.bytes_checked);
            if progress.files_checked % FILES_PER_LINE == 0 {
                eprintln!("checking blobs: {} of {}", progress.files_checked, progress.files_total);
            }
        })
    });
    match checked {
        Err(error) => report.not_checked("blobs", format!("{}: {error}", path.display())),
        Ok(damages) if damages.is_empty() => report.ok("blobs", format!("{} files, {} bytes", so_far.0, so_far.1)),
        Ok(damages) => {
            for damage in damages {
                let said = format!("{} {}", damage.path.display(), damage.what);
                report.damaged(
                    "blobs",
                    said,
                    "restore the file from a backup or from another node; its name is the hash of its content",
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_not_there_could_not_be_checked() {
        let report = examine(Path::new("/nowhere/at/all"));
        assert_eq!(report.exit_code(), EXIT_NOT_CHECKED);
    }

    #[test]
    fn a_directory_in_use_is_refused_with_a_sentence() {
        let dir = tempfile::tempdir().expect("makes");
        let lock = File::create(dir.path().join("LOCK")).expect("creates");
        lock.try_lock().expect("locks");
        let report = examine(dir.path());
        assert_eq!(report.exit_code(), EXIT_NOT_CHECKED);
        assert!(report.findings[0].to_string().contains("stop the node first"), "{:?}", report.findings);
    }

    #[test]
    fn nothing_is_changed_and_what_is_missing_is_named() {
        let dir = tempfile::tempdir().expect("makes");
        File::create(dir.path().join("LOCK")).expect("creates");
        let report = examine(dir.path());
        assert_eq!(report.exit_code(), finding::EXIT_DAMAGED);
        let left: Vec<_> =
            std::fs::read_dir(dir.path()).expect("lists").map(|entry| entry.expect("reads").file_name()).collect();
        assert_eq!(left, ["LOCK"]);
    }
}
