//! Background work: seals, compaction, disk space, and reconciliation of actual with wanted state.

pub(crate) mod reconcile;
pub(crate) mod upkeep;
