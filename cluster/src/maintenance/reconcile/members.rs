//! Reconciliation of the members of groups led by this node with the map, one change at a time.
//!
//! The reconciler then chooses the next leader. It never chooses a node that drains or is impaired. Otherwise it
//! follows the assignment that spreads leads over all nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster_network::node_records::{self, NodeState};
use assay_cluster_placement::leaders;
use assay_cluster_raft::{ChangeError, Group, GroupStatus, HandOverError, Impairment, Member};
use assay_storage_model::catalog::{Replica, ShardMap};
use assay_storage_model::{GroupId, NodeId, ReplicaId, ShardId};
use parking_lot::Mutex;
use tokio::time::sleep;

use super::{CatalogChanges, LOOK, LOOK_MIN, voters_wanted};
use crate::Shared;
use crate::monitoring::status::CLOSE_ENTRIES;

/// Minimum time of a lead before a handover for balance.
const LEADS_AT_LEAST: Duration = Duration::from_secs(10);
/// Pause after a failed handover for balance.
const HANDED_AGAIN_AFTER: Duration = Duration::from_secs(15);
/// Pause after a failed handover from a node that drains or is impaired. Writes that were held back proceed meanwhile.
const URGENT_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Number of concurrent handovers for balance. Each delays the writes of its group for less than a second.
const BALANCING_MAX: usize = 2;

/// Maximum time of consecutive steps of a change before the group is examined again.
const FOLLOW_MAX: Duration = Duration::from_secs(1);
const FOLLOW_EVERY: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
struct Book {
    /// Groups with a step in progress.
    busy: BTreeSet<GroupId>,
    leads_since: BTreeMap<GroupId, Instant>,
    /// Time of the last failed handover.
    failed_at: BTreeMap<GroupId, Instant>,
    balancing: usize,
}

/// Assignment of leaders to groups, recomputed only when its inputs change.
#[derive(Debug, Default)]
struct Spread {
    candidates: BTreeMap<GroupId, BTreeSet<NodeId>>,
    leaders: Arc<BTreeMap<GroupId, NodeId>>,
}

impl Spread {
    fn look(&mut self, shared: &Shared) -> Arc<BTreeMap<GroupId, NodeId>> {
        let map = shared.catalog.read().shard_map().cloned();
        let candidates = map.map(|map| candidates(&map, &shared.able_to_lead())).unwrap_or_default();
        if candidates != self.candidates {
            self.leaders = Arc::new(leaders(&candidates));
            self.candidates = candidates;
        }
        Arc::clone(&self.leaders)
    }
}

/// Returns the nodes that may lead each group of the map.
fn candidates(map: &ShardMap, able: &BTreeSet<NodeId>) -> BTreeMap<GroupId, BTreeSet<NodeId>> {
    let shards = (0..map.shards.len()).filter_map(|shard| u16::try_from(shard).ok()).map(ShardId);
    let groups = [GroupId::CATALOG].into_iter().chain(shards.map(GroupId::of_shard));
    let of = |group: GroupId| {
        let replicas = &map.group(group)?.replicas;
        let voters = voters_wanted(group, replicas);
        let nodes = replicas.iter().filter(|replica| voters.contains(&replica.id)).map(|replica| replica.node);
        Some((group, nodes.filter(|node| able.contains(node)).collect()))
    };
    groups.filter_map(of).collect()
}

pub(super) async fn run(shared: Arc<Shared>) {
    let book = Arc::new(Mutex::new(Book::default()));
    let mut spread = Spread::default();
    loop {
        let changes = CatalogChanges::from_now(&shared);
        let leaders = spread.look(&shared);
        // If every node is impaired, none yields to others.
        let yields = shared.is_impaired() && !shared.able_to_lead().is_empty();
        for group in shared.replicas.groups() {
            group.yield_elections(yields);
            let status = group.status();
            if !status.leads {
                book.lock().leads_since.remove(&group.id());
                continue;
            }
            book.lock().leads_since.entry(group.id()).or_insert_with(|| {
                tracing::debug!(group = %group.id(), term = status.term, "leads");
                Instant::now()
            });
            if book.lock().busy.insert(group.id()) {
                let (shared, book) = (Arc::clone(&shared), Arc::clone(&book));
                let to_lead = leaders.get(&group.id()).copied();
                tokio::spawn(async move {
                    if change_members(&shared, &group).await {
                        lead_or_give(&shared, &group, (&status, to_lead), &book).await;
                    }
                    book.lock().busy.remove(&group.id());
                });
            }
        }
        changes.wait(LOOK_MIN, LOOK).await;
    }
}

