//! Random histories against a naive catalog that searches a list of records, with seals, power cuts and replays.

use std::sync::Arc;

use assay_storage_catalog::{Catalog, Cursor, ListQuery};
use assay_storage_kv::{Kv, MemoryKv};
use assay_storage_model::LogPosition;
use assay_storage_model::catalog::{
    CatalogCommand, CatalogOutcome, DeleteRecord, Expect, GiveIds, PutRecord, Record, UniqueKey,
};
use assay_storage_model::{NodeId, ReplicaId};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::{KIND, at, entry, id, org};

const IDS: u128 = 6;
const NAMES: u8 = 5;

#[derive(Clone, Debug)]
enum Step {
    Do(CatalogCommand),
    Blank,
    Membership(Vec<u8>),
    Seal,
    /// Loss of all state except the store as of the last seal and the log.
    PowerCut,
    /// Start of another replica from an export.
    Install,
}

#[derive(Default)]
struct Naive {
    records: Vec<Record>,
    /// Ids of deleted records, each with its creation time.
    deleted: Vec<(u128, i64)>,
    version: u64,
    nodes: u64,
    replicas: u64,
}

impl Naive {
    fn apply(&mut self, command: &CatalogCommand) -> CatalogOutcome {
        match command {
            CatalogCommand::Put(put) => self.put(put),
            CatalogCommand::Delete(delete) => self.delete(delete),
            CatalogCommand::GiveIds(wanted) => {
                let first = (NodeId(self.nodes + 1), ReplicaId(self.replicas + 1));
                self.nodes += u64::from(wanted.nodes);
                self.replicas += u64::from(wanted.replicas);
                self.version += 1;
                CatalogOutcome::IdsGiven { first_node: first.0, first_replica: first.1 }
            }
            other => panic!("not made here: {other:?}"),
        }
    }

    fn stale(&self, wanted: uuid::Uuid, expect: Expect) -> Option<CatalogOutcome> {
        let found = self.records.iter().find(|record| record.id == wanted).map(|record| record.revision);
        let stale = match (expect, found) {
            (Expect::Any, _) | (Expect::Absent, None) => false,
            (Expect::Revision(wanted), Some(found)) => wanted != found,
            _ => true,
        };
        stale.then_some(CatalogOutcome::Stale { revision: found })
    }

    fn put(&mut self, put: &PutRecord) -> CatalogOutcome {
        if let Some(stale) = self.stale(put.id, put.expect) {
            return stale;
        }
        for key in &put.keys {
            for record in self.records.iter().filter(|record| record.id != put.id) {
                if record.keys.contains(key) {
                    return CatalogOutcome::Taken { key: key.clone(), kind: record.kind, id: record.id };
                }
            }
        }
        self.version += 1;
        let before = self.records.iter().position(|record| record.id == put.id).map(|place| self.records.remove(place));
        self.records.push(Record {
            kind: put.kind,
            id: put.id,
            org: put.org,
            revision: self.version,
            keys: put.keys.clone(),
            body: put.body.clone(),
            created: before.as_ref().map_or(put.at, |record| record.created),
            changed: put.at,
        });
        CatalogOutcome::Put { revision: self.version, made: before.is_none() }
    }

    fn delete(&mut self, delete: &DeleteRecord) -> CatalogOutcome {
        if let Some(stale) = self.stale(delete.id, delete.expect) {
            return stale;
        }
        let Some(place) = self.records.iter().position(|record| record.id == delete.id) else {
            return CatalogOutcome::Stale { revision: None };
        };
        let record = self.records.remove(place);
        self.deleted.push((record.id.as_u128(), record.created));
        self.version += 1;
        CatalogOutcome::Deleted { version: self.version }
    }

    /// Returns the records after the cursor, newest first, or `None` for an unknown cursor.
    fn list(&self, organization: u128, after: u128) -> Option<Vec<Record>> {
        let record = self.records.iter().find(|record| record.id == id(after));
        if record.is_some_and(|record| record.org != org(organization)) {
            return None;
        }
        let live = record.map(|record| record.created);
        let gone = self.deleted.iter().rev().find(|(gone, _)| *gone == after).map(|(_, created)| *created);
        let from = live.or(gone)?;
        let mut page: Vec<Record> = self.records.iter().filter(|r| r.org == org(organization)).cloned().collect();
        page.sort_by_key(|record| (-record.created, record.id));
        page.retain(|record| (-record.created, record.id) > (-from, id(after)));
        Some(page)
    }
}

/// Catalog under test, with the store and the log of its replica.
struct Replica {
    kv: Arc<MemoryKv>,
    catalog: Arc<Catalog>,
    log: Vec<(LogPosition, Logged)>,
}

#[derive(Clone)]
enum Logged {
    Entry(Bytes),
    Blank,
    Membership(Vec<u8>),
}

impl Replica {
    fn start(kv: Arc<MemoryKv>) -> Replica {
        let catalog = Catalog::open_on(Arc::clone(&kv) as Arc<dyn Kv>).expect("opens");
        Replica { kv, catalog, log: Vec::new() }
    }

    fn push(&mut self, logged: Logged) -> Option<CatalogOutcome> {
        let position = at(self.log.len() as u64);
        self.log.push((position, logged.clone()));
        play(&self.catalog, position, &logged)
    }

