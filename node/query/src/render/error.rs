//! Errors of rendering a response.

use std::io;

use thiserror::Error;
use tokio::task::JoinError;

use super::FormatError;
use crate::{AskError, EngineError};

/// Error of rendering a response, possibly after a part of it was sent.
#[derive(Debug, Error)]
pub enum RenderError {
    #[error(transparent)]
    Query(#[from] AskError),
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The envelope cannot be encoded.
    #[error(transparent)]
    Envelope(serde_json::Error),
    #[error(transparent)]
    Compression(io::Error),
    /// A rendering task ended without a part.
    #[error(transparent)]
    Task(JoinError),
    /// No memory for a part became available in time.
    #[error("{0}")]
    NoMemory(String),
    /// The renderer is in an invalid state.
    #[error("{0}")]
    Internal(&'static str),
}

impl From<EngineError> for RenderError {
    fn from(error: EngineError) -> RenderError {
        RenderError::Query(error.into())
    }
}
