//! The durable log and the votes of all groups of a node, in one raft-engine: what `done(Ok)` has said survives a power cut.
//!
//! The only crate that names raft-engine. Payloads are opaque. Around the engine stand four things of ours:
//!
//! - a frame about every record (`frame`): group, index, term, the checksum of the record before it and its own, so
//!   that a wrong, stale or missing record is seen by us and not only by the engine's checksum of a block;
//! - one writer thread, `assay-log` (`writer`): it takes what waits from all groups, and one fsync answers for all;
//! - a watermark beside the directory (`watermark`): how far the log was durable when somebody was last told so;
//! - a read-only survey of every byte before the engine opens (`scan`, `recovery_scan`, `integrity`), because the engine itself
//!   drops everything behind the first bad batch of its last file, other groups' votes included, without a word.
//!
//! # Order of a write, and what a crash leaves
//!
//! 1. Batches are written (one per group, so that reading one group back does not read the others' bytes), unsynced.
//!    A crash leaves any part of them above the watermark; open cuts at the first bad batch and says so. Nobody was told.
//! 2. One fsync. A crash after it leaves records above the watermark that are whole: they are kept.
//! 3. The watermark is overwritten in place, not synced. A power cut leaves the new one or an older one: it is never
//!    ahead of step 2.
//! 4. The state that readers see moves, and the completions run in order.
//!
//! A truncation lowers the watermark first, synced, then writes its mark: a crash between leaves a longer log than the
//! watermark asks for, which is what an unwritten truncation looks like. A purge is a note beside the records; the
//! engine's own compaction may be forgotten after its file goes, so open repeats it from the note.
//!
//! # When it fails
//!
//! A failed write or sync is never retried by us: everyone who waits, and everyone who comes later, gets
//! [`LogError::Failed`], [`Log::failed`] says why, and the owner ends the process. (raft-engine tries a write that found
//! the disk full once more, in a new file; that is sound, for the cut file is synced and nobody was told.)
//!
//! # Bounds
//!
//! `append` and its like never block and never wait: consensus calls them from async code. They put work into an unbounded
//! channel, so the bound is outside: **a group has one append in flight**, of at most what its caller batches (1 MiB
//! entries). As a last resort work beyond [`QUEUED_BYTES_MAX`] is refused at once, unwritten.

pub mod check;
mod crc32;
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
pub type Done = Box<dyn FnOnce(Result<(), LogError>) + Send>;

/// Called after something was put into the inbox of a simulated log.
pub type Arrived = std::sync::Arc<dyn Fn() + Send + Sync>;

/// What one call of [`Log::pinned`] gives back.
pub const GIVEN_BACK_BYTES_MAX: u64 = 128 << 20;

/// How much the log may hold and in which portions.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// From this size on [`Log::pinned`] gives space back and names who holds it.
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

/// What a group's log holds, as far as it is durable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupState {
    /// What the last purge left behind.
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
    /// Whether there ever was an entry, also where all of them were purged. A vote alone is none.
    pub fn has_entries(&self) -> bool {
        self.last.is_some() || self.purged.is_some()
    }
}

/// Everything up to `index` was given up; `note` is the caller's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purged {
    pub index: u64,
    pub note: Vec<u8>,
}
