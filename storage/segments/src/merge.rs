//! Many segments into one: a streaming merge in the order of rows, which folds later marks into `end` and leaves out what
//! the caller no longer keeps.
//!
//! Memory is bounded by the inputs' number, not their size: each holds one batch of about a megabyte (one document, if
//! that is larger), and at most [`HELD_BATCHES`] more wait for the output; the index of the output takes about a
//! hundred bytes a row. Where rows of one input follow one another they are handed on without a copy; otherwise each value
//! is copied once.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, UInt64Array};
use arrow::compute::interleave;
use arrow::error::ArrowError;
use assay_storage_disk::SharedDisk;
use assay_storage_model::segment::SegmentMeta;
use assay_storage_model::{ObjectKey, Xact};

use crate::columns::{View, at, projection, schema};
use crate::error::SegmentError;
use crate::read::Batches;
use crate::row::{Columns, Mark, RowHeader};
use crate::segment::Segment;
use crate::writer::{BATCH_BYTES, BATCH_ROWS_MAX, SegmentWriter, WriterOptions};

/// Batches that are kept for the next output besides the one that each input stands in.
const HELD_BATCHES: usize = 16;
/// In place of the new number of a row that was not kept.
pub const DROPPED: u32 = u32::MAX;

/// One segment of a merge.
#[derive(Clone, Debug)]
pub struct MergeInput {
    pub segment: Arc<Segment>,
    /// What later segments superseded in this one: row and end, sorted by row.
    pub ends: Vec<(u32, Xact)>,
}

/// What a merge made.
#[derive(Clone, Debug)]
pub struct Merged {
    pub meta: SegmentMeta,
    /// For each input, for each of its rows: its new number, or [`DROPPED`].
    pub moved: Vec<Vec<u32>>,
}

/// A merge whose rows are written and whose marks are not: what they are may be known only now.
#[derive(Debug)]
pub struct Unfinished {
    writer: SegmentWriter,
    /// As in [`Merged`].
    pub moved: Vec<Vec<u32>>,
}

impl Unfinished {
    /// Durable when it returns.
    pub fn finish(self, marks: &[Mark]) -> Result<SegmentMeta, SegmentError> {
        self.writer.finish(marks)
    }
}

