//! Result rows: expressions of single rows, their order, and their output on this node.

pub(crate) mod output;
pub(crate) mod preview;
pub(crate) mod rank;
pub(crate) mod row_expressions;
