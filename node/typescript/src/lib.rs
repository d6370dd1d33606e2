//! Removal of types from TypeScript code: types become white space, so that lines and columns stay as they are.
//!
//! Nothing is transformed. Syntax with an effect at run time that JavaScript lacks, such as `enum`, is an error that
//! says what to write instead.
//!
//! | module | subject |
//! |---|---|
//! | `limits` | bounds of the source text, and the stack for a parser that recurses |
//! | `syntax` | parse attempts as JavaScript and as TypeScript |
//! | `source_text` | white space, comments, words and lines of the source text |
//! | `eraser` | visitor that finds the types in expressions, functions and statements |
//! | `declarations` | statements that exist only for the type checker |
//! | `classes` | modifiers, overloads and fields of classes |
//! | `blanks` | replacement of parts of the text by white space |
//! | `outline` | comparison of the syntax trees before and after |
//! | `error` | errors with their positions |
//!
//! Code that is valid JavaScript is returned unchanged. So `a<b>(c)` is a call with a type argument only where
//! something else in the code is TypeScript.

mod blanks;
mod classes;
mod declarations;
mod eraser;
mod error;
mod limits;
mod outline;
mod source_text;
mod syntax;

use oxc_allocator::Allocator;

use crate::blanks::Width;
use crate::eraser::Eraser;
use crate::outline::Outline;
use crate::syntax::{Language, Parsed};

pub use crate::error::{CodePosition, TypeScriptError};
pub use crate::limits::{SOURCE_BYTES_MAX, SYNTAX_UNITS_MAX};

/// JavaScript with the lines and columns of the code it was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrippedCode {
    pub text: String,
    /// Whether the code has to run as a module: it has imports, exports, `import.meta` or top-level `await`.
    pub is_module: bool,
}

/// Removes the types from `source`.
///
/// Parses on a thread of its own, because the parser recurses as deep as the code nests.
pub fn strip(source: &str) -> Result<StrippedCode, TypeScriptError> {
    let stack = limits::stack_of(source)?;
    limits::on_thread(stack, || strip_here(source))?
}

fn strip_here(source: &str) -> Result<StrippedCode, TypeScriptError> {
    let allocator = Allocator::default();
    if let Ok(javascript) = syntax::parse(&allocator, source, Language::JavaScript)
        && Eraser::over(source, &javascript.program).is_ok_and(|blanks| blanks.is_empty())
    {
        return Ok(StrippedCode { text: source.to_owned(), is_module: javascript.is_module });
    }
    let typescript = syntax::parse(&allocator, source, Language::TypeScript).map_err(|failure| {
        syntax::find_jsx(&allocator, source).map_or_else(|| failure.into_error(source), |at| error::jsx(source, at))
    })?;
    let blanks = Eraser::over(source, &typescript.program)?;
    let same_bytes = blanks.apply(source, Width::Bytes);
    let regrouped = |at: u32| error::regrouped(source, blanks.nearest(at, at).unwrap_or(at));
    let Parsed { program, is_module } =
        syntax::parse(&allocator, &same_bytes, Language::JavaScript).map_err(|failure| regrouped(failure.offset))?;
    let before = Outline::of(&typescript.program, &blanks);
    let after = Outline::of(&program, &blanks);
    if let Some((start, end)) = before.difference(&after) {
        return Err(error::regrouped(source, blanks.nearest(start, end).unwrap_or(start)));
    }
    Ok(StrippedCode { text: blanks.apply(source, Width::Utf16), is_module })
}
