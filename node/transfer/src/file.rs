//! Format of the file, without other input or output. Only a complete and unchanged file passes the reader.
//!
//! ```text
//! gzip member   header line, records, objects with what was written to them ...   compressed
//! gzip member   footer line: counts, and the SHA-256 of all bytes before it       stored, in a single form
//! ```
//! Any program that reads gzip shows all lines. The checksum covers the bytes of the file instead of its lines. The
//! footer has a single form, so no byte of the file can change unnoticed.

use std::io::{self, BufRead, Read, Write};

use assay_node_auth::Sha256;
use assay_storage_model::{ObjectKind, OrgId};
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use flate2::{Compression, Crc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::{TransferError, damaged};
use crate::export::records::RecordLine;

/// Version of the format that this program writes.
pub const FORMAT: u32 = 1;
/// Upper bound of a line in bytes. An operation has a row of at most 10 MiB, and its ids need some more as JSON.
const LINE_BYTES_MAX: usize = 16 << 20;
/// Upper bound of the footer in bytes.
const FOOTER_BYTES_MAX: usize = 1 << 10;
/// First bytes of a gzip member: deflate without name, time and system.
const GZIP_HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// Level of fast compression, because reading rows takes most of the time.
const LEVEL: Compression = Compression::new(3);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub format: u32,
    /// Version of the program that wrote the file.
    pub program: String,
    pub organization: OrgId,
    pub name: String,
    /// Time of the export.
    pub exported: String,
}

/// Object to which the following operations belong, at a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    pub kind: ObjectKind,
    pub id: Uuid,
    pub version: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footer {
    pub records: u64,
    pub objects: u64,
    /// Number of operations on rows.
    pub operations: u64,
    /// Checksum of all bytes of the file before the member of this line.
    pub sha256: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    Record(Box<RecordLine>),
    Object(Object),
    /// Text of one operation.
    Operation(Vec<u8>),
}

/// Lines other than operations. The documents of operations are not parsed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TransferLine {
    Header(Header),
    Record(Box<RecordLine>),
    Object(Object),
    Footer(Footer),
}

const OPERATION: &[u8] = br#"{"operation":"#;

#[derive(Debug)]
pub struct Writer<W: Write> {
    gzip: GzEncoder<Summing<W>>,
    footer: Footer,
}

#[derive(Debug)]
struct Summing<W> {
    inner: W,
    sum: Sha256,
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.sum.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W: Write> Writer<W> {
    pub fn start(out: W, header: &Header) -> io::Result<Writer<W>> {
        let summing = Summing { inner: out, sum: Sha256::default() };
        let gzip = flate2::GzBuilder::new().mtime(0).operating_system(GZIP_HEAD[9]).write(summing, LEVEL);
        let mut writer = Writer { gzip, footer: Footer::default() };
        writer.say(&TransferLine::Header(header.clone()))?;
        Ok(writer)
    }

    pub fn record(&mut self, record: RecordLine) -> io::Result<()> {
        self.footer.records += 1;
        self.say(&TransferLine::Record(Box::new(record)))
    }

    pub fn object(&mut self, object: Object) -> io::Result<()> {
        self.footer.objects += 1;
        self.say(&TransferLine::Object(object))
    }

    /// Writes an operation of the preceding object.
    pub fn operation(&mut self, text: &[u8]) -> io::Result<()> {
        self.footer.operations += 1;
        self.gzip.write_all(OPERATION)?;
        self.gzip.write_all(text)?;
        self.gzip.write_all(b"}\n")
    }

    pub fn operations(&self) -> u64 {
        self.footer.operations
    }

    /// Writes the footer and returns it.
    pub fn finish(self) -> io::Result<Footer> {
        let Writer { gzip, mut footer } = self;
        let Summing { mut inner, sum } = gzip.finish()?;
        footer.sha256 = sum.hex();
        inner.write_all(&footer_bytes(&footer)?)?;
        inner.flush()?;
        Ok(footer)
    }

    fn say(&mut self, said: &TransferLine) -> io::Result<()> {
        serde_json::to_writer(&mut self.gzip, said)?;
        self.gzip.write_all(b"\n")
    }
}

/// Returns the footer's gzip member, built manually so that its form does not depend on the compression library.
fn footer_bytes(footer: &Footer) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(&TransferLine::Footer(footer.clone()))?;
    text.push(b'\n');
    let length = u16::try_from(text.len()).map_err(|_| io::Error::other("the footer is too long"))?;
    let mut crc = Crc::new();
    crc.update(&text);
    let mut bytes = GZIP_HEAD.to_vec();
    bytes.push(1); // the last block, stored
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&(!length).to_le_bytes());
    bytes.extend_from_slice(&text);
    bytes.extend_from_slice(&crc.sum().to_le_bytes());
    bytes.extend_from_slice(&u32::from(length).to_le_bytes());
    Ok(bytes)
}

