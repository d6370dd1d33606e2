//! Constant patterns, whose compilation errors are reported before rows are read.

use std::borrow::Cow;

use super::{Binder, QueryError};
use crate::ast;
use crate::bound::{BoundExpr, Datum, Function};
use crate::values::{Extractor, Like, PATTERN_BYTES_MAX, Pattern, PatternError};

/// Upper bound of the memory of all compiled patterns of a query.
const PATTERNS_BYTES_MAX: usize = 16 * PATTERN_BYTES_MAX;

impl<'a> Binder<'a> {
    /// `~` and its kin.
    pub(super) fn regex(
        &mut self,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        any_case: bool,
    ) -> Result<BoundExpr, QueryError> {
        let (left, pattern) = (self.expr(left)?, self.expr(right)?);
        if let Some(text) = known(&pattern) {
            self.count_pattern(right, Pattern::size_of(&text, any_case))?;
        }
        Ok(BoundExpr::Call(Function::Regex { any_case }, vec![left, pattern]))
    }

    /// Checks a pattern with groups, which is an argument of a function.
    pub(super) fn group_pattern(&mut self, at: &ast::Expr, pattern: BoundExpr) -> Result<BoundExpr, QueryError> {
        if let Some(text) = known(&pattern) {
            self.count_pattern(at, Extractor::size_of(&text))?;
        }
        Ok(pattern)
    }

    /// Counts the bytes of a compiled pattern.
    fn count_pattern(&mut self, at: &ast::Expr, bytes: Result<usize, PatternError>) -> Result<(), QueryError> {
        self.pattern_bytes += bytes.map_err(|fault| self.error(at, fault.to_string()))?;
        if self.pattern_bytes > PATTERNS_BYTES_MAX {
            let why = format!(
                "the patterns of this query are too large: compiled they take more than {PATTERNS_BYTES_MAX} bytes \
                together"
            );
            return Err(self.error(at, why));
        }
        Ok(())
    }

    /// LIKE and ILIKE.
    pub(super) fn like(
        &mut self,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        any_case: bool,
    ) -> Result<BoundExpr, QueryError> {
        let (left, pattern) = (self.expr(left)?, self.expr(right)?);
        if let Some(Err(fault)) = known(&pattern).map(|text| Like::new(&text, any_case)) {
            return Err(self.error(right, fault.to_string()));
        }
        Ok(BoundExpr::Call(Function::Like { any_case }, vec![left, pattern]))
    }
}

/// Returns the text of a constant pattern. Other values are patterns by their text.
fn known(pattern: &BoundExpr) -> Option<Cow<'_, str>> {
    match pattern {
        BoundExpr::Const(Datum::Text(text)) => Some(Cow::Borrowed(text)),
        BoundExpr::Const(Datum::Json(json)) => Some(Cow::Owned(json.to_string())),
        _ => None,
    }
}
