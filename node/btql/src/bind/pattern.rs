//! Patterns that the query itself says: what cannot be compiled is refused before there are rows.

use std::borrow::Cow;

use super::{Binder, QueryError};
use crate::ast;
use crate::bound::{Datum, Expr, Function};
use crate::values::{Like, Pattern};

impl<'a> Binder<'a> {
    /// `~` and its kin.
    pub(super) fn regex(
        &mut self,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        any_case: bool,
    ) -> Result<Expr, QueryError> {
        let (left, pattern) = (self.expr(left)?, self.expr(right)?);
        if let Some(Err(fault)) = known(&pattern).map(|text| Pattern::new(&text, any_case)) {
            return Err(self.error(right, fault.to_string()));
        }
        Ok(Expr::Call(Function::Regex { any_case }, vec![left, pattern]))
    }

    /// LIKE and ILIKE.
    pub(super) fn like(
        &mut self,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        any_case: bool,
    ) -> Result<Expr, QueryError> {
        let (left, pattern) = (self.expr(left)?, self.expr(right)?);
        if let Some(Err(fault)) = known(&pattern).map(|text| Like::new(&text, any_case)) {
            return Err(self.error(right, fault.to_string()));
        }
        Ok(Expr::Call(Function::Like { any_case }, vec![left, pattern]))
    }
}

/// The text of a pattern that is the same for all rows. Anything but a text stands for its text, as everywhere.
fn known(pattern: &Expr) -> Option<Cow<'_, str>> {
    match pattern {
        Expr::Const(Datum::Text(text)) => Some(Cow::Borrowed(text)),
        Expr::Const(Datum::Json(json)) => Some(Cow::Owned(json.to_string())),
        _ => None,
    }
}
