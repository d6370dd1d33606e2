//! The files that a node keeps about itself in its data directory: the format and the lock, its identity, its peers and
//! replicas, its starts, and what followers acknowledged to it.
//!
//! Each file is text with a checksum and is replaced whole. [`starts`] decides by two of them whether the directory is
//! an older copy. Nothing here sends or waits.

pub mod acknowledged;
mod checksummed_file;
pub mod data_dir;
pub mod node_files;
pub mod starts;

pub use acknowledged::AcknowledgedTable;
pub use data_dir::{FORMAT_VERSION, Format, HomeError, Lock, read_format};
pub use node_files::{KeptReplica, KeptState, NodeFile, NodeFiles, read_node, read_replicas};
