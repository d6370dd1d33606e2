//! Builder of the word index, which runs while rows are split, group by group.

use std::collections::HashMap;

use assay_storage_model::segment::{FileKind, FileMeta};
use assay_storage_model::tokens::words_of_json;

use super::{BLOCK_ROWS, FORMAT, MAGIC, PAGE_BYTES, TRAILER_BYTES, cut, put_varint};
use crate::blocks::SumWriter;
use crate::error::SegmentError;

/// Compression level, which is fast enough for writes and is read at a gigabyte per second.
const LEVEL: i32 = 1;

/// Number of entries in the table of recent words.
const RECENT: usize = 1 << 14;

/// Words of one group.
#[derive(Debug, Default)]
pub(crate) struct WordsBuilder {
    /// Number of each word.
    known: HashMap<Box<str>, u32, ahash::RandomState>,
    /// Last block of each word, by number.
    last: Vec<u32>,
    /// Number and block of each occurrence in order of arrival, so that the blocks of a word ascend.
    places: Vec<(u32, u32)>,
    /// Recent words by the end of their hash.
    ///
    /// Most words of a text occurred shortly before, and need only a lookup here.
    recent: Vec<Recent>,
    rows: usize,
}

/// Recent word, identified by its hash and its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Recent {
    hash: u64,
    head: u64,
    number: u32,
    block: u32,
}

impl Recent {
    const NOTHING: Recent = Recent { hash: 0, head: 0, number: u32::MAX, block: u32::MAX };
}

/// Returns the first bytes of a word as a number, which sorts like the word.
fn head(word: &str) -> u64 {
    let mut head = [0; 8];
    let length = word.len().min(8);
    head[..length].copy_from_slice(&word.as_bytes()[..length]);
    u64::from_be_bytes(head)
}

/// Pages of one group for the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupWords {
    pub rows: u32,
    pub pages: Vec<WordsPage>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WordsPage {
    pub first: Box<str>,
    /// Compressed page.
    pub bytes: Vec<u8>,
    /// Size before compression.
    pub plain_bytes: u32,
    pub plain_crc: u32,
}

impl WordsBuilder {
    /// Adds the texts of the next row.
    pub fn push<'t>(&mut self, texts: impl IntoIterator<Item = &'t [u8]>) {
        let block = (self.rows / BLOCK_ROWS) as u32;
        self.recent.resize(RECENT, Recent::NOTHING);
        for text in texts {
            words_of_json(text, |word| self.see(cut(word), block));
        }
        self.rows += 1;
    }

    fn see(&mut self, word: &str, block: u32) {
        let (hash, head) = (self.known.hasher().hash_one(word), head(word));
        let place = hash as usize % RECENT;
        let recent = self.recent[place];
        let known = recent.hash == hash && recent.head == head;
        if known && recent.block == block {
            return;
        }
        let number = match known {
            true => recent.number,
            false => self.number(word),
        };
        self.recent[place] = Recent { hash, head, number, block };
        let last = &mut self.last[number as usize];
        if *last != block {
            *last = block;
            self.places.push((number, block));
        }
    }

    fn number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.known.get(word) {
            return *number;
        }
        let number = self.last.len() as u32;
        self.known.insert(word.into(), number);
        self.last.push(u32::MAX);
        number
    }

    /// Ends the group and returns its pages.
    pub fn finish(&mut self) -> GroupWords {
        let rows = std::mem::take(&mut self.rows);
        let all = rows.div_ceil(BLOCK_ROWS);
        let blocks = BlockLists::of(&self.places, self.last.len());
        let mut words: Vec<(u64, Box<str>, u32)> =
            self.known.drain().map(|(word, number)| (head(&word), word, number)).collect();
        words.sort_unstable();
        let mut pages = Vec::new();
        let mut open: Vec<u8> = Vec::with_capacity(PAGE_BYTES + 1024);
        let (mut first, mut last) = ("", "");
        for (_, word, number) in &words {
            if open.len() >= PAGE_BYTES {
                pages.push(WordsPage::of(first, &open));
                open.clear();
            }
            if open.is_empty() {
                (first, last) = (word, "");
            }
            put_word(&mut open, last, word, blocks.of_word(*number), all);
            last = word;
        }
        if !open.is_empty() {
            pages.push(WordsPage::of(first, &open));
        }
        self.last.clear();
        self.places.clear();
        self.recent.clear();
        GroupWords { rows: rows as u32, pages }
    }
}

