//! Small keyed state that changes only at a commit and is durable when the commit returns. The only crate that names
//! sled.
//!
//! Three implementations of [`Kv`] pass one suite: [`SledKv`] on disk, its twin [`MemoryKv`] for simulation, and
//! [`FaultyKv`], which fails the n-th commit of another. Keys are at most 256 bytes and values at most 4 KiB, because
//! above that sled spills to files that it never syncs. Larger records are split into chunks. The content is opaque to
//! this crate.
//!
//! The outcome of a failed commit is unknown. The store takes no further commits, and its owner ends.

mod contain;
mod error;
mod faulty;
mod frame;
mod memory;
mod sled_files;
mod sled_kv;
pub mod suite;
mod summary;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

pub use contain::panic_is_contained;
pub use error::KvError;
pub use faulty::{CommitFault, FaultyKv};
pub use memory::{MemoryKv, MemoryKvs};
pub use sled_kv::{Report, SledKv};

/// Longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 256;

/// Longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = 4096;

/// Result of `scan`.
pub type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// Keys with values, changed in atomic, durable steps.
pub trait Kv: Send + Sync + Debug {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, KvError>;

    /// All entries whose key starts with `prefix`, in the order of keys.
    fn scan(&self, prefix: &[u8]) -> Result<Entries, KvError>;

    /// Makes all changes of `batch` or none, and durable when it returns: the barrier. One that is too large in any
    /// part is refused before anything is done. Readers may see the changes before it returns.
    fn commit(&self, batch: &Batch) -> Result<(), KvError>;

    /// Number of keys.
    fn entries(&self) -> u64;
}

/// Stores by the directories that they would be in.
pub trait Kvs: Send + Sync + Debug {
    fn open(&self, dir: &Path) -> Result<Arc<dyn Kv>, KvError>;
}

/// Changes for one commit. Of several to one key the last counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl Batch {
    pub fn new() -> Batch {
        Batch::default()
    }

    pub fn put(&mut self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        self.changes.insert(key.into(), Some(value.into()));
    }

    pub fn delete(&mut self, key: impl Into<Vec<u8>>) {
        self.changes.insert(key.into(), None);
    }

    /// All changes of another batch, after those here.
    pub fn append(&mut self, other: Batch) {
        self.changes.extend(other.changes);
    }

    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Changes in it, one a key.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Iterates in the order of keys; `None` is a delete.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.changes.iter().map(|(key, value)| (key.as_slice(), value.as_deref()))
    }

    fn check_limits(&self) -> Result<(), KvError> {
        for (key, value) in self.iter() {
            if key.len() > KEY_BYTES_MAX {
                return Err(KvError::TooLarge { what: "key", length: key.len(), limit: KEY_BYTES_MAX });
            }
            let length = value.map_or(0, <[u8]>::len);
            if length > VALUE_BYTES_MAX {
                return Err(KvError::TooLarge { what: "value", length, limit: VALUE_BYTES_MAX });
            }
        }
        Ok(())
    }
}
