//! Clients of a run, their shared state, and their workloads.

pub(super) mod client;
pub(super) mod rows;
pub(super) mod shared;
pub(super) mod workloads;
