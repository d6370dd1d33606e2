//! Opening of a node: its data directory, its own files, and the order of a start.

pub(crate) mod checksummed_file;
pub(crate) mod data_dir;
pub(crate) mod node_files;
pub(crate) mod open;
