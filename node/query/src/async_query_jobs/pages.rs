//! Layout of a job's result file: JSON lines in pages, each with a checksum. Pure.

use serde::{Deserialize, Serialize};

/// Size at which a page is written. A single row may be larger.
pub(crate) const PAGE_BYTES: usize = 256 << 10;
/// Upper bound of the pages of one job. Their index is kept in memory and written in one record.
pub(crate) const PAGES_MAX: usize = 1 << 17;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32, u32)", into = "(u32, u32, u32)")]
pub(crate) struct Page {
    pub rows: u32,
    pub bytes: u32,
    /// CRC32C of the page's offset and bytes, so that a misplaced page is detected too.
    pub sum: u32,
}

impl From<(u32, u32, u32)> for Page {
    fn from((rows, bytes, sum): (u32, u32, u32)) -> Page {
        Page { rows, bytes, sum }
    }
}

impl From<Page> for (u32, u32, u32) {
    fn from(Page { rows, bytes, sum }: Page) -> (u32, u32, u32) {
        (rows, bytes, sum)
    }
}

impl Page {
    /// Creates the index entry of a page of lines at an offset.
    pub fn of(offset: u64, rows: u32, lines: &[u8]) -> Page {
        // A page has at most `PAGE_BYTES` and one row.
        let bytes = u32::try_from(lines.len()).unwrap_or(u32::MAX);
        Page { rows, bytes, sum: sum(offset, lines) }
    }

    pub fn is(&self, offset: u64, lines: &[u8]) -> bool {
        *self == Page::of(offset, self.rows, lines)
    }
}

fn sum(offset: u64, lines: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&offset.to_le_bytes()), lines)
}

/// Page with its position in the file and among the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlacedPage {
    pub page: Page,
    pub offset: u64,
    pub first: u64,
}

/// Index of all pages of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pages {
    placed: Vec<PlacedPage>,
}

impl Pages {
    pub fn new(pages: &[Page]) -> Pages {
        let mut all = Pages::default();
        pages.iter().for_each(|page| all.push(*page));
        all
    }

    pub fn push(&mut self, page: Page) {
        self.placed.push(PlacedPage { page, offset: self.bytes(), first: self.rows() });
    }

    pub fn list(&self) -> Vec<Page> {
        self.placed.iter().map(|placed| placed.page).collect()
    }

    pub fn len(&self) -> usize {
        self.placed.len()
    }

    pub fn rows(&self) -> u64 {
        self.placed.last().map_or(0, |last| last.first + u64::from(last.page.rows))
    }

    pub fn bytes(&self) -> u64 {
        self.placed.last().map_or(0, |last| last.offset + u64::from(last.page.bytes))
    }

    /// Returns the pages with rows from `row` on, up to a number of rows or bytes.
    pub fn from(&self, row: u64, rows: u64, bytes: usize) -> Vec<PlacedPage> {
        let begin = self.placed.partition_point(|placed| placed.first + u64::from(placed.page.rows) <= row);
        let (end, mut taken) = (row.saturating_add(rows), 0);
        let wanted = self.placed[begin..].iter().take_while(|placed| {
            let is_wanted = placed.first < end && taken < bytes;
            taken += placed.page.bytes as usize;
            is_wanted
        });
        wanted.copied().collect()
    }
}

/// Lines of the results from a row on, up to a number of rows or bytes.
#[derive(Clone, Debug)]
pub(crate) struct ResultSlice {
    pub lines: Vec<u8>,
    /// Number of the row after the last one.
    pub next: u64,
    end: u64,
    bytes_max: usize,
}

impl ResultSlice {
    pub fn new(row: u64, rows: u64, bytes_max: usize) -> ResultSlice {
        ResultSlice { lines: Vec::new(), next: row, end: row.saturating_add(rows), bytes_max }
    }

    pub fn page(&mut self, placed: &PlacedPage, lines: &[u8]) {
        for (row, line) in (placed.first..).zip(lines.split_inclusive(|byte| *byte == b'\n')) {
            if row == self.next && row < self.end && self.lines.len() < self.bytes_max {
                self.lines.extend_from_slice(line);
                self.next += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns pages with these numbers of rows, and their file.
    fn pages(sizes: &[u32]) -> (Pages, Vec<u8>) {
        let (mut all, mut file, mut row) = (Pages::default(), Vec::new(), 0);
        for size in sizes {
            let lines: String = (row..row + size).map(|row| format!("{{\"n\":{row}}}\n")).collect();
            all.push(Page::of(file.len() as u64, *size, lines.as_bytes()));
            file.extend_from_slice(lines.as_bytes());
            row += size;
        }
        (all, file)
    }

    fn read(all: &Pages, file: &[u8], row: u64, rows: u64, bytes: usize) -> (Vec<u64>, u64) {
        let mut cut = ResultSlice::new(row, rows, bytes);
        for placed in all.from(row, rows, bytes) {
            let end = placed.offset as usize + placed.page.bytes as usize;
            let lines = &file[placed.offset as usize..end];
            assert!(placed.page.is(placed.offset, lines));
            cut.page(&placed, lines);
        }
        let number = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["n"].as_u64();
        let lines = String::from_utf8(cut.lines).expect("text");
        (lines.lines().filter_map(number).collect(), cut.next)
    }

    #[test]
    fn rows_are_found_wherever_they_stand() {
        let (all, file) = pages(&[3, 1, 5, 2]);
        assert_eq!((all.rows(), all.bytes()), (11, file.len() as u64));
        assert_eq!(Pages::new(&all.list()), all);
        for row in 0_u64..13 {
            for rows in 1..13 {
                let expected: Vec<u64> = (row..row.saturating_add(rows).min(11)).collect();
                let next = expected.last().map_or(row, |last| last + 1);
                assert_eq!(read(&all, &file, row, rows, usize::MAX), (expected, next), "{rows} from {row}");
            }
        }
        assert_eq!(read(&all, &file, 0, u64::MAX, 1), (vec![0], 1), "one row at least");
        assert_eq!(read(&Pages::default(), &[], 0, 5, 100), (vec![], 0));
    }

    #[test]
    fn a_page_that_is_changed_or_stands_elsewhere_is_seen() {
        let (all, mut file) = pages(&[2, 2]);
        let second = all.from(2, 2, 100)[0];
        let lines = file.split_off(second.offset as usize);
        assert!(second.page.is(second.offset, &lines) && !second.page.is(0, &lines));
        let mut changed = lines.clone();
        changed[3] ^= 4;
        assert!(!second.page.is(second.offset, &changed) && !second.page.is(second.offset, &lines[1..]));
    }
}
