//! Open word index.

use std::path::Path;
use std::sync::Arc;

use arrow_buffer::BooleanBuffer;
use arrow_buffer::BooleanBufferBuilder;
use assay_storage_disk::DiskFile;
use assay_storage_model::segment::FileMeta;

use super::{BLOCK_ROWS, FORMAT, GroupWords, MAGIC, PAGE_BYTES_MAX, TRAILER_BYTES, WORD_BYTES_MAX, cut, take_varint};
use crate::error::SegmentError;

/// Upper bound of the size of a directory. That of the largest segment is far smaller.
const DIRECTORY_BYTES_MAX: u64 = 1 << 30;

#[derive(Debug)]
pub(crate) struct WordIndex {
    file: Arc<dyn DiskFile>,
    path: Box<Path>,
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    rows: usize,
    pages: Vec<WordPage>,
}

#[derive(Debug)]
struct WordPage {
    first: Box<str>,
    offset: u64,
    length: u32,
    plain_bytes: u32,
    crc: u32,
    plain_crc: u32,
}

impl WordIndex {
    /// Opens an index. `rows` are the numbers of rows in the groups of the rows' file.
    pub fn open(
        file: Arc<dyn DiskFile>,
        path: &Path,
        meta: &FileMeta,
        rows: &[usize],
    ) -> Result<WordIndex, SegmentError> {
        let bad = |at: u64, what: &str| SegmentError::damaged(path, at, what);
        let trailer_at = meta.length.checked_sub(TRAILER_BYTES as u64).ok_or_else(|| bad(0, "it is truncated"))?;
        let mut trailer = [0; TRAILER_BYTES];
        file.read_at(trailer_at, &mut trailer).map_err(SegmentError::io(path))?;
        let u32_at = |at: usize| u32::from_le_bytes(trailer[at..at + 4].try_into().expect("4"));
        let crc = crc32c::crc32c(&trailer[..TRAILER_BYTES - 4]);
        if &trailer[..8] != MAGIC || crc != u32_at(TRAILER_BYTES - 4) || crc != meta.crc {
            return Err(bad(trailer_at, "its trailer does not match its checksum"));
        }
        if u16::from_le_bytes([trailer[8], trailer[9]]) != FORMAT {
            return Err(bad(trailer_at, "its format is unknown"));
        }
        let at = u64::from_le_bytes(trailer[16..24].try_into().expect("8"));
        let length = trailer_at.checked_sub(at).filter(|length| *length <= DIRECTORY_BYTES_MAX);
        let length = length.ok_or_else(|| bad(trailer_at, "its directory is at another offset"))?;
        let mut directory = vec![0; length as usize];
        file.read_at(at, &mut directory).map_err(SegmentError::io(path))?;
        if crc32c::crc32c(&directory) != u32_at(24) {
            return Err(bad(at, "its directory does not match its checksum"));
        }
        let groups = groups_of(&directory, at).ok_or_else(|| bad(at, "its directory is invalid"))?;
        if !groups.iter().map(|group| group.rows).eq(rows.iter().copied()) {
            return Err(bad(at, "it belongs to other rows"));
        }
        Ok(WordIndex { file, path: path.into(), groups })
    }

    /// Returns the rows of a group that may have all of these words.
    pub fn with_all(&self, group: usize, words: &[&str]) -> Result<BooleanBuffer, SegmentError> {
        let group = &self.groups[group];
        let mut blocks = vec![true; group.rows.div_ceil(BLOCK_ROWS)];
        for word in words {
            let word = cut(word);
            let mut here = vec![false; blocks.len()];
            let behind = group.pages.partition_point(|page| &*page.first <= word);
            if let Some(page) = behind.checked_sub(1) {
                self.each_word(&group.pages[page], |found, of| {
                    if found == word.as_bytes() {
                        of.mark(&mut here);
                    }
                })?;
            }
            blocks.iter_mut().zip(here).for_each(|(block, here)| *block &= here);
        }
        Ok(rows_of(&blocks, group.rows))
    }

    /// Returns the rows of a group that may have a word for which `is` holds. Truncated words always count.
    pub fn with_any(&self, group: usize, is: &dyn Fn(&[u8]) -> bool) -> Result<BooleanBuffer, SegmentError> {
        let group = &self.groups[group];
        let mut blocks = vec![false; group.rows.div_ceil(BLOCK_ROWS)];
        for page in &group.pages {
            self.each_word(page, |word, of| {
                // A cut removes at most three bytes of a letter.
                if word.len() + 3 >= WORD_BYTES_MAX || is(word) {
                    of.mark(&mut blocks);
                }
            })?;
        }
        Ok(rows_of(&blocks, group.rows))
    }

