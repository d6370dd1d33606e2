//! Metadata that raft-engine stores for each group in addition to its records: vote, committed position and head.
//!
//! Values are only overwritten, never deleted. The engine may forget a deletion together with its file, and the old
//! value would reappear. Each value has its own checksum, which is computed before it is stored and verified when it is
//! read:
//!
//! `version u8, body, CRC32C u32`; vote: `number u64, bytes`; committed: `bytes`; head: `flags u8, purged index u64,
//! purged record's checksum u32, end u64, note`.
//!
//! The head holds the purge position, because the engine may forget its compaction, and the truncation position. The
//! engine has no truncation, so records from `end` on stay until they are overwritten.

use crate::NOTE_BYTES_MAX;

pub(crate) const VOTE_KEY: &[u8] = b"vote";
pub(crate) const COMMITTED_KEY: &[u8] = b"committed";
pub(crate) const HEAD_KEY: &[u8] = b"head";

/// Group of the value that each open writes to have something to sync. No caller uses this group.
pub(crate) const OWN_GROUP: u64 = u64::MAX;
pub(crate) const OPENED_KEY: &[u8] = b"opened";

const VERSION: u8 = 1;
const HAS_PURGED: u8 = 1;
const HAS_END: u8 = 2;

/// Vote with its number, by which an older vote is detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vote {
    pub number: u64,
    pub bytes: Vec<u8>,
}

impl Vote {
    pub fn checksum(&self) -> u32 {
        crc32c::crc32c(&self.bytes)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut body = self.number.to_le_bytes().to_vec();
        body.extend_from_slice(&self.bytes);
        seal(&body)
    }

    pub fn decode(value: &[u8]) -> Result<Vote, String> {
        let body = unseal(value, "vote")?;
        let (number, bytes) = body.split_first_chunk::<8>().ok_or("the vote is too short")?;
        Ok(Vote { number: u64::from_le_bytes(*number), bytes: bytes.to_vec() })
    }
}

pub(crate) fn encode_committed(bytes: &[u8]) -> Vec<u8> {
    seal(bytes)
}

pub(crate) fn decode_committed(value: &[u8]) -> Result<Vec<u8>, String> {
    unseal(value, "committed position").map(<[u8]>::to_vec)
}

/// Record of a purge: everything up to `index` is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PurgedMark {
    pub index: u64,
    /// Checksum of the record at `index`, or `CHAIN_START` if a snapshot skipped the record.
    pub checksum: u32,
    pub note: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub purged: Option<PurgedMark>,
    /// Index from which records were truncated and not yet overwritten.
    pub end: Option<u64>,
}

impl Head {
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(32);
        let flags = if self.purged.is_some() { HAS_PURGED } else { 0 } | if self.end.is_some() { HAS_END } else { 0 };
        body.push(flags);
        body.extend_from_slice(&self.purged.as_ref().map_or(0, |purged| purged.index).to_le_bytes());
        body.extend_from_slice(&self.purged.as_ref().map_or(0, |purged| purged.checksum).to_le_bytes());
        body.extend_from_slice(&self.end.unwrap_or(0).to_le_bytes());
        body.extend_from_slice(self.purged.as_ref().map_or(&[], |purged| &purged.note));
        seal(&body)
    }

    pub fn decode(value: &[u8]) -> Result<Head, String> {
        let body = unseal(value, "head")?;
        let (fixed, note) = body.split_first_chunk::<21>().ok_or("the head is too short")?;
        let flags = fixed[0];
        if flags & !(HAS_PURGED | HAS_END) != 0 {
            return Err(format!("the head's flags {flags} are unknown"));
        }
        let u64_at = |at: usize| fixed[at..at + 8].iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
        let checksum = u32::from_le_bytes([fixed[9], fixed[10], fixed[11], fixed[12]]);
        let purged = PurgedMark { index: u64_at(1), checksum, note: note.to_vec() };
        Ok(Head {
            purged: (flags & HAS_PURGED != 0).then_some(purged),
            end: (flags & HAS_END != 0).then_some(u64_at(13)),
        })
    }
}

fn seal(body: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(body.len() + 5);
    value.push(VERSION);
    value.extend_from_slice(body);
    let checksum = crc32c::crc32c(&value);
    value.extend_from_slice(&checksum.to_le_bytes());
    value
}

fn unseal<'a>(value: &'a [u8], what: &str) -> Result<&'a [u8], String> {
    let Some((checked, checksum)) = value.split_last_chunk::<4>() else {
        return Err(format!("the {what} is too short"));
    };
    if value.len() > NOTE_BYTES_MAX + 64 || crc32c::crc32c(checked) != u32::from_le_bytes(*checksum) {
        return Err(format!("the {what}'s checksum does not match its bytes"));
    }
    match checked.split_first() {
        Some((&VERSION, body)) => Ok(body),
        _ => Err(format!("the {what}'s version is unknown")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_survive_their_bytes_and_any_flipped_bit_is_seen() {
        let vote = Vote { number: 9, bytes: b"term 3, node 1".to_vec() };
        let purged = PurgedMark { index: u64::MAX - 1, checksum: 7, note: b"log id".to_vec() };
        let heads = [
            Head::default(),
            Head { purged: None, end: Some(1 << 40) },
            Head { purged: Some(purged.clone()), end: None },
            Head { purged: Some(purged), end: Some(0) },
        ];
        assert_eq!(Vote::decode(&vote.encode()), Ok(vote.clone()));
        assert_eq!(decode_committed(&encode_committed(b"x")), Ok(b"x".to_vec()));
        for head in heads {
            let value = head.encode();
            assert_eq!(Head::decode(&value), Ok(head));
            for bit in 0..value.len() * 8 {
                let mut flipped = value.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert!(Head::decode(&flipped).is_err(), "bit {bit}");
            }
        }
        assert!(Vote::decode(b"").is_err() && Head::decode(&seal(b"short")).is_err());
    }
}
