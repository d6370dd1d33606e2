//! Planner of group placement. The leader of the catalog makes one step of the plan at a time.
//!
//! Few groups move concurrently, so that a failed move affects little. The transfer rate of their files is limited
//! separately. A node that was silent for a set time counts as lost once another node can take its place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster_network::node_records::{self, NodeState};
use assay_cluster_placement::{Move, Nodes, plan};
use assay_storage_model::catalog::{
    CatalogCommand, CatalogOutcome, ChangeReplicas, DeleteRecord, Expect, GiveIds, Members, RecordKind, Replica,
    ShardMap,
};
use assay_storage_model::{GroupId, NodeId, ReplicaId};

use super::CatalogChanges;
use crate::Shared;
use crate::certificates::node_certificates::{now_micros, settings};
use crate::membership::join;
use crate::membership::operations::OperateError;
use crate::monitoring::status::{GroupReport, OwnReport, ReplicaReport, groups_of, unsettled_group};

/// Time for which an expired token is kept.
const TOKENS_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Longest pause between two plans.
const PLAN_EVERY: Duration = Duration::from_millis(500);
const PLAN_EVERY_MIN: Duration = Duration::from_millis(100);
/// Number of groups whose members may change concurrently.
const MOVES_AT_ONCE: usize = 2;
/// The same limit for groups with at most [`NEW_GROUP_ENTRIES`] entries, which have almost nothing to send.
const NEW_GROUPS_AT_ONCE: usize = 32;
const NEW_GROUP_ENTRIES: u64 = 64;

pub(super) async fn run(shared: Arc<Shared>) {
    let mut heard: BTreeMap<NodeId, Instant> = BTreeMap::new();
    let mut changes = CatalogChanges::from_now(&shared);
    loop {
        changes.wait(PLAN_EVERY_MIN, PLAN_EVERY).await;
        changes = CatalogChanges::from_now(&shared);
        if !shared.replicas.group(GroupId::CATALOG).is_some_and(|catalog| catalog.leads()) {
            heard.clear(); // the next leader gives every node the full time
            continue;
        }
        let reports = shared.reports().await;
        let able = who_is_able(&shared, &reports, &mut heard);
        if let Err(error) = step(&shared, &reports, &able).await {
            tracing::warn!(%error, "a step of the plan failed and will be retried");
        }
    }
}

fn who_is_able(shared: &Shared, reports: &BTreeMap<NodeId, OwnReport>, heard: &mut BTreeMap<NodeId, Instant>) -> Nodes {
    let now = Instant::now();
    let mut found = Nodes::default();
    for (node, (record, _)) in node_records::all(&shared.catalog.read()) {
        let last = heard.entry(node).or_insert(now);
        if reports.contains_key(&node) {
            *last = now;
        } else {
            found.silent.insert(node);
        }
        let silent = now - *last > shared.config.dead_after;
        match record.state {
            NodeState::Removed => drop(found.removed.insert(node)),
            NodeState::Active | NodeState::Draining if !silent => drop(found.able.insert(node)),
            NodeState::Active | NodeState::Draining => {}
        }
    }
    found
}

async fn step(shared: &Shared, reports: &BTreeMap<NodeId, OwnReport>, nodes: &Nodes) -> Result<(), OperateError> {
    forget_tokens(shared).await?;
    let (map, replicas) = {
        let state = shared.catalog.read();
        let Some(map) = state.shard_map().cloned() else { return Ok(()) };
        (map, usize::from(settings(&state).replicas))
    };
    for (node, report) in reports {
        for (group, lost) in &report.lost {
            rebuild(shared, &map, *group, *node, *lost).await?;
        }
    }
    let groups = groups_of(&map, reports);
    let moving = in_motion(&map, &groups, &nodes.able);
    for one in due(plan(&map, nodes, replicas), &moving, &groups) {
        let members = groups.iter().find(|group| group.group == one.group && !group.changing);
        let members = members.map(|group| group.replicas.as_slice()).unwrap_or_default();
        place(shared, &map, one, members).await?;
    }
    Ok(())
}

/// Returns the moves that begin now, besides those in progress. Pure.
fn due(planned: Vec<Move>, moving: &BTreeSet<GroupId>, groups: &[GroupReport]) -> Vec<Move> {
    let applied = |group: GroupId| groups.iter().find(|report| report.group == group)?.applied;
    let is_new = |group: GroupId| applied(group).is_some_and(|applied| applied <= NEW_GROUP_ENTRIES);
    let new = moving.iter().filter(|group| is_new(**group)).count();
    let mut room_for_new = NEW_GROUPS_AT_ONCE.saturating_sub(new);
    let mut room = MOVES_AT_ONCE.saturating_sub(moving.len() - new);
    let mut due = Vec::new();
    for one in planned.into_iter().filter(|one| !moving.contains(&one.group)) {
        let room = if is_new(one.group) { &mut room_for_new } else { &mut room };
        if *room > 0 {
            *room -= 1;
            due.push(one);
        }
    }
    due
}

