//! The nodes of the cluster as the catalog has them: one record a node, under its number.

use std::collections::BTreeMap;

use assay_storage_catalog::State;
use assay_storage_model::NodeId;
use assay_storage_model::catalog::{Expect, PutRecord, Record, RecordKind};
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

/// Where each node that is still part of the cluster can be reached.
pub(crate) fn addresses(state: &State) -> BTreeMap<NodeId, String> {
    let nodes = all(state).into_values().map(|(node, _)| node);
    nodes.filter(|node| node.state != NodeState::Removed).filter_map(|node| Some((node.node, node.address?))).collect()
}
