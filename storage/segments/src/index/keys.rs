//! Pagination keys of the rows, in pages of a fixed number of rows, to continue a page of a result.
//!
//! In the wide form, a key has eight bytes, and the directory has the first key of each page. In the packed form, the
//! directory has `first key u64, least key u64, width u8` for each page. Keys of a packed page are differences to the
//! least one, in as many bytes as the largest needs. Keys fall within an object, so differences of consecutive rows are
//! small.

use std::ops::Range;

use super::page::{KeyForm, PAGE_BYTES};

/// Number of keys in one page.
pub(crate) const KEYS_PER_PAGE: usize = PAGE_BYTES / size_of::<u64>();
const PACKED_PLACE_BYTES: usize = 17;

/// Locations of the keys of all rows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyPages(Vec<KeyPage>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyPage {
    first: u64,
    least: u64,
    /// Offset in the section of keys.
    offset: u64,
    /// Size of a key in bytes.
    width: u8,
}

impl KeyPages {
    /// Encodes the section of keys and its directory.
    pub fn encode(form: KeyForm, keys: &[u64]) -> (Vec<u8>, Vec<u8>) {
        let (mut section, mut directory) = (Vec::new(), Vec::new());
        for page in keys.chunks(KEYS_PER_PAGE) {
            let (least, most) = (page.iter().min().copied().unwrap_or(0), page.iter().max().copied().unwrap_or(0));
            directory.extend_from_slice(&page[0].to_le_bytes());
            let (least, width) = match form {
                KeyForm::Wide => (0, size_of::<u64>()),
                KeyForm::Packed => {
                    let width = (u64::BITS - (most - least).leading_zeros()).div_ceil(8);
                    directory.extend_from_slice(&least.to_le_bytes());
                    directory.push(width as u8);
                    (least, width as usize)
                }
            };
            section.extend(page.iter().flat_map(|key| (key - least).to_le_bytes().into_iter().take(width)));
        }
        (section, directory)
    }

    /// Decodes a directory. Returns `None` if it does not fit the number of keys and the size of the section.
    pub fn decode(form: KeyForm, directory: &[u8], rows: u32, section_bytes: u64) -> Option<KeyPages> {
        let u64_of = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
        let place_bytes = if form == KeyForm::Wide { size_of::<u64>() } else { PACKED_PLACE_BYTES };
        let mut left = rows as usize;
        let mut offset = 0;
        let mut pages = Vec::with_capacity(directory.len() / place_bytes);
        for place in directory.chunks(place_bytes) {
            let (first, least, width) = match form {
                KeyForm::Wide => (u64_of(place)?, 0, size_of::<u64>() as u8),
                KeyForm::Packed => (u64_of(place.get(..8)?)?, u64_of(place.get(8..16)?)?, *place.get(16)?),
            };
            if left == 0 || usize::from(width) > size_of::<u64>() {
                return None;
            }
            pages.push(KeyPage { first, least, offset, width });
            let here = left.min(KEYS_PER_PAGE);
            left -= here;
            offset += here as u64 * u64::from(width);
        }
        (left == 0 && offset == section_bytes).then_some(KeyPages(pages))
    }

    /// Returns the page with the first of these rows whose key is below `key`, and its rows and bytes among them.
    ///
    /// That row may also directly follow the page. Keys fall from row to row, and there is at least one row.
    pub fn page_below(&self, rows: Range<u32>, key: u64) -> (KeyPage, Range<u32>, Range<u64>) {
        let page_of = |row: u32| row as usize / KEYS_PER_PAGE;
        // The first page that starts below the key bounds the result from above.
        let (first, last) = (page_of(rows.start), page_of(rows.end - 1));
        let number = first + self.0[first + 1..=last].partition_point(|page| page.first >= key);
        let start = (number * KEYS_PER_PAGE) as u32;
        let from = rows.start.max(start);
        let to = rows.end.min(u32::try_from((number + 1) * KEYS_PER_PAGE).unwrap_or(u32::MAX));
        let page = self.0[number];
        let byte = |row: u32| page.offset + u64::from(row - start) * u64::from(page.width);
        (page, from..to, byte(from)..byte(to))
    }

