//! Reasons why a scorer gives no score.

use serde_json::Value;
use thiserror::Error;

/// Reason why a scorer gives no score: what failed, where, and what is valid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScorerError {
    /// No value for an argument that the scorer needs; null counts as none (F-52).
    #[error("{scorer} needs `{argument}`, which is missing or null")]
    MissingArgument { scorer: &'static str, argument: &'static str },
    /// Argument of a form that the scorer does not take.
    #[error("{scorer}: `{path}` is {found}; it must be {expected}")]
    InvalidArgument { scorer: &'static str, path: String, found: String, expected: &'static str },
    /// Work beyond a limit.
    #[error("{scorer}: {subject} exceeds the limit of {max}")]
    LimitExceeded { scorer: &'static str, subject: &'static str, max: u64 },
    /// JSON Schema that cannot be used.
    #[error("{scorer}: `schema` is no valid JSON Schema: {reason}")]
    InvalidSchema { scorer: &'static str, reason: String },
    /// Response of a model that the scorer cannot use.
    #[error("{scorer}: in the model's response `{path}` must be {expected}")]
    InvalidResponse { scorer: &'static str, path: String, expected: &'static str },
    /// Name of a judge, of a function of another type, or of none.
    #[error("`{name}` is no scorer that is computed; judges are prompts")]
    NotComputed { name: String },
}

impl ScorerError {
    pub(crate) fn invalid(scorer: &'static str, path: &str, value: &Value, expected: &'static str) -> ScorerError {
        ScorerError::InvalidArgument { scorer, path: path.to_owned(), found: kind(value).to_owned(), expected }
    }

    pub(crate) fn response(scorer: &'static str, path: impl Into<String>, expected: &'static str) -> ScorerError {
        ScorerError::InvalidResponse { scorer, path: path.into(), expected }
    }
}

/// Returns the kind of a JSON value, with its article.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
