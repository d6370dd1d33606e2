//! Rows as a Parquet file: columns are encoded side by side, and row groups are returned as they end.

use std::cmp::Reverse;
use std::sync::Arc;

use arrow_schema::{FieldRef, Schema, SchemaRef};
use assay_node_btql::schema;
use assay_node_engine::{ResultColumn, Table};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;

use super::typed_array::{field, typed_array};
use super::{FormatError, check_width};

/// Rows and bytes at which a row group ends. The bytes are those in memory, most of them compressed.
const GROUP_ROWS: usize = 128 << 10;
const GROUP_BYTES: usize = 16 << 20;
/// Bytes of rows whose columns are encoded in parallel. Each large column has several pages, so that all threads have
/// work.
const BATCH_BYTES: usize = 4 << 20;
/// Bytes of texts that a column encodes between two checks whether to stop.
const STEP_BYTES: usize = 512 << 10;
/// Size at which a page ends. Larger pages hardly compress better, and do not fit into a processor's cache.
const PAGE_BYTES: usize = 256 << 10;
/// Number of rows after which the size of a page is checked, so that a page of long texts stays small.
const PAGE_CHECK_ROWS: usize = 256;

#[derive(Debug)]
pub struct ParquetWriter {
    columns: Vec<ColumnEncoder>,
    /// Number of rows in the current row group.
    rows: usize,
    file: SerializedFileWriter<Vec<u8>>,
    row_groups: ArrowRowGroupWriterFactory,
}

/// Encoder of one column. It has no writer before the first row of a row group.
#[derive(Debug)]
struct ColumnEncoder {
    column: schema::Column,
    field: FieldRef,
    writer: Option<ArrowColumnWriter>,
    /// Column of an ended row group.
    ended: Option<ArrowColumnChunk>,
}

/// Task for one column, independent of the other columns.
pub struct ColumnTask<'a> {
    encoder: &'a mut ColumnEncoder,
    /// Cells to encode, or `None` to end the column of a row group.
    cells: Option<&'a ResultColumn>,
}

impl ColumnTask<'_> {
    /// Runs the task in short steps. `check` is called before each step.
    pub fn run<E: From<FormatError>>(self, check: impl Fn() -> Result<(), E>) -> Result<(), E> {
        let Some(cells) = self.cells else { return Ok(self.encoder.end()?) };
        let rows = cells.array().len();
        let steps = cells.text_bytes().div_ceil(STEP_BYTES).max(1);
        let step = rows.div_ceil(steps).max(1);
        for from in (0..rows).step_by(step) {
            check()?;
            self.encoder.write(&cells.slice(from, step.min(rows - from)))?;
        }
        Ok(())
    }
}