/// Changes the members to those of the map, and returns whether there was nothing to change.
///
/// Waits briefly for a new replica, so that a change of several steps needs only one round.
async fn change_members(shared: &Shared, group: &Group) -> bool {
    let until = Instant::now() + FOLLOW_MAX;
    let mut has_changed = false;
    loop {
        let map = shared.catalog.read().shard_map().cloned();
        let Some(members) = map.as_ref().and_then(|map| map.group(group.id())) else { return false };
        let status = group.status();
        let change = next_change(group.id(), group.replica(), &status, &members.replicas);
        if change.is_none() && (!has_changed || are_as_wanted(group.id(), &status, &members.replicas)) {
            return !has_changed;
        }
        has_changed = true;
        if let Some(change) = change {
            tracing::info!(group = %group.id(), ?change, "changing members");
            match make(group, change).await {
                Ok(()) => {}
                // The change in progress may wait for a majority, and is checked again later.
                Err(ChangeError::UnderWay | ChangeError::NotLeader { .. }) => return false,
                Err(ChangeError::Failed(why)) => {
                    tracing::warn!(group = %group.id(), why, "a membership change failed and will be retried");
                    return false;
                }
            }
        }
        if Instant::now() >= until {
            return false;
        }
        sleep(FOLLOW_EVERY).await;
    }
}

/// Returns whether a group has exactly the members and voters of the map. Pure.
fn are_as_wanted(group: GroupId, status: &GroupStatus, wanted: &[Replica]) -> bool {
    let voters = voters_wanted(group, wanted);
    let is_wanted = |member: &Member| {
        let named = wanted.iter().any(|replica| replica.id == member.replica);
        named && member.voter == voters.contains(&member.replica)
    };
    !status.joint && !status.changing && status.members.len() == wanted.len() && status.members.iter().all(is_wanted)
}

/// One step from the actual to the wanted members of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    AddLearner(ReplicaId, NodeId),
    /// Sets the voters, and also finishes an interrupted change.
    SetVoters(BTreeSet<ReplicaId>),
    RemoveLearner(ReplicaId),
    /// Hands over the lead, because the leader must leave the group.
    HandOver(ReplicaId),
}

/// Returns the next change of the members. Pure.
///
/// New voters must be close behind before the voters change, because a majority must not wait for a replica without
/// data.
fn next_change(group: GroupId, own: ReplicaId, status: &GroupStatus, wanted: &[Replica]) -> Option<Change> {
    let member = |replica: ReplicaId| status.members.iter().find(|member| member.replica == replica);
    let voters: BTreeSet<ReplicaId> = voters_wanted(group, wanted).into_iter().collect();
    let known: BTreeSet<ReplicaId> = voters.iter().copied().filter(|voter| member(*voter).is_some()).collect();
    if status.joint && !known.is_empty() {
        return Some(Change::SetVoters(known));
    }
    if status.changing {
        return None; // the last step is not committed, and another one would be refused
    }
    if let Some(missing) = wanted.iter().find(|replica| member(replica.id).is_none()) {
        return Some(Change::AddLearner(missing.id, missing.node));
    }
    let voting: BTreeSet<ReplicaId> =
        status.members.iter().filter(|member| member.voter).map(|member| member.replica).collect();
    if voting != voters {
        let last = status.last.unwrap_or(0);
        let close = |voter: &ReplicaId| {
            let matched = member(*voter).and_then(|member| member.matched);
            matched.is_some_and(|matched| matched + CLOSE_ENTRIES >= last)
        };
        if !voters.difference(&voting).all(close) {
            return None;
        }
        if !voters.contains(&own)
            && let Some(successor) = voters.intersection(&voting).find(|voter| close(voter))
        {
            return Some(Change::HandOver(*successor));
        }
        return Some(Change::SetVoters(voters));
    }
    let leaving = status.members.iter().find(|member| wanted.iter().all(|replica| replica.id != member.replica));
    leaving.map(|member| Change::RemoveLearner(member.replica))
}

