//! Encoding of messages between replicas.
//!
//! Each message begins with a version, and an unsupported version is refused with an error to the sender. Numbers are
//! little-endian. Log ids, votes and memberships use the format of `encoding`.
//!
//! ```text
//! append       1, vote, previous: optional log id, committed: optional log id, count u32, entry*
//! entry        term u64, index u64, length u32, record (as it stands in the log)
//! appended     1, 0 success | 1 partial, optional log id | 2 conflict | 3 higher vote, vote
//! vote         1, vote, last: optional log id
//! voted        1, vote, granted u8, last: optional log id
//! snapshot     1, vote, export u64, position: optional log id, membership, kept length u64, count u32, (length u32, name, length u64)*
//! installed    1, vote
//! read index   1, optional u64
//! taken over   1, optional u64: the term; versions before 0.5 leave it out
//! pre-vote     1, last: optional log id
//! pre-voted    1, 0 longer log | 1 granted | 2 hears a leader
//! ```

use assay_storage_model::Applied;
use bytes::{BufMut, Bytes, BytesMut};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, VoteRequest, VoteResponse};
use openraft::{EntryPayload, Vote};

use crate::leadership::elections::PreVote;
use crate::log::encoding::{
    BadRecord, KIND_BLANK, KIND_MEMBERSHIP, KIND_NORMAL, Reader, TRAILER_BYTES, decode_record, decode_whole,
    encode_membership, put_count, put_log_id, put_vote,
};
use crate::types::{Consensus, EntryBytes, EntryOf, LogIdOf, Replica};

/// Version of every message, which is never stored.
const SPOKEN: u8 = 1;
/// Fixed part of an entry.
const ENTRY_HEAD_BYTES: usize = 20;
/// Capacity for the fixed part of an append.
const APPEND_HEAD_BYTES: usize = 128;
/// Maximum number of files in one snapshot. A shard has about twenty segments of a few files each.
pub(crate) const SNAPSHOT_FILES_MAX: usize = 100_000;
const NAME_BYTES_MAX: usize = 255;

pub(crate) type AppendOf = AppendEntriesRequest<Consensus>;
pub(crate) type AppendedOf = AppendEntriesResponse<Replica>;
pub(crate) type VoteOf = Vote<Replica>;

/// Offer of a snapshot to a follower, sent before the follower fetches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub vote: VoteOf,
    /// Number of the export at the sending node, valid while it is sent.
    pub export: u64,
    pub applied: Applied,
    pub kept_bytes: u64,
    pub files: Vec<OfferedFile>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OfferedFile {
    pub name: String,
    pub length: u64,
}

pub(crate) fn encode_append(append: &AppendOf) -> Bytes {
    let lengths: Vec<usize> = append.entries.iter().map(record_bytes).collect();
    let bytes = APPEND_HEAD_BYTES + lengths.iter().map(|length| length + ENTRY_HEAD_BYTES).sum::<usize>();
    let mut head = Vec::with_capacity(APPEND_HEAD_BYTES);
    head.push(SPOKEN);
    put_vote(&mut head, &append.vote);
    put_optional(&mut head, append.prev_log_id.as_ref());
    put_optional(&mut head, append.leader_commit.as_ref());
    put_count(&mut head, append.entries.len());
    let mut message = BytesMut::with_capacity(bytes);
    message.put_slice(&head);
    for entry in &append.entries {
        put_entry(&mut message, entry);
    }
    message.freeze()
}

fn record_bytes(entry: &EntryOf) -> usize {
    TRAILER_BYTES
        + match &entry.payload {
            EntryPayload::Normal(EntryBytes(bytes)) => bytes.len(),
            EntryPayload::Blank => 0,
            EntryPayload::Membership(_) => 256,
        }
}

