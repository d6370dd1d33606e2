//! What can go wrong in a shard, and for whom.

use assay_storage_blobs::BlobError;
use assay_storage_kv::KvError;
use assay_storage_model::Xact;
use assay_storage_model::command::DecodeError;
use assay_storage_model::entry::BadEntry;
use assay_storage_model::merge::MergeError;
use assay_storage_segments::SegmentError;
use thiserror::Error;

use crate::snapshot::SnapshotError;

#[derive(Debug, Error)]
pub enum ShardError {
    /// The replica's own files say something impossible. It must stop and be rebuilt.
    #[error(
        "this replica is damaged: {0}; rebuild it from the others, or restore a backup (`assay doctor` shows more)"
    )]
    Damaged(String),
    #[error("what this replica keeps was written by a newer program: {0}")]
    Newer(String),
    #[error("a snapshot: {0}")]
    Snapshot(#[from] SnapshotError),
    #[error("the kept state: {0}")]
    Kv(#[from] KvError),
    #[error("a segment: {0}")]
    Segment(#[from] SegmentError),
    #[error("a large write: {0}")]
    Blob(#[from] BlobError),
    #[error(transparent)]
    Entry(#[from] BadEntry),
    #[error("a command: {0}")]
    Command(#[from] DecodeError),
    #[error("a merge: {0}")]
    Merge(#[from] MergeError),
    #[error("{doing}: {source}")]
    Io { doing: String, source: std::io::Error },
    /// Reading above the last id needs an advance first, so that the answer can never change.
    #[error("version {asked} is above this shard's last id {last}")]
    NotYet { asked: Xact, last: Xact },
    /// The history asked for was given up.
    #[error("version {asked} is older than what is kept; the oldest version that can be read is {floor}")]
    Past { asked: Xact, floor: Xact },
    #[error("the object was deleted")]
    ObjectGone,
}

impl ShardError {
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> ShardError {
        let doing = doing.into();
        move |source| ShardError::Io { doing, source }
    }
}
