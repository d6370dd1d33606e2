//! Streaming merge of many segments into one, in the order of rows.
//!
//! The merge folds later marks into `end` and drops rows that the caller no longer keeps.
//!
//! Memory is bounded by the number of inputs, not by their size. Each input holds one batch of about a megabyte and the
//! same amount of document pages. At most [`HELD_BATCHES`] more batches wait for the output, with one row group of
//! stored pages. The index of the output takes about a hundred bytes per row. A page of documents is copied as stored
//! if all of its rows are kept and adjacent. New rows precede older ones, so only rows that change late split pages.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch, UInt64Array};
use arrow_schema::ArrowError;
use arrow_select::interleave::interleave;
use assay_storage_disk::SharedDisk;
use assay_storage_model::segment::SegmentMeta;
use assay_storage_model::{ObjectKey, Xact};

use crate::columnar::Sample;
use crate::columns::{PAGE_ROWS_MAX, View, all_but_documents, at};
use crate::error::SegmentError;
use crate::read::Batches;
use crate::row::{Columns, Mark, RowHeader};
use crate::segment::Segment;
use crate::sources::DocSource;
use crate::writer::{BATCH_BYTES, BATCH_ROWS_MAX, SegmentWriter, WriterOptions};

/// Number of batches kept for the next output, besides the current one of each input.
const HELD_BATCHES: usize = 16;
/// Number of runs of rows from which columns are chosen, and below it the number of rows in each.
const SAMPLE_RUNS: u64 = 64;
const SAMPLE_RUN_ROWS: u32 = 32;
/// New number of a row that was not kept.
pub const DROPPED: u32 = u32::MAX;

/// Input segment of a merge.
#[derive(Clone, Debug)]
pub struct MergeInput {
    pub segment: Arc<Segment>,
    /// Rows of this segment that later segments superseded, with their ends, sorted by row.
    pub ends: Vec<(u32, Xact)>,
}

/// Decisions of the caller during a merge.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    /// Decides whether a row is kept.
    pub keep: &'a dyn Fn(&RowHeader<'_>) -> bool,
    /// Callback for every few milliseconds of work. No lock is held, so it may block.
    pub pace: &'a dyn Fn(),
}

impl std::fmt::Debug for Rules<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules").finish_non_exhaustive()
    }
}

/// Result of a merge.
#[derive(Clone, Debug)]
pub struct Merged {
    pub meta: SegmentMeta,
    /// For each input, the new number of each of its rows, or [`DROPPED`].
    pub moved: Vec<Vec<u32>>,
}

/// Merge that is written except for its marks, which may become known only at the end.
#[derive(Debug)]
pub struct Unfinished {
    writer: SegmentWriter,
    /// New numbers, as in [`Merged`].
    pub moved: Vec<Vec<u32>>,
}

impl Unfinished {
    /// Writes the marks. The segment is durable when this returns.
    pub fn finish(self, marks: &[Mark]) -> Result<SegmentMeta, SegmentError> {
        self.writer.finish(marks)
    }
}