impl ColumnEncoder {
    fn write(&mut self, cells: &ResultColumn) -> Result<(), FormatError> {
        let array = typed_array(&self.column, cells)?;
        let Some(writer) = &mut self.writer else { return Err(out_of_order()) };
        for leaf in compute_leaves(&self.field, &array)? {
            writer.write(&leaf)?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), FormatError> {
        self.ended = self.writer.take().map(ArrowColumnWriter::close).transpose()?;
        Ok(())
    }
}

impl ParquetWriter {
    pub fn new(columns: &[schema::Column]) -> Result<ParquetWriter, FormatError> {
        let schema: SchemaRef = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let file = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties()))?;
        let (file, row_groups) = file.into_serialized_writer()?;
        let encoder = |(column, field): (&schema::Column, &FieldRef)| ColumnEncoder {
            column: column.clone(),
            field: Arc::clone(field),
            writer: None,
            ended: None,
        };
        let columns = columns.iter().zip(schema.fields()).map(encoder).collect();
        Ok(ParquetWriter { columns, rows: 0, file, row_groups })
    }

    /// Appends rows. `run` runs the tasks of all columns, in any order.
    pub fn rows<E: From<FormatError>>(
        &mut self,
        table: &Table,
        run: impl Fn(Vec<ColumnTask<'_>>) -> Result<(), E>,
    ) -> Result<Vec<u8>, E> {
        check_width(table, self.columns.len())?;
        let each = (table.bytes() / table.len.max(1)).max(1);
        let (mut from, mut ended) = (0, false);
        while from < table.len {
            let count = (BATCH_BYTES / each).clamp(1, GROUP_ROWS - self.rows).min(table.len - from);
            self.batch(&table.slice(from, count), &run)?;
            if self.rows >= GROUP_ROWS || self.group_bytes() >= GROUP_BYTES {
                self.end_group(&run)?;
                ended = true;
            }
            from += count;
        }
        Ok(if ended { self.take()? } else { Vec::new() })
    }

    fn batch<E: From<FormatError>>(
        &mut self,
        table: &Table,
        run: impl Fn(Vec<ColumnTask<'_>>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.rows == 0 {
            self.begin_group()?;
        }
        // The largest column goes first, so that no thread waits for it at the end.
        let mut order: Vec<_> = self.columns.iter_mut().zip(&table.cells).collect();
        order.sort_by_key(|(_, cells)| Reverse(cells.text_bytes()));
        run(order.into_iter().map(|(encoder, cells)| ColumnTask { encoder, cells: Some(cells) }).collect())?;
        self.rows += table.len;
        Ok(())
    }

    /// Returns the remaining bytes: the last row group and the footer.
    pub fn finish<E: From<FormatError>>(
        mut self,
        run: impl Fn(Vec<ColumnTask<'_>>) -> Result<(), E>,
    ) -> Result<Vec<u8>, E> {
        if self.rows > 0 {
            self.end_group(run)?;
        }
        Ok(self.file.into_inner().map_err(FormatError::from)?)
    }

    pub fn held(&self) -> usize {
        self.group_bytes() + self.file.inner().capacity()
    }

    /// Returns the memory of the current row group.
    fn group_bytes(&self) -> usize {
        self.columns.iter().filter_map(|encoder| encoder.writer.as_ref()).map(ArrowColumnWriter::memory_size).sum()
    }

    fn begin_group(&mut self) -> Result<(), FormatError> {
        let number = self.file.flushed_row_groups().len();
        let writers = self.row_groups.create_column_writers(number)?;
        // Each column has one leaf, because lists are the only nested type.
        for (encoder, writer) in self.columns.iter_mut().zip(writers) {
            encoder.writer = Some(writer);
        }
        Ok(())
    }

    fn end_group<E: From<FormatError>>(&mut self, run: impl Fn(Vec<ColumnTask<'_>>) -> Result<(), E>) -> Result<(), E> {
        run(self.columns.iter_mut().map(|encoder| ColumnTask { encoder, cells: None }).collect())?;
        Ok(self.append_group()?)
    }

    /// Appends the ended columns to the file.
    fn append_group(&mut self) -> Result<(), FormatError> {
        let chunks: Vec<ArrowColumnChunk> = self
            .columns
            .iter_mut()
            .map(|encoder| encoder.ended.take().ok_or_else(out_of_order))
            .collect::<Result<_, _>>()?;
        // One reservation avoids repeated growth.
        let bytes: u64 = chunks.iter().map(|chunk| chunk.close().bytes_written).sum();
        self.file.inner_mut().reserve(usize::try_from(bytes).unwrap_or(0));
        let mut group = self.file.next_row_group()?;
        for chunk in chunks {
            chunk.append_to_row_group(&mut group)?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }

    /// Returns the bytes written since the last call.
    ///
    /// The file counts its offsets independently of the buffer, so the buffer may be emptied. `flush` leaves nothing
    /// behind.
    fn take(&mut self) -> Result<Vec<u8>, FormatError> {
        self.file.flush().map_err(ParquetError::from)?;
        Ok(std::mem::take(self.file.inner_mut()))
    }
}

fn out_of_order() -> FormatError {
    FormatError::Parquet(ParquetError::General("a column was written outside of a row group".into()))
}

/// Returns the properties of the file. Page statistics and page offsets are disabled, since they stay in memory until
/// the footer.
fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_created_by("assay".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(None)
        .set_max_row_group_bytes(None)
        .set_write_batch_size(PAGE_CHECK_ROWS)
        .set_data_page_size_limit(PAGE_BYTES)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .build()
}
