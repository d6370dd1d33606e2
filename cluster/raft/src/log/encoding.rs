//! Encoding of consensus data on disk.
//!
//! The encoding is frozen: numbers and layouts never change, and a new meaning gets a new kind or version.
//!
//! ```text
//! record      body, replica u64 that led when it was proposed, kind u8     (index and term are the log's own)
//!   kind 1    blank: no body
//!   kind 2    normal: the entry as model::entry frames it
//!   kind 3    membership
//! log id      version 1, term u64, replica u64, index u64
//! vote        version 1, term u64, replica u64, committed u8
//! membership  version 1, count u32 of configs, (count u32, replica u64 ...)*, count u32, (replica u64, node u64)*
//! stored      version 1, 0 | 1 and a log id, membership
//! ```
//! Numbers are little-endian. The fixed part of a record is behind its body, because an entry's buffer usually has room
//! at its end. A record is then made without a copy of the entry, and reading it back is a slice.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};
use openraft::{CommittedLeaderId, EntryPayload, LeaderId, LogId, StoredMembership, Vote};
use thiserror::Error;

use crate::types::{EntryBytes, EntryOf, Home, LogIdOf, MembershipOf, Replica, StoredMembershipOf};

const VERSION: u8 = 1;
pub(crate) const KIND_BLANK: u8 = 1;
pub(crate) const KIND_NORMAL: u8 = 2;
pub(crate) const KIND_MEMBERSHIP: u8 = 3;
pub(crate) const TRAILER_BYTES: usize = 9;
/// Maximum number of configs in one membership: one, or two during a change.
const CONFIGS_MAX: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadRecord {
    #[error("a consensus record has version or kind {0}, which is newer than this program: upgrade the program")]
    Newer(u8),
    #[error("a consensus record cannot be decoded: {0}")]
    Damaged(&'static str),
}

/// Encodes the payload of one log record. Reuses the entry's buffer if it is not shared.
pub(crate) fn encode_record(entry: EntryOf) -> Bytes {
    let (body, kind) = match entry.payload {
        EntryPayload::Blank => (BytesMut::with_capacity(TRAILER_BYTES), KIND_BLANK),
        EntryPayload::Normal(EntryBytes(bytes)) => (in_place(bytes), KIND_NORMAL),
        EntryPayload::Membership(membership) => (BytesMut::from(&*encode_membership(&membership)), KIND_MEMBERSHIP),
    };
    let mut record = body;
    record.extend_from_slice(&entry.log_id.leader_id.node_id.to_le_bytes());
    record.extend_from_slice(&[kind]);
    record.freeze()
}

fn in_place(bytes: Bytes) -> BytesMut {
    bytes.try_into_mut().unwrap_or_else(|shared| {
        let mut copy = BytesMut::with_capacity(shared.len() + TRAILER_BYTES);
        copy.extend_from_slice(&shared);
        copy
    })
}

pub(crate) fn decode_record(index: u64, term: u64, record: &Bytes) -> Result<EntryOf, BadRecord> {
    let body_bytes = record.len().checked_sub(TRAILER_BYTES).ok_or(BadRecord::Damaged("the record is truncated"))?;
    let mut trailer = Reader(&record[body_bytes..]);
    let replica = trailer.u64()?;
    let kind = trailer.u8()?;
    let body = record.slice(..body_bytes);
    let payload = match kind {
        KIND_BLANK if body.is_empty() => EntryPayload::Blank,
        KIND_BLANK => return Err(BadRecord::Damaged("a blank record has a body")),
        KIND_NORMAL => EntryPayload::Normal(EntryBytes(body)),
        KIND_MEMBERSHIP => EntryPayload::Membership(decode_whole(&body, read_membership)?),
        0 => return Err(BadRecord::Damaged("kind 0 does not exist")),
        newer => return Err(BadRecord::Newer(newer)),
    };
    Ok(EntryOf { log_id: LogId::new(CommittedLeaderId::new(term, replica), index), payload })
}

/// Returns the entry inside a normal record, over the same bytes.
pub(crate) fn entry_of_record(record: &Bytes) -> EntryBytes {
    EntryBytes(record.slice(..record.len().saturating_sub(TRAILER_BYTES)))
}

/// Decodes only the log id of a record.
pub(crate) fn decode_record_id(index: u64, term: u64, record: &[u8]) -> Result<LogIdOf, BadRecord> {
    let start = record.len().checked_sub(TRAILER_BYTES).ok_or(BadRecord::Damaged("the record is truncated"))?;
    Ok(LogId::new(CommittedLeaderId::new(term, Reader(&record[start..]).u64()?), index))
}

pub(crate) fn encode_log_id(id: &LogIdOf) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    put_log_id(&mut bytes, id);
    bytes
}

