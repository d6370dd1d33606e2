//! assay-storage-shard.
