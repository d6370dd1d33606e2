//! Cache of unpacked bundles in a directory of the disk.
//!
//! ```text
//! <kind>-<hash>/manifest.json   number of files and bytes; its time is the last use
//! <kind>-<hash>/tree/           the bundle
//! .tmp-<n>/                     an entry that is being written or removed
//! ```
//! An entry gets its name once it is complete, and loses it before its files are removed. Nothing is synced, because
//! a cache may lose entries. The first use after a restart compares the directory with the manifest.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crate::directory::{DirectorySink, create_directory, measure_tree, remove_tree, write_file};
use crate::error::BundleError;
use crate::index::{BundleIndex, EntryUse, IndexTotals};
use crate::kind::BundleKey;
use crate::limits::BundleCacheLimits;
use crate::manifest::{MANIFEST_BYTES_MAX, MANIFEST_FILE, decode_manifest, encode_manifest};
use crate::turns::UnpackTurns;
use crate::unpack::{BLOCK_BYTES, UnpackedSize, read_bundle};

/// Name of the directory with the bundle, in the directory of an entry.
const TREE_DIRECTORY: &str = "tree";
const TEMPORARY_PREFIX: &str = ".tmp-";
/// Space of an entry besides its files: two directories and the manifest.
const ENTRY_BYTES: u64 = 3 * BLOCK_BYTES;

/// Cache of unpacked bundles, least recently used first out. Clones share everything.
///
/// One cache at a time may use a directory.
#[derive(Clone, Debug)]
pub struct BundleCache {
    shared: Arc<SharedCache>,
}

/// Unpacked bundle that stays on the disk at least as long as this value. It dereferences to the directory.
#[derive(Debug)]
pub struct CachedBundle {
    shared: Arc<SharedCache>,
    key: BundleKey,
    /// Number of the entry in the index.
    number: u64,
    path: PathBuf,
}

/// Contents of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleCacheUsage {
    pub bundles: usize,
    /// Disk space in whole blocks.
    pub bytes: u64,
    pub bundles_in_use: usize,
    /// Directories that could not be removed. The next start tries again.
    pub failed_removals: u64,
}

#[derive(Debug)]
struct SharedCache {
    directory: PathBuf,
    limits: BundleCacheLimits,
    /// State that is locked while entries get and lose their names, so that index and disk agree.
    state: Mutex<CacheState>,
    turns: UnpackTurns,
    temporaries: AtomicU64,
    failed_removals: AtomicU64,
}

#[derive(Debug)]
struct CacheState {
    index: BundleIndex,
    /// Time of the last use of any entry. Uses get increasing times, so that their order survives a restart.
    last_use: SystemTime,
}

/// Directory with a temporary name, which is removed when it is dropped.
#[derive(Debug)]
struct TemporaryDirectory<'c> {
    cache: &'c SharedCache,
    path: PathBuf,
}

/// Entry that was found on the disk.
#[derive(Debug)]
struct StoredBundle {
    last_use: SystemTime,
    key: BundleKey,
    size: UnpackedSize,
}

impl BundleCache {
    /// Opens the directory, creates it if necessary, and removes incomplete entries and those above the limits.
    pub fn open(directory: &Path, limits: BundleCacheLimits) -> Result<BundleCache, BundleError> {
        fs::create_dir_all(directory).map_err(|error| BundleError::disk("create the directory", directory, error))?;
        let mut stored = stored_bundles(directory)?;
        stored.sort_unstable_by(|a, b| (a.last_use, &a.key).cmp(&(b.last_use, &b.key)));
        let mut index = BundleIndex::new(limits.bytes, limits.bundles);
        // A time in the future, from a clock that was wrong, is no bound for the next uses.
        let last_use = stored.last().map_or(SystemTime::UNIX_EPOCH, |bundle| bundle.last_use.min(SystemTime::now()));
        for StoredBundle { key, size, .. } in stored {
            index.add_found(key, entry_bytes(&size));
        }
        for key in index.surplus() {
            remove_stored(&directory.join(key.directory_name()))?;
            index.remove(&key);
        }
        let shared = SharedCache {
            directory: directory.to_path_buf(),
            limits,
            state: Mutex::new(CacheState { index, last_use }),
            turns: UnpackTurns::new(),
            temporaries: AtomicU64::new(0),
            failed_removals: AtomicU64::new(0),
        };
        Ok(BundleCache { shared: Arc::new(shared) })
    }

