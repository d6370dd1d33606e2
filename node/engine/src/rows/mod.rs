//! Rows of an answer: expressions of single rows, their order, and what they come to on this node.

pub(crate) mod output;
pub(crate) mod preview;
pub(crate) mod rank;
pub(crate) mod row_expressions;
