//! Directory `queries/` of the data directory, which holds `<name>.query` and `<name>.rows` of each job. Every call
//! blocks on the disk.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_storage_disk::{
    DirEntry, DiskFile, SharedDisk, SpaceLevel, TEMPORARY_SUFFIX, admit, read_whole, replace_whole,
};
use thiserror::Error;
use uuid::Uuid;

use super::pages::{PlacedPage, ResultSlice};
use super::record::{JobEnd, JobRecord, RECORD_BYTES_MAX};

const FOLDER: &str = "queries";
const RECORD: &str = ".query";
const ROWS: &str = ".rows";

#[derive(Clone, Debug)]
pub(crate) struct JobDirectory {
    disk: SharedDisk,
    dir: PathBuf,
}

/// Record that was found at the start, or the reason why it was not read.
pub(crate) type FoundRecord = (Uuid, Result<JobRecord, StoredError>);

/// Failure to read the stored data of a job.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum StoredError {
    /// The data differs from what was written, or is gone.
    #[error("{0}")]
    Damaged(String),
    /// The disk failed to read the data, which may be intact.
    #[error("{0}")]
    Unread(String),
}

impl StoredError {
    /// Classifies an error of the disk. `what` says what was read.
    fn of(what: &str, error: &io::Error) -> StoredError {
        let why = format!("{what} cannot be read: {error}");
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => {
                StoredError::Damaged(why)
            }
            _ => StoredError::Unread(why),
        }
    }
}

impl JobDirectory {
    /// Opens the directory, and removes the remains of a crash: temporary files, and rows of jobs without an end.
    pub fn open(disk: SharedDisk, data_dir: &Path) -> io::Result<(JobDirectory, Vec<FoundRecord>)> {
        let dir = data_dir.join(FOLDER);
        disk.create_dir_all(&dir)?;
        let directory = JobDirectory { disk, dir };
        let entries: BTreeMap<String, DirEntry> =
            directory.disk.list(&directory.dir)?.into_iter().map(|entry| (entry.name.clone(), entry)).collect();
        let mut found = Vec::new();
        for name in entries.keys().filter_map(|file| named(file, RECORD)) {
            let rows = entries.get(&format!("{name}{ROWS}")).map(|entry| entry.length);
            found.push((name, directory.found(name, rows)));
        }
        for file in entries.keys() {
            let ends = |name| found.iter().any(|(known, record)| *known == name && is_kept(record));
            let is_left = file.ends_with(TEMPORARY_SUFFIX) || named(file, ROWS).is_some_and(|name| !ends(name));
            if is_left {
                directory.disk.remove(&directory.dir.join(file))?;
            }
        }
        directory.disk.sync_dir(&directory.dir)?;
        Ok((directory, found))
    }

    fn path(&self, name: Uuid, kind: &str) -> PathBuf {
        self.dir.join(format!("{name}{kind}"))
    }

    fn found(&self, name: Uuid, rows: Option<u64>) -> Result<JobRecord, StoredError> {
        let record = self.get(name)?;
        if let Some(JobEnd::Succeeded { pages, .. }) = &record.end {
            let wanted: u64 = pages.iter().map(|page| u64::from(page.bytes)).sum();
            let found = rows.unwrap_or(0);
            if found != wanted {
                let why = format!("the file of its results has {found} bytes, but {wanted} were written");
                return Err(StoredError::Damaged(why));
            }
        }
        Ok(record)
    }

    /// Reads a record.
    pub fn get(&self, name: Uuid) -> Result<JobRecord, StoredError> {
        let bytes = read_whole(&*self.disk, &self.path(name, RECORD), RECORD_BYTES_MAX);
        let bytes = bytes.map_err(|why| StoredError::of("its record", &why))?;
        JobRecord::decode(&bytes).map_err(StoredError::Damaged)
    }

