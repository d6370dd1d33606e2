//! Pages of entries sorted by hash. A page is a multiple of 4 KiB and starts on one; in memory stands only the first
//! hash of each.
//!
//! ```text
//! page    count u32, used u32, entry*, zeros
//! entry   hash u64, object ordinal, length and text, payload length and payload      (numbers: LEB128)
//! ```
//! Several entries may share a hash; they follow one another, also across pages. An entry that is too long for a page
//! gets a page of its own.

/// The step of pages, and the block that is checksummed.
pub(crate) const PAGE_BYTES: usize = 4096;
const HEAD_BYTES: usize = 8;

/// Writes numbers, seven bits a byte.
pub(crate) fn put_number(into: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

/// A difference that may be negative, small if near zero.
pub(crate) fn put_difference(into: &mut Vec<u8>, number: u64, base: u64) {
    let difference = number.wrapping_sub(base) as i64;
    put_number(into, (difference << 1 ^ difference >> 63) as u64);
}

pub(crate) fn take_number(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

pub(crate) fn take_difference(from: &mut &[u8], base: u64) -> Option<u64> {
    let zigzag = take_number(from)?;
    Some(base.wrapping_add(zigzag >> 1 ^ (zigzag & 1).wrapping_neg()))
}

pub(crate) fn take_bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_number(from)?).ok()?;
    let (bytes, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(bytes)
}

/// What one entry says of a text of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub hash: u64,
    pub ordinal: u64,
    pub text: &'a [u8],
    pub payload: &'a [u8],
}

/// An entry's bytes behind its hash.
pub(crate) fn put_entry(into: &mut Vec<u8>, ordinal: u64, text: &[u8], payload: &[u8]) {
    put_number(into, ordinal);
    put_number(into, text.len() as u64);
    into.extend_from_slice(text);
    put_number(into, payload.len() as u64);
    into.extend_from_slice(payload);
}

/// The length of the entry (behind its hash) that starts `bytes`.
pub(crate) fn entry_length(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    take_number(&mut rest)?;
    take_bytes(&mut rest)?;
    take_bytes(&mut rest)?;
    Some(bytes.len() - rest.len())
}

/// The entries of a page, or none if the bytes are no page.
pub(crate) fn entries(page: &[u8]) -> Option<impl Iterator<Item = Option<Entry<'_>>>> {
    let (count, rest) = page.split_first_chunk::<4>()?;
    let (used, rest) = rest.split_first_chunk::<4>()?;
    let mut rest = rest.get(..u32::from_le_bytes(*used) as usize)?;
    Some((0..u32::from_le_bytes(*count)).map(move |_| {
        let (hash, tail) = rest.split_first_chunk::<8>()?;
        rest = tail;
        let hash = u64::from_le_bytes(*hash);
        Some(Entry {
            hash,
            ordinal: take_number(&mut rest)?,
            text: take_bytes(&mut rest)?,
            payload: take_bytes(&mut rest)?,
        })
    }))
}

/// Where the pages of one index are: the first hash of each and the place it starts, in steps of [`PAGE_BYTES`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Directory {
    first: Vec<u64>,
    start: Vec<u32>,
    /// Where the last page ends.
    end: u32,
}

/// Bytes of a page's place in the directory.
const PLACE_BYTES: usize = 12;

impl Directory {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.first.len() * PLACE_BYTES);
        for (first, start) in self.first.iter().zip(&self.start) {
            bytes.extend_from_slice(&first.to_le_bytes());
            bytes.extend_from_slice(&start.to_le_bytes());
        }
        bytes
    }

    /// None if these cannot be the places of pages that end at `end`.
    pub fn from_bytes(bytes: &[u8], end: u32) -> Option<Directory> {
        let (places, rest) = bytes.as_chunks::<PLACE_BYTES>();
        if !rest.is_empty() {
            return None;
        }
        let split = |place: &[u8; PLACE_BYTES]| {
            let (first, start) = place.split_at(8);
            (u64::from_le_bytes(first.try_into().expect("8")), u32::from_le_bytes(start.try_into().expect("4")))
        };
        let (first, start): (Vec<u64>, Vec<u32>) = places.iter().map(split).unzip();
        let ascend =
            first.is_sorted() && start.is_sorted_by(|a, b| a < b) && start.last().is_none_or(|&last| last < end);
        ascend.then_some(Directory { first, start, end })
    }

    /// The pages that may hold this hash, in order, as places in steps of [`PAGE_BYTES`].
    pub fn pages_of(&self, hash: u64) -> impl Iterator<Item = (u32, u32)> {
        // The page before the first that starts at or above the hash may end with it.
        let from = self.first.partition_point(|&first| first < hash).saturating_sub(1);
        let to = self.first.partition_point(|&first| first <= hash);
        (from..to).map(|page| (self.start[page], self.start.get(page + 1).copied().unwrap_or(self.end)))
    }

    pub fn memory_bytes(&self) -> usize {
        self.first.len() * PLACE_BYTES
    }
}

