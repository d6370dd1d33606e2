//! Errors of exports and imports.

use std::io;

use assay_node_files::FilesError;
use assay_node_objects::{ReadError, WriteError};
use assay_node_records::RecordsError;
use assay_storage_model::ObjectKey;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum TransferError {
    /// I/O error of the file or its peer.
    #[error("the file: {0}")]
    Io(#[from] io::Error),
    /// The file is truncated, changed, or in another format.
    #[error("the file is not a complete export of an organization: {0}")]
    Damaged(String),
    #[error("the file is of format {found}, and this version reads format {known}")]
    Format { found: u32, known: u32 },
    #[error(transparent)]
    Records(#[from] RecordsError),
    #[error("files: {0}")]
    Files(#[from] FilesError),
    #[error("{object}: {why}")]
    Read { object: ObjectKey, why: ReadError },
    #[error("{object}: {why}. Start the import again: it continues where it stopped")]
    Write { object: ObjectKey, why: WriteError },
    #[error("{0}: its rows here differ from those of the file, so it was not changed")]
    Differs(ObjectKey),
    #[error("datasets and prompts together have more than {0} versions, which is the maximum of one import")]
    Versions(usize),
}

pub(crate) fn damaged(why: impl ToString) -> TransferError {
    TransferError::Damaged(why.to_string())
}
