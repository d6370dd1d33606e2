//! assay-storage-blobs.
