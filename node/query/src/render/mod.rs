//! Rendering of responses as a stream of bytes: JSON, JSON lines, CSV, Parquet or Arrow (btql.md, sections 1.2 and
//! 1.3). Cursor texts are in `cursors`. The module depends on no HTTP library.
//!
//! ```text
//! WholeResponse ────┬─ Envelope   schema, freshness, warnings, cursor, plan
//! StreamedResponse ─┴─ RowWriter ─┬─ json     [{...},{...}], or an object a line: bytes come out as rows go in
//!                                 ├─ csv      a header, a record a row: the same
//!                                 ├─ columns  JSON blocks of columns: the same
//!                                 ├─ arrow    batches of typed columns (`typed_array`): the same
//!                                 └─ parquet  batches of typed columns: bytes come out a row group at a time
//! ```
//!
//! A writer holds a bounded part of a response of any length. JSON and CSV writers hold one value. A Parquet writer
//! holds one row group, and a few hundred bytes per column and written row group for the footer.
//!
//! Representation of a value in each format:
//!
//! | value | JSON, JSON lines | CSV |
//! |---|---|---|
//! | null | `null` | an empty field; the empty text is `""` |
//! | text | its JSON text | the text itself, also where other rows of the column have other kinds |
//! | array, object | its JSON text as stored, which is compact and has no line breaks | the same, as a text |
//! | anything else | its text from `Value::put_json` | the same without quotes |
//!
//! A column of Parquet or Arrow has one type, chosen by the kinds of its values (`Kinds`). No value is changed or
//! dropped silently:
//!
//! | known | type | a value that is something else |
//! |---|---|---|
//! | Boolean | boolean | an error |
//! | Integer | int64 | an error. For a whole number out of range, which only casts and `abs` return, the error suggests `text` |
//! | Number | double | whole numbers become the nearest double, which rounds beyond 2^53; casts to `integer` or `text` keep all digits. Another kind: an error |
//! | Text, Interval | utf8 | its text, also for transactions and times |
//! | Time | timestamp, microseconds, UTC | a text with a valid time becomes that time; another kind: an error |
//! | Texts | list of utf8 | other elements become their JSON text, and null stays null; a value other than an array: an error |
//! | Any, Null | the JSON text; in Arrow as binary, marked by the metadata `assay.encoding` = `json` | none; JSON null is null |
//!
//! A null in a column declared without nulls is an error as well. After an error the response has no end, so that
//! clients notice the truncation.

mod arrow_stream;
mod columns;
mod csv;
pub mod cursors;
mod envelope;
mod error;
mod json;
mod page_cursors;
mod parquet;
mod steps;
mod streaming;
mod typed_array;
mod whole;

use ::parquet::errors::ParquetError;
use arrow_schema::ArrowError;
use assay_node_btql::schema::Column;
use assay_node_engine::Table;
use thiserror::Error;

use self::parquet::ColumnTask;
use crate::QueryThread;

pub use envelope::Envelope;
pub use error::RenderError;
pub use page_cursors::{page_cursor, page_position};
pub use steps::Compressor;
pub use streaming::{ResponseMemory, ResponsePart, StreamedResponse, part_bytes};
pub use whole::{RenderedEnd, WholeResponse};

const JSON_TYPE: &str = "application/json";
const JSON_LINES_TYPE: &str = "application/x-jsonlines";

/// Format of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Array of JSON objects.
    #[default]
    Json,
    JsonLines,
    Csv,
    /// CSV with texts that spreadsheets do not interpret as formulas.
    SpreadsheetCsv,
    Parquet,
    /// Arrow IPC stream.
    Arrow,
    /// Blocks of columns as JSON.
    Columns,
}

impl Format {
    pub const ALL: [Format; 7] = [
        Format::Json,
        Format::JsonLines,
        Format::Csv,
        Format::SpreadsheetCsv,
        Format::Parquet,
        Format::Arrow,
        Format::Columns,
    ];

