//! One log entry of a group: the commands of several writers in one byte string, or the name of a blob that holds them.
//! Built once by the proposer, sliced by apply, never copied between.
//!
//! ```text
//! 1, count u32, (length u32, command)*          commands in line
//! 2, hash 32 bytes, length u64                  the same bytes, kept as a blob
//! ```

use bytes::Bytes;
use thiserror::Error;

const INLINE: u8 = 1;
const BLOB: u8 = 2;

/// Entries stay at or below this; larger writes go to a blob first.
pub const ENTRY_BYTES_MAX: usize = 1 << 20;
/// A single write above this travels as a blob and not in the log.
pub const INLINE_WRITE_BYTES_MAX: usize = 512 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    Commands(Vec<Bytes>),
    Blob { hash: [u8; 32], length: u64 },
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a log entry cannot be decoded: {0}")]
pub struct BadEntry(pub &'static str);

/// Collects commands into one entry.
#[derive(Debug)]
pub struct EntryBuilder {
    bytes: Vec<u8>,
    count: u32,
}

impl Default for EntryBuilder {
    fn default() -> Self {
        EntryBuilder { bytes: vec![INLINE, 0, 0, 0, 0], count: 0 }
    }
}

/// Spare capacity for the few bytes that consensus appends to an entry; it saves a copy of the whole.
const TRAILER_ROOM_BYTES: usize = 32;

impl EntryBuilder {
    /// Creates a buffer for commands of these lengths, with one allocation. The buffer lives as long as any row of it
    /// is in memory, so unused capacity would waste uncounted memory.
    pub fn for_lengths(lengths: impl IntoIterator<Item = usize>) -> EntryBuilder {
        let commands: usize = lengths.into_iter().map(|length| length + 4).sum();
        let mut bytes = Vec::with_capacity(5 + commands + TRAILER_ROOM_BYTES);
        bytes.extend_from_slice(&[INLINE, 0, 0, 0, 0]);
        EntryBuilder { bytes, count: 0 }
    }

    pub fn push(&mut self, command: &[u8]) {
        let length = u32::try_from(command.len()).expect("a command is at most COMMAND_BYTES_MAX");
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(command);
        self.count += 1;
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn finish(mut self) -> Bytes {
        self.bytes[1..5].copy_from_slice(&self.count.to_le_bytes());
        Bytes::from(self.bytes)
    }
}

/// The entry that names a blob.
pub fn blob_entry(hash: [u8; 32], length: u64) -> Bytes {
    let mut bytes = Vec::with_capacity(41);
    bytes.push(BLOB);
    bytes.extend_from_slice(&hash);
    bytes.extend_from_slice(&length.to_le_bytes());
    Bytes::from(bytes)
}

impl Entry {
    pub fn decode(bytes: &Bytes) -> Result<Entry, BadEntry> {
        match bytes.first() {
            Some(&INLINE) => commands(bytes),
            Some(&BLOB) if bytes.len() == 41 => Ok(Entry::Blob {
                hash: bytes[1..33].try_into().expect("32 bytes"),
                length: u64::from_le_bytes(bytes[33..41].try_into().expect("8 bytes")),
            }),
            Some(_) => Err(BadEntry("an unknown kind of entry, or one cut short")),
            None => Err(BadEntry("an empty entry")),
        }
    }
}

fn commands(bytes: &Bytes) -> Result<Entry, BadEntry> {
    let mut rest = bytes.get(1..).unwrap_or_default();
    let count = take_u32(&mut rest)?;
    if count as usize > rest.len() / 4 {
        return Err(BadEntry("more commands than bytes"));
    }
    let mut found = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let length = take_u32(&mut rest)? as usize;
        let command = rest.get(..length).ok_or(BadEntry("a command cut short"))?;
        found.push(bytes.slice_ref(command));
        rest = &rest[length..];
    }
    if !rest.is_empty() {
        return Err(BadEntry("bytes after the last command"));
    }
    Ok(Entry::Commands(found))
}

fn take_u32(rest: &mut &[u8]) -> Result<u32, BadEntry> {
    let (number, tail) = rest.split_first_chunk::<4>().ok_or(BadEntry("a length cut short"))?;
    *rest = tail;
    Ok(u32::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_out_as_they_went_in_without_a_copy() {
        let mut builder = EntryBuilder::default();
        builder.push(b"first");
        builder.push(b"");
        let bytes = builder.finish();
        assert_eq!(&bytes[..], b"\x01\x02\0\0\0\x05\0\0\0first\0\0\0\0", "golden");
        let Ok(Entry::Commands(found)) = Entry::decode(&bytes) else { panic!("decodes") };
        assert_eq!(found, [Bytes::from_static(b"first"), Bytes::new()]);
        assert_eq!(found[0].as_ptr(), bytes[9..].as_ptr());
    }

    #[test]
    fn a_blob_entry_reads_back() {
        let bytes = blob_entry([7; 32], 9);
        assert_eq!(Entry::decode(&bytes), Ok(Entry::Blob { hash: [7; 32], length: 9 }));
    }

    #[test]
    fn every_cut_and_every_extra_byte_is_refused() {
        let mut builder = EntryBuilder::default();
        builder.push(b"first");
        builder.push(b"second");
        let whole = builder.finish();
        for end in 0..whole.len() {
            assert!(Entry::decode(&whole.slice(..end)).is_err(), "cut at {end}");
        }
        let mut longer = whole.to_vec();
        longer.push(0);
        assert!(Entry::decode(&Bytes::from(longer)).is_err());
    }
}
