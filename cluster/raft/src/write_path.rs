//! Write path: admission, command queue, batching into entries, and proposal to consensus.

pub(crate) mod admission;
pub(crate) mod command_queue;
pub(crate) mod committer;
pub(crate) mod large_writes;
pub(crate) mod proposer;
