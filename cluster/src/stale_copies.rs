//! Protection against data directories that were restored from an older copy.

pub(crate) mod acknowledged;
pub(crate) mod on_disk;
pub(crate) mod start_histories;
pub mod starts;
