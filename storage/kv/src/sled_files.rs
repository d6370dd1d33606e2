//! Files of a sled store outside of sled's control: syncs, cleanup and checks around sled.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use assay_storage_disk::{Disk, RealDisk, read_whole, replace_whole};

use crate::KvError;
use crate::summary::{SUMMARY_BYTES, Summary, SummaryKind};

/// sled's only file of data.
pub(crate) const DATA_FILE: &str = "db";

/// Directory into which sled spills values that are too large for its log; it never syncs these.
const SPILL_DIR: &str = "blobs";

/// File of the seal, in sled's directory.
const SEAL_FILE: &str = "kv.seal";

/// sled writes its snapshot under this name first and, after a crash, takes what it finds there for a whole one.
const UNFINISHED_SNAPSHOT_SUFFIX: &str = ".generating";

/// Time to wait until a previous process or handle releases its lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
const LOCK_RETRY: Duration = Duration::from_millis(10);

/// Makes durable what the process before left in the page cache, before sled builds on it: else a snapshot that sled
/// writes at open could outlive the data it points to. Also clears snapshots away that were never finished.
pub(crate) fn settle(dir: &Path) -> io::Result<()> {
    for entry in RealDisk.list(dir)? {
        let path = dir.join(&entry.name);
        if entry.is_dir {
            continue;
        }
        if entry.name.starts_with("snap.") && entry.name.ends_with(UNFINISHED_SNAPSHOT_SUFFIX) {
            RealDisk.remove(&path)?;
        } else {
            RealDisk.open(&path)?.sync()?;
        }
    }
    RealDisk.sync_dir(dir)
}

/// Fails if sled has written a file besides `db`: such a file is never synced.
pub(crate) fn forbid_spills(dir: &Path) -> Result<(), KvError> {
    let spills = RealDisk.list(&dir.join(SPILL_DIR))?;
    match spills.first() {
        None => Ok(()),
        Some(file) => {
            Err(KvError::damaged(dir, format!("sled spilled to {SPILL_DIR}/{}, which it never syncs", file.name)))
        }
    }
}

/// Waits until sled's lock is free. A handle that was just dropped may hold it a moment longer.
pub(crate) fn await_unlocked(dir: &Path) -> Result<(), KvError> {
    let path = dir.join(DATA_FILE);
    if !RealDisk.exists(&path)? {
        return Ok(());
    }
    let file = File::open(&path)?;
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file.unlock()?),
            Err(TryLockError::Error(error)) => return Err(error.into()),
            Err(TryLockError::WouldBlock) if start.elapsed() > LOCK_PATIENCE => {
                return Err(KvError::InUse { dir: dir.to_path_buf() });
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_RETRY),
        }
    }
}

/// Reads the seal; `None` if there is none.
pub(crate) fn read_seal(dir: &Path) -> Result<Option<Summary>, KvError> {
    let bytes = match read_whole(&RealDisk, &dir.join(SEAL_FILE), SUMMARY_BYTES as u64) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Vec::new(),
        other => other?,
    };
    match Summary::decode(SummaryKind::Seal, &bytes) {
        Some(summary) => Ok(Some(summary)),
        None => Err(KvError::damaged(dir, format!("{SEAL_FILE} does not match its checksum"))),
    }
}

pub(crate) fn write_seal(dir: &Path, summary: &Summary) -> io::Result<()> {
    replace_whole(&RealDisk, &dir.join(SEAL_FILE), &summary.encode(SummaryKind::Seal))
}