/// Writes the rows of all inputs that `keep` accepts as segment `seq`, which is durable when this returns.
///
/// `marks` are the marks of the inputs on segments outside this merge. The inputs stay on disk. The caller lists the
/// new segment and drops the inputs.
pub fn merge(
    inputs: &[MergeInput],
    keep: &dyn Fn(&RowHeader<'_>) -> bool,
    disk: SharedDisk,
    dir: &Path,
    seq: u64,
    options: WriterOptions,
    marks: &[Mark],
) -> Result<Merged, SegmentError> {
    let Unfinished { writer, moved } = merge_rows(inputs, Rules { keep, pace: &|| {} }, disk, dir, seq, options)?;
    Ok(Merged { meta: writer.finish(marks)?, moved })
}

/// Writes the rows of [`merge`], for a caller that learns the marks during the merge.
pub fn merge_rows(
    inputs: &[MergeInput],
    rules: Rules<'_>,
    disk: SharedDisk,
    dir: &Path,
    seq: u64,
    options: WriterOptions,
) -> Result<Unfinished, SegmentError> {
    let writer = match options.columnar {
        true => SegmentWriter::columnar(disk, dir, seq, options, sample(inputs)?.choose())?,
        false => SegmentWriter::create(disk, dir, seq, options)?,
    };
    let mut output = Output::new(writer, seq, inputs.len());
    let mut cursors = inputs.iter().map(Cursor::open).collect::<Result<Vec<_>, _>>()?;
    while let Some((lead, rival)) = next_run(&cursors) {
        // Takes all rows of the leading input up to the first of any other. Among equal rows, the earlier input goes
        // first.
        loop {
            let cursor = &mut cursors[lead];
            output.take_row(cursor, lead, rules.keep)?;
            if output.is_full(&cursors[lead]) {
                output.write(&mut cursors)?;
                (rules.pace)();
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
    output.write(&mut cursors)?;
    output.writer.close_rows()?;
    Ok(Unfinished { writer: output.writer, moved: cursors.into_iter().map(|cursor| cursor.moved).collect() })
}

/// Samples documents from all inputs.
fn sample(inputs: &[MergeInput]) -> Result<Sample, SegmentError> {
    let all: u64 = inputs.iter().map(|input| u64::from(input.segment.meta().rows)).sum();
    let step = (all / SAMPLE_RUNS).max(u64::from(SAMPLE_RUN_ROWS)) as usize;
    let mut sample = Sample::default();
    for MergeInput { segment, .. } in inputs {
        let rows = segment.meta().rows;
        for start in (0..rows).step_by(step) {
            let run: Vec<u32> = (start..rows.min(start + SAMPLE_RUN_ROWS)).collect();
            let read = segment.read(&run, Columns::Docs)?;
            read.iter().filter(|row| !row.doc.is_empty()).for_each(|row| sample.look(&row.doc));
        }
    }
    Ok(sample)
}

/// Sort position of a row: objects ascend, keys and transactions descend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MergePosition {
    object: [u8; ObjectKey::BYTES],
    key: std::cmp::Reverse<u64>,
    xact: std::cmp::Reverse<u64>,
}

/// Returns the input with the first row, and the first row of all others with its input.
fn next_run(cursors: &[Cursor<'_>]) -> Option<(usize, Option<(MergePosition, usize)>)> {
    let heads = || cursors.iter().enumerate().filter_map(|(input, cursor)| Some((cursor.head?, input)));
    let (_, lead) = heads().min()?;
    Some((lead, heads().filter(|(_, input)| *input != lead).min()))
}

/// Cursor over one input.
struct Cursor<'a> {
    batches: Batches,
    documents: DocSource,
    /// End of the rows whose documents share a page with the row taken last.
    page_end: u32,
    /// Approximate size of one of these documents.
    doc_bytes: u64,
    ends: &'a [(u32, Xact)],
    batch: Option<(RecordBatch, View)>,
    /// Index within the batch.
    index: usize,
    /// Number within the segment.
    row: u32,
    head: Option<MergePosition>,
    /// Position of the batch in the output, once a row of it was taken.
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
            batches: input.segment.batches(0..rows, &all_but_documents())?,
            documents: DocSource::open(&input.segment)?,
            page_end: 0,
            doc_bytes: 0,
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

    /// Advances to the next row.
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
            let view = View::new(&batch, None, self.batches.segment().rows_file.path())?;
            self.batch = Some((batch, view));
            (self.index, self.slot) = (0, None);
        }
        self.head = self.batch.as_ref().and_then(|(_, view)| {
            Some(MergePosition {
                object: view.object.value(self.index).try_into().ok()?,
                key: std::cmp::Reverse(view.key.value(self.index)),
                xact: std::cmp::Reverse(view.xact.value(self.index)),
            })
        });
        Ok(())
    }
}

/// Returns the end of a row: the first write that superseded it, from the row itself or from later marks.
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

/// Buffer of rows that are written together.
struct Output {
    writer: SegmentWriter,
    seq: u64,
    held_max: usize,
    held: Vec<RecordBatch>,
    /// Batch of each row, and the row within it.
    taken: Vec<(usize, usize)>,
    ends: Vec<Option<u64>>,
    /// Runs of the same rows by input, which locate their documents.
    runs: Vec<(usize, Range<u32>)>,
    /// Size of patches, rules, audit notes and the stored documents.
    bytes: u64,
}

impl Output {
    fn new(writer: SegmentWriter, seq: u64, inputs: usize) -> Output {
        let held_max = inputs + HELD_BATCHES;
        Output {
            writer,
            seq,
            held_max,
            held: Vec::new(),
            taken: Vec::new(),
            ends: Vec::new(),
            runs: Vec::new(),
            bytes: 0,
        }
    }

    /// Returns whether to write now, before the row after the one at `cursor`.
    fn is_full(&self, cursor: &Cursor<'_>) -> bool {
        let full = self.taken.len() >= BATCH_ROWS_MAX || self.bytes >= BATCH_BYTES as u64;
        let must = self.taken.len() >= BATCH_ROWS_MAX + PAGE_ROWS_MAX || self.held.len() >= self.held_max;
        // A page is not split unless necessary.
        must || (full && cursor.row + 1 >= cursor.page_end)
    }

    /// Takes the row at the cursor, if it is kept.
    fn take_row(
        &mut self,
        cursor: &mut Cursor<'_>,
        input: usize,
        keep: &dyn Fn(&RowHeader<'_>) -> bool,
    ) -> Result<(), SegmentError> {
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
        if cursor.row >= cursor.page_end {
            (cursor.page_end, cursor.doc_bytes) = cursor.documents.neighbours_of(cursor.row)?;
        }
        self.bytes += cursor.doc_bytes + view.raw_bytes(cursor.index);
        match self.runs.last_mut() {
            Some((last, rows)) if *last == input && rows.end == cursor.row => rows.end += 1,
            _ => self.runs.push((input, cursor.row..cursor.row + 1)),
        }
        Ok(())
    }

    /// Writes the taken rows and releases their batches.
    fn write(&mut self, cursors: &mut [Cursor<'_>]) -> Result<(), SegmentError> {
        if self.taken.is_empty() {
            return Ok(());
        }
        let batch = self.batch().map_err(|error| SegmentError::Encode { seq: self.seq, what: error.to_string() })?;
        let mut doc_bytes = 0;
        for (input, rows) in self.runs.drain(..) {
            doc_bytes += self.writer.copy_documents(&mut cursors[input].documents, rows)?;
        }
        self.writer.push_batch(&batch, doc_bytes)?;
        cursors.iter_mut().for_each(|cursor| cursor.slot = None);
        self.held.clear();
        self.taken.clear();
        self.ends.clear();
        self.bytes = 0;
        Ok(())
    }

    fn batch(&self) -> Result<RecordBatch, ArrowError> {
        let (slot, first) = self.taken[0];
        let in_a_row = self.taken.iter().enumerate().all(|(nth, taken)| *taken == (slot, first + nth));
        let schema = self.held[slot].schema();
        let mut columns = Vec::with_capacity(schema.fields().len());
        for column in 0..schema.fields().len() {
            columns.push(if column == at::END {
                Arc::new(UInt64Array::from(self.ends.clone()))
            } else if in_a_row {
                self.held[slot].column(column).slice(first, self.taken.len())
            } else {
                let arrays: Vec<&dyn Array> = self.held.iter().map(|batch| &**batch.column(column)).collect();
                interleave(&arrays, &self.taken)?
            });
        }
        RecordBatch::try_new(schema, columns)
    }
}
