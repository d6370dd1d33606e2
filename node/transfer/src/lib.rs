//! Export of an organization to a single file, and import of such a file.
//!
//! `node/decisions/0018-an-organization-as-a-file.md` describes the design.
//!
//! ```text
//! records + objects ──export──> lines ──file::Writer──> bytes ──file::Reader──> lines ──import──> records + objects
//! ```
//! The modules `file` and `versions` only transform their input. They contain the format of the file and the mapping of
//! versions to local ones. Exports and imports hold a single page or write at a time, independent of the organization's
//! size. Their calls block, so they run on a thread for blocking work. `protocol` is the protocol between a node and
//! the side that has the file (`client`).

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

/// Access of exports and imports to the node.
#[derive(Clone, Debug)]
pub struct TransferContext {
    pub records: Records,
    pub objects: Objects,
    /// Runtime for requests to records and objects.
    pub runtime: Handle,
}

/// Function that receives progress messages for people from time to time.
pub type Say<'s> = &'s mut dyn FnMut(&str);
