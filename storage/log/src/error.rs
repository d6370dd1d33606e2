//! Errors of the log. Each message names the action to take.

use std::fmt;
use std::path::PathBuf;

use assay_storage_model::GroupId;

/// Error of a log operation. Cheap to clone: one failure answers many callers.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LogError {
    /// Bytes on disk are wrong, stale or missing below the position that was acknowledged as durable.
    #[error("{0}")]
    Corrupt(Box<Corruption>),
    /// A write or sync failed. Nothing more is taken; whether the last operations are on disk is unknown. End the process.
    #[error("the log has failed and accepts nothing more: {0}")]
    Failed(String),
    /// The caller's mistake; nothing was written and the log goes on.
    #[error("refused: {0}")]
    Refused(String),
    /// The requested records were purged.
    #[error("group {group}: records below {first} were purged")]
    Purged { group: GroupId, first: u64 },
    #[error("the log is closed")]
    Closed,
    /// The log could not be opened or listed, for a reason that is not damage.
    #[error("{what}: {message}")]
    Io { what: String, message: String },
}

impl LogError {
    pub(crate) fn io(what: impl fmt::Display, error: impl fmt::Display) -> LogError {
        LogError::Io { what: what.to_string(), message: error.to_string() }
    }
}

/// Location of the damage. Nothing has been changed on disk when open returns this.
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
