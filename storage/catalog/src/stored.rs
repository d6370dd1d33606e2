//! Layout of the state in the key-value store: names, chunks, and the header that states the expected content.
//!
//! ```text
//! key      name, chunk u16 (big-endian)
//! chunk 0  1, chunks u16, length u32, hash of the whole u64, the first bytes
//! chunk n  the bytes that follow
//! ```
//! The header has the number of keys and the sum of the hashes of all values. Open thereby detects a missing,
//! resurrected or outdated value.

use std::collections::BTreeMap;
use std::sync::Arc;

use assay_storage_kv::{Batch, Kv, KvError, VALUE_BYTES_MAX};
use assay_storage_model::LogPosition;
use assay_storage_model::catalog::{Record, RecordKind, ShardMap};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::deleted::Deleted;
use crate::hash::hash64;
use crate::state::State;

pub const HEADER_FORMAT: u32 = 1;

/// Size of the values in one commit of an install.
const FILLED_AT_ONCE_BYTES: usize = 8 << 20;

const CHUNKED: u8 = 1;
const CHUNK_HEAD_BYTES: usize = 1 + 2 + 4 + 8;
const CHUNK_NUMBER_BYTES: usize = 2;

/// Name of a stored value. The order of bytes equals the order of names within a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    Header,
    Membership,
    Map,
    /// Page of deleted records.
    Deleted(u64),
    Record(RecordKind, Uuid),
}

impl Name {
    pub fn to_bytes(self) -> Vec<u8> {
        match self {
            Name::Header => vec![b'h'],
            Name::Membership => vec![b'm'],
            Name::Map => vec![b's'],
            Name::Deleted(page) => [b"t", &page.to_be_bytes()[..]].concat(),
            Name::Record(kind, id) => [b"r", &kind.0.to_be_bytes()[..], id.as_bytes()].concat(),
        }
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Name> {
        match bytes.split_first()? {
            (b'h', []) => Some(Name::Header),
            (b'm', []) => Some(Name::Membership),
            (b's', []) => Some(Name::Map),
            (b't', page) => Some(Name::Deleted(u64::from_be_bytes(page.try_into().ok()?))),
            (b'r', rest) => {
                let (kind, id) = rest.split_first_chunk::<2>()?;
                Some(Name::Record(RecordKind(u16::from_be_bytes(*kind)), Uuid::from_slice(id).ok()?))
            }
            _ => None,
        }
    }

    fn key(self, chunk: u16) -> Vec<u8> {
        let mut key = self.to_bytes();
        key.extend_from_slice(&chunk.to_be_bytes());
        key
    }
}

/// Header of all values, written with every seal. It is a JSON text, so that a newer version may extend it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub format: u32,
    pub applied: Option<LogPosition>,
    pub version: u64,
    pub next_node: u64,
    pub next_replica: u64,
    pub highest_replica_placed: u64,
    pub deleted_first: u64,
    pub deleted_next: u64,
    pub records: u64,
    /// Number of keys of the store, including that of the header; 0 in an export.
    pub entries: u64,
    /// Sum of the hashes of all values except the header; 0 in an export.
    pub sum: u64,
}

impl Header {
    pub fn of(state: &State) -> Header {
        Header {
            format: HEADER_FORMAT,
            applied: state.applied,
            version: state.version,
            next_node: state.next_node,
            next_replica: state.next_replica,
            highest_replica_placed: state.highest_replica_placed,
            deleted_first: state.deleted.first(),
            deleted_next: state.deleted.next(),
            records: state.records.len() as u64,
            entries: 0,
            sum: 0,
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers always encode")
    }

    fn decode(bytes: &[u8]) -> Result<Header, String> {
        let header: Header = serde_json::from_slice(bytes).map_err(|error| format!("the header: {error}"))?;
        match header.format {
            HEADER_FORMAT => Ok(header),
            other => Err(format!("the header has format {other}, this program supports {HEADER_FORMAT}")),
        }
    }
}

/// Builds the state from stored values.
pub fn load_state(values: Vec<(Name, Vec<u8>)>) -> Result<(State, Header), String> {
    let header = match values.iter().find(|(name, _)| *name == Name::Header) {
        Some((_, bytes)) => Header::decode(bytes)?,
        None => return Err("the header is missing".into()),
    };
    let mut state = State {
        applied: header.applied,
        version: header.version,
        loaded: header.version,
        next_node: header.next_node,
        next_replica: header.next_replica,
        highest_replica_placed: header.highest_replica_placed,
        ..State::empty()
    };
    let mut pages = Vec::new();
    for (name, value) in values {
        match name {
            Name::Header => {}
            Name::Membership => state.membership = value,
            Name::Map => {
                let map = ShardMap::decode(&value).map_err(|error| format!("the shard map: {error}"))?;
                state.map = Some(Arc::new(map));
            }
            Name::Deleted(_) => pages.push(value),
            Name::Record(kind, id) => load_record(&mut state, kind, id, &value)?,
        }
    }
    state.deleted = Deleted::load(header.deleted_first, header.deleted_next, pages.iter().map(Vec::as_slice))?;
    if state.records.len() as u64 != header.records {
        return Err(format!("{} records are there, the header says {}", state.records.len(), header.records));
    }
    state.dirty.clear();
    state.dirty_bytes = 0;
    Ok((state, header))
}

fn load_record(state: &mut State, kind: RecordKind, id: Uuid, value: &[u8]) -> Result<(), String> {
    let record = Record::decode(value).map_err(|error| format!("{kind} {id}: {error}"))?;
    if (record.kind, record.id) != (kind, id) {
        return Err(format!("{kind} {id}: another record is in its place"));
    }
    if record.revision > state.version {
        return Err(format!("{kind} {id}: it is newer than the catalog"));
    }
    if let Some(owner) = record.keys.iter().find_map(|key| state.taken.get(key)) {
        return Err(format!("{kind} {id}: a unique key of it belongs to {} {} too", owner.0, owner.1));
    }
    state.insert(record);
    Ok(())
}

/// Layout of one value in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Laid {
    chunks: u16,
    hash: u64,
}

