//! assay-storage-disk.
