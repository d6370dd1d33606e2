//! Errors of reads and changes of records, with one variant for each kind of refusal.

use assay_cluster::FenceError;
use assay_node_secrets::SecretsError;
use assay_node_shapes::ShapeError;
use assay_storage_model::{NotWritten, WriteFailure};
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordsError {
    /// The request is invalid. The message names the field.
    #[error("{0}")]
    BadRequest(String),
    /// The credential is missing or unknown.
    #[error("{0}")]
    Unauthenticated(String),
    /// The object is visible to the caller, but the action is not allowed.
    #[error("{0}")]
    Forbidden(String),
    /// The object does not exist, or is not visible to the caller.
    #[error("{0}")]
    NotFound(String),
    /// The API does not implement this feature yet.
    #[error("{0}")]
    NotServed(String),
    /// Another record has the name.
    #[error("{0}")]
    Taken(String),
    #[error("{0}")]
    TooLarge(String),
    /// Nothing was written; a retry may succeed.
    #[error("{0}")]
    Busy(String),
    /// The node cannot serve the request at the moment. Nothing was written.
    #[error("{0}")]
    Unavailable(String),
    /// The outcome of a write is unknown; a retry is safe.
    #[error("{0}")]
    Unknown(String),
    /// The disk has no space for writes.
    #[error("{0}")]
    NoSpace(String),
    /// Stored data or a response is invalid, which is a fault of this program or its disk.
    #[error("{0}")]
    Internal(String),
}

impl From<ShapeError> for RecordsError {
    fn from(error: ShapeError) -> RecordsError {
        RecordsError::BadRequest(error.0)
    }
}

impl RecordsError {
    /// Returns whether newer state could turn the refusal into a success.
    pub fn may_be_stale(&self) -> bool {
        matches!(self, RecordsError::Unauthenticated(_) | RecordsError::NotFound(_) | RecordsError::Forbidden(_))
    }
}

impl From<WriteFailure> for RecordsError {
    fn from(error: WriteFailure) -> RecordsError {
        let said = error.to_string();
        match error {
            WriteFailure::Unknown { .. } => RecordsError::Unknown(said),
            WriteFailure::NotWritten(NotWritten::Busy(_)) => RecordsError::Busy(said),
            WriteFailure::NotWritten(NotWritten::NoSpace(_)) => RecordsError::NoSpace(said),
            WriteFailure::NotWritten(NotWritten::TooLarge { .. }) => RecordsError::TooLarge(said),
            WriteFailure::NotWritten(NotWritten::Empty) => RecordsError::Internal(said),
            WriteFailure::NotWritten(
                NotWritten::NotLeader | NotWritten::NoQuorum(_) | NotWritten::Closing | NotWritten::Failed(_),
            ) => RecordsError::Unavailable(said),
        }
    }
}

impl From<FenceError> for RecordsError {
    fn from(error: FenceError) -> RecordsError {
        RecordsError::Unavailable(format!("the catalog is unavailable: {error}"))
    }
}

impl From<SecretsError> for RecordsError {
    fn from(error: SecretsError) -> RecordsError {
        match error {
            SecretsError::Unavailable(why) => RecordsError::Unavailable(why),
            SecretsError::Busy(why) => RecordsError::Busy(why),
            SecretsError::Internal(why) => RecordsError::Internal(why),
        }
    }
}
