//! Manifest of a shard: the content of the key-value store besides segments, as of one seal.
//!
//! ```text
//! c                    counters: applied position, membership, last id, next segment number, request count
//! l                    numbers of the segments, oldest first
//! m/<segment>          description of the segment
//! o/<object>           record of an object: floor, dropped, counts
//! r/<run>/<page>       request ids (requests.rs)
//! ```
//! A compaction rewrites `c`, `l` and `m/`, but keeps the applied position. Nothing else changes between seals, so the
//! store is never ahead of the log.

use std::collections::BTreeMap;

use assay_storage_kv::{Batch, Kv};
use assay_storage_model::sabotage::{self, Sabotage};
use assay_storage_model::segment::{BadSegmentMeta, SegmentMeta};
use assay_storage_model::{Applied, LogPosition, ObjectKey, Xact};
use serde_json::{Value, json};

use crate::error::ShardError;
use crate::requests::{self, Requests};

const COUNTERS: &[u8] = b"c";
const SEGMENT_ORDER: &[u8] = b"l";
const SEGMENT_PREFIX: &[u8] = b"m/";
const OBJECT_PREFIX: &[u8] = b"o/";
const KEPT_VERSION: u64 = 1;

/// Record of an object besides its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectRecord {
    /// Oldest readable version. History that ended at or below it may be removed.
    pub floor: Xact,
    pub dropped: bool,
    /// Number of live rows.
    pub rows: u64,
    /// Number of comments on ids of this object. Readers skip the lookup if there are none.
    pub comments: u64,
    /// Id of the last write.
    pub last: Xact,
    /// CRC32C chained over every written version. It is equal on replicas that applied the same entries.
    pub digest: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub applied: Applied,
    pub last: Xact,
    pub next_segment: u64,
    pub requests: u64,
}

/// Entire stored state.
#[derive(Debug)]
pub struct Manifest {
    pub counters: Counters,
    pub segments: Vec<SegmentMeta>,
    pub objects: BTreeMap<ObjectKey, ObjectRecord>,
    pub requests: Requests,
}

impl Manifest {
    pub fn load(kv: &dyn Kv) -> Result<Manifest, ShardError> {
        let counters = match kv.get(COUNTERS)? {
            Some(bytes) => decode_counters(&bytes)?,
            None if kv.entries() == 0 => Counters::default(),
            None => return Err(ShardError::Damaged("the kept state has entries but no counters".into())),
        };
        let objects = load_objects(kv)?;
        let requests = Requests::load(&kv.scan(requests::PREFIX)?, counters.requests)?;
        Ok(Manifest { segments: load_segments(kv)?, counters, objects, requests })
    }
}

/// Returns the object records as of the last seal.
pub fn load_objects(kv: &dyn Kv) -> Result<BTreeMap<ObjectKey, ObjectRecord>, ShardError> {
    let mut objects = BTreeMap::new();
    for (key, value) in kv.scan(OBJECT_PREFIX)? {
        let object = ObjectKey::from_bytes(&key[OBJECT_PREFIX.len()..])
            .ok_or_else(|| ShardError::Damaged(format!("an object record with the key {key:02x?}")))?;
        objects.insert(object, decode_object(&value)?);
    }
    Ok(objects)
}

fn load_segments(kv: &dyn Kv) -> Result<Vec<SegmentMeta>, ShardError> {
    let order = kv.get(SEGMENT_ORDER)?.unwrap_or_default();
    let mut described = BTreeMap::new();
    for (key, value) in kv.scan(SEGMENT_PREFIX)? {
        let meta = SegmentMeta::decode(&value).map_err(|why| match why {
            BadSegmentMeta::Newer(_) => ShardError::Newer(why.to_string()),
            BadSegmentMeta::Body(_) => ShardError::Damaged(format!("the description of segment {key:02x?}: {why}")),
        })?;
        described.insert(meta.seq, meta);
    }
    let mut segments = Vec::new();
    for seq in order.chunks(8) {
        let seq = seq
            .try_into()
            .map(u64::from_be_bytes)
            .map_err(|_| ShardError::Damaged("the list of segments is truncated".into()))?;
        let meta = described
            .remove(&seq)
            .ok_or_else(|| ShardError::Damaged(format!("segment {seq} is listed but not described")))?;
        segments.push(meta);
    }
    match described.keys().next() {
        Some(seq) => Err(ShardError::Damaged(format!("segment {seq} is described but not listed"))),
        None => Ok(segments),
    }
}

pub fn put_counters(batch: &mut Batch, counters: &Counters) {
    let off = u64::from(sabotage::is(Sabotage::SnapshotOffByOne));
    let position = counters.applied.position.map(|p| json!([p.term, p.replica, p.index + off]));
    let value = json!({
        "version": KEPT_VERSION,
        "position": position,
        "membership": hex(&counters.applied.membership),
        "last": counters.last.0,
        "next_segment": counters.next_segment,
        "requests": counters.requests,
    });
    batch.put(COUNTERS, value.to_string().as_bytes());
}

