//! Errors of the log. Each message names the action to take.

use std::fmt;
use std::path::PathBuf;

use assay_storage_model::GroupId;

/// Error of a log operation. It is cheap to clone, because one failure completes many calls.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LogError {
    /// Wrong, stale or missing bytes below the position that was acknowledged as durable.
    #[error("{0}")]
    Corrupt(Box<Corruption>),
    /// Failed write or sync. The log accepts nothing more, and the last operations may or may not be on disk. End the
    /// process.
    #[error("the log has failed and accepts nothing more: {0}")]
    Failed(String),
    /// Mistake of the caller. Nothing was written, and the log continues.
    #[error("refused: {0}")]
    Refused(String),
    /// Records that were purged.
    #[error("group {group}: records below {first} were purged")]
    Purged { group: GroupId, first: u64 },
    #[error("the log is closed")]
    Closed,
    /// Failure to open or list the log for a reason other than damage.
    #[error("{what}: {message}")]
    Io { what: String, message: String },
}

impl LogError {
    pub(crate) fn io(what: impl fmt::Display, error: impl fmt::Display) -> LogError {
        LogError::Io { what: what.to_string(), message: error.to_string() }
    }
}

/// Location of the damage. Open has changed nothing on disk when it returns this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corruption {
    pub group: Option<GroupId>,
    pub file: PathBuf,
    pub index: Option<u64>,
    pub what: String,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the log is damaged: {}", self.file.display())?;
        if let Some(group) = self.group {
            write!(f, ", group {group}")?;
        }
        if let Some(index) = self.index {
            write!(f, ", index {index}")?;
        }
        write!(
            f,
            ": {}. Nothing was changed. This replica must be rebuilt from the others or, on a single node, restored \
             from a backup; `assay doctor` shows more",
            self.what
        )
    }
}

impl From<Corruption> for LogError {
    fn from(corruption: Corruption) -> Self {
        LogError::Corrupt(Box::new(corruption))
    }
}
