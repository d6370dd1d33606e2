//! Application of one command to the state.
//!
//! The outcome depends only on the state and the command. A refused or late command changes nothing.

use std::sync::Arc;

use assay_storage_model::catalog::{
    CatalogCommand, CatalogOutcome, ChangeReplicas, DeleteRecord, Expect, GiveIds, Members, PutRecord, Record, Replica,
    ShardMap, UniqueKey,
};
use assay_storage_model::{NodeId, ReplicaId};

use crate::deleted::DeletedRecord;
use crate::rules::{check, refuse_if};
use crate::state::{RecordName, State};
use crate::stored::Name;

/// Approximate size of a shard map, for the size of the next seal.
const MAP_BYTES: usize = 4096;

impl State {
    pub(crate) fn apply(&mut self, command: CatalogCommand) -> CatalogOutcome {
        if let Err(reason) = check(&command) {
            return CatalogOutcome::Refused { reason };
        }
        match command {
            CatalogCommand::Put(put) => self.put(put),
            CatalogCommand::Delete(delete) => self.delete(&delete),
            CatalogCommand::SetShardMap(map) => self.set_shard_map(map),
            CatalogCommand::ChangeReplicas(change) => self.change_replicas(change),
            CatalogCommand::GiveIds(wanted) => self.give_ids(wanted),
        }
    }

    fn put(&mut self, put: PutRecord) -> CatalogOutcome {
        let name = (put.kind, put.id);
        if let Err(stale) = self.expect(name, put.expect) {
            return stale;
        }
        if let Some(taken) = put.keys.iter().find_map(|key| self.taken_by_another(key, name)) {
            return taken;
        }
        let before = self.remove(name);
        self.version += 1;
        self.changed.insert(put.kind, self.version);
        let made = before.is_none();
        let created = before.map_or(put.at, |record| record.created);
        let PutRecord { kind, id, org, keys, body, at, .. } = put;
        self.insert(Record { kind, id, org, revision: self.version, keys, body, created, changed: at });
        CatalogOutcome::Put { revision: self.version, made }
    }

    fn delete(&mut self, delete: &DeleteRecord) -> CatalogOutcome {
        let name = (delete.kind, delete.id);
        if let Err(stale) = self.expect(name, delete.expect) {
            return stale;
        }
        let Some(record) = self.remove(name) else {
            return CatalogOutcome::Stale { revision: None };
        };
        self.version += 1;
        self.changed.insert(record.kind, self.version);
        let (page, forgotten) =
            self.deleted.push(DeletedRecord { kind: record.kind, id: record.id, created: record.created });
        for page in [Some(page), forgotten].into_iter().flatten() {
            self.mark(Name::Deleted(page), 64);
        }
        CatalogOutcome::Deleted { version: self.version }
    }

    fn expect(&self, name: RecordName, expect: Expect) -> Result<(), CatalogOutcome> {
        let revision = self.records.get(&name).map(|record| record.revision);
        let holds = match expect {
            Expect::Absent => revision.is_none(),
            Expect::Revision(wanted) => revision == Some(wanted),
            Expect::Any => true,
        };
        if holds { Ok(()) } else { Err(CatalogOutcome::Stale { revision }) }
    }

    fn taken_by_another(&self, key: &UniqueKey, name: RecordName) -> Option<CatalogOutcome> {
        let owner = *self.taken.get(key)?;
        (owner != name).then(|| CatalogOutcome::Taken { key: key.clone(), kind: owner.0, id: owner.1 })
    }

    fn set_shard_map(&mut self, map: ShardMap) -> CatalogOutcome {
        if self.map.is_some() {
            return CatalogOutcome::MapWasSet;
        }
        let replicas: Vec<Replica> = map.replicas().copied().collect();
        for Replica { id, node } in replicas {
            self.highest_replica_placed = self.highest_replica_placed.max(id.0);
            self.next_replica = self.next_replica.max(id.0.saturating_add(1));
            self.next_node = self.next_node.max(node.0.saturating_add(1));
        }
        self.keep_map(map);
        CatalogOutcome::MapSet { version: self.version }
    }

    fn change_replicas(&mut self, change: ChangeReplicas) -> CatalogOutcome {
        let Some(mut map) = self.map.as_deref().cloned() else {
            return CatalogOutcome::Refused { reason: "there is no shard map yet".into() };
        };
        let Some(members) = map.group_mut(change.group) else {
            return CatalogOutcome::Refused { reason: format!("there is no group {}", change.group) };
        };
        if members.epoch != change.expect_epoch {
            return CatalogOutcome::StaleEpoch { epoch: members.epoch };
        }
        if let Err(reason) = self.check_newcomers(members, &change.replicas) {
            return CatalogOutcome::Refused { reason };
        }
        members.epoch += 1;
        members.replicas = change.replicas;
        let epoch = members.epoch;
        let highest = map.replicas().map(|replica| replica.id.0).max().unwrap_or(0);
        self.highest_replica_placed = self.highest_replica_placed.max(highest);
        self.keep_map(map);
        CatalogOutcome::ReplicasChanged { epoch }
    }

    fn check_newcomers(&self, members: &Members, replicas: &[Replica]) -> Result<(), String> {
        for Replica { id, node } in replicas.iter().filter(|replica| !members.replicas.contains(replica)) {
            refuse_if(id.0 <= self.highest_replica_placed, || {
                format!("replica {id} was placed before, or one with a higher id was: ids are never used again")
            })?;
            refuse_if(id.0 >= self.next_replica, || format!("replica {id} was never given out"))?;
            refuse_if(node.0 >= self.next_node, || format!("node {node} was never given out"))?;
        }
        Ok(())
    }

    fn keep_map(&mut self, map: ShardMap) {
        self.version += 1;
        self.map = Some(Arc::new(map));
        self.mark(Name::Map, MAP_BYTES);
    }

    fn give_ids(&mut self, wanted: GiveIds) -> CatalogOutcome {
        let (first_node, first_replica) = (NodeId(self.next_node), ReplicaId(self.next_replica));
        let next_node = self.next_node.checked_add(u64::from(wanted.nodes));
        let next_replica = self.next_replica.checked_add(u64::from(wanted.replicas));
        let (Some(next_node), Some(next_replica)) = (next_node, next_replica) else {
            return CatalogOutcome::Refused { reason: "all ids are used up".into() };
        };
        self.next_node = next_node;
        self.next_replica = next_replica;
        self.version += 1;
        CatalogOutcome::IdsGiven { first_node, first_replica }
    }
}
