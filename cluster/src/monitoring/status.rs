//! Status of the whole cluster, gathered from every node for operators, `cluster status` and the planner.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use assay_cluster_directory::node_files::KeptState;
use assay_cluster_network::node_records::{self, NodeState};
use assay_cluster_network::{NoAnswer, Service};
use assay_cluster_placement::{Nodes, plan};
use assay_storage_model::catalog::ShardMap;
use assay_storage_model::{ClusterId, GroupId, NodeId, ReplicaId, ShardId};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use serde::{Deserialize, Serialize};

use crate::certificates::node_certificates::{kept_settings, settings};
use crate::membership::upgrade::{UpgradeReport, upgrade_report};
use crate::{Cluster, Shared};

pub(crate) const STATUS: &str = "cluster.status";
/// Time limit of a status request. A slower node counts as silent.
const ASK_MAX: Duration = Duration::from_millis(1500);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterStatus {
    pub cluster: ClusterId,
    /// Node that answered the request.
    pub node: NodeId,
    pub nodes: Vec<NodeReport>,
    pub groups: Vec<GroupReport>,
    /// Wanted number of replicas of each shard, as chosen at bootstrap. `None` if the node does not know it or is too
    /// old to report it.
    #[serde(default)]
    pub replicas: Option<u16>,
    /// Whether a majority of the catalog responded. Otherwise nothing can be changed, and the report shows the last
    /// state known to the node.
    #[serde(default = "answered")]
    pub quorum: bool,
    /// Whether every group has a leader and exactly its wanted members, all close behind.
    pub settled: bool,
    /// Reasons why the cluster is not settled.
    pub unsettled: Vec<String>,
    /// State of the last upgrade. `None` if the node is too old to report it.
    #[serde(default)]
    pub upgrade: Option<UpgradeReport>,
}

/// Default for reports of programs that do not send the field.
fn answered() -> bool {
    true
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    pub id: NodeId,
    pub address: Option<String>,
    pub state: NodeState,
    /// Whether the node responded.
    pub answers: bool,
    pub leads: usize,
    /// Facts about the node, or `None` if it is silent or too old to report them.
    #[serde(default)]
    pub facts: Option<NodeFacts>,
}

/// Facts about the process, the disk and the certificate of a node. Facts that the node cannot determine are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFacts {
    pub version: String,
    /// Physical memory of the process, in bytes.
    pub memory_bytes: Option<u64>,
    pub disk_total_bytes: Option<u64>,
    pub disk_free_bytes: Option<u64>,
    /// Start of the process, in seconds since 1970.
    pub started: Option<u64>,
    /// Expiry of the certificate, in seconds since 1970.
    pub certificate_ends: Option<u64>,
}

/// Returns the physical memory of this process, if the system reports it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

