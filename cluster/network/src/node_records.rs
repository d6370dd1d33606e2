//! Nodes of the cluster in the catalog: one record per node, under its number.

use std::collections::BTreeMap;

use assay_storage_catalog::State;
use assay_storage_model::NodeId;
use assay_storage_model::catalog::{Expect, PutRecord, Record, RecordKind, UniqueKey};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// State that an operator, or a set time without a sign of life, wants of a node.
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
    /// Address at which other nodes reach it; none before its first introduction.
    pub address: Option<String>,
    pub state: NodeState,
    /// Statement of the node about its program. None for 0.4.0 and older, which neither read nor write this field: where
    /// such a node rewrites the record of another one, that one states it again within a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<NodeProgram>,
}

/// Statement of a node about the program that it runs and the keys that it was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeProgram {
    pub version: String,
    /// Names of [`Feature`]s, including unknown ones.
    #[serde(default)]
    pub features: Vec<String>,
    /// Ids of its master keys. None until its first start: a node that has only joined serves no requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// Fingerprints of the certificate authorities that it trusts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusts: Vec<String>,
    /// The fingerprint of the cluster's authority that issued its certificate. None where an operator's own did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certified_by: Option<String>,
}

/// Ability of a node that others ask for before they use it. Keys are wrapped once all nodes have the feature for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Reading signing keys and an authority that are wrapped by the master key, and issuing certificates.
    WrappedKeys,
    /// Names the principal in requests to other nodes, and vouches for nodes.
    Principals,
    /// Responding to writes of other nodes with the `WriteOutcome` of the model.
    WriteOutcomes,
    /// Responding to queries of other nodes with a stream of columns.
    ResultStreams,
    /// Applying writes that are conditional on the versions of rows.
    ConditionalWrites,
}

impl Feature {
    pub const ALL: [Feature; 5] = [
        Feature::WrappedKeys,
        Feature::Principals,
        Feature::WriteOutcomes,
        Feature::ResultStreams,
        Feature::ConditionalWrites,
    ];

    /// Returns the name. Frozen: it is stored in the records of nodes.
    pub fn name(self) -> &'static str {
        match self {
            Feature::WrappedKeys => "wrapped-keys",
            Feature::Principals => "principals",
            Feature::WriteOutcomes => "write-outcomes",
            Feature::ResultStreams => "result-streams",
            Feature::ConditionalWrites => "conditional-writes",
        }
    }
}

impl NodeProgram {
    /// This program, before it has started on a node.
    pub fn own() -> NodeProgram {
        NodeProgram {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            features: Feature::ALL.iter().map(|feature| feature.name().to_owned()).collect(),
            ..NodeProgram::default()
        }
    }

    pub fn has(&self, feature: Feature) -> bool {
        self.features.iter().any(|name| name == feature.name())
    }
}

impl NodeRecord {
    fn has(&self, feature: Feature) -> bool {
        self.program.as_ref().is_some_and(|program| program.has(feature))
    }
}

/// The nodes of the cluster that do not have the feature, in words.
pub fn lacking(state: &State, feature: Feature) -> Vec<String> {
    let lacks = present(state).filter(|node| !node.has(feature));
    let version = |node: &NodeRecord| match &node.program {
        Some(program) => program.version.clone(),
        None => "0.4.0 or older".to_owned(),
    };
    lacks.map(|node| format!("node {} runs {}", node.node, version(&node))).collect()
}

/// The nodes that were started without the master key of this id.
pub fn without_key(state: &State, id: &str) -> Vec<NodeId> {
    let lacks = present(state).filter(|node| {
        let keys = node.program.as_ref().map(|program| program.keys.as_ref());
        match keys {
            None => true,
            // It has joined and not started yet.
            Some(None) => false,
            Some(Some(keys)) => keys.iter().all(|key| key != id),
        }
    });
    lacks.map(|node| node.node).collect()
}

/// The nodes that were not removed.
pub fn present(state: &State) -> impl Iterator<Item = NodeRecord> {
    all(state).into_values().map(|(node, _)| node).filter(|node| node.state != NodeState::Removed)
}

/// Placed under the node's number, which is not used again.
pub fn record_id(node: NodeId) -> Uuid {
    Uuid::from_u128(u128::from(node.0))
}

pub fn read(record: &Record) -> Option<NodeRecord> {
    serde_json::from_slice(&record.body).ok()
}

/// Every node that was ever part of the cluster, with the revision of its record.
pub fn all(state: &State) -> BTreeMap<NodeId, (NodeRecord, u64)> {
    let records = state.all(RecordKind::NODE);
    records.filter_map(|record| read(record).map(|node| (node.node, (node, record.revision)))).collect()
}

pub fn get(state: &State, node: NodeId) -> Option<NodeRecord> {
    state.get(RecordKind::NODE, record_id(node)).and_then(|record| read(record))
}

