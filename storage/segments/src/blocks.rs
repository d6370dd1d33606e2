//! Checksums by block.
//!
//! A file is written once through [`SumWriter`], which keeps a CRC32C of each block. It is read through [`Verified`],
//! which checks each block before it returns any of its bytes.

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_storage_disk::{DiskFile, PageBuffer};
use bytes::Bytes;
use parking_lot::Mutex;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::error::SegmentError;

/// Size of the write buffer.
///
/// It prevents small writes for small pages. Every write but the last starts and ends on a page of the file system.
const WRITE_BUFFER_BYTES: usize = 1 << 20;
/// Number of bytes read at a time when a whole file is verified.
const CHECK_STEP_BYTES: u64 = 1 << 20;

/// Writer that appends to a new file and computes the checksums of its blocks.
#[derive(Debug)]
pub(crate) struct SumWriter {
    /// File, or `None` if only the checksums are needed.
    file: Option<Arc<dyn DiskFile>>,
    path: PathBuf,
    block_bytes: usize,
    /// Buffered bytes; present from the first byte on, if there is a file.
    buffer: Option<PageBuffer>,
    /// Number of bytes taken, appended or not.
    length: u64,
    sums: Vec<u32>,
    /// Checksum of the block that is not full yet.
    open_sum: u32,
    open_bytes: usize,
    /// First failed append, kept because parquet turns errors into texts.
    failure: Option<io::Error>,
}

impl SumWriter {
    pub fn new(file: Arc<dyn DiskFile>, path: &Path, block_bytes: usize) -> SumWriter {
        SumWriter { file: Some(file), ..SumWriter::to_nowhere(path, block_bytes) }
    }

    /// Creates a writer that only computes checksums.
    pub fn to_nowhere(path: &Path, block_bytes: usize) -> SumWriter {
        SumWriter {
            file: None,
            path: path.to_owned(),
            block_bytes,
            buffer: None,
            length: 0,
            sums: Vec::new(),
            open_sum: 0,
            open_bytes: 0,
            failure: None,
        }
    }

    /// Takes the error of a call of `Write`.
    pub fn failure(&mut self) -> Option<SegmentError> {
        self.failure.take().map(SegmentError::io(&self.path))
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn put(&mut self, bytes: &[u8]) -> Result<(), SegmentError> {
        self.take(bytes).map_err(SegmentError::io(&self.path))
    }

    /// Appends zeros up to the next multiple of `step`.
    pub fn pad_to(&mut self, step: usize) -> Result<(), SegmentError> {
        let over = (self.length % step as u64) as usize;
        if over == 0 { Ok(()) } else { self.put(&vec![0; step - over]) }
    }

    /// Returns the checksum of each block so far. The last block may be short.
    pub fn sums(&self) -> Vec<u32> {
        let mut sums = self.sums.clone();
        sums.extend((self.open_bytes > 0).then_some(self.open_sum));
        sums
    }

    /// Appends the buffered bytes and makes the file durable.
    pub fn sync(&mut self) -> Result<(), SegmentError> {
        let synced = self.append_buffer().and_then(|()| self.file.as_ref().map_or(Ok(()), |file| file.sync()));
        synced.map_err(SegmentError::io(&self.path))
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum_up(bytes);
        self.length += bytes.len() as u64;
        let Some(file) = &self.file else { return Ok(()) };
        let buffer = self.buffer.get_or_insert_with(|| PageBuffer::new(WRITE_BUFFER_BYTES));
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = buffer.fill(rest);
            if buffer.is_full() {
                file.append(buffer.as_slice())?;
                buffer.clear();
            }
        }
        Ok(())
    }

    fn sum_up(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(self.block_bytes - self.open_bytes));
            self.open_sum = crc32c::crc32c_append(self.open_sum, now);
            self.open_bytes += now.len();
            if self.open_bytes == self.block_bytes {
                self.sums.push(self.open_sum);
                (self.open_sum, self.open_bytes) = (0, 0);
            }
            bytes = later;
        }
    }

    fn append_buffer(&mut self) -> io::Result<()> {
        if let (Some(file), Some(buffer)) = (&self.file, self.buffer.take())
            && !buffer.is_empty()
        {
            file.append(buffer.as_slice())?;
        }
        Ok(())
    }
}

