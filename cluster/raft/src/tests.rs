//! Tests of whole groups: openraft's storage suite over this crate's store, and groups of one member that write, read,
//! seal, stop and restart.

mod group;
mod members;
mod stalled;
mod suite;

use std::path::Path;
use std::sync::Arc;

use assay_storage_disk::RealDisk;
use assay_storage_log::{Log, LogConfig};

/// Opens a log below the directory of a test. A log keeps a file beside its own directory.
fn open_log(dir: &Path) -> Log {
    Log::open(Arc::new(RealDisk), &dir.join("log"), LogConfig::default()).expect("the log opens")
}
