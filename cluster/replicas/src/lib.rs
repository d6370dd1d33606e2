//! The replicas that a node hosts, and their upkeep: seals, compaction, erasure, disk space, blobs that nothing needs.
//!
//! Works on what is here alone: consensus is asked to seal and to purge, and nothing is sent to other nodes.

mod held_blobs;
mod registry;
mod suspects;
mod upkeep;

pub use held_blobs::BlobWrites;
pub use registry::{HostedReplica, Replicas};
pub use suspects::Suspects;
pub use upkeep::{Upkeep, UpkeepConfig, UpkeepCounts, UpkeepParts};