pub(crate) fn decode_log_id(bytes: &[u8]) -> Result<LogIdOf, BadRecord> {
    decode_whole(bytes, |reader| {
        reader.version()?;
        reader.log_id()
    })
}

pub(crate) fn encode_vote(vote: &Vote<Replica>) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    put_vote(&mut bytes, vote);
    bytes
}

pub(crate) fn put_vote(bytes: &mut Vec<u8>, vote: &Vote<Replica>) {
    bytes.extend(vote.leader_id.term.to_le_bytes());
    bytes.extend(vote.leader_id.node_id.to_le_bytes());
    bytes.push(u8::from(vote.committed));
}

pub(crate) fn decode_vote(bytes: &[u8]) -> Result<Vote<Replica>, BadRecord> {
    decode_whole(bytes, |reader| {
        reader.version()?;
        reader.vote()
    })
}

pub(crate) fn encode_stored_membership(stored: &StoredMembershipOf) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    match stored.log_id() {
        None => bytes.push(0),
        Some(id) => {
            bytes.push(1);
            put_log_id(&mut bytes, id);
        }
    }
    bytes.extend(encode_membership(stored.membership()));
    bytes
}

pub(crate) fn decode_stored_membership(bytes: &[u8]) -> Result<StoredMembershipOf, BadRecord> {
    decode_whole(bytes, |reader| {
        reader.version()?;
        let log_id = if reader.flag()? { Some(reader.log_id()?) } else { None };
        Ok(StoredMembership::new(log_id, read_membership(reader)?))
    })
}

pub(crate) fn encode_membership(membership: &MembershipOf) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    let configs = membership.get_joint_config();
    put_count(&mut bytes, configs.len());
    for config in configs {
        put_count(&mut bytes, config.len());
        config.iter().for_each(|replica| bytes.extend(replica.to_le_bytes()));
    }
    put_count(&mut bytes, membership.nodes().count());
    for (replica, home) in membership.nodes() {
        bytes.extend(replica.to_le_bytes());
        bytes.extend(home.node.to_le_bytes());
    }
    bytes
}

fn read_membership(reader: &mut Reader<'_>) -> Result<MembershipOf, BadRecord> {
    reader.version()?;
    let configs = reader.count(4)?;
    if configs > CONFIGS_MAX {
        return Err(BadRecord::Damaged("the membership has too many configs"));
    }
    let mut config = Vec::with_capacity(configs);
    for _ in 0..configs {
        let voters = reader.count(8)?;
        config.push((0..voters).map(|_| reader.u64()).collect::<Result<BTreeSet<_>, _>>()?);
    }
    let homes = reader.count(16)?;
    let nodes = (0..homes)
        .map(|_| Ok((reader.u64()?, Home { node: reader.u64()? })))
        .collect::<Result<BTreeMap<_, _>, BadRecord>>()?;
    Ok(MembershipOf::new(config, nodes))
}

pub(crate) fn put_log_id(bytes: &mut Vec<u8>, id: &LogIdOf) {
    bytes.extend(id.leader_id.term.to_le_bytes());
    bytes.extend(id.leader_id.node_id.to_le_bytes());
    bytes.extend(id.index.to_le_bytes());
}

pub(crate) fn put_count(bytes: &mut Vec<u8>, count: usize) {
    bytes.extend(u32::try_from(count).expect("a group has few replicas").to_le_bytes());
}

pub(crate) fn decode_whole<'a, T>(
    bytes: &'a [u8],
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, BadRecord>,
) -> Result<T, BadRecord> {
    let mut reader = Reader(bytes);
    let value = read(&mut reader)?;
    if reader.0.is_empty() { Ok(value) } else { Err(BadRecord::Damaged("bytes after its end")) }
}

