//! The store on disk: one sled tree, with durability and damage detection added from outside.
//!
//! sled 0.34 does not sync on flush. It answers a flipped bit with a panic, or silently forgets its newest records.
//! Hence around it:
//!
//! - **The barrier.** A commit is one sled batch, sled's flush, fdatasync of `db`, fsync of the directory, and a check
//!   that sled spilled nothing to a file of its own. The first error ends all commits of this handle.
//! - **The summary.** Each batch also writes how many commits, entries and which digest there are after it; each value
//!   carries a checksum over itself and its key.
//! - **The seal.** After the barrier the same summary goes to `kv.seal`, durably, and then the commit is acknowledged.
//!   So a crash leaves sled as described by the seal, or one commit further; anything else is damage.
//!
//! `open` reads every entry and compares. A store without seal and summary is new. The seal of zero commits is written
//! before `open` returns, so from the first commit on its absence is damage.
//!
//! Opening changes files even if nothing is committed: sled writes a snapshot, may cut a torn tail, and creates missing
//! files. So does `check`; run it on a copy if the files are evidence. sled works on its own threads (`sled-io-…`),
//! also while it opens. A panic there ends that thread only, so `open` runs with a deadline. A store that hangs may be
//! damaged or slow; the two cannot be distinguished.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use assay_storage_disk::{Disk, DiskFile, RealDisk, when_files_are_left};
use parking_lot::Mutex;

use crate::contain::contain;
use crate::frame::{SUMMARY_KEY, key_of, stored_key, stored_value, value_of};
use crate::sled_files::{DATA_FILE, await_unlocked, forbid_spills, read_seal, settle, write_seal};
use crate::summary::{Summary, SummaryKind};
use crate::{Batch, Entries, Kv, KvError};

/// Bytes of one segment of sled's file. Fixed at creation: sled refuses to open with another.
const SEGMENT_BYTES: usize = 512 * 1024;

/// Least cache that sled is given, in bytes: it divides it over 256 shards.
const CACHE_BYTES_MIN: u64 = 1024 * 1024;

/// Time to open and verify an empty store, and more for each so many bytes of a full one. Far above what a
/// busy machine took (550 MB/s), so that only a hang meets it.
const OPEN_PATIENCE: Duration = Duration::from_secs(60);
const OPEN_BYTES_PER_SECOND: u64 = 16 * 1024 * 1024;

/// Keyed state in one directory.
pub struct SledKv {
    dir: PathBuf,
    db: sled::Db,
    /// sled's `db`, opened by us to sync it.
    data: Arc<dyn DiskFile>,
    /// Summary of the last commit; `None` after a failed one.
    committed: Mutex<Option<Summary>>,
    entries: AtomicU64,
}

/// Result of `SledKv::check`, all of it verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    pub entries: u64,
    /// Bytes of all keys and values.
    pub bytes: u64,
    /// Commits since the store was made.
    pub commits: u64,
    /// Bytes of sled's file.
    pub file_bytes: u64,
}

/// A store with verified content that agrees with its seal.
struct Verified {
    db: sled::Db,
    summary: Summary,
    seal: Option<Summary>,
    bytes: u64,
}

impl fmt::Debug for SledKv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SledKv").field("dir", &self.dir).field("committed", &self.committed).finish_non_exhaustive()
    }
}

impl SledKv {
    /// Opens or makes the store in `dir`, with every entry read and verified. `Damaged` means that it cannot be used.
    pub fn open(dir: &Path, cache_bytes: u64) -> Result<SledKv, KvError> {
        RealDisk.create_dir_all(dir)?;
        let Verified { db, summary, seal, bytes } = open_verified(dir, cache_bytes)?;
        let data = RealDisk.open(&dir.join(DATA_FILE))?;
        // What sled wrote while it opened must not be lost in part; only then may the seal name it.
        settle(dir)?;
        if seal != Some(summary) {
            write_seal(dir, &summary)?;
        }
        tracing::debug!(dir = %dir.display(), entries = summary.entries, bytes, commits = summary.commit, "opened");
        let entries = AtomicU64::new(summary.entries);
        Ok(SledKv { dir: dir.to_path_buf(), db, data, committed: Mutex::new(Some(summary)), entries })
    }

    /// Opens an existing store, verifies all of it and lets it go, for a check while no node runs. Changes sled's files
    /// as any open does, the seal never.
    pub fn check(dir: &Path) -> Result<Report, KvError> {
        let file_bytes = RealDisk.open(&dir.join(DATA_FILE))?.len()?;
        let Verified { summary, bytes, .. } = open_verified(dir, CACHE_BYTES_MIN)?;
        Ok(Report { entries: summary.entries, bytes, commits: summary.commit, file_bytes })
    }