/// Writes the record of `encode_record` directly into the message, so that an entry is copied only once.
fn put_entry(message: &mut BytesMut, entry: &EntryOf) {
    let membership;
    let (body, kind): (&[u8], u8) = match &entry.payload {
        EntryPayload::Blank => (&[], KIND_BLANK),
        EntryPayload::Normal(EntryBytes(bytes)) => (bytes, KIND_NORMAL),
        EntryPayload::Membership(changed) => {
            membership = encode_membership(changed);
            (&membership, KIND_MEMBERSHIP)
        }
    };
    let length = u32::try_from(body.len() + TRAILER_BYTES).expect("a record is far below 4 GiB");
    message.put_u64_le(entry.log_id.leader_id.term);
    message.put_u64_le(entry.log_id.index);
    message.put_u32_le(length);
    message.put_slice(body);
    message.put_u64_le(entry.log_id.leader_id.node_id);
    message.put_u8(kind);
}

pub(crate) fn decode_append(message: &Bytes) -> Result<AppendOf, BadRecord> {
    decode_whole(message, |reader| {
        reader.version()?;
        let vote = reader.vote()?;
        let prev_log_id = optional(reader)?;
        let leader_commit = optional(reader)?;
        let count = reader.count(ENTRY_HEAD_BYTES + TRAILER_BYTES)?;
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            let (term, index) = (reader.u64()?, reader.u64()?);
            let record = message.slice_ref(reader.block()?);
            entries.push(decode_record(index, term, &record)?);
        }
        Ok(AppendOf { vote, prev_log_id, entries, leader_commit })
    })
}

pub(crate) fn encode_appended(appended: &AppendedOf) -> Bytes {
    let mut bytes = vec![SPOKEN];
    match appended {
        AppendedOf::Success => bytes.push(0),
        AppendedOf::PartialSuccess(last) => {
            bytes.push(1);
            put_optional(&mut bytes, last.as_ref());
        }
        AppendedOf::Conflict => bytes.push(2),
        AppendedOf::HigherVote(vote) => {
            bytes.push(3);
            put_vote(&mut bytes, vote);
        }
    }
    bytes.into()
}

pub(crate) fn decode_appended(bytes: &[u8]) -> Result<AppendedOf, BadRecord> {
    decode_whole(bytes, |reader| {
        reader.version()?;
        match reader.u8()? {
            0 => Ok(AppendedOf::Success),
            1 => Ok(AppendedOf::PartialSuccess(optional(reader)?)),
            2 => Ok(AppendedOf::Conflict),
            3 => Ok(AppendedOf::HigherVote(reader.vote()?)),
            newer => Err(BadRecord::Newer(newer)),
        }
    })
}

pub(crate) fn encode_vote_request(request: &VoteRequest<Replica>) -> Bytes {
    let mut bytes = vec![SPOKEN];
    put_vote(&mut bytes, &request.vote);
    put_optional(&mut bytes, request.last_log_id.as_ref());
    bytes.into()
}

pub(crate) fn decode_vote_request(bytes: &[u8]) -> Result<VoteRequest<Replica>, BadRecord> {
    decode_whole(bytes, |reader| {
        reader.version()?;
        Ok(VoteRequest { vote: reader.vote()?, last_log_id: optional(reader)? })
    })
}

pub(crate) fn encode_voted(voted: &VoteResponse<Replica>) -> Bytes {
    let mut bytes = vec![SPOKEN];
    put_vote(&mut bytes, &voted.vote);
    bytes.push(u8::from(voted.vote_granted));
    put_optional(&mut bytes, voted.last_log_id.as_ref());
    bytes.into()
}

pub(crate) fn decode_voted(bytes: &[u8]) -> Result<VoteResponse<Replica>, BadRecord> {
    decode_whole(bytes, |reader| {
        reader.version()?;
        Ok(VoteResponse { vote: reader.vote()?, vote_granted: reader.flag()?, last_log_id: optional(reader)? })
    })
}

pub(crate) fn encode_offer(offer: &Offer) -> Bytes {
    let mut bytes = vec![SPOKEN];
    put_vote(&mut bytes, &offer.vote);
    bytes.extend(offer.export.to_le_bytes());
    let position = offer.applied.position.map(crate::types::log_id_of);
    put_optional(&mut bytes, position.as_ref());
    put_block(&mut bytes, &offer.applied.membership);
    bytes.extend(offer.kept_bytes.to_le_bytes());
    put_count(&mut bytes, offer.files.len());
    for OfferedFile { name, length } in &offer.files {
        put_block(&mut bytes, name.as_bytes());
        bytes.extend(length.to_le_bytes());
    }
    bytes.into()
}

