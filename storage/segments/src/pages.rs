//! Pages of a segment's documents, read from front to back: whole ones as stored in the file, or their documents.
//!
//! They serve merges. A lookup uses Parquet's reader.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;

use crate::columns::{VALUE_BYTES_MAX, at};
use crate::error::SegmentError;
use crate::page_header::PageHeader;
use crate::segment::Segment;
use crate::writer::Codec;

/// Number of bytes read ahead of the requested page.
const WINDOW_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct DocumentPages {
    segment: Arc<Segment>,
    codec: Codec,
    /// Locations in the order of rows.
    places: Vec<PageLocation>,
    /// Page of the last requested row.
    at: usize,
    window: Range<u64>,
    window_bytes: Bytes,
    /// Values of one page, with the page's index.
    values: Option<(usize, Bytes)>,
}

#[derive(Clone, Copy, Debug)]
struct PageLocation {
    first_row: u32,
    offset: u64,
    length: u64,
}

impl DocumentPages {
    pub fn open(segment: &Arc<Segment>) -> Result<DocumentPages, SegmentError> {
        let metadata = segment.footer.metadata();
        let bad = |what: &str| SegmentError::damaged(segment.rows_file.path(), 0, what);
        let mut places = Vec::new();
        let mut codec = Codec::default();
        for (number, first_row) in (0..metadata.num_row_groups()).zip(&segment.group_starts) {
            let group = metadata.row_group(number);
            codec = match group.column(at::DOC).compression() {
                Compression::UNCOMPRESSED => Codec::Plain,
                Compression::LZ4_RAW => Codec::Lz4,
                _ => return Err(bad("its documents have an unsupported compression")),
            };
            let index = metadata.offset_index().and_then(|index| index.get(number)?.get(at::DOC));
            let locations = index.ok_or_else(|| bad("the index of its pages is missing"))?.page_locations();
            for page in locations {
                let number = |number: i64| u64::try_from(number).map_err(|_| bad("a page lies before its start"));
                let row = u32::try_from(page.first_row_index).map_err(|_| bad("a page begins with no row"))?;
                places.push(PageLocation {
                    first_row: first_row + row,
                    offset: number(page.offset)?,
                    length: number(page.compressed_page_size.into())?,
                });
            }
        }
        if !places.is_sorted_by(|a, b| a.first_row < b.first_row) {
            return Err(bad("its pages are not in the order of rows"));
        }
        let segment = Arc::clone(segment);
        Ok(DocumentPages { segment, codec, places, at: 0, window: 0..0, window_bytes: Bytes::new(), values: None })
    }

    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Returns the rows of the page that holds this row.
    pub fn page_of(&mut self, row: u32) -> Result<Range<u32>, SegmentError> {
        let behind = self.places.partition_point(|place| place.first_row <= row);
        self.at = behind.checked_sub(1).ok_or_else(|| self.damaged("no page holds one of its rows"))?;
        Ok(self.places[self.at].first_row..self.end_of(self.at))
    }

    /// Returns the stored bytes per row of the last requested page, rounded up.
    pub fn stored_bytes_per_row(&self) -> u64 {
        let place = self.places[self.at];
        place.length.div_ceil(u64::from(self.end_of(self.at) - place.first_row))
    }

    /// Returns the last requested page, as stored in the file.
    pub fn page(&mut self) -> Result<(Bytes, PageHeader), SegmentError> {
        let bytes = self.read(self.places[self.at])?;
        let rows = self.end_of(self.at) - self.places[self.at].first_row;
        match PageHeader::decode(&bytes) {
            Some((header, values)) if header.rows == rows && values.len() == header.stored_bytes => Ok((bytes, header)),
            _ => Err(self.damaged("a page of documents has another header than its index says")),
        }
    }

    /// Passes the documents of these rows, which are all in the last requested page.
    pub fn documents(&mut self, rows: Range<u32>, mut take: impl FnMut(&[u8])) -> Result<(), SegmentError> {
        let values = self.values()?;
        let mut rest = &values[..];
        for row in self.places[self.at].first_row..rows.end {
            let doc = take_document(&mut rest).ok_or_else(|| self.damaged("a page ends within a document"))?;
            if row >= rows.start {
                take(doc);
            }
        }
        Ok(())
    }

    fn values(&mut self) -> Result<Bytes, SegmentError> {
        if let Some((page, values)) = &self.values
            && *page == self.at
        {
            return Ok(values.clone());
        }
        let (page, header) = self.page()?;
        let stored = page.slice(page.len() - header.stored_bytes..);
        let values = match self.codec {
            Codec::Plain => stored,
            Codec::Lz4 => self.decompressed(&stored, header.plain_bytes)?,
        };
        self.values = Some((self.at, values.clone()));
        Ok(values)
    }

    fn decompressed(&self, stored: &[u8], plain_bytes: usize) -> Result<Bytes, SegmentError> {
        if plain_bytes > VALUE_BYTES_MAX + size_of::<u32>() {
            return Err(self.damaged("a page larger than any that is written"));
        }
        let mut values = vec![0; plain_bytes];
        match lz4_flex::block::decompress_into(stored, &mut values) {
            Ok(bytes) if bytes == plain_bytes => Ok(values.into()),
            _ => Err(self.damaged("a page does not decompress")),
        }
    }

    fn read(&mut self, PageLocation { offset, length, .. }: PageLocation) -> Result<Bytes, SegmentError> {
        if offset < self.window.start || offset + length > self.window.end {
            let file = &self.segment.rows_file;
            // The end is that of a whole block, because blocks are read and checked as a whole.
            let end = (offset + length.max(WINDOW_BYTES)).next_multiple_of(file.block_bytes()).min(file.length());
            self.window_bytes = file.read(offset..end.max(offset + length))?;
            self.window = offset..offset + self.window_bytes.len() as u64;
        }
        let from = (offset - self.window.start) as usize;
        Ok(self.window_bytes.slice(from..from + length as usize))
    }

    fn end_of(&self, page: usize) -> u32 {
        self.places.get(page + 1).map_or(self.segment.meta().rows, |next| next.first_row)
    }

    fn damaged(&self, what: &str) -> SegmentError {
        let offset = self.places.get(self.at).map_or(0, |place| place.offset);
        SegmentError::damaged(self.segment.rows_file.path(), offset, what)
    }
}

fn take_document<'a>(values: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = values.split_first_chunk()?;
    let (doc, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *values = rest;
    Some(doc)
}