    /// Returns the name of the format in requests (`fmt`).
    pub fn name(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::JsonLines => "jsonl",
            Format::Csv => "csv",
            Format::SpreadsheetCsv => "spreadsheet_csv",
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
            Format::Columns => "columns",
        }
    }

    pub fn parse(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Returns the media type of the format.
    ///
    /// `accept` is the request's `Accept` header. JSON lines get their own type only for clients that name it (D-13).
    pub fn content_type(self, accept: Option<&str>) -> &'static str {
        match self {
            Format::Json | Format::Columns => JSON_TYPE,
            Format::JsonLines if accept.is_some_and(accepts_lines) => JSON_LINES_TYPE,
            Format::JsonLines => JSON_TYPE,
            Format::Csv | Format::SpreadsheetCsv => "text/csv; charset=utf-8",
            Format::Parquet => "application/vnd.apache.parquet",
            Format::Arrow => "application/vnd.apache.arrow.stream",
        }
    }
}

impl Format {
    /// Returns the file extension of the format.
    pub fn extension(self) -> &'static str {
        match self {
            Format::SpreadsheetCsv => Format::Csv.name(),
            Format::Columns => Format::Json.name(),
            other => other.name(),
        }
    }

    /// Returns whether the rows have an envelope with schema, freshness, warnings and cursor.
    pub fn has_envelope(self) -> bool {
        matches!(self, Format::Json | Format::Columns)
    }
}

fn accepts_lines(accept: &str) -> bool {
    let types = accept.split(',').map(|range| range.split(';').next().unwrap_or_default().trim());
    types.into_iter().any(|named| named.eq_ignore_ascii_case(JSON_LINES_TYPE))
}