    fn read(&self, key: &[u8]) -> Result<Option<Vec<u8>>, KvError> {
        contain(&self.dir, || match self.db.get(stored_key(key)).map_err(|error| foreign(&self.dir, error))? {
            None => Ok(None),
            Some(stored) => Ok(Some(checked_value(&self.dir, key, &stored)?)),
        })
    }

    /// The summary after `batch`, and the batch as sled takes it.
    fn prepare(&self, before: Summary, batch: &Batch) -> Result<(Summary, sled::Batch), KvError> {
        let mut after = Summary { commit: before.commit + 1, ..before };
        let mut changes = sled::Batch::default();
        for (key, value) in batch.iter() {
            if let Some(old) = self.read(key)? {
                after.take(key, &old);
            }
            match value {
                Some(value) => {
                    after.add(key, value);
                    changes.insert(stored_key(key), stored_value(key, value));
                }
                None => changes.remove(stored_key(key)),
            }
        }
        changes.insert(SUMMARY_KEY, after.encode(SummaryKind::Record));
        Ok((after, changes))
    }

    fn apply(&self, changes: sled::Batch) -> Result<(), KvError> {
        contain(&self.dir, || {
            self.db.apply_batch(changes).map_err(|error| foreign(&self.dir, error))?;
            self.db.flush().map_err(|error| foreign(&self.dir, error))?;
            Ok(())
        })?;
        self.data.sync()?;
        RealDisk.sync_dir(&self.dir)?;
        forbid_spills(&self.dir)
    }
}

impl Kv for SledKv {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, KvError> {
        self.read(key)
    }

    fn scan(&self, prefix: &[u8]) -> Result<Entries, KvError> {
        contain(&self.dir, || {
            let mut found = Vec::new();
            for entry in self.db.scan_prefix(stored_key(prefix)) {
                let (stored_key, stored) = entry.map_err(|error| foreign(&self.dir, error))?;
                let key = checked_key(&self.dir, &stored_key)?;
                found.push((key.to_vec(), checked_value(&self.dir, key, &stored)?));
            }
            Ok(found)
        })
    }

    fn commit(&self, batch: &Batch) -> Result<(), KvError> {
        batch.check_limits()?;
        let mut committed = self.committed.lock();
        if batch.is_empty() {
            return committed.map(|_| ()).ok_or(KvError::Stopped);
        }
        // Stays empty on every way out but the last: after an error nobody knows what is there.
        let before = committed.take().ok_or(KvError::Stopped)?;
        let (after, changes) = self.prepare(before, batch)?;
        self.apply(changes)?;
        write_seal(&self.dir, &after)?;
        self.entries.store(after.entries, Ordering::Release);
        *committed = Some(after);
        Ok(())
    }

    fn entries(&self) -> u64 {
        self.entries.load(Ordering::Acquire)
    }
}

/// Opens on a thread of its own, so that a hang inside sled does not become one of the node.
fn open_verified(dir: &Path, cache_bytes: u64) -> Result<Verified, KvError> {
    await_unlocked(dir)?;
    settle(dir)?;
    let seal = read_seal(dir)?;
    let size = if RealDisk.exists(&dir.join(DATA_FILE))? { RealDisk.open(&dir.join(DATA_FILE))?.len()? } else { 0 };
    let patience = OPEN_PATIENCE + Duration::from_secs(size / OPEN_BYTES_PER_SECOND);
    let (answer, answered) = mpsc::channel();
    let opened_dir = dir.to_path_buf();
    let opener = thread::Builder::new().name("assay-kv-open".to_owned()).spawn(move || {
        let outcome = contain(&opened_dir, || open_here(&opened_dir, cache_bytes, seal));
        // The receiver is gone only when the deadline has passed; then the store closes here.
        let _ = answer.send(outcome);
    })?;
    let outcome = match answered.recv_timeout(patience) {
        Ok(outcome) => outcome,
        Err(RecvTimeoutError::Disconnected) => Err(KvError::damaged(dir, "sled panicked twice")),
        Err(RecvTimeoutError::Timeout) => {
            return Err(KvError::TooSlow { dir: dir.to_path_buf(), seconds: patience.as_secs() });
        }
    };
    // It has sent its answer, so it ends without waiting for anything.
    let _ = opener.join();
    outcome
}

