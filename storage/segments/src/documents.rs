//! Column of documents. Pages are filled in place, with one copy from row to page, and compressed individually.
//!
//! A page of another segment is copied as stored if all of its rows are kept. Parquet's own writer would copy a
//! document three times on its way to the same bytes, and cannot copy a page.
//!
//! A page is a Thrift header and the compressed documents, each with its length (u32, little-endian). This is Parquet's
//! data page of version 1, encoding PLAIN, of a column that is neither repeated nor nullable.

use std::io::{self, Read};
use std::ops::Range;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::offset_index::{OffsetIndexMetaData, PageLocation};
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::ColumnDescPtr;

use crate::error::SegmentError;
use crate::page_header::{HEADER_BYTES_MAX, PageHeader};
use crate::pages::DocumentPages;
use crate::writer::Codec;

/// Size up to which compression buffers are kept. Larger pages hold one large document.
const SCRATCH_BYTES_MAX: usize = 256 << 10;

/// Pages of one row group.
#[derive(Debug)]
pub(crate) struct Documents {
    codec: Codec,
    page_bytes: usize,
    page_rows: u32,
    full: Vec<DocumentPage>,
    /// Space for a header, and the values of the page that is being filled.
    open: Vec<u8>,
    open_rows: u32,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct DocumentPage {
    /// Header and values as in the file.
    bytes: Bytes,
    rows: u32,
    plain_bytes: usize,
}

impl Documents {
    /// Creates an empty row group. Pages end before they exceed either limit; a document that alone exceeds it has its
    /// own page.
    pub fn new(codec: Codec, page_bytes: usize, page_rows: usize) -> Documents {
        Documents {
            codec,
            page_bytes,
            page_rows: page_rows as u32,
            full: Vec::new(),
            open: Vec::new(),
            open_rows: 0,
            scratch: Vec::new(),
        }
    }

    /// Adds a document of at most [`VALUE_BYTES_MAX`](crate::columns::VALUE_BYTES_MAX).
    pub fn push(&mut self, doc: &[u8]) {
        self.push_within(doc, self.page_bytes);
    }

    fn push_within(&mut self, doc: &[u8], page_bytes: usize) {
        let after = self.open.len() + size_of::<u32>() + doc.len();
        if self.open_rows == self.page_rows || (self.open_rows > 0 && after > HEADER_BYTES_MAX + page_bytes) {
            self.close_page();
        }
        if self.open_rows == 0 {
            self.open.reserve(HEADER_BYTES_MAX + self.page_bytes);
            self.open.resize(HEADER_BYTES_MAX, 0);
        }
        self.open.extend_from_slice(&(doc.len() as u32).to_le_bytes());
        self.open.extend_from_slice(doc);
        self.open_rows += 1;
    }

    /// Copies the documents of these rows from another segment, and returns their size.
    pub fn copy(&mut self, from: &mut DocumentPages, rows: Range<u32>) -> std::result::Result<u64, SegmentError> {
        let mut row = rows.start;
        let mut bytes = 0;
        while row < rows.end {
            let page_rows = from.page_of(row)?;
            let end = page_rows.end.min(rows.end);
            if page_rows.start == row && page_rows.end == end && from.codec() == self.codec {
                let (page, header) = from.page()?;
                // Small pages are refilled, so that pages do not shrink from merge to merge.
                if header.plain_bytes >= self.page_bytes / 2 || header.rows >= self.page_rows / 2 {
                    if self.open_rows > 0 {
                        self.close_page();
                    }
                    bytes += header.plain_bytes.saturating_sub(header.rows as usize * size_of::<u32>()) as u64;
                    self.full.push(DocumentPage { bytes: page, rows: header.rows, plain_bytes: header.plain_bytes });
                    row = end;
                    continue;
                }
            }
            // A row between others splits a page. The larger limit lets the split page and that row fit into one page.
            let page_bytes = self.page_bytes + self.page_bytes / 2;
            from.documents(row..end, |doc| {
                bytes += doc.len() as u64;
                self.push_within(doc, page_bytes);
            })?;
            row = end;
        }
        Ok(bytes)
    }

    fn close_page(&mut self) {
        let plain_bytes = self.open.len() - HEADER_BYTES_MAX;
        let rows = std::mem::take(&mut self.open_rows);
        let bytes = match self.codec {
            Codec::Plain => {
                let start = put_header(&mut self.open, PageHeader { plain_bytes, stored_bytes: plain_bytes, rows });
                Bytes::from(std::mem::take(&mut self.open)).slice(start..)
            }
            Codec::Lz4 => self.compressed(rows),
        };
        self.full.push(DocumentPage { bytes, rows, plain_bytes });
    }

    fn compressed(&mut self, rows: u32) -> Bytes {
        let values = &self.open[HEADER_BYTES_MAX..];
        let plain_bytes = values.len();
        let room = HEADER_BYTES_MAX + lz4_flex::block::get_maximum_output_size(plain_bytes);
        if self.scratch.len() < room {
            self.scratch.resize(room, 0);
        }
        let stored_bytes = lz4_flex::block::compress_into(values, &mut self.scratch[HEADER_BYTES_MAX..])
            .expect("the room that compression asks for");
        let start = put_header(&mut self.scratch, PageHeader { plain_bytes, stored_bytes, rows });
        let page = Bytes::copy_from_slice(&self.scratch[start..HEADER_BYTES_MAX + stored_bytes]);
        self.open.clear();
        for buffer in [&mut self.open, &mut self.scratch] {
            if buffer.capacity() > SCRATCH_BYTES_MAX {
                *buffer = Vec::new();
            }
        }
        page
    }

