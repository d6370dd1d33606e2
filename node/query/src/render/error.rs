//! Failures to render a response.

use std::io;

use thiserror::Error;
use tokio::task::JoinError;

use super::FormatError;
use crate::{AskError, EngineError};

/// Failure to render a response, or to render it to its end.
#[derive(Debug, Error)]
pub enum RenderError {
    #[error(transparent)]
    Query(#[from] AskError),
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The envelope does not encode.
    #[error(transparent)]
    Envelope(serde_json::Error),
    #[error(transparent)]
    Compression(io::Error),
    /// A task that made a part ended without one.
    #[error(transparent)]
    Task(JoinError),
    /// There was no memory for a part in time.
    #[error("{0}")]
    NoMemory(String),
    /// The renderer is in a state that it should not be in.
    #[error("{0}")]
    Internal(&'static str),
}

impl From<EngineError> for RenderError {
    fn from(error: EngineError) -> RenderError {
        RenderError::Query(error.into())
    }
}