/// Writes the rows of all inputs that `keep` accepts as segment `seq`, durable when it returns. `marks` are those of the
/// inputs that name rows of segments outside this merge. The inputs stay; the caller lists the one and drops the others.
pub fn merge(
    inputs: &[MergeInput],
    keep: &dyn Fn(&RowHeader<'_>) -> bool,
    disk: SharedDisk,
    dir: &Path,
    seq: u64,
    options: WriterOptions,
    marks: &[Mark],
) -> Result<Merged, SegmentError> {
    let Unfinished { writer, moved } = merge_rows(inputs, keep, disk, dir, seq, options)?;
    Ok(Merged { meta: writer.finish(marks)?, moved })
}

/// The rows of [`merge`], for a caller that learns the marks while they are written.
pub fn merge_rows(
    inputs: &[MergeInput],
    keep: &dyn Fn(&RowHeader<'_>) -> bool,
    disk: SharedDisk,
    dir: &Path,
    seq: u64,
    options: WriterOptions,
) -> Result<Unfinished, SegmentError> {
    let mut output = Output::new(SegmentWriter::create(disk, dir, seq, options)?, seq, inputs.len());
    let mut cursors = inputs.iter().map(Cursor::open).collect::<Result<Vec<_>, _>>()?;
    while let Some((lead, rival)) = next_run(&cursors) {
        // All rows of the leading input up to the first of any other; among equals the earlier input goes first.
        loop {
            let cursor = &mut cursors[lead];
            output.take_row(cursor, keep)?;
            if output.is_full() {
                output.write()?;
                cursors.iter_mut().for_each(|cursor| cursor.slot = None);
            }
            cursors[lead].advance()?;
            let goes_on = match (&cursors[lead].head, &rival) {
                (Some(head), Some((rival, input))) => (head, lead) < (rival, *input),
                (head, None) => head.is_some(),
                (None, _) => false,
            };
            if !goes_on {
                break;
            }
        }
    }
    output.write()?;
    Ok(Unfinished { writer: output.writer, moved: cursors.into_iter().map(|cursor| cursor.moved).collect() })
}

/// Where a row stands: objects ascend, keys and transactions descend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    object: [u8; ObjectKey::BYTES],
    key: std::cmp::Reverse<u64>,
    xact: std::cmp::Reverse<u64>,
}

/// The input with the first row, and the first row of all others with its input.
fn next_run(cursors: &[Cursor<'_>]) -> Option<(usize, Option<(Place, usize)>)> {
    let heads = || cursors.iter().enumerate().filter_map(|(input, cursor)| Some((cursor.head?, input)));
    let (_, lead) = heads().min()?;
    Some((lead, heads().filter(|(_, input)| *input != lead).min()))
}

/// A place in one input.
struct Cursor<'a> {
    batches: Batches,
    ends: &'a [(u32, Xact)],
    batch: Option<(RecordBatch, View)>,
    /// Within the batch.
    index: usize,
    /// Within the segment.
    row: u32,
    head: Option<Place>,
    /// Where the output holds the batch, once a row of it was taken.
    slot: Option<usize>,
    moved: Vec<u32>,
}

impl<'a> Cursor<'a> {
    fn open(input: &'a MergeInput) -> Result<Cursor<'a>, SegmentError> {
        let rows = input.segment.meta().rows;
        let sorted = input.ends.is_sorted_by_key(|(row, _)| *row);
        if !sorted || input.ends.last().is_some_and(|(row, _)| *row >= rows) {
            return Err(SegmentError::NoSuchRows { rows });
        }
        let mut cursor = Cursor {
            batches: input.segment.batches(0..rows, &projection(Columns::All))?,
            ends: &input.ends,
            batch: None,
            index: 0,
            row: 0,
            head: None,
            slot: None,
            moved: Vec::with_capacity(rows as usize),
        };
        cursor.load()?;
        Ok(cursor)
    }

    /// To the next row.
    fn advance(&mut self) -> Result<(), SegmentError> {
        self.index += 1;
        self.row += 1;
        self.load()
    }

    fn load(&mut self) -> Result<(), SegmentError> {
        while self.batch.as_ref().is_none_or(|(batch, _)| self.index >= batch.num_rows()) {
            let Some(next) = self.batches.next() else {
                self.head = None;
                return Ok(());
            };
            let (_, batch) = next?;
            let view = View::new(&batch, self.batches.segment().rows_file.path())?;
            self.batch = Some((batch, view));
            (self.index, self.slot) = (0, None);
        }
        self.head = self.batch.as_ref().and_then(|(_, view)| {
            Some(Place {
                object: view.object.value(self.index).try_into().ok()?,
                key: std::cmp::Reverse(view.key.value(self.index)),
                xact: std::cmp::Reverse(view.xact.value(self.index)),
            })
        });
        Ok(())
    }
}

/// The end of a row: the first write that superseded it, known when it was written or marked since.
fn fold_end(known: Option<Xact>, ends: &mut &[(u32, Xact)], row: u32) -> Option<Xact> {
    let mut end = known;
    while let Some(((marked_row, marked), rest)) = ends.split_first().filter(|((marked_row, _), _)| *marked_row <= row)
    {
        if *marked_row == row {
            end = Some(end.map_or(*marked, |end| end.min(*marked)));
        }
        *ends = rest;
    }
    end
}

/// Rows that were taken and wait to be written together.
struct Output {
    writer: SegmentWriter,
    seq: u64,
    held_max: usize,
    held: Vec<RecordBatch>,
    /// Batch and row within it.
    taken: Vec<(usize, usize)>,
    ends: Vec<Option<u64>>,
    bytes: u64,
}

impl Output {
    fn new(writer: SegmentWriter, seq: u64, inputs: usize) -> Output {
        let held_max = inputs + HELD_BATCHES;
        Output { writer, seq, held_max, held: Vec::new(), taken: Vec::new(), ends: Vec::new(), bytes: 0 }
    }

    fn is_full(&self) -> bool {
        self.taken.len() >= BATCH_ROWS_MAX || self.bytes >= BATCH_BYTES as u64 || self.held.len() >= self.held_max
    }

    /// The row that the cursor stands at, if it is kept.
    fn take_row(&mut self, cursor: &mut Cursor<'_>, keep: &dyn Fn(&RowHeader<'_>) -> bool) -> Result<(), SegmentError> {
        let Some((batch, view)) = &cursor.batch else {
            return Ok(());
        };
        let mut header = view.header(cursor.index, cursor.batches.segment().rows_file.path())?;
        header.end = fold_end(header.end, &mut cursor.ends, cursor.row);
        if !keep(&header) {
            cursor.moved.push(DROPPED);
            return Ok(());
        }
        cursor.moved.push(self.writer.rows() + self.taken.len() as u32);
        let slot = *cursor.slot.get_or_insert_with(|| {
            self.held.push(batch.clone());
            self.held.len() - 1
        });
        self.taken.push((slot, cursor.index));
        self.ends.push(header.end.map(|end| end.0));
        self.bytes += view.raw_bytes(cursor.index);
        Ok(())
    }

    /// Hands on what was taken and lets the batches go.
    fn write(&mut self) -> Result<(), SegmentError> {
        if self.taken.is_empty() {
            return Ok(());
        }
        let batch = self.batch().map_err(|error| SegmentError::Encode { seq: self.seq, what: error.to_string() })?;
        self.writer.push_batch(&batch)?;
        self.held.clear();
        self.taken.clear();
        self.ends.clear();
        self.bytes = 0;
        Ok(())
    }

    fn batch(&self) -> Result<RecordBatch, ArrowError> {
        let (slot, first) = self.taken[0];
        let in_a_row = self.taken.iter().enumerate().all(|(nth, taken)| *taken == (slot, first + nth));
        let mut columns = Vec::with_capacity(schema().fields().len());
        for column in 0..schema().fields().len() {
            columns.push(if column == at::END {
                Arc::new(UInt64Array::from(self.ends.clone()))
            } else if in_a_row {
                self.held[slot].column(column).slice(first, self.taken.len())
            } else {
                let arrays: Vec<&dyn Array> = self.held.iter().map(|batch| &**batch.column(column)).collect();
                interleave(&arrays, &self.taken)?
            });
        }
        RecordBatch::try_new(schema(), columns)
    }
}