/// Store with the known layout of its values. One seal or install runs at a time.
#[derive(Debug)]
pub struct Stored {
    kv: Arc<dyn Kv>,
    laid: BTreeMap<Name, Laid>,
}

impl Stored {
    /// Opens a store. An unused store is initialized with an empty catalog.
    pub fn open(kv: Arc<dyn Kv>) -> Result<Result<(Stored, State), String>, KvError> {
        if kv.entries() == 0 {
            let (mut stored, state) = (Stored { kv, laid: BTreeMap::new() }, State::empty());
            stored.write(Header::of(&state), vec![(Name::Membership, Some(Vec::new()))])?;
            return Ok(Ok((stored, state)));
        }
        let entries = kv.scan(b"")?;
        Ok(Stored::load(kv, &entries))
    }

    fn load(kv: Arc<dyn Kv>, entries: &[(Vec<u8>, Vec<u8>)]) -> Result<(Stored, State), String> {
        let (values, laid) = join_chunks(entries)?;
        let stored = Stored { kv, laid };
        let (state, header) = load_state(values)?;
        let (keys, sum) = stored.totals();
        if (keys, stored.kv.entries()) != (header.entries, header.entries) {
            return Err(format!("{keys} keys are there, the header says {}", header.entries));
        }
        if sum != header.sum {
            return Err("some values are older than the header, or newer".into());
        }
        Ok((stored, state))
    }

    /// Writes the changes and the header in one commit. After an error the content of the store is unknown.
    pub fn write(&mut self, header: Header, changes: Vec<(Name, Option<Vec<u8>>)>) -> Result<(), KvError> {
        let mut batch = Batch::default();
        for (name, value) in changes {
            self.lay(&mut batch, name, value.as_deref());
        }
        self.laid.insert(Name::Header, Laid { chunks: 1, hash: 0 }); // one key, whatever it says
        let (entries, sum) = self.totals();
        let header = Header { entries, sum, ..header }.encode();
        debug_assert!(header.len() + CHUNK_HEAD_BYTES <= VALUE_BYTES_MAX, "the header is one chunk");
        self.lay(&mut batch, Name::Header, Some(&header));
        self.kv.commit(&batch)
    }

    /// Replaces the content of the store with these values in one commit.
    pub fn replace(&mut self, header: Header, values: Vec<(Name, Vec<u8>)>) -> Result<(), KvError> {
        let gone: Vec<Name> = self.laid.keys().copied().filter(|name| *name != Name::Header).collect();
        let mut changes: BTreeMap<Name, Option<Vec<u8>>> = gone.into_iter().map(|name| (name, None)).collect();
        changes.extend(values.into_iter().map(|(name, value)| (name, Some(value))));
        changes.remove(&Name::Header);
        self.write(header, changes.into_iter().collect())
    }

    /// Fills a new store, which nothing names until it is complete.
    ///
    /// It commits [`FILLED_AT_ONCE_BYTES`] at a time, with the header in the last commit. A single commit would take
    /// many times its size in memory.
    pub fn fill(&mut self, header: Header, values: Vec<(Name, Vec<u8>)>) -> Result<(), KvError> {
        let (mut part, mut bytes) = (Vec::new(), 0);
        for (name, value) in values.into_iter().filter(|(name, _)| *name != Name::Header) {
            bytes += value.len();
            part.push((name, Some(value)));
            if bytes >= FILLED_AT_ONCE_BYTES {
                let mut batch = Batch::default();
                part.drain(..)
                    .for_each(|(name, value): (_, Option<Vec<u8>>)| self.lay(&mut batch, name, value.as_deref()));
                self.kv.commit(&batch)?;
                bytes = 0;
            }
        }
        self.write(header, part)
    }

