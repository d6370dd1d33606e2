//! Previews: result columns that are cut to their beginnings (D-39, D-41).

use assay_node_btql::ast::Shape;
use assay_node_btql::bound::{Bound, BoundExpr, Field, Rows};
use assay_node_btql::columns::is_previewed;

use crate::summary::PREVIEW_LENGTH;

/// Returns the length that a column is cut to, or `None` for the whole column.
pub(crate) fn length(bound: &Bound, expr: &BoundExpr) -> Option<i64> {
    let is_summary = matches!(&bound.rows, Rows::Objects { shape: Shape::Summary, .. });
    match expr {
        BoundExpr::Field(Field::Column(name), steps) if steps.is_empty() && is_previewed(name) => {
            bound.preview_length.or(is_summary.then_some(PREVIEW_LENGTH))
        }
        _ => None,
    }
}
