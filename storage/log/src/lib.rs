//! assay-storage-log.
