//! Protection against data directories that were restored from an older copy: what a start finds on its disk, and what
//! other nodes compare.

pub(crate) mod on_disk;
mod own_replicas;
