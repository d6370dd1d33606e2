//! A shard behind consensus.
