//! Reading of stored bundles into a sink, within the limits.

mod entry_path;
mod plan;
mod text;
mod tree;
mod zips;

use std::io::{self, Read};

pub use text::NODE_BUNDLE_FILE;

use crate::error::BundleRefusal;
use crate::kind::BundleKind;
use crate::limits::BundleLimits;

/// Bytes that are decompressed at a time.
const CHUNK_BYTES: usize = 64 << 10;
/// Unit in which file systems usually allocate space.
pub(crate) const BLOCK_BYTES: u64 = 4 << 10;

/// Size of an unpacked bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnpackedSize {
    pub files: u64,
    pub directories: u64,
    /// Sum of the lengths of the files.
    pub bytes: u64,
    /// Space on the disk, with a block for each directory and whole blocks for each file.
    pub disk_bytes: u64,
}

/// Destination of the directories and files of a bundle. Paths are relative, checked and unique.
pub(crate) trait BundleSink {
    type Error: From<BundleRefusal>;

    /// Creates a directory. Its parent was created before.
    fn directory(&mut self, path: &str) -> Result<(), Self::Error>;
    /// Creates a file, to which the following writes belong. Its directory was created before.
    fn begin_file(&mut self, path: &str, is_executable: bool) -> Result<(), Self::Error>;
    fn write(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;
    /// Completes the current file.
    fn end_file(&mut self) -> Result<(), Self::Error>;
}

/// Sink of a check, which keeps nothing.
#[derive(Debug)]
struct DiscardingSink;

/// Sink with the limit of unpacked bytes, which counts what it receives.
#[derive(Debug)]
struct MeteredSink<'s, S> {
    sink: &'s mut S,
    bytes_max: u64,
    size: UnpackedSize,
    chunk: Vec<u8>,
}

/// Checks all of a bundle without writing it, and returns the size that it has on the disk.
pub fn check_bundle(kind: BundleKind, stored: &[u8], limits: &BundleLimits) -> Result<UnpackedSize, BundleRefusal> {
    read_bundle(kind, stored, limits, &mut DiscardingSink)
}

/// Unpacks a bundle into a sink. After an error the sink has a part of the bundle.
pub(crate) fn read_bundle<S: BundleSink>(
    kind: BundleKind,
    stored: &[u8],
    limits: &BundleLimits,
    sink: &mut S,
) -> Result<UnpackedSize, S::Error> {
    let bytes = stored.len() as u64;
    if bytes == 0 {
        return Err(BundleRefusal::Empty.into());
    }
    if bytes > limits.stored_bytes {
        return Err(BundleRefusal::StoredBytes { bytes, max: limits.stored_bytes }.into());
    }
    let mut sink = MeteredSink::new(sink, limits.unpacked_bytes);
    match kind {
        BundleKind::Node => text::read_text(stored, &mut sink)?,
        BundleKind::Python => zips::read_zip(stored, limits, &mut sink)?,
    }
    Ok(sink.size)
}

impl UnpackedSize {
    pub(crate) fn add_file(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
        self.disk_bytes += bytes.next_multiple_of(BLOCK_BYTES);
    }

    pub(crate) fn add_directory(&mut self) {
        self.directories += 1;
        self.disk_bytes += BLOCK_BYTES;
    }
}

impl<'s, S: BundleSink> MeteredSink<'s, S> {
    fn new(sink: &'s mut S, bytes_max: u64) -> MeteredSink<'s, S> {
        MeteredSink { sink, bytes_max, size: UnpackedSize::default(), chunk: vec![0; CHUNK_BYTES] }
    }

    fn directory(&mut self, path: &str) -> Result<(), S::Error> {
        self.sink.directory(path)?;
        self.size.add_directory();
        Ok(())
    }

    /// Writes a file, and shows each chunk to `inspect` before the sink gets it. Returns the length of the file.
    fn file(
        &mut self,
        path: &str,
        is_executable: bool,
        source: &mut impl Read,
        damage: impl Fn(io::Error) -> BundleRefusal,
        mut inspect: impl FnMut(&[u8]) -> Result<(), BundleRefusal>,
    ) -> Result<u64, S::Error> {
        self.sink.begin_file(path, is_executable)?;
        let mut bytes = 0;
        loop {
            let length = source.read(&mut self.chunk).map_err(&damage)?;
            if length == 0 {
                break;
            }
            bytes += length as u64;
            // The limit holds before a chunk is written, so that a bomb takes no more space than it allows.
            if self.size.bytes + bytes > self.bytes_max {
                return Err(BundleRefusal::UnpackedBytes { max: self.bytes_max }.into());
            }
            inspect(&self.chunk[..length])?;
            self.sink.write(&self.chunk[..length])?;
        }
        self.sink.end_file()?;
        self.size.add_file(bytes);
        Ok(bytes)
    }
}

impl BundleSink for DiscardingSink {
    type Error = BundleRefusal;

    fn directory(&mut self, _path: &str) -> Result<(), BundleRefusal> {
        Ok(())
    }

    fn begin_file(&mut self, _path: &str, _is_executable: bool) -> Result<(), BundleRefusal> {
        Ok(())
    }

    fn write(&mut self, _bytes: &[u8]) -> Result<(), BundleRefusal> {
        Ok(())
    }

    fn end_file(&mut self) -> Result<(), BundleRefusal> {
        Ok(())
    }
}
