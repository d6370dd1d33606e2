//! Store of large content, kept once under the hash of its bytes.
//!
//! A blob is one file, `<dir>/ab/abcd…`, named by the BLAKE3 of its content and without further metadata. So any reader
//! can distinguish a whole blob from a damaged one. A write creates a file in `<dir>/tmp`, writes its bytes, syncs it,
//! renames it to its name, and syncs the directory of the name; only then is it acknowledged. A crash leaves at most a
//! file in `tmp`, which the next open removes: a blob under its name is whole. `put` of an existing blob writes
//! nothing, unless the existing one is damaged: then it is replaced.
//!
//! A failed sync stops all further writes of this store until it is opened anew, since the kernel may have dropped the
//! unwritten pages. Reads continue.
//!
//! A process that did not write a blob reads it whole once, when it first checks it: a disk may have changed it
//! meanwhile. References to blobs are not tracked here: the shard decides when one may be removed, and never during a
//! `put` of the same name.

mod error;
mod name;
mod verify;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use assay_storage_disk::SharedDisk;
use bytes::Bytes;
use parking_lot::Mutex;

pub use error::BlobError;
pub use name::BlobName;
pub use verify::{Damage, Progress};

/// Largest blob, in bytes: it is held in memory whole.
pub const BLOB_BYTES_MAX: u64 = 1 << 30;

/// Directory beside the fan-out in which blobs are written before the rename to their name.
const TEMPORARY_DIR: &str = "tmp";

/// Directories that names are spread over, by their first byte.
const FAN_OUT: usize = 256;

/// One directory of blobs.
#[derive(Debug)]
pub struct Blobs {
    disk: SharedDisk,
    dir: PathBuf,
    /// Fan-out directories known to be there, durably.
    made: [AtomicBool; FAN_OUT],
    temporaries: AtomicU64,
    stopped: AtomicBool,
    /// Blobs that this process wrote or read, with the result of the content check.
    looked: Mutex<HashMap<BlobName, bool>>,
}

impl Blobs {
    /// Opens or makes the store. Removes leftovers of a crash from `tmp`. Syncs every directory, since the process
    /// before may have died between a rename and its sync: every blob that is visible from here on is durable.
    pub fn open(disk: SharedDisk, dir: &Path) -> io::Result<Blobs> {
        let temporary_dir = dir.join(TEMPORARY_DIR);
        disk.create_dir_all(&temporary_dir)?;
        for entry in disk.list(&temporary_dir)? {
            tracing::info!(dir = %temporary_dir.display(), name = entry.name, "cannot remove an unfinished blob");
            disk.remove(&temporary_dir.join(entry.name))?;
        }
        let made = std::array::from_fn(|_| AtomicBool::new(false));
        for entry in disk.list(dir)? {
            if let Some(first) = fan_out_of(&entry.name).filter(|_| entry.is_dir) {
                disk.sync_dir(&dir.join(&entry.name))?;
                made[usize::from(first)].store(true, Ordering::Relaxed);
            }
        }
        disk.sync_dir(dir)?;
        let (temporaries, stopped) = (AtomicU64::new(0), AtomicBool::new(false));
        Ok(Blobs { disk, dir: dir.to_path_buf(), made, temporaries, stopped, looked: Mutex::default() })
    }

    /// Keeps `bytes`; durable when it returns.
    pub fn put(&self, bytes: &[u8]) -> Result<BlobName, BlobError> {
        if bytes.len() as u64 > BLOB_BYTES_MAX {
            return Err(BlobError::TooLarge { length: bytes.len() as u64 });
        }
        if self.stopped.load(Ordering::Acquire) {
            return Err(BlobError::Stopped);
        }
        let name = BlobName::of(bytes);
        if self.is_whole(name, bytes)? {
            // Its bytes were synced before it got its name; the name may be another put's that has not synced it yet.
            self.stop_on_error(self.disk.sync_dir(&self.dir_of(name)))?;
            self.note(name, true);
            return Ok(name);
        }
        let temporary = self.next_temporary();
        if let Err(error) = self.write(name, bytes, &temporary) {
            // The first error is the one to report; what cannot be removed now, the next open removes.
            let _ = self.disk.remove(&temporary);
            return Err(error);
        }
        self.note(name, true);
        Ok(name)
    }

