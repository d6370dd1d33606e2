//! Printers of queries in the three forms. A construct that a form cannot express is an error that names it. Parsing
//! the printed text gives the same query.

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

use crate::ast::{self, Node, SelectItem};

/// A form that has no words for something.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{form} has no words for {what}")]
pub struct Unsayable {
    pub form: &'static str,
    pub what: &'static str,
}

/// D-77: an alias, the last step of a path, or the expression as it is written.
pub(crate) fn item_name(item: &SelectItem) -> String {
    item.alias.clone().unwrap_or_else(|| expr_name(&item.expr))
}

pub(crate) fn expr_name(expr: &ast::Expr) -> String {
    match &expr.node {
        Node::Path(ast::Path { steps, .. }) => match steps.last() {
            Some(ast::Step::Key(key)) => key.clone(),
            _ => expression(expr),
        },
        _ => expression(expr),
    }
}
