//! Choice of group leaders: the numbers of groups led by two nodes differ by at most one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use assay_storage_model::{GroupId, NodeId};

use crate::nodes_of;

/// Assigns a leader to every group that has a candidate. The first candidate by rendezvous hashing leads, unless the
/// node would lead two groups more than another that could take one over, directly or by passing one on.
///
/// The same input gives the same answer on every node, so nodes agree without talking about it.
pub fn leaders(candidates: &BTreeMap<GroupId, BTreeSet<NodeId>>) -> BTreeMap<GroupId, NodeId> {
    let first = |group: &GroupId, nodes: &BTreeSet<NodeId>| {
        let nodes: Vec<NodeId> = nodes.iter().copied().collect();
        nodes_of(*group, &nodes, 1).first().copied()
    };
    let mut led: BTreeMap<GroupId, NodeId> =
        candidates.iter().filter_map(|(group, nodes)| Some((*group, first(group, nodes)?))).collect();
    let all: BTreeSet<NodeId> = candidates.values().flatten().copied().collect();
    let mut counts: BTreeMap<NodeId, usize> = all.into_iter().map(|node| (node, 0)).collect();
    led.values().for_each(|node| *counts.entry(*node).or_default() += 1);
    // Each round lowers the sum of the squares of the counts, so this ends.
    while let Some(moves) = lighter(candidates, &led, &counts) {
        for (group, to) in moves {
            let from = led.insert(group, to);
            from.and_then(|from| counts.get_mut(&from)).into_iter().for_each(|count| *count -= 1);
            *counts.entry(to).or_default() += 1;
        }
    }
    led
}

/// A chain of moves from a node that leads much to one that leads at least two groups fewer.
fn lighter(
    candidates: &BTreeMap<GroupId, BTreeSet<NodeId>>,
    led: &BTreeMap<GroupId, NodeId>,
    counts: &BTreeMap<NodeId, usize>,
) -> Option<Vec<(GroupId, NodeId)>> {
    let mut heavy: Vec<NodeId> = counts.keys().copied().collect();
    heavy.sort_by_key(|node| (std::cmp::Reverse(counts[node]), *node));
    heavy.into_iter().find_map(|from| chain(candidates, led, counts, from))
}

fn chain(
    candidates: &BTreeMap<GroupId, BTreeSet<NodeId>>,
    led: &BTreeMap<GroupId, NodeId>,
    counts: &BTreeMap<NodeId, usize>,
    from: NodeId,
) -> Option<Vec<(GroupId, NodeId)>> {
    // By which group each node was reached, and from where.
    let mut reached: BTreeMap<NodeId, (GroupId, NodeId)> = BTreeMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        if counts[&node] + 2 <= counts[&from] {
            let mut moves = Vec::new();
            let mut at = node;
            while at != from {
                let (group, before) = reached[&at];
                moves.push((group, at));
                at = before;
            }
            return Some(moves);
        }
        for (group, _) in led.iter().filter(|(_, leader)| **leader == node) {
            for next in &candidates[group] {
                if *next != from && !reached.contains_key(next) {
                    reached.insert(*next, (*group, node));
                    queue.push_back(*next);
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use assay_storage_model::ShardId;

    use super::*;

    fn everywhere(groups: u16, nodes: &[u64]) -> BTreeMap<GroupId, BTreeSet<NodeId>> {
        let nodes: BTreeSet<NodeId> = nodes.iter().copied().map(NodeId).collect();
        let shards = (0..groups).map(|shard| GroupId::of_shard(ShardId(shard)));
        [GroupId::CATALOG].into_iter().chain(shards).map(|group| (group, nodes.clone())).collect()
    }

    fn counts(led: &BTreeMap<GroupId, NodeId>, nodes: &[u64]) -> Vec<usize> {
        nodes.iter().map(|node| led.values().filter(|leader| leader.0 == *node).count()).collect()
    }

    /// Rendezvous alone gave one of three nodes 12 of 17 groups.
    #[test]
    fn where_all_nodes_have_all_groups_no_node_leads_two_more_than_another() {
        for nodes in [&[1, 2, 3][..], &[1, 2], &[7], &[1, 2, 3, 4, 5], &[10_004, 2, 3]] {
            for groups in [4, 16, 64] {
                let led = leaders(&everywhere(groups, nodes));
                assert_eq!(led.len(), usize::from(groups) + 1);
                let counts = counts(&led, nodes);
                let spread = counts.iter().max().expect("some") - counts.iter().min().expect("some");
                assert!(spread <= 1, "{nodes:?} {groups}: {counts:?}");
            }
        }
    }

    #[test]
    fn a_lead_may_pass_over_a_node_in_between() {
        let of = |nodes: &[u64]| nodes.iter().copied().map(NodeId).collect::<BTreeSet<NodeId>>();
        let group = |shard| GroupId::of_shard(ShardId(shard));
        // Node 3 shares groups with node 2 only, and node 1 has nothing to give to it directly.
        let mut candidates: BTreeMap<_, _> = (0..4).map(|shard| (group(shard), of(&[1]))).collect();
        candidates.extend((4..8).map(|shard| (group(shard), of(&[1, 2]))));
        candidates.extend((8..12).map(|shard| (group(shard), of(&[2, 3]))));
        candidates.insert(group(12), BTreeSet::new());
        let led = leaders(&candidates);
        assert_eq!(counts(&led, &[1, 2, 3]), [4, 4, 4]);
        assert!(led.iter().all(|(group, leader)| candidates[group].contains(leader)));
        assert!(!led.contains_key(&group(12)), "nobody can lead it");
    }

    #[test]
    fn a_node_that_is_away_changes_little() {
        let (all, two) = (leaders(&everywhere(16, &[1, 2, 3])), leaders(&everywhere(16, &[1, 2])));
        let moved = all.iter().filter(|(group, leader)| leader.0 != 3 && two[group] != **leader).count();
        assert!(moved <= 4, "{moved} groups moved between nodes that were there before and after");
    }
}
