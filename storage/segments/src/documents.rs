//! The column of documents, when it is not compressed: pages are filled in place, one copy from the row to the page.
//!
//! Parquet's own writer would copy a document three times on its way to the same bytes. A page is a Thrift header, then
//! each document's length (u32, little endian) and its bytes: Parquet's data page of version 1, encoding PLAIN, of a
//! column that is neither repeated nor nullable. Anything else, compression first of all, is left to Parquet's writer.

use std::io::{self, Read};

use parquet::basic::{Compression, Encoding};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::offset_index::{OffsetIndexMetaData, PageLocation};
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::ColumnDescPtr;

/// Kept free in front of a page for its header, which is known last: 7 numbers of at most 5 bytes and their tags.
const HEADER_ROOM_BYTES: usize = 48;
/// Larger pages, which hold one large document, are not kept to be filled again.
const SPARE_BYTES_MAX: usize = 256 << 10;

/// The pages of one row group.
#[derive(Debug)]
pub(crate) struct Documents {
    page_bytes: usize,
    page_rows: u32,
    full: Vec<Page>,
    open: Page,
    /// Emptied pages of the last group: memory the kernel need not clear again.
    spare: Vec<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Page {
    /// The header, right-aligned in its room, then the values.
    bytes: Vec<u8>,
    /// Where the header starts.
    start: usize,
    rows: u32,
}

impl Page {
    fn written(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

impl Documents {
    /// Pages end before they exceed either limit; a document that alone exceeds it has its own.
    pub fn new(page_bytes: usize, page_rows: usize) -> Documents {
        Documents {
            page_bytes,
            page_rows: page_rows as u32,
            full: Vec::new(),
            open: Page::default(),
            spare: Vec::new(),
        }
    }

    /// The next document, of at most [`VALUE_BYTES_MAX`](crate::columns::VALUE_BYTES_MAX).
    pub fn push(&mut self, doc: &[u8]) {
        let after = self.open.bytes.len() + size_of::<u32>() + doc.len();
        if self.open.rows == self.page_rows || (self.open.rows > 0 && after > HEADER_ROOM_BYTES + self.page_bytes) {
            self.close_page();
        }
        if self.open.rows == 0 {
            self.open.bytes =
                self.spare.pop().unwrap_or_else(|| Vec::with_capacity(HEADER_ROOM_BYTES + self.page_bytes));
            self.open.bytes.resize(HEADER_ROOM_BYTES, 0);
        }
        self.open.bytes.extend_from_slice(&(doc.len() as u32).to_le_bytes());
        self.open.bytes.extend_from_slice(doc);
        self.open.rows += 1;
    }

    fn close_page(&mut self) {
        let mut page = std::mem::take(&mut self.open);
        let header = page_header(page.bytes.len() - HEADER_ROOM_BYTES, page.rows);
        page.start = HEADER_ROOM_BYTES - header.len();
        page.bytes[page.start..HEADER_ROOM_BYTES].copy_from_slice(&header);
        self.full.push(page);
    }

    /// Ends the row group: its pages, and what Parquet has to know of them.
    pub fn close(&mut self, column: ColumnDescPtr) -> Result<(Chunk<'_>, ColumnCloseResult)> {
        if self.open.rows > 0 {
            self.close_page();
        }
        let mut page_locations = Vec::with_capacity(self.full.len());
        let (mut length, mut rows) = (0, 0);
        for page in &self.full {
            let size = page.written().len();
            let too_large = |_| ParquetError::General(format!("a page of {size} bytes"));
            page_locations.push(PageLocation {
                offset: length,
                compressed_page_size: i32::try_from(size).map_err(too_large)?,
                first_row_index: rows,
            });
            length += size as i64;
            rows += i64::from(page.rows);
        }
        let metadata = ColumnChunkMetaData::builder(column)
            .set_compression(Compression::UNCOMPRESSED)
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE])
            .set_num_values(rows)
            .set_total_compressed_size(length)
            .set_total_uncompressed_size(length)
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

    /// After the pages of the last [`close`](Self::close) were written: room for the next group.
    pub fn clear(&mut self) {
        for mut page in self.full.drain(..).filter(|page| page.bytes.capacity() <= SPARE_BYTES_MAX) {
            page.bytes.clear();
            self.spare.push(page.bytes);
        }
    }
}

/// `PageHeader { type: DATA_PAGE, uncompressed and compressed size, DataPageHeader { values, PLAIN, RLE, RLE } }` in
/// Thrift's compact protocol.
fn page_header(bytes: usize, values: u32) -> Vec<u8> {
    /// A field one after the last, of a number.
    const NEXT_NUMBER: u8 = 0x15;
    /// A field two after the last, of a struct.
    const DATA_PAGE_HEADER: u8 = 0x2C;
    const STOP: u8 = 0;
    const DATA_PAGE: u64 = 0;
    const PLAIN: u64 = 0;
    const RLE: u64 = 3;
    let mut header = Vec::with_capacity(HEADER_ROOM_BYTES);
    let put = |header: &mut Vec<u8>, number: u64| {
        header.push(NEXT_NUMBER);
        // None is negative, so that zigzag only doubles.
        crate::index::page::put_number(header, number << 1);
    };
    for number in [DATA_PAGE, bytes as u64, bytes as u64] {
        put(&mut header, number);
    }
    header.push(DATA_PAGE_HEADER);
    for number in [u64::from(values), PLAIN, RLE, RLE] {
        put(&mut header, number);
    }
    header.extend_from_slice(&[STOP, STOP]);
    header
}

/// The pages of a row group as Parquet reads them to put them into its file.
#[derive(Debug)]
pub(crate) struct Chunk<'a> {
    pages: &'a [Page],
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
    pages: &'a [Page],
}

impl Read for PagesInOrder<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            let Some((page, pages)) = self.pages.split_first() else { return Ok(0) };
            (self.rest, self.pages) = (page.written(), pages);
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

    /// What Parquet's own writer makes of a page of these documents.
    fn by_parquet(docs: &[Vec<u8>]) -> Vec<u8> {
        let mut values = Vec::new();
        for doc in docs {
            values.extend_from_slice(&(doc.len() as u32).to_le_bytes());
            values.extend_from_slice(doc);
        }
        let length = values.len();
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
        documents.full.iter().flat_map(|page| page.written()).copied().collect()
    }

    #[test]
    fn pages_are_to_the_byte_what_parquet_writes() {
        let docs = |sizes: &[usize]| sizes.iter().map(|&size| vec![b'x'; size]).collect::<Vec<_>>();
        // A full page, one of its own for a document that is larger, empty ones up to the limit of rows, the rest.
        let expected = [docs(&[10, 70]), docs(&[100_000]), docs(&[0; 5]), docs(&[0, 7])];
        let mut documents = Documents::new(100, 5);
        for _group in 0..2 {
            expected.iter().flatten().for_each(|doc| documents.push(doc));
            documents.close_page();
            assert_eq!(pages(&documents), expected.iter().flat_map(|docs| by_parquet(docs)).collect::<Vec<_>>());
            documents.clear();
        }
    }
}
