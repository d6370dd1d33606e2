//! How a segment is described in the manifest.