    fn each_word(&self, page: &WordPage, mut each: impl FnMut(&[u8], WordBlocks<'_>)) -> Result<(), SegmentError> {
        let plain = self.plain(page)?;
        walk(&plain, &mut each).ok_or_else(|| self.damaged(page, "a page of words is invalid"))
    }

    fn plain(&self, page: &WordPage) -> Result<Vec<u8>, SegmentError> {
        let mut bytes = vec![0; page.length as usize];
        self.file.read_at(page.offset, &mut bytes).map_err(SegmentError::io(&self.path))?;
        if crc32c::crc32c(&bytes) != page.crc {
            return Err(self.damaged(page, "a page of words does not match its checksum"));
        }
        let plain = zstd::bulk::decompress(&bytes, page.plain_bytes as usize);
        plain.map_err(|_| self.damaged(page, "a page of words does not decompress"))
    }

    fn damaged(&self, page: &WordPage, what: &str) -> SegmentError {
        SegmentError::damaged(&self.path, page.offset, what)
    }

    /// Checks every page, and returns a line for each damaged one.
    pub fn check_all(&self) -> Vec<String> {
        let pages = self.groups.iter().flat_map(|group| &group.pages);
        pages.filter_map(|page| self.each_word(page, |_, _| {}).err()).map(|error| error.to_string()).collect()
    }

    /// Returns whether a group equals the one made from its rows; its compression does not matter.
    pub fn is(&self, group: usize, made: &GroupWords) -> bool {
        let own = self.groups.get(group);
        own.is_some_and(|own| {
            own.rows == made.rows as usize
                && own.pages.len() == made.pages.len()
                && own.pages.iter().zip(&made.pages).all(|(own, made)| {
                    own.first == made.first && own.plain_bytes == made.plain_bytes && own.plain_crc == made.plain_crc
                })
        })
    }

    pub fn memory_bytes(&self) -> usize {
        let pages = self.groups.iter().flat_map(|group| &group.pages);
        pages.map(|page| size_of::<WordPage>() + page.first.len()).sum()
    }
}

/// Blocks of a word, as stored in a page.
#[derive(Clone, Copy)]
struct WordBlocks<'p> {
    /// Stored differences, or `None` if all blocks have the word.
    differences: Option<&'p [u8]>,
}

impl WordBlocks<'_> {
    fn mark(self, blocks: &mut [bool]) {
        let Some(mut differences) = self.differences else {
            blocks.fill(true);
            return;
        };
        let mut next = 0;
        while let Some(difference) = take_varint(&mut differences) {
            let block = next + difference as usize;
            if let Some(block) = blocks.get_mut(block) {
                *block = true;
            }
            next = block + 1;
        }
    }
}

/// Visits each word of a page. Returns `None` if the page is invalid.
fn walk(mut page: &[u8], each: &mut impl FnMut(&[u8], WordBlocks<'_>)) -> Option<()> {
    let mut word: Vec<u8> = Vec::with_capacity(WORD_BYTES_MAX);
    while let [shared, more, rest @ ..] = page {
        let suffix = rest.get(..usize::from(*more))?;
        if usize::from(*shared) > word.len() {
            return None;
        }
        word.truncate(usize::from(*shared));
        word.extend_from_slice(suffix);
        page = &rest[suffix.len()..];
        let count = take_varint(&mut page)?;
        let start = page;
        for _ in 0..count {
            take_varint(&mut page)?;
        }
        let differences = (count > 0).then(|| &start[..start.len() - page.len()]);
        each(&word, WordBlocks { differences });
    }
    page.is_empty().then_some(())
}

fn groups_of(mut bytes: &[u8], end: u64) -> Option<Vec<Group>> {
    let mut offset = 0;
    let mut groups = Vec::new();
    for _ in 0..take_varint(&mut bytes)? {
        let rows = take_varint(&mut bytes)? as usize;
        let mut pages = Vec::new();
        for _ in 0..take_varint(&mut bytes)? {
            let (length, rest) = bytes.split_first()?;
            let (first, rest) = rest.split_at_checked(usize::from(*length))?;
            bytes = rest;
            let first = std::str::from_utf8(first).ok()?.into();
            let length = take_varint(&mut bytes)?;
            let plain_bytes = take_varint(&mut bytes).filter(|bytes| *bytes as usize <= PAGE_BYTES_MAX * 2)?;
            let (crcs, rest) = bytes.split_first_chunk::<8>()?;
            bytes = rest;
            let crc = u32::from_le_bytes(crcs[..4].try_into().expect("4"));
            let plain_crc = u32::from_le_bytes(crcs[4..].try_into().expect("4"));
            pages.push(WordPage { first, offset, length, plain_bytes, crc, plain_crc });
            offset += u64::from(length);
        }
        groups.push(Group { rows, pages });
    }
    (bytes.is_empty() && offset == end).then_some(groups)
}

fn rows_of(blocks: &[bool], rows: usize) -> BooleanBuffer {
    let mut bits = BooleanBufferBuilder::new(rows);
    for (nth, block) in blocks.iter().enumerate() {
        bits.append_n(BLOCK_ROWS.min(rows - nth * BLOCK_ROWS), *block);
    }
    bits.finish()
}
