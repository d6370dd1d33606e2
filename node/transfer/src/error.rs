//! Errors of exports and imports.

use std::io;

use assay_node_objects::{ReadError, WriteError};
use assay_node_records::RecordsError;
use assay_storage_model::ObjectKey;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum TransferError {
    /// I/O error of the file or its peer.
    #[error("the file: {0}")]
    Io(#[from] io::Error),
    /// The file is cut, changed, or of another format.
    #[error("the file is not a whole export of an organization: {0}")]
    Damaged(String),
    #[error("the file is of format {found}, and this version reads format {known}")]
    Format { found: u32, known: u32 },
    #[error(transparent)]
    Records(#[from] RecordsError),
    #[error("{object}: {why}")]
    Read { object: ObjectKey, why: ReadError },
    #[error("{object}: {why}; started again, the import goes on where it stopped")]
    Write { object: ObjectKey, why: WriteError },
    #[error("{0}: what was written to it here is not what the file has: nothing of it was changed")]
    Differs(ObjectKey),
    #[error("datasets and prompts have more than {0} versions together: more than one import maps")]
    Versions(usize),
}

pub(crate) fn damaged(why: impl ToString) -> TransferError {
    TransferError::Damaged(why.to_string())
}