/// Returns the groups whose members differ from the map.
///
/// It excludes groups that only lack a leader, because waiting does not help them. It also excludes groups with a
/// replica on a lost node. Their members change only when all replicas are close behind, which never happens.
fn in_motion(map: &ShardMap, groups: &[GroupReport], able: &BTreeSet<NodeId>) -> BTreeSet<GroupId> {
    let replicas = |group| map.group(group).map(|members| members.replicas.as_slice()).unwrap_or_default();
    let in_vain = |group| replicas(group).iter().any(|replica| !able.contains(&replica.node));
    let moving = groups.iter().filter(|group| group.leader.is_some() && unsettled_members(map, group));
    moving.map(|group| group.group).filter(|group| !in_vain(*group)).collect()
}

/// Returns whether members must change. A lag alone does not count.
fn unsettled_members(map: &ShardMap, group: &GroupReport) -> bool {
    let all_close = GroupReport {
        replicas: group.replicas.iter().map(|replica| ReplicaReport { matched: Some(0), ..replica.clone() }).collect(),
        ..group.clone()
    };
    unsettled_group(map, &all_close).is_some()
}

/// Deletes tokens that expired some time ago, because their outcome is no longer needed either.
async fn forget_tokens(shared: &Shared) -> Result<(), OperateError> {
    let before = now_micros() - i64::try_from(TOKENS_KEPT.as_micros()).unwrap_or(i64::MAX);
    let old: Vec<_> = {
        let state = shared.catalog.read();
        let tokens =
            state.all(RecordKind::JOIN_TOKEN).filter(|token| join::expires(token).is_none_or(|at| at < before));
        tokens.map(|token| (token.id, token.revision)).collect()
    };
    for (id, revision) in old {
        let expect = Expect::Revision(revision);
        shared.change(CatalogCommand::Delete(DeleteRecord { kind: RecordKind::JOIN_TOKEN, id, expect })).await?;
    }
    Ok(())
}

/// Assigns a successor with a new number to a discarded replica, on the same node.
async fn rebuild(
    shared: &Shared,
    map: &ShardMap,
    group: GroupId,
    node: NodeId,
    lost: ReplicaId,
) -> Result<(), OperateError> {
    let Some(members) = map.group(group) else { return Ok(()) };
    let mut replicas = members.replicas.clone();
    let Some(found) = replicas.iter_mut().find(|replica| replica.id == lost && replica.node == node) else {
        return Ok(()); // the replica already has a successor, or is not wanted there
    };
    let CatalogOutcome::IdsGiven { first_replica, .. } =
        shared.change(CatalogCommand::GiveIds(GiveIds { nodes: 0, replicas: 1 })).await?
    else {
        return Err(OperateError::Failed("the catalog assigned no number".into()));
    };
    found.id = first_replica;
    let change = ChangeReplicas { group, expect_epoch: members.epoch, replicas };
    shared.change(CatalogCommand::ChangeReplicas(change)).await?;
    tracing::warn!(%group, %node, %lost, new = %first_replica, "a damaged replica is rebuilt under a new number");
    Ok(())
}

/// Changes the map for a planned move. `present` are the current members of the group, unless they are being changed.
async fn place(shared: &Shared, map: &ShardMap, one: Move, present: &[ReplicaReport]) -> Result<(), OperateError> {
    let Move { group, epoch, nodes } = one;
    let Some(members) = map.group(group) else { return Ok(()) };
    let has = |node: NodeId| has(members, present, node);
    let new = u32::try_from(nodes.iter().filter(|node| has(**node).is_none()).count()).unwrap_or(u32::MAX);
    let mut next = if new > 0 {
        match shared.change(CatalogCommand::GiveIds(GiveIds { nodes: 0, replicas: new })).await? {
            CatalogOutcome::IdsGiven { first_replica, .. } => first_replica.0,
            other => return Err(OperateError::Failed(format!("the catalog answered {other:?}"))),
        }
    } else {
        0
    };
    let mut number = |node: NodeId| {
        has(node).unwrap_or_else(|| {
            let id = ReplicaId(next);
            next += 1;
            Replica { id, node }
        })
    };
    let replicas: Vec<Replica> = nodes.iter().map(|node| number(*node)).collect();
    let change = ChangeReplicas { group, expect_epoch: epoch, replicas };
    match shared.change(CatalogCommand::ChangeReplicas(change)).await? {
        CatalogOutcome::ReplicasChanged { .. } => {
            tracing::info!(%group, ?nodes, "a group is to be on these nodes");
            Ok(())
        }
        // Another change was faster, for example by a joining node, so the next step plans again.
        CatalogOutcome::StaleEpoch { .. } => Ok(()),
        other => Err(OperateError::Failed(format!("the catalog answered {other:?}"))),
    }
}

/// Returns the replica of a group on a node: the one in the map, or one that is still a member because its successor
/// never came.
///
/// A node has one replica of a group at a time. A new number would wait for the old replica to leave, which as a voter
/// waits for the new one. If the old replica has just left, its node does not create it again but reports it lost. The
/// planner then assigns an unused number.
fn has(members: &Members, present: &[ReplicaReport], node: NodeId) -> Option<Replica> {
    let named = members.replicas.iter().find(|replica| replica.node == node).copied();
    let member = || present.iter().find(|one| one.node == node).map(|one| Replica { id: one.replica, node });
    named.or_else(member)
}