    /// Returns a bundle if it is in the cache. A damaged one is removed.
    pub fn get(&self, key: &BundleKey) -> Result<Option<CachedBundle>, BundleError> {
        let acquired = self.shared.lock().index.acquire(key);
        let Some(EntryUse { number, is_checked }) = acquired else { return Ok(None) };
        let bundle = self.held(key, number);
        let entry = self.shared.entry_directory(key);
        let is_intact = (is_checked || is_intact(&entry)) && self.shared.touch(&entry).is_ok();
        if !is_intact {
            self.shared.discard(&bundle)?;
            return Ok(None);
        }
        self.shared.lock().index.set_checked(key, number);
        Ok(Some(bundle))
    }

    /// Unpacks the stored bytes of a bundle, unless it is in the cache. The caller knows that the hash is theirs.
    ///
    /// At most [`UNPACKING_MAX`](crate::UNPACKING_MAX) bundles are unpacked at a time; other calls wait. An error
    /// leaves nothing on the disk.
    pub fn insert(&self, key: &BundleKey, stored: &[u8]) -> Result<CachedBundle, BundleError> {
        let _turn = self.shared.turns.wait();
        if let Some(bundle) = self.get(key)? {
            return Ok(bundle);
        }
        let temporary = self.shared.new_temporary();
        create_directory(&temporary.path)?;
        let mut sink = DirectorySink::create(temporary.path.join(TREE_DIRECTORY))?;
        let size = read_bundle(key.kind, stored, &self.shared.limits.content, &mut sink)?;
        sink.finish()?;
        write_file(&temporary.path.join(MANIFEST_FILE), encode_manifest(&size).as_bytes())?;
        self.shared
            .touch(&temporary.path)
            .map_err(|error| BundleError::disk("set the time of the manifest in", &temporary.path, error))?;
        self.install(key, &temporary, entry_bytes(&size))
    }

    pub fn usage(&self) -> BundleCacheUsage {
        let IndexTotals { bundles, bytes, bundles_in_use, .. } = self.shared.lock().index.totals();
        let failed_removals = self.shared.failed_removals.load(Ordering::Relaxed);
        BundleCacheUsage { bundles, bytes, bundles_in_use, failed_removals }
    }

    /// Gives an unpacked bundle its name. Another thread may have been faster with the same bundle.
    fn install(
        &self,
        key: &BundleKey,
        temporary: &TemporaryDirectory<'_>,
        bytes: u64,
    ) -> Result<CachedBundle, BundleError> {
        // The victims lose their names under the lock, and their files after it.
        let mut removed = Vec::new();
        let mut state = self.shared.lock();
        if let Some(EntryUse { number, .. }) = state.index.acquire(key) {
            drop(state);
            return Ok(self.held(key, number));
        }
        for victim in state.index.victims(bytes)? {
            removed.extend(self.shared.retire(&victim)?);
            state.index.remove(&victim);
        }
        let entry = self.shared.entry_directory(key);
        fs::rename(&temporary.path, &entry)
            .map_err(|error| BundleError::disk("create the directory", &entry, error))?;
        let EntryUse { number, .. } = state.index.add_held(key.clone(), bytes);
        drop(state);
        Ok(self.held(key, number))
    }

    fn held(&self, key: &BundleKey, number: u64) -> CachedBundle {
        let path = self.shared.entry_directory(key).join(TREE_DIRECTORY);
        CachedBundle { shared: Arc::clone(&self.shared), key: key.clone(), number, path }
    }
}

