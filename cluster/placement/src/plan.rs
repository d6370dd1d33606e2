//! Planning of replica moves: the next change on the way to the wanted placement. Pure.
//!
//! L1: a group is on the nodes that rendezvous chooses among those that may keep something.
//! L2: it never has fewer replicas than it had because a node is silent: one that is silent keeps its place until
//!     another node can take it. A node that was removed keeps nothing.
//! L3: two nodes are no safer than one, so a cluster of one that grows waits for the third.
//! L4: while a replica of a shard is silent, none of the others moves: each is one of few that still have everything.
//! L5: replicas that stay keep their numbers and their order; new ones come behind them.

use std::collections::BTreeSet;

use assay_storage_model::catalog::{Members, ShardMap};
use assay_storage_model::{GroupId, NodeId, ShardId};

use crate::nodes_of;

/// Voters of the catalog; the other nodes have learners of it.
pub const CATALOG_VOTERS: usize = 5;

/// Facts about the nodes on which a plan is based.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// They may be given something.
    pub able: BTreeSet<NodeId>,
    /// They do not answer now. Those that are able as well are expected back.
    pub silent: BTreeSet<NodeId>,
    /// They never come back.
    pub removed: BTreeSet<NodeId>,
}

/// One group, and the nodes it is to be on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    pub group: GroupId,
    pub epoch: u64,
    pub nodes: Vec<NodeId>,
}

/// Every group that is not where it is to be, the catalog first.
pub fn plan(map: &ShardMap, nodes: &Nodes, replicas: usize) -> Vec<Move> {
    let shards = (0..).zip(&map.shards).map(|(shard, members)| (GroupId::of_shard(ShardId(shard)), members, replicas));
    let catalog = std::iter::once((GroupId::CATALOG, &map.catalog, usize::MAX));
    catalog.chain(shards).filter_map(|(group, members, wanted)| moved(group, members, nodes, wanted)).collect()
}

fn moved(group: GroupId, members: &Members, nodes: &Nodes, replicas: usize) -> Option<Move> {
    let now: Vec<NodeId> = members.replicas.iter().map(|replica| replica.node).collect();
    let wanted = wanted(group, &now, nodes, replicas);
    let changed = match group {
        GroupId::CATALOG => wanted != now, // its order says who votes
        _ => wanted.iter().collect::<BTreeSet<_>>() != now.iter().collect::<BTreeSet<_>>(),
    };
    let waits = group != GroupId::CATALOG && wanted.iter().any(|node| nodes.silent.contains(node)); // L4
    (changed && !waits && !wanted.is_empty()).then_some(Move { group, epoch: members.epoch, nodes: wanted })
}

fn wanted(group: GroupId, now: &[NodeId], nodes: &Nodes, replicas: usize) -> Vec<NodeId> {
    let able: Vec<NodeId> = nodes.able.iter().copied().collect();
    let stays = |node: &&NodeId| !nodes.removed.contains(node);
    if let ([only], true) = (now, group != GroupId::CATALOG)
        && able.len() == 2
        && replicas > 2
        && nodes.able.contains(only)
    {
        return vec![*only]; // L3
    }
    let chosen: BTreeSet<NodeId> = nodes_of(group, &able, replicas).into_iter().collect(); // L1
    let mut kept: Vec<NodeId> = now.iter().filter(|node| chosen.contains(node)).copied().collect(); // L5
    kept.extend(chosen.iter().filter(|node| !now.contains(node)));
    let silent = now.iter().filter(stays).filter(|node| !nodes.able.contains(node));
    let room = now.iter().filter(stays).count().max(kept.len()).min(replicas);
    let places = room.saturating_sub(kept.len());
    kept.extend(silent.take(places)); // L2
    kept
}

/// Returns how many of the catalog's nodes vote, in their order. The number is odd, since an even one adds no fault
/// tolerance.
pub fn catalog_voters(nodes: usize) -> usize {
    match nodes.min(CATALOG_VOTERS) {
        0 => 0,
        few if few % 2 == 1 => few,
        few => few - 1,
    }
}

#[cfg(test)]
mod tests {
    use assay_storage_model::ReplicaId;
    use assay_storage_model::catalog::Replica;

    use super::*;
    use crate::first_map;

    fn nodes(able: &[u64], removed: &[u64]) -> Nodes {
        let set = |numbers: &[u64]| numbers.iter().copied().map(NodeId).collect();
        Nodes { able: set(able), removed: set(removed), silent: BTreeSet::new() }
    }

