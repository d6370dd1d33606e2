//! Reads of rows: single ones through the page index, and ranges in batches.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection, RowSelectionPolicy, RowSelector,
};

use crate::blocks::RowsReader;
use crate::columns::{View, at, projection};
use crate::error::SegmentError;
use crate::row::{Columns, OwnedRow};
use crate::segment::Segment;
use crate::writer::{BATCH_BYTES, BATCH_ROWS_MAX};

/// Number of rows in a batch without documents.
const KEY_BATCH_ROWS: usize = 8192;

impl Segment {
    /// Reads single rows, which must ascend. Only the pages that hold them are read.
    pub fn read(&self, rows: &[u32], what: Columns) -> Result<Vec<OwnedRow>, SegmentError> {
        let in_order = rows.is_sorted_by(|a, b| a < b) && rows.last().is_none_or(|&last| last < self.meta().rows);
        if !in_order {
            return Err(SegmentError::NoSuchRows { rows: self.meta().rows });
        }
        let mut found = Vec::with_capacity(rows.len());
        for (group, rows_of_group) in self.by_group(rows) {
            let start = self.group_starts[group];
            let selection = selection_of(rows_of_group.iter().map(|row| row - start));
            let batch_rows = rows_of_group.len().min(BATCH_ROWS_MAX);
            let mut reader = self.group_reader(group, &self.projection(what), selection, batch_rows)?;
            let mut numbers = rows_of_group.iter();
            while let Some(batch) = reader.next_batch()? {
                let view = View::new(&batch, self.shape.as_ref(), self.rows_file.path())?;
                for (index, &row) in (0..batch.num_rows()).zip(numbers.by_ref()) {
                    found.push(view.owned(index, row, self.rows_file.path())?);
                }
            }
        }
        if found.len() != rows.len() {
            return Err(SegmentError::damaged(
                self.rows_file.path(),
                0,
                "its pages have fewer rows than its footer lists",
            ));
        }
        Ok(found)
    }

    /// Reads a range of rows in batches of about a megabyte.
    pub fn scan(self: &Arc<Self>, range: Range<u32>, what: Columns) -> Result<Scan, SegmentError> {
        self.batches(range, &self.projection(what)).map(Scan)
    }

    /// Reads a range of rows as arrow batches, each with the number of its first row.
    ///
    /// `columns` are positions in the schema.
    pub fn batches(self: &Arc<Self>, range: Range<u32>, columns: &[usize]) -> Result<Batches, SegmentError> {
        if range.start > range.end || range.end > self.meta().rows {
            return Err(SegmentError::NoSuchRows { rows: self.meta().rows });
        }
        let group = self.group_of(range.start);
        Ok(Batches {
            segment: Arc::clone(self),
            columns: columns.to_vec(),
            next: range.start,
            end: range.end,
            group,
            reader: None,
        })
    }

    /// Returns the positions of the columns that a read returns.
    pub fn projection(&self, what: Columns) -> Vec<usize> {
        projection(what, self.shape.as_deref())
    }

    /// Returns the row group that holds this row, or the number of groups.
    fn group_of(&self, row: u32) -> usize {
        self.group_starts.partition_point(|&start| start <= row) - 1
    }