impl SharedCache {
    fn lock(&self) -> MutexGuard<'_, CacheState> {
        // The state is valid between the steps of its changes, so a panic of another thread does not matter.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry_directory(&self, key: &BundleKey) -> PathBuf {
        self.directory.join(key.directory_name())
    }

    /// Returns a temporary directory, which is not created yet.
    fn new_temporary(&self) -> TemporaryDirectory<'_> {
        let number = self.temporaries.fetch_add(1, Ordering::Relaxed);
        TemporaryDirectory { cache: self, path: self.directory.join(format!("{TEMPORARY_PREFIX}{number}")) }
    }

    /// Takes the name of an entry away. Returns `None` if the directory is already gone.
    fn retire(&self, key: &BundleKey) -> Result<Option<TemporaryDirectory<'_>>, BundleError> {
        let entry = self.entry_directory(key);
        let temporary = self.new_temporary();
        match fs::rename(&entry, &temporary.path) {
            Ok(()) => Ok(Some(temporary)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(BundleError::disk("rename the directory", &entry, error)),
        }
    }

    /// Removes a damaged entry, unless another thread has done so.
    fn discard(&self, bundle: &CachedBundle) -> Result<(), BundleError> {
        let mut state = self.lock();
        if !state.index.contains(&bundle.key, bundle.number) {
            return Ok(());
        }
        let removed = self.retire(&bundle.key)?;
        state.index.remove(&bundle.key);
        drop(state);
        drop(removed);
        Ok(())
    }

    /// Stores the time of a use.
    fn touch(&self, entry: &Path) -> io::Result<()> {
        let now = {
            let mut state = self.lock();
            state.last_use = SystemTime::now().max(state.last_use + Duration::from_nanos(1));
            state.last_use
        };
        File::open(entry.join(MANIFEST_FILE))?.set_modified(now)
    }
}

impl CachedBundle {
    pub fn key(&self) -> &BundleKey {
        &self.key
    }

    /// Returns the directory of the bundle. It and its contents are read-only.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Deref for CachedBundle {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl Drop for CachedBundle {
    fn drop(&mut self) {
        self.shared.lock().index.release(&self.key, self.number);
    }
}

impl Drop for TemporaryDirectory<'_> {
    fn drop(&mut self) {
        match remove_tree(&self.path) {
            Ok(()) => {}
            // It got the name of an entry.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => {
                self.cache.failed_removals.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Returns the entries with a manifest, and removes the others and temporary directories. Other names are left alone.
fn stored_bundles(directory: &Path) -> Result<Vec<StoredBundle>, BundleError> {
    let failed = |error| BundleError::disk("list the directory", directory, error);
    let mut stored = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (name, path) = (entry.file_name(), entry.path());
        let name = OsStr::to_str(&name).unwrap_or_default();
        let manifest = BundleKey::parse(name).map(|key| (key, read_manifest(&path)));
        match manifest {
            Some((key, Some((size, last_use)))) => stored.push(StoredBundle { last_use, key, size }),
            Some((_, None)) => remove_stored(&path)?,
            None if name.starts_with(TEMPORARY_PREFIX) => remove_stored(&path)?,
            None => {}
        }
    }
    Ok(stored)
}

/// Returns whether the directory of an entry agrees with its manifest.
fn is_intact(entry: &Path) -> bool {
    let Some((expected, _)) = read_manifest(entry) else { return false };
    matches!(measure_tree(&entry.join(TREE_DIRECTORY)), Ok(Some(found)) if found == expected)
}

/// Returns the size in a manifest and its time. Unreadable and damaged manifests are none.
fn read_manifest(entry: &Path) -> Option<(UnpackedSize, SystemTime)> {
    let file = File::open(entry.join(MANIFEST_FILE)).ok()?;
    let last_use = file.metadata().ok()?.modified().ok()?;
    let mut text = String::new();
    file.take(MANIFEST_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some((decode_manifest(&text)?, last_use))
}

fn remove_stored(path: &Path) -> Result<(), BundleError> {
    remove_tree(path).map_err(|error| BundleError::disk("remove the directory", path, error))
}

fn entry_bytes(size: &UnpackedSize) -> u64 {
    size.disk_bytes.saturating_add(ENTRY_BYTES)
}
