//! Clients of a storm, what they share, and the workloads they run.

pub(super) mod client;
pub(super) mod rows;
pub(super) mod shared;
pub(super) mod workloads;
