//! Pages of entries sorted by hash. A page is aligned to 4 KiB and a multiple of it in size.
//!
//! Only the first hash of each page is in memory.
//!
//! ```text
//! page    count u32, used u32, entry*, zeros
//! entry   hash u64, object ordinal, length and text, payload length and payload      (numbers: LEB128), or packed:
//!         object ordinal, text, payload length and payload
//! text    number, bytes: the number is four times their count, and 0: as they are, 1: hex digits, two of them in a byte,
//!         2: the same, a UUID with its hyphens
//! ```
//! Nearly all ids are UUIDs or hex digits, so packed ones take half the space. An id with mixed forms of digits is
//! stored as text. Several entries may share a hash; they are consecutive, also across pages. An entry that is too long
//! for a page gets its own page.

use assay_storage_model::segment::COLUMNAR_FORMAT;

/// Alignment of pages and size of a checksummed block.
pub(crate) const PAGE_BYTES: usize = 4096;
const HEAD_BYTES: usize = 8;

/// Writes a number with seven bits per byte.
pub(crate) fn put_number(into: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

/// Writes a difference that may be negative. Differences near zero are short.
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

/// Encoding of entries in their pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyForm {
    /// Entries with their hashes and unchanged texts.
    Wide,
    Packed,
}

/// Kinds of packed texts, stored with the number of their bytes.
mod kind {
    pub const PLAIN: u64 = 0;
    pub const HEX: u64 = 1;
    pub const UUID: u64 = 2;
}

const UUID_LENGTH: usize = 36;
const UUID_HYPHENS: [usize; 4] = [8, 13, 18, 23];

impl KeyForm {
    pub fn of(format: u16) -> KeyForm {
        if format >= COLUMNAR_FORMAT { KeyForm::Packed } else { KeyForm::Wide }
    }

    /// Writes the text of an id or a trace. The encoding is unique, so that equal texts have equal bytes.
    pub fn put_text(self, into: &mut Vec<u8>, text: &[u8]) {
        match self {
            KeyForm::Wide => {
                put_number(into, text.len() as u64);
                into.extend_from_slice(text);
            }
            KeyForm::Packed if is_uuid(text) => {
                let digits = text.iter().copied().filter(|byte| *byte != b'-');
                put_hex(into, kind::UUID, UUID_LENGTH - UUID_HYPHENS.len(), digits);
            }
            KeyForm::Packed if text.len() >= 2 && text.len().is_multiple_of(2) && text.iter().all(is_digit) => {
                put_hex(into, kind::HEX, text.len(), text.iter().copied());
            }
            KeyForm::Packed => {
                put_number(into, (text.len() as u64) << 2 | kind::PLAIN);
                into.extend_from_slice(text);
            }
        }
    }

    /// Takes a text as written by [`KeyForm::put_text`], including its number.
    fn take_text<'a>(self, from: &mut &'a [u8]) -> Option<&'a [u8]> {
        let whole = *from;
        let number = take_number(from)?;
        let length = match self {
            KeyForm::Wide => number,
            KeyForm::Packed => number >> 2,
        };
        let (_, rest) = from.split_at_checked(usize::try_from(length).ok()?)?;
        *from = rest;
        Some(&whole[..whole.len() - rest.len()])
    }

    /// Writes an entry without its hash.
    pub fn put_entry(self, into: &mut Vec<u8>, ordinal: u64, text: &[u8], payload: &[u8]) {
        put_number(into, ordinal);
        self.put_text(into, text);
        put_number(into, payload.len() as u64);
        into.extend_from_slice(payload);
    }

    /// Takes the next entry without its hash.
    fn take_entry<'a>(self, from: &mut &'a [u8]) -> Option<Entry<'a>> {
        Some(Entry { ordinal: take_number(from)?, text: self.take_text(from)?, payload: take_bytes(from)? })
    }

    /// Returns the length of the entry without its hash at the start of `bytes`.
    pub fn entry_length(self, bytes: &[u8]) -> Option<usize> {
        let mut rest = bytes;
        self.take_entry(&mut rest)?;
        Some(bytes.len() - rest.len())
    }

    /// Returns the entries of a page, or `None` if the bytes are not a page.
    pub fn entries(self, page: &[u8]) -> Option<impl Iterator<Item = Option<Entry<'_>>>> {
        let (count, rest) = page.split_first_chunk::<4>()?;
        let (used, rest) = rest.split_first_chunk::<4>()?;
        let mut rest = rest.get(..u32::from_le_bytes(*used) as usize)?;
        Some((0..u32::from_le_bytes(*count)).map(move |_| {
            // The hash has served to find the page. Lookups compare texts.
            rest = rest.get(self.hash_bytes()..)?;
            self.take_entry(&mut rest)
        }))
    }

    fn hash_bytes(self) -> usize {
        match self {
            KeyForm::Wide => size_of::<u64>(),
            KeyForm::Packed => 0,
        }
    }
}

fn is_digit(byte: &u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn is_uuid(text: &[u8]) -> bool {
    let fits = |(at, byte): (usize, &u8)| match UUID_HYPHENS.contains(&at) {
        true => *byte == b'-',
        false => is_digit(byte),
    };
    text.len() == UUID_LENGTH && text.iter().enumerate().all(fits)
}

/// Writes an even number `count` of digits, two per byte.
fn put_hex(into: &mut Vec<u8>, kind: u64, count: usize, mut digits: impl Iterator<Item = u8>) {
    put_number(into, (count as u64 / 2) << 2 | kind);
    let value = |digit: u8| if digit <= b'9' { digit - b'0' } else { digit - b'a' + 10 };
    while let (Some(high), Some(low)) = (digits.next(), digits.next()) {
        into.push(value(high) << 4 | value(low));
    }
}

/// Entry of a text of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub ordinal: u64,
    /// Text as written by [`KeyForm::put_text`].
    pub text: &'a [u8],
    pub payload: &'a [u8],
}

