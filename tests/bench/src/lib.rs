//! assay-bench.