#[cfg(test)]
mod tests {
    use assay_cluster_placement::first_map;

    use super::*;
    use crate::monitoring::status::Role;

    /// Regression: of four nodes three vote for the catalog. The fourth is lost, and a fifth joins and takes its place.
    /// The map wanted the lost node to vote, which waited for it to catch up, and the planner waited for that vote.
    #[test]
    fn a_group_that_waits_for_a_node_that_never_comes_back_is_planned_anew() {
        let nodes = [1, 2, 3, 4, 6].map(NodeId);
        let mut map = first_map(&nodes[..1], 4, 1);
        map.catalog.replicas = nodes.iter().map(|node| Replica { id: ReplicaId(node.0), node: *node }).collect();
        let replica = |node: &NodeId| {
            let role = if node.0 <= 3 { Role::Voter } else { Role::Learner };
            ReplicaReport { replica: ReplicaId(node.0), node: *node, role, matched: (node.0 != 4).then_some(100) }
        };
        let catalog = GroupReport {
            group: GroupId::CATALOG,
            shard: None,
            leader: Some(NodeId(1)),
            term: 3,
            replicas: nodes.iter().map(replica).collect(),
            applied: Some(100),
            changing: false,
        };
        let moving =
            |able: &[u64]| in_motion(&map, std::slice::from_ref(&catalog), &able.iter().copied().map(NodeId).collect());
        assert_eq!(moving(&[1, 2, 3, 4, 6]), BTreeSet::from([GroupId::CATALOG]), "it may yet come back");
        assert_eq!(moving(&[1, 2, 3, 6]), BTreeSet::new(), "removed, or silent for too long");
        let removed = [NodeId(4)].into();
        let able = Nodes { able: [1, 2, 3, 6].map(NodeId).into(), removed, ..Nodes::default() };
        let planned = plan(&map, &able, 3).into_iter().find(|one| one.group == GroupId::CATALOG).expect("a move");
        assert_eq!(planned.nodes, [1, 2, 3, 6].map(NodeId));
    }

    /// A newly founded cluster spreads all groups at once, and a cluster with data a few at a time.
    #[test]
    fn groups_without_data_move_together_and_others_a_few_at_a_time() {
        let group = |number: u16| GroupId::of_shard(assay_storage_model::ShardId(number));
        let planned = |count: u16| {
            (0..count).map(|number| Move { group: group(number), epoch: 1, nodes: vec![NodeId(1)] }).collect::<Vec<_>>()
        };
        let report = |number: u16, applied: u64| GroupReport {
            group: group(number),
            shard: None,
            leader: Some(NodeId(1)),
            term: 1,
            replicas: Vec::new(),
            applied: Some(applied),
            changing: false,
        };
        let none = BTreeSet::new();
        let new: Vec<_> = (0..40).map(|number| report(number, 2)).collect();
        assert_eq!(due(planned(40), &none, &new).len(), NEW_GROUPS_AT_ONCE);
        let filled: Vec<_> = (0..40).map(|number| report(number, 1_000)).collect();
        assert_eq!(due(planned(40), &none, &filled).len(), MOVES_AT_ONCE);
        assert_eq!(due(planned(40), &none, &[]).len(), MOVES_AT_ONCE, "nobody has said how much there is");
        let moving: BTreeSet<_> = (0..2).map(group).collect();
        assert_eq!(due(planned(40), &moving, &filled), []);
        let mixed: Vec<_> = (0..40).map(|number| report(number, if number < 2 { 1_000 } else { 2 })).collect();
        let begun: Vec<_> = due(planned(10), &moving, &mixed).into_iter().map(|one| one.group).collect();
        assert_eq!(begun, (2..10).map(group).collect::<Vec<_>>());
    }

    /// Regression: a group moves from node 3 to node 4 and back, because node 4 died before it was filled. A new number
    /// on node 3 waited forever for the old replica there to leave.
    #[test]
    fn a_replica_that_never_left_keeps_its_number_when_it_is_wanted_again() {
        let on = |id: u64, node: u64| Replica { id: ReplicaId(id), node: NodeId(node) };
        let members = Members { epoch: 2, replicas: vec![on(1, 1), on(2, 2), on(9, 4)] };
        let report =
            |one: Replica| ReplicaReport { replica: one.id, node: one.node, role: Role::Voter, matched: Some(100) };
        let present: Vec<ReplicaReport> = [on(1, 1), on(2, 2), on(3, 3)].map(report).into();
        assert_eq!(has(&members, &present, NodeId(3)), Some(on(3, 3)));
        assert_eq!(has(&members, &present, NodeId(4)), Some(on(9, 4)), "the map goes first");
        assert_eq!(has(&members, &present, NodeId(5)), None);
        assert_eq!(has(&members, &[], NodeId(3)), None, "while they change nobody knows");
    }
}