    fn lay(&mut self, batch: &mut Batch, name: Name, value: Option<&[u8]>) {
        let before = self.laid.get(&name).map_or(0, |laid| laid.chunks);
        let mut chunks = 0;
        match value {
            Some(value) => {
                for (number, chunk) in split_chunks(value).into_iter().enumerate() {
                    chunks = u16::try_from(number + 1).expect("a value is at most a few hundred chunks");
                    batch.put(name.key(chunks - 1), chunk);
                }
                self.laid.insert(name, Laid { chunks, hash: hash64(value) });
            }
            None => {
                self.laid.remove(&name);
            }
        }
        for stale in chunks..before {
            batch.delete(name.key(stale));
        }
    }

    fn totals(&self) -> (u64, u64) {
        self.laid.iter().fold((0, 0), |(keys, sum), (name, laid)| {
            let hash = if *name == Name::Header { 0 } else { laid.hash };
            (keys + u64::from(laid.chunks), hash.wrapping_add(sum))
        })
    }
}

fn split_chunks(value: &[u8]) -> Vec<Vec<u8>> {
    let (head, rest) = value.split_at(value.len().min(VALUE_BYTES_MAX - CHUNK_HEAD_BYTES));
    let chunks = 1 + rest.len().div_ceil(VALUE_BYTES_MAX);
    let mut first = Vec::with_capacity(CHUNK_HEAD_BYTES + head.len());
    first.push(CHUNKED);
    first.extend_from_slice(&u16::try_from(chunks).expect("a value is at most a few hundred chunks").to_le_bytes());
    first.extend_from_slice(&u32::try_from(value.len()).expect("a value is at most a few MiB").to_le_bytes());
    first.extend_from_slice(&hash64(value).to_le_bytes());
    first.extend_from_slice(head);
    std::iter::once(first).chain(rest.chunks(VALUE_BYTES_MAX).map(<[u8]>::to_vec)).collect()
}

type Joined = (Vec<(Name, Vec<u8>)>, BTreeMap<Name, Laid>);

fn join_chunks(entries: &[(Vec<u8>, Vec<u8>)]) -> Result<Joined, String> {
    let (mut values, mut laid) = (Vec::new(), BTreeMap::new());
    let mut rest = entries;
    while let Some((key, _)) = rest.first() {
        let (name, mark, value, used) = join_one(rest).map_err(|what| format!("key {}: {what}", hex(key)))?;
        values.push((name, value));
        laid.insert(name, mark);
        rest = &rest[used..];
    }
    Ok((values, laid))
}

fn join_one(entries: &[(Vec<u8>, Vec<u8>)]) -> Result<(Name, Laid, Vec<u8>, usize), String> {
    let (key, first) = &entries[0];
    let (name, chunk) = split_key(key).ok_or("not a key of the catalog")?;
    let (head, mut value) = read_head(first).ok_or("the first chunk is truncated or has an unknown form")?;
    if chunk != 0 {
        return Err(format!("chunk {chunk} without the one before it"));
    }
    for number in 1..head.chunks {
        let (key, chunk) = entries.get(usize::from(number)).ok_or("chunks are missing")?;
        if split_key(key) != Some((name, number)) {
            return Err(format!("chunk {number} is missing"));
        }
        value.extend_from_slice(chunk);
    }
    if value.len() != head.length || hash64(&value) != head.hash {
        return Err("its chunks do not match its checksum".into());
    }
    Ok((name, Laid { chunks: head.chunks, hash: head.hash }, value, usize::from(head.chunks)))
}

struct ChunkHead {
    chunks: u16,
    length: usize,
    hash: u64,
}

fn read_head(first: &[u8]) -> Option<(ChunkHead, Vec<u8>)> {
    let (head, rest) = first.split_first_chunk::<CHUNK_HEAD_BYTES>()?;
    let chunks = u16::from_le_bytes(head[1..3].try_into().ok()?);
    let length = u32::from_le_bytes(head[3..7].try_into().ok()?) as usize;
    let hash = u64::from_le_bytes(head[7..15].try_into().ok()?);
    (head[0] == CHUNKED && chunks > 0).then(|| (ChunkHead { chunks, length, hash }, rest.to_vec()))
}

fn split_key(key: &[u8]) -> Option<(Name, u16)> {
    let (name, chunk) = key.split_last_chunk::<CHUNK_NUMBER_BYTES>()?;
    Some((Name::from_bytes(name)?, u16::from_be_bytes(*chunk)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
