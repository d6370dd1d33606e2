//! Entries on the disk: a directory per organization, with a file per entry.
//!
//! ```text
//! gateway-cache/<organization>/<name>           an entry
//! gateway-cache/<organization>/<name>.<n>.tmp   one that is being written
//! ```
//! The name is a hash of the key, so it does not reveal the key. A file gets its name once it is complete. Nothing is
//! synced, because a cache may lose entries. Unreadable files are removed. All operations block the thread.

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use assay_storage_disk::{DirEntry, SharedDisk, SpaceLevel, TEMPORARY_SUFFIX, admit};
use assay_storage_model::OrgId;
use bytes::Bytes;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::counters::CacheCounters;
use crate::decision::MaxAge;
use crate::entry::{EntryFile, EntryTimes, FILE_BYTES_MAX, FileHeading, HEADING_BYTES, USED_OFFSET};
use crate::index::{CacheLimits, EntryId, EntryIndex, IndexHit, IndexLookup};
use crate::key::CacheKey;

/// Context of the name hash. A change turns all stored entries into misses.
const NAME_CONTEXT: &str = "assay 2026-11-28 name of a cached response 1";
/// Precision of the last use in a file, so that few hits cause a write.
const USED_GRAIN_MS: u64 = 10 * 60 * 1000;
/// Time between two searches for expired entries.
const SWEEP_EVERY_MS: u64 = 10 * 60 * 1000;

/// File that was read, with the generation of its entry.
#[derive(Clone, Debug)]
pub(crate) struct StoredEntry {
    pub file: EntryFile,
    pub generation: u64,
}

/// Outcome of writing an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreOutcome {
    Stored,
    /// The limits or the free space on the disk do not admit the entry.
    Refused,
}

#[derive(Debug)]
pub(crate) struct EntryStore {
    disk: SharedDisk,
    directory: PathBuf,
    /// State that is locked while files are named and removed, so that files and index agree.
    state: Mutex<StoreState>,
    temporaries: AtomicU64,
    counters: Arc<CacheCounters>,
}

#[derive(Debug)]
struct StoreState {
    index: EntryIndex,
    swept_ms: u64,
}

/// Entry found on the disk at the start.
struct ScannedEntry {
    id: EntryId,
    heading: FileHeading,
    bytes: u64,
}

impl EntryId {
    pub fn of(key: &CacheKey) -> EntryId {
        let mut bytes = key.organization().0.as_bytes().to_vec();
        bytes.extend(key.hash());
        EntryId { organization: key.organization(), name: blake3::derive_key(NAME_CONTEXT, &bytes) }
    }

    fn file_name(&self) -> String {
        // Writing to a String cannot fail.
        self.name.iter().fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    fn parse(organization: OrgId, file_name: &str) -> Option<EntryId> {
        let mut name = [0; 32];
        if file_name.len() != 2 * name.len() || !file_name.is_ascii() {
            return None;
        }
        for (place, byte) in name.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&file_name[2 * place..2 * place + 2], 16).ok()?;
        }
        let id = EntryId { organization, name };
        (id.file_name() == file_name).then_some(id)
    }
}

impl EntryStore {
    /// Opens the directory, creates it if necessary, and reads the headings of its files.
    pub fn open(
        disk: SharedDisk,
        directory: &Path,
        limits: CacheLimits,
        counters: Arc<CacheCounters>,
        now_ms: u64,
    ) -> io::Result<EntryStore> {
        disk.create_dir_all(directory)?;
        let state = Mutex::new(StoreState { index: EntryIndex::new(limits), swept_ms: now_ms });
        let directory = directory.to_path_buf();
        let store = EntryStore { disk, directory, state, temporaries: AtomicU64::new(0), counters };
        let mut scanned = store.scan(now_ms)?;
        scanned.sort_by_key(|entry| (entry.heading.used_ms, entry.id));
        let mut state = store.state.lock();
        for ScannedEntry { id, heading, bytes } in scanned {
            if state.index.fits(bytes) {
                let evicted = state.index.insert(id, heading.times, heading.used_ms, bytes);
                store.remove_evicted(&evicted);
            } else {
                store.remove_evicted(&[id]);
            }
        }
        drop(state);
        Ok(store)
    }