    fn by_group<'a>(&'a self, rows: &'a [u32]) -> impl Iterator<Item = (usize, &'a [u32])> {
        rows.chunk_by(|&a, &b| self.group_of(a) == self.group_of(b)).map(|rows| (self.group_of(rows[0]), rows))
    }

    fn group_reader(
        &self,
        group: usize,
        columns: &[usize],
        selection: RowSelection,
        batch_rows: usize,
    ) -> Result<GroupReader, SegmentError> {
        let chunks = RowsReader::new(&self.rows_file);
        let mask = ProjectionMask::roots(self.footer.parquet_schema(), columns.iter().copied());
        let batches = ParquetRecordBatchReaderBuilder::new_with_metadata(chunks.clone(), self.footer.clone())
            .with_row_groups(vec![group])
            .with_projection(mask)
            .with_row_selection(selection)
            .with_row_selection_policy(RowSelectionPolicy::Selectors)
            .with_batch_size(batch_rows)
            .build()
            .map_err(|error| chunks.explain(error))?;
        Ok(GroupReader { batches, chunks })
    }

    /// Returns the number of rows in a batch of about [`BATCH_BYTES`].
    fn batch_rows(&self, group: usize, columns: &[usize]) -> usize {
        if columns.iter().all(|&column| column < at::DOC) {
            return KEY_BATCH_ROWS;
        }
        let group = self.footer.metadata().row_group(group);
        let bytes: i64 = columns.iter().map(|&column| group.column(column).uncompressed_size()).sum();
        let row_bytes = (bytes.max(1) as u64).div_ceil(group.num_rows().max(1) as u64);
        (BATCH_BYTES as u64 / row_bytes).clamp(1, BATCH_ROWS_MAX as u64) as usize
    }
}

/// Reader of the batches of one row group.
struct GroupReader {
    batches: ParquetRecordBatchReader,
    chunks: RowsReader,
}

impl GroupReader {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, SegmentError> {
        self.batches.next().transpose().map_err(|error| self.chunks.explain(error))
    }
}

/// Selects single rows, given in ascending order.
fn selection_of(rows: impl Iterator<Item = u32>) -> RowSelection {
    let mut selectors = Vec::new();
    let mut next = 0;
    for row in rows {
        if row > next {
            selectors.push(RowSelector::skip((row - next) as usize));
        }
        selectors.push(RowSelector::select(1));
        next = row + 1;
    }
    RowSelection::from(selectors)
}

/// Iterator over a range of rows as arrow batches: `(number of the first row, batch)`. It ends after an error.
pub struct Batches {
    segment: Arc<Segment>,
    columns: Vec<usize>,
    next: u32,
    end: u32,
    group: usize,
    reader: Option<GroupReader>,
}

impl std::fmt::Debug for Batches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Batches({}..{} of segment {})", self.next, self.end, self.segment.meta().seq)
    }
}

impl Batches {
    fn advance(&mut self) -> Result<Option<(u32, RecordBatch)>, SegmentError> {
        while self.next < self.end {
            let (start, stop) = (self.segment.group_starts[self.group], self.segment.group_starts[self.group + 1]);
            let reader = match &mut self.reader {
                Some(reader) => reader,
                none => {
                    let selection = RowSelection::from(vec![
                        RowSelector::skip((self.next - start) as usize),
                        RowSelector::select((stop.min(self.end) - self.next) as usize),
                    ]);
                    let batch_rows = self.segment.batch_rows(self.group, &self.columns);
                    none.insert(self.segment.group_reader(self.group, &self.columns, selection, batch_rows)?)
                }
            };
            if let Some(batch) = reader.next_batch()? {
                let first = self.next;
                self.next = first.saturating_add(batch.num_rows() as u32);
                return Ok(Some((first, batch)));
            }
            if self.next != stop.min(self.end) {
                let path = self.segment.rows_file.path();
                return Err(SegmentError::damaged(path, 0, "its pages have other rows than its footer lists"));
            }
            self.reader = None;
            self.group += 1;
        }
        Ok(None)
    }

    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }
}

impl Iterator for Batches {
    type Item = Result<(u32, RecordBatch), SegmentError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.advance().transpose();
        if matches!(batch, Some(Err(_))) {
            self.end = self.next;
        }
        batch
    }
}

/// Iterator over a range of rows in batches. It ends after an error.
#[derive(Debug)]
pub struct Scan(Batches);

impl Iterator for Scan {
    type Item = Result<Vec<OwnedRow>, SegmentError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.0.advance().transpose()?;
        let path = self.0.segment.rows_file.path();
        let rows = batch.and_then(|(first, batch)| {
            let view = View::new(&batch, self.0.segment.shape.as_ref(), path)?;
            (0..batch.num_rows()).map(|index| view.owned(index, first + index as u32, path)).collect()
        });
        if rows.is_err() {
            self.0.end = self.0.next;
        }
        Some(rows)
    }
}