fn open_here(dir: &Path, cache_bytes: u64, seal: Option<Summary>) -> Result<Verified, KvError> {
    let config = sled::Config::new()
        .path(dir)
        .cache_capacity(cache_bytes.max(CACHE_BYTES_MIN))
        .segment_size(SEGMENT_BYTES)
        .flush_every_ms(None)
        .mode(sled::Mode::LowSpace)
        .use_compression(false)
        .temporary(false)
        .create_new(false);
    let db = when_files_are_left(|| config.open().map_err(|error| foreign(dir, error)))?;
    let mut counted = Summary::default();
    let mut bytes = 0;
    let mut recorded = None;
    for entry in &*db {
        let (key, stored) = entry.map_err(|error| foreign(dir, error))?;
        if key == SUMMARY_KEY {
            let summary = Summary::decode(SummaryKind::Record, &stored);
            recorded = Some(summary.ok_or_else(|| KvError::damaged(dir, "its summary does not match its checksum"))?);
            continue;
        }
        let key = checked_key(dir, &key)?;
        let value = checked_value(dir, key, &stored)?;
        counted.add(key, &value);
        bytes += (key.len() + value.len()) as u64;
    }
    forbid_spills(dir)?;
    let summary = agreed(counted, recorded, seal).map_err(|what| KvError::damaged(dir, what))?;
    Ok(Verified { db, summary, seal, bytes })
}

/// The state of the store if its entries, their summary and the seal agree on it, or what they disagree on.
fn agreed(counted: Summary, recorded: Option<Summary>, seal: Option<Summary>) -> Result<Summary, String> {
    let summary = recorded.unwrap_or_default();
    if (counted.entries, counted.digest) != (summary.entries, summary.digest) {
        return Err(format!(
            "{} entries are there, and not exactly the {} of commit {}",
            counted.entries, summary.entries, summary.commit
        ));
    }
    match seal {
        None if recorded.is_none() => Ok(summary), // new, or the process ended while it was being made
        None => Err(format!("commit {} is there, but its seal is missing", summary.commit)),
        Some(seal) if seal == summary => Ok(summary),
        Some(seal) if seal.commit.checked_add(1) == Some(summary.commit) => Ok(summary), // ended between barrier and seal
        Some(seal) => Err(format!("sled holds commit {}, and commit {} is sealed", summary.commit, seal.commit)),
    }
}

fn checked_key<'a>(dir: &Path, stored: &'a [u8]) -> Result<&'a [u8], KvError> {
    key_of(stored).ok_or_else(|| KvError::damaged(dir, "an unknown key"))
}

fn checked_value(dir: &Path, key: &[u8], stored: &[u8]) -> Result<Vec<u8>, KvError> {
    match value_of(key, stored) {
        Ok(value) => Ok(value.to_vec()),
        Err(what) => Err(KvError::damaged(dir, what)),
    }
}

/// Converts sled's errors. Defects that sled finds in its own files are damage.
fn foreign(dir: &Path, error: sled::Error) -> KvError {
    use std::io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    match error {
        sled::Error::Io(error) if matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof) => {
            KvError::damaged(dir, format!("sled cannot read it: {error}"))
        }
        sled::Error::Io(error) => KvError::Io(error),
        other => KvError::damaged(dir, format!("sled reports: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(commit: u64, entries: u64) -> Summary {
        Summary { commit, entries, digest: entries * 7 }
    }

    fn check(counted: u64, recorded: Option<Summary>, seal: Option<Summary>, expected: Option<u64>) {
        let found = agreed(summary(0, counted), recorded, seal).map(|found| found.commit).ok();
        assert_eq!(found, expected, "{counted} entries, {recorded:?}, {seal:?}");
    }

    #[test]
    fn a_new_store_has_neither_summary_nor_seal() {
        check(0, None, None, Some(0));
        check(0, None, Some(summary(0, 0)), Some(0));
        check(3, None, None, None);
    }

    #[test]
    fn sled_may_be_one_commit_ahead_of_the_seal_and_no_more() {
        check(3, Some(summary(1, 3)), Some(summary(0, 0)), Some(1));
        check(3, Some(summary(8, 3)), Some(summary(8, 3)), Some(8));
        check(3, Some(summary(8, 3)), Some(summary(7, 9)), Some(8));
        check(3, Some(summary(8, 3)), Some(summary(6, 3)), None);
        check(3, Some(summary(8, 3)), Some(summary(9, 3)), None);
        check(0, None, Some(summary(1, 0)), None);
    }

    #[test]
    fn entries_and_seal_must_be_those_of_the_summary() {
        check(2, Some(summary(8, 3)), Some(summary(8, 3)), None);
        check(3, Some(summary(8, 3)), Some(summary(8, 4)), None);
        check(3, Some(summary(8, 3)), None, None);
    }
}
