//! Reader of raft-engine's files that does not use the engine, and that finds whole batches and their content.
//!
//! It is read-only. A file is a header (magic, version, alignment) and batches. A batch is `length u56, compression u8,
//! footer's offset u64, records, CRC32 u32, footer, CRC32 u32`. The footer lists items: lengths of records, values and
//! commands. Its checksum is mixed with the file's number, so that a batch copied from another file is invalid. Batches
//! are written uncompressed, so that a record can be verified in place. Every length is checked before it is used.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use assay_storage_model::GroupId;
use raft_engine::env::{FileSystem, Handle, Permission};

use crate::files::{LogFile, Queue};
use crate::frame::{self, Mark};
use crate::group_metadata::OWN_GROUP;

const MAGIC: &[u8] = b"RAFT-LOG-FILE-HEADER-9986AB3E47F320B394C8E84916EB0ED5";
const HEADER_V1_BYTES: usize = MAGIC.len() + 8;
const HEADER_V2_BYTES: usize = HEADER_V1_BYTES + 8;
const BATCH_HEADER_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 4;
/// Number of bytes read at once.
const READ_AHEAD_BYTES: usize = 1 << 20;
static ZEROS: [u8; 4096] = [0; 4096];

/// Item of a batch. Items keep their order.
#[derive(Clone, Debug)]
pub(crate) enum ScanItem {
    Records {
        group: u64,
        marks: Vec<Mark>,
    },
    Put {
        group: u64,
        key: Vec<u8>,
        value: Vec<u8>,
    },
    Delete {
        group: u64,
        key: Vec<u8>,
    },
    Clean {
        group: u64,
    },
    /// Removal of the records below this index, in this crate's counting.
    Compact {
        group: u64,
        below: u64,
    },
}

/// End of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Whole,
    /// Zeros only: space that the engine had reserved when it was killed.
    Unused {
        at: u64,
    },
    /// First batch that is not whole.
    Damaged {
        at: u64,
        what: String,
    },
}

/// File that was read to its end or to the first damage.
#[derive(Clone, Debug)]
pub(crate) struct Scanned {
    pub queue: Queue,
    pub path: PathBuf,
    pub bytes: u64,
    pub batches: u64,
    pub records: u64,
    pub end: End,
}

/// Reads a file and passes each whole batch to `take`.
pub(crate) fn scan<F: FileSystem>(
    files: &F,
    file: &LogFile,
    take: &mut dyn FnMut(Vec<ScanItem>),
) -> io::Result<Scanned> {
    let handle = Arc::new(files.open(&file.path, Permission::ReadOnly)?);
    let length = handle.file_size()?;
    let mut window = Window { reader: files.new_reader(handle)?, length, start: 0, bytes: Vec::new() };
    let mut scanned = Scanned {
        queue: file.queue,
        path: file.path.clone(),
        bytes: length as u64,
        batches: 0,
        records: 0,
        end: End::Whole,
    };
    let (mut at, signature) = match file_header(&mut window, file.sequence)? {
        Ok(header) => header,
        Err(what) => {
            scanned.end = End::Damaged { at: 0, what };
            return Ok(scanned);
        }
    };
    while at < length {
        match next_batch(&mut window, at, signature)? {
            Ok((items, bytes)) => {
                scanned.batches += 1;
                scanned.records += items.iter().map(count).sum::<u64>();
                take(items);
                at += bytes;
            }
            Err(what) => {
                let unused = window.only_zeros_from(at)?;
                let at = at as u64;
                scanned.end = if unused { End::Unused { at } } else { End::Damaged { at, what } };
                break;
            }
        }
    }
    Ok(scanned)
}

fn count(item: &ScanItem) -> u64 {
    match item {
        ScanItem::Records { marks, .. } => marks.len() as u64,
        _ => 0,
    }
}

/// Returns the offset of the first batch, and the value that is mixed into this file's footer checksums.
fn file_header<R: Read + Seek>(window: &mut Window<R>, sequence: u64) -> io::Result<Result<(usize, u32), String>> {
    if window.length < HEADER_V1_BYTES {
        return Ok(Err(format!("the file has {} bytes, less than its header", window.length)));
    }
    let bytes = window.at(0, HEADER_V2_BYTES.min(window.length))?;
    if !bytes.starts_with(MAGIC) {
        return Ok(Err("the file does not begin like a log file".to_string()));
    }
    let number =
        |at: usize| bytes.get(at..at + 8).map(|bytes| bytes.iter().fold(0u64, |n, byte| n << 8 | u64::from(*byte)));
    Ok(match (number(MAGIC.len()), number(HEADER_V1_BYTES)) {
        (Some(1), _) => Ok((HEADER_V1_BYTES, 0)),
        (Some(2), Some(0)) => Ok((HEADER_V2_BYTES, sequence as u32)),
        (version, alignment) => Err(format!("version {version:?} and alignment {alignment:?} are not supported")),
    })
}

