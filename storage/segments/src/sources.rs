//! Document sources of a merge's inputs, read from front to back.

use std::ops::Range;
use std::sync::Arc;

use crate::columns::View;
use crate::error::SegmentError;
use crate::pages::DocumentPages;
use crate::read::Batches;
use crate::row::Columns;
use crate::segment::Segment;

#[derive(Debug)]
pub(crate) enum DocSource {
    /// Pages of a segment with whole documents.
    Pages(DocumentPages),
    /// Parts of a columnar segment.
    Parts(Box<PartsInOrder>),
}

/// Documents of a columnar segment, assembled in order.
#[derive(Debug)]
pub(crate) struct PartsInOrder {
    segment: Arc<Segment>,
    batches: Batches,
    /// Number of the first row of the batch, its number of rows, and its columns.
    batch: Option<(u32, usize, View)>,
    doc: Vec<u8>,
}

impl DocSource {
    pub fn open(segment: &Arc<Segment>) -> Result<DocSource, SegmentError> {
        if segment.shape.is_none() {
            return DocumentPages::open(segment).map(DocSource::Pages);
        }
        let batches = segment.batches(0..segment.meta().rows, &segment.projection(Columns::Docs))?;
        let parts = PartsInOrder { segment: Arc::clone(segment), batches, batch: None, doc: Vec::new() };
        Ok(DocSource::Parts(Box::new(parts)))
    }

    /// Returns the end of the rows that should be taken together with this one, and the approximate size of each.
    pub fn neighbours_of(&mut self, row: u32) -> Result<(u32, u64), SegmentError> {
        match self {
            DocSource::Pages(pages) => Ok((pages.page_of(row)?.end, pages.stored_bytes_per_row())),
            DocSource::Parts(parts) => {
                let meta = parts.segment.meta();
                Ok((row + 1, meta.raw_bytes / u64::from(meta.rows.max(1))))
            }
        }
    }

    /// Passes the documents of rows after all requested before, and returns their size.
    pub fn each(&mut self, rows: Range<u32>, mut take: impl FnMut(&[u8])) -> Result<u64, SegmentError> {
        let mut bytes = 0;
        let mut row = rows.start;
        while row < rows.end {
            match self {
                DocSource::Pages(pages) => {
                    let end = pages.page_of(row)?.end.min(rows.end);
                    pages.documents(row..end, |doc| {
                        bytes += doc.len() as u64;
                        take(doc);
                    })?;
                    row = end;
                }
                DocSource::Parts(parts) => {
                    let doc = parts.document(row)?;
                    bytes += doc.len() as u64;
                    take(doc);
                    row += 1;
                }
            }
        }
        Ok(bytes)
    }
}

impl PartsInOrder {
    fn document(&mut self, row: u32) -> Result<&[u8], SegmentError> {
        let path = self.segment.rows_file.path();
        let view = loop {
            match &self.batch {
                Some((first, rows, view)) if ((*first as usize)..*first as usize + rows).contains(&(row as usize)) => {
                    break (row - first, view);
                }
                _ => {}
            }
            let Some(next) = self.batches.next() else {
                return Err(SegmentError::damaged(path, 0, "it has fewer documents than rows"));
            };
            let (first, batch) = next?;
            self.batch = Some((first, batch.num_rows(), View::new(&batch, self.segment.shape.as_ref(), path)?));
        };
        self.doc.clear();
        view.1.put_doc(view.0 as usize, &mut self.doc);
        Ok(&self.doc)
    }
}
