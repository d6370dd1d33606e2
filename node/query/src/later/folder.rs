//! The folder `queries/` of a data directory: `<name>.query`, which is replaced whole, and `<name>.rows`. Every call waits
//! for the disk.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_storage_disk::{DirEntry, DiskFile, Room, SharedDisk, TEMPORARY_SUFFIX, admit, read_whole, replace_whole};
use uuid::Uuid;

use super::pages::{Cut, Placed};
use super::record::{End, RECORD_BYTES_MAX, Record};

const FOLDER: &str = "queries";
const RECORD: &str = ".query";
const ROWS: &str = ".rows";

#[derive(Clone, Debug)]
pub(crate) struct Folder {
    disk: SharedDisk,
    dir: PathBuf,
}

/// A record as a start finds it, or what is wrong with it.
pub(crate) type Found = (Uuid, Result<Record, String>);

impl Folder {
    /// Also takes away what a crash left: files that were not finished, and rows of what did not come to an end.
    pub fn open(disk: SharedDisk, data_dir: &Path) -> io::Result<(Folder, Vec<Found>)> {
        let dir = data_dir.join(FOLDER);
        disk.create_dir_all(&dir)?;
        let folder = Folder { disk, dir };
        let entries: BTreeMap<String, DirEntry> =
            folder.disk.list(&folder.dir)?.into_iter().map(|entry| (entry.name.clone(), entry)).collect();
        let mut found = Vec::new();
        for name in entries.keys().filter_map(|file| named(file, RECORD)) {
            let rows = entries.get(&format!("{name}{ROWS}")).map(|entry| entry.length);
            found.push((name, folder.found(name, rows)));
        }
        for file in entries.keys() {
            let ends = |name| found.iter().any(|(known, record)| *known == name && is_kept(record));
            let is_left = file.ends_with(TEMPORARY_SUFFIX) || named(file, ROWS).is_some_and(|name| !ends(name));
            if is_left {
                folder.disk.remove(&folder.dir.join(file))?;
            }
        }
        folder.disk.sync_dir(&folder.dir)?;
        Ok((folder, found))
    }

    fn path(&self, name: Uuid, kind: &str) -> PathBuf {
        self.dir.join(format!("{name}{kind}"))
    }

    fn found(&self, name: Uuid, rows: Option<u64>) -> Result<Record, String> {
        let record = self.get(name)?;
        if let Some(End::Succeeded { pages, .. }) = &record.end {
            let wanted: u64 = pages.iter().map(|page| u64::from(page.bytes)).sum();
            let found = rows.unwrap_or(0);
            if found != wanted {
                return Err(format!("the file of its results has {found} bytes; {wanted} were written"));
            }
        }
        Ok(record)
    }

    /// What the record says, or what is wrong with it.
    pub fn get(&self, name: Uuid) -> Result<Record, String> {
        let bytes = read_whole(&*self.disk, &self.path(name, RECORD), RECORD_BYTES_MAX);
        Record::decode(&bytes.map_err(|why| why.to_string())?)
    }

    /// Durable when it returns.
    pub fn put(&self, name: Uuid, record: &Record) -> io::Result<()> {
        let text = record.encode();
        if text.len() as u64 > RECORD_BYTES_MAX {
            let why = format!("the record of a query has {} bytes; at most {RECORD_BYTES_MAX} are kept", text.len());
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        replace_whole(&*self.disk, &self.path(name, RECORD), text.as_bytes())
    }

    /// An empty file for rows, in the place of one that may be there; its name is durable.
    pub fn new_rows(&self, name: Uuid) -> io::Result<Arc<dyn DiskFile>> {
        self.remove_rows(name)?;
        let file = self.disk.create(&self.path(name, ROWS))?;
        self.disk.sync_dir(&self.dir)?;
        Ok(file)
    }

    pub fn rows(&self, name: Uuid) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(&self.path(name, ROWS))
    }

    pub fn remove_rows(&self, name: Uuid) -> io::Result<()> {
        gone(self.disk.remove(&self.path(name, ROWS)))
    }

    /// The record goes first: rows without one are taken away by the next start.
    pub fn remove(&self, name: Uuid) -> io::Result<()> {
        gone(self.disk.remove(&self.path(name, RECORD)))?;
        self.disk.sync_dir(&self.dir)?;
        self.remove_rows(name)
    }

    /// Why nothing more is written, where that is so: what is left of the disk is for rows, and for the log.
    pub fn full(&self) -> Option<String> {
        match self.disk.space(&self.dir).map(|space| (space, admit(space, 0))) {
            Ok((_, Room::Plenty)) => None,
            Ok((space, _)) => {
                Some(format!("{} MiB of {} MiB of the disk are free", space.free >> 20, space.total >> 20))
            }
            Err(why) => Some(format!("the room on the disk is not known: {why}")),
        }
    }
}