/// Reader of numbers from the front of a byte slice.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], BadRecord> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(BadRecord::Damaged("it is truncated"))?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, BadRecord> {
        self.take::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, BadRecord> {
        self.take().map(u64::from_le_bytes)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, BadRecord> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(BadRecord::Damaged("a flag is neither 0 nor 1")),
        }
    }

    pub(crate) fn version(&mut self) -> Result<(), BadRecord> {
        match self.u8()? {
            VERSION => Ok(()),
            0 => Err(BadRecord::Damaged("version 0 does not exist")),
            newer => Err(BadRecord::Newer(newer)),
        }
    }

    /// Reads a count of items, and checks that the rest can hold that many items of `item_bytes` bytes.
    pub(crate) fn count(&mut self, item_bytes: usize) -> Result<usize, BadRecord> {
        let count = u32::from_le_bytes(self.take()?) as usize;
        if count > self.0.len() / item_bytes {
            return Err(BadRecord::Damaged("it claims more items than its bytes can hold"));
        }
        Ok(count)
    }

    /// Reads bytes preceded by their length.
    pub(crate) fn block(&mut self) -> Result<&'a [u8], BadRecord> {
        let length = self.count(1)?;
        let (block, rest) = self.0.split_at(length);
        self.0 = rest;
        Ok(block)
    }

    pub(crate) fn vote(&mut self) -> Result<Vote<Replica>, BadRecord> {
        let leader_id = LeaderId::new(self.u64()?, self.u64()?);
        Ok(Vote { leader_id, committed: self.flag()? })
    }

    pub(crate) fn log_id(&mut self) -> Result<LogIdOf, BadRecord> {
        let leader = CommittedLeaderId::new(self.u64()?, self.u64()?);
        Ok(LogId::new(leader, self.u64()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(term: u64, replica: u64, index: u64) -> LogIdOf {
        LogId::new(CommittedLeaderId::new(term, replica), index)
    }

    fn entry(payload: EntryPayload<crate::types::Consensus>) -> EntryOf {
        EntryOf { log_id: id(3, 7, 11), payload }
    }

    fn membership() -> MembershipOf {
        MembershipOf::new(vec![BTreeSet::from([7])], BTreeMap::from([(7, Home { node: 2 })]))
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn check_record(payload: EntryPayload<crate::types::Consensus>, golden: &str) {
        let record = encode_record(entry(payload.clone()));
        assert_eq!(hex(&record), golden);
        assert_eq!(decode_record(11, 3, &record), Ok(entry(payload)));
        assert_eq!(decode_record_id(11, 3, &record), Ok(id(3, 7, 11)));
    }

    #[test]
    fn records_keep_their_golden_bytes() {
        check_record(EntryPayload::Blank, "070000000000000001");
        check_record(EntryPayload::Normal(EntryBytes(Bytes::from_static(b"abc"))), "616263070000000000000002");
        check_record(
            EntryPayload::Membership(membership()),
            "010100000001000000070000000000000001000000070000000000000002000000000000000700000000000000\
             03",
        );
    }

    #[test]
    fn votes_positions_and_memberships_keep_their_golden_bytes() {
        let vote = Vote { leader_id: LeaderId::new(3, 7), committed: true };
        assert_eq!(hex(&encode_vote(&vote)), "010300000000000000070000000000000001");
        assert_eq!(decode_vote(&encode_vote(&vote)), Ok(vote));
        assert_eq!(hex(&encode_log_id(&id(3, 7, 11))), "01030000000000000007000000000000000b00000000000000");
        assert_eq!(decode_log_id(&encode_log_id(&id(3, 7, 11))), Ok(id(3, 7, 11)));
        let stored = StoredMembership::new(Some(id(3, 7, 11)), membership());
        let bytes = encode_stored_membership(&stored);
        assert_eq!(
            hex(&bytes),
            "0101030000000000000007000000000000000b0000000000000001010000000100000007000000000000000100000007000000\
             000000000200000000000000"
        );
        assert_eq!(decode_stored_membership(&bytes), Ok(stored));
    }

    #[test]
    fn an_entry_nobody_else_holds_becomes_a_record_where_it_lies() {
        let mut buffer = Vec::with_capacity(64);
        buffer.extend_from_slice(b"an entry");
        let address = buffer.as_ptr();
        let record = encode_record(entry(EntryPayload::Normal(EntryBytes(Bytes::from(buffer)))));
        assert_eq!(record.as_ptr(), address);
    }

    #[test]
    fn every_cut_is_refused() {
        let stored = encode_stored_membership(&StoredMembership::new(Some(id(1, 1, 1)), membership()));
        for end in 0..stored.len() {
            assert!(decode_stored_membership(&stored[..end]).is_err(), "cut at {end}");
        }
        let vote = encode_vote(&Vote::default());
        assert!((0..vote.len()).all(|end| decode_vote(&vote[..end]).is_err()));
    }

    #[test]
    fn a_newer_kind_says_so() {
        let record = Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0, 0, 9]);
        assert_eq!(decode_record(1, 1, &record), Err(BadRecord::Newer(9)));
    }
}
