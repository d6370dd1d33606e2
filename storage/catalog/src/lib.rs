//! assay-storage-catalog.
