//! Columns of result rows: their types, their merge across nodes and their encoding.

pub(crate) mod batch;
pub(crate) mod column;
pub(crate) mod ipc;
mod table;

pub use column::{CellType, Cells, ResultColumn};
pub use table::Table;