fn seconds_of(time: SystemTime) -> Option<u64> {
    time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupReport {
    pub group: GroupId,
    /// Shard of the group, or `None` for the catalog.
    pub shard: Option<ShardId>,
    pub leader: Option<NodeId>,
    pub term: u64,
    pub replicas: Vec<ReplicaReport>,
    /// Applied index at the leader.
    pub applied: Option<u64>,
    /// Whether the members are being changed.
    pub changing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Voter,
    Learner,
}

impl ReplicaReport {
    pub fn votes(&self) -> bool {
        self.role == Role::Voter
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaReport {
    pub replica: ReplicaId,
    pub node: NodeId,
    pub role: Role,
    /// Last index of the replica's log, according to the leader.
    pub matched: Option<u64>,
}

/// Report of one node about its groups.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct OwnReport {
    pub led: Vec<GroupReport>,
    /// Replicas without data: found damaged and discarded, or removed from their group.
    #[serde(default)]
    pub lost: Vec<(GroupId, ReplicaId)>,
    /// Replicas that exist here but do not run: damaged and closed, or not started yet.
    #[serde(default)]
    pub resting: Vec<(GroupId, ReplicaId)>,
    #[serde(default)]
    pub facts: Option<NodeFacts>,
}

/// Maximum lag, in entries, of a learner that may vote and of the members of a settled group.
pub(crate) const CLOSE_ENTRIES: u64 = 200;

impl Shared {
    pub fn own_report(&self) -> OwnReport {
        let mut led = Vec::new();
        for group in self.replicas.groups() {
            let status = group.status();
            if !status.leads_confirmed() {
                continue;
            }
            let replica = |member: &assay_cluster_raft::Member| ReplicaReport {
                replica: member.replica,
                node: member.node,
                role: if member.voter { Role::Voter } else { Role::Learner },
                matched: member.matched,
            };
            led.push(GroupReport {
                group: group.id(),
                shard: group.id().shard(),
                leader: Some(self.node),
                term: status.term,
                replicas: status.members.iter().map(replica).collect(),
                applied: status.applied,
                changing: status.changing,
            });
        }
        let (kept, ending) = (self.kept.lock(), self.ending.lock());
        let lost = kept.iter().filter(|kept| kept.state == KeptState::Lost && !ending.contains(&kept.group));
        let lost = lost.map(|kept| (kept.group, kept.replica)).collect();
        let rests =
            kept.iter().filter(|kept| kept.state == KeptState::Kept && self.replicas.group(kept.group).is_none());
        let resting = rests.map(|kept| (kept.group, kept.replica)).collect();
        OwnReport { led, lost, resting, facts: Some(self.facts()) }
    }

    fn facts(&self) -> NodeFacts {
        let space = self.config.disk.space(&self.config.data_dir).ok();
        NodeFacts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            memory_bytes: resident_bytes(),
            disk_total_bytes: space.map(|space| space.total),
            disk_free_bytes: space.map(|space| space.free),
            started: seconds_of(self.started),
            certificate_ends: self.certificate_runs_out().and_then(seconds_of),
        }
    }

    /// Returns the reports of all nodes that respond.
    pub async fn reports(&self) -> BTreeMap<NodeId, OwnReport> {
        let others: Vec<NodeId> =
            node_records::addresses(&self.catalog.read()).into_keys().filter(|node| *node != self.node).collect();
        let asked = others.into_iter().map(|node| async move {
            let answer = self.net.ask_repeatable(node, STATUS, Bytes::new(), ASK_MAX).await.ok()?;
            Some((node, serde_json::from_slice(&answer).ok()?))
        });
        let mut reports: BTreeMap<NodeId, OwnReport> = join_all(asked).await.into_iter().flatten().collect();
        reports.insert(self.node, self.own_report());
        reports
    }

    /// Returns whether the node responds now.
    pub async fn answers(&self, node: NodeId) -> bool {
        node == self.node || self.net.ask_repeatable(node, STATUS, Bytes::new(), ASK_MAX).await.is_ok()
    }

    pub fn status_of(&self, reports: &BTreeMap<NodeId, OwnReport>, quorum: bool) -> ClusterStatus {
        let (map, nodes, kept, replicas, upgrade) = {
            let state = self.catalog.read();
            let (map, kept) = (state.shard_map().cloned().unwrap_or_default(), kept_settings(&state));
            let replicas = usize::from(settings(&state).replicas);
            (map, node_records::all(&state), kept, replicas, Some(upgrade_report(&state)))
        };
        let groups = groups_of(&map, reports);
        let no_quorum = (!quorum).then(|| "no majority of the catalog responds: nothing can be changed".to_owned());
        let mut unsettled: Vec<String> = no_quorum.into_iter().collect();
        unsettled.extend(groups.iter().filter_map(|group| unsettled_group(&map, group)));
        let nodes: Vec<NodeReport> = nodes
            .into_values()
            .map(|(record, _)| NodeReport {
                id: record.node,
                leads: groups.iter().filter(|group| group.leader == Some(record.node)).count(),
                answers: reports.contains_key(&record.node),
                facts: reports.get(&record.node).and_then(|report| report.facts.clone()),
                address: record.address,
                state: record.state,
            })
            .collect();
        for (node, report) in reports {
            let named = |(group, replica): &&(GroupId, ReplicaId)| {
                map.group(*group).is_some_and(|members| members.replicas.iter().any(|one| one.id == *replica))
            };
            let lost = report.lost.iter().filter(named);
            unsettled.extend(lost.map(|(group, _)| format!("group {group} is to be rebuilt on node {node}")));
            let resting = report.resting.iter().filter(named);
            unsettled
                .extend(resting.map(|(group, _)| format!("the replica of group {group} on node {node} does not run")));
        }
        let due = plan(&map, &answering(&nodes), replicas).len();
        if due > 0 {
            unsettled.push(format!("{due} groups are to be moved"));
        }
        let silent = nodes.iter().filter(|node| !node.answers && node.state != NodeState::Removed);
        unsettled.extend(silent.map(|node| format!("node {} does not answer", node.id)));
        let (cluster, node, settled) = (self.id, self.node, unsettled.is_empty());
        let replicas = kept.map(|settings| settings.replicas);
        ClusterStatus { cluster, node, nodes, groups, replicas, quorum, settled, unsettled, upgrade }
    }
}

/// Returns the nodes for a plan. A silent node is not lost yet, and no moves are planned for it.
fn answering(nodes: &[NodeReport]) -> Nodes {
    let with = |state: fn(NodeState) -> bool| nodes.iter().filter(move |node| state(node.state)).map(|node| node.id);
    Nodes {
        able: with(|state| state != NodeState::Removed).collect(),
        silent: nodes.iter().filter(|node| !node.answers).map(|node| node.id).collect(),
        removed: with(|state| state == NodeState::Removed).collect(),
    }
}

/// Returns each group as reported by its newest leader, or an empty report without a leader.
pub(crate) fn groups_of(map: &ShardMap, reports: &BTreeMap<NodeId, OwnReport>) -> Vec<GroupReport> {
    let ids = std::iter::once(GroupId::CATALOG).chain(
        (0..map.shards.len())
            .map(|shard| GroupId::of_shard(ShardId(u16::try_from(shard).expect("at most 256 shards")))),
    );
    ids.map(|group| {
        let told = reports.values().flat_map(|report| &report.led).filter(|led| led.group == group);
        let newest = told.max_by_key(|led| led.term).cloned();
        newest.unwrap_or_else(|| GroupReport {
            group,
            shard: group.shard(),
            leader: None,
            term: 0,
            replicas: Vec::new(),
            applied: None,
            changing: false,
        })
    })
    .collect()
}

/// Returns the reason why a group differs from the map.
pub(crate) fn unsettled_group(map: &ShardMap, group: &GroupReport) -> Option<String> {
    let name = name_of(group);
    if group.leader.is_none() {
        return Some(format!("{name} has no leader"));
    }
    let wanted = map.group(group.group).map(|members| members.replicas.as_slice()).unwrap_or_default();
    let has = |replica: &ReplicaId| group.replicas.iter().find(|found| found.replica == *replica);
    let missing = wanted.iter().filter(|replica| has(&replica.id).is_none()).count();
    let leaving =
        group.replicas.iter().filter(|found| wanted.iter().all(|replica| replica.id != found.replica)).count();
    let voters = crate::maintenance::reconcile::voters_wanted(group.group, wanted);
    let not_voting = voters.iter().filter(|replica| has(replica).is_none_or(|found| !found.votes())).count();
    let last = has_most(group);
    let behind = group.replicas.iter().filter(|found| found.matched.unwrap_or(0) + CLOSE_ENTRIES < last).count();
    match (missing, leaving, not_voting, behind, group.changing) {
        (0, 0, 0, 0, false) => None,
        _ => Some(format!(
            "{name}: {missing} replicas missing, {leaving} leaving, {not_voting} not voting yet, {behind} behind"
        )),
    }
}

pub(crate) fn name_of(group: &GroupReport) -> String {
    group.shard.map_or_else(|| "the catalog".to_owned(), |shard| format!("shard {shard}"))
}

pub(crate) fn has_most(group: &GroupReport) -> u64 {
    group.replicas.iter().filter_map(|replica| replica.matched).max().unwrap_or(0)
}

impl Cluster {
    pub async fn status(&self) -> ClusterStatus {
        // Without confirmation the status shows the state known here.
        let quorum = match self.group(GroupId::CATALOG) {
            Some(catalog) => catalog.fence().await.is_ok(),
            None => false,
        };
        self.shared.status_of(&self.shared.reports().await, quorum)
    }
}

/// Service that reports on the groups of this node.
#[derive(Debug)]
pub(crate) struct ReportService(pub Arc<Shared>);

impl Service for ReportService {
    fn answer(&self, _from: NodeId, _body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let report = self.0.own_report();
        async move { Ok(Bytes::from(serde_json::to_vec(&report).expect("plain data encodes"))) }.boxed()
    }
}
