//! An organization as one file: everything it owns written to one, and read from one somewhere else. See
//! `node/decisions/0018-an-organization-as-a-file.md`.
//!
//! ```text
//! records + objects ──export──> lines ──file::Writer──> bytes ──file::Reader──> lines ──import──> records + objects
//! ```
//! What is pure: the form of the file (`file`), which of its versions have which ids in the new place (`versions`). Both ways
//! hold a page or a write at a time, whatever the organization holds; their calls block, so they run on a thread that may.

mod error;
mod export;
pub mod file;
mod import;
mod replay;
mod versions;

use assay_node_objects::Objects;
use assay_node_records::Records;
use tokio::runtime::Handle;

pub use error::TransferError;
pub use export::export;
pub use import::{Imported, import};

/// What both ways stand on.
#[derive(Clone, Debug)]
pub struct Place {
    pub records: Records,
    pub objects: Objects,
    /// Where records and objects are asked.
    pub runtime: Handle,
}

/// Told now and then how far it is.
pub type Say<'s> = &'s mut dyn FnMut(&str);
