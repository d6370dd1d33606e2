//! Warning about stopping a drained node whose vote a group still needs, because other voters are away.

use std::time::Duration;

use assay_cluster::{Cluster, ClusterStatus, GroupReport, NodeState};
use assay_storage_model::NodeId;
use tokio::time::{Instant, sleep};

use super::requests::STATUS_POLL_INTERVAL;

/// Upper bound of the time until groups that were handed over have a leader again.
const LED_AGAIN_MAX: Duration = Duration::from_secs(5);

/// Returns the reason for which a node should not be stopped now, if there is one.
pub async fn drain_warning(cluster: &Cluster, node: NodeId) -> Option<String> {
    let until = Instant::now() + LED_AGAIN_MAX;
    loop {
        let status = cluster.status().await;
        let all_led = status.groups.iter().all(|group| group.leader.is_some());
        if all_led || Instant::now() >= until {
            return cost(&status, node);
        }
        sleep(STATUS_POLL_INTERVAL).await;
    }
}

/// Groups that would lose their majority. The voters of a group are known from its leader, so groups without one are named apart.
fn cost(status: &ClusterStatus, node: NodeId) -> Option<String> {
    let (led, unled): (Vec<_>, Vec<_>) = status.groups.iter().partition(|group| group.leader.is_some());
    let lost: Vec<&GroupReport> = led.into_iter().filter(|group| needs(status, group, node)).collect();
    let mut against = Vec::new();
    if !lost.is_empty() {
        let away = status.nodes.iter().filter(|found| !found.answers && found.state != NodeState::Removed);
        let away: Vec<String> = away.map(|found| format!("node {}", found.id)).collect();
        let without = [away, vec![format!("node {node}")]].concat().join(" and ");
        against.push(format!("without {without}, {} would have no majority, and refuse writes", named(&lost)));
    }
    if !unled.is_empty() {
        against.push(format!("without a leader at the moment: {}", named(&unled)));
    }
    (!against.is_empty()).then(|| format!("node {node} should not be stopped yet: {}", against.join("; ")))
}

/// Returns whether the voters of a group that answer are a majority only with this node.
fn needs(status: &ClusterStatus, group: &GroupReport, node: NodeId) -> bool {
    let answers = |id: NodeId| status.nodes.iter().any(|found| found.id == id && found.answers);
    let voters: Vec<NodeId> =
        group.replicas.iter().filter(|replica| replica.votes()).map(|replica| replica.node).collect();
    let left = voters.iter().filter(|voter| **voter != node && answers(**voter)).count();
    voters.contains(&node) && left * 2 <= voters.len()
}

fn named(groups: &[&GroupReport]) -> String {
    let shards = groups.iter().filter(|group| group.shard.is_some()).count();
    let mut names = Vec::new();
    if groups.len() > shards {
        names.push("the catalog".to_owned());
    }
    if shards > 0 {
        names.push(format!("{shards} {}", if shards == 1 { "shard" } else { "shards" }));
    }
    names.join(" and ")
}

#[cfg(test)]
mod tests {
    use assay_cluster::{NodeReport, ReplicaReport, Role};
    use assay_storage_model::{ClusterId, GroupId, ReplicaId, ShardId};

    use super::*;

    fn group(shard: Option<u16>, leader: Option<u64>, voters: &[u64], learners: &[u64]) -> GroupReport {
        let shard = shard.map(ShardId);
        let replica = |role: Role| {
            move |node: &u64| ReplicaReport { replica: ReplicaId(*node), node: NodeId(*node), role, matched: None }
        };
        GroupReport {
            group: shard.map_or(GroupId::CATALOG, GroupId::of_shard),
            shard,
            leader: leader.map(NodeId),
            term: 1,
            replicas: voters
                .iter()
                .map(replica(Role::Voter))
                .chain(learners.iter().map(replica(Role::Learner)))
                .collect(),
            applied: None,
            changing: false,
        }
    }

    /// Returns the warning in a cluster of four nodes, in which those of `silent` do not answer.
    fn said(silent: &[u64], groups: Vec<GroupReport>, stopped: u64) -> Option<String> {
        let report = |id: u64| NodeReport {
            id: NodeId(id),
            address: None,
            state: NodeState::Active,
            answers: !silent.contains(&id),
            leads: 0,
            facts: None,
        };
        let status = ClusterStatus {
            cluster: ClusterId(uuid::Uuid::from_u128(7)),
            node: NodeId(1),
            nodes: (1..=4).map(report).collect(),
            groups,
            replicas: Some(3),
            quorum: true,
            settled: false,
            unsettled: Vec::new(),
            upgrade: None,
        };
        cost(&status, NodeId(stopped))
    }

    #[test]
    fn a_node_that_others_can_do_without_may_go() {
        let groups = || vec![group(None, Some(1), &[1, 2, 3], &[4]), group(Some(0), Some(2), &[1, 2, 3], &[])];
        assert_eq!(said(&[], groups(), 3), None);
        assert_eq!(said(&[4], groups(), 3), None, "who is silent only learns");
        assert_eq!(said(&[2, 3], groups(), 4), None, "it has no vote to miss");
    }

    /// A drain said "may be stopped" of the node whose stop took the cluster down.
    #[test]
    fn a_node_whose_vote_is_needed_is_to_stay() {
        let groups = || {
            let shards = [group(Some(0), Some(1), &[1, 2, 3], &[]), group(Some(1), Some(1), &[1, 3, 4], &[])];
            [vec![group(None, Some(1), &[1, 2, 3], &[])], shards.into()].concat()
        };
        let why = said(&[2], groups(), 3).expect("it is needed");
        let of_two = "without node 2 and node 3, the catalog and 1 shard would have no majority, and refuse writes";
        assert_eq!(why, format!("node 3 should not be stopped yet: {of_two}"));
        let two = vec![group(Some(0), Some(1), &[1, 2], &[])];
        assert!(said(&[], two, 2).expect("half is no majority").contains("without node 2, 1 shard would"));
        let unled = vec![group(None, Some(1), &[1, 2, 3], &[]), group(Some(0), None, &[], &[])];
        assert!(said(&[], unled, 3).expect("nobody knows").ends_with("without a leader at the moment: 1 shard"));
    }
}
