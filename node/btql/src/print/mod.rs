//! Queries said again, in any of the three forms. What one form has no words for is an error that names it; parsing what
//! was printed gives the same query.

mod clauses;
mod expr;
mod json;
mod restate;
mod sql;

pub use clauses::in_clauses;
pub use expr::expression;
pub(crate) use expr::{can_begin_operand, name};
pub use json::in_tree;
pub use sql::in_sql;

use thiserror::Error;

/// A form that has no words for something.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{form} has no words for {what}")]
pub struct Unsayable {
    pub form: &'static str,
    pub what: &'static str,
}