pub(crate) fn decode_offer(bytes: &[u8]) -> Result<Offer, BadRecord> {
    decode_whole(bytes, |reader| {
        reader.version()?;
        let (vote, export) = (reader.vote()?, reader.u64()?);
        let position = optional(reader)?.as_ref().map(crate::types::position_of);
        let membership = reader.block()?.to_vec();
        let kept_bytes = reader.u64()?;
        let count = reader.count(12)?;
        if count > SNAPSHOT_FILES_MAX {
            return Err(BadRecord::Damaged("the snapshot has too many files"));
        }
        let mut files = Vec::with_capacity(count);
        for _ in 0..count {
            files.push(OfferedFile { name: file_name(reader.block()?)?, length: reader.u64()? });
        }
        Ok(Offer { vote, export, applied: assay_storage_model::Applied { position, membership }, kept_bytes, files })
    })
}

/// Decodes a file name that cannot lead out of its directory.
fn file_name(bytes: &[u8]) -> Result<String, BadRecord> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let fits = !bytes.is_empty() && bytes.len() <= NAME_BYTES_MAX && bytes.iter().all(plain) && bytes[0] != b'.';
    match std::str::from_utf8(bytes) {
        Ok(name) if fits => Ok(name.to_owned()),
        _ => Err(BadRecord::Damaged("a file of the snapshot has an invalid name")),
    }
}

pub(crate) fn encode_installed(vote: &VoteOf) -> Bytes {
    let mut bytes = vec![SPOKEN];
    put_vote(&mut bytes, vote);
    bytes.into()
}

pub(crate) fn decode_installed(bytes: &[u8]) -> Result<VoteOf, BadRecord> {
    decode_whole(bytes, |reader| {
        reader.version()?;
        reader.vote()
    })
}

pub(crate) fn encode_read_index(index: Option<u64>) -> Bytes {
    let mut bytes = vec![SPOKEN, u8::from(index.is_some())];
    if let Some(index) = index {
        bytes.extend(index.to_le_bytes());
    }
    bytes.into()
}

pub(crate) fn decode_read_index(bytes: &[u8]) -> Result<Option<u64>, BadRecord> {
    decode_whole(bytes, |reader| {
        reader.version()?;
        if reader.flag()? { reader.u64().map(Some) } else { Ok(None) }
    })
}

pub(crate) fn encode_taken_over(term: u64) -> Bytes {
    encode_read_index(Some(term))
}

pub(crate) fn decode_taken_over(bytes: &[u8]) -> Result<Option<u64>, BadRecord> {
    decode_read_index(bytes)
}

pub(crate) fn encode_pre_vote(last: Option<&LogIdOf>) -> Bytes {
    let mut bytes = vec![SPOKEN];
    put_optional(&mut bytes, last);
    bytes.into()
}

pub(crate) fn decode_pre_vote(bytes: &[u8]) -> Result<Option<LogIdOf>, BadRecord> {
    decode_whole(bytes, |reader| {
        reader.version()?;
        optional(reader)
    })
}

pub(crate) fn encode_pre_voted(answer: PreVote) -> Bytes {
    let answer = match answer {
        PreVote::LongerLog => 0,
        PreVote::Granted => 1,
        PreVote::HearsLeader => 2,
    };
    vec![SPOKEN, answer].into()
}

pub(crate) fn decode_pre_voted(bytes: &[u8]) -> Result<PreVote, BadRecord> {
    decode_whole(bytes, |reader| {
        reader.version()?;
        match reader.u8()? {
            0 => Ok(PreVote::LongerLog),
            1 => Ok(PreVote::Granted),
            2 => Ok(PreVote::HearsLeader),
            newer => Err(BadRecord::Newer(newer)),
        }
    })
}

fn put_optional(bytes: &mut Vec<u8>, id: Option<&LogIdOf>) {
    bytes.push(u8::from(id.is_some()));
    if let Some(id) = id {
        put_log_id(bytes, id);
    }
}