/// Fills pages with entries that come in order of their hashes.
#[derive(Debug)]
pub(crate) struct PageWriter {
    page: Vec<u8>,
    count: u32,
    directory: Directory,
}

impl PageWriter {
    /// `start`: where the first page will be put, in steps of [`PAGE_BYTES`].
    pub fn new(start: u32) -> PageWriter {
        PageWriter { page: vec![0; HEAD_BYTES], count: 0, directory: Directory { end: start, ..Directory::default() } }
    }

    /// `body` is what [`put_entry`] made. Full pages go to `out`.
    pub fn push<E>(&mut self, hash: u64, body: &[u8], out: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        if self.count > 0 && self.page.len() + 8 + body.len() > PAGE_BYTES {
            self.close_page(out)?;
        }
        if self.count == 0 {
            self.directory.first.push(hash);
            self.directory.start.push(self.directory.end);
        }
        self.page.extend_from_slice(&hash.to_le_bytes());
        self.page.extend_from_slice(body);
        self.count += 1;
        Ok(())
    }

    pub fn finish<E>(mut self, out: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<Directory, E> {
        if self.count > 0 {
            self.close_page(out)?;
        }
        Ok(self.directory)
    }

    fn close_page<E>(&mut self, out: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let used = (self.page.len() - HEAD_BYTES) as u32;
        self.page[..4].copy_from_slice(&self.count.to_le_bytes());
        self.page[4..8].copy_from_slice(&used.to_le_bytes());
        self.page.resize(self.page.len().next_multiple_of(PAGE_BYTES), 0);
        self.directory.end += (self.page.len() / PAGE_BYTES) as u32;
        out(&self.page)?;
        self.page.truncate(HEAD_BYTES);
        self.count = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_differences_read_back() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            for base in [0, 5, u64::MAX] {
                let mut bytes = Vec::new();
                put_number(&mut bytes, number);
                put_difference(&mut bytes, number, base);
                let mut rest = &bytes[..];
                assert_eq!(take_number(&mut rest), Some(number));
                assert_eq!(take_difference(&mut rest, base), Some(number));
                assert!(rest.is_empty() && take_number(&mut rest).is_none());
            }
        }
        assert_eq!(take_number(&mut &[0xFF; 11][..]), None, "endless");
    }

    #[test]
    fn entries_of_one_hash_are_found_across_pages_and_long_ones_have_their_own() {
        let mut pages = Vec::new();
        let mut out = |page: &[u8]| -> Result<(), ()> {
            pages.extend_from_slice(page);
            Ok(())
        };
        let mut writer = PageWriter::new(0);
        let long = vec![b'x'; 10_000];
        for (hash, text) in [(1, &b"a"[..]), (2, b"b"), (2, &long), (2, b"c"), (9, b"d")] {
            let mut body = Vec::new();
            put_entry(&mut body, 3, text, b"payload");
            assert_eq!(entry_length(&body), Some(body.len()));
            writer.push(hash, &body, &mut out).unwrap();
        }
        let directory = writer.finish(&mut out).unwrap();
        let places: Vec<_> = directory.pages_of(2).collect();
        assert_eq!(places, [(0, 1), (1, 4), (4, 5)]);
        assert_eq!(directory.pages_of(0).count(), 0);
        let found: Vec<usize> = places
            .iter()
            .flat_map(|&(start, end)| entries(&pages[start as usize * PAGE_BYTES..end as usize * PAGE_BYTES]).unwrap())
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.hash == 2 && entry.ordinal == 3 && entry.payload == b"payload")
            .map(|entry| entry.text.len())
            .collect();
        assert_eq!(found, [1, 10_000, 1]);
        assert_eq!(Directory::from_bytes(&directory.to_bytes(), 5), Some(directory));
    }

    #[test]
    fn no_page_of_any_bytes_panics() {
        for byte in 0..=255 {
            let page = [byte; 64];
            if let Some(found) = entries(&page) {
                found.take_while(Option::is_some).for_each(drop);
            }
        }
    }
}
