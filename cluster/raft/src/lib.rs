//! Consensus: one openraft instance for each group of replicas, over this project's log and state machines.
//!
//! No other crate names openraft. Upper layers use [`Group`], and lower layers implement [`Machine`].
//!
//! ```text
//! write ─> committer ─> proposer ─> openraft ─> log store ─> log (durable)
//!            │ large                    │ committed
//!            └─> blob first             └─> state machine ─> apply thread ─> Machine ─> outcomes back
//! read ──> fence: the next confirmation round of its group, then wait until that is applied
//! seal ──> openraft builds a "snapshot" ─> seal thread ─> Machine::seal ─> openraft purges the log
//! ```
//! A group of one member uses the same path as a group of three. No write bypasses consensus.
//!
//! Consensus runs on its own runtime, which the caller provides. Every group has one apply thread, and all groups share
//! the seal threads. A failure or a panic on any of them ends the process (`fatal`).

mod apply;
mod counters;
mod error;
pub mod fatal;
mod group;
mod leadership;
mod log;
mod membership;
mod network;
mod reads;
mod runtime;
mod sabotaged;
mod snapshot_transfer;
#[cfg(test)]
mod tests;
mod timing;
mod types;
mod work;
mod write_path;

pub use apply::apply_thread::ApplyThread;
pub use apply::backlog::UNAPPLIED_BYTES_MAX;
pub use apply::machine;
pub use apply::machine::{BadSnapshot, Export, ExportFile, Machine, MachineError};
pub use apply::seal::{SEALS_AT_ONCE, SealThreads};
pub use counters::{Counters, Counts};
pub use error::{FenceError, SealError};
pub use fatal::{OnFatal, install_abort_hook};
pub use group::{Group, GroupConfig, NodeParts, PROPOSALS_IN_FLIGHT_MAX};
pub use leadership::handover::{HandOverError, Impairment};
pub use log::applied_entries::{AppliedContent, AppliedEntries, AppliedEntry};
pub use log::entry_cache::{CacheBudget, ENTRY_CACHE_BYTES_MAX};
pub use log::purge_retention::LogRetention;
pub use log::recorded_group::RecordedGroup;
pub use membership::bootstrap::{Bootstrap, StartError};
pub use membership::forced_recovery::{ForcedRecovery, TERMS_SKIPPED};
pub use membership::hard_state::{Acknowledged, HardState, LogPlace, VoteFor, contradiction, contradiction_in};
pub use membership::members::{ChangeError, GroupStatus, Member};
pub use network::inbound::ReceiveError;
pub use network::peers::{Chunks, FileWanted, Message, MessageKind, NoPeers, PeerError, Peers, Way};
pub use reads::fence::FENCE_WAIT_MAX;
pub use runtime::seed_elections;
pub use snapshot_transfer::imports::IncomingDir;
pub use snapshot_transfer::throttle::Throttle;
pub use timing::{BadTiming, ELECTION_LIMIT, Timing};
pub use work::{Pause, Work};
pub use write_path::admission::{Admission, AdmissionState, WRITE_WAIT_MAX};
pub use write_path::command_queue::{COMMAND_BYTES_WAITING_MAX, COMMANDS_WAITING_MAX};
pub use write_path::committer::Pending;
pub use write_path::large_writes::{LargeError, LargeWrite, LargeWrites, NoLargeWrites};