    /// Carries a plan out, with new numbers from `next` on.
    fn carried_out(map: &ShardMap, moves: &[Move], next: &mut u64) -> ShardMap {
        let mut map = map.clone();
        for Move { group, nodes, .. } in moves {
            let members = map.group_mut(*group).expect("a group of the map");
            let before = members.replicas.clone();
            members.epoch += 1;
            members.replicas = nodes
                .iter()
                .map(|node| {
                    before.iter().find(|replica| replica.node == *node).copied().unwrap_or_else(|| {
                        *next += 1;
                        Replica { id: ReplicaId(*next), node: *node }
                    })
                })
                .collect();
        }
        map
    }

    fn sizes(map: &ShardMap) -> BTreeSet<usize> {
        map.shards.iter().map(|members| members.replicas.len()).collect()
    }

    #[test]
    fn a_cluster_of_one_waits_for_the_third_and_then_spreads() {
        let one = first_map(&[NodeId(1)], 16, 1);
        let mut next = 100;
        let two = plan(&one, &nodes(&[1, 2], &[]), 3);
        assert_eq!(two.len(), 1, "the catalog alone goes to the second node");
        let map = carried_out(&one, &two, &mut next);
        let three = plan(&map, &nodes(&[1, 2, 3], &[]), 3);
        assert_eq!(three.len(), 17);
        let map = carried_out(&map, &three, &mut next);
        assert_eq!(sizes(&map), BTreeSet::from([3]));
        assert!(plan(&map, &nodes(&[1, 2, 3], &[]), 3).is_empty(), "and is then at rest");
    }

    #[test]
    fn a_silent_node_keeps_its_places_until_another_can_take_them() {
        let map = first_map(&[NodeId(1), NodeId(2), NodeId(3)], 16, 3);
        let moves = plan(&map, &nodes(&[1, 2], &[]), 3);
        assert!(moves.iter().all(|one| one.group == GroupId::CATALOG), "{moves:?}");
        let map = carried_out(&map, &moves, &mut 100);
        assert_eq!(map.catalog.replicas.len(), 3);
        let moves = plan(&map, &nodes(&[1, 2, 4], &[]), 3);
        assert_eq!(moves.len(), 17);
        assert!(moves.iter().skip(1).all(|one| one.nodes.contains(&NodeId(4)) && !one.nodes.contains(&NodeId(3))));
    }

    #[test]
    fn while_one_is_silent_the_others_stay_where_they_are() {
        let map = first_map(&[NodeId(1), NodeId(2), NodeId(3)], 16, 3);
        let silent = Nodes { silent: BTreeSet::from([NodeId(2)]), ..nodes(&[1, 2, 3, 4], &[]) };
        let moves = plan(&map, &silent, 3);
        let shards: Vec<_> = moves.iter().filter(|one| one.group != GroupId::CATALOG).collect();
        assert!(shards.iter().all(|one| !one.nodes.contains(&NodeId(2))), "none but the silent one moves: {shards:?}");
        let map = carried_out(&map, &moves, &mut 100);
        let gone = plan(&map, &nodes(&[1, 3, 4], &[2]), 3);
        assert!(gone.iter().all(|one| one.nodes.iter().all(|node| *node != NodeId(2))));
        assert_eq!(sizes(&carried_out(&map, &gone, &mut 200)), BTreeSet::from([3]));
    }

    #[test]
    fn a_removed_node_keeps_nothing() {
        let map = first_map(&[NodeId(1), NodeId(2), NodeId(3)], 16, 3);
        let map = carried_out(&map, &plan(&map, &nodes(&[1, 2], &[3]), 3), &mut 100);
        assert_eq!(sizes(&map), BTreeSet::from([2]));
        assert!(map.replicas().all(|replica| replica.node != NodeId(3)));
    }

    #[test]
    fn a_fourth_node_takes_its_share_and_nothing_moves_between_the_others() {
        let map = first_map(&[NodeId(1), NodeId(2), NodeId(3)], 64, 3);
        let moves = plan(&map, &nodes(&[1, 2, 3, 4], &[]), 3);
        let after = carried_out(&map, &moves, &mut 1000);
        for (before, after) in map.shards.iter().zip(&after.shards) {
            let new: Vec<_> = after.replicas.iter().filter(|replica| !before.replicas.contains(replica)).collect();
            assert!(new.iter().all(|replica| replica.node == NodeId(4)) && new.len() <= 1);
            assert_eq!(after.replicas.len(), 3);
        }
        let taken = after.shards.iter().filter(|members| members.replicas.iter().any(|r| r.node == NodeId(4))).count();
        assert!((32..=62).contains(&taken), "three quarters of 64, about: {taken}");
    }

    #[test]
    fn an_odd_number_votes() {
        let voters: Vec<usize> = (0..8).map(catalog_voters).collect();
        assert_eq!(voters, [0, 1, 1, 3, 3, 5, 5, 5]);
    }
}
