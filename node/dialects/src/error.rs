//! Errors of reading and writing bodies.

use crate::Dialect;

/// A body that cannot be read, or a request that a dialect cannot express.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DialectError {
    #[error("{path}: expected {expected}")]
    Malformed { path: String, expected: &'static str },
    #[error("{path}: {what} cannot be sent to this model")]
    Unsupported { path: String, what: String },
    #[error("the stream of the model server cannot be read: {0}")]
    Stream(String),
    #[error("{dialect:?}: more than {max} {of}")]
    TooMany { dialect: Dialect, of: &'static str, max: usize },
}

impl DialectError {
    pub fn malformed(path: impl Into<String>, expected: &'static str) -> DialectError {
        DialectError::Malformed { path: path.into(), expected }
    }

    pub fn unsupported(path: impl Into<String>, what: impl Into<String>) -> DialectError {
        DialectError::Unsupported { path: path.into(), what: what.into() }
    }
}
