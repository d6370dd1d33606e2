//! The `.marks` file: rows of older segments that this segment's seal superseded, 20 bytes each, sorted.
//!
//! Its little-endian content is `magic, count u32, (segment u64, row u32, end u64)*, CRC of all that u32`. The manifest
//! holds the length and the same checksum.

use std::path::Path;

use assay_storage_disk::DiskFile;
use assay_storage_model::Xact;
use assay_storage_model::segment::{FileKind, FileMeta};

use crate::error::SegmentError;
use crate::row::Mark;

const MAGIC: &[u8; 8] = b"ASSAYMRK";
const HEAD_BYTES: usize = 12;
const MARK_BYTES: usize = 20;
const CRC_BYTES: usize = 4;
/// Upper bound of the marks of one segment, which exceeds those of any seal.
const MARKS_MAX: usize = 1 << 27;

/// Sorts the marks and returns the bytes of their file.
pub(crate) fn encode(marks: &[Mark]) -> Result<(Vec<u8>, FileMeta), SegmentError> {
    if marks.len() > MARKS_MAX {
        return Err(SegmentError::TooLarge { what: "marks", limit: MARKS_MAX as u64 });
    }
    let mut sorted = marks.to_vec();
    sorted.sort_unstable();
    let mut bytes = Vec::with_capacity(HEAD_BYTES + sorted.len() * MARK_BYTES + CRC_BYTES);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&(sorted.len() as u32).to_le_bytes());
    for mark in &sorted {
        bytes.extend_from_slice(&mark.segment.to_le_bytes());
        bytes.extend_from_slice(&mark.row.to_le_bytes());
        bytes.extend_from_slice(&mark.end.0.to_le_bytes());
    }
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    let meta = FileMeta { kind: FileKind::Marks, length: bytes.len() as u64, crc };
    Ok((bytes, meta))
}

/// Reads all marks of a file whose length was compared with `meta` before.
pub(crate) fn read(file: &dyn DiskFile, path: &Path, meta: &FileMeta) -> Result<Vec<Mark>, SegmentError> {
    let bad = |what: &str| SegmentError::damaged(path, 0, what);
    if meta.length > (HEAD_BYTES + MARKS_MAX * MARK_BYTES + CRC_BYTES) as u64 {
        return Err(bad("it is longer than any file of marks"));
    }
    let mut bytes = vec![0; meta.length as usize];
    file.read_at(0, &mut bytes).map_err(SegmentError::io(path))?;
    let (body, crc) = bytes.split_last_chunk::<CRC_BYTES>().ok_or_else(|| bad("it is truncated"))?;
    if crc32c::crc32c(body) != meta.crc || u32::from_le_bytes(*crc) != meta.crc {
        return Err(bad("it does not match its checksum"));
    }
    decode(body).ok_or_else(|| bad("it is invalid"))
}

fn decode(body: &[u8]) -> Option<Vec<Mark>> {
    let (head, marks) = body.split_first_chunk::<HEAD_BYTES>()?;
    let (marks, rest) = marks.as_chunks::<MARK_BYTES>();
    let count = u32::from_le_bytes(head[8..].try_into().ok()?);
    if &head[..8] != MAGIC || !rest.is_empty() || marks.len() != count as usize {
        return None;
    }
    let mark = |bytes: &[u8; MARK_BYTES]| Mark {
        segment: u64::from_le_bytes(bytes[..8].try_into().expect("8")),
        row: u32::from_le_bytes(bytes[8..12].try_into().expect("4")),
        end: Xact(u64::from_le_bytes(bytes[12..].try_into().expect("8"))),
    };
    Some(marks.iter().map(mark).collect())
}