pub fn put(node: &NodeRecord, expect: Expect, at: i64) -> PutRecord {
    let body = serde_json::to_vec(node).expect("plain data encodes");
    PutRecord { kind: RecordKind::NODE, id: record_id(node.node), org: None, expect, keys: Vec::new(), body, at }
}

/// Nodes that are not part of the cluster, according to this node's catalog.
#[derive(Clone, Debug, Default)]
pub struct Removed {
    /// Each node that has a record, and whether it was removed.
    known: BTreeMap<NodeId, bool>,
    /// A node without a record and with a number below this was let in by nodes that a recovery gave up.
    below: Option<NodeId>,
    /// Whether a node without a record is refused until another one vouches for it. Nodes before 0.5.0 cannot vouch.
    refuses_unknown: bool,
}

/// Relation of a node to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    Member,
    Removed,
    /// It has no record here: its certificate may be forged, or this copy of the catalog is behind.
    Unknown,
}

impl Removed {
    pub fn of(state: &State) -> Removed {
        let known = all(state).into_values().map(|(record, _)| (record.node, record.state == NodeState::Removed));
        let known: BTreeMap<NodeId, bool> = known.collect();
        let refuses_unknown = !known.is_empty() && lacking(state, Feature::Principals).is_empty();
        Removed { known, below: removed_below(state).map(|(below, _)| below), refuses_unknown }
    }

    pub fn membership(&self, node: NodeId) -> Membership {
        match self.contains(node) {
            true => Membership::Removed,
            false if self.refuses_unknown && !self.known.contains_key(&node) => Membership::Unknown,
            false => Membership::Member,
        }
    }

    /// Returns whether every node names the principal in its requests and vouches for others.
    pub fn all_name_principals(&self) -> bool {
        self.refuses_unknown
    }

    /// Returns whether the node has a record and was not removed.
    pub fn vouches_for(&self, node: NodeId) -> bool {
        self.known.get(&node) == Some(&false)
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

/// Excludes all nodes below this number without a record from the cluster.
pub fn put_removed_below(state: &State, below: NodeId, at: i64) -> PutRecord {
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

/// Addresses of the nodes that are part of the cluster.
pub fn addresses(state: &State) -> BTreeMap<NodeId, String> {
    let nodes = all(state).into_values().map(|(node, _)| node);
    nodes.filter(|node| node.state != NodeState::Removed).filter_map(|node| Some((node.node, node.address?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a recovery on a lagging node lacked the node that the others had admitted, and accepted its
    /// messages.
    #[test]
    fn below_the_floor_only_nodes_with_a_record_are_of_the_cluster() {
        let known = BTreeMap::from([(NodeId(1), true), (NodeId(3), false), (NodeId(10_004), false)]);
        let founded = Removed { known: known.clone(), below: None, refuses_unknown: false };
        let recovered = Removed { known, below: Some(NodeId(10_004)), refuses_unknown: false };
        for (node, before, after) in
            [(1, true, true), (3, false, false), (4, false, true), (10_004, false, false), (10_005, false, false)]
        {
            assert_eq!(founded.contains(NodeId(node)), before, "{node}");
            assert_eq!(recovered.contains(NodeId(node)), after, "{node}");
        }
    }

    #[test]
    fn a_node_without_a_record_is_unknown_once_others_can_vouch() {
        let known = BTreeMap::from([(NodeId(1), false), (NodeId(2), true)]);
        for refuses_unknown in [false, true] {
            let nodes = Removed { known: known.clone(), below: None, refuses_unknown };
            let unknown = if refuses_unknown { Membership::Unknown } else { Membership::Member };
            for (node, expected) in [(1, Membership::Member), (2, Membership::Removed), (99, unknown)] {
                assert_eq!(nodes.membership(NodeId(node)), expected, "{node}");
            }
            assert!(nodes.vouches_for(NodeId(1)) && !nodes.vouches_for(NodeId(2)) && !nodes.vouches_for(NodeId(99)));
        }
    }

    /// Records of 0.4.0 can be read, and rewriting them loses no field of 0.4.0.
    #[test]
    fn a_record_of_a_node_before_0_5_states_nothing() {
        let old = r#"{"node":2,"address":"10.0.0.2:7400","state":"active"}"#;
        let record: NodeRecord = serde_json::from_str(old).expect("it reads");
        assert!(record.program.is_none() && !record.has(Feature::Principals));
        assert_eq!(serde_json::to_string(&record).expect("it is written"), old);
        let stated = NodeRecord { program: Some(NodeProgram::own()), ..record };
        let text = serde_json::to_string(&stated).expect("it is written");
        assert!(stated.has(Feature::Principals) && stated.has(Feature::WrappedKeys), "{text}");
        assert_eq!(serde_json::from_str::<NodeRecord>(&text).expect("it reads"), stated);
    }
}
