//! Rows as JSON in columns: an array of blocks with the cells of each column. Repeated cells are written once.
//!
//! ```text
//! [{"rows": 3, "columns": {"id": {"values": ["a", "b", "c"]},
//!                          "name": {"dictionary": ["llm", null], "indexes": [0, 0, 1]}}}, ...]
//! ```

use std::collections::HashMap;
use std::fmt::Write as _;

use assay_node_btql::schema::Column;
use assay_node_btql::values::Value;
use assay_node_engine::{Cells, ResultColumn, Table};

use super::json::put_cell;
use super::{FormatError, check_width};

/// Number of rows per distinct cell at which a dictionary is shorter.
const DICTIONARY_ROWS_EACH: usize = 2;

#[derive(Debug)]
pub struct ColumnsWriter {
    /// Text before the cells of each column: `"id":`.
    keys: Vec<String>,
    begun: bool,
}

impl ColumnsWriter {
    pub fn new(columns: &[Column]) -> ColumnsWriter {
        let key = |column: &Column| format!("{}:", Value::Text(column.name.as_str().into()).to_json());
        ColumnsWriter { keys: columns.iter().map(key).collect(), begun: false }
    }

    /// Appends a block.
    pub fn rows(&mut self, table: &Table) -> Result<Vec<u8>, FormatError> {
        check_width(table, self.keys.len())?;
        if table.is_empty() {
            return Ok(Vec::new());
        }
        let mut out = String::with_capacity(table.bytes());
        out.push(if self.begun { ',' } else { '[' });
        self.begun = true;
        write!(out, "{{\"rows\":{},\"columns\":{{", table.len).expect("a String takes everything");
        for (place, (key, cells)) in self.keys.iter().zip(&table.cells).enumerate() {
            out.push_str(if place > 0 { "," } else { "" });
            out.push_str(key);
            put_column(&mut out, cells, table.len);
        }
        out.push_str("}}");
        Ok(out.into_bytes())
    }

    pub fn finish(self) -> Vec<u8> {
        if self.begun { b"]".to_vec() } else { b"[]".to_vec() }
    }
}

fn put_column(out: &mut String, column: &ResultColumn, rows: usize) {
    let cells = column.cells();
    if let Some((dictionary, indexes)) = dictionary(&cells, rows) {
        out.push_str("{\"dictionary\":[");
        put_list(out, &dictionary, |out, row| put_cell(out, &cells, *row));
        out.push_str("],\"indexes\":[");
        put_list(out, &indexes, |out, index| write!(out, "{index}").expect("a String takes everything"));
    } else {
        out.push_str("{\"values\":[");
        put_list(out, &(0..rows).collect::<Vec<_>>(), |out, row| put_cell(out, &cells, *row));
    }
    out.push_str("]}");
}

fn put_list<T>(out: &mut String, items: &[T], put: impl Fn(&mut String, &T)) {
    for (place, item) in items.iter().enumerate() {
        out.push_str(if place > 0 { "," } else { "" });
        put(out, item);
    }
}

/// Returns the first row of each distinct text, and the index of each row's text. Returns `None` if too few texts
/// repeat.
fn dictionary(cells: &Cells<'_>, rows: usize) -> Option<(Vec<usize>, Vec<usize>)> {
    let (Cells::Texts(texts) | Cells::Json(texts)) = cells else { return None };
    let mut known: HashMap<Option<&str>, usize> = HashMap::new();
    let (mut first, mut indexes) = (Vec::new(), Vec::with_capacity(rows));
    for (row, text) in texts.iter().enumerate() {
        let index = *known.entry(text).or_insert_with(|| {
            first.push(row);
            first.len() - 1
        });
        if first.len() * DICTIONARY_ROWS_EACH > rows {
            return None;
        }
        indexes.push(index);
    }
    Some((first, indexes))
}
