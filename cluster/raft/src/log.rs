//! The log of a group: its encoding on disk, openraft's view of it, and what a purge retains.

pub(crate) mod encoding;
pub(crate) mod entry_cache;
pub(crate) mod journal;
pub(crate) mod log_store;
pub(crate) mod purge_retention;
pub(crate) mod recorded_group;
