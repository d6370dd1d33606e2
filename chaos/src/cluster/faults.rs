//! Faults of a cluster run: their schedule, their injection, and the conductor that runs them.

pub(super) mod conductor;
pub(super) mod fault;
pub(super) mod inject;