    /// The content, with its length and hash checked.
    pub fn get(&self, name: BlobName, length: u64) -> Result<Bytes, BlobError> {
        let path = self.path_of(name);
        let damaged = |what: String| BlobError::Damaged { name, path: path.clone(), what };
        let file = match self.disk.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(BlobError::Missing { name }),
            other => other?,
        };
        let found = file.len()?;
        if found != length || found > BLOB_BYTES_MAX {
            return Err(damaged(format!("has {found} bytes instead of {length}")));
        }
        let mut content = vec![0; usize::try_from(length).map_err(|_| BlobError::TooLarge { length })?];
        file.read_at(0, &mut content)?;
        if BlobName::of(&content) != name {
            self.note(name, false);
            return Err(damaged("does not match the hash in its name".to_owned()));
        }
        Ok(content.into())
    }

    /// Returns whether the blob exists and its content matches its name. Reads it on the first call in this process.
    pub fn is_sound(&self, name: BlobName) -> io::Result<bool> {
        if !self.contains(name)? {
            return Ok(false);
        }
        if let Some(sound) = self.looked.lock().get(&name) {
            return Ok(*sound);
        }
        let found = verify::hash_of(&*self.disk, &self.path_of(name));
        let sound = match &found {
            Ok((found, _)) => *found == name,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(_) => false, // what cannot be read is replaced like what is wrong
        };
        if !sound {
            let error = found.err().map(tracing::field::display);
            tracing::error!(path = %self.path_of(name).display(), error, "a blob is damaged: it has to come from another replica");
        }
        self.note(name, sound);
        Ok(sound)
    }

    /// Returns whether a blob has this name. Does not check its content; `get` and `is_sound` do.
    pub fn contains(&self, name: BlobName) -> io::Result<bool> {
        self.disk.exists(&self.path_of(name))
    }

    /// Takes a blob away durably; false if it was not there.
    pub fn remove(&self, name: BlobName) -> Result<bool, BlobError> {
        if self.stopped.load(Ordering::Acquire) {
            return Err(BlobError::Stopped);
        }
        match self.disk.remove(&self.path_of(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            other => other?,
        }
        self.looked.lock().remove(&name);
        self.stop_on_error(self.disk.sync_dir(&self.dir_of(name)))?;
        Ok(true)
    }

    /// All blobs with the lengths of their files, sorted by name. Files that are no blobs of ours are left out.
    pub fn list(&self) -> io::Result<Vec<(BlobName, u64)>> {
        let mut found = Vec::new();
        verify::walk(&*self.disk, &self.dir, |_, name, length| found.extend(name.map(|name| (name, length))))?;
        Ok(found)
    }

    /// Reads every blob, a piece at a time, and returns those that do not match their name. `progress` is called after
    /// each file. An error means that the check could not continue, not that a blob is damaged.
    pub fn verify_all(&self, progress: impl FnMut(Progress)) -> io::Result<Vec<Damage>> {
        verify::verify_all(&*self.disk, &self.dir, progress)
    }

    fn write(&self, name: BlobName, bytes: &[u8], temporary: &Path) -> Result<(), BlobError> {
        let file = self.disk.create(temporary)?;
        file.append(bytes)?;
        self.stop_on_error(file.sync())?;
        drop(file);
        let dir = self.dir_of(name);
        let made = &self.made[usize::from(name.0[0])];
        if !made.load(Ordering::Acquire) {
            self.stop_on_error(self.disk.create_dir_all(&dir))?;
            made.store(true, Ordering::Release);
        }
        self.disk.rename(temporary, &self.path_of(name))?;
        self.stop_on_error(self.disk.sync_dir(&dir))?;
        Ok(())
    }

    fn note(&self, name: BlobName, sound: bool) {
        self.looked.lock().insert(name, sound);
    }

    /// Returns whether the blob exists with exactly these bytes. An unreadable blob counts as damaged: it is replaced.
    fn is_whole(&self, name: BlobName, bytes: &[u8]) -> io::Result<bool> {
        if !self.contains(name)? {
            return Ok(false);
        }
        match self.get(name, bytes.len() as u64) {
            Ok(found) => Ok(found == bytes),
            Err(BlobError::Missing { .. }) => Ok(false),
            Err(error) => {
                tracing::warn!(%error, "replacing a damaged blob by the same content, just received");
                Ok(false)
            }
        }
    }

    /// Stops the store after a failed sync.
    fn stop_on_error<T>(&self, result: io::Result<T>) -> Result<T, BlobError> {
        if let Err(error) = &result {
            tracing::error!(%error, dir = %self.dir.display(), "a sync failed: this blob store accepts no more writes");
            self.stopped.store(true, Ordering::Release);
        }
        Ok(result?)
    }

    fn next_temporary(&self) -> PathBuf {
        let number = self.temporaries.fetch_add(1, Ordering::Relaxed);
        self.dir.join(TEMPORARY_DIR).join(number.to_string())
    }

    fn dir_of(&self, name: BlobName) -> PathBuf {
        self.dir.join(format!("{:02x}", name.0[0]))
    }

    fn path_of(&self, name: BlobName) -> PathBuf {
        self.dir_of(name).join(name.to_string())
    }
}

/// Returns the first byte of the names in a fan-out directory; `None` for any other directory.
fn fan_out_of(dir_name: &str) -> Option<u8> {
    let lower_hex = dir_name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if dir_name.len() != 2 || !lower_hex {
        return None;
    }
    u8::from_str_radix(dir_name, 16).ok()
}
