//! Errors of queries.

use assay_storage_shard::ShardError;
use thiserror::Error;

use assay_node_expressions::aggregates::Damaged;

#[derive(Debug, Error)]
pub enum EngineError {
    /// The caller is gone.
    #[error("the query was stopped")]
    Stopped,
    #[error("the query exceeded its time limit: select fewer rows, for example with a filter on `created`")]
    TooLate,
    #[error("the query exceeded its memory limit of {0} bytes: select fewer columns or groups")]
    Memory(usize),
    #[error("the running queries exceeded their common memory limit of {0} bytes: try again in a moment")]
    Crowded(usize),
    #[error("a column of the result has more than 2 GiB of texts: set a lower limit")]
    LongColumn,
    #[error("the query has more than {0} groups: group by fewer values")]
    Groups(usize),
    #[error("the pivot has more than {0} columns: pivot fewer values")]
    PivotedColumns(usize),
    #[error(
        "the pivot has two columns `{0}`: convert the pivoted values to text, or give its keys and measures other names"
    )]
    PivotedTwice(String),
    /// The query requires something that its source does not have.
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Shard(#[from] ShardError),
    #[error(transparent)]
    Expression(assay_node_expressions::Error),
    /// A part from another node cannot be decoded.
    #[error("a part of a result cannot be decoded")]
    Damaged,
}

impl From<assay_node_expressions::Error> for EngineError {
    /// Unwraps the reason for which a watch stopped an expression.
    fn from(error: assay_node_expressions::Error) -> EngineError {
        match error {
            assay_node_expressions::Error::Stopped(stop) => stop.downcast().map_or(EngineError::Stopped, |of| *of),
            other => EngineError::Expression(other),
        }
    }
}

impl From<Damaged> for EngineError {
    fn from(_: Damaged) -> EngineError {
        EngineError::Damaged
    }
}
