//! Random rows, and the expected results from a plain list of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_storage_disk::{Disk, SharedDisk, SimulatedDisk};
use assay_storage_model::command::Action;
use assay_storage_model::event::format_micros;
use assay_storage_model::segment::{SegmentMeta, WHOLE_FORMAT};
use assay_storage_model::{ObjectKey, ObjectKind, PaginationKey, Xact};
use assay_storage_segments::{
    Columns, IdHit, Kind, Mark, OwnedRow, Segment, SegmentError, SegmentWriter, Typed, VersionRow, WriterOptions,
};
use bytes::Bytes;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

pub const DIR: &str = "/shard/segments";
const ACTIONS: [Action; 4] = [Action::Upsert, Action::Merge, Action::Delete, Action::Comment];

pub fn dir() -> PathBuf {
    PathBuf::from(DIR)
}

pub fn random(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Returns a disk with the directory of segments.
pub fn disk() -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    disk.create_dir_all(Path::new(DIR)).expect("an empty disk has room");
    disk
}

pub fn shared(disk: &SimulatedDisk) -> SharedDisk {
    Arc::new(disk.clone())
}

pub fn object(number: u8) -> ObjectKey {
    let mut bytes = [number; ObjectKey::BYTES];
    bytes[16] = ObjectKind::ProjectLogs as u8;
    ObjectKey::from_bytes(&bytes).expect("the kind exists")
}

/// Returns rows as a segment holds them: in order and numbered.
pub fn random_rows(random: &mut ChaCha8Rng, count: usize, doc_bytes_max: usize) -> Vec<OwnedRow> {
    let objects = random.random_range(1..5);
    let keys = random.random_range(1..count.max(2) as u64 * 2);
    let mut rows: Vec<OwnedRow> = (0..count)
        .map(|_| {
            let key = random.random_range(0..keys);
            let xact = random.random_range(1..100_000);
            let action = *ACTIONS.choose(random).expect("not empty");
            let mut row = OwnedRow {
                row: 0,
                object: object(random.random_range(0..objects)),
                key: PaginationKey(1 << 40 | key),
                xact: Xact(Xact::new(1_700_000_000, 0).0 + xact),
                end: random.random_bool(0.3).then(|| Xact(random.random())),
                action,
                id: random_id(random, key),
                span_id: random_id(random, key / 2),
                root_span_id: random_id(random, key / 20),
                is_root: random.random(),
                created: random.random(),
                doc: random_bytes(random, doc_bytes_max),
                patch: random.random_bool(0.3).then(|| random_bytes(random, 300)),
                rules: random.random_bool(0.1).then(|| random_bytes(random, 30)),
                audit: random.random_bool(0.1).then(|| random_bytes(random, 30)),
            };
            if random.random_bool(0.7) {
                row.doc = random_document(random, &row, doc_bytes_max).into();
            }
            row
        })
        .collect();
    in_order(&mut rows);
    rows
}

pub fn in_order(rows: &mut [OwnedRow]) {
    rows.sort_by_key(|row| (row.object, std::cmp::Reverse((row.key, row.xact))));
    (0..).zip(rows).for_each(|(number, row)| row.row = number);
}

/// Returns an id, which is mostly a UUID, and sometimes short, empty or not ASCII. Versions share ids.
fn random_id(random: &mut ChaCha8Rng, number: u64) -> String {
    match number % 10 {
        0 => String::new(),
        1 => format!("größe-{number}-🦀"),
        2 => format!("{number}").repeat(random.random_range(1..3)),
        _ => format!("{:08x}-1111-4222-8333-{:012x}", number as u32, number),
    }
}

/// Returns a usual document, or one as a newer program or a person might write it.
fn random_document(random: &mut ChaCha8Rng, row: &OwnedRow, text_bytes_max: usize) -> String {
    let created = format_micros(row.created);
    let mut members = vec![
        ("id", json!(row.id)),
        ("created", json!(created)),
        ("span_id", json!(row.span_id)),
        ("root_span_id", json!(row.root_span_id)),
        ("is_root", json!(row.is_root)),
    ];
    let text = "wörd \"and\" ".repeat(random.random_range(0..=text_bytes_max / 12));
    let user = [json!("u1"), json!("\n"), json!(7), Value::Null][random.random_range(0..4)].clone();
    let number = [json!(1), json!(2.5), json!(-0.0), json!(1_i64 << 60), json!("1")][random.random_range(0..5)].clone();
    members.push(("input", json!([{"role": "user", "content": text}])));
    members.push(("metadata", json!({"user": user, "n": number, "deep": {"flag": random.random::<bool>()}})));
    members.push(("metrics", json!({"start": random.random::<f64>(), "tokens": random.random_range(0..9)})));
    members.push(("output", [json!("plain"), json!({"a": []}), Value::Null][random.random_range(0..3)].clone()));
    members.retain(|_| random.random_bool(0.95));
    if random.random_bool(0.3) {
        let at = random.random_range(0..=members.len());
        members.insert(at, ("tags", json!(["p"])));
    }
    match random.random_range(0..20) {
        0 => members.push(("unknown", json!(1))),
        1 => members.push(("id", json!("another"))),
        2 => members.retain(|(name, _)| *name != "created"),
        _ => {}
    }
    let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    let document = format!("{{{}}}", members.join(","));
    match random.random_range(0..20) {
        0 => document.replacen(':', ": ", 1),
        1 => document.replacen("input", "inp\\u0075t", 1),
        2 => document + " ",
        _ => document,
    }
}

