//! assay-cluster-raft.
