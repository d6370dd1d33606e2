//! Rows as JSON objects: in an array, or one a line.

use assay_node_btql::schema::Column;
use assay_node_btql::values::Value;

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

    pub fn rows(&mut self, rows: &[Vec<Value<'_>>]) -> Result<Vec<u8>, FormatError> {
        let mut out = self.estimate.of(rows.len());
        for row in rows {
            check_width(row, self.keys.len())?;
            out.push_str(if self.begun { self.delimiters.between } else { self.delimiters.before_first });
            self.begun = true;
            if row.is_empty() {
                out.push('{');
            }
            for (key, value) in self.keys.iter().zip(row) {
                out.push_str(key);
                value.put_json(&mut out);
            }
            out.push_str(self.delimiters.after_each);
        }
        self.estimate.took(rows.len(), out.len());
        Ok(out.into_bytes())
    }

    pub fn finish(self) -> Vec<u8> {
        let before = if self.begun { "" } else { self.delimiters.before_first };
        [before, self.delimiters.after_last].concat().into_bytes()
    }
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
