//! Expressions over columns: what a bound expression (`assay_node_btql::bound::Expr`) gives for each row of a batch, by
//! btql.md, sections 8 to 11. Knows arrays and no engine, no store and no query.
//!
//! ```text
//! Expr ─ Program::compile ─ nodes, each with the type that it is certain to fit into, constants folded   (program, known)
//! columns ─ Program::run ─┬─ where the arrays at hand are of types that a loop or a kernel knows         (eval, fast)
//!                         └─ otherwise value by value, which is what is true                             (eval, scalar)
//! ```
//!
//! A type is what an array holds in the end. On the way there a column is whatever holds all of its values exactly
//! (`column`): numbers that leave 64 bits, or a float beside them, times beside texts stay what they are until the last
//! step. A fast path that cannot be exact for the rows at hand says so, and the rows are computed one by one.

mod bounds;
mod builder;
mod column;
mod eval;
mod fast;
mod known;
mod prepared;
mod program;
mod scalar;
mod types;

pub use bounds::{Bounds, Stop};
pub use program::{Env, Program, Schema};
pub use types::Type;

use assay_node_btql::bound::Field;

/// Why there is no program, or no column.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no column of {0:?}")]
    NoColumn(Field),
    #[error("{0} does not take {1} arguments")]
    Arguments(String, usize),
    #[error("there is no input column {0}")]
    NoInput(usize),
    #[error("an input column of {found} rows among {wanted}")]
    OtherLength { wanted: usize, found: usize },
    #[error("an input column of {found} where one of {wanted:?} was said")]
    OtherType { wanted: Type, found: String },
    #[error("the texts of a column are longer than 2 GB together")]
    TooLong,
    /// It takes more than it may.
    #[error(transparent)]
    Stopped(Stop),
}