    /// Returns the valid files and removes the others.
    fn scan(&self, now_ms: u64) -> io::Result<Vec<ScannedEntry>> {
        let mut scanned = Vec::new();
        for organization in self.disk.list(&self.directory)? {
            let path = self.directory.join(&organization.name);
            let Ok(id) = Uuid::parse_str(&organization.name) else {
                self.remove_foreign(&path, &organization);
                continue;
            };
            for file in self.disk.list(&path)? {
                let path = path.join(&file.name);
                let Some(id) = EntryId::parse(OrgId(id), &file.name) else {
                    self.remove_foreign(&path, &file);
                    continue;
                };
                match self.heading(&path, file.length) {
                    Some(heading) if heading.times.is_expired(now_ms) => {
                        CacheCounters::add(&self.counters.expired);
                        self.remove_file(&path);
                    }
                    Some(heading) => scanned.push(ScannedEntry { id, heading, bytes: file.length }),
                    None => {
                        CacheCounters::add(&self.counters.damaged);
                        self.remove_file(&path);
                    }
                }
            }
        }
        Ok(scanned)
    }

    fn heading(&self, path: &Path, file_bytes: u64) -> Option<FileHeading> {
        let mut bytes = [0; HEADING_BYTES];
        self.disk.open(path).and_then(|file| file.read_at(0, &mut bytes)).ok()?;
        FileHeading::read(&bytes, file_bytes)
    }

    /// Removes a file that is not an entry, such as an incomplete one.
    fn remove_foreign(&self, path: &Path, entry: &DirEntry) {
        if !entry.is_dir {
            self.remove_file(path);
        }
    }

    /// Reads an entry that is not older than `max_age`.
    pub fn read(&self, id: &EntryId, max_age: MaxAge, now_ms: u64) -> Option<StoredEntry> {
        let found = {
            let mut state = self.state.lock();
            let found = state.index.look_up(id, max_age, now_ms);
            if found == IndexLookup::Expired {
                CacheCounters::add(&self.counters.expired);
                self.remove_file(&self.path(id));
            }
            found
        };
        let IndexLookup::Hit(hit) = found else { return None };
        match self.read_file(id, hit, now_ms) {
            Ok(Some(file)) => Some(StoredEntry { file, generation: hit.generation }),
            Ok(None) => {
                self.remove_damaged(id, hit.generation);
                None
            }
            Err(error) => {
                // The entry may have been replaced or evicted since the look-up, or its file was removed externally.
                if error.kind() != io::ErrorKind::NotFound {
                    CacheCounters::add(&self.counters.errors);
                    tracing::warn!(%error, "a cached response could not be read");
                }
                self.remove_damaged(id, hit.generation);
                None
            }
        }
    }

    /// Reads the file. Returns `None` if it does not match the index.
    fn read_file(&self, id: &EntryId, hit: IndexHit, now_ms: u64) -> io::Result<Option<EntryFile>> {
        let file = self.disk.open(&self.path(id))?;
        let length = file.len()?;
        if length > FILE_BYTES_MAX as u64 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut bytes = vec![0; length];
        file.read_at(0, &mut bytes)?;
        let read = EntryFile::read(Bytes::from(bytes));
        if now_ms.saturating_sub(hit.written_used_ms) >= USED_GRAIN_MS {
            file.write_at(USED_OFFSET, &now_ms.to_le_bytes())?;
            self.state.lock().index.note_written_use(id, hit.generation, now_ms);
        }
        // A newer entry may have replaced the file since the look-up, which is not a damage.
        Ok(read.filter(|file| file.heading.times == hit.times || self.is_replaced(id, hit)))
    }

    fn is_replaced(&self, id: &EntryId, hit: IndexHit) -> bool {
        !self.state.lock().index.has_generation(id, hit.generation)
    }