impl Write for SumWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.take(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                let text = error.to_string();
                self.failure.get_or_insert(error);
                Err(io::Error::other(text))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// File whose length and block checksums are known.
#[derive(Debug)]
pub(crate) struct Verified {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    length: u64,
    block_bytes: u64,
    sums: Vec<u32>,
}

impl Verified {
    /// Creates a reader of a file whose length on disk was compared with `length` before.
    ///
    /// `sums` has the checksum of each block, including a short last one.
    pub fn new(file: Arc<dyn DiskFile>, path: &Path, length: u64, block_bytes: u64, sums: Vec<u32>) -> Verified {
        debug_assert_eq!(sums.len() as u64, length.div_ceil(block_bytes));
        Verified { file, path: path.to_owned(), length, block_bytes, sums }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    pub fn sums(&self) -> &[u32] {
        &self.sums
    }

    pub fn memory_bytes(&self) -> usize {
        self.sums.len() * size_of::<u32>()
    }

    /// Reads a range of bytes after a check of all blocks that it touches.
    pub fn read(&self, range: Range<u64>) -> Result<Bytes, SegmentError> {
        if range.start > range.end || range.end > self.length {
            let what = format!("bytes {range:?} were requested from a file of {} bytes", self.length);
            return Err(SegmentError::damaged(&self.path, self.length, what));
        }
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let first = range.start / self.block_bytes;
        let start = first * self.block_bytes;
        let end = range.end.next_multiple_of(self.block_bytes).min(self.length);
        let size = usize::try_from(end - start)
            .map_err(|_| SegmentError::damaged(&self.path, start, "a piece larger than memory"))?;
        let mut bytes = vec![0; size];
        self.file.read_at(start, &mut bytes).map_err(SegmentError::io(&self.path))?;
        for (block, sum) in bytes.chunks(self.block_bytes as usize).zip(&self.sums[first as usize..]) {
            if crc32c::crc32c(block) != *sum {
                let at = start + (block.as_ptr() as usize - bytes.as_ptr() as usize) as u64;
                let what = format!("the block of {} bytes does not match its checksum", block.len());
                return Err(SegmentError::damaged(&self.path, at, what));
            }
        }
        let from = (range.start - start) as usize;
        Ok(Bytes::from(bytes).slice(from..from + (range.end - range.start) as usize))
    }

    /// Checks every block of the file, and returns a line for each damaged piece.
    pub fn check_all(&self) -> Vec<String> {
        let step = CHECK_STEP_BYTES.next_multiple_of(self.block_bytes);
        (0..self.length)
            .step_by(step as usize)
            .filter_map(|start| self.read(start..(start + step).min(self.length)).err())
            .map(|error| error.to_string())
            .collect()
    }
}

/// Adapter of [`Verified`] for parquet. It keeps the first error, because parquet and arrow turn errors into texts.
#[derive(Clone, Debug)]
pub(crate) struct RowsReader {
    file: Arc<Verified>,
    failure: Arc<Mutex<Option<SegmentError>>>,
}

impl RowsReader {
    pub fn new(file: &Arc<Verified>) -> RowsReader {
        RowsReader { file: Arc::clone(file), failure: Arc::default() }
    }

    /// Returns the cause of an `error` from parquet or arrow.
    ///
    /// Without a failed read the cause is damage: the bytes match their checksums, but no correct program wrote them.
    pub fn explain(&self, error: impl Display) -> SegmentError {
        let failure = self.failure.lock().take();
        failure.unwrap_or_else(|| {
            SegmentError::damaged(&self.file.path, 0, format!("its columns cannot be decoded: {error}"))
        })
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes, String> {
        self.file.read(range).map_err(|error| {
            let text = error.to_string();
            self.failure.lock().get_or_insert(error);
            text
        })
    }
}

impl Length for RowsReader {
    fn len(&self) -> u64 {
        self.file.length
    }
}

impl ChunkReader for RowsReader {
    type T = Sequential;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Sequential> {
        Ok(Sequential { reader: self.clone(), at: start, ready: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let end = start.saturating_add(length as u64);
        self.read(start..end).map_err(ParquetError::General)
    }
}

/// Sequential reader from a position, one block at a time.
#[derive(Debug)]
pub(crate) struct Sequential {
    reader: RowsReader,
    at: u64,
    ready: Bytes,
}

impl Read for Sequential {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.ready.is_empty() {
            let file = &self.reader.file;
            let end = (self.at + 1).next_multiple_of(file.block_bytes).min(file.length);
            self.ready = self.reader.read(self.at.min(end)..end).map_err(io::Error::other)?;
        }
        let count = into.len().min(self.ready.len());
        into[..count].copy_from_slice(&self.ready.split_to(count));
        self.at += count as u64;
        Ok(count)
    }
}
