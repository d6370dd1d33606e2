//! What can go wrong with a store.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum KvError {
    /// Nothing was done.
    #[error("a {what} of {length} bytes; at most {limit} are kept: split the record")]
    TooLarge { what: &'static str, length: usize, limit: usize },

    /// The store must not be used: something in it is wrong or missing.
    #[error("{}: {what}: the store is damaged; rebuild this replica from the others or restore the directory", dir.display())]
    Damaged { dir: PathBuf, what: String },

    #[error("{}: another process has this store open", dir.display())]
    InUse { dir: PathBuf },

    /// It may be whole: a busy machine, a slow disk, and some damage that sled hangs on look the same.
    #[error(
        "{}: it did not open within {seconds} s: start again when the machine and its disk are less busy; if it never \
         opens, restore the directory", dir.display()
    )]
    TooSlow { dir: PathBuf, seconds: u64 },

    #[error("an earlier commit of this store failed: restart the node, and check its disk")]
    Stopped,

    #[error(transparent)]
    Io(#[from] io::Error),
}

impl KvError {
    pub(crate) fn damaged(dir: &Path, what: impl Into<String>) -> KvError {
        KvError::Damaged { dir: dir.to_path_buf(), what: what.into() }
    }

    /// Whether what is on the disk is wrong, and not merely what was asked of it or how it could be read just now. Names
    /// every kind, so that a new one has to be decided: what is damaged may be given up.
    pub fn is_damage(&self) -> bool {
        match self {
            KvError::Damaged { .. } => true,
            KvError::TooLarge { .. }
            | KvError::InUse { .. }
            | KvError::TooSlow { .. }
            | KvError::Stopped
            | KvError::Io(_) => false,
        }
    }
}
