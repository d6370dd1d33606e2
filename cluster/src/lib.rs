//! assay-cluster.
