//! Rows as a Parquet file: small batches of columns are encoded as they fill, and row groups are returned as they end.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use assay_node_btql::schema;
use assay_node_btql::values::Value;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::parquet_column::ColumnBuilder;
use super::{FormatError, check_width};

/// Rows and bytes that end a batch: pages are cut between batches, so that a page of long texts stays small.
const BATCH_ROWS: usize = 1024;
const BATCH_BYTES: usize = 1 << 20;
/// Rows and bytes that end a row group. The bytes are those held, most of them compressed.
const GROUP_ROWS: usize = 128 << 10;
const GROUP_BYTES: usize = 16 << 20;

#[derive(Debug)]
pub struct ParquetWriter {
    schema: SchemaRef,
    columns: Vec<ColumnBuilder>,
    /// Rows and bytes in the current batch.
    batch: (usize, usize),
    file: ArrowWriter<Vec<u8>>,
    scratch: String,
}

impl ParquetWriter {
    pub fn new(columns: &[schema::Column]) -> Result<ParquetWriter, FormatError> {
        let columns: Vec<ColumnBuilder> = columns.iter().map(ColumnBuilder::new).collect();
        let schema = Arc::new(Schema::new(columns.iter().map(ColumnBuilder::field).collect::<Vec<_>>()));
        let file = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties()))?;
        Ok(ParquetWriter { schema, columns, batch: (0, 0), file, scratch: String::new() })
    }

    pub fn rows(&mut self, rows: &[Vec<Value<'_>>]) -> Result<Vec<u8>, FormatError> {
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

    pub fn finish(mut self) -> Result<Vec<u8>, FormatError> {
        self.end_batch()?;
        Ok(self.file.into_inner()?)
    }

    pub fn held(&self) -> usize {
        self.batch.1 + self.scratch.capacity() + self.file.memory_size() + self.file.inner().capacity()
    }

    fn end_batch(&mut self) -> Result<(), FormatError> {
        let (rows, _) = std::mem::take(&mut self.batch);
        let arrays = self.columns.iter_mut().map(ColumnBuilder::take).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
        Ok(self.file.write(&batch)?)
    }

    fn end_group_if_full(&mut self) -> Result<bool, FormatError> {
        if self.file.in_progress_rows() < GROUP_ROWS && self.file.memory_size() < GROUP_BYTES {
            return Ok(false);
        }
        // Once, instead of twice as much each time that it is too little.
        let bytes = self.file.in_progress_size();
        self.file.inner_mut().reserve(bytes);
        self.file.flush()?;
        Ok(true)
    }

    /// Takes the bytes written since the last call. The file counts its offsets in front of the buffer, so the buffer may
    /// be emptied, and `sync` leaves nothing behind.
    fn take(&mut self) -> Result<Vec<u8>, FormatError> {
        self.file.sync().map_err(parquet::errors::ParquetError::from)?;
        Ok(std::mem::take(self.file.inner_mut()))
    }
}

/// Properties of the file. Neither page statistics nor page offsets are kept, since they stay in memory until the footer.
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