/// Blocks of all words, word by word.
struct BlockLists {
    starts: Vec<u32>,
    blocks: Vec<u32>,
}

impl BlockLists {
    fn of(places: &[(u32, u32)], words: usize) -> BlockLists {
        let mut starts = vec![0_u32; words + 1];
        places.iter().for_each(|(number, _)| starts[*number as usize + 1] += 1);
        for word in 0..words {
            starts[word + 1] += starts[word];
        }
        let mut next = starts.clone();
        let mut blocks = vec![0; places.len()];
        for (number, block) in places {
            let at = &mut next[*number as usize];
            blocks[*at as usize] = *block;
            *at += 1;
        }
        BlockLists { starts, blocks }
    }

    fn of_word(&self, number: u32) -> &[u32] {
        let number = number as usize;
        &self.blocks[self.starts[number] as usize..self.starts[number + 1] as usize]
    }
}

fn put_word(out: &mut Vec<u8>, last: &str, word: &str, blocks: &[u32], all: usize) {
    let shared = last.bytes().zip(word.bytes()).take_while(|(a, b)| a == b).count();
    out.push(shared as u8);
    out.push((word.len() - shared) as u8);
    out.extend_from_slice(&word.as_bytes()[shared..]);
    if blocks.len() == all {
        put_varint(out, 0);
        return;
    }
    put_varint(out, blocks.len() as u32);
    let mut next = 0;
    for block in blocks {
        put_varint(out, block - next);
        next = block + 1;
    }
}

impl WordsPage {
    fn of(first: &str, plain: &[u8]) -> WordsPage {
        let bytes = zstd::bulk::compress(plain, LEVEL).expect("compressing into memory");
        WordsPage { first: first.into(), bytes, plain_bytes: plain.len() as u32, plain_crc: crc32c::crc32c(plain) }
    }
}

/// Writer of the file, one group at a time.
#[derive(Debug)]
pub(crate) struct WordsWriter {
    file: SumWriter,
    directory: Vec<u8>,
    rows: u32,
    groups: u32,
}

impl WordsWriter {
    pub fn new(file: SumWriter) -> WordsWriter {
        WordsWriter { file, directory: Vec::new(), rows: 0, groups: 0 }
    }

    pub fn put(&mut self, group: &GroupWords) -> Result<(), SegmentError> {
        put_varint(&mut self.directory, group.rows);
        put_varint(&mut self.directory, group.pages.len() as u32);
        for page in &group.pages {
            self.directory.push(page.first.len() as u8);
            self.directory.extend_from_slice(page.first.as_bytes());
            put_varint(&mut self.directory, page.bytes.len() as u32);
            put_varint(&mut self.directory, page.plain_bytes);
            self.directory.extend_from_slice(&crc32c::crc32c(&page.bytes).to_le_bytes());
            self.directory.extend_from_slice(&page.plain_crc.to_le_bytes());
            self.file.put(&page.bytes)?;
        }
        self.rows += group.rows;
        self.groups += 1;
        Ok(())
    }

    /// Writes the directory and trailer, and makes the file durable.
    pub fn finish(mut self) -> Result<FileMeta, SegmentError> {
        let at = self.file.length();
        let mut directory = Vec::new();
        put_varint(&mut directory, self.groups);
        directory.extend_from_slice(&self.directory);
        self.file.put(&directory)?;
        let mut trailer = Vec::with_capacity(TRAILER_BYTES);
        trailer.extend_from_slice(MAGIC);
        trailer.extend_from_slice(&FORMAT.to_le_bytes());
        trailer.extend_from_slice(&[0; 2]);
        trailer.extend_from_slice(&self.rows.to_le_bytes());
        trailer.extend_from_slice(&at.to_le_bytes());
        trailer.extend_from_slice(&crc32c::crc32c(&directory).to_le_bytes());
        let crc = crc32c::crc32c(&trailer);
        trailer.extend_from_slice(&crc.to_le_bytes());
        self.file.put(&trailer)?;
        self.file.sync()?;
        Ok(FileMeta { kind: FileKind::Words, length: self.file.length(), crc })
    }
}