async fn make(group: &Group, change: Change) -> Result<(), ChangeError> {
    match change {
        Change::AddLearner(replica, node) => group.add_learner(replica, node).await,
        Change::SetVoters(voters) => group.set_voters(voters).await,
        Change::RemoveLearner(replica) => group.remove_learner(replica).await,
        Change::HandOver(to) => match group.hand_over(to).await {
            Ok(()) | Err(HandOverError::NotLeader) => Ok(()),
            Err(why) => Err(ChangeError::Failed(why.to_string())),
        },
    }
}

/// Reason to hand over a lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Drains,
    /// The disk of the node is slow, or it cannot open files.
    Impaired,
    Spread,
}

impl Reason {
    /// Returns the pause after a failed handover for this reason.
    fn pause(self) -> Duration {
        match self {
            Reason::Drains | Reason::Impaired => URGENT_AGAIN_AFTER,
            Reason::Spread => HANDED_AGAIN_AFTER,
        }
    }
}

async fn lead_or_give(
    shared: &Shared,
    group: &Group,
    (status, to_lead): (&GroupStatus, Option<NodeId>),
    book: &Mutex<Book>,
) {
    let (better, reason) = better_leaders(shared, group, status, to_lead);
    if better.is_empty() {
        return;
    }
    {
        let mut book = book.lock();
        let now = Instant::now();
        let young = book.leads_since.get(&group.id()).is_none_or(|since| now - *since < LEADS_AT_LEAST);
        let failed = book.failed_at.get(&group.id()).is_some_and(|at| now - *at < reason.pause());
        if failed || (reason == Reason::Spread && (young || book.balancing >= BALANCING_MAX)) {
            return;
        }
        book.balancing += 1;
    }
    let handed = match shared.first_there(better).await {
        Some(to) if reason == Reason::Impaired => {
            let why = if shared.log.is_slow() { Impairment::SlowDisk } else { Impairment::NoFiles };
            group.hand_over_from_impaired_node(to, why).await.map_err(|why| why.to_string())
        }
        Some(to) => group.hand_over(to).await.map_err(|why| why.to_string()),
        None => Err("the intended leader does not respond".to_owned()),
    };
    let mut book = book.lock();
    book.balancing -= 1;
    if let Err(why) = handed {
        tracing::debug!(group = %group.id(), why, "the lead was not handed over");
        book.failed_at.insert(group.id(), Instant::now());
    }
}

