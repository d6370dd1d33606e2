//! Rows as CSV (RFC 4180): a header, and records that end with CR and LF.

use std::borrow::Cow;
use std::fmt::Write as _;

use assay_node_btql::schema::Column;
use assay_node_btql::values::Value;
use assay_node_engine::Table;
use memchr::{memchr, memchr3};

use super::{FormatError, SizeEstimate, check_width};

const END: &str = "\r\n";
/// First characters of texts that spreadsheets interpret as formulas, or skip before a formula.
const FORMULA_BEGINNINGS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];
/// Mark before such a text. Spreadsheets then show the rest unchanged.
const TEXT_MARK: char = '\'';

#[derive(Debug)]
pub struct CsvWriter {
    columns: usize,
    is_for_spreadsheets: bool,
    /// Header, or `None` after it was written.
    header: Option<String>,
    /// Buffer for the JSON text of a value, whose quotes are then doubled.
    scratch: String,
    estimate: SizeEstimate,
}

impl CsvWriter {
    pub fn new(columns: &[Column]) -> CsvWriter {
        CsvWriter::with(columns, false)
    }

    /// Creates a writer with texts that spreadsheets do not interpret as formulas.
    pub fn for_spreadsheets(columns: &[Column]) -> CsvWriter {
        CsvWriter::with(columns, true)
    }

    fn with(columns: &[Column], is_for_spreadsheets: bool) -> CsvWriter {
        let mut header = String::new();
        for (place, column) in columns.iter().enumerate() {
            header.push_str(if place > 0 { "," } else { "" });
            match is_for_spreadsheets {
                true => put_text(&mut header, &marked(&column.name)),
                false => put_text(&mut header, &column.name),
            }
        }
        header.push_str(END);
        CsvWriter {
            columns: columns.len(),
            is_for_spreadsheets,
            header: Some(header),
            scratch: String::new(),
            estimate: SizeEstimate::default(),
        }
    }

    pub fn rows(&mut self, table: &Table) -> Result<Vec<u8>, FormatError> {
        check_width(table, self.columns)?;
        let mut out = self.estimate.of(table.len);
        out.push_str(&self.header.take().unwrap_or_default());
        for row in 0..table.len {
            for (place, column) in table.cells.iter().enumerate() {
                out.push_str(if place > 0 { "," } else { "" });
                match (self.is_for_spreadsheets, column.value(row)) {
                    (true, Value::Text(text)) => put_text(&mut out, &marked(&text)),
                    (_, value) => put(&mut out, &value, &mut self.scratch),
                }
            }
            out.push_str(END);
        }
        self.estimate.took(table.len, out.len());
        Ok(out.into_bytes())
    }

    pub fn finish(self) -> Vec<u8> {
        self.header.unwrap_or_default().into_bytes()
    }

    pub fn held(&self) -> usize {
        self.scratch.capacity()
    }
}

/// Returns a text that a spreadsheet does not interpret as a formula.
fn marked(text: &str) -> Cow<'_, str> {
    match text.starts_with(FORMULA_BEGINNINGS) {
        true => Cow::Owned(format!("{TEXT_MARK}{text}")),
        false => Cow::Borrowed(text),
    }
}

fn put(out: &mut String, value: &Value<'_>, scratch: &mut String) {
    match value {
        Value::Null => {}
        Value::Text(text) | Value::Array(text) | Value::Object(text) => put_text(out, text),
        Value::List(_) | Value::Members(_) => {
            scratch.clear();
            value.put_json(scratch);
            put_text(out, scratch);
        }
        Value::Boolean(_) | Value::Integer(_) | Value::Unsigned(_) | Value::Float(_) => value.put_json(out),
        Value::Xact(xact) => write!(out, "{xact}").expect("a String takes everything"),
        Value::Time(_) | Value::Stored(_) | Value::Interval(_) => put_text(out, &value.to_text().unwrap_or_default()),
    }
}

/// Writes a field, in quotes if needed. The empty text is quoted, since an empty field means null.
fn put_text(out: &mut String, text: &str) {
    let bytes = text.as_bytes();
    let is_plain = !bytes.is_empty() && memchr3(b'"', b',', b'\n', bytes).or_else(|| memchr(b'\r', bytes)).is_none();
    if is_plain {
        out.push_str(text);
        return;
    }
    out.reserve(text.len() + 2);
    out.push('"');
    let mut rest = text;
    while let Some(quote) = memchr(b'"', rest.as_bytes()) {
        let (with_quote, after) = rest.split_at(quote + 1);
        out.push_str(with_quote);
        out.push('"');
        rest = after;
    }
    out.push_str(rest);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_spreadsheets_would_compute_are_marked() {
        for (text, expected) in [
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@a", "'@a"),
            ("\t=1", "'\t=1"),
            ("a=1", "a=1"),
            ("", ""),
        ] {
            assert_eq!(marked(text), expected);
        }
    }
}
