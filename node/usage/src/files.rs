//! Files of usage in the data directory, one for each day.
//!
//! A file is replaced atomically. The day of a file that cannot be read starts from zero.

use std::io;
use std::path::{Path, PathBuf};

use assay_storage_disk::{SharedDisk, read_whole, replace_whole};

use crate::day::Day;
use crate::ledger::{UsageEntry, UsageLedger};

const FOLDER: &str = "usage";
const EXTENSION: &str = ".json";
/// Upper bound of the bytes of a file, several times those of the most entries.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Directory with the usage of each day.
#[derive(Debug)]
pub(crate) struct UsageFiles {
    disk: SharedDisk,
    dir: PathBuf,
}

impl UsageFiles {
    /// Opens the directory, and reads all days.
    pub fn open(disk: SharedDisk, data_dir: &Path) -> io::Result<(UsageFiles, UsageLedger)> {
        let dir = data_dir.join(FOLDER);
        disk.create_dir_all(&dir)?;
        let files = UsageFiles { disk, dir };
        let mut ledger = UsageLedger::default();
        for entry in files.disk.list(&files.dir)? {
            let Some(day) = entry.name.strip_suffix(EXTENSION).and_then(Day::parse) else { continue };
            match files.read(day) {
                Ok(entries) => entries.into_iter().for_each(|entry| ledger.add(entry)),
                Err(why) => tracing::warn!(%day, %why, "the usage of a day cannot be read; it starts from zero"),
            }
        }
        Ok((files, ledger))
    }

    fn path(&self, day: Day) -> PathBuf {
        self.dir.join(format!("{day}{EXTENSION}"))
    }

    fn read(&self, day: Day) -> io::Result<Vec<UsageEntry>> {
        let bytes = read_whole(&*self.disk, &self.path(day), FILE_BYTES_MAX)?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Writes the usage of a day.
    pub fn write(&self, day: Day, entries: &[UsageEntry]) -> io::Result<()> {
        replace_whole(&*self.disk, &self.path(day), &serde_json::to_vec(entries)?)
    }

    /// Removes the files of days that are not kept.
    pub fn remove_others(&self, kept: impl Fn(Day) -> bool) -> io::Result<()> {
        for entry in self.disk.list(&self.dir)? {
            let day = entry.name.strip_suffix(EXTENSION).and_then(Day::parse);
            if day.is_some_and(|day| !kept(day)) {
                self.disk.remove(&self.dir.join(&entry.name))?;
            }
        }
        Ok(())
    }
}
