//! State machine of one group, as consensus uses it.
//!
//! Entries go in, outcomes come out, and a seal makes the applied state durable. Consensus uses no other interface. The
//! submodules adapt the stores to it.
//!
//! M1: `apply` is a pure function of the entries before it: every replica returns the same.
//! M2: when `seal` returns, everything up to its position is durable without the log. From then on `sealed` returns
//!     that position, also after a restart.
//! M3: after a restart `applied` equals `sealed`, and the log from there on is applied again.
//! M4: `seal` and `export` may run while entries are applied; `install` never does.
//! M5: state of another replica is installed only after a successful `check`. A failed install ends the node, which
//!     would be offered the same state again.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use assay_storage_disk::{disk_was_full, files_ran_out};
use assay_storage_model::command::Outcome;
use assay_storage_model::{Applied, LogPosition};
use bytes::Bytes;
use thiserror::Error;

mod catalog;
#[cfg(test)]
pub(crate) mod memory;
mod shard;

pub trait Machine: Send + Sync + fmt::Debug + 'static {
    /// Returns the applied position in memory.
    fn applied(&self) -> Applied;
    /// Returns the position that is durable without the log. Consensus calls it directly, so it must not block for
    /// long.
    fn sealed(&self) -> Applied;
    /// Applies an entry and returns one outcome per command. An error means that this replica cannot continue.
    fn apply(&self, position: LogPosition, entry: &Bytes) -> Result<Vec<Outcome>, MachineError>;
    fn apply_blank(&self, position: LogPosition) -> Result<(), MachineError>;
    /// Stores the membership that consensus encoded. [`Applied`] returns it.
    fn apply_membership(&self, position: LogPosition, membership: &[u8]) -> Result<(), MachineError>;
    /// Makes the applied state durable. Blocking.
    fn seal(&self) -> Result<Applied, MachineError>;
    /// Returns the bytes that a seal would free.
    fn memory_bytes(&self) -> usize;
    /// Exports the state of the last seal for another replica. Blocking.
    fn export(&self) -> Result<Export, MachineError>;
    /// Verifies that `install` can use the state of another replica, including every byte of the files in `incoming`.
    ///
    /// Changes nothing, and may run concurrently with anything else. Blocking.
    fn check(&self, kept: &[u8], incoming: Option<&Path>) -> Result<(), BadSnapshot>;
    /// Replaces everything with the state of another replica, whose files are in `incoming`. Blocking.
    ///
    /// `incoming` is `None` if the export had no files.
    fn install(&self, kept: &[u8], incoming: Option<&Path>) -> Result<(), MachineError>;
}

/// Export for another replica: the kept state as bytes, files on this node's disk, and a guard against their removal.
#[derive(Clone, Debug, Default)]
pub struct Export {
    pub applied: Applied,
    pub kept: Bytes,
    pub files: Vec<ExportFile>,
    pub hold: Hold,
}

/// File of an export. Its content has its own checksums, which `check` verifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportFile {
    pub name: String,
    pub path: PathBuf,
    pub length: u64,
}

/// Guard that keeps the files of an export on disk.
#[derive(Clone, Default)]
pub struct Hold(#[expect(dead_code, reason = "lives only to be dropped")] Option<Arc<dyn Any + Send + Sync>>);

impl Hold {
    pub fn of(what: impl Any + Send + Sync) -> Hold {
        Hold(Some(Arc::new(what)))
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hold")
    }
}

/// Reason why a machine rejects a snapshot. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadSnapshot {
    /// The snapshot differs from what was originally written. Most likely its sender's disk changed it.
    #[error("damaged: {0}")]
    Damaged(String),
    /// The snapshot is not usable here, but its sender's data is not in doubt.
    #[error("{0}")]
    Unusable(String),
}

/// Error of a state machine.
#[derive(Debug)]
pub struct MachineError {
    text: String,
    severity: Severity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    Fatal,
    Damaged,
    NoSpace,
}

impl MachineError {
    /// Fatal error: the node's disk failed, or the state of the replica is unknown.
    pub fn fatal(error: impl fmt::Display) -> MachineError {
        MachineError { text: error.to_string(), severity: Severity::Fatal }
    }

    /// Files of this replica are damaged, and it must not continue. Other replicas of the node may.
    pub fn damaged(error: impl fmt::Display) -> MachineError {
        MachineError { text: error.to_string(), severity: Severity::Damaged }
    }

    /// Lack of disk space or file descriptors. Nothing has changed, and the operation is retried later.
    pub fn no_space(error: impl fmt::Display) -> MachineError {
        MachineError { text: error.to_string(), severity: Severity::NoSpace }
    }

    pub fn is_no_space(&self) -> bool {
        self.severity == Severity::NoSpace
    }

    pub fn is_damage(&self) -> bool {
        self.severity == Severity::Damaged
    }

    /// Returns the same error for the entry at this position.
    pub(crate) fn at(self, position: LogPosition) -> MachineError {
        MachineError { text: format!("{position}: {}", self.text), ..self }
    }
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for MachineError {}
