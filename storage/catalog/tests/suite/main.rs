//! Tests of the catalog's public interface: commands and outcomes, lists, durability, detection of damage.

mod commands;
mod lists;
mod model;
mod shard_map;
mod stored;

use std::sync::Arc;

use assay_storage_catalog::Catalog;
use assay_storage_kv::{Kv, MemoryKv};
use assay_storage_model::catalog::{
    CatalogCommand, CatalogOutcome, DeleteRecord, Expect, PutRecord, RecordKind, UniqueKey,
};
use assay_storage_model::command::Outcome;
use assay_storage_model::entry::EntryBuilder;
use assay_storage_model::{LogPosition, OrgId};
use bytes::Bytes;
use uuid::Uuid;

pub const KIND: RecordKind = RecordKind::PROJECT;

pub fn org(number: u128) -> Option<OrgId> {
    (number > 0).then_some(OrgId(Uuid::from_u128(number)))
}

pub fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

pub fn at(index: u64) -> LogPosition {
    LogPosition { term: 1, replica: 1, index }
}

pub fn empty() -> (Arc<MemoryKv>, Arc<Catalog>) {
    let kv = Arc::new(MemoryKv::new());
    let catalog = Catalog::open_on(Arc::clone(&kv) as Arc<dyn Kv>).expect("an empty store opens");
    (kv, catalog)
}

pub fn entry(commands: &[CatalogCommand]) -> Bytes {
    let mut builder = EntryBuilder::default();
    commands.iter().for_each(|command| builder.push(&command.encode()));
    builder.finish()
}

/// Applies one command as the next entry.
pub fn apply(catalog: &Catalog, command: CatalogCommand) -> CatalogOutcome {
    let next = catalog.applied().position.map_or(0, |position| position.index + 1);
    let mut outcomes = catalog.apply(at(next), &entry(&[command])).expect("applies");
    match (outcomes.pop(), outcomes.is_empty()) {
        (Some(Outcome::Catalog(outcome)), true) => outcome,
        other => panic!("one outcome of the catalog, not {other:?}"),
    }
}

pub fn put(number: u128, expect: Expect, names: &[&str], body: &str) -> CatalogCommand {
    CatalogCommand::Put(PutRecord {
        kind: KIND,
        id: id(number),
        org: org(1),
        expect,
        keys: names.iter().map(|name| UniqueKey::new("project.name/1", *name)).collect(),
        body: body.as_bytes().to_vec(),
        at: number as i64,
    })
}

pub fn delete(number: u128, expect: Expect) -> CatalogCommand {
    CatalogCommand::Delete(DeleteRecord { kind: KIND, id: id(number), expect })
}
