//! Which columns of an answer are shown by their beginnings alone (D-39, D-41).

use assay_node_btql::ast::Shape;
use assay_node_btql::bound::{Bound, Expr, Field, Rows};

use crate::summary::{PREVIEW_LENGTH, PREVIEWED};

/// How much of a column is shown.
pub(crate) fn length(bound: &Bound, expr: &Expr) -> Option<i64> {
    let is_summary = matches!(&bound.rows, Rows::Objects { shape: Shape::Summary, .. });
    match expr {
        Expr::Field(Field::Column(name), steps) if steps.is_empty() && PREVIEWED.contains(name) => {
            bound.preview_length.or(is_summary.then_some(PREVIEW_LENGTH))
        }
        _ => None,
    }
}