/// Directory of an index's pages: the first hash of each and its start, in steps of [`PAGE_BYTES`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Directory {
    first: Vec<u64>,
    start: Vec<u32>,
    /// End of the last page.
    end: u32,
}

/// Size of a page's position in the directory.
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

    /// Decodes a directory. Returns `None` if the bytes cannot be the positions of pages that end at `end`.
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

    /// Returns the pages that may hold this hash, in order, as positions in steps of [`PAGE_BYTES`].
    pub fn pages_of(&self, hash: u64) -> impl Iterator<Item = (u32, u32)> {
        // The page before the first one that starts at or above the hash may end with it.
        let from = self.first.partition_point(|&first| first < hash).saturating_sub(1);
        let to = self.first.partition_point(|&first| first <= hash);
        (from..to).map(|page| (self.start[page], self.start.get(page + 1).copied().unwrap_or(self.end)))
    }

    pub fn memory_bytes(&self) -> usize {
        self.first.len() * PLACE_BYTES
    }
}

/// Writer of pages, whose entries arrive in the order of their hashes.
#[derive(Debug)]
pub(crate) struct PageWriter {
    form: KeyForm,
    page: Vec<u8>,
    count: u32,
    directory: Directory,
}

impl PageWriter {
    /// Creates a writer whose first page will be at `start`, in steps of [`PAGE_BYTES`].
    pub fn new(form: KeyForm, start: u32) -> PageWriter {
        let directory = Directory { end: start, ..Directory::default() };
        PageWriter { form, page: vec![0; HEAD_BYTES], count: 0, directory }
    }

    /// Adds an entry that [`KeyForm::put_entry`] wrote to `body`. Full pages go to `out`.
    pub fn push<E>(&mut self, hash: u64, body: &[u8], out: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        if self.count > 0 && self.page.len() + self.form.hash_bytes() + body.len() > PAGE_BYTES {
            self.close_page(out)?;
        }
        if self.count == 0 {
            self.directory.first.push(hash);
            self.directory.start.push(self.directory.end);
        }
        self.page.extend_from_slice(&hash.to_le_bytes()[..self.form.hash_bytes()]);
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
        for form in [KeyForm::Wide, KeyForm::Packed] {
            let mut pages = Vec::new();
            let mut out = |page: &[u8]| -> Result<(), ()> {
                pages.extend_from_slice(page);
                Ok(())
            };
            let mut writer = PageWriter::new(form, 0);
            let long = vec![b'x'; 10_000];
            for (hash, text) in [(1, &b"a"[..]), (2, b"b"), (2, &long), (2, b"c"), (9, b"d")] {
                let mut body = Vec::new();
                form.put_entry(&mut body, 3, text, b"payload");
                assert_eq!(form.entry_length(&body), Some(body.len()));
                writer.push(hash, &body, &mut out).unwrap();
            }
            let directory = writer.finish(&mut out).unwrap();
            let places: Vec<_> = directory.pages_of(2).collect();
            assert_eq!(places, [(0, 1), (1, 4), (4, 5)]);
            assert_eq!(directory.pages_of(0).count(), 0);
            let found: Vec<usize> = places
                .iter()
                .map(|&(start, end)| &pages[start as usize * PAGE_BYTES..end as usize * PAGE_BYTES])
                .flat_map(|page| form.entries(page).unwrap())
                .map(|entry| entry.unwrap())
                .filter(|entry| entry.ordinal == 3 && entry.payload == b"payload")
                .map(|entry| entry.text.len())
                .collect();
            let number = if form == KeyForm::Wide { 2 } else { 3 };
            assert_eq!(found, [2, 2, 10_000 + number, 2, 2], "their numbers before them");
            assert_eq!(Directory::from_bytes(&directory.to_bytes(), 5), Some(directory));
        }
    }

    #[test]
    fn each_text_is_packed_in_one_way_and_no_two_are_the_same() {
        let texts = [
            "",
            "0",
            "00",
            "0f",
            "0F",
            "f0f",
            "-",
            "0123456789abcdef",
            "0123456789abcdeF",
            "0123456789abcdef0123456789abcdef",
            "01234567-89ab-cdef-0123-456789abcdef",
            "01234567-89ab-cdef-0123-456789abcdeF",
            "0123456-789ab-cdef-0123-456789abcdef",
            "01234567-89ab-cdef-0123-456789abcdef0",
            "event-17",
            "é",
        ];
        let packed: Vec<Vec<u8>> = texts
            .iter()
            .map(|text| {
                let mut packed = Vec::new();
                KeyForm::Packed.put_text(&mut packed, text.as_bytes());
                let mut rest = &packed[..];
                assert_eq!(KeyForm::Packed.take_text(&mut rest), Some(&packed[..]));
                assert!(rest.is_empty(), "{text}");
                packed
            })
            .collect();
        let different: std::collections::HashSet<_> = packed.iter().collect();
        assert_eq!(different.len(), texts.len());
        assert_eq!(packed[3], [1 << 2 | 1, 0x0f]);
        assert_eq!((packed[9].len(), packed[10].len()), (17, 17));
        assert_eq!(packed[10][..3], [16 << 2 | 2, 0x01, 0x23]);
    }

    #[test]
    fn no_page_of_any_bytes_panics() {
        for byte in 0..=255 {
            let page = [byte; 64];
            for form in [KeyForm::Wide, KeyForm::Packed] {
                if let Some(found) = form.entries(&page) {
                    found.take_while(Option::is_some).for_each(drop);
                }
            }
        }
    }
}
