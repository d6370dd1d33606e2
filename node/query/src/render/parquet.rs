//! Rows as a Parquet file: small batches of columns are encoded as they fill, and row groups are returned as they end.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use assay_node_btql::schema;
use assay_node_engine::Table;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::typed_array::{field, typed_array};
use super::{FormatError, check_width};

/// Rows and bytes that end a batch: pages are cut between batches, so that a page of long texts stays small.
const BATCH_ROWS: usize = 1024;
const BATCH_BYTES: usize = 1 << 20;
/// Rows and bytes that end a row group. The bytes are those held, most of them compressed.
const GROUP_ROWS: usize = 128 << 10;
const GROUP_BYTES: usize = 16 << 20;
/// Size of a value without a text, for bounds.
const SCALAR_BYTES: usize = 8;

#[derive(Debug)]
pub struct ParquetWriter {
    columns: Vec<schema::Column>,
    schema: SchemaRef,
    batch: PendingBatch,
    file: ArrowWriter<Vec<u8>>,
}

/// Rows that do not fill a batch yet.
#[derive(Debug, Default)]
struct PendingBatch {
    /// Arrays of each part of the batch.
    parts: Vec<Vec<ArrayRef>>,
    rows: usize,
    bytes: usize,
}

impl ParquetWriter {
    pub fn new(columns: &[schema::Column]) -> Result<ParquetWriter, FormatError> {
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let file = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties()))?;
        Ok(ParquetWriter { columns: columns.to_vec(), schema, batch: PendingBatch::default(), file })
    }

    pub fn rows(&mut self, table: &Table) -> Result<Vec<u8>, FormatError> {
        check_width(table, self.columns.len())?;
        let arrays = self.columns.iter().zip(&table.cells).map(|(column, cells)| typed_array(column, cells));
        let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
        let (mut from, mut ended) = (0, false);
        for row in 0..table.len {
            self.batch.rows += 1;
            self.batch.bytes += arrays.iter().map(|array| SCALAR_BYTES + text_bytes(array, row)).sum::<usize>();
            if self.batch.rows >= BATCH_ROWS || self.batch.bytes >= BATCH_BYTES {
                self.batch.push(&arrays, from, row + 1 - from);
                from = row + 1;
                self.end_batch()?;
                ended |= self.end_group_if_full()?;
            }
        }
        if from < table.len {
            self.batch.push(&arrays, from, table.len - from);
        }
        if ended { self.take() } else { Ok(Vec::new()) }
    }

    pub fn finish(mut self) -> Result<Vec<u8>, FormatError> {
        self.end_batch()?;
        Ok(self.file.into_inner()?)
    }

    pub fn held(&self) -> usize {
        self.batch.bytes + self.file.memory_size() + self.file.inner().capacity()
    }

    fn end_batch(&mut self) -> Result<(), FormatError> {
        let PendingBatch { parts, rows, .. } = std::mem::take(&mut self.batch);
        let column = |number: usize| {
            let arrays: Vec<&dyn Array> = parts.iter().map(|part| part[number].as_ref()).collect();
            match arrays.as_slice() {
                [_] => Ok(Arc::clone(&parts[0][number])),
                [] => Ok(arrow::array::new_empty_array(self.schema.field(number).data_type())),
                arrays => concat(arrays),
            }
        };
        let arrays = (0..self.columns.len()).map(column).collect::<Result<_, _>>()?;
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

impl PendingBatch {
    /// Appends rows, which share their memory with `arrays`.
    fn push(&mut self, arrays: &[ArrayRef], from: usize, rows: usize) {
        self.parts.push(arrays.iter().map(|array| array.slice(from, rows)).collect());
    }
}

/// Returns the bytes of the texts of a row.
fn text_bytes(array: &ArrayRef, row: usize) -> usize {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value_length(row) as usize,
        DataType::List(_) => {
            let (list, offsets) = (array.as_list::<i32>(), array.as_list::<i32>().value_offsets());
            let texts = list.values().as_string::<i32>().value_offsets();
            (texts[offsets[row + 1] as usize] - texts[offsets[row] as usize]) as usize
        }
        _ => 0,
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
