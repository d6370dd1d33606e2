//! Evaluation of bound expressions (`assay_node_btql::bound::BoundExpr`) over columns, a batch of rows at a time, as btql.md
//! defines them in sections 8 to 11, and of aggregates (`aggregates`). Depends on arrays only: on no engine, no store and no
//! query.
//!
//! ```text
//! BoundExpr ─ Program::compile ─ typed nodes, constants folded             (program, result_types)
//! columns ─ Program::run ─┬─ kernels, for arrays of known types       (evaluation, kernels)
//!                         └─ value by value: the reference semantics  (evaluation, scalar, functions)
//! ```
//!
//! A type describes the array that a program returns. Intermediate columns hold every value exactly (`column`): numbers
//! beyond 64 bits, floats beside whole numbers and times beside texts are converted in the last step only. A kernel that
//! cannot be exact for the rows at hand declines, and the rows are computed one by one.

pub mod aggregates;
mod bounds;
mod builder;
pub mod codec;
mod column;
mod evaluation;
mod functions;
mod kernels;
mod prepared;
mod program;
mod result_types;
mod scalar;
mod types;
mod value_counts;

pub use bounds::{Bounds, Stop};
pub use program::{Env, Program, Schema};
pub use types::Type;
pub use value_counts::ValueCounts;

use assay_node_btql::bound::Field;

/// Failure to compile a program or to compute a column.
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
    /// The computation exceeded its memory or its time.
    #[error(transparent)]
    Stopped(Stop),
}
