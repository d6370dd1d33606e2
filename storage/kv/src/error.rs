//! Errors of a store.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum KvError {
    /// Nothing was done.
    #[error("a {what} of {length} bytes is too large, the limit is {limit}: split the record")]
    TooLarge { what: &'static str, length: usize, limit: usize },

    /// The store must not be used: something in it is wrong or missing.
    #[error("{}: {what}: the store is damaged; rebuild this replica from the others or restore the directory", dir.display())]
    Damaged { dir: PathBuf, what: String },

    #[error("{}: another process has this store open", dir.display())]
    InUse { dir: PathBuf },

    /// It may be whole: a busy machine, a slow disk, and some damage that sled hangs on look the same.
    #[error(
        "{}: the store did not open within {seconds} s. Start again when the machine and its disk are less busy. If it never \
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

    /// Returns whether the data on disk is wrong, as opposed to an invalid call or a temporary read failure. Names
    /// every kind, so that a new one has to be classified: a damaged replica may be discarded.
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