fn optional(reader: &mut Reader<'_>) -> Result<Option<LogIdOf>, BadRecord> {
    if reader.flag()? { reader.log_id().map(Some) } else { Ok(None) }
}

fn put_block(bytes: &mut Vec<u8>, block: &[u8]) {
    put_count(bytes, block.len());
    bytes.extend_from_slice(block);
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraft::{CommittedLeaderId, LogId};

    fn id(term: u64, replica: u64, index: u64) -> LogIdOf {
        LogId::new(CommittedLeaderId::new(term, replica), index)
    }

    fn append() -> AppendOf {
        let entry = |index, payload| EntryOf { log_id: id(2, 9, index), payload };
        AppendOf {
            vote: Vote::new_committed(2, 9),
            prev_log_id: Some(id(1, 8, 4)),
            entries: vec![
                entry(5, EntryPayload::Blank),
                entry(6, EntryPayload::Normal(EntryBytes(Bytes::from_static(b"abc")))),
            ],
            leader_commit: None,
        }
    }

    fn offer() -> Offer {
        let position = crate::types::position_of(&id(3, 7, 11));
        Offer {
            vote: Vote::new(4, 1),
            export: 77,
            applied: Applied { position: Some(position), membership: vec![1, 2, 3] },
            kept_bytes: 1 << 33,
            files: vec![OfferedFile { name: "s000001.parquet".into(), length: 5 }],
        }
    }

    #[test]
    fn messages_read_back_and_every_cut_is_refused() {
        let bytes = encode_append(&append());
        let back = decode_append(&bytes).expect("reads back");
        assert_eq!(format!("{back:?}"), format!("{:?}", append()));
        assert!((0..bytes.len()).all(|end| decode_append(&bytes.slice(..end)).is_err()));
        let bytes = encode_offer(&offer());
        assert_eq!(decode_offer(&bytes), Ok(offer()));
        assert!((0..bytes.len()).all(|end| decode_offer(&bytes[..end]).is_err()));
        for appended in [
            AppendedOf::Success,
            AppendedOf::PartialSuccess(Some(id(1, 2, 3))),
            AppendedOf::PartialSuccess(None),
            AppendedOf::Conflict,
            AppendedOf::HigherVote(Vote::new(3, 3)),
        ] {
            assert_eq!(decode_appended(&encode_appended(&appended)), Ok(appended));
        }
        let request = VoteRequest { vote: Vote::new(3, 4), last_log_id: None };
        assert_eq!(decode_vote_request(&encode_vote_request(&request)), Ok(request));
        let voted = VoteResponse { vote: Vote::new(3, 4), vote_granted: true, last_log_id: Some(id(1, 2, 3)) };
        assert_eq!(decode_voted(&encode_voted(&voted)), Ok(voted));
        assert_eq!(decode_read_index(&encode_read_index(Some(7))), Ok(Some(7)));
        assert_eq!(decode_read_index(&encode_read_index(None)), Ok(None));
        assert_eq!(decode_taken_over(&encode_taken_over(9)), Ok(Some(9)));
        assert_eq!(decode_pre_vote(&encode_pre_vote(Some(&id(1, 2, 3)))), Ok(Some(id(1, 2, 3))));
        for answer in [PreVote::LongerLog, PreVote::Granted, PreVote::HearsLeader] {
            assert_eq!(decode_pre_voted(&encode_pre_voted(answer)), Ok(answer));
        }
        assert_eq!(decode_installed(&encode_installed(&Vote::new(1, 2))), Ok(Vote::new(1, 2)));
    }

    #[test]
    fn a_name_that_leads_out_of_its_directory_is_refused() {
        for name in ["../x", "a/b", "", ".hidden", "a\\b"] {
            let bad = Offer { files: vec![OfferedFile { name: name.into(), length: 1 }], ..offer() };
            assert!(decode_offer(&encode_offer(&bad)).is_err(), "{name}");
        }
    }

    #[test]
    fn a_newer_version_says_so() {
        assert_eq!(decode_appended(&[2, 0]), Err(BadRecord::Newer(2)));
    }
}
