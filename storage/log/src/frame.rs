//! Frame around one record, in the exact layout of its bytes in a block of raft-engine.
//!
//! `version u8, group u64, index u64, term u64, previous record's checksum u32, payload length u32, checksum u32,
//! payload`
//!
//! Numbers are little-endian. The checksum is CRC32C over all preceding fields and the payload. The engine takes
//! protobuf messages. This message writes its raw bytes, so the payload is copied only once, into the engine's batch.

use std::any::Any;

use assay_storage_model::GroupId;
use bytes::Bytes;
use protobuf::well_known_types::BytesValue;
use protobuf::{Clear, CodedInputStream, CodedOutputStream, Message, ProtobufResult, UnknownFields};

use crate::{LogRecord, PAYLOAD_BYTES_MAX};

const VERSION: u8 = 1;
/// Number of bytes before the payload.
pub(crate) const HEADER_BYTES: usize = 37;
const CHECKED_BYTES: usize = 33;
/// Checksum that the first record of a group carries for its missing predecessor.
pub(crate) const CHAIN_START: u32 = 0;

/// In-memory summary of a record, sufficient to check its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub index: u64,
    pub term: u64,
    pub previous: u32,
    pub checksum: u32,
}

/// Framed record. After a read it is untrusted until `verify` succeeds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    header: [u8; HEADER_BYTES],
    payload: Bytes,
    none: UnknownFields,
}

impl Frame {
    pub fn of(group: GroupId, record: &LogRecord, previous: u32) -> Frame {
        let mut header = [0; HEADER_BYTES];
        header[0] = VERSION;
        header[1..9].copy_from_slice(&group.0.to_le_bytes());
        header[9..17].copy_from_slice(&record.index.to_le_bytes());
        header[17..25].copy_from_slice(&record.term.to_le_bytes());
        header[25..29].copy_from_slice(&previous.to_le_bytes());
        // The handle has refused longer payloads, so the cast does not truncate.
        header[29..33].copy_from_slice(&(record.payload.len() as u32).to_le_bytes());
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&header[..CHECKED_BYTES]), &record.payload);
        header[33..].copy_from_slice(&checksum.to_le_bytes());
        Frame { header, payload: record.payload.clone(), none: UnknownFields::default() }
    }

    pub fn len(&self) -> usize {
        HEADER_BYTES + self.payload.len()
    }

    pub fn mark(&self) -> Mark {
        mark_of(&self.header)
    }

    /// Returns the record if every byte is as written and the position is the requested one.
    pub fn verify(self, group: GroupId, index: u64) -> Result<(Mark, LogRecord), String> {
        let mark = check(&self.header, &self.payload, group, index)?;
        Ok((mark, LogRecord { index, term: mark.term, payload: self.payload }))
    }
}

/// Verifies a framed record in place.
pub(crate) fn verify_bytes(bytes: &[u8], group: GroupId, index: u64) -> Result<Mark, String> {
    let Some((header, payload)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Err(format!("a record of {} bytes has no header", bytes.len()));
    };
    check(header, payload, group, index)
}

fn check(header: &[u8; HEADER_BYTES], payload: &[u8], group: GroupId, index: u64) -> Result<Mark, String> {
    if header[0] != VERSION {
        return Err(format!("record version {} is unknown", header[0]));
    }
    let length = u32_at(header, 29) as usize;
    if length != payload.len() || length > PAYLOAD_BYTES_MAX {
        return Err(format!("the record says {length} bytes of payload and has {}", payload.len()));
    }
    let mark = mark_of(header);
    if crc32c::crc32c_append(crc32c::crc32c(&header[..CHECKED_BYTES]), payload) != mark.checksum {
        return Err("the record's checksum does not match its bytes".to_string());
    }
    let stored = u64_at(header, 1);
    if stored != group.0 || mark.index != index {
        return Err(format!("group {stored}'s record {} stands in this place", mark.index));
    }
    Ok(mark)
}

