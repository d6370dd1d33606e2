//! Bundles for tests: zips of the library's writer, and zips written by hand that it refuses to write.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};

use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, Crc};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::error::BundleRefusal;
use crate::unpack::BundleSink;

pub(crate) const STORED: u16 = 0;
pub(crate) const DEFLATED: u16 = 8;
pub(crate) const UNIX: u8 = 3;

/// Entry of a zip with any values in its headers.
#[derive(Clone, Debug)]
pub(crate) struct RawEntry {
    pub name: Vec<u8>,
    pub flags: u16,
    pub method: u16,
    pub crc: u32,
    pub claimed: u32,
    /// Content as the zip has it.
    pub packed: Vec<u8>,
    pub system: u8,
    pub mode: u32,
    /// Offset of the local header of another entry, instead of an own one.
    pub shares: Option<u32>,
}

/// Sink in memory, with a count of the bytes of incomplete files too.
#[derive(Debug, Default)]
pub(crate) struct MemorySink {
    pub directories: Vec<String>,
    pub files: BTreeMap<String, (Vec<u8>, bool)>,
    pub written: u64,
    current: Option<String>,
}

impl RawEntry {
    pub fn stored(name: &str, content: &[u8]) -> RawEntry {
        let mut crc = Crc::new();
        crc.update(content);
        RawEntry {
            name: name.into(),
            flags: 0,
            method: STORED,
            crc: crc.sum(),
            claimed: u32::try_from(content.len()).unwrap(),
            packed: content.to_vec(),
            system: UNIX,
            mode: 0o100_644,
            shares: None,
        }
    }

    pub fn deflated(name: &str, content: &[u8]) -> RawEntry {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content).unwrap();
        RawEntry { method: DEFLATED, packed: encoder.finish().unwrap(), ..RawEntry::stored(name, content) }
    }

    /// Fields that both headers have, from the flags to the length of the extra field.
    fn common(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        fields.extend(self.flags.to_le_bytes());
        fields.extend(self.method.to_le_bytes());
        // 1980-01-01 00:00
        fields.extend([0, 0, 0x21, 0]);
        fields.extend(self.crc.to_le_bytes());
        fields.extend(u32::try_from(self.packed.len()).unwrap().to_le_bytes());
        fields.extend(self.claimed.to_le_bytes());
        fields.extend(u16::try_from(self.name.len()).unwrap().to_le_bytes());
        fields.extend([0, 0]);
        fields
    }
}

/// Writes a zip by hand.
pub(crate) fn raw_zip(entries: &[RawEntry]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let start = entry.shares.unwrap_or(u32::try_from(bytes.len()).unwrap());
        if entry.shares.is_none() {
            bytes.extend(b"PK\x03\x04\x14\x00");
            bytes.extend(entry.common());
            bytes.extend(&entry.name);
            bytes.extend(&entry.packed);
        }
        directory.extend(b"PK\x01\x02\x14");
        directory.extend([entry.system, 0x14, 0]);
        directory.extend(entry.common());
        // comment, disk, internal attributes
        directory.extend([0; 6]);
        directory.extend((entry.mode << 16).to_le_bytes());
        directory.extend(start.to_le_bytes());
        directory.extend(&entry.name);
    }
    let start = u32::try_from(bytes.len()).unwrap();
    let count = u16::try_from(entries.len()).unwrap().to_le_bytes();
    bytes.extend(&directory);
    bytes.extend(b"PK\x05\x06\x00\x00\x00\x00");
    bytes.extend(count);
    bytes.extend(count);
    bytes.extend(u32::try_from(directory.len()).unwrap().to_le_bytes());
    bytes.extend(start.to_le_bytes());
    bytes.extend([0, 0]);
    bytes
}

/// Writes a zip of files with the library.
pub(crate) fn zip_of<'f>(files: impl IntoIterator<Item = (&'f str, &'f [u8])>) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(name, SimpleFileOptions::default().compression_method(CompressionMethod::Deflated)).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

impl MemorySink {
    fn content(&mut self) -> &mut (Vec<u8>, bool) {
        let current = self.current.as_ref().expect("a file was begun");
        self.files.get_mut(current).expect("the file exists")
    }

    fn assert_parent(&self, path: &str) {
        let parent = path.rsplit_once('/').map(|(parent, _)| parent.to_owned());
        assert!(parent.is_none_or(|parent| self.directories.contains(&parent)), "{path} before its directory");
    }
}

impl BundleSink for MemorySink {
    type Error = BundleRefusal;

    fn directory(&mut self, path: &str) -> Result<(), BundleRefusal> {
        self.assert_parent(path);
        self.directories.push(path.to_owned());
        Ok(())
    }

    fn begin_file(&mut self, path: &str, is_executable: bool) -> Result<(), BundleRefusal> {
        self.assert_parent(path);
        assert!(self.current.is_none());
        assert!(self.files.insert(path.to_owned(), (Vec::new(), is_executable)).is_none(), "{path} twice");
        self.current = Some(path.to_owned());
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), BundleRefusal> {
        self.written += bytes.len() as u64;
        self.content().0.extend_from_slice(bytes);
        Ok(())
    }

    fn end_file(&mut self) -> Result<(), BundleRefusal> {
        assert!(self.current.take().is_some());
        Ok(())
    }
}
