//! What a query means, said as simply as btql.md says it: an interpreter over plain JSON rows, with no regard for speed.
//! It is what an engine is compared with, and it shares no code with one.
//!
//! ```text
//! objects ─ shapes ─ sample ─ unpivot ─┬─ rows: order, cursor, limit, columns      (pipeline)
//!           (summary)                  ├─ groups, groups again, pivot              (groups, aggregate)
//!                                      └─ what is there                            (infer)
//! each expression of each row                                                      (scalar, over value, times, text, ...)
//! ```

mod aggregate;
pub mod case;
mod contains;
mod cursor;
mod data;
pub mod fixture;
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
pub use data::{Data, Fields, Object, Price};

/// What a query is answered with.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryAnswer {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Json>>,
    /// Of rows that are ordered by key, where the next page goes on.
    pub cursor: Option<Cursor>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The pagination key of the last row, or of its trace.
    pub key: String,
    /// As a query takes it.
    pub text: String,
}

/// Answers a query, or says what is wrong with it that only the data knows.
pub fn run(bound: &Bound, data: &Data) -> Result<QueryAnswer, String> {
    let table = pipeline::table(bound, data)?;
    let rows = table.rows.iter().map(|row| row.iter().map(value::Value::to_json).collect()).collect();
    let cursor = table.cursor.and_then(|key| Some(Cursor { text: cursor::of_key(&key)?, key }));
    Ok(QueryAnswer { columns: table.columns, rows, cursor })
}

/// What an expression about rows gives for each of some, all of them those of spans.
pub fn values(expr: &BoundExpr, rows: &[Fields], data: &Data, tz_offset: i32) -> Result<Vec<Json>, String> {
    let world = row::World { tz_offset, prices: &data.prices };
    let of = |fields| {
        let row = row::Row::of_span(fields);
        Ok(scalar::evaluate(expr, row::Scope::of_row(world, &row))?.to_json())
    };
    rows.iter().map(of).collect()
}
