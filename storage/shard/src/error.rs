//! Errors of a shard, grouped by the party that must act.

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
    /// Inconsistency in the replica's own files. The replica must stop and be rebuilt.
    #[error(
        "this replica is damaged: {0}; rebuild it from the others, or restore a backup (`assay doctor` shows more)"
    )]
    Damaged(String),
    /// Data of a newer program, which is intact but which this program must not judge.
    #[error("this replica's data was written by a newer program: {0}")]
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
    /// Version above the last id. It needs an advance first, so that the result can never change.
    #[error("version {asked} is above this shard's last id {last}")]
    NotYet { asked: Xact, last: Xact },
    /// Version whose history was removed.
    #[error("version {asked} is older than the stored history; the oldest readable version is {floor}")]
    Past { asked: Xact, floor: Xact },
    #[error("the object was deleted")]
    ObjectGone,
}

impl ShardError {
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> ShardError {
        let doing = doing.into();
        move |source| ShardError::Io { doing, source }
    }

    /// Returns whether this replica's own files are wrong, as opposed to an invalid request or a temporary read
    /// failure.
    ///
    /// An exhausted table of open files, a refused permission and a newer version are not damage. The match names every
    /// variant, so that a new one must be classified, because a damaged replica may be discarded.
    pub fn is_damage(&self) -> bool {
        match self {
            ShardError::Damaged(_) => true,
            ShardError::Kv(error) => error.is_damage(),
            ShardError::Segment(error) => error.is_damage(),
            // A blob is not part of the replica and is fetched again. The entry that was to be applied is not part of
            // it either.
            ShardError::Blob(_) | ShardError::Entry(_) | ShardError::Command(_) | ShardError::Merge(_) => false,
            // The snapshot of another replica was not installed.
            ShardError::Snapshot(_)
            | ShardError::Newer(_)
            | ShardError::Io { .. }
            | ShardError::NotYet { .. }
            | ShardError::Past { .. }
            | ShardError::ObjectGone => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;

    use super::*;

    /// Regression test: a replica was discarded with its log and votes because a process had too few open files.
    #[test]
    fn only_bytes_that_are_wrong_are_damage() {
        let place = || PathBuf::from("/data/shards/003");
        let busy = || io::Error::from_raw_os_error(24); // EMFILE
        let whole = [
            ShardError::Io { doing: "reading".into(), source: busy() },
            ShardError::Kv(KvError::Io(busy())),
            ShardError::Kv(KvError::InUse { dir: place() }),
            ShardError::Kv(KvError::TooSlow { dir: place(), seconds: 60 }),
            ShardError::Segment(SegmentError::Io { file: place(), source: busy() }),
            ShardError::Segment(SegmentError::Newer { file: place(), found: 2, known: 1 }),
            ShardError::Newer("the counters have version 2".into()),
        ];
        for error in whole {
            assert!(!error.is_damage(), "{error}");
        }
        let damaged = [
            ShardError::Damaged("segment 4 is listed but not described".into()),
            ShardError::Kv(KvError::Damaged { dir: place(), what: "a flipped bit".into() }),
            ShardError::Segment(SegmentError::Damaged { file: place(), offset: 7, what: "a flipped bit".into() }),
        ];
        for error in damaged {
            assert!(error.is_damage(), "{error}");
        }
    }
}
