//! Rows of a response as columns.

use std::sync::Arc;

use assay_node_btql::values::Value;

use crate::EngineError;
use crate::results::column::ResultColumn;
use crate::rows::rank::Position;

/// Rows of a response.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub columns: Arc<[String]>,
    /// Column of cells for each name.
    pub cells: Vec<ResultColumn>,
    /// Number of rows.
    pub len: usize,
    /// Position where the page ends, if rows come in pages.
    pub end: Option<Position>,
    /// Number of rows or of their traces, as counted by a limit.
    pub counted: u64,
    /// Whether known rows were cut off because the table reached its upper bound of bytes.
    pub cut: bool,
}

impl Table {
    /// Creates a table from rows of values.
    pub fn from_rows(columns: Vec<String>, rows: &[Vec<Value<'_>>]) -> Result<Table, EngineError> {
        let width = columns.len();
        let cells = |column: usize| {
            let values: Vec<Value<'_>> =
                rows.iter().map(|row| row.get(column).map_or(Value::Null, Value::view)).collect();
            ResultColumn::from_values(&values)
        };
        let cells = (0..width).map(cells).collect::<Result<_, _>>()?;
        Ok(Table { columns: columns.into(), cells, len: rows.len(), ..Table::default() })
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the values of a row.
    pub fn row(&self, row: usize) -> Vec<Value<'_>> {
        self.cells.iter().map(|column| column.value(row)).collect()
    }

    pub fn rows(&self) -> impl Iterator<Item = Vec<Value<'_>>> {
        (0..self.len).map(|row| self.row(row))
    }

    /// Returns some of the rows, which share their memory with this table.
    pub fn slice(&self, from: usize, rows: usize) -> Table {
        let cells = self.cells.iter().map(|column| column.slice(from, rows)).collect();
        Table { columns: Arc::clone(&self.columns), cells, len: rows, ..Table::default() }
    }

    /// Returns the approximate size of a row as values in memory.
    pub fn row_bytes(&self, row: usize) -> usize {
        self.cells.iter().map(|column| column.cell_bytes(row)).sum()
    }

    /// Returns the approximate size of all rows as values in memory.
    pub fn bytes(&self) -> usize {
        let cells = self.len * self.cells.len() * size_of::<Value<'_>>();
        cells + self.cells.iter().map(ResultColumn::text_bytes).sum::<usize>()
    }
}
