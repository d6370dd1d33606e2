//! Errors of a store.

use crate::name::StoredName;

/// Error of a store. The text names the object and the location.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{location} has no object {name}")]
    Missing { location: String, name: StoredName },
    #[error("{location}: object {name} ends before byte {end}")]
    Short { location: String, name: StoredName, end: u64 },
    #[error("{location}: {doing}: {source}")]
    Io { location: String, doing: String, source: std::io::Error },
    #[error("{location}: {doing}: {why}")]
    Bucket { location: String, doing: String, why: String },
    /// The content that was to be written could not be read.
    #[error("cannot read what is to be stored: {0}")]
    Content(String),
}

impl StoreError {
    /// Returns whether a repetition cannot help before somebody changes something.
    pub fn is_missing(&self) -> bool {
        matches!(self, StoreError::Missing { .. })
    }
}
