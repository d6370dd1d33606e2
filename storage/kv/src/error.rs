//! What can go wrong with a store.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum KvError {
    /// Nothing was done.
    #[error("a {what} of {length} bytes; at most {limit} are kept: split the record")]
    TooLarge { what: &'static str, length: usize, limit: usize },

    /// The store must not be used: something in it is wrong or missing.
    #[error("{}: {what}: the store is damaged; delete this directory and rebuild the replica from another one", dir.display())]
    Damaged { dir: PathBuf, what: String },

    #[error("{}: another process has this store open", dir.display())]
    InUse { dir: PathBuf },

    #[error("an earlier commit of this store failed: restart the node, and check its disk")]
    Stopped,

    #[error(transparent)]
    Io(#[from] io::Error),
}

impl KvError {
    pub(crate) fn damaged(dir: &Path, what: impl Into<String>) -> KvError {
        KvError::Damaged { dir: dir.to_path_buf(), what: what.into() }
    }
}