    /// Ends the row group, and returns its pages and their metadata for Parquet.
    pub fn close(&mut self, column: ColumnDescPtr) -> Result<(Chunk<'_>, ColumnCloseResult)> {
        if self.open_rows > 0 {
            self.close_page();
        }
        let mut page_locations = Vec::with_capacity(self.full.len());
        let (mut length, mut plain_length, mut rows) = (0, 0, 0);
        for page in &self.full {
            let size = page.bytes.len();
            let too_large = |_| ParquetError::General(format!("a page of {size} bytes"));
            page_locations.push(PageLocation {
                offset: length,
                compressed_page_size: i32::try_from(size).map_err(too_large)?,
                first_row_index: rows,
            });
            length += size as i64;
            // The header has the same size on both sides.
            plain_length += (size + page.plain_bytes - stored_bytes_of(page)) as i64;
            rows += i64::from(page.rows);
        }
        let compression = match self.codec {
            Codec::Plain => Compression::UNCOMPRESSED,
            Codec::Lz4 => Compression::LZ4_RAW,
        };
        let metadata = ColumnChunkMetaData::builder(column)
            .set_compression(compression)
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE])
            .set_num_values(rows)
            .set_total_compressed_size(length)
            .set_total_uncompressed_size(plain_length)
            .set_data_page_offset(0)
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: length as u64,
            rows_written: rows as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: Some(OffsetIndexMetaData { page_locations, unencoded_byte_array_data_bytes: None }),
        };
        Ok((Chunk { pages: &self.full, length: length as u64 }, close))
    }

    /// Makes room for the next group, after the pages of the last [`close`](Self::close) were written.
    pub fn clear(&mut self) {
        self.full.clear();
    }
}

/// Writes the header right-aligned into the space at the beginning of `buffer`, and returns its start.
fn put_header(buffer: &mut [u8], header: PageHeader) -> usize {
    let header = header.encode();
    let start = HEADER_BYTES_MAX - header.len();
    buffer[start..HEADER_BYTES_MAX].copy_from_slice(&header);
    start
}

fn stored_bytes_of(page: &DocumentPage) -> usize {
    PageHeader::decode(&page.bytes).map_or(0, |(header, _)| header.stored_bytes)
}

/// Pages of a row group in the form in which Parquet reads them for its file.
#[derive(Debug)]
pub(crate) struct Chunk<'a> {
    pages: &'a [DocumentPage],
    length: u64,
}

impl Length for Chunk<'_> {
    fn len(&self) -> u64 {
        self.length
    }
}

impl<'a> ChunkReader for Chunk<'a> {
    type T = PagesInOrder<'a>;

    fn get_read(&self, start: u64) -> Result<PagesInOrder<'a>> {
        if start != 0 {
            return Err(ParquetError::General("pages are read from the first on".to_owned()));
        }
        Ok(PagesInOrder { rest: &[], pages: self.pages })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<bytes::Bytes> {
        let mut bytes = vec![0; length];
        self.get_read(start)?.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

#[derive(Debug)]
pub(crate) struct PagesInOrder<'a> {
    rest: &'a [u8],
    pages: &'a [DocumentPage],
}

impl Read for PagesInOrder<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            let Some((page, pages)) = self.pages.split_first() else { return Ok(0) };
            (self.rest, self.pages) = (&page.bytes, pages);
        }
        let count = into.len().min(self.rest.len());
        let (now, later) = self.rest.split_at(count);
        into[..count].copy_from_slice(now);
        self.rest = later;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::column::page::{CompressedPage, Page as ParquetPage, PageWriter};
    use parquet::file::writer::{SerializedPageWriter, TrackedWrite};

    /// Returns the page that Parquet's own writer makes of these documents.
    fn by_parquet(codec: Codec, docs: &[Vec<u8>]) -> Vec<u8> {
        let mut values = Vec::new();
        for doc in docs {
            values.extend_from_slice(&(doc.len() as u32).to_le_bytes());
            values.extend_from_slice(doc);
        }
        let length = values.len();
        let values = match codec {
            Codec::Plain => values,
            Codec::Lz4 => lz4_flex::block::compress(&values),
        };
        let page = ParquetPage::DataPage {
            buf: values.into(),
            num_values: docs.len() as u32,
            encoding: Encoding::PLAIN,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let mut out = TrackedWrite::new(Vec::new());
        SerializedPageWriter::new(&mut out).write_page(CompressedPage::new(page, length)).unwrap();
        out.into_inner().unwrap()
    }

    fn pages(documents: &Documents) -> Vec<u8> {
        documents.full.iter().flat_map(|page| &page.bytes).copied().collect()
    }

    #[test]
    fn pages_are_to_the_byte_what_parquet_writes() {
        let docs = |sizes: &[usize]| sizes.iter().map(|&size| vec![b'x'; size]).collect::<Vec<_>>();
        // The pages are a full one, one for an oversized document, empty documents up to the row limit, and the rest.
        let expected = [docs(&[10, 70]), docs(&[100_000]), docs(&[0; 5]), docs(&[0, 7])];
        for codec in [Codec::Plain, Codec::Lz4] {
            let mut documents = Documents::new(codec, 100, 5);
            for _group in 0..2 {
                expected.iter().flatten().for_each(|doc| documents.push(doc));
                documents.close_page();
                let by_parquet: Vec<u8> = expected.iter().flat_map(|docs| by_parquet(codec, docs)).collect();
                assert_eq!(pages(&documents), by_parquet);
                documents.clear();
            }
        }
    }
}
