//! Makes the index of words while rows are split, group by group.

use std::collections::HashMap;

use assay_storage_model::segment::{FileKind, FileMeta};
use assay_storage_model::tokens::words_of_json;

use super::{BLOCK_ROWS, FORMAT, MAGIC, PAGE_BYTES, TRAILER_BYTES, cut, put_varint};
use crate::blocks::SumWriter;
use crate::error::SegmentError;

/// Fast enough beside writing, and read at a gigabyte a second.
const LEVEL: i32 = 1;

/// Words that were seen a moment ago are found in a table of this many places.
const RECENT: usize = 1 << 14;

/// The words of one group.
#[derive(Debug, Default)]
pub(crate) struct WordsBuilder {
    /// Their numbers.
    known: HashMap<Box<str>, u32, ahash::RandomState>,
    /// By their numbers.
    words: Vec<Word>,
    /// By the end of a hash, a word's hash and number: most words of a text were there before, and one look less counts.
    recent: Vec<(u64, u32)>,
    rows: usize,
}

#[derive(Debug)]
struct Word {
    text: Box<str>,
    /// Where it occurs, ascending.
    blocks: Vec<u32>,
}

/// The pages of one group, as they go into the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupWords {
    pub rows: u32,
    pub pages: Vec<WordsPage>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WordsPage {
    pub first: Box<str>,
    /// Compressed.
    pub bytes: Vec<u8>,
    /// Of what was compressed.
    pub plain_bytes: u32,
    pub plain_crc: u32,
}

impl WordsBuilder {
    /// The texts of the next row.
    pub fn push<'t>(&mut self, texts: impl IntoIterator<Item = &'t [u8]>) {
        let block = (self.rows / BLOCK_ROWS) as u32;
        self.recent.resize(RECENT, (0, u32::MAX));
        for text in texts {
            words_of_json(text, |word| self.see(cut(word), block));
        }
        self.rows += 1;
    }

    fn see(&mut self, word: &str, block: u32) {
        let hash = self.known.hasher().hash_one(word);
        let place = hash as usize % RECENT;
        let (seen, number) = self.recent[place];
        if seen == hash
            && let Some(known) = self.words.get_mut(number as usize)
            && *known.text == *word
        {
            return known.occurs(block);
        }
        let number = match self.known.get(word) {
            Some(number) => *number,
            None => {
                let number = self.words.len() as u32;
                self.known.insert(word.into(), number);
                self.words.push(Word { text: word.into(), blocks: Vec::new() });
                number
            }
        };
        self.recent[place] = (hash, number);
        self.words[number as usize].occurs(block);
    }

    /// Ends the group.
    pub fn finish(&mut self) -> GroupWords {
        let rows = std::mem::take(&mut self.rows);
        let all = rows.div_ceil(BLOCK_ROWS);
        self.known.clear();
        self.recent.clear();
        let mut words = std::mem::take(&mut self.words);
        words.sort_unstable_by(|a, b| a.text.cmp(&b.text));
        let mut pages = Vec::new();
        let mut open: Vec<u8> = Vec::with_capacity(PAGE_BYTES + 1024);
        let (mut first, mut last) = ("", "");
        for Word { text, blocks } in &words {
            if open.len() >= PAGE_BYTES {
                pages.push(WordsPage::of(first, &open));
                open.clear();
            }
            if open.is_empty() {
                (first, last) = (text, "");
            }
            put_word(&mut open, last, text, blocks, all);
            last = text;
        }
        if !open.is_empty() {
            pages.push(WordsPage::of(first, &open));
        }
        GroupWords { rows: rows as u32, pages }
    }
}

impl Word {
    fn occurs(&mut self, block: u32) {
        if self.blocks.last() != Some(&block) {
            self.blocks.push(block);
        }
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

/// The file, as groups come.
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

    /// Writes the rest and makes it durable.
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
