//! Errors of prompts and functions, from the crates below and from this one.

use assay_node_objects::{ReadError, WriteError};
use assay_node_records::RecordsError;
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FunctionsError {
    #[error(transparent)]
    Records(#[from] RecordsError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Invalid row of a project's prompts, with its index.
    #[error("row {row}: {why}")]
    Row { row: usize, why: RecordsError },
    #[error("{0}")]
    Internal(String),
}

impl FunctionsError {
    pub(crate) fn bad(said: impl Into<String>) -> FunctionsError {
        FunctionsError::Records(RecordsError::BadRequest(said.into()))
    }
}
