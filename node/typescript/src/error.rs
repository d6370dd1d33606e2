//! Errors of the removal of types, with the position in the code.

use std::fmt;

use thiserror::Error;

use crate::limits::{SOURCE_BYTES_MAX, SYNTAX_UNITS_MAX};

/// Line and column of a character in the code, counted from 1; columns count UTF-16 units, as editors do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePosition {
    pub line: usize,
    pub column: usize,
}

impl CodePosition {
    /// Position of the byte at `offset`, or of the end of the text.
    pub(crate) fn at(source: &str, offset: u32) -> Self {
        let before = &source[..source.floor_char_boundary(offset as usize)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
        Self { line, column: 1 + before[line_start..].encode_utf16().count() }
    }
}

impl fmt::Display for CodePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Reason why the types of some code cannot be removed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TypeScriptError {
    #[error("the code has {bytes} bytes, at most {SOURCE_BYTES_MAX} are allowed")]
    TooLong { bytes: usize },
    #[error(
        "the code has {units} operators, opening brackets and keywords, at most {SYNTAX_UNITS_MAX} are allowed: \
         move data into strings or split the code"
    )]
    TooComplex { units: usize },
    #[error("syntax error at {position}: {message}")]
    Syntax { position: CodePosition, message: String },
    #[error("{syntax} at {position} cannot be removed like a type: {instead}")]
    Unsupported { position: CodePosition, syntax: &'static str, instead: &'static str },
    #[error(
        "the type at {position} cannot be removed without a change of meaning: put the expression before or after it into parentheses"
    )]
    Regrouped { position: CodePosition },
    #[error("no thread could be started to parse the code: {reason}")]
    Thread { reason: String },
}

/// Error for syntax with an effect at run time.
pub(crate) fn unsupported(source: &str, offset: u32, syntax: &'static str, instead: &'static str) -> TypeScriptError {
    TypeScriptError::Unsupported { position: CodePosition::at(source, offset), syntax, instead }
}

pub(crate) fn jsx(source: &str, offset: u32) -> TypeScriptError {
    unsupported(source, offset, "JSX", "call the functions that build the elements")
}

pub(crate) fn regrouped(source: &str, offset: u32) -> TypeScriptError {
    TypeScriptError::Regrouped { position: CodePosition::at(source, offset) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_utf16_units_and_lines_count_from_one() {
        let source = "ab\n\u{1f600}é x";
        assert_eq!(CodePosition::at(source, 0), CodePosition { line: 1, column: 1 });
        assert_eq!(CodePosition::at(source, 9), CodePosition { line: 2, column: 4 });
        assert_eq!(CodePosition::at(source, 99), CodePosition { line: 2, column: 6 });
    }
}
