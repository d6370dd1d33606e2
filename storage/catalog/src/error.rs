//! Errors of the catalog. All except a refused export and a failed seal mean that this replica is damaged.

use std::io;
use std::path::PathBuf;

use assay_storage_kv::KvError;
use assay_storage_model::LogPosition;
use assay_storage_model::command::DecodeError;
use assay_storage_model::entry::BadEntry;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum CatalogError {
    #[error("catalog: the log entry at {position} cannot be decoded: {source}")]
    Entry { position: LogPosition, source: BadEntry },
    #[error("catalog: the log entry at {position} has a command that cannot be decoded: {source}")]
    Command { position: LogPosition, source: DecodeError },
    #[error("catalog: the log entry at {0} names a blob, but catalog commands must be inline")]
    BlobEntry(LogPosition),
    #[error("catalog: the entry at {found} was applied after {applied}, entries in between are missing or repeated")]
    OutOfOrder { applied: LogPosition, found: LogPosition },
    #[error("{path}: {what}. Rebuild this replica from the others, or from a backup")]
    Damaged { path: PathBuf, what: String },
    #[error("catalog: the snapshot received is damaged: {0}. Nothing was changed; fetch it again")]
    BadExport(String),
    #[error("catalog: the snapshot would have {bytes} bytes, at most {max} can be sent")]
    ExportTooLarge { bytes: usize, max: usize },
    #[error("catalog: an earlier seal failed; restart the process to seal again")]
    Failed,
    #[error(transparent)]
    Kv(#[from] KvError),
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}
