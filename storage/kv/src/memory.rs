//! In-memory twin of the store on disk, for simulation: same limits and semantics, nothing on disk.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::{Batch, Entries, Kv, KvError, Kvs};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Entries in memory. A commit is durable as far as `power_cut` is concerned.
#[derive(Debug, Default)]
pub struct MemoryKv {
    /// Replaced whole by each commit, so that a reader sees all of it or nothing.
    entries: RwLock<Arc<Map>>,
}

impl MemoryKv {
    pub fn new() -> MemoryKv {
        MemoryKv::default()
    }

    /// The store as it is found after a power cut: as of the last commit.
    pub fn power_cut(&self) -> MemoryKv {
        MemoryKv { entries: RwLock::new(Arc::clone(&self.entries.read())) }
    }
}

impl Kv for MemoryKv {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, KvError> {
        Ok(self.entries.read().get(key).cloned())
    }

    fn scan(&self, prefix: &[u8]) -> Result<Entries, KvError> {
        let entries = Arc::clone(&self.entries.read());
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let found = entries.range::<[u8], _>(from).take_while(|(key, _)| key.starts_with(prefix));
        Ok(found.map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn commit(&self, batch: &Batch) -> Result<(), KvError> {
        batch.check_limits()?;
        let mut entries = self.entries.write();
        let map = Arc::make_mut(&mut *entries);
        for (key, value) in batch.iter() {
            match value {
                Some(value) => map.insert(key.to_vec(), value.to_vec()),
                None => map.remove(key),
            };
        }
        Ok(())
    }

    fn entries(&self) -> u64 {
        self.entries.read().len() as u64
    }
}

/// The stores of one machine; clones share them, what a crash leaves are others.
#[derive(Clone, Debug, Default)]
pub struct MemoryKvs(Arc<Mutex<BTreeMap<PathBuf, Arc<MemoryKv>>>>);

impl MemoryKvs {
    /// The stores as they are found after a power cut: each as of its last commit.
    pub fn power_cut(&self) -> MemoryKvs {
        let found = self.0.lock().iter().map(|(dir, kv)| (dir.clone(), Arc::new(kv.power_cut()))).collect();
        MemoryKvs(Arc::new(Mutex::new(found)))
    }
}

impl Kvs for MemoryKvs {
    fn open(&self, dir: &Path) -> Result<Arc<dyn Kv>, KvError> {
        let kv: Arc<MemoryKv> = Arc::clone(self.0.lock().entry(dir.to_owned()).or_default());
        Ok(kv)
    }
}
