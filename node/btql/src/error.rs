//! Errors of queries: the problem, its position, and the correction.

use std::fmt;

use thiserror::Error;

/// Upper bound of quoted text in errors.
const QUOTED_CHARS_MAX: usize = 40;

/// Position in a text. Line and column count from one, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl Position {
    pub(crate) fn of(text: &str, offset: usize) -> Position {
        let before = &text[..offset.min(text.len())];
        let line_starts = before.rfind('\n').map_or(0, |newline| newline + 1);
        Position { line: before.matches('\n').count() + 1, column: before[line_starts..].chars().count() + 1 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Error of a query, with a message for its author.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}{what}", .place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default())]
pub struct QueryError {
    pub place: Option<ErrorLocation>,
    pub what: String,
}

/// Location of an error: in a text, or at a member of JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorLocation {
    Text(Position),
    Json(String),
}

impl fmt::Display for ErrorLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorLocation::Text(position) => position.fmt(f),
            ErrorLocation::Json(path) => f.write_str(path),
        }
    }
}

impl QueryError {
    pub fn new(what: impl Into<String>) -> QueryError {
        QueryError { place: None, what: what.into() }
    }

    pub(crate) fn at(text: &str, offset: usize, what: impl Into<String>) -> QueryError {
        QueryError { place: Some(ErrorLocation::Text(Position::of(text, offset))), what: what.into() }
    }

    pub(crate) fn below(path: &str, what: impl Into<String>) -> QueryError {
        let path = if path.is_empty() { "query" } else { path };
        QueryError { place: Some(ErrorLocation::Json(path.to_owned())), what: what.into() }
    }
}

/// So much of a text as fits into a sentence.
pub(crate) fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    format!("`{short}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_from_one() {
        let text = "añb\ncd";
        let places: Vec<_> = [0, 3, 5, 6, 99].map(|offset| Position::of(text, offset)).into();
        let expected = [(1, 1), (1, 3), (2, 1), (2, 2), (2, 3)];
        assert_eq!(places, expected.map(|(line, column)| Position { line, column }));
    }
}
