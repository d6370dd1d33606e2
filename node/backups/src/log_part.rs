//! Part of a group's log as one object.
//!
//! ```text
//! part     1, zstd of entry*
//! entry    index u64, term u64, replica u64, kind u8, length u32, bytes
//!   kind 0   no commands: a membership or the start of a term
//!   kind 1   commands, as the log frames them
//!   kind 2   an entry that names a large write, which is an object of its own
//! ```
//! Numbers are little-endian. The indices of the entries are consecutive.

use std::io::{Read, Write};

use assay_storage_model::LogPosition;
use bytes::Bytes;

const VERSION: u8 = 1;
const KIND_NOTHING: u8 = 0;
const KIND_COMMANDS: u8 = 1;
const KIND_LARGE: u8 = 2;
/// Level of compression. Parts are written all the time, so the processor counts more than the space.
const LEVEL: i32 = 3;
/// Upper bound of the plain bytes of a part. A single entry has at most a megabyte and a bit.
pub const PART_BYTES_MAX: usize = 16 << 20;
/// Upper bound of what a reader accepts.
const READ_BYTES_MAX: u64 = 2 * PART_BYTES_MAX as u64;

/// Entry of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedEntry {
    pub position: LogPosition,
    pub content: ArchivedContent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchivedContent {
    /// No commands.
    Nothing,
    /// Entry as `assay_storage_model::entry` frames it.
    Commands(Bytes),
    /// Entry that names a large write. The object beside the part has the content of the write.
    Large(Bytes),
}

/// Encodes consecutive entries.
pub fn encode(entries: &[ArchivedEntry]) -> Vec<u8> {
    let encoder = zstd::stream::write::Encoder::new(vec![VERSION], LEVEL);
    let mut encoder = encoder.expect("memory for the compression");
    let mut write = |bytes: &[u8]| encoder.write_all(bytes).expect("memory takes all bytes");
    for ArchivedEntry { position, content } in entries {
        write(&position.index.to_le_bytes());
        write(&position.term.to_le_bytes());
        write(&position.replica.to_le_bytes());
        let (kind, entry): (_, &[u8]) = match content {
            ArchivedContent::Nothing => (KIND_NOTHING, &[]),
            ArchivedContent::Commands(entry) => (KIND_COMMANDS, entry),
            ArchivedContent::Large(entry) => (KIND_LARGE, entry),
        };
        write(&[kind]);
        write(&u32::try_from(entry.len()).expect("an entry has about a megabyte").to_le_bytes());
        write(entry);
    }
    encoder.finish().expect("memory takes all bytes")
}

/// Decodes a part. The error is a clause about the part.
pub fn decode(part: &[u8]) -> Result<Vec<ArchivedEntry>, String> {
    let (version, compressed) = part.split_first().ok_or("it is empty")?;
    if *version != VERSION {
        return Err(format!("it has version {version}, which this program does not support: upgrade the program"));
    }
    let mut plain = Vec::new();
    let decoder = zstd::stream::read::Decoder::with_buffer(compressed).map_err(|why| why.to_string())?;
    decoder
        .take(READ_BYTES_MAX + 1)
        .read_to_end(&mut plain)
        .map_err(|why| format!("it cannot be decompressed: {why}"))?;
    if plain.len() as u64 > READ_BYTES_MAX {
        return Err("it is too large".into());
    }
    let plain = Bytes::from(plain);
    let mut rest = &plain[..];
    let mut entries: Vec<ArchivedEntry> = Vec::new();
    while !rest.is_empty() {
        let entry = read_entry(&plain, &mut rest).ok_or("an entry cannot be decoded")?;
        if entries.last().is_some_and(|before| before.position.index + 1 != entry.position.index) {
            return Err("its entries are not consecutive".into());
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn read_entry(plain: &Bytes, rest: &mut &[u8]) -> Option<ArchivedEntry> {
    let mut number = || {
        let (number, tail) = rest.split_first_chunk::<8>()?;
        *rest = tail;
        Some(u64::from_le_bytes(*number))
    };
    let (index, term, replica) = (number()?, number()?, number()?);
    let (&kind, tail) = rest.split_first()?;
    let (length, tail) = tail.split_first_chunk::<4>()?;
    let (bytes, tail) = tail.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = tail;
    let content = match kind {
        KIND_NOTHING if bytes.is_empty() => ArchivedContent::Nothing,
        KIND_COMMANDS => ArchivedContent::Commands(plain.slice_ref(bytes)),
        KIND_LARGE => ArchivedContent::Large(plain.slice_ref(bytes)),
        _ => return None,
    };
    Some(ArchivedEntry { position: LogPosition { term, replica, index }, content })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn content() -> impl Strategy<Value = ArchivedContent> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..200).prop_map(Bytes::from);
        prop_oneof![
            Just(ArchivedContent::Nothing),
            bytes().prop_map(ArchivedContent::Commands),
            bytes().prop_map(ArchivedContent::Large),
        ]
    }

    proptest! {
        #[test]
        fn entries_come_back(first in any::<u32>(), contents in proptest::collection::vec(content(), 0..20)) {
            let entry = |(number, content)| {
                let position = LogPosition { term: 3, replica: 2, index: u64::from(first) + number as u64 };
                ArchivedEntry { position, content }
            };
            let entries: Vec<_> = contents.into_iter().enumerate().map(entry).collect();
            prop_assert_eq!(decode(&encode(&entries)), Ok(entries));
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn a_gap_is_refused() {
        let entry = |index| ArchivedEntry {
            position: LogPosition { term: 1, replica: 1, index },
            content: ArchivedContent::Nothing,
        };
        assert_eq!(decode(&encode(&[entry(4), entry(6)])), Err("its entries are not consecutive".into()));
        assert!(decode(&[2]).expect_err("a newer part").contains("upgrade"));
    }
}
