//! Output of `cluster status --json`, as far as the tests read it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Status {
    /// Node that reports this.
    pub node: Option<u64>,
    #[serde(default)]
    pub nodes: Vec<Member>,
    #[serde(default)]
    pub groups: Vec<Group>,
    #[serde(default)]
    pub settled: bool,
    /// Reasons why it is not settled.
    #[serde(default)]
    pub unsettled: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Member {
    pub id: u64,
    /// None of a node that is gone for good.
    pub address: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Group {
    /// A number or a name.
    pub group: Value,
    pub leader: Option<u64>,
    #[serde(default)]
    pub replicas: Vec<Replica>,
    pub applied: Option<u64>,
    #[serde(default)]
    pub digest: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Replica {
    pub replica: u64,
    pub node: u64,
    pub role: String,
}

impl Status {
    pub fn of(value: &Value) -> Option<Status> {
        Status::deserialize(value).ok()
    }

    /// Returns whether the reporting node has a replica of the group.
    pub fn hosts(&self, group: &Group) -> bool {
        group.replicas.iter().any(|replica| Some(replica.node) == self.node)
    }

    /// Returns the number of groups that each node leads.
    pub fn leads(&self) -> BTreeMap<u64, usize> {
        let mut leads: BTreeMap<u64, usize> = self.nodes.iter().map(|member| (member.id, 0)).collect();
        for leader in self.groups.iter().filter_map(|group| group.leader) {
            *leads.entry(leader).or_default() += 1;
        }
        leads
    }

    /// The node that listens for its peers there.
    pub fn id_at(&self, peer_address: &str) -> Option<u64> {
        self.nodes.iter().find(|member| member.address.as_deref() == Some(peer_address)).map(|member| member.id)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_known_of_it_is_no_matter() {
        let status = Status::of(&json!({
            "cluster": "c", "node": 1, "settled": true,
            "nodes": [{"id": 1, "address": "10.0.0.1:7400", "state": "up", "heard_ms": 3}, {"id": 2, "address": null}],
            "groups": [
                {"group": 0, "shard": null, "leader": 2, "term": 4, "applied": 7, "digest": "ab",
                 "replicas": [{"replica": 5, "node": 2, "role": "voter", "matched": 7}]},
                {"group": 1, "shard": 0, "leader": null, "term": 1, "replicas": [], "applied": null},
            ],
        }));
        let status = status.expect("reads");
        assert_eq!(status.leads(), BTreeMap::from([(1, 0), (2, 1)]));
        assert_eq!(status.id_at("10.0.0.1:7400"), Some(1));
        assert_eq!(status.groups[0].replicas[0].role, "voter");
    }
}
