//! Agreement: each group of replicas as one openraft, over our log and our state machines. The only crate that names
//! openraft; what is above it sees [`Group`], what is below it implements [`Machine`].
//!
//! ```text
//! write ─> committer ─> proposer ─> openraft ─> log store ─> log (durable)
//!            │ large                    │ committed
//!            └─> blob first             └─> state machine ─> apply thread ─> Machine ─> outcomes back
//! read ──> fence: the next confirmation round of its group, then wait until that is applied
//! seal ──> openraft builds a "snapshot" ─> seal thread ─> Machine::seal ─> openraft purges the log
//! ```
//! A group of one member goes the same way as one of three: there is no path around consensus.
//!
//! Threads: consensus runs on a runtime of its own that is handed in; every group has one apply thread; one thread
//! seals for all. A failure or a panic on any of them ends the process (`fatal`).

mod admission;
mod ahead;
mod appends;
mod apply;
mod cache;
mod committer;
mod counters;
mod deposed;
mod elections;
mod encoding;
mod error;
mod exports;
pub mod fatal;
mod fence;
mod force;
mod founding;
mod group;
mod handover;
mod inbound;
mod incoming;
mod journal;
mod keep;
mod lag;
mod large;
mod log_store;
mod long_append;
pub mod machine;
mod members;
mod network;
mod peers;
mod proposer;
mod queue;
mod read_index;
mod recorded;
mod runtime;
mod sabotaged;
mod seal;
mod standing;
mod state_machine;
#[cfg(test)]
mod tests;
mod throttle;
mod timing;
mod types;
mod wire;
mod work;

pub use admission::{Admission, Door, WRITE_WAIT_MAX};
pub use apply::ApplyThread;
pub use cache::{CacheBudget, ENTRY_CACHE_BYTES_MAX};
pub use committer::Pending;
pub use counters::{Counters, Counts};
pub use error::{FenceError, SealError};
pub use fatal::{OnFatal, install_abort_hook};
pub use fence::FENCE_WAIT_MAX;
pub use force::{Forced, TERMS_SKIPPED};
pub use founding::{Founding, StartError};
pub use group::{Group, GroupConfig, NodeParts, PROPOSALS_IN_FLIGHT_MAX};
pub use handover::HandOverError;
pub use inbound::ReceiveError;
pub use incoming::IncomingDir;
pub use keep::Keep;
pub use lag::UNAPPLIED_BYTES_MAX;
pub use large::{LargeError, LargeWrite, LargeWrites, NoLargeWrites};
pub use machine::{BadSnapshot, Export, ExportFile, Machine, MachineError};
pub use members::{ChangeError, GroupStatus, Member};
pub use peers::{Chunks, FileWanted, Message, MessageKind, NoPeers, PeerError, Peers, Way};
pub use queue::{COMMAND_BYTES_WAITING_MAX, COMMANDS_WAITING_MAX};
pub use recorded::Recorded;
pub use runtime::seed_elections;
pub use seal::{SEALS_AT_ONCE, SealThreads};
pub use standing::{Acknowledged, LogPlace, Standing, VoteFor, contradiction, contradiction_in};
pub use throttle::Throttle;
pub use timing::{BadTiming, ELECTION_LIMIT, Timing};
pub use work::{Pause, Work};
