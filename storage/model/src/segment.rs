//! Description of a segment in the manifest: its content, and the lengths and checksums of its files.
//!
//! The bytes are frozen: `version u8, body` (bincode, variable-length integers, little endian). A new field is a new
//! version. A segment's *file* format has a number of its own, so that a program can read the manifest of a shard with
//! newer segments and report them.
//!
//! | version | date | change |
//! |---|---|---|
//! | 1 | 2026-11-21 | first |

use bincode::{Decode, Encode};
use thiserror::Error;
use uuid::Uuid;

use crate::ids::{ObjectKey, ObjectKind, OrgId};
use crate::xact::{PaginationKey, Xact};

/// The version of the description below.
pub const SEGMENT_META_VERSION: u8 = 1;
/// The format of segments whose documents are whole: what seals write, and merges of these.
pub const WHOLE_FORMAT: u16 = 1;
/// The first format of segments whose documents are columns.
pub const WIDE_COLUMNAR_FORMAT: u16 = 2;
/// The format of segments whose documents are columns and whose index of ids is packed.
pub const COLUMNAR_FORMAT: u16 = 3;
/// The newest format that this program reads.
pub const SEGMENT_FORMAT: u16 = 3;
/// One description's bytes: it must fit a value of the manifest.
pub const SEGMENT_META_BYTES_MAX: usize = 4096;
/// Files of one segment; there are three kinds now.
pub const SEGMENT_FILES_MAX: usize = 16;

/// One immutable segment. `rows` may be 0 (a merge that dropped everything); keys and objects mean nothing then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentMeta {
    /// Names its files; never used twice in a shard.
    pub seq: u64,
    pub format: u16,
    /// 0 for a seal's, one more for each merge it went through.
    pub tier: u8,
    pub rows: u32,
    /// Bytes of documents, patches, rules and audit notes before compression.
    pub raw_bytes: u64,
    pub first_object: ObjectKey,
    pub last_object: ObjectKey,
    pub key_min: PaginationKey,
    pub key_max: PaginationKey,
    pub xact_min: Xact,
    pub xact_max: Xact,
    pub files: Vec<FileMeta>,
}

/// One file of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMeta {
    pub kind: FileKind,
    pub length: u64,
    /// CRC32C. Rows: of the table of its blocks' checksums. Ids, words: of the trailer. Marks: of the whole file.
    pub crc: u32,
}

/// Kind of a segment's file. The numbers are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FileKind {
    Rows = 1,
    Ids = 2,
    Marks = 3,
    /// Word index; only in columnar segments.
    Words = 4,
}

impl FileKind {
    pub const ALL: [FileKind; 4] = [FileKind::Rows, FileKind::Ids, FileKind::Marks, FileKind::Words];

    pub fn suffix(self) -> &'static str {
        match self {
            FileKind::Rows => "parquet",
            FileKind::Ids => "ids",
            FileKind::Marks => "marks",
            FileKind::Words => "words",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadSegmentMeta {
    #[error("a segment description has version {0}, which is newer than this program: upgrade the program")]
    Newer(u8),
    #[error("a segment description cannot be decoded: {0}")]
    Body(String),
}

#[derive(Encode, Decode)]
struct BodyV1 {
    seq: u64,
    format: u16,
    tier: u8,
    rows: u32,
    raw_bytes: u64,
    first_object: [u8; ObjectKey::BYTES],
    last_object: [u8; ObjectKey::BYTES],
    key_min: u64,
    key_max: u64,
    xact_min: u64,
    xact_max: u64,
    files: Vec<(u8, u64, u32)>,
}

impl SegmentMeta {
    /// The object that a segment without rows names, for want of one.
    pub const NO_OBJECT: ObjectKey =
        ObjectKey { org: OrgId(Uuid::nil()), kind: ObjectKind::ProjectLogs, id: Uuid::nil(), lane: 0 };

    pub fn file(&self, kind: FileKind) -> Option<&FileMeta> {
        self.files.iter().find(|file| file.kind == kind)
    }

    /// Bytes on disk.
    pub fn file_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.length).sum()
    }

    /// Returns whether it may hold rows of this object; exact only at both ends.
    pub fn may_hold(&self, object: ObjectKey) -> bool {
        self.rows > 0 && self.first_object <= object && object <= self.last_object
    }

