//! Rows as JSON objects, in an array or one per line.

use arrow_array::{Array, StringArray};
use assay_node_btql::schema::Column;
use assay_node_btql::values::Value;
use assay_node_engine::{Cells, Table};

use super::{FormatError, SizeEstimate, check_width};

/// Texts around rows.
#[derive(Debug)]
struct Delimiters {
    before_first: &'static str,
    between: &'static str,
    after_each: &'static str,
    after_last: &'static str,
}

const ARRAY: Delimiters = Delimiters { before_first: "[", between: ",", after_each: "}", after_last: "]" };
const LINES: Delimiters = Delimiters { before_first: "", between: "", after_each: "}\n", after_last: "" };

#[derive(Debug)]
pub struct JsonWriter {
    delimiters: Delimiters,
    /// Text before each value, escaped once: `{"id":`, then `,"name":`.
    keys: Vec<String>,
    begun: bool,
    estimate: SizeEstimate,
}

impl JsonWriter {
    pub fn array(columns: &[Column]) -> JsonWriter {
        JsonWriter { delimiters: ARRAY, keys: keys(columns), begun: false, estimate: SizeEstimate::default() }
    }

    pub fn lines(columns: &[Column]) -> JsonWriter {
        JsonWriter { delimiters: LINES, keys: keys(columns), begun: false, estimate: SizeEstimate::default() }
    }

    pub fn rows(&mut self, table: &Table) -> Result<Vec<u8>, FormatError> {
        check_width(table, self.keys.len())?;
        let mut out = self.estimate.of(table.len);
        let columns: Vec<Cells<'_>> = table.cells.iter().map(|column| column.cells()).collect();
        for row in 0..table.len {
            out.push_str(if self.begun { self.delimiters.between } else { self.delimiters.before_first });
            self.begun = true;
            if columns.is_empty() {
                out.push('{');
            }
            for (key, cells) in self.keys.iter().zip(&columns) {
                out.push_str(key);
                put_cell(&mut out, cells, row);
            }
            out.push_str(self.delimiters.after_each);
        }
        self.estimate.took(table.len, out.len());
        Ok(out.into_bytes())
    }

    pub fn finish(self) -> Vec<u8> {
        let before = if self.begun { "" } else { self.delimiters.before_first };
        [before, self.delimiters.after_last].concat().into_bytes()
    }
}

/// Appends the JSON text of a cell.
pub(super) fn put_cell(out: &mut String, cells: &Cells<'_>, row: usize) {
    let value = match cells {
        Cells::Null => Value::Null,
        Cells::Other(column) => column.value(row),
        Cells::Booleans(array) => valid(*array, row, |row| Value::Boolean(array.value(row))),
        Cells::Integers(array) => valid(*array, row, |row| Value::Integer(array.value(row))),
        Cells::Texts(array) => valid(*array, row, |row| Value::Text(array.value(row).into())),
        Cells::Json(array) => json_value(array, row),
    };
    value.put_json(out);
}

/// Reads a cell of JSON texts. Objects and arrays stay texts.
pub(super) fn json_value(array: &StringArray, row: usize) -> Value<'_> {
    valid(array, row, |row| Value::read(array.value(row)))
}

fn valid<'v>(array: &dyn Array, row: usize, value: impl FnOnce(usize) -> Value<'v>) -> Value<'v> {
    if array.is_null(row) { Value::Null } else { value(row) }
}

fn keys(columns: &[Column]) -> Vec<String> {
    let key = |(place, column): (usize, &Column)| {
        let mut key = String::from(if place == 0 { "{" } else { "," });
        Value::Text(column.name.as_str().into()).put_json(&mut key);
        key.push(':');
        key
    };
    columns.iter().enumerate().map(key).collect()
}