pub fn put_object(batch: &mut Batch, object: &ObjectKey, record: &ObjectRecord) {
    let value = json!({
        "version": KEPT_VERSION,
        "floor": record.floor.0,
        "dropped": record.dropped,
        "rows": record.rows,
        "comments": record.comments,
        "last": record.last.0,
        "digest": record.digest,
    });
    batch.put([OBJECT_PREFIX, &object.to_bytes()].concat(), value.to_string().as_bytes());
}

pub fn put_segment(batch: &mut Batch, meta: &SegmentMeta) {
    batch.put(segment_key(meta.seq), meta.encode());
}

pub fn delete_segment(batch: &mut Batch, seq: u64) {
    batch.delete(segment_key(seq));
}

pub fn put_order(batch: &mut Batch, order: impl Iterator<Item = u64>) {
    let bytes: Vec<u8> = order.flat_map(u64::to_be_bytes).collect();
    batch.put(SEGMENT_ORDER, bytes);
}

fn segment_key(seq: u64) -> Vec<u8> {
    [SEGMENT_PREFIX, &seq.to_be_bytes()].concat()
}

fn decode_counters(bytes: &[u8]) -> Result<Counters, ShardError> {
    let value = decode(bytes, "the counters")?;
    let position = match &value["position"] {
        Value::Null => None,
        list => Some(LogPosition {
            term: number(list, 0_usize, "term")?,
            replica: number(list, 1_usize, "replica")?,
            index: number(list, 2_usize, "index")?,
        }),
    };
    let membership = value["membership"].as_str().and_then(unhex);
    Ok(Counters {
        applied: Applied { position, membership: membership.ok_or_else(|| missing("membership"))? },
        last: Xact(number(&value, "last", "last")?),
        next_segment: number(&value, "next_segment", "next_segment")?,
        requests: number(&value, "requests", "requests")?,
    })
}

fn decode_object(bytes: &[u8]) -> Result<ObjectRecord, ShardError> {
    let value = decode(bytes, "an object record")?;
    Ok(ObjectRecord {
        floor: Xact(number(&value, "floor", "floor")?),
        dropped: value["dropped"].as_bool().ok_or_else(|| missing("dropped"))?,
        rows: number(&value, "rows", "rows")?,
        comments: number(&value, "comments", "comments")?,
        last: Xact(number(&value, "last", "last")?),
        digest: u32::try_from(number(&value, "digest", "digest")?).map_err(|_| missing("digest"))?,
    })
}

fn decode(bytes: &[u8], what: &str) -> Result<Value, ShardError> {
    let value: Value = serde_json::from_slice(bytes).map_err(|why| ShardError::Damaged(format!("{what}: {why}")))?;
    match value["version"].as_u64() {
        Some(KEPT_VERSION) => Ok(value),
        Some(newer) => Err(ShardError::Newer(format!(
            "{what} has version {newer}, this program supports {KEPT_VERSION}: upgrade the program"
        ))),
        None => Err(missing("version")),
    }
}

fn number(value: &Value, index: impl serde_json::value::Index, name: &str) -> Result<u64, ShardError> {
    value.get(index).and_then(Value::as_u64).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> ShardError {
    ShardError::Damaged(format!("the kept state lacks `{name}`"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[i * 2..i * 2 + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use assay_storage_kv::MemoryKv;
    use assay_storage_model::{ObjectKind, OrgId};

    use super::*;

    #[test]
    fn what_is_kept_reads_back() {
        let kv = MemoryKv::default();
        let object = ObjectKey::new(OrgId(Default::default()), ObjectKind::Dataset, Default::default());
        let record =
            ObjectRecord { floor: Xact(5), dropped: true, rows: 3, comments: 1, last: Xact(9), digest: u32::MAX };
        let position = Some(LogPosition { term: 3, replica: 1, index: u64::MAX });
        let counters = Counters {
            applied: Applied { position, membership: vec![0, 255, 16] },
            last: Xact::new(7, 7),
            next_segment: 12,
            requests: 4,
        };
        let mut batch = Batch::default();
        put_counters(&mut batch, &counters);
        put_object(&mut batch, &object, &record);
        kv.commit(&batch).expect("commits");
        let kept = Manifest::load(&kv).expect("loads");
        assert_eq!(kept.counters, counters);
        assert_eq!(kept.objects, BTreeMap::from([(object, record)]));
    }

    #[test]
    fn a_newer_or_headless_state_is_refused() {
        let kv = MemoryKv::default();
        let mut batch = Batch::default();
        batch.put("m/unknown", "x");
        kv.commit(&batch).expect("commits");
        assert!(matches!(Manifest::load(&kv), Err(ShardError::Damaged(_))));
        let mut batch = Batch::default();
        batch.put(COUNTERS, r#"{"version": 2}"#);
        kv.commit(&batch).expect("commits");
        let refused = Manifest::load(&kv).expect_err("newer");
        assert!(refused.to_string().contains("upgrade") && !refused.is_damage(), "{refused}");

        let kv = MemoryKv::default();
        let mut batch = Batch::default();
        put_counters(&mut batch, &Counters::default());
        batch.put(segment_key(1), [u8::MAX, 0]);
        kv.commit(&batch).expect("commits");
        let refused = Manifest::load(&kv).expect_err("newer");
        assert!(matches!(refused, ShardError::Newer(_)), "{refused}");
    }
}