/// Returns paths of documents for which a segment makes columns.
pub fn typed() -> Vec<Typed> {
    let of = |path: &[&str], kind| Typed {
        path: path.iter().map(|key| (*key).to_owned()).collect(),
        kind,
        odd: Vec::new(),
        useless: false,
    };
    vec![
        of(&["metadata", "deep", "flag"], Kind::Bool),
        of(&["metadata", "n"], Kind::Float),
        of(&["metadata", "user"], Kind::Text),
        of(&["metrics", "start"], Kind::Float),
        of(&["metrics", "tokens"], Kind::Int),
    ]
}

/// Returns random bytes, half of which compress.
fn random_bytes(random: &mut ChaCha8Rng, max: usize) -> Bytes {
    let length = random.random_range(0..=max);
    let mut bytes = vec![b'{'; length];
    random.fill(&mut bytes[length / 2..]);
    Bytes::from(bytes)
}

pub fn version(row: &OwnedRow) -> VersionRow<'_> {
    VersionRow {
        object: row.object,
        key: row.key,
        xact: row.xact,
        end: row.end,
        action: row.action,
        id: &row.id,
        span_id: &row.span_id,
        root_span_id: &row.root_span_id,
        is_root: row.is_root,
        created: row.created,
        doc: &row.doc,
        patch: row.patch.as_deref(),
        rules: row.rules.as_deref(),
        audit: row.audit.as_deref(),
    }
}

pub fn write(disk: &SharedDisk, seq: u64, rows: &[OwnedRow], marks: &[Mark]) -> Result<SegmentMeta, SegmentError> {
    write_as(disk, seq, rows, marks, WHOLE_FORMAT)
}

pub fn write_as(
    disk: &SharedDisk,
    seq: u64,
    rows: &[OwnedRow],
    marks: &[Mark],
    format: u16,
) -> Result<SegmentMeta, SegmentError> {
    let options = WriterOptions::default();
    let mut writer = match format {
        WHOLE_FORMAT => SegmentWriter::create(Arc::clone(disk), &dir(), seq, options)?,
        _ => SegmentWriter::columnar(Arc::clone(disk), &dir(), seq, options, typed())?,
    };
    for (number, row) in (0..).zip(rows) {
        assert_eq!(writer.push(&version(row))?, number);
    }
    writer.finish(marks)
}

pub fn open(disk: &SharedDisk, meta: &SegmentMeta) -> Result<Arc<Segment>, SegmentError> {
    Segment::open(Arc::clone(disk), &dir(), meta)
}

/// Returns the part of a row that a read with these columns returns.
pub fn cut(row: &OwnedRow, what: Columns) -> OwnedRow {
    let mut row = row.clone();
    if what != Columns::All {
        (row.patch, row.rules, row.audit) = (None, None, None);
    }
    if what == Columns::Keys {
        row.doc = Bytes::new();
    }
    row
}

pub fn naive_find(rows: &[OwnedRow], object: ObjectKey, id: &str) -> Vec<IdHit> {
    let of_id = rows.iter().filter(|row| row.object == object && row.id == id);
    let mut hits: Vec<IdHit> = of_id
        .map(|row| IdHit { row: row.row, xact: row.xact, key: row.key, end: row.end, action: row.action })
        .collect();
    hits.sort_by_key(|hit| (std::cmp::Reverse(hit.xact), hit.row));
    hits
}

pub fn naive_trace(rows: &[OwnedRow], object: ObjectKey, root_span_id: &str) -> Vec<u32> {
    let of_trace = rows.iter().filter(|row| row.object == object && row.root_span_id == root_span_id);
    of_trace.map(|row| row.row).collect()
}

/// Returns the first row below the key, or the end of the object's rows.
pub fn naive_below(rows: &[OwnedRow], object: ObjectKey, key: PaginationKey) -> u32 {
    let of_object = rows.iter().filter(|row| row.object == object);
    let below = of_object.clone().find(|row| row.key < key).map(|row| row.row);
    below.unwrap_or_else(|| of_object.last().map_or(0, |row| row.row + 1))
}
