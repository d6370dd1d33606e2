//! Removal of nodes, which requires that the others can do without the node.
//!
//! The others refuse messages of a node as soon as its removal is recorded, while the members of its groups change only
//! later. A group that lost its majority that way could never change its members, although all of its disks are intact.
//!
//! - R1: of each group's voters, a majority runs on other nodes that respond and are close behind.
//! - R2: two concurrent removals are checked together. Each is recorded before it takes effect, and only if no other
//!   was recorded since its check.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use assay_cluster_network::node_records::{self, NodeState};
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, RecordKind, ShardMap};
use assay_storage_model::{GroupId, NodeId, ReplicaId};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::certificates::node_certificates::{now_micros, setting};
use crate::membership::operations::OperateError;
use crate::monitoring::status::{CLOSE_ENTRIES, GroupReport, OwnReport, groups_of, has_most, name_of};
use crate::{Cluster, Shared};

/// Time for retries before a removal is refused, because leaders change and replicas catch up.
const LOOKED_FOR: Duration = Duration::from_secs(10);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(250);
/// Time after which a recorded but unfinished removal counts as abandoned.
const UNDER_WAY_FOR: Duration = Duration::from_secs(60);
const SETTING: &str = "removal";

/// Record that is written before a node is removed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Removal {
    node: NodeId,
    at: i64,
}

/// Last recorded removal, with the id and revision for the next record.
struct Before {
    last: Option<Removal>,
    id: Uuid,
    expect: Expect,
}

impl Cluster {
    /// Removes a node permanently and rebuilds its replicas on others. Refuses if the others cannot do without it.
    pub async fn remove(&self, node: NodeId) -> Result<(), OperateError> {
        let until = Instant::now() + LOOKED_FOR;
        loop {
            self.fence(GroupId::CATALOG).await?;
            match self.shared.state_of(node)? {
                NodeState::Removed => return Ok(()),
                NodeState::Active | NodeState::Draining => {}
            }
            let before = self.shared.last_removal();
            match self.shared.misses(node, before.last).await {
                Ok(()) if self.shared.write_removal(node, &before).await? => break,
                Err(why) if Instant::now() >= until => return Err(OperateError::Refused(why)),
                Ok(()) | Err(_) => sleep(LOOK_AGAIN_AFTER).await,
            }
        }
        self.set_state(node, NodeState::Removed).await.map(drop)
    }

    /// Replaces a node permanently with one that joined.
    pub async fn replace(&self, old: NodeId, new: NodeId) -> Result<(), OperateError> {
        let until = Instant::now() + LOOKED_FOR;
        loop {
            self.fence(GroupId::CATALOG).await?;
            let why = match self.shared.state_of(new)? {
                _ if new == old => format!("node {new} cannot take its own place"),
                NodeState::Draining => format!("node {new} drains: `assay cluster undrain {new}` first"),
                NodeState::Removed => return Err(OperateError::Removed(new)),
                NodeState::Active if self.shared.reports().await.contains_key(&new) => return self.remove(old).await,
                // A node that just started may not respond at once.
                NodeState::Active if Instant::now() < until => {
                    sleep(LOOK_AGAIN_AFTER).await;
                    continue;
                }
                NodeState::Active => format!("node {new} does not respond: start it first"),
            };
            return Err(OperateError::Refused(why));
        }
    }
}

impl Shared {
    fn state_of(&self, node: NodeId) -> Result<NodeState, OperateError> {
        let known = node_records::all(&self.catalog.read()).remove(&node);
        known.map(|(record, _)| record.state).ok_or(OperateError::NoNode(node))
    }

    fn last_removal(&self) -> Before {
        let state = self.catalog.read();
        match state.find(&setting(SETTING)) {
            Some(record) => Before {
                last: serde_json::from_slice(&record.body).ok(),
                id: record.id,
                expect: Expect::Revision(record.revision),
            },
            None => Before { last: None, id: Uuid::new_v4(), expect: Expect::Absent },
        }
    }

    /// Returns whether this was the first write since `before` was read.
    async fn write_removal(&self, node: NodeId, before: &Before) -> Result<bool, OperateError> {
        let at = now_micros();
        let put = PutRecord {
            kind: RecordKind::CLUSTER_SETTING,
            id: before.id,
            org: None,
            expect: before.expect,
            keys: vec![setting(SETTING)],
            body: serde_json::to_vec(&Removal { node, at }).expect("plain data encodes"),
            at,
        };
        Ok(matches!(self.change(CatalogCommand::Put(put)).await?, CatalogOutcome::Put { .. }))
    }

    /// Returns an error with the reason if the others cannot do without the node.
    async fn misses(&self, node: NodeId, last: Option<Removal>) -> Result<(), String> {
        let recent = i64::try_from(UNDER_WAY_FOR.as_micros()).unwrap_or(i64::MAX);
        let under_way = last.filter(|last| now_micros().saturating_sub(last.at) < recent).map(|last| last.node);
        let reports = self.reports().await;
        let (map, removed) = {
            let state = self.catalog.read();
            let records = node_records::all(&state).into_values().map(|(record, _)| record);
            let removed = records.filter(|record| record.state == NodeState::Removed).map(|record| record.node);
            (state.shard_map().cloned().unwrap_or_default(), removed.collect::<BTreeSet<_>>())
        };
        let gone: BTreeSet<NodeId> = removed.into_iter().chain(under_way).chain([node]).collect();
        groups_of(&map, &reports).iter().try_for_each(|group| check(&map, group, node, &gone, &reports))
    }
}

