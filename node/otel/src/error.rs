//! Errors of exports, parents and slugs: the problem, its position, and the correction.

use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OtelError {
    /// The bytes are not a message of the signal in the given encoding.
    #[error("the body is not an OTLP {signal} export in {encoding}: {why}")]
    Malformed { signal: &'static str, encoding: &'static str, why: String },
    /// The request contains too many items of a kind.
    #[error("the export has more than {max} {what}: send it in several requests")]
    TooMany { what: &'static str, max: usize },
    /// The parent from a header or an attribute is invalid.
    #[error(
        "the parent {given:?} {why}; a parent is `project_id:<id>`, `project_name:<name>`, `experiment_id:<id>`, \
         `playground_id:<id>` or the slug of an exported span"
    )]
    Parent { given: String, why: String },
    /// The slug is invalid. The reason includes the position where the reader stopped.
    #[error("the slug of an exported span {0}")]
    Slug(String),
}

impl OtelError {
    pub(crate) fn slug(why: impl Into<String>) -> OtelError {
        OtelError::Slug(why.into())
    }

    /// Returns an error with the beginning of the parent, which may be long.
    pub(crate) fn parent(given: &str, why: impl Into<String>) -> OtelError {
        let given = given.chars().take(GIVEN_CHARS_SHOWN).collect();
        OtelError::Parent { given, why: why.into() }
    }
}

/// Number of characters of a parent in error texts.
const GIVEN_CHARS_SHOWN: usize = 64;