/// Whether a record has rows beside it.
fn is_kept(record: &Result<Record, String>) -> bool {
    matches!(record, Ok(Record { end: Some(End::Succeeded { .. }), .. }))
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

/// The wanted lines of these pages; an error says what is wrong with the file.
pub(crate) fn read(file: &dyn DiskFile, pages: &[Placed], mut cut: Cut) -> Result<Cut, String> {
    for placed in pages {
        let mut lines = vec![0; placed.page.bytes as usize];
        let at = format!("its results at byte {}", placed.offset);
        file.read_at(placed.offset, &mut lines).map_err(|why| format!("{at} do not read: {why}"))?;
        if !placed.page.is(placed.offset, &lines) {
            return Err(format!("{at} do not match their checksum"));
        }
        cut.page(placed, &lines);
    }
    Ok(cut)
}

#[cfg(test)]
mod tests {
    use assay_storage_disk::{Fault, FaultPlan, FaultyDisk, RealDisk, SimulatedDisk};

    use super::super::pages::{Page, Pages};
    use super::super::record::tests::record;
    use super::*;

    const LINES: [&[u8]; 2] = [b"{\"n\":0}\n{\"n\":1}\n", b"{\"n\":2}\n"];

    fn name() -> Uuid {
        Uuid::from_u128(7)
    }

    fn open(disk: &SharedDisk) -> io::Result<(Folder, Vec<Found>)> {
        Folder::open(Arc::clone(disk), Path::new("/data"))
    }

    /// A job as it is written down from its making to its end.
    fn written(folder: &Folder) -> io::Result<Record> {
        let mut job = Record { end: None, ..record(1) };
        folder.put(name(), &job)?;
        let (file, mut pages) = (folder.new_rows(name())?, Pages::default());
        for lines in LINES {
            file.append(lines)?;
            pages.push(Page::of(pages.bytes(), lines.len() as u32 / 8, lines));
        }
        file.sync()?;
        job.end = Some(End::Succeeded { at: 9, pages: pages.list() });
        folder.put(name(), &job)?;
        Ok(job)
    }

    fn read_all(folder: &Folder, job: &Record) -> Result<Vec<u8>, String> {
        let Some(End::Succeeded { pages, .. }) = &job.end else { return Err("no end".into()) };
        let pages = Pages::new(pages).from(0, u64::MAX, usize::MAX);
        let file = folder.rows(name()).map_err(|why| why.to_string())?;
        read(&*file, &pages, Cut::new(0, u64::MAX, usize::MAX)).map(|cut| cut.lines)
    }

    #[test]
    fn what_was_written_is_found_and_what_was_removed_is_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let again = || Folder::open(Arc::new(RealDisk), dir.path()).expect("opens");
        let (folder, found) = again();
        assert_eq!(found, []);
        let job = written(&folder).expect("written");
        let (folder, found) = again();
        assert_eq!(found, [(name(), Ok(job.clone()))]);
        assert_eq!(read_all(&folder, &job), Ok(LINES.concat()));
        folder.remove(name()).expect("removed");
        folder.remove(name()).expect("once more");
        assert_eq!(again().1, []);
    }

    /// After a power cut at any call a job is there or is not, waits or has ended; and one that has ended is whole.
    #[test]
    fn a_power_cut_at_any_moment_leaves_a_job_that_waits_or_has_all_its_rows() {
        let mut ends = [0; 3];
        for at in 1_u64.. {
            let simulated = SimulatedDisk::new();
            let (folder, _) = open(&(Arc::new(simulated.clone()) as SharedDisk)).expect("opens");
            drop(folder);
            let plan = FaultPlan::fail_any(at, Fault::InputOutput).lasting();
            let faulty: SharedDisk = Arc::new(FaultyDisk::new(Arc::new(simulated.clone()), plan));
            let outcome = open(&faulty).and_then(|(folder, _)| written(&folder));
            for seed in 0..20 {
                let disk: SharedDisk = Arc::new(simulated.power_cut(seed));
                let (folder, found) = open(&disk).expect("opens after a power cut");
                match found.as_slice() {
                    [] => ends[0] += 1,
                    [(_, Ok(job))] if job.end.is_none() => ends[1] += 1,
                    [(_, Ok(job))] => {
                        ends[2] += 1;
                        assert_eq!(read_all(&folder, job), Ok(LINES.concat()));
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
        let (folder, _) = open(&disk).expect("opens");
        let job = written(&folder).expect("written");
        let rows = disk.open(&folder.path(name(), ROWS)).expect("rows");
        rows.write_at(20, b"9").expect("changed");
        assert!(read_all(&folder, &job).expect_err("changed").contains("byte 16 do not match their checksum"));
        rows.set_len(20).expect("cut");
        assert!(read_all(&folder, &job).expect_err("cut").contains("do not read"));
        let (_, found) = open(&disk).expect("opens");
        assert!(found[0].1.as_ref().expect_err("cut").contains("has 20 bytes; 24 were written"), "{found:?}");
        let text = disk.open(&folder.path(name(), RECORD)).expect("a record");
        text.write_at(30, b"\xff").expect("changed");
        let (folder, found) = open(&disk).expect("opens");
        assert!(found[0].1.is_err() && folder.get(name()).is_err(), "{found:?}");
        // What is no file of ours stays.
        disk.create(&folder.dir.join("note")).expect("made");
        assert_eq!(open(&disk).expect("opens").1.len(), 1);
        assert!(disk.exists(&folder.dir.join("note")).expect("looked up"));
    }

    #[test]
    fn a_disk_that_is_nearly_full_is_left_to_others() {
        let disk = SimulatedDisk::with_total(10 << 20);
        let (folder, _) = open(&(Arc::new(disk.clone()) as SharedDisk)).expect("opens");
        assert_eq!(folder.full(), None);
        let file = folder.new_rows(name()).expect("a file");
        file.append(&vec![0; 9_500 << 10]).expect("written");
        assert!(folder.full().expect("full").contains("of 10 MiB of the disk are free"));
    }
}