/// Checks R1 for one group.
fn check(
    map: &ShardMap,
    group: &GroupReport,
    node: NodeId,
    gone: &BTreeSet<NodeId>,
    reports: &BTreeMap<NodeId, OwnReport>,
) -> Result<(), String> {
    let name = name_of(group);
    if group.leader.is_none() {
        return Err(format!("{name} has no leader at the moment, so its remaining replicas cannot be determined"));
    }
    let placed = map.group(group.group).is_some_and(|members| members.replicas.iter().any(|one| one.node == node));
    let votes = group.replicas.iter().any(|one| one.node == node && one.votes());
    let may_vote = placed && group.changing;
    if !votes && !may_vote {
        return Ok(());
    }
    if group.changing {
        return Err(format!("the members of {name} are being changed at the moment"));
    }
    let voters = group.replicas.iter().filter(|one| one.votes()).count();
    let left = able_without(group, reports).filter(|one| !gone.contains(&one.1)).count();
    if left > voters / 2 {
        return Ok(());
    }
    Err(format!(
        "without node {node} {name} would have {left} of {voters} replicas that respond and are up to date, which is \
         no majority. Start the other nodes or wait until `assay cluster status` says settled, then retry"
    ))
}

/// Returns the voters of a group that are close behind, on nodes that respond and have an intact replica.
pub(crate) fn able_without<'a>(
    group: &'a GroupReport,
    reports: &'a BTreeMap<NodeId, OwnReport>,
) -> impl Iterator<Item = (ReplicaId, NodeId)> + 'a {
    let most = has_most(group);
    let close = move |matched: Option<u64>| matched.is_some_and(|matched| matched + CLOSE_ENTRIES >= most);
    let whole = |node: NodeId, replica: ReplicaId| {
        let one = (group.group, replica);
        reports.get(&node).is_some_and(|report| !report.lost.contains(&one) && !report.resting.contains(&one))
    };
    let voters = group.replicas.iter().filter(|one| one.votes());
    voters.filter(move |one| close(one.matched) && whole(one.node, one.replica)).map(|one| (one.replica, one.node))
}

#[cfg(test)]
mod tests {
    use assay_cluster_placement::first_map;

    use super::*;
    use crate::monitoring::status::{ReplicaReport, Role};

    const SHARD: GroupId = GroupId(16);

    fn voter(id: u64, matched: u64) -> ReplicaReport {
        ReplicaReport { replica: ReplicaId(id), node: NodeId(id), role: Role::Voter, matched: Some(matched) }
    }

    fn group(replicas: Vec<ReplicaReport>) -> GroupReport {
        GroupReport {
            group: SHARD,
            shard: SHARD.shard(),
            leader: Some(NodeId(1)),
            term: 3,
            replicas,
            applied: Some(1000),
            changing: false,
        }
    }

    fn refused(group: &GroupReport, removed: u64, gone: &[u64], answering: &[u64]) -> Option<String> {
        let map = first_map(&[1, 2, 3].map(NodeId), 4, 3);
        let reports = answering.iter().map(|node| (NodeId(*node), OwnReport::default())).collect();
        let gone = gone.iter().copied().chain([removed]).map(NodeId).collect();
        check(&map, group, NodeId(removed), &gone, &reports).err()
    }

    fn three() -> GroupReport {
        group(vec![voter(1, 1000), voter(2, 1000), voter(3, 990)])
    }

    #[test]
    fn one_of_three_may_go_where_the_other_two_are_there_and_have_everything() {
        assert_eq!(refused(&three(), 3, &[], &[1, 2]), None, "it is gone already");
        assert_eq!(refused(&three(), 3, &[], &[1, 2, 3]), None);
        assert_eq!(refused(&three(), 9, &[], &[1, 2, 3]), None, "it has nothing of this group");
        let why = refused(&three(), 3, &[], &[1, 3]).expect("another one is down");
        assert!(why.contains("without node 3 shard 0 would have 1 of 3"), "{why}");
        let lags = group(vec![voter(1, 1000), voter(2, 500), voter(3, 1000)]);
        assert!(refused(&lags, 3, &[], &[1, 2, 3]).is_some());
        assert_eq!(refused(&lags, 2, &[], &[1, 2, 3]), None, "the one that lags is the one that goes");
    }

    #[test]
    fn two_that_are_removed_at_once_are_held_against_both() {
        assert!(refused(&three(), 3, &[2], &[1, 2, 3]).is_some());
        let five = group((1..=5).map(|id| voter(id, 1000)).collect());
        assert_eq!(refused(&five, 3, &[2], &[1, 2, 3, 4, 5]), None);
    }

    #[test]
    fn the_only_one_that_has_a_group_stays() {
        assert!(refused(&group(vec![voter(1, 1000)]), 1, &[], &[1, 2]).is_some());
    }

    #[test]
    fn what_cannot_be_known_is_not_taken_for_well() {
        let leaderless = GroupReport { leader: None, replicas: Vec::new(), ..three() };
        assert!(refused(&leaderless, 9, &[], &[1, 2, 3]).expect("nobody says").contains("no leader"));
        assert!(refused(&GroupReport { changing: true, ..three() }, 3, &[], &[1, 2, 3]).is_some());
        let mut reports: BTreeMap<NodeId, OwnReport> =
            [1, 2, 3].map(|node| (NodeId(node), OwnReport::default())).into();
        let able = |reports: &BTreeMap<NodeId, OwnReport>| able_without(&three(), reports).count();
        assert_eq!(able(&reports), 3);
        reports.get_mut(&NodeId(2)).expect("there").lost.push((SHARD, ReplicaId(2)));
        assert_eq!(able(&reports), 2, "what was given up has nothing any more");
        reports.get_mut(&NodeId(3)).expect("there").resting.push((SHARD, ReplicaId(3)));
        assert_eq!(able(&reports), 1, "what is closed takes nothing in");
    }
}
