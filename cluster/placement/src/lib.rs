//! assay-cluster-placement.
