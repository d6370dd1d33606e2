//! An organization as one file: everything it owns written to one, and read from one somewhere else. See
//! `node/decisions/0018-an-organization-as-a-file.md`.
//!
//! ```text
//! records + objects ──export──> lines ──file::Writer──> bytes ──file::Reader──> lines ──import──> records + objects
//! ```
//! The form of the file (`file`) and the mapping of versions to their ids in the new place (`versions`) are pure. Both ways
//! hold a page or a write at a time, whatever the organization holds; their calls block, so they run on a thread that may.
//! `protocol` is the conversation of a node with the side that has the file (`client`).

mod client;
mod error;
mod export;
pub mod file;
mod import;
mod protocol;
mod replay;
mod versions;

use assay_node_objects::Objects;
use assay_node_records::Records;
use tokio::runtime::Handle;

pub use client::{LocalFile, converse};
pub use error::TransferError;
pub use export::export;
pub use export::records::RecordLine;
pub use import::{Imported, import};
pub use protocol::{TransferAnswer, TransferRequest, serve};

/// The node as exports and imports read and write it.
#[derive(Clone, Debug)]
pub struct TransferContext {
    pub records: Records,
    pub objects: Objects,
    /// The runtime that records and objects are asked on.
    pub runtime: Handle,
}

/// Called now and then with the progress, for people.
pub type Say<'s> = &'s mut dyn FnMut(&str);
