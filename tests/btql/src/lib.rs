//! Reference semantics of queries, as simple as btql.md: an interpreter over plain JSON rows, without regard to speed.
//! Engines are compared with it, and it shares no code with them.
//!
//! ```text
//! objects ─ shapes ─ sample ─ unpivot ─┬─ rows: order, cursor, limit, columns      (pipeline)
//!           (summary)                  ├─ groups, groups again, pivot              (groups, aggregate)
//!                                      └─ what is there                            (infer)
//! each expression of each row                                                      (scalar, functions, over value, times, text, ...)
//! ```

mod aggregate;
pub mod case;
mod contains;
mod cursor;
mod data;
pub mod fixture;
mod functions;
mod groups;
mod infer;
mod numbers;
mod pipeline;
pub mod random;
mod row;
mod sample;
mod scalar;
mod shapes;
mod summary;
mod text;
mod times;
mod value;

use assay_node_btql::bound::{Bound, BoundExpr};
use serde_json::Value as Json;

pub use cursor::{key_of as key_of_cursor, of_key as cursor_of};
pub use data::{Dataset, Fields, Object, Price};

/// Result of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryAnswer {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Json>>,
    /// Start of the next page, for rows ordered by key.
    pub cursor: Option<Cursor>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The pagination key of the last row, or of its trace.
    pub key: String,
    /// Text of the cursor, as used in a query.
    pub text: String,
}

/// Runs a query, or returns an error that only the data reveals.
pub fn run(bound: &Bound, data: &Dataset) -> Result<QueryAnswer, String> {
    let table = pipeline::table(bound, data)?;
    let rows = table.rows.iter().map(|row| row.iter().map(value::Value::to_json).collect()).collect();
    let cursor = table.cursor.and_then(|key| Some(Cursor { text: cursor::of_key(&key)?, key }));
    Ok(QueryAnswer { columns: table.columns, rows, cursor })
}

/// Returns the value of an expression for each of some rows, all of them spans.
pub fn values(expr: &BoundExpr, rows: &[Fields], data: &Dataset, tz_offset: i32) -> Result<Vec<Json>, String> {
    let world = row::EvalContext { tz_offset, prices: &data.prices };
    let of = |fields| {
        let row = row::Row::of_span(fields);
        Ok(scalar::evaluate(expr, row::Scope::of_row(world, &row))?.to_json())
    };
    rows.iter().map(of).collect()
}
