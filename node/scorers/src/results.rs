//! Results of scorers, classifiers and tag functions: what is valid, and what of it belongs into rows.

mod classifications;
mod scores;

use serde_json::Value;
use thiserror::Error;

pub use classifications::{Classification, Classifications, classifier_result, merged_tags, tag_result};
pub use scores::{ScorerResult, check_direct_answer, scorer_result};

use crate::error::kind;

/// Scores, classifications or tags in one result.
pub const RESULT_ENTRIES_MAX: usize = 1_000;
/// Bytes of the name of a score, a classification or a tag.
pub const RESULT_NAME_BYTES_MAX: usize = 1_024;

/// Result that is not valid: where, and what would be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the result of `{function}` has {found} at {path}; it must be {expected}")]
pub struct ResultError {
    pub function: String,
    /// Path within the result; `the top` for the result itself.
    pub path: String,
    pub found: String,
    pub expected: &'static str,
}

impl ResultError {
    fn new(function: &str, path: &str, found: &Value, expected: &'static str) -> ResultError {
        let found = match found {
            Value::Number(number) => number.to_string(),
            Value::Object(members) if members.is_empty() => "an empty object".to_owned(),
            other => kind(other).to_owned(),
        };
        let path = if path.is_empty() { "the top".to_owned() } else { format!("`{path}`") };
        ResultError { function: function.to_owned(), path, found, expected }
    }
}

/// Returns a path within a result.
fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Returns a name, if it is not empty and not too long.
fn valid_name(value: &Value) -> Option<&str> {
    value.as_str().filter(|name| !name.is_empty() && name.len() <= RESULT_NAME_BYTES_MAX)
}

/// Returns the entries of a list, or an error where there are too many.
fn entries<'a>(function: &str, value: &'a Value, listed: &'a [Value]) -> Result<&'a [Value], ResultError> {
    if listed.len() > RESULT_ENTRIES_MAX {
        return Err(ResultError::new(function, "", value, "an array of at most 1000 entries"));
    }
    Ok(listed)
}
