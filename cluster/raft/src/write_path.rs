//! The write path: admission, the queue of commands, entries made of them, and their proposal to consensus.

pub(crate) mod admission;
pub(crate) mod command_queue;
pub(crate) mod committer;
pub(crate) mod large_writes;
pub(crate) mod proposer;
