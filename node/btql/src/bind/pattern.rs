//! Patterns of `~` and its kin (D-57), as far as they are known before there are rows.

use regex::{Error, RegexBuilder};

use super::{Binder, QueryError};
use crate::ast;
use crate::bound::{Datum, Expr, Function};

impl<'a> Binder<'a> {
    pub(super) fn regex(
        &mut self,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        any_case: bool,
    ) -> Result<Expr, QueryError> {
        let (left, pattern) = (self.expr(left)?, self.expr(right)?);
        // What is no text is taken for its text, as anywhere.
        let known = match &pattern {
            Expr::Const(Datum::Text(text)) => Some(text.clone()),
            Expr::Const(Datum::Json(json)) => Some(json.to_string()),
            _ => None,
        };
        if let Some(fault) = known.and_then(|pattern| fault(&pattern, any_case)) {
            return Err(self.error(right, fault));
        }
        Ok(Expr::Call(Function::Regex { any_case }, vec![left, pattern]))
    }
}

/// Why a text is no pattern.
fn fault(pattern: &str, any_case: bool) -> Option<String> {
    let error = RegexBuilder::new(pattern).case_insensitive(any_case).build().err()?;
    Some(match &error {
        Error::CompiledTooBig(bytes) => format!("this pattern is too large: it would take more than {bytes} bytes"),
        // The library draws the pattern and a caret; what is wrong stands in its last line.
        Error::Syntax(drawn) => {
            let why = drawn.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            format!("this is no pattern: {why}")
        }
        other => format!("this is no pattern: {other}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        assert_eq!(fault("^a.*[0-9]+$", false), None);
        assert_eq!(fault("a(b", true).as_deref(), Some("this is no pattern: unclosed group"));
        assert_eq!(
            fault("(a{1000}){1000}", false).map(|fault| fault.starts_with("this pattern is too large")),
            Some(true)
        );
        let look_around = fault("(?=a)", false).expect("RE2 has none");
        assert!(look_around.contains("look-around"), "{look_around}");
    }
}
