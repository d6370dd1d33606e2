//! Rows as a Parquet file: small batches of columns are encoded as they fill, and row groups are handed over as they end.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use assay_node_btql::schema;
use assay_node_btql::values::Value;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::column::Column;
use crate::{AnswerError, check_width};

/// A batch ends with the row that reaches either: pages are cut between batches, so that one of long texts stays small.
const BATCH_ROWS: usize = 1024;
const BATCH_BYTES: usize = 1 << 20;
/// A row group ends with the batch that reaches either; the bytes are those held, most of them compressed.
const GROUP_ROWS: usize = 128 << 10;
const GROUP_BYTES: usize = 16 << 20;

#[derive(Debug)]
pub struct Writer {
    schema: SchemaRef,
    columns: Vec<Column>,
    /// Rows and bytes that the columns have.
    batch: (usize, usize),
    file: ArrowWriter<Vec<u8>>,
    scratch: String,
}

impl Writer {
    pub fn new(columns: &[schema::Column]) -> Result<Writer, AnswerError> {
        let columns: Vec<Column> = columns.iter().map(Column::new).collect();
        let schema = Arc::new(Schema::new(columns.iter().map(Column::field).collect::<Vec<_>>()));
        let file = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties()))?;
        Ok(Writer { schema, columns, batch: (0, 0), file, scratch: String::new() })
    }

    pub fn rows(&mut self, rows: &[Vec<Value<'_>>]) -> Result<Vec<u8>, AnswerError> {
        let mut ended = false;
        for row in rows {
            check_width(row, self.columns.len())?;
            self.batch.0 += 1;
            for (column, value) in self.columns.iter_mut().zip(row) {
                self.batch.1 += column.put(value, &mut self.scratch)?;
            }
            if self.batch.0 >= BATCH_ROWS || self.batch.1 >= BATCH_BYTES {
                self.end_batch()?;
                ended |= self.end_group_if_full()?;
            }
        }
        if ended { self.take() } else { Ok(Vec::new()) }
    }

    pub fn finish(mut self) -> Result<Vec<u8>, AnswerError> {
        self.end_batch()?;
        Ok(self.file.into_inner()?)
    }

    pub fn held(&self) -> usize {
        self.batch.1 + self.scratch.capacity() + self.file.memory_size() + self.file.inner().capacity()
    }

    fn end_batch(&mut self) -> Result<(), AnswerError> {
        let (rows, _) = std::mem::take(&mut self.batch);
        let arrays = self.columns.iter_mut().map(Column::take).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
        Ok(self.file.write(&batch)?)
    }

    fn end_group_if_full(&mut self) -> Result<bool, AnswerError> {
        if self.file.in_progress_rows() < GROUP_ROWS && self.file.memory_size() < GROUP_BYTES {
            return Ok(false);
        }
        // Once, instead of twice as much each time that it is too little.
        let bytes = self.file.in_progress_size();
        self.file.inner_mut().reserve(bytes);
        self.file.flush()?;
        Ok(true)
    }

    /// What was written since it was last taken. Where things stand in the file is counted in front of the buffer, so
    /// that it may be emptied, and `sync` leaves nothing before it.
    fn take(&mut self) -> Result<Vec<u8>, AnswerError> {
        self.file.sync().map_err(parquet::errors::ParquetError::from)?;
        Ok(std::mem::take(self.file.inner_mut()))
    }
}

/// What is kept until the footer is kept for each row group: neither statistics nor places of pages.
fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_created_by("assay".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(None)
        .set_max_row_group_bytes(None)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .build()
}