/// Failure to write rows in a format.
#[derive(Debug, Error)]
pub enum FormatError {
    #[error("there are two columns `{0}`")]
    Twice(String),
    #[error("a row of {found} values for {expected} columns")]
    Width { expected: usize, found: usize },
    #[error("column `{column}` was to have no null")]
    Null { column: String },
    #[error("column `{column}` is {promised}, and has {found}")]
    Unlike { column: String, promised: &'static str, found: String },
    #[error(
        "column `{column}` has {found}, which a signed integer of 64 bits does not hold: cast it to text or number"
    )]
    Beyond { column: String, found: u64 },
    #[error("column `{column}` has a text of {bytes} bytes, which is more than Parquet takes")]
    TooLong { column: String, bytes: usize },
    #[error("a batch of columns: {0}")]
    Batch(#[from] ArrowError),
    #[error("a Parquet file: {0}")]
    Parquet(#[from] ParquetError),
}

/// Writer of the rows of one response.
#[derive(Debug)]
pub struct RowWriter(FormatWriter);

#[derive(Debug)]
enum FormatWriter {
    Json(json::JsonWriter),
    Csv(csv::CsvWriter),
    Parquet(Box<parquet::ParquetWriter>),
    Arrow(Box<arrow_stream::ArrowWriter>),
    Columns(columns::ColumnsWriter),
}

impl RowWriter {
    /// Creates a writer for all columns of the response, including those of a pivot that depend on the data.
    pub fn new(format: Format, columns: &[Column]) -> Result<RowWriter, FormatError> {
        let mut names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(FormatError::Twice(pair[0].to_owned()));
        }
        Ok(RowWriter(match format {
            Format::Json => FormatWriter::Json(json::JsonWriter::array(columns)),
            Format::JsonLines => FormatWriter::Json(json::JsonWriter::lines(columns)),
            Format::Csv => FormatWriter::Csv(csv::CsvWriter::new(columns)),
            Format::SpreadsheetCsv => FormatWriter::Csv(csv::CsvWriter::for_spreadsheets(columns)),
            Format::Parquet => FormatWriter::Parquet(Box::new(parquet::ParquetWriter::new(columns)?)),
            Format::Arrow => FormatWriter::Arrow(Box::new(arrow_stream::ArrowWriter::new(columns)?)),
            Format::Columns => FormatWriter::Columns(columns::ColumnsWriter::new(columns)),
        }))
    }

    /// Appends rows. Returns the bytes that are ready. For Parquet there are often none.
    pub fn rows(&mut self, table: &Table) -> Result<Vec<u8>, FormatError> {
        self.rows_with(table, in_order)
    }

    /// Returns whether rows are written by column. A column is then written in short steps, whatever the number of
    /// rows.
    pub(crate) fn writes_columns(&self) -> bool {
        matches!(self.0, FormatWriter::Parquet(_))
    }

    /// Appends rows like [`RowWriter::rows`], on several threads if the format has independent columns.
    pub fn rows_on(&mut self, thread: QueryThread<'_>, table: &Table) -> Result<Vec<u8>, RenderError> {
        self.rows_with(table, |tasks| side_by_side(thread, tasks))
    }

    /// Returns the remaining bytes: the end of a JSON array, or Parquet's last row group and footer.
    pub fn finish(self) -> Result<Vec<u8>, FormatError> {
        self.finish_with(in_order)
    }

    /// Returns the remaining bytes like [`RowWriter::finish`], on several threads if the format has independent
    /// columns.
    pub fn finish_on(self, thread: QueryThread<'_>) -> Result<Vec<u8>, RenderError> {
        self.finish_with(|tasks| side_by_side(thread, tasks))
    }

    fn rows_with<E: From<FormatError>>(
        &mut self,
        table: &Table,
        run: impl Fn(Vec<ColumnTask<'_>>) -> Result<(), E>,
    ) -> Result<Vec<u8>, E> {
        Ok(match &mut self.0 {
            FormatWriter::Json(writer) => writer.rows(table)?,
            FormatWriter::Csv(writer) => writer.rows(table)?,
            FormatWriter::Parquet(writer) => writer.rows(table, run)?,
            FormatWriter::Arrow(writer) => writer.rows(table)?,
            FormatWriter::Columns(writer) => writer.rows(table)?,
        })
    }

    fn finish_with<E: From<FormatError>>(
        self,
        run: impl Fn(Vec<ColumnTask<'_>>) -> Result<(), E>,
    ) -> Result<Vec<u8>, E> {
        Ok(match self.0 {
            FormatWriter::Json(writer) => writer.finish(),
            FormatWriter::Csv(writer) => writer.finish(),
            FormatWriter::Parquet(writer) => writer.finish(run)?,
            FormatWriter::Arrow(writer) => writer.finish()?,
            FormatWriter::Columns(writer) => writer.finish(),
        })
    }

    /// Returns the approximate number of bytes held for rows that were not returned yet.
    pub fn held(&self) -> usize {
        match &self.0 {
            FormatWriter::Json(_) | FormatWriter::Columns(_) => 0,
            FormatWriter::Csv(writer) => writer.held(),
            FormatWriter::Parquet(writer) => writer.held(),
            FormatWriter::Arrow(writer) => writer.held(),
        }
    }
}

/// Runs the tasks of all columns on the calling thread.
fn in_order(tasks: Vec<ColumnTask<'_>>) -> Result<(), FormatError> {
    tasks.into_iter().try_for_each(|task| task.run(|| Ok(())))
}

/// Runs the tasks of several columns at a time.
fn side_by_side(thread: QueryThread<'_>, tasks: Vec<ColumnTask<'_>>) -> Result<(), RenderError> {
    thread.workers.each_of(thread.watch, tasks, |task| task.run(|| Ok(thread.watch.check()?)))
}

fn check_width(table: &Table, expected: usize) -> Result<(), FormatError> {
    let found = table.cells.len();
    if found == expected { Ok(()) } else { Err(FormatError::Width { expected, found }) }
}

/// Estimate of the size of the next rows, from the size of earlier ones. It avoids copies of a large text that grows
/// step by step.
#[derive(Debug, Default)]
struct SizeEstimate {
    rows: usize,
    bytes: usize,
}

impl SizeEstimate {
    fn of(&self, rows: usize) -> String {
        let each = self.bytes / self.rows.max(1);
        String::with_capacity(rows * (each + each / 4))
    }

    fn took(&mut self, rows: usize, bytes: usize) {
        *self = SizeEstimate { rows, bytes };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_named_as_requests_name_them() {
        assert!(Format::ALL.into_iter().all(|format| Format::parse(format.name()) == Some(format)));
        assert_eq!(Format::parse("JSON"), None);
    }

    #[test]
    fn lines_are_called_json_except_to_those_that_name_them() {
        let to = |accept| Format::JsonLines.content_type(accept);
        assert_eq!(to(None), "application/json");
        assert_eq!(to(Some("*/*")), "application/json");
        assert_eq!(to(Some("text/html, Application/X-JsonLines;q=0.9")), "application/x-jsonlines");
        assert_eq!(Format::Json.content_type(Some("application/x-jsonlines")), "application/json");
    }
}
