//! Rows of Parquet files as JSON, in order.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context;
use assay_node_importers::{SLICE_RECORDS_MAX, time_text};
use parquet::file::reader::SerializedFileReader;
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row};
use serde_json::{Map, Value};

const MICROS_PER_MILLI: i64 = 1000;
const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Reader at a row of a file.
pub(crate) struct ParquetReader {
    path: PathBuf,
    next: u64,
    rows: RowIter<'static>,
}

impl fmt::Debug for ParquetReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ParquetReader({}, row {})", self.path.display(), self.next)
    }
}

impl ParquetReader {
    /// Opens a file at a row.
    pub(crate) fn open(path: &Path, row: u64) -> anyhow::Result<ParquetReader> {
        let file = File::open(path)?;
        let reader = SerializedFileReader::new(file).context("it is not a Parquet file")?;
        let mut rows = RowIter::from_file_into(Box::new(reader));
        for _ in 0..row {
            rows.next().transpose()?;
        }
        Ok(ParquetReader { path: path.to_owned(), next: row, rows })
    }

    pub(crate) fn is_at(&self, path: &Path, row: u64) -> bool {
        self.path == path && self.next == row
    }

    /// Returns the next rows, and the position behind them unless the file ends.
    pub(crate) fn records(&mut self) -> anyhow::Result<(Vec<Value>, Option<u64>)> {
        let mut records = Vec::new();
        for row in self.rows.by_ref().take(SLICE_RECORDS_MAX) {
            records.push(json_of_row(&row?));
        }
        self.next += records.len() as u64;
        let is_full = records.len() == SLICE_RECORDS_MAX;
        Ok((records, is_full.then_some(self.next)))
    }
}

fn json_of_row(row: &Row) -> Value {
    let columns = row.get_column_iter().map(|(name, field)| (name.clone(), json_of(field)));
    Value::Object(columns.collect::<Map<_, _>>())
}

fn json_of(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Bool(value) => Value::from(*value),
        Field::Byte(value) => Value::from(*value),
        Field::Short(value) => Value::from(*value),
        Field::Int(value) => Value::from(*value),
        Field::Long(value) => Value::from(*value),
        Field::UByte(value) => Value::from(*value),
        Field::UShort(value) => Value::from(*value),
        Field::UInt(value) => Value::from(*value),
        Field::ULong(value) => Value::from(*value),
        Field::Float(value) => Value::from(*value),
        Field::Double(value) => Value::from(*value),
        Field::Str(text) => Value::from(text.as_str()),
        Field::Bytes(bytes) => Value::from(String::from_utf8_lossy(bytes.data()).into_owned()),
        Field::Date(days) => Value::from(time_text(i64::from(*days) * MICROS_PER_DAY)),
        Field::TimestampMillis(millis) => Value::from(time_text(millis.saturating_mul(MICROS_PER_MILLI))),
        Field::TimestampMicros(micros) => Value::from(time_text(*micros)),
        Field::Group(row) => json_of_row(row),
        Field::ListInternal(list) => Value::Array(list.elements().iter().map(json_of).collect()),
        Field::MapInternal(map) => {
            let entries = map.entries().iter().map(|(key, value)| (text_of(key), json_of(value)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
        // Decimals, halves and times of a day have a text.
        other => Value::from(other.to_string()),
    }
}

fn text_of(field: &Field) -> String {
    match field {
        Field::Str(text) => text.clone(),
        other => other.to_string(),
    }
}