    pub fn memory_bytes(&self) -> usize {
        size_of_val(&self.0[..])
    }
}

impl KeyPage {
    /// Returns how many of these rows have a key at or above `key`.
    ///
    /// `rows` and `bytes` come from [`KeyPages::page_below`].
    pub fn at_or_above(&self, rows: &Range<u32>, bytes: &[u8], key: u64) -> u32 {
        let width = usize::from(self.width);
        let key_at = |place: u32| {
            let mut whole = [0; 8];
            whole[..width].copy_from_slice(&bytes[place as usize * width..][..width]);
            self.least.wrapping_add(u64::from_le_bytes(whole))
        };
        let (mut low, mut high) = (0, rows.end - rows.start);
        while low < high {
            let middle = low + (high - low) / 2;
            if key_at(middle) >= key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the first of these rows below the key, by means of pages.
    fn found(form: KeyForm, keys: &[u64], rows: Range<u32>, key: u64) -> u32 {
        let (section, directory) = KeyPages::encode(form, keys);
        let pages = KeyPages::decode(form, &directory, keys.len() as u32, section.len() as u64).unwrap();
        let (page, within, bytes) = pages.page_below(rows, key);
        within.start + page.at_or_above(&within, &section[bytes.start as usize..bytes.end as usize], key)
    }

    #[test]
    fn both_forms_find_what_a_walk_finds() {
        // The second of the two objects has larger keys, and some of its keys are equal.
        let mut keys: Vec<u64> = (0..700_u64).map(|row| u64::MAX - row * row * 7919).collect();
        keys.extend(std::iter::repeat_n(5_000_000, 600));
        keys.extend((0..900_u64).rev());
        for form in [KeyForm::Wide, KeyForm::Packed] {
            for rows in [0..700_u32, 700..2200, 700..701, 1300..2200] {
                let here = &keys[rows.start as usize..rows.end as usize];
                for key in [0, 1, 450, 899, 900, 4_999_999, 5_000_000, 5_000_001, here[here.len() / 2], u64::MAX] {
                    let walked = rows.start + here.iter().take_while(|own| **own >= key).count() as u32;
                    assert_eq!(found(form, &keys, rows.clone(), key), walked, "{form:?} {rows:?} {key}");
                }
            }
        }
        let (wide, packed) = (KeyPages::encode(KeyForm::Wide, &keys).0, KeyPages::encode(KeyForm::Packed, &keys).0);
        assert_eq!(wide.len(), keys.len() * 8);
        assert!(packed.len() < wide.len() * 3 / 4, "{}", packed.len());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let keys: Vec<u64> = (0..1000).rev().collect();
        for form in [KeyForm::Wide, KeyForm::Packed] {
            let (section, directory) = KeyPages::encode(form, &keys);
            let bytes = section.len() as u64;
            assert!(KeyPages::decode(form, &directory, 1000, bytes).is_some());
            assert!(KeyPages::decode(form, &directory, 999, bytes).is_none());
            assert!(KeyPages::decode(form, &directory, 1025, bytes).is_none());
            assert!(KeyPages::decode(form, &directory, 1000, bytes + 1).is_none());
            assert!(KeyPages::decode(form, &directory[1..], 1000, bytes).is_none());
            assert!(KeyPages::decode(form, &directory[..8], 1000, bytes).is_none());
            assert_eq!(KeyPages::decode(form, &[], 0, 0), Some(KeyPages::default()));
        }
        assert!(KeyPages::decode(KeyForm::Packed, &[0xFF; 17], 1, 255).is_none(), "keys of 255 bytes");
    }
}
