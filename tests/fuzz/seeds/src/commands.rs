//! One input of each kind that the target `command` decodes, preceded by its digit.

use assay_storage_model::catalog::{
    CatalogCommand, Expect, GiveIds, Members, PutRecord, Record, RecordKind, Replica, ShardMap, UniqueKey,
};
use assay_storage_model::command::{Action, Command, RequestId, RowOp, Write};
use assay_storage_model::entry::{EntryBuilder, blob_entry};
use assay_storage_model::segment::{FileKind, FileMeta, SEGMENT_FORMAT, SegmentMeta};
use assay_storage_model::{NodeId, ObjectKey, ObjectKind, OrgId, PaginationKey, ReplicaId, Xact};
use uuid::Uuid;

pub fn seeds() -> Vec<Vec<u8>> {
    let object = ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::Dataset, Uuid::from_u128(2));
    let write = write(object);
    let mut entry = EntryBuilder::default();
    entry.push(&write);
    entry.push(&Command::Advance { to: Xact::MAX }.encode());
    let replicas = vec![Replica { id: ReplicaId(300), node: NodeId(2) }];
    let members = Members { epoch: 1, replicas };
    let map = ShardMap { catalog: members.clone(), shards: vec![members.clone(), members] };
    let put = PutRecord {
        kind: RecordKind::PROJECT,
        id: Uuid::from_u128(9),
        org: Some(OrgId(Uuid::from_u128(1))),
        expect: Expect::Revision(300),
        keys: vec![UniqueKey::new("scope", "name")],
        body: b"{}".to_vec(),
        at: -2,
    };
    let record = Record {
        kind: put.kind,
        id: put.id,
        org: put.org,
        revision: 70_000,
        keys: put.keys.clone(),
        body: put.body.clone(),
        created: 1,
        changed: 2,
    };
    let behind = |digit: u8, bytes: &[u8]| [&[digit], bytes].concat();
    vec![
        behind(b'0', &write),
        behind(b'0', &Command::Advance { to: Xact::MAX }.encode()),
        behind(b'0', &Command::RaiseFloor { object, floor: Xact(300) }.encode()),
        behind(b'0', &Command::DropObject { object }.encode()),
        behind(b'1', &entry.finish()),
        behind(b'1', &blob_entry([7; 32], 9)),
        behind(b'2', &CatalogCommand::Put(put).encode()),
        behind(b'2', &CatalogCommand::SetShardMap(map.clone()).encode()),
        behind(b'2', &CatalogCommand::GiveIds(GiveIds { nodes: 1, replicas: 300 }).encode()),
        behind(b'3', &record.encode()),
        behind(b'4', &map.encode()),
        behind(b'5', &segment(object).encode()),
        behind(b'6', &crate::noise(99, 400)),
    ]
}

fn write(object: ObjectKey) -> Vec<u8> {
    let upsert = RowOp {
        id: "r",
        action: Action::Upsert,
        span_id: "s",
        root_span_id: "t",
        is_root: true,
        created: 1_790_000_000_000_001,
        doc: br#"{"id":"r","tags":["a"]}"#,
        rules: b"",
        audit: br#"{"source":"app","metadata":null}"#,
    };
    let rules = br#"{"merge_paths":[["a"]],"array_delete":[{"path":["tags"],"delete":["a"]}]}"#;
    let merge = RowOp { action: Action::Merge, doc: br#"{"a":{"b":1}}"#, rules, ..upsert.clone() };
    let rows = vec![upsert.clone(), merge, RowOp { action: Action::Delete, doc: b"{}", ..upsert }];
    let request = Some(RequestId { key: [1; 16], content: [2; 16] });
    Command::Write(Write { object, assigned: Xact::new(1, 2), request, rows }).encode()
}

fn segment(object: ObjectKey) -> SegmentMeta {
    SegmentMeta {
        seq: 7,
        format: SEGMENT_FORMAT,
        tier: 2,
        rows: 70_000,
        raw_bytes: 5_000_000_000,
        first_object: object,
        last_object: object,
        key_min: PaginationKey(300),
        key_max: PaginationKey(301),
        xact_min: Xact(4),
        xact_max: Xact(251),
        files: vec![FileMeta { kind: FileKind::Rows, length: 9, crc: 1 }],
    }
}
