//! The nodes of the cluster as the catalog has them: one record a node, under its number.

use std::collections::BTreeMap;

use assay_storage_catalog::State;
use assay_storage_model::NodeId;
use assay_storage_model::catalog::{Expect, PutRecord, Record, RecordKind, UniqueKey};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What an operator, or a set time without a sign of life, wants of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    Active,
    /// About to be stopped: it keeps what it has and leads nothing.
    Draining,
    /// It never comes back: what it has is rebuilt elsewhere, and its number is never used again.
    Removed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    pub node: NodeId,
    /// Where other nodes reach it; none before it was told.
    pub address: Option<String>,
    pub state: NodeState,
}

/// Placed under the node's number, which is not used again.
pub(crate) fn record_id(node: NodeId) -> Uuid {
    Uuid::from_u128(u128::from(node.0))
}

pub(crate) fn read(record: &Record) -> Option<NodeRecord> {
    serde_json::from_slice(&record.body).ok()
}

/// Every node that was ever part of the cluster, with the revision of its record.
pub(crate) fn all(state: &State) -> BTreeMap<NodeId, (NodeRecord, u64)> {
    let records = state.all(RecordKind::NODE);
    records.filter_map(|record| read(record).map(|node| (node.node, (node, record.revision)))).collect()
}

pub(crate) fn put(node: &NodeRecord, expect: Expect, at: i64) -> PutRecord {
    let body = serde_json::to_vec(node).expect("plain data encodes");
    PutRecord { kind: RecordKind::NODE, id: record_id(node.node), org: None, expect, keys: Vec::new(), body, at }
}

/// Which nodes are no part of the cluster any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Removed {
    /// Each that has a record, and whether that says so.
    known: BTreeMap<NodeId, bool>,
    /// One without a record and with a number below this was let in by nodes that a recovery gave up.
    below: Option<NodeId>,
}

impl Removed {
    pub fn of(state: &State) -> Removed {
        let known = all(state).into_values().map(|(record, _)| (record.node, record.state == NodeState::Removed));
        Removed { known: known.collect(), below: removed_below(state).map(|(below, _)| below) }
    }

    pub fn contains(&self, node: NodeId) -> bool {
        self.known.get(&node).copied().unwrap_or(self.below.is_some_and(|below| node < below))
    }
}

fn below_key() -> UniqueKey {
    UniqueKey::new("cluster_setting", "removed_below")
}

fn removed_below(state: &State) -> Option<(NodeId, &Record)> {
    let record = state.find(&below_key())?;
    Some((serde_json::from_slice(&record.body).ok()?, record))
}

/// From here on a node below this number is no part of the cluster unless it has a record.
pub(crate) fn put_removed_below(state: &State, below: NodeId, at: i64) -> PutRecord {
    let before = removed_below(state).map(|(_, record)| record);
    PutRecord {
        kind: RecordKind::CLUSTER_SETTING,
        id: before.map_or_else(Uuid::new_v4, |record| record.id),
        org: None,
        expect: before.map_or(Expect::Absent, |record| Expect::Revision(record.revision)),
        keys: vec![below_key()],
        body: serde_json::to_vec(&below).expect("plain data encodes"),
        at,
    }
}

/// Where each node that is still part of the cluster can be reached.
pub(crate) fn addresses(state: &State) -> BTreeMap<NodeId, String> {
    let nodes = all(state).into_values().map(|(node, _)| node);
    nodes.filter(|node| node.state != NodeState::Removed).filter_map(|node| Some((node.node, node.address?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recovery on a node that lagged did not know the node that the others had let in, and listened to it.
    #[test]
    fn below_the_floor_only_nodes_with_a_record_are_of_the_cluster() {
        let known = BTreeMap::from([(NodeId(1), true), (NodeId(3), false), (NodeId(10_004), false)]);
        let founded = Removed { known: known.clone(), below: None };
        let recovered = Removed { known, below: Some(NodeId(10_004)) };
        for (node, before, after) in
            [(1, true, true), (3, false, false), (4, false, true), (10_004, false, false), (10_005, false, false)]
        {
            assert_eq!(founded.contains(NodeId(node)), before, "{node}");
            assert_eq!(recovered.contains(NodeId(node)), after, "{node}");
        }
    }
}