/// Returns the replicas that should lead instead of this one, and the reason.
fn better_leaders(
    shared: &Shared,
    group: &Group,
    status: &GroupStatus,
    to_lead: Option<NodeId>,
) -> (Vec<Member>, Reason) {
    let nodes = node_records::all(&shared.catalog.read());
    if nodes.get(&shared.node).is_some_and(|(record, _)| record.state != NodeState::Active) {
        return (shared.successors(group), Reason::Drains);
    }
    if shared.is_impaired() {
        let able = shared.able_to_lead();
        let successors = shared.successors(group).into_iter();
        return (successors.filter(|member| able.contains(&member.node)).collect(), Reason::Impaired);
    }
    let last = status.last.unwrap_or(0);
    let better = status.members.iter().filter(|member| {
        let is_close = member.matched.is_some_and(|matched| matched + CLOSE_ENTRIES >= last);
        member.voter && is_close && Some(member.node) == to_lead && member.replica != group.replica()
    });
    (better.cloned().collect(), Reason::Spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARD: GroupId = GroupId(16);

    fn replica(id: u64) -> Replica {
        Replica { id: ReplicaId(id), node: NodeId(id) }
    }

    fn member(id: u64, voter: bool, matched: u64) -> Member {
        Member { replica: ReplicaId(id), node: NodeId(id), voter, matched: Some(matched) }
    }

    fn status(members: Vec<Member>) -> GroupStatus {
        GroupStatus { leads: true, leader: Some(ReplicaId(1)), last: Some(1000), members, ..GroupStatus::default() }
    }

    fn next(members: Vec<Member>, wanted: &[u64]) -> Option<Change> {
        let wanted: Vec<Replica> = wanted.iter().copied().map(replica).collect();
        next_change(SHARD, ReplicaId(1), &status(members), &wanted)
    }

    fn voters(ids: &[u64]) -> Option<Change> {
        Some(Change::SetVoters(ids.iter().copied().map(ReplicaId).collect()))
    }

    #[test]
    fn a_new_replica_learns_first_and_votes_when_it_is_close() {
        let three = || vec![member(1, true, 1000), member(2, true, 1000), member(3, true, 0)];
        assert_eq!(next(three(), &[1, 2, 3]), None, "a silent voter that is wanted changes nothing");
        assert_eq!(next(three(), &[1, 2, 4]), Some(Change::AddLearner(ReplicaId(4), NodeId(4))));
        let with = |matched| [three(), vec![member(4, false, matched)]].concat();
        assert_eq!(next(with(10), &[1, 2, 4]), None);
        assert_eq!(next(with(990), &[1, 2, 4]), voters(&[1, 2, 4]));
    }

    #[test]
    fn a_change_cut_short_is_finished_and_learners_that_are_not_wanted_go() {
        let members = vec![member(1, true, 1000), member(2, true, 1000), member(3, true, 1000)];
        let joint = GroupStatus { joint: true, changing: true, ..status(members.clone()) };
        let wanted = [replica(1), replica(2)];
        assert_eq!(next_change(SHARD, ReplicaId(1), &joint, &wanted), voters(&[1, 2]));
        let uncommitted = GroupStatus { changing: true, ..status(members.clone()) };
        assert_eq!(next_change(SHARD, ReplicaId(1), &uncommitted, &wanted), None);
        let left = [members[..2].to_vec(), vec![member(9, false, 5)]].concat();
        assert_eq!(next(left, &[1, 2]), Some(Change::RemoveLearner(ReplicaId(9))));
    }

    #[test]
    fn a_group_is_as_wanted_once_its_members_and_voters_are() {
        let wanted = [1, 2, 3].map(replica);
        let as_wanted = |status: &GroupStatus| are_as_wanted(SHARD, status, &wanted);
        let three = vec![member(1, true, 1000), member(2, true, 1000), member(3, true, 0)];
        assert!(as_wanted(&status(three.clone())));
        assert!(!as_wanted(&GroupStatus { changing: true, ..status(three.clone()) }));
        let learns = vec![member(1, true, 1000), member(2, true, 1000), member(3, false, 0)];
        for members in [learns, three[..2].to_vec(), [three, vec![member(4, false, 0)]].concat()] {
            assert!(!as_wanted(&status(members)));
        }
    }

    #[test]
    fn a_leader_that_leaves_gives_the_lead_away_first() {
        let members = vec![member(1, true, 1000), member(2, true, 1000), member(3, true, 1000)];
        assert_eq!(next(members, &[2, 3]), Some(Change::HandOver(ReplicaId(2))));
    }

    #[test]
    fn of_the_catalog_an_odd_number_votes() {
        let members: Vec<Member> = (1..=4).map(|id| member(id, id <= 3, 1000)).collect();
        let wanted: Vec<Replica> = (1..=4).map(replica).collect();
        assert_eq!(next_change(GroupId::CATALOG, ReplicaId(1), &status(members), &wanted), None);
    }
}
