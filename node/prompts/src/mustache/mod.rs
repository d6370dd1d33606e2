//! Mustache templates in the dialect of prompts: that of mustache.js, without escaping, and with JSON for objects.
//!
//! `parse` makes a tree, `lookup` finds names in the contexts of sections, and `render` writes the text.

mod lookup;
mod parse;
mod render;

use std::fmt;

use thiserror::Error;

pub use parse::MustacheTemplate;
pub(crate) use render::value_of;

/// Levels of sections within sections.
pub const SECTION_DEPTH_MAX: usize = 64;
/// Bytes of the name in a tag.
pub const TAG_NAME_BYTES_MAX: usize = 1024;

/// A template that mustache.js refuses as well.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MustacheError {
    #[error("{at}: unclosed tag: end it with the closing delimiter, by default `}}}}`")]
    UnclosedTag { at: TemplatePosition },
    #[error("{at}: unclosed section {name:?}: end it with a `/{name}` tag")]
    UnclosedSection { at: TemplatePosition, name: String },
    #[error("{at}: unopened section {name:?}: begin it with a `#{name}` tag")]
    UnopenedSection { at: TemplatePosition, name: String },
    #[error("{at}: invalid delimiters {given:?}: write two with a blank between them, such as `<% %>`")]
    Delimiters { at: TemplatePosition, given: String },
    #[error("{at}: sections nest deeper than {SECTION_DEPTH_MAX}")]
    TooDeep { at: TemplatePosition },
    #[error("{at}: the name of the tag is longer than {TAG_NAME_BYTES_MAX} bytes")]
    LongName { at: TemplatePosition },
}

/// Position in a template, from line 1 and column 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplatePosition {
    pub line: usize,
    pub column: usize,
}

impl TemplatePosition {
    fn of(text: &str, at: usize) -> TemplatePosition {
        let before = &text[..at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        TemplatePosition { line, column: 1 + before[line_start..].chars().count() }
    }
}

impl fmt::Display for TemplatePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests;