    fn power_cut(&mut self) {
        let fresh = Replica::start(Arc::new(self.kv.power_cut()));
        let sealed = fresh.catalog.sealed();
        assert_eq!(sealed, self.catalog.sealed());
        let since = sealed.position.map_or(0, |position| position.index as usize + 1);
        for (position, logged) in &self.log[since..] {
            play(&fresh.catalog, *position, logged);
        }
        self.check_same(&fresh.catalog);
        (self.kv, self.catalog) = (fresh.kv, fresh.catalog);
    }

    fn install(&mut self) {
        let export = self.catalog.export().expect("exports");
        let kv = Arc::new(MemoryKv::new());
        let other = Replica::start(Arc::clone(&kv));
        for number in 0..3 {
            let own = crate::put(100 + number, Expect::Any, &[], "of another life");
            other.catalog.apply(at(number as u64), &entry(&[own])).expect("applies");
        }
        other.catalog.seal().expect("seals");
        assert_eq!(other.catalog.install(&export.bytes).expect("installs"), export.applied);
        self.check_same(&other.catalog);
        let again = Replica::start(Arc::new(kv.power_cut()));
        self.check_same(&again.catalog);
        assert_eq!(again.catalog.sealed(), export.applied);
        (self.kv, self.catalog) = (again.kv, again.catalog);
    }

    fn check_same(&self, other: &Catalog) {
        assert_eq!(other.applied(), self.catalog.applied());
        assert_eq!(other.read().digest(), self.catalog.read().digest());
    }
}

fn play(catalog: &Catalog, position: LogPosition, logged: &Logged) -> Option<CatalogOutcome> {
    match logged {
        Logged::Blank => catalog.apply_blank(position).expect("applies"),
        Logged::Membership(bytes) => catalog.apply_membership(position, bytes).expect("applies"),
        Logged::Entry(bytes) => {
            let mut outcomes = catalog.apply(position, bytes).expect("applies");
            let Some(assay_storage_model::command::Outcome::Catalog(outcome)) = outcomes.pop() else {
                panic!("an outcome of the catalog");
            };
            return Some(outcome);
        }
    }
    None
}

fn check_equal(catalog: &Catalog, naive: &Naive) {
    let state = catalog.read();
    assert_eq!(state.version(), naive.version);
    assert_eq!(state.records(), naive.records.len());
    for record in &naive.records {
        assert_eq!(state.get(record.kind, record.id).map(|found| &**found), Some(record));
        for key in &record.keys {
            assert_eq!(state.find(key).map(|found| found.id), Some(record.id));
        }
    }
    for organization in 0..2 {
        for after in 0..IDS {
            let cursor = Some(Cursor::After(id(after)));
            let query = ListQuery { kind: KIND, org: org(organization), cursor, limit: usize::MAX };
            let found = state.list(&query, |_| true).ok();
            let found = found.map(|page| page.iter().map(|record| Record::clone(record)).collect::<Vec<_>>());
            assert_eq!(found, naive.list(organization, after));
        }
    }
}

fn commands() -> impl Strategy<Value = CatalogCommand> {
    let expect = prop_oneof![
        3 => Just(Expect::Any),
        2 => Just(Expect::Absent),
        2 => (0_u64..30).prop_map(Expect::Revision),
    ];
    let put = (0..IDS, 0..2_u128, expect.clone(), vec(0..NAMES, 0..3), 0..20_000_usize, 0..9_i64);
    let put = put.prop_map(|(number, organization, expect, names, length, at)| {
        let mut keys: Vec<_> = names.iter().map(|name| UniqueKey::new("s", name.to_string())).collect();
        keys.dedup();
        keys.sort();
        keys.dedup();
        // Most bodies are short, and some take several chunks.
        let length = if length > 15_000 { length } else { length % 50 };
        let body = vec![b'a' + (at as u8); length];
        CatalogCommand::Put(PutRecord { kind: KIND, id: id(number), org: org(organization), expect, keys, body, at })
    });
    let delete = (0..IDS, expect)
        .prop_map(|(number, expect)| CatalogCommand::Delete(DeleteRecord { kind: KIND, id: id(number), expect }));
    let give = (0..3_u32, 0..3_u32).prop_map(|(nodes, replicas)| CatalogCommand::GiveIds(GiveIds { nodes, replicas }));
    prop_oneof![6 => put, 3 => delete, 1 => give]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => commands().prop_map(Step::Do),
        1 => Just(Step::Blank),
        1 => vec(any::<u8>(), 0..9).prop_map(Step::Membership),
        2 => Just(Step::Seal),
        1 => Just(Step::PowerCut),
        1 => Just(Step::Install),
    ];
    vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_history_agrees_with_a_naive_catalog_across_seals_power_cuts_and_installs(steps in steps()) {
        let (mut replica, mut naive) = (Replica::start(Arc::new(MemoryKv::new())), Naive::default());
        for step in steps {
            match step {
                Step::Do(command) => {
                    let outcome = replica.push(Logged::Entry(entry(std::slice::from_ref(&command))));
                    prop_assert_eq!(outcome, Some(naive.apply(&command)));
                }
                Step::Blank => assert!(replica.push(Logged::Blank).is_none()),
                Step::Membership(bytes) => assert!(replica.push(Logged::Membership(bytes)).is_none()),
                Step::Seal => {
                    let sealed = replica.catalog.seal().expect("seals");
                    prop_assert_eq!(&sealed, &replica.catalog.applied());
                    prop_assert_eq!(replica.catalog.memory_bytes(), 0);
                }
                Step::PowerCut => replica.power_cut(),
                Step::Install => replica.install(),
            }
            check_equal(&replica.catalog, &naive);
        }
        replica.power_cut();
        check_equal(&replica.catalog, &naive);
    }
}
