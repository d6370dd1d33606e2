//! assay-storage-kv.