/// Returns the batch at an offset with its length, or a description of its damage.
fn next_batch<R: Read + Seek>(
    window: &mut Window<R>,
    at: usize,
    signature: u32,
) -> io::Result<Result<(Vec<ScanItem>, usize), String>> {
    let left = window.length - at;
    if left < BATCH_HEADER_BYTES {
        return Ok(Err(format!("{left} bytes are left, less than a batch's header")));
    }
    let header = window.at(at, BATCH_HEADER_BYTES)?;
    let number = |bytes: &[u8]| bytes.iter().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
    let (length, compression, footer) = (number(&header[..7]), header[7], number(&header[8..]));
    if compression != 0 {
        return Ok(Err(format!("compression {compression} is not supported")));
    }
    if length > left as u64 || footer < BATCH_HEADER_BYTES as u64 || footer > length {
        return Ok(Err(format!("a batch of {length} bytes with its footer at {footer}, {left} bytes are left")));
    }
    let (length, footer) = (length as usize, footer as usize);
    let batch = window.at(at, length)?;
    Ok(decode_batch(&batch[BATCH_HEADER_BYTES..footer], &batch[footer..], signature).map(|items| (items, length)))
}

fn decode_batch(records: &[u8], footer: &[u8], signature: u32) -> Result<Vec<ScanItem>, String> {
    let footer = checked(footer, signature, "footer")?;
    let records = if records.is_empty() { records } else { checked(records, 0, "records")? };
    let mut cursor = Cursor(footer);
    let mut place = 0;
    let count = cursor.number()?;
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(decode_item(&mut cursor, records, &mut place)?);
    }
    if !cursor.0.is_empty() || place != records.len() {
        return Err("the footer does not account for every byte".to_string());
    }
    Ok(items)
}

fn checked<'a>(bytes: &'a [u8], signature: u32, what: &str) -> Result<&'a [u8], String> {
    match bytes.split_last_chunk::<CHECKSUM_BYTES>() {
        Some((content, checksum)) if crc32fast::hash(content) == u32::from_le_bytes(*checksum) ^ signature => {
            Ok(content)
        }
        _ => Err(format!("the checksum of a batch's {what} does not match")),
    }
}

fn decode_item(cursor: &mut Cursor<'_>, records: &[u8], place: &mut usize) -> Result<ScanItem, String> {
    let group = cursor.number()?;
    match cursor.byte()? {
        1 => Ok(ScanItem::Records { group, marks: decode_records(cursor, group, records, place)? }),
        2 => match cursor.byte()? {
            1 => Ok(ScanItem::Clean { group }),
            2 => Ok(ScanItem::Compact { group, below: cursor.number()?.saturating_sub(1) }),
            command => Err(format!("command {command} is unknown")),
        },
        3 => {
            let operation = cursor.byte()?;
            let key = cursor.bytes()?.to_vec();
            match operation {
                1 => Ok(ScanItem::Put { group, key, value: cursor.bytes()?.to_vec() }),
                2 => Ok(ScanItem::Delete { group, key }),
                _ => Err(format!("operation {operation} is unknown")),
            }
        }
        kind => Err(format!("item kind {kind} is unknown")),
    }
}

fn decode_records(cursor: &mut Cursor<'_>, group: u64, records: &[u8], place: &mut usize) -> Result<Vec<Mark>, String> {
    let count = cursor.number()?;
    let first = if count > 0 { cursor.number()? } else { 1 };
    let mut marks = Vec::new();
    for offset in 0..count {
        let end = usize::try_from(cursor.number()?).map_err(|_| "a record ends beyond any memory")?;
        let bytes = records.get(*place..end).ok_or("a record lies outside its batch")?;
        let index = first.checked_add(offset).and_then(|index| index.checked_sub(1)).ok_or("an index overflows")?;
        if group == OWN_GROUP {
            return Err("records in a group that has none".to_string());
        }
        marks.push(frame::verify_bytes(bytes, GroupId(group), index)?);
        *place = end;
    }
    Ok(marks)
}

/// Cursor over the unread rest of a footer.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn byte(&mut self) -> Result<u8, String> {
        let (first, rest) = self.0.split_first().ok_or("a footer ends early")?;
        self.0 = rest;
        Ok(*first)
    }

    /// Reads a number of seven bits per byte, lowest first.
    fn number(&mut self) -> Result<u64, String> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("a number in a footer is too long".to_string())
    }

    fn bytes(&mut self) -> Result<&'a [u8], String> {
        let length = self.number()?;
        let length = usize::try_from(length).map_err(|_| "a length in a footer is too long")?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or("a value in a footer ends early")?;
        self.0 = rest;
        Ok(bytes)
    }
}

/// Part of a file in memory: at least the bytes requested last, and some that follow.
struct Window<R> {
    reader: R,
    length: usize,
    start: usize,
    bytes: Vec<u8>,
}

impl<R: Read + Seek> Window<R> {
    /// Returns `length` bytes at `at`. The caller has checked that the file has them.
    fn at(&mut self, at: usize, length: usize) -> io::Result<&[u8]> {
        let held = self.start..self.start + self.bytes.len();
        if at < held.start || at + length > held.end {
            let want = length.max(READ_AHEAD_BYTES).min(self.length - at);
            self.reader.seek(SeekFrom::Start(at as u64))?;
            self.bytes.resize(want, 0);
            self.start = at;
            self.reader.read_exact(&mut self.bytes)?;
        }
        let from = at - self.start;
        Ok(&self.bytes[from..from + length])
    }

    fn only_zeros_from(&mut self, mut at: usize) -> io::Result<bool> {
        while at < self.length {
            let step = READ_AHEAD_BYTES.min(self.length - at);
            if self.at(at, step)?.chunks(ZEROS.len()).any(|bytes| *bytes != ZEROS[..bytes.len()]) {
                return Ok(false);
            }
            at += step;
        }
        Ok(true)
    }
}
