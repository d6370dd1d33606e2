//! The `.words` file of a columnar segment: the blocks of rows in which each word occurs, so that a search skips the
//! others.
//!
//! ```text
//! group 0: pages of words | group 1: pages | ...        read a page at a time
//! directory: for each group its rows and, of each page, the first word, the length and the checksums      in memory
//! trailer: magic, format u16, 0 u16, rows u32, offset of the directory u64, its CRC u32, CRC of these u32
//! ```
//! A group is a row group of the rows' file, and a block is [`BLOCK_ROWS`] rows of it. Words are those of [`FIELDS`] as
//! searches split them (`model::tokens`), regardless of their field. They ascend, and each has the blocks in which it
//! occurs. A word longer than [`WORD_BYTES_MAX`] is stored by its beginning. The index only excludes blocks, and a
//! search checks the rows. It is a function of the rows, so it can be rebuilt.
//!
//! A page has `shared u8, more u8, more bytes, blocks varint (0: all), differences varint...` for each word, compressed
//! with zstd.

mod builder;
mod read;

pub(crate) use builder::{GroupWords, WordsBuilder, WordsWriter};
pub(crate) use read::WordIndex;

/// Fields whose words are indexed.
pub const FIELDS: [&str; 7] = ["input", "output", "expected", "error", "metadata", "span_attributes", "tags"];
/// Number of rows in one block.
pub const BLOCK_ROWS: usize = 128;
/// Size to which longer words are cut, at the end of a letter.
pub const WORD_BYTES_MAX: usize = 64;

/// Size of a page before compression, exceeded by at most one word.
const PAGE_BYTES: usize = 16 << 10;
/// Size of a page that has a word with blocks in the whole of the largest group.
const PAGE_BYTES_MAX: usize = PAGE_BYTES + (64 << 10);
const MAGIC: &[u8; 8] = b"ASSAYWRD";
const FORMAT: u16 = 1;
const TRAILER_BYTES: usize = 32;

/// Returns a word as the index stores it.
pub(crate) fn cut(word: &str) -> &str {
    if word.len() <= WORD_BYTES_MAX {
        return word;
    }
    let end = (0..=WORD_BYTES_MAX).rev().find(|end| word.is_char_boundary(*end)).unwrap_or(0);
    &word[..end]
}

fn put_varint(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number. Returns `None` if it is truncated or too long.
fn take_varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0_u32;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
