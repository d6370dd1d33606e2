//! Header in front of each page of documents, in the exact bytes of Parquet's writer.
//!
//! It is `PageHeader { type: DATA_PAGE, uncompressed and compressed size, DataPageHeader { values, PLAIN, RLE, RLE } }`
//! in Thrift's compact protocol.

use crate::index::page::{put_number, take_number};

/// Upper bound of the size of a header: 7 numbers of at most 5 bytes, and their tags.
pub(crate) const HEADER_BYTES_MAX: usize = 48;

/// Tag of a numeric field whose id is one above the last.
const NEXT_NUMBER: u8 = 0x15;
/// Tag of a struct field whose id is two above the last.
const DATA_PAGE_HEADER: u8 = 0x2C;
const STOP: u8 = 0;
const DATA_PAGE: u64 = 0;
const PLAIN: u64 = 0;
const RLE: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageHeader {
    /// Size of the values before and after compression.
    pub plain_bytes: usize,
    pub stored_bytes: usize,
    pub rows: u32,
}

impl PageHeader {
    pub fn encode(self) -> Vec<u8> {
        let mut header = Vec::with_capacity(HEADER_BYTES_MAX);
        let put = |header: &mut Vec<u8>, number: u64| {
            header.push(NEXT_NUMBER);
            // No number is negative, so zigzag only doubles.
            put_number(header, number << 1);
        };
        for number in [DATA_PAGE, self.plain_bytes as u64, self.stored_bytes as u64] {
            put(&mut header, number);
        }
        header.push(DATA_PAGE_HEADER);
        for number in [u64::from(self.rows), PLAIN, RLE, RLE] {
            put(&mut header, number);
        }
        header.extend_from_slice(&[STOP, STOP]);
        header
    }

    /// Decodes the header at the start of the bytes and returns the rest. Returns `None` unless `encode` could have
    /// made it.
    pub fn decode(mut bytes: &[u8]) -> Option<(PageHeader, &[u8])> {
        let rest = &mut bytes;
        let expect = |rest: &mut &[u8], expected: u64| (take_field(rest)? == expected).then_some(());
        expect(rest, DATA_PAGE)?;
        let plain_bytes = usize::try_from(take_field(rest)?).ok()?;
        let stored_bytes = usize::try_from(take_field(rest)?).ok()?;
        take_byte(rest, DATA_PAGE_HEADER)?;
        let rows = u32::try_from(take_field(rest)?).ok()?;
        for expected in [PLAIN, RLE, RLE] {
            expect(rest, expected)?;
        }
        take_byte(rest, STOP)?;
        take_byte(rest, STOP)?;
        Some((PageHeader { plain_bytes, stored_bytes, rows }, bytes))
    }
}

fn take_byte(rest: &mut &[u8], expected: u8) -> Option<()> {
    let (first, behind) = rest.split_first()?;
    *rest = behind;
    (*first == expected).then_some(())
}

fn take_field(rest: &mut &[u8]) -> Option<u64> {
    take_byte(rest, NEXT_NUMBER)?;
    let number = take_number(rest)?;
    number.is_multiple_of(2).then_some(number >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_and_nothing_cut_or_changed_does() {
        for header in [
            PageHeader { plain_bytes: 0, stored_bytes: 1, rows: 1 },
            PageHeader { plain_bytes: 65_536, stored_bytes: 20_001, rows: 32 },
            PageHeader { plain_bytes: (1 << 31) - 1, stored_bytes: (1 << 31) - 1, rows: u32::MAX },
        ] {
            let bytes = header.encode();
            assert!(bytes.len() <= HEADER_BYTES_MAX);
            assert_eq!(PageHeader::decode(&[&bytes[..], b"xy"].concat()), Some((header, &b"xy"[..])));
            assert!((0..bytes.len()).all(|end| PageHeader::decode(&bytes[..end]).is_none()));
        }
        let mut other = PageHeader { plain_bytes: 1, stored_bytes: 1, rows: 1 }.encode();
        other[1] = 4; // a dictionary page
        assert_eq!(PageHeader::decode(&other), None);
    }
}