    /// Removes an entry that could not be read or decrypted, unless it was replaced.
    pub fn remove_damaged(&self, id: &EntryId, generation: u64) {
        let mut state = self.state.lock();
        if state.index.remove_generation(id, generation) {
            CacheCounters::add(&self.counters.damaged);
            self.remove_file(&self.path(id));
        }
    }

    /// Writes an entry, and evicts others to keep the limits.
    pub fn write(&self, id: &EntryId, file: &EntryFile, now_ms: u64) -> io::Result<StoreOutcome> {
        self.sweep(now_ms);
        let bytes = file.bytes.len() as u64;
        let has_space = admit(self.disk.space(&self.directory)?, bytes) == SpaceLevel::Plenty;
        if !has_space || file.heading.times.is_expired(now_ms) || !self.state.lock().index.fits(bytes) {
            CacheCounters::add(&self.counters.refused);
            return Ok(StoreOutcome::Refused);
        }
        let temporary = self.write_temporary(id, file)?;
        let named = self.give_name(id, file.heading.times, bytes, &temporary);
        if named.is_err() {
            self.remove_file(&temporary);
        }
        named?;
        CacheCounters::add(&self.counters.stored);
        Ok(StoreOutcome::Stored)
    }

    fn write_temporary(&self, id: &EntryId, file: &EntryFile) -> io::Result<PathBuf> {
        let directory = self.organization_path(id.organization);
        if !self.disk.exists(&directory)? {
            self.disk.create_dir_all(&directory)?;
        }
        let number = self.temporaries.fetch_add(1, Ordering::Relaxed);
        let temporary = directory.join(format!("{}.{number}{TEMPORARY_SUFFIX}", id.file_name()));
        let written = self.disk.create(&temporary)?.append(&file.bytes);
        if written.is_err() {
            self.remove_file(&temporary);
        }
        written.map(|_| temporary)
    }

    fn give_name(&self, id: &EntryId, times: EntryTimes, bytes: u64, temporary: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        // If the rename fails, the former file stays and remains readable.
        self.disk.rename(temporary, &self.path(id))?;
        let evicted = state.index.insert(*id, times, times.created_ms, bytes);
        self.remove_evicted(&evicted);
        Ok(())
    }

    /// Removes all entries of an organization.
    pub fn remove_organization(&self, organization: OrgId) -> io::Result<()> {
        let mut state = self.state.lock();
        state.index.remove_organization(organization);
        match self.disk.remove_dir_all(&self.organization_path(organization)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Removes expired entries if the last search is long ago.
    fn sweep(&self, now_ms: u64) {
        let mut state = self.state.lock();
        if now_ms.saturating_sub(state.swept_ms) < SWEEP_EVERY_MS {
            return;
        }
        state.swept_ms = now_ms;
        let expired = state.index.sweep(now_ms);
        CacheCounters::add_many(&self.counters.expired, expired.len());
        expired.iter().for_each(|id| self.remove_file(&self.path(id)));
    }

    /// Returns the size and the number of the entries.
    pub fn usage(&self) -> (u64, usize) {
        let state = self.state.lock();
        (state.index.bytes(), state.index.len())
    }

    fn remove_evicted(&self, evicted: &[EntryId]) {
        CacheCounters::add_many(&self.counters.evicted, evicted.len());
        evicted.iter().for_each(|id| self.remove_file(&self.path(id)));
    }

    /// Removes a file. The next start finds a file that could not be removed.
    fn remove_file(&self, path: &Path) {
        match self.disk.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                CacheCounters::add(&self.counters.errors);
                tracing::warn!(%error, "a cached response could not be removed");
            }
            _ => {}
        }
    }

    fn organization_path(&self, organization: OrgId) -> PathBuf {
        self.directory.join(organization.0.to_string())
    }

    fn path(&self, id: &EntryId) -> PathBuf {
        self.organization_path(id.organization).join(id.file_name())
    }
}

#[cfg(test)]
mod tests;
