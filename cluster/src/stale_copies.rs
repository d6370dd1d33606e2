//! Protection against data directories that were restored from an older copy. A start examines its disk, and other
//! nodes compare their knowledge.

pub(crate) mod on_disk;
mod own_replicas;
