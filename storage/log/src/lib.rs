//! Durable log and votes of all groups of a node, in one raft-engine. Operations completed with `done(Ok)` survive a
//! power cut.
//!
//! The only crate that names raft-engine. Payloads are opaque. It adds four things to the engine:
//!
//! - a frame around every record (`frame`): group, index, term, the checksum of the previous record and its own. It
//!   reveals wrong, stale or missing records independently of the engine's block checksums;
//! - one writer thread, `assay-log` (`writer`): it takes what waits from all groups, and one fsync answers for all;
//! - a watermark beside the directory (`watermark`): the position up to which durability was acknowledged;
//! - a read-only survey of every byte before the engine opens (`scan`, `recovery_scan`, `integrity`). The engine itself
//!   silently drops everything behind the first bad batch of its last file, including votes of other groups.
//!
//! # Order of a write, and what a crash leaves
//!
//! 1. Batches are written unsynced, one per group, so that reading one group does not read bytes of others. A crash
//!    leaves any part of them above the watermark. Open cuts at the first bad batch and reports it. Nothing of them was
//!    acknowledged.
//! 2. One fsync. A crash after it leaves records above the watermark that are whole: they are kept.
//! 3. The watermark is overwritten in place, not synced. A power cut leaves the new one or an older one: it is never
//!    ahead of step 2.
//! 4. The state that readers see moves, and the completions run in order.
//!
//! A truncation first lowers the watermark, synced, and then writes its mark. A crash between the two leaves a log
//! longer than the watermark requires, as if the truncation had not been written. A purge is a note beside the records.
//! The engine may forget its own compaction with the file, so open repeats it from the note.
//!
//! # When it fails
//!
//! A failed write or sync is never retried: all current and later callers get [`LogError::Failed`], [`Log::failed`]
//! returns the cause, and the owner ends the process. (raft-engine retries a write that found the disk full once, in a
//! new file. That is sound: the cut file is synced and nothing was acknowledged.)
//!
//! # Bounds
//!
//! `append` and its like never block and never wait: consensus calls them from async code. They put work into an unbounded
//! channel, so the bound is outside: **a group has one append in flight**, of at most what its caller batches (1 MiB
//! entries). As a last resort work beyond [`QUEUED_BYTES_MAX`] is refused at once, unwritten.

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

/// Bytes that one fsync answers for; what comes later joins the next round.
pub const ROUND_BYTES_MAX: usize = 8 << 20;
/// Operations that one fsync answers for.
pub const ROUND_OPERATIONS_MAX: usize = 1024;
/// Bytes that may wait in the channel before work is refused.
pub const QUEUED_BYTES_MAX: u64 = 512 << 20;
/// Groups that one log can hold; bounds the watermark file to 4 MiB.
pub const GROUPS_MAX: usize = 4095;
/// Bytes of one record's payload.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;
/// Bytes of a vote, a committed position or a purged note.
pub const NOTE_BYTES_MAX: usize = 4096;
/// The highest index; raft-engine's is one above ours.
pub const INDEX_MAX: u64 = u64::MAX - 16;

/// Called once, on the thread "assay-log" (or at once by the caller's when the log takes no more work). Must not block.
pub type Completion = Box<dyn FnOnce(Result<(), LogError>) + Send>;

/// Called after something was put into the inbox of a simulated log.
pub type Arrived = std::sync::Arc<dyn Fn() + Send + Sync>;

/// Bytes that one call of [`Log::pinned`] gives back at most.
pub const GIVEN_BACK_BYTES_MAX: u64 = 128 << 20;

/// Size limits and portions of the log.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// Size from which [`Log::pinned`] gives space back and names the groups that hold it.
    pub budget_bytes: u64,
    /// A file is closed once it is this long; the unit in which space comes back.
    pub file_bytes: u64,
    /// Bytes one fsync answers for, and of one batch in a file.
    pub batch_bytes_max: usize,
    /// Milliseconds that each round of writes takes longer, for tests of slow disks.
    pub write_delay: Option<std::sync::Arc<std::sync::atomic::AtomicU64>>,
}

impl Default for LogConfig {
    fn default() -> Self {
        LogConfig { budget_bytes: 1 << 30, file_bytes: 64 << 20, batch_bytes_max: ROUND_BYTES_MAX, write_delay: None }
    }
}

/// One entry of a group's log. The payload is opaque.
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
    /// The first index that is there, or would be next in an empty log.
    pub first: u64,
    /// Index and term of the last record; none in an empty log, also one that was purged to its end.
    pub last: Option<(u64, u64)>,
    pub vote: Option<Vec<u8>>,
    /// A hint: it reaches the disk with the next write.
    pub committed: Option<Vec<u8>>,
}

impl GroupState {
    /// Returns whether there ever was an entry, including purged ones. A vote alone does not count.
    pub fn has_entries(&self) -> bool {
        self.last.is_some() || self.purged.is_some()
    }
}

/// Purge position: everything up to `index` is gone; `note` belongs to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purged {
    pub index: u64,
    pub note: Vec<u8>,
}
