//! Durable log and votes of all groups of a node, in one raft-engine.
//!
//! Operations completed with `done(Ok)` survive a power cut. This is the only crate that names raft-engine, and
//! payloads are opaque. The crate adds four things to the engine:
//!
//! - a frame around every record (`frame`): group, index, term, the checksum of the previous record and its own. It
//!   reveals wrong, stale or missing records independently of the engine's block checksums;
//! - one writer thread, `assay-log` (`writer`), which takes the waiting operations of all groups and completes them
//!   with one fsync;
//! - a watermark beside the directory (`watermark`): the position up to which durability was acknowledged;
//! - a read-only survey of every byte before the engine opens (`scan`, `recovery_scan`, `integrity`). The engine itself
//!   silently drops everything behind the first bad batch of its last file, including votes of other groups.
//!
//! # Order of a write, and the state after a crash
//!
//! 1. Each group has batches of its own, so that a read of one group skips the bytes of other groups. They are written
//!    without a sync. A crash leaves any part of them above the watermark. Open cuts at the first bad batch and reports it.
//!    None of these batches was acknowledged.
//! 2. One fsync follows. A crash after it leaves whole records above the watermark, which are kept.
//! 3. The watermark is overwritten in place without a sync. A power cut leaves the new one or an older one, so it is
//!    never ahead of step 2.
//! 4. The state that readers see is updated, and the completions run in order.
//!
//! A truncation first lowers and syncs the watermark, and then writes its mark. A crash between the two leaves a log
//! that is longer than the watermark requires, as if the truncation had not been written. A purge is a note beside the
//! records. The engine may forget its own compaction with the file, so open repeats it from the note.
//!
//! # Failures
//!
//! A failed write or sync is never retried. All current and later callers get [`LogError::Failed`], [`Log::failed`]
//! returns the cause, and the owner ends the process. raft-engine itself retries a write to a full disk once, in a new
//! file. This is sound, because the cut file is synced and nothing was acknowledged.
//!
//! # Bounds
//!
//! `append` and similar calls never block, because consensus calls them from async code. They put work into an
//! unbounded channel, so the bound is outside: **a group has one append in flight**. Its size is at most that of the
//! caller's batch (1 MiB entries). As a last resort, work beyond [`QUEUED_BYTES_MAX`] is refused at once and not
//! written.

pub mod check;
mod direct;
mod engine;
mod error;
pub mod faulty;
mod files;
mod frame;
mod group;
mod group_metadata;
mod integrity;
mod open;
mod pace;
mod recovery_scan;
mod round;
mod scan;
pub mod simulated;
mod watermark;
mod writer;

#[cfg(test)]
mod tests;

use bytes::Bytes;

pub use check::{Report, Verdict, check};
pub use error::{Corruption, LogError};
pub use group::GroupLog;
pub use open::Log;
pub use pace::{FAST_FOR, FAST_WRITES, SLOW_FOR, SLOW_WRITE};

/// Upper bound of the bytes that one fsync covers. Later operations join the next round.
pub const ROUND_BYTES_MAX: usize = 8 << 20;
/// Upper bound of the operations that one fsync covers.
pub const ROUND_OPERATIONS_MAX: usize = 1024;
/// Upper bound of the bytes that wait in the channel. Further work is refused.
pub const QUEUED_BYTES_MAX: u64 = 512 << 20;
/// Upper bound of the groups in one log, which limits the watermark file to 4 MiB.
pub const GROUPS_MAX: usize = 4095;
/// Upper bound of the size of a record's payload.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;
/// Upper bound of the size of a vote, a committed position or a purge note.
pub const NOTE_BYTES_MAX: usize = 4096;
/// Upper bound of indexes. An index in raft-engine is one higher than in this crate.
pub const INDEX_MAX: u64 = u64::MAX - 16;

/// Callback of an operation, called once. It must not block.
///
/// It runs on the thread "assay-log", or at once on the caller's thread if the log takes no more work.
pub type Completion = Box<dyn FnOnce(Result<(), LogError>) + Send>;

/// Callback of a simulated log, called after something was put into its inbox.
pub type Arrived = std::sync::Arc<dyn Fn() + Send + Sync>;

/// Upper bound of the bytes that one call of [`Log::pinned`] frees.
pub const GIVEN_BACK_BYTES_MAX: u64 = 128 << 20;

/// Size limits and portions of the log.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// Size from which [`Log::pinned`] frees space and names the groups that hold it.
    pub budget_bytes: u64,
    /// Length at which a file is closed. Space is freed in units of files.
    pub file_bytes: u64,
    /// Upper bound of the bytes that one fsync covers, and of a batch in a file.
    pub batch_bytes_max: usize,
    /// Delay of each round of writes in milliseconds, for tests of slow disks.
    pub write_delay: Option<std::sync::Arc<std::sync::atomic::AtomicU64>>,
}

impl Default for LogConfig {
    fn default() -> Self {
        LogConfig { budget_bytes: 1 << 30, file_bytes: 64 << 20, batch_bytes_max: ROUND_BYTES_MAX, write_delay: None }
    }
}

/// Entry of a group's log. The payload is opaque.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    pub index: u64,
    pub term: u64,
    pub payload: Bytes,
}

/// Durable content of a group's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupState {
    /// Position of the last purge.
    pub purged: Option<Purged>,
    /// Index of the first record, or of the next record if the log is empty.
    pub first: u64,
    /// Index and term of the last record; `None` in an empty log, including one that was purged to its end.
    pub last: Option<(u64, u64)>,
    pub vote: Option<Vec<u8>>,
    /// Committed position. It is a hint that reaches the disk with the next write.
    pub committed: Option<Vec<u8>>,
}

impl GroupState {
    /// Returns whether there ever was an entry, including purged ones. A vote alone does not count.
    pub fn has_entries(&self) -> bool {
        self.last.is_some() || self.purged.is_some()
    }
}

/// Purge position. Everything up to `index` is gone, and `note` belongs to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purged {
    pub index: u64,
    pub note: Vec<u8>,
}
