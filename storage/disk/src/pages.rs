//! Writes that go around the system's page cache: they save a copy and the cache's own work, and leave the cache to what
//! is read. The disk takes them in whole pages, from memory that starts on a page.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// What addresses, offsets and lengths of such writes are multiples of: enough for disks of 512 and of 4096 bytes a sector.
pub const PAGE_BYTES: usize = 4096;

/// Fewer bytes than this are not worth a write of their own.
const DIRECT_BYTES_MIN: usize = 64 << 10;
/// What one write around the cache takes at most.
const DIRECT_BYTES_MAX: usize = 4 << 20;

/// A second handle on a file, for its whole pages.
#[derive(Debug)]
pub struct DirectFile {
    file: File,
    /// From the first write on.
    buffer: Option<PageBuffer>,
}

impl DirectFile {
    /// None where the file system cannot write around its cache; the file must exist.
    pub fn open(path: &Path) -> Option<DirectFile> {
        Some(DirectFile { file: open_direct(path)?, buffer: None })
    }

    /// Writes those of `bytes` that fill whole pages of the file if they stand at `offset`, and says which: the others
    /// are the caller's to write through its own handle. None of them if they are too few.
    pub fn write_pages(&mut self, offset: u64, bytes: &[u8]) -> io::Result<Range<usize>> {
        let start = (offset.next_multiple_of(PAGE_BYTES as u64) - offset) as usize;
        let end = start + bytes.len().saturating_sub(start) / PAGE_BYTES * PAGE_BYTES;
        if end - start < DIRECT_BYTES_MIN {
            return Ok(0..0);
        }
        let buffer = self.buffer.get_or_insert_with(|| PageBuffer::new(DIRECT_BYTES_MAX));
        let (mut at, mut rest) = (offset + start as u64, &bytes[start..end]);
        while !rest.is_empty() {
            buffer.clear();
            rest = buffer.fill(rest);
            self.file.write_all_at(buffer.as_slice(), at)?;
            at += buffer.len() as u64;
        }
        Ok(start..end)
    }
}

pub(crate) fn open_direct(path: &Path) -> Option<File> {
    let flags = i32::try_from(OFlags::DIRECT.bits()).expect("a flag of open");
    OpenOptions::new().write(true).custom_flags(flags).open(path).ok()
}

/// Collects bytes for one large append, and is used again for the next.
#[derive(Debug)]
pub struct PageBuffer {
    /// Never grows, so that its start stays on its page.
    bytes: Vec<u8>,
    /// Where the first page begins; what lies before belongs to nobody.
    start: usize,
    capacity: usize,
}

impl PageBuffer {
    /// Room for `capacity` bytes, rounded up to whole pages.
    pub fn new(capacity: usize) -> PageBuffer {
        let capacity = capacity.next_multiple_of(PAGE_BYTES);
        let mut bytes: Vec<u8> = Vec::with_capacity(capacity + PAGE_BYTES);
        let start = bytes.as_ptr().align_offset(PAGE_BYTES);
        bytes.resize(start, 0);
        PageBuffer { bytes, start, capacity }
    }

    /// Takes from the front of `bytes` what there is room for; returns the rest.
    pub fn fill<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let room = self.capacity - self.len();
        let (now, later) = bytes.split_at(bytes.len().min(room));
        self.bytes.extend_from_slice(now);
        later
    }

    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn is_full(&self) -> bool {
        self.len() == self.capacity
    }

    pub fn clear(&mut self) {
        self.bytes.truncate(self.start);
    }
}

/// Whether a write of these bytes at this place may go around the page cache.
pub(crate) fn on_pages(offset: u64, bytes: &[u8]) -> bool {
    let page = PAGE_BYTES as u64;
    !bytes.is_empty()
        && offset.is_multiple_of(page)
        && bytes.len().is_multiple_of(PAGE_BYTES)
        && bytes.as_ptr().addr().is_multiple_of(PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_pages_go_one_way_and_the_ends_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let file = File::create_new(&path).unwrap();
        let Some(mut direct) = DirectFile::open(&path) else { return };
        let bytes: Vec<u8> = (0..DIRECT_BYTES_MAX + 3 * PAGE_BYTES).map(|at| (at % 251) as u8).collect();
        for offset in [0, 1, PAGE_BYTES as u64 - 1, PAGE_BYTES as u64 * 5 + 7] {
            file.set_len(0).unwrap();
            let whole = direct.write_pages(offset, &bytes).unwrap();
            assert!(whole.len() >= bytes.len() - 2 * PAGE_BYTES);
            file.write_all_at(&bytes[..whole.start], offset).unwrap();
            file.write_all_at(&bytes[whole.end..], offset + whole.end as u64).unwrap();
            let found = std::fs::read(&path).unwrap();
            assert!(found[..offset as usize].iter().all(|byte| *byte == 0));
            assert!(found[offset as usize..] == bytes, "at {offset}");
        }
        assert_eq!(direct.write_pages(1, &bytes[..DIRECT_BYTES_MIN]).unwrap(), 0..0, "too few");
    }

    #[test]
    fn it_stays_on_its_page_however_often_it_is_filled() {
        let mut buffer = PageBuffer::new(PAGE_BYTES + 1);
        for round in 0..3_u8 {
            let bytes = vec![round; 3 * PAGE_BYTES];
            let rest = buffer.fill(&bytes);
            assert_eq!(rest.len(), PAGE_BYTES, "two pages fit");
            assert!(buffer.is_full() && on_pages(0, buffer.as_slice()));
            assert!(buffer.as_slice().iter().all(|byte| *byte == round));
            buffer.clear();
            assert!(buffer.is_empty());
        }
        buffer.fill(b"abc");
        assert!(!on_pages(0, buffer.as_slice()), "half a page");
    }
}
