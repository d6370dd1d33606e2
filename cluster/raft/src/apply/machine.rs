//! State machine of one group, as used by consensus: entries go in, outcomes come out, and a seal makes the applied
//! state durable. This folder holds the adapters for the store; consensus uses no other interface.
//!
//! M1: `apply` is a pure function of the entries before it: every replica returns the same.
//! M2: when `seal` returns, everything up to its position is durable without the log, and `sealed` returns that
//!     position from then on, also after a restart.
//! M3: after a restart `applied` equals `sealed`; the log from there on is applied again.
//! M4: `seal` and `export` may run while entries are applied; `install` never does.
//! M5: state of another replica is installed only after a successful `check`: a failed install ends the node, which
//!     would be offered the same again.

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
    /// Returns the position that is durable without the log. Called by consensus itself, so it must not block for long.
    fn sealed(&self) -> Applied;
    /// One outcome per command of the entry. An error means that this replica cannot go on.
    fn apply(&self, position: LogPosition, entry: &Bytes) -> Result<Vec<Outcome>, MachineError>;
    fn apply_blank(&self, position: LogPosition) -> Result<(), MachineError>;
    /// Keeps what consensus encoded, to be given back in [`Applied`].
    fn apply_membership(&self, position: LogPosition, membership: &[u8]) -> Result<(), MachineError>;
    /// Blocking.
    fn seal(&self) -> Result<Applied, MachineError>;
    /// Bytes that a seal would free.
    fn memory_bytes(&self) -> usize;
    /// Exports the state of the last seal for another replica. Blocking.
    fn export(&self) -> Result<Export, MachineError>;
    /// Verifies that `install` can take another replica's kept state and every byte of the files in `incoming`.
    /// Blocking. Changes nothing, and may run concurrently with anything else.
    fn check(&self, kept: &[u8], incoming: Option<&Path>) -> Result<(), BadSnapshot>;
    /// Blocking: replaces everything with the kept state of another replica, whose files lie in `incoming`. There is
    /// no `incoming` where the export had no files.
    fn install(&self, kept: &[u8], incoming: Option<&Path>) -> Result<(), MachineError>;
}

/// Export for another replica: the kept state as bytes, files on this node's disk, and a guard that prevents their
/// removal meanwhile.
#[derive(Clone, Debug, Default)]
pub struct Export {
    pub applied: Applied,
    pub kept: Bytes,
    pub files: Vec<ExportFile>,
    pub hold: Hold,
}

/// One file of an export. Its content carries its own checksums, which `check` verifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportFile {
    pub name: String,
    pub path: PathBuf,
    pub length: u64,
}

/// Keeps the files of an export on disk while it lives.
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

/// Why a machine does not take a snapshot. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadSnapshot {
    /// It is not what was written once. Most likely its sender's disk changed it.
    #[error("damaged: {0}")]
    Damaged(String),
    /// It is of no use here, and its sender need not doubt what it has.
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
    /// Fatal error: the node's disk failed, or the replica's state is unknown.
    pub fn fatal(error: impl fmt::Display) -> MachineError {
        MachineError { text: error.to_string(), severity: Severity::Fatal }
    }

    /// Files of this replica are damaged, and it must not go on. Other replicas of the node may.
    pub fn damaged(error: impl fmt::Display) -> MachineError {
        MachineError { text: error.to_string(), severity: Severity::Damaged }
    }

    /// Lack of disk space or file descriptors. Nothing has changed: the operation is retried later.
    pub fn no_space(error: impl fmt::Display) -> MachineError {
        MachineError { text: error.to_string(), severity: Severity::NoSpace }
    }

    pub fn is_no_space(&self) -> bool {
        self.severity == Severity::NoSpace
    }

    pub fn is_damage(&self) -> bool {
        self.severity == Severity::Damaged
    }

    /// The same error of the entry at this position.
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
