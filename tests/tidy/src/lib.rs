//! assay-tests-tidy.
