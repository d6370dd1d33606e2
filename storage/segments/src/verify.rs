//! Verification of one segment for the doctor and the scrub: every checksum, and the sidecar against the rows.

use std::path::Path;
use std::sync::Arc;

use assay_storage_disk::SharedDisk;
use assay_storage_model::merge::doc_fields;
use assay_storage_model::segment::{FileKind, SegmentMeta};
use assay_storage_model::{PaginationKey, Xact};

use crate::blocks::SumWriter;
use crate::columns::View;
use crate::error::SegmentError;
use crate::files::path_of;
use crate::index::builder::IndexBuilder;
use crate::index::page::PAGE_BYTES;
use crate::row::Columns;
use crate::segment::Segment;
use crate::sidecar::{self, RowsFile};
use crate::words::{FIELDS, WordsBuilder};

/// Returns a line for each defect of a segment; empty if there is none.
pub fn verify(disk: &SharedDisk, dir: &Path, meta: &SegmentMeta) -> Vec<String> {
    let segment = match Segment::open(Arc::clone(disk), dir, meta) {
        Ok(segment) => segment,
        Err(error) => return vec![error.to_string()],
    };
    let mut wrong = segment.rows_file.check_all();
    wrong.extend(segment.sidecar.check_all());
    wrong.extend(segment.words.iter().flat_map(|words| words.check_all()));
    if let Err(error) = segment.marks() {
        wrong.push(error.to_string());
    }
    if wrong.is_empty() {
        // Rows are decoded only if every block is as written.
        match rebuild(&segment) {
            Ok(found) => wrong.extend(found),
            Err(error) => wrong.push(error.to_string()),
        }
    }
    wrong
}

/// Rebuilds the sidecar from the rows. It depends on nothing else, so all bytes must be the same.
fn rebuild(segment: &Arc<Segment>) -> Result<Vec<String>, SegmentError> {
    let meta = segment.meta();
    let path = segment.rows_file.path();
    let mut index = IndexBuilder::new(meta.seq, meta.format);
    let mut raw_bytes = 0;
    let mut words = WordsAgain::new(segment);
    for batch in segment.batches(0..meta.rows, &segment.projection(Columns::All))? {
        let (_, batch) = batch?;
        let view = View::new(&batch, segment.shape.as_ref(), path)?;
        for row in 0..batch.num_rows() {
            index.push(&view.header(row, path)?, view.root_span_id.value(row))?;
            raw_bytes += view.raw_bytes(row);
            words.push(&view, row);
        }
    }
    let rows_file = RowsFile {
        format: meta.format,
        length: segment.rows_file.length(),
        block_bytes: segment.rows_file.block_bytes() as u32,
        sums: segment.rows_file.sums().to_vec(),
    };
    let mut nowhere = SumWriter::to_nowhere(&path_of(Path::new(""), meta.seq, FileKind::Ids), PAGE_BYTES);
    let ids = sidecar::write(&mut nowhere, meta.seq, &mut index, &rows_file)?;

    let mut wrong = Vec::new();
    let mut expect = |what: &str, same: bool| {
        if !same {
            wrong.push(format!("{}: {what} does not match its rows; rebuild this replica", path.display()));
        }
    };
    expect("the index of words", words.are_same());
    expect("the sidecar", meta.file(FileKind::Ids) == Some(&ids));
    expect("the manifest's count of bytes", raw_bytes == meta.raw_bytes);
    let keys = (index.keys.iter().min(), index.keys.iter().max());
    let keys = (keys.0.map(|key| PaginationKey(*key)), keys.1.map(|key| PaginationKey(*key)));
    expect("the manifest's range of keys", meta.rows == 0 || keys == (Some(meta.key_min), Some(meta.key_max)));
    let xacts = index.xacts().unwrap_or((Xact::ZERO, Xact::ZERO));
    expect("the manifest's range of transactions", xacts == (meta.xact_min, meta.xact_max));
    let objects = (index.objects.first().map(|first| first.0), index.objects.last().map(|last| last.0));
    let told = (Some(meta.first_object), Some(meta.last_object));
    expect("the manifest's range of objects", meta.rows == 0 || objects == told);
    Ok(wrong)
}

/// Rebuild of the word index, group by group.
struct WordsAgain<'s> {
    segment: &'s Segment,
    builder: WordsBuilder,
    row: u32,
    group: usize,
    same: bool,
    doc: Vec<u8>,
}

impl WordsAgain<'_> {
    fn new(segment: &Segment) -> WordsAgain<'_> {
        WordsAgain { segment, builder: WordsBuilder::default(), row: 0, group: 0, same: true, doc: Vec::new() }
    }

    /// Adds the next row.
    fn push(&mut self, view: &View, index: usize) {
        let Some(words) = &self.segment.words else { return };
        self.doc.clear();
        view.put_doc(index, &mut self.doc);
        let members = doc_fields(&self.doc).unwrap_or_default();
        self.builder.push(members.iter().filter(|(name, _)| FIELDS.contains(&&**name)).map(|(_, text)| *text));
        self.row += 1;
        if self.row == self.segment.group_rows(self.group).end {
            self.same &= words.is(self.group, &self.builder.finish());
            self.group += 1;
        }
    }

    fn are_same(&self) -> bool {
        self.same
    }
}
