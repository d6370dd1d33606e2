//! A shard to read pages from: a log with a floor, a dataset and a deleted log, in two segments and in memory. Made
//! once, the same every time.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use assay_node_objects::RowHome;
use assay_storage_blobs::Blobs;
use assay_storage_disk::SimulatedDisk;
use assay_storage_kv::MemoryKv;
use assay_storage_model::command::{Command, Outcome, RowOp, Write};
use assay_storage_model::entry::EntryBuilder;
use assay_storage_model::event::{PrepareContext, PreparedRow, prepare};
use assay_storage_model::{LogPosition, ObjectKey, ObjectKind, OrgId, Xact};
use assay_storage_shard::{KvKind, Shard, ShardConfig, View};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::NOW_MICROS;

const WRITES: u64 = 60;
const SEALED_AFTER: [u64; 2] = [20, 40];
const ROWS_PER_WRITE: u64 = 3;
const IDS: u64 = 40;
const IDS_PER_TRACE: u64 = 3;
/// The write whose version is the floor of the first object.
const FLOOR_WRITE: usize = 8;

pub struct World {
    pub view: View,
    pub homes: Vec<RowHome>,
    /// Versions of all writes, oldest first.
    pub versions: Vec<Xact>,
    /// Floor of the first object.
    pub floor: Xact,
}

pub static WORLD: LazyLock<World> = LazyLock::new(made);

/// The last object is gone.
fn homes() -> Vec<RowHome> {
    let (org, project_id) = (OrgId(Uuid::from_u128(7)), Uuid::from_u128(8));
    let kinds = [ObjectKind::ProjectLogs, ObjectKind::Dataset, ObjectKind::Experiment];
    let object = |(kind, n): (ObjectKind, u128)| ObjectKey::new(org, kind, Uuid::from_u128(n));
    kinds.into_iter().zip(1..).map(object).map(|object| RowHome { object, org, project_id }).collect()
}

fn made() -> World {
    let disk = Arc::new(SimulatedDisk::new());
    let blobs = Arc::new(Blobs::open(disk.clone(), &PathBuf::from("/blobs")).expect("opens"));
    let kv = KvKind::Given(Arc::new(MemoryKv::new()));
    let shard = Shard::open(ShardConfig { disk, dir: PathBuf::from("/shard"), blobs, kv }).expect("opens");
    let (homes, mut versions, mut index) = (homes(), Vec::new(), 0);
    let mut apply = |command: Command<'_>| {
        let mut entry = EntryBuilder::default();
        entry.push(&command.encode());
        index += 1;
        let outcomes = shard.apply(LogPosition { term: 1, replica: 1, index }, &entry.finish());
        outcomes.expect("applies").pop().expect("one command, one outcome")
    };
    let mut dice = Dice(1);
    for write in 1..=WRITES {
        let object = homes[dice.below(4) as usize % homes.len()].object;
        let rows: Vec<PreparedRow> = (0..ROWS_PER_WRITE).map(|_| row(object.kind, &mut dice)).collect();
        let rows: Vec<RowOp<'_>> = rows.iter().map(PreparedRow::as_op).collect();
        let assigned = Xact::new(1_790_000_000 + write as u32, 0);
        let outcome = apply(Command::Write(Write { object, assigned, request: None, rows }));
        let Outcome::Written { xact } = outcome else { panic!("{outcome:?}") };
        versions.push(xact);
        if SEALED_AFTER.contains(&write) {
            shard.seal().expect("seals");
        }
    }
    let floor = versions[FLOOR_WRITE];
    apply(Command::RaiseFloor { object: homes[0].object, floor });
    apply(Command::DropObject { object: homes[2].object });
    World { view: shard.view(), homes, versions, floor }
}

fn row(kind: ObjectKind, dice: &mut Dice) -> PreparedRow {
    let number = dice.below(IDS);
    let (id, root) = (format!("row-{number}"), format!("trace-{}", number / IDS_PER_TRACE));
    let sent = match dice.below(10) {
        0 => json!({"id": id, "_object_delete": true}),
        1 => json!({"comment": {"text": "é"}, "origin": {"id": id}, "_audit_source": "app"}),
        2..6 => json!({"id": id, "root_span_id": root, "_is_merge": true, "metadata": {"n": number}, "tags": ["t"],
            "_audit_metadata": {"by": "u"}}),
        _ => {
            json!({"id": id, "root_span_id": root, "span_parents": ["p"], "input": "x".repeat(dice.below(300) as usize)})
        }
    };
    prepared(kind, sent, dice)
}

fn prepared(kind: ObjectKind, sent: Value, dice: &mut Dice) -> PreparedRow {
    let context = &mut PrepareContext { now_micros: NOW_MICROS, new_id: &mut || format!("made-{}", dice.below(9)) };
    prepare(kind, 0, sent, context).expect("a good row")
}

/// Deterministic numbers, the same on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
