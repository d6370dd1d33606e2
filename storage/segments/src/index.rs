//! Indexes of the sidecar, in construction and as bytes.
//!
//! Ids and traces are in pages sorted by hash, with a filter in front.

pub(crate) mod builder;
pub(crate) mod filter;
pub(crate) mod hash;
pub(crate) mod keys;
pub(crate) mod page;