fn mark_of(header: &[u8; HEADER_BYTES]) -> Mark {
    Mark {
        index: u64_at(header, 9),
        term: u64_at(header, 17),
        previous: u32_at(header, 25),
        checksum: u32_at(header, 33),
    }
}

fn u64_at(header: &[u8; HEADER_BYTES], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&header[at..at + 8]);
    u64::from_le_bytes(bytes)
}

fn u32_at(header: &[u8; HEADER_BYTES], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&header[at..at + 4]);
    u32::from_le_bytes(bytes)
}

impl Default for Frame {
    fn default() -> Frame {
        Frame { header: [0; HEADER_BYTES], payload: Bytes::new(), none: UnknownFields::default() }
    }
}

impl Clear for Frame {
    fn clear(&mut self) {
        *self = Frame::default();
    }
}

/// Message of raw bytes without tags, because the engine keeps the length of each entry.
impl Message for Frame {
    fn descriptor(&self) -> &'static protobuf::reflect::MessageDescriptor {
        BytesValue::descriptor_static()
    }

    fn is_initialized(&self) -> bool {
        true
    }

    fn merge_from(&mut self, input: &mut CodedInputStream<'_>) -> ProtobufResult<()> {
        let header = input.read_raw_bytes(HEADER_BYTES as u32)?;
        self.header.copy_from_slice(&header);
        self.payload = input.read_raw_bytes(u32_at(&self.header, 29))?.into();
        Ok(())
    }

    fn write_to_with_cached_sizes(&self, output: &mut CodedOutputStream<'_>) -> ProtobufResult<()> {
        output.write_raw_bytes(&self.header)?;
        output.write_raw_bytes(&self.payload)
    }

    fn compute_size(&self) -> u32 {
        self.len() as u32
    }

    fn get_cached_size(&self) -> u32 {
        self.len() as u32
    }

    fn get_unknown_fields(&self) -> &UnknownFields {
        &self.none
    }

    fn mut_unknown_fields(&mut self) -> &mut UnknownFields {
        &mut self.none
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn new() -> Frame {
        Frame::default()
    }

    fn default_instance() -> &'static Frame {
        static INSTANCE: protobuf::rt::LazyV2<Frame> = protobuf::rt::LazyV2::INIT;
        INSTANCE.get(Frame::default)
    }
}

impl raft_engine::MessageExt for Frame {
    type Entry = Frame;

    fn index(frame: &Frame) -> u64 {
        engine_index(frame.mark().index)
    }
}

/// Returns the engine's index, which counts from one instead of zero.
pub(crate) fn engine_index(index: u64) -> u64 {
    index.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> LogRecord {
        LogRecord { index: 7, term: 3, payload: Bytes::from_static(b"what the caller gave") }
    }

    #[test]
    fn a_frame_survives_its_bytes_and_any_flipped_bit_is_seen() {
        let frame = Frame::of(GroupId(16), &record(), 42);
        let bytes = frame.write_to_bytes().unwrap();
        let mark = verify_bytes(&bytes, GroupId(16), 7).unwrap();
        assert_eq!(mark, frame.mark());
        assert_eq!((mark.index, mark.term, mark.previous), (7, 3, 42));
        assert_eq!(Frame::parse_from_bytes(&bytes).unwrap().verify(GroupId(16), 7).unwrap(), (mark, record()));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(verify_bytes(&flipped, GroupId(16), 7).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_whole_record_in_a_wrong_place_is_refused() {
        let bytes = Frame::of(GroupId(16), &record(), 42).write_to_bytes().unwrap();
        assert!(verify_bytes(&bytes, GroupId(17), 7).unwrap_err().contains("group 16"));
        assert!(verify_bytes(&bytes, GroupId(16), 8).is_err());
        assert!(verify_bytes(&bytes[..20], GroupId(16), 7).is_err());
    }
}
