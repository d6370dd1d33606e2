//! assay-storage-segments.