    /// Replaces a record durably.
    pub fn put(&self, name: Uuid, record: &JobRecord) -> io::Result<()> {
        let text = record.encode();
        if text.len() as u64 > RECORD_BYTES_MAX {
            let why = format!("the record of a query has {} bytes; the maximum is {RECORD_BYTES_MAX}", text.len());
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        replace_whole(&*self.disk, &self.path(name, RECORD), text.as_bytes())
    }

    /// Creates an empty file for rows, which replaces any earlier one. Its name is durable.
    pub fn new_rows(&self, name: Uuid) -> io::Result<Arc<dyn DiskFile>> {
        self.remove_rows(name)?;
        let file = self.disk.create(&self.path(name, ROWS))?;
        self.disk.sync_dir(&self.dir)?;
        Ok(file)
    }

    pub fn rows(&self, name: Uuid) -> Result<Arc<dyn DiskFile>, StoredError> {
        self.disk.open(&self.path(name, ROWS)).map_err(|why| StoredError::of("the file of its results", &why))
    }

    pub fn remove_rows(&self, name: Uuid) -> io::Result<()> {
        gone(self.disk.remove(&self.path(name, ROWS)))
    }

    /// Removes a job. The record is removed first, because the next start removes rows without a record.
    pub fn remove(&self, name: Uuid) -> io::Result<()> {
        gone(self.disk.remove(&self.path(name, RECORD)))?;
        self.disk.sync_dir(&self.dir)?;
        self.remove_rows(name)
    }

    /// Returns why nothing more may be written, if the rest of the disk is reserved for rows and the log.
    pub fn full(&self) -> Option<String> {
        match self.disk.space(&self.dir).map(|space| (space, admit(space, 0))) {
            Ok((_, SpaceLevel::Plenty)) => None,
            Ok((space, _)) => {
                Some(format!("only {} MiB of {} MiB of the disk are free", space.free >> 20, space.total >> 20))
            }
            Err(why) => Some(format!("the free space of the disk is unknown: {why}")),
        }
    }
}

/// Returns whether the rows of a record are kept. A record that the disk failed to read may have rows.
fn is_kept(record: &Result<JobRecord, StoredError>) -> bool {
    matches!(record, Ok(JobRecord { end: Some(JobEnd::Succeeded { .. }), .. }) | Err(StoredError::Unread(_)))
}

fn named(file: &str, kind: &str) -> Option<Uuid> {
    Uuid::parse_str(file.strip_suffix(kind)?).ok()
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Reads the requested lines of these pages.
pub(crate) fn read(
    file: &dyn DiskFile,
    pages: &[PlacedPage],
    mut cut: ResultSlice,
) -> Result<ResultSlice, StoredError> {
    for placed in pages {
        let mut lines = vec![0; placed.page.bytes as usize];
        let at = format!("its results at byte {}", placed.offset);
        file.read_at(placed.offset, &mut lines).map_err(|why| StoredError::of(&at, &why))?;
        if !placed.page.is(placed.offset, &lines) {
            return Err(StoredError::Damaged(format!("{at} do not match their checksum")));
        }
        cut.page(placed, &lines);
    }
    Ok(cut)
}

#[cfg(test)]
mod tests {
    use assay_storage_disk::{Fault, FaultPlan, FaultyDisk, Operation, RealDisk, SimulatedDisk};

    use super::super::pages::{Page, Pages};
    use super::super::record::tests::record;
    use super::*;

    const LINES: [&[u8]; 2] = [b"{\"n\":0}\n{\"n\":1}\n", b"{\"n\":2}\n"];

    fn name() -> Uuid {
        Uuid::from_u128(7)
    }

    fn open(disk: &SharedDisk) -> io::Result<(JobDirectory, Vec<FoundRecord>)> {
        JobDirectory::open(Arc::clone(disk), Path::new("/data"))
    }

    /// Writes a job from its creation to its end.
    fn written(directory: &JobDirectory) -> io::Result<JobRecord> {
        let mut job = JobRecord { end: None, ..record(1) };
        directory.put(name(), &job)?;
        let (file, mut pages) = (directory.new_rows(name())?, Pages::default());
        for lines in LINES {
            file.append(lines)?;
            pages.push(Page::of(pages.bytes(), lines.len() as u32 / 8, lines));
        }
        file.sync()?;
        job.end = Some(JobEnd::Succeeded { at: 9, pages: pages.list() });
        directory.put(name(), &job)?;
        Ok(job)
    }

    fn read_all(directory: &JobDirectory, job: &JobRecord) -> Result<Vec<u8>, StoredError> {
        let Some(JobEnd::Succeeded { pages, .. }) = &job.end else { panic!("no end: {job:?}") };
        let pages = Pages::new(pages).from(0, u64::MAX, usize::MAX);
        let file = directory.rows(name())?;
        read(&*file, &pages, ResultSlice::new(0, u64::MAX, usize::MAX)).map(|cut| cut.lines)
    }

    #[test]
    fn what_was_written_is_found_and_what_was_removed_is_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let again = || JobDirectory::open(Arc::new(RealDisk), dir.path()).expect("opens");
        let (directory, found) = again();
        assert_eq!(found, []);
        let job = written(&directory).expect("written");
        let (directory, found) = again();
        assert_eq!(found, [(name(), Ok(job.clone()))]);
        assert_eq!(read_all(&directory, &job), Ok(LINES.concat()));
        directory.remove(name()).expect("removed");
        directory.remove(name()).expect("once more");
        assert_eq!(again().1, []);
    }

    /// After a power cut at any call, a job is missing, waiting, or ended with all of its rows.
    #[test]
    fn a_power_cut_at_any_moment_leaves_a_job_that_waits_or_has_all_its_rows() {
        let mut ends = [0; 3];
        for at in 1_u64.. {
            let simulated = SimulatedDisk::new();
            let (directory, _) = open(&(Arc::new(simulated.clone()) as SharedDisk)).expect("opens");
            drop(directory);
            let plan = FaultPlan::fail_any(at, Fault::InputOutput).lasting();
            let faulty: SharedDisk = Arc::new(FaultyDisk::new(Arc::new(simulated.clone()), plan));
            let outcome = open(&faulty).and_then(|(directory, _)| written(&directory));
            for seed in 0..20 {
                let disk: SharedDisk = Arc::new(simulated.power_cut(seed));
                let (directory, found) = open(&disk).expect("opens after a power cut");
                match found.as_slice() {
                    [] => ends[0] += 1,
                    [(_, Ok(job))] if job.end.is_none() => ends[1] += 1,
                    [(_, Ok(job))] => {
                        ends[2] += 1;
                        assert_eq!(read_all(&directory, job), Ok(LINES.concat()));
                    }
                    other => panic!("{at}, seed {seed}: {other:?}"),
                }
                let left = disk.list(Path::new("/data/queries")).expect("a list").len();
                assert!(left <= found.len() * 2, "{at}, seed {seed}: {left} files");
            }
            if outcome.is_ok() {
                break;
            }
        }
        assert!(ends.iter().all(|count| *count > 0), "{ends:?}");
    }

    #[test]
    fn damage_of_any_kind_is_said() {
        let simulated = SimulatedDisk::new();
        let disk: SharedDisk = Arc::new(simulated.clone());
        let (directory, _) = open(&disk).expect("opens");
        let job = written(&directory).expect("written");
        let rows = disk.open(&directory.path(name(), ROWS)).expect("rows");
        let damage = |error: &StoredError| match error {
            StoredError::Damaged(why) => why.clone(),
            StoredError::Unread(why) => panic!("no damage: {why}"),
        };
        let read = || damage(&read_all(&directory, &job).expect_err("damaged"));
        rows.write_at(20, b"9").expect("changed");
        assert!(read().contains("byte 16 do not match their checksum"));
        rows.set_len(20).expect("cut");
        assert!(read().contains("cannot be read"));
        let (_, found) = open(&disk).expect("opens");
        let said = damage(found[0].1.as_ref().expect_err("cut"));
        assert!(said.contains("has 20 bytes, but 24 were written"), "{found:?}");
        let text = disk.open(&directory.path(name(), RECORD)).expect("a record");
        text.write_at(30, b"\xff").expect("changed");
        let (directory, found) = open(&disk).expect("opens");
        assert!(found[0].1.is_err() && directory.get(name()).is_err(), "{found:?}");
        // Unrelated files stay.
        disk.create(&directory.dir.join("note")).expect("made");
        assert_eq!(open(&disk).expect("opens").1.len(), 1);
        assert!(disk.exists(&directory.dir.join("note")).expect("looked up"));
    }

    #[test]
    fn what_the_disk_fails_to_read_is_kept() {
        let simulated: SharedDisk = Arc::new(SimulatedDisk::new());
        let (directory, _) = open(&simulated).expect("opens");
        let job = written(&directory).expect("written");
        for operation in [Operation::Open, Operation::Len, Operation::ReadAt] {
            let plan = FaultPlan::fail(operation, 1, Fault::InputOutput).on_path(RECORD);
            let plan = plan.and(Some(Operation::ReadAt), 1, Fault::InputOutput).on_path(ROWS);
            let faulty: SharedDisk = Arc::new(FaultyDisk::new(Arc::clone(&simulated), plan));
            let (directory, found) = open(&faulty).expect("opens");
            assert!(matches!(&found[..], [(_, Err(StoredError::Unread(_)))]), "{operation:?}: {found:?}");
            assert!(matches!(read_all(&directory, &job), Err(StoredError::Unread(_))));
            assert_eq!(read_all(&directory, &job), Ok(LINES.concat()), "the next time");
        }
        assert_eq!(open(&simulated).expect("opens").1, [(name(), Ok(job))]);
    }

    #[test]
    fn a_disk_that_is_nearly_full_is_left_to_others() {
        let disk = SimulatedDisk::with_total(10 << 20);
        let (directory, _) = open(&(Arc::new(disk.clone()) as SharedDisk)).expect("opens");
        assert_eq!(directory.full(), None);
        let file = directory.new_rows(name()).expect("a file");
        file.append(&vec![0; 9_500 << 10]).expect("written");
        assert!(directory.full().expect("full").contains("of 10 MiB of the disk are free"));
    }
}
