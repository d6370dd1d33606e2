//! Rendering of answers as a stream of bytes: columns of cells become JSON, JSON lines, CSV, Parquet or Arrow (btql.md,
//! sections 1.2 and 1.3). Also the texts of cursors (`cursors`). Depends on no HTTP library.
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
//! A writer holds a bounded part of an answer of any length: for JSON and CSV one value, for Parquet one row group and, for
//! each group that was written, the few hundred bytes a column that the footer has of it.
//!
//! Representation of a value in each format:
//!
//! | value | JSON, JSON lines | CSV |
//! |---|---|---|
//! | null | `null` | an empty field; the empty text is `""` |
//! | text | its JSON text | the text itself, also where other rows of the column have other kinds |
//! | array, object | its JSON text as it stands: what is stored is compact and has no line breaks | the same, as a text |
//! | anything else | as `Value::put_json` says | the same without quotes |
//!
//! A column of Parquet or Arrow has one type, chosen by the kinds of its values (`Kinds`). No value is changed or dropped silently:
//!
//! | known | type | a value that is something else |
//! |---|---|---|
//! | Boolean | boolean | an error: nothing else was promised |
//! | Integer | int64 | a whole number beyond it is an error that says so: only casts and `abs` give such, and as `text` they fit. Another kind: an error |
//! | Number | double | whole numbers become the double that is nearest, as readers of a JSON `number` have it: beyond 2^53 that rounds. Who needs the digits casts to `integer` or `text`. Another kind: an error |
//! | Text, Interval | utf8 | its text: transactions and times are such, and no text of anything is ambiguous |
//! | Time | timestamp, microseconds, UTC | a text that says a time is that time; another kind: an error |
//! | Texts | list of utf8 | elements that are no texts by their JSON text, null as null; what is no array: an error |
//! | Any, Null | the JSON text; in Arrow as binary, marked by the metadata `assay.encoding` = `json` | there is none; JSON null is null |
//!
//! Null in a column declared without nulls is an error as well. After an error the response has no end, so that clients
//! notice that it is cut.

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
    /// An array of objects.
    #[default]
    Json,
    JsonLines,
    Csv,
    /// CSV whose texts a spreadsheet does not take for formulas.
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

    /// Name of the format in requests (`fmt`).
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

    /// Media type of the format. `accept` is the request's header: JSON lines have their own type only for clients that
    /// name it (D-13).
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
    /// Extension of files in this format.
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
    /// Creates a writer for all columns of the answer, including those of a pivot that depend on the data.
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

    /// Appends rows. Returns the bytes that are ready, for Parquet often none.
    pub fn rows(&mut self, table: &Table) -> Result<Vec<u8>, FormatError> {
        self.rows_with(table, in_order)
    }

    /// Returns whether rows are written by column. A column works in short steps then, whatever the number of rows.
    pub(crate) fn writes_columns(&self) -> bool {
        matches!(self.0, FormatWriter::Parquet(_))
    }

    /// Appends rows like [`RowWriter::rows`], on several threads where the format has independent columns.
    pub fn rows_on(&mut self, thread: QueryThread<'_>, table: &Table) -> Result<Vec<u8>, RenderError> {
        self.rows_with(table, |tasks| side_by_side(thread, tasks))
    }

    /// Returns the remaining bytes: the end of a JSON array, or Parquet's last row group and its footer.
    pub fn finish(self) -> Result<Vec<u8>, FormatError> {
        self.finish_with(in_order)
    }

    /// Returns the remaining bytes like [`RowWriter::finish`], on several threads where the format has independent columns.
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

    /// Approximate number of bytes held of rows that were not returned yet.
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

/// Estimate of the size of the next rows from the size of earlier ones: growing a text of megabytes step by step copies it.
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
