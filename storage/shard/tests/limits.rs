//! Limits and conditions on the effect of one write on a shard, regardless of the proposer.

use std::path::PathBuf;
use std::sync::Arc;

use assay_storage_blobs::Blobs;
use assay_storage_disk::SimulatedDisk;
use assay_storage_kv::MemoryKv;
use assay_storage_model::command::{Action, Command, ConditionalWrite, ExpectedRow, Outcome, RowOp, Write};
use assay_storage_model::entry::EntryBuilder;
use assay_storage_model::merge::FOLDED_BYTES_MAX;
use assay_storage_model::{LogPosition, ObjectKey, ObjectKind, OrgId, Xact};
use assay_storage_shard::{KvKind, Shard, ShardConfig};
use uuid::Uuid;

fn shard() -> Arc<Shard> {
    let disk = Arc::new(SimulatedDisk::new());
    let blobs = Arc::new(Blobs::open(disk.clone(), &PathBuf::from("/blobs")).expect("opens"));
    let kv = KvKind::Given(Arc::new(MemoryKv::new()));
    Shard::open(ShardConfig { disk, dir: PathBuf::from("/shard"), blobs, kv }).expect("opens")
}

fn object() -> ObjectKey {
    ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::ProjectLogs, Uuid::from_u128(2))
}

fn apply(shard: &Shard, index: u64, rows: Vec<RowOp<'_>>) -> Outcome {
    let write = Write { object: object(), assigned: Xact::ZERO, request: None, rows };
    apply_command(shard, index, &Command::Write(write))
}

fn apply_command(shard: &Shard, index: u64, command: &Command<'_>) -> Outcome {
    let mut entry = EntryBuilder::default();
    entry.push(&command.encode());
    let outcomes = shard.apply(LogPosition { term: 1, replica: 1, index }, &entry.finish());
    outcomes.expect("applies").pop().expect("one command, one outcome")
}

fn row(action: Action, doc: &[u8]) -> RowOp<'_> {
    RowOp { id: "r", action, span_id: "r", root_span_id: "r", is_root: true, created: 0, doc, rules: b"", audit: b"" }
}

/// Tests merges onto a large row. Each merge makes a new row, which is held until the write is applied.
///
/// Thousands of merges onto a large row would exhaust the memory of the node, and again at every start.
#[test]
fn merges_onto_a_large_row_are_refused_before_they_take_the_memory() {
    let shard = shard();
    let large = format!(r#"{{"id":"r","input":"{}"}}"#, "x".repeat(8 << 20));
    let merge = row(Action::Merge, br#"{"output":1}"#);
    let most = FOLDED_BYTES_MAX / large.len() - 1;
    assert!(matches!(apply(&shard, 1, vec![row(Action::Upsert, large.as_bytes())]), Outcome::Written { .. }));
    let before = (shard.last(), shard.memory_bytes());

    let Outcome::Refused { row, reason } = apply(&shard, 2, vec![merge.clone(); 10_000]) else { panic!("is refused") };
    assert!(row as usize <= most + 1 && reason.contains("in several requests"), "row {row}: {reason}");
    assert_eq!((shard.last(), shard.memory_bytes()), before, "nothing changed");
    assert!(matches!(apply(&shard, 3, vec![merge; most]), Outcome::Written { .. }));
}

/// Tests comments on one row. Each is compared with the existing ones, and single reads would stop the shard for hours.
#[test]
fn thousands_of_comments_on_one_row_take_no_squared_time() {
    let shard = shard();
    let write = |index, ids: std::ops::Range<usize>| {
        let ids: Vec<String> = ids.map(|n| n.to_string()).collect();
        let comment = row(Action::Comment, br#"{"id":"c","comment":{"text":"t"}}"#);
        apply(&shard, index, ids.iter().map(|id| RowOp { span_id: id, ..comment.clone() }).collect())
    };
    assert!(matches!(write(1, 0..4000), Outcome::Written { .. }));
    shard.seal().expect("seals");
    assert!(matches!(write(2, 2000..6000), Outcome::Written { .. }), "half of them were there and are replaced");
    assert!(matches!(write(3, 5000..6000), Outcome::Written { .. }));
    assert_eq!(shard.object(&object()).map(|object| object.comments), Some(6000));
    let notes = shard.view().notes(&object(), &["r"], shard.last()).expect("reads");
    assert_eq!(notes["r"].comments.len(), 6000, "each once");
}

/// Tests that a write with conditions takes effect only on the versions that its author read, in memory and on disk.
#[test]
fn a_conditional_write_changes_the_expected_versions_only() {
    let shard = shard();
    let conditional = |index, versions: [Xact; 2]| {
        let rows = vec![
            RowOp { id: "a", ..row(Action::Merge, br#"{"output":1}"#) },
            RowOp { id: "b", ..row(Action::Upsert, br#"{"id":"b"}"#) },
        ];
        let expected = (0..).zip(versions).map(|(row, version)| ExpectedRow { row, version }).collect();
        let write = Write { object: object(), assigned: Xact::ZERO, request: None, rows };
        apply_command(&shard, index, &Command::ConditionalWrite(ConditionalWrite { write, expected }))
    };
    let plain = |index, id, action| apply(&shard, index, vec![RowOp { id, ..row(action, br#"{"id":"x"}"#) }]);
    let Outcome::Written { xact: first } = plain(1, "a", Action::Upsert) else { panic!("written") };
    assert_eq!(conditional(2, [Xact::ZERO, Xact::ZERO]), Outcome::Conflict { row: 0 });
    assert_eq!(conditional(3, [first, first]), Outcome::Conflict { row: 1 });
    assert_eq!(shard.last(), first, "nothing changed");
    let Outcome::Written { xact: second } = conditional(4, [first, Xact::ZERO]) else { panic!("written") };
    shard.seal().expect("seals");
    assert_eq!(conditional(5, [first, second]), Outcome::Conflict { row: 0 });
    let Outcome::Written { xact: third } = conditional(6, [second, second]) else { panic!("written") };
    assert!(matches!(plain(7, "a", Action::Delete), Outcome::Written { .. }));
    assert_eq!(conditional(8, [third, third]), Outcome::Conflict { row: 0 });
    assert!(matches!(conditional(9, [Xact::ZERO, third]), Outcome::Written { .. }), "the deleted row is absent");
}
