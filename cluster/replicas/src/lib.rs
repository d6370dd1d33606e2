//! Replicas that a node hosts, and their upkeep: seals, compaction, erasure, disk space, and unused blobs.
//!
//! The crate works only on local data. It requests seals and purges from consensus, and sends nothing to other nodes.

mod held_blobs;
mod registry;
mod suspects;
mod upkeep;

pub use held_blobs::BlobWrites;
pub use registry::{HostedReplica, Replicas};
pub use suspects::Suspects;
pub use upkeep::{Upkeep, UpkeepConfig, UpkeepCounts, UpkeepParts};
