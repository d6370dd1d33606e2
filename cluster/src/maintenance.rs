//! Background work: reconciliation of actual with wanted state.

pub(crate) mod reconcile;