    pub fn encode(&self) -> Vec<u8> {
        assert!(self.files.len() <= SEGMENT_FILES_MAX, "a segment has at most {SEGMENT_FILES_MAX} files");
        let body = BodyV1 {
            seq: self.seq,
            format: self.format,
            tier: self.tier,
            rows: self.rows,
            raw_bytes: self.raw_bytes,
            first_object: self.first_object.to_bytes(),
            last_object: self.last_object.to_bytes(),
            key_min: self.key_min.0,
            key_max: self.key_max.0,
            xact_min: self.xact_min.0,
            xact_max: self.xact_max.0,
            files: self.files.iter().map(|file| (file.kind as u8, file.length, file.crc)).collect(),
        };
        let mut bytes = vec![SEGMENT_META_VERSION];
        let config = bincode::config::standard();
        bytes.extend(bincode::encode_to_vec(body, config).expect("numbers and arrays always encode"));
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<SegmentMeta, BadSegmentMeta> {
        let refuse = |what: &str| BadSegmentMeta::Body(what.to_owned());
        let (&version, body) = bytes.split_first().ok_or_else(|| refuse("it is empty"))?;
        if version > SEGMENT_META_VERSION {
            return Err(BadSegmentMeta::Newer(version));
        }
        if version == 0 || bytes.len() > SEGMENT_META_BYTES_MAX {
            return Err(refuse("its version is 0 or it is too long"));
        }
        let config = bincode::config::standard().with_limit::<SEGMENT_META_BYTES_MAX>();
        let (body, used): (BodyV1, usize) =
            bincode::decode_from_slice(body, config).map_err(|error| BadSegmentMeta::Body(error.to_string()))?;
        if used + 1 != bytes.len() {
            return Err(refuse("bytes after its end"));
        }
        body.into_meta().ok_or_else(|| refuse("an unknown kind of object or file, or too many files"))
    }
}

impl BodyV1 {
    fn into_meta(self) -> Option<SegmentMeta> {
        if self.files.len() > SEGMENT_FILES_MAX {
            return None;
        }
        let files = self.files.iter().map(|&(kind, length, crc)| {
            let kind = FileKind::ALL.into_iter().find(|known| *known as u8 == kind)?;
            Some(FileMeta { kind, length, crc })
        });
        Some(SegmentMeta {
            seq: self.seq,
            format: self.format,
            tier: self.tier,
            rows: self.rows,
            raw_bytes: self.raw_bytes,
            first_object: ObjectKey::from_bytes(&self.first_object)?,
            last_object: ObjectKey::from_bytes(&self.last_object)?,
            key_min: PaginationKey(self.key_min),
            key_max: PaginationKey(self.key_max),
            xact_min: Xact(self.xact_min),
            xact_max: Xact(self.xact_max),
            files: files.collect::<Option<Vec<_>>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> SegmentMeta {
        let object = |id| ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::Dataset, Uuid::from_u128(id));
        SegmentMeta {
            seq: 7,
            format: 1,
            tier: 2,
            rows: 70_000,
            raw_bytes: 5_000_000_000,
            first_object: object(2),
            last_object: object(3),
            key_min: PaginationKey(300),
            key_max: PaginationKey(301),
            xact_min: Xact(4),
            xact_max: Xact(251),
            files: vec![
                FileMeta { kind: FileKind::Rows, length: 9, crc: 1 },
                FileMeta { kind: FileKind::Ids, length: 8, crc: 0xFFFF_FFFF },
            ],
        }
    }

    #[test]
    fn a_description_keeps_its_bytes() {
        let hex: String = sample().encode().iter().map(|byte| format!("{byte:02x}")).collect();
        let first = "00000000000000000000000000000001030000000000000000000000000000000200";
        let last = "00000000000000000000000000000001030000000000000000000000000000000300";
        let golden =
            format!("01070102fc70110100fd00f2052a01000000{first}{last}fb2c01fb2d0104fbfb00020109010208fcffffffff");
        assert_eq!(hex, golden);
    }

    #[test]
    fn a_description_reads_back_and_names_what_it_may_hold() {
        let meta = sample();
        assert_eq!(SegmentMeta::decode(&meta.encode()), Ok(meta.clone()));
        assert!(meta.may_hold(meta.first_object) && !meta.may_hold(SegmentMeta::NO_OBJECT));
        assert!(!SegmentMeta { rows: 0, ..meta.clone() }.may_hold(meta.first_object));
    }

    #[test]
    fn the_largest_description_fits_a_value_of_the_manifest() {
        let largest = SegmentMeta {
            seq: u64::MAX,
            raw_bytes: u64::MAX,
            files: vec![FileMeta { kind: FileKind::Marks, length: u64::MAX, crc: u32::MAX }; SEGMENT_FILES_MAX],
            ..sample()
        };
        assert!(largest.encode().len() <= SEGMENT_META_BYTES_MAX / 4);
        assert_eq!(SegmentMeta::decode(&largest.encode()), Ok(largest));
    }

    #[test]
    fn every_cut_every_extra_byte_and_every_newer_version_is_refused() {
        let whole = sample().encode();
        for end in 0..whole.len() {
            assert!(SegmentMeta::decode(&whole[..end]).is_err(), "cut at {end}");
        }
        let mut longer = whole.clone();
        longer.push(0);
        assert!(SegmentMeta::decode(&longer).is_err());
        let mut newer = whole;
        newer[0] = 2;
        assert_eq!(SegmentMeta::decode(&newer), Err(BadSegmentMeta::Newer(2)));
        let hostile = [&[1][..], &[0xFD; 200]].concat();
        assert!(SegmentMeta::decode(&hostile).is_err());
    }
}
