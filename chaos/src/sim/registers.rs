//! Counters in the catalog, each changed by comparing its revision: no step may be lost, applied twice, or applied to
//! an outdated value.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use assay_storage_catalog::Catalog;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, RecordKind, UniqueKey};
use assay_storage_model::command::Outcome;
use assay_storage_model::{GroupId, NodeId, WriteFailure, WriteOutcome};
use bytes::Bytes;
use parking_lot::Mutex;
use uuid::Uuid;

use super::checked_machine::MachineState;
use super::world::SimWorld;

pub const REGISTERS: u64 = 3;

/// Results returned to clients.
#[derive(Debug, Default)]
pub struct CatalogRegisters(Mutex<BTreeMap<u64, RegisterHistory>>);

#[derive(Debug, Default)]
struct RegisterHistory {
    /// Steps that were acknowledged, by the revision that they made.
    made: BTreeMap<u64, u64>,
    /// Values that a step of unknown outcome would make.
    perhaps: BTreeSet<u64>,
}

fn id_of(number: u64, maker: u64) -> Uuid {
    Uuid::from_u128(0xa55a << 64 | u128::from(number) << 32 | u128::from(maker))
}

fn key_of(number: u64) -> UniqueKey {
    UniqueKey::new("register", number.to_string())
}

fn value_in(catalog: &Catalog, number: u64) -> Option<(Uuid, u64, u64)> {
    let state = catalog.read();
    let record = state.find(&key_of(number))?;
    let value = std::str::from_utf8(&record.body).ok()?.parse().ok()?;
    Some((record.id, record.revision, value))
}

impl CatalogRegisters {
    /// Reads a counter and makes it one more, through this node.
    pub async fn step(&self, world: &Arc<SimWorld>, node: NodeId, number: u64, maker: u64) {
        let Some(life) = world.life(node) else { return };
        let Some(running) = life.running(GroupId::CATALOG) else { return };
        let MachineState::Catalog(catalog) = &running.state else { return };
        let newest = self.newest(number);
        let fenced = tokio::select! {
            biased;
            () = life.died() => return,
            fenced = running.group.fence() => fenced,
        };
        if fenced.is_err() {
            return;
        }
        let found = value_in(catalog, number);
        if found.map(|(_, revision, _)| revision) < newest {
            world.facts.find(format!("register {number}: read {found:?} after revision {newest:?} was acknowledged"));
        }
        // What was read stays true only if nobody else was quicker; the command says so itself.
        let (id, expect, value) = match found {
            Some((id, revision, value)) => (id, Expect::Revision(revision), value + 1),
            None => (id_of(number, maker), Expect::Absent, 1),
        };
        let put = PutRecord {
            kind: RecordKind::CLUSTER_SETTING,
            id,
            org: None,
            expect,
            keys: vec![key_of(number)],
            body: value.to_string().into_bytes(),
            at: world.clock(node),
        };
        let Some(there) = world.leader(GroupId::CATALOG).and_then(|life| life.running(GroupId::CATALOG)) else {
            return;
        };
        let command = Bytes::from(CatalogCommand::Put(put).encode());
        let outcome = tokio::select! {
            biased;
            () = life.died() => Err(WriteFailure::Unknown { why: "the node ended".into() }),
            outcome = there.group.write(command) => outcome,
        };
        world.trace.say(format_args!("register {number}: {value} {outcome:?}"));
        self.told(world, number, value, outcome);
    }

    fn newest(&self, number: u64) -> Option<u64> {
        self.0.lock().get(&number)?.made.last_key_value().map(|(revision, _)| *revision)
    }

    fn told(&self, world: &SimWorld, number: u64, value: u64, outcome: WriteOutcome) {
        let mut all = self.0.lock();
        let told = all.entry(number).or_default();
        match outcome {
            Ok(Outcome::Catalog(CatalogOutcome::Put { revision, .. })) => {
                if let Some(other) = told.made.insert(revision, value) {
                    world.facts.find(format!("register {number}: revision {revision} was made as {other} and {value}"));
                }
            }
            Ok(Outcome::Catalog(CatalogOutcome::Stale { .. } | CatalogOutcome::Taken { .. })) => {}
            Ok(other) => world.facts.find(format!("register {number}: an answer that is none: {other:?}")),
            Err(WriteFailure::NotWritten(_)) => {}
            Err(WriteFailure::Unknown { .. }) => drop(told.perhaps.insert(value)),
        }
    }

    /// Compares the results with the final state.
    pub fn check(&self, catalog: &Catalog) -> Vec<String> {
        let mut findings = Vec::new();
        for (number, told) in &*self.0.lock() {
            let value = value_in(catalog, *number).map_or(0, |(_, _, value)| value);
            let mut acknowledged: Vec<u64> = told.made.values().copied().collect();
            if !acknowledged.is_sorted_by(|one, next| one < next) {
                findings.push(format!("register {number}: steps out of order: {acknowledged:?}"));
            }
            acknowledged.retain(|step| *step > value);
            if !acknowledged.is_empty() {
                findings.push(format!("register {number} is {value}; acknowledged were {acknowledged:?}"));
            }
            let made: BTreeSet<u64> = told.made.values().copied().collect();
            let nobody: Vec<u64> =
                (1..=value).filter(|step| !made.contains(step) && !told.perhaps.contains(step)).collect();
            if !nobody.is_empty() {
                findings.push(format!("register {number} is {value}; nobody made {nobody:?}"));
            }
        }
        findings
    }
}
