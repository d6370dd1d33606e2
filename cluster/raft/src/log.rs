//! The log of a group: its encoding on disk, the adapter to openraft, and retention at a purge.

pub(crate) mod applied_entries;
pub(crate) mod encoding;
pub(crate) mod entry_cache;
pub(crate) mod journal;
pub(crate) mod log_store;
pub(crate) mod purge_retention;
pub(crate) mod recorded_group;
