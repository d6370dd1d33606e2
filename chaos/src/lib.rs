//! assay-chaos.
