//! Writes that are too large for the log, stored as a blob that the entry names.
//!
//! Consensus reports when an entry begins and ceases to name a blob. The store counts references, and deletes
//! unreferenced blobs.

use std::any::Any;
use std::fmt;

use assay_storage_model::catalog::CATALOG_COMMAND_BYTES_MAX;
use assay_storage_model::command::COMMAND_BYTES_MAX;
use assay_storage_model::entry::{Entry, INLINE_WRITE_BYTES_MAX};
use assay_storage_model::{GroupId, NodeId};
use bytes::Bytes;
use futures::future::BoxFuture;
use openraft::EntryPayload;
use thiserror::Error;

use crate::types::{Consensus, EntryBytes};

pub trait LargeWrites: Send + Sync + fmt::Debug + 'static {
    /// Returns the size above which commands are stored as a blob.
    fn inline_bytes_max(&self) -> usize {
        INLINE_WRITE_BYTES_MAX
    }
    /// Returns the size above which commands are refused.
    fn command_bytes_max(&self) -> usize {
        COMMAND_BYTES_MAX
    }
    /// Stores `framed` durably. It stays while the returned hold exists or an entry names it. Blocking.
    fn put(&self, framed: &Bytes) -> Result<LargeWrite, LargeError>;
    /// Waits until a majority of this node and `others` has the blob. Each keeps it for a while until an entry names
    /// it.
    fn spread(&self, hash: [u8; 32], length: u64, others: Vec<NodeId>) -> BoxFuture<'static, Result<(), LargeError>>;
    /// Waits until the blob is here and verified, and fetches it from one of `others` if necessary.
    ///
    /// Waits while no node has it, because an entry that cannot be applied must not be skipped.
    fn ensure(&self, hash: [u8; 32], length: u64, others: Vec<NodeId>) -> BoxFuture<'static, Result<(), LargeError>>;
    /// Does the same for an entry that is not in the log yet. The blob stays for a while until an entry names it.
    fn expect(&self, hash: [u8; 32], length: u64, others: Vec<NodeId>) -> BoxFuture<'static, Result<(), LargeError>>;
    /// Records that the entry of `group` at `index`, which is about to be written to the log, names this blob.
    fn named(&self, group: GroupId, index: u64, hash: [u8; 32]);
    /// Records that the entries of `group` up to and including `index` are no longer in the log.
    fn purged(&self, group: GroupId, index: u64);
    /// Records that the entries of `group` from `index` on are no longer in the log.
    fn truncated(&self, group: GroupId, index: u64);
}

/// Durable blob of a large write.
pub struct LargeWrite {
    pub hash: [u8; 32],
    pub length: u64,
    /// Guard that keeps the blob until an entry names it.
    pub hold: Box<dyn Any + Send>,
}

impl fmt::Debug for LargeWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LargeWrite").field("length", &self.length).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, Error)]
pub enum LargeError {
    #[error("this group does not accept writes above {0} bytes")]
    TooLarge(usize),
    #[error("no space for a large write: {0}")]
    NoSpace(String),
    /// Too few other nodes stored the blob.
    #[error("{0}")]
    NoQuorum(String),
    /// The disk failed, so the node must not continue.
    #[error("a large write could not be stored: {0}")]
    Failed(String),
}

/// Exact size of an entry that names a blob.
const BLOB_ENTRY_BYTES: usize = 41;

/// Returns the blob that an entry names, and its length, if it names one.
pub(crate) fn blob_named(payload: &EntryPayload<Consensus>) -> Option<([u8; 32], u64)> {
    match payload {
        EntryPayload::Normal(EntryBytes(bytes)) if bytes.len() == BLOB_ENTRY_BYTES => match Entry::decode(bytes) {
            Ok(Entry::Blob { hash, length }) => Some((hash, length)),
            Ok(Entry::Commands(_)) | Err(_) => None,
        },
        _ => None,
    }
}

/// Implementation for the catalog, whose commands are all inline. They are small, with rare exceptions of a megabyte.
#[derive(Debug)]
pub struct NoLargeWrites;

impl LargeWrites for NoLargeWrites {
    fn inline_bytes_max(&self) -> usize {
        CATALOG_COMMAND_BYTES_MAX
    }

    fn command_bytes_max(&self) -> usize {
        CATALOG_COMMAND_BYTES_MAX
    }

    fn put(&self, _framed: &Bytes) -> Result<LargeWrite, LargeError> {
        Err(LargeError::TooLarge(CATALOG_COMMAND_BYTES_MAX))
    }

    fn spread(
        &self,
        _hash: [u8; 32],
        _length: u64,
        _others: Vec<NodeId>,
    ) -> BoxFuture<'static, Result<(), LargeError>> {
        Box::pin(async { Err(LargeError::TooLarge(CATALOG_COMMAND_BYTES_MAX)) })
    }

    fn ensure(
        &self,
        _hash: [u8; 32],
        _length: u64,
        _others: Vec<NodeId>,
    ) -> BoxFuture<'static, Result<(), LargeError>> {
        Box::pin(async { Err(LargeError::Failed("an entry of a group without large writes names a blob".into())) })
    }

    fn expect(&self, hash: [u8; 32], length: u64, others: Vec<NodeId>) -> BoxFuture<'static, Result<(), LargeError>> {
        self.ensure(hash, length, others)
    }

    fn named(&self, group: GroupId, index: u64, _hash: [u8; 32]) {
        tracing::error!(%group, index, "an entry of a group without large writes names a blob");
    }

    fn purged(&self, _group: GroupId, _index: u64) {}

    fn truncated(&self, _group: GroupId, _index: u64) {}
}