/// Reader of a file from its start. Its lines are only known to be complete after [`Reader::finish`].
#[derive(Debug)]
pub struct Reader<R: BufRead> {
    lines: io::BufReader<GzDecoder<Summed<R>>>,
    pub header: Header,
    counted: Footer,
    line: Vec<u8>,
}

/// Adapter that computes the checksum of consumed bytes, but not of bytes that were only buffered.
#[derive(Debug)]
struct Summed<R> {
    inner: R,
    sum: Sha256,
    /// Bytes that were buffered last.
    seen: Vec<u8>,
}

impl<R: BufRead> Read for Summed<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.sum.update(&into[..read]);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Summed<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let buffer = self.inner.fill_buf()?;
        self.seen.clear();
        self.seen.extend_from_slice(buffer);
        Ok(&self.seen)
    }

    fn consume(&mut self, count: usize) {
        self.sum.update(&self.seen[..count]);
        self.seen.drain(..count);
        self.inner.consume(count);
    }
}

impl<R: BufRead> Reader<R> {
    pub fn start(file: R) -> Result<Reader<R>, TransferError> {
        let summed = Summed { inner: file, sum: Sha256::default(), seen: Vec::new() };
        let lines = io::BufReader::new(GzDecoder::new(summed));
        let header = Header {
            format: FORMAT,
            program: String::new(),
            organization: OrgId(Uuid::nil()),
            name: String::new(),
            exported: String::new(),
        };
        let mut reader = Reader { lines, header, counted: Footer::default(), line: Vec::new() };
        if !reader.fill()? {
            return Err(damaged("it is empty"));
        }
        // The header of another format may have other members, so only its number is read first.
        let format = |line: &[u8]| {
            let line: serde_json::Value = serde_json::from_slice(line).ok()?;
            u32::try_from(line.get("header")?.get("format")?.as_u64()?).ok()
        };
        match format(&reader.line) {
            Some(FORMAT) => {}
            Some(found) => return Err(TransferError::Format { found, known: FORMAT }),
            None => return Err(damaged("it has no header")),
        }
        match serde_json::from_slice(&reader.line) {
            Ok(TransferLine::Header(header)) => reader.header = header,
            _ => return Err(damaged("its header cannot be decoded")),
        }
        Ok(reader)
    }

    /// Returns the next line, or `None` after the last one. [`finish`](Self::finish) checks whether that was the end of
    /// the file.
    pub fn next_line(&mut self) -> Result<Option<Line>, TransferError> {
        if !self.fill()? {
            return Ok(None);
        }
        if let Some(rest) = self.line.strip_prefix(OPERATION) {
            let text = rest.strip_suffix(b"}").ok_or_else(|| damaged("an operation is incomplete"))?;
            self.counted.operations += 1;
            return Ok(Some(Line::Operation(text.to_vec())));
        }
        match serde_json::from_slice(&self.line) {
            Ok(TransferLine::Record(record)) => {
                self.counted.records += 1;
                Ok(Some(Line::Record(record)))
            }
            Ok(TransferLine::Object(object)) => {
                self.counted.objects += 1;
                Ok(Some(Line::Object(object)))
            }
            Ok(TransferLine::Header(_) | TransferLine::Footer(_)) => {
                Err(damaged("it has a header or a footer in the middle"))
            }
            Err(why) => Err(damaged(format!("a line cannot be decoded: {why}"))),
        }
    }

    /// Checks after the last line whether the file is unchanged.
    pub fn finish(self) -> Result<Footer, TransferError> {
        let Reader { lines, mut counted, .. } = self;
        let Summed { mut inner, sum, .. } = lines.into_inner().into_inner();
        counted.sha256 = sum.hex();
        let mut rest = Vec::new();
        inner.by_ref().take(FOOTER_BYTES_MAX as u64 + 1).read_to_end(&mut rest)?;
        if rest != footer_bytes(&counted)? {
            return Err(damaged("its footer does not match its content"));
        }
        Ok(counted)
    }

    /// Reads the next line without its end. Returns `false` if there is none.
    fn fill(&mut self) -> Result<bool, TransferError> {
        self.line.clear();
        let limit = LINE_BYTES_MAX as u64 + 1;
        self.lines.by_ref().take(limit).read_until(b'\n', &mut self.line).map_err(unreadable)?;
        if self.line.is_empty() {
            return Ok(false);
        }
        match self.line.pop() {
            Some(b'\n') => Ok(true),
            _ if self.line.len() >= LINE_BYTES_MAX => Err(damaged("a line is too long")),
            _ => Err(damaged("its last line is truncated")),
        }
    }
}

/// Converts an error of a read. A decompression error means a damaged file, and other errors come from the disk.
fn unreadable(error: io::Error) -> TransferError {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    match error.kind() {
        InvalidData | InvalidInput | UnexpectedEof => damaged(error),
        _ => TransferError::Io(error),
    }
}

#[cfg(test)]
mod tests;
