//! Placement: the shard of an object, and the nodes of a shard. Pure: numbers in, numbers out; independent of the
//! network and of the current state.
//!
//! P1: an object's shard depends on its key and the number of shards alone, in every version of the program.
//! P2: the same nodes give the same places, in whatever order they are named.
//! P3: a node that joins takes places, and no place moves between two nodes that were there before; a node that
//!     leaves gives its own places away, and no other moves. (Rendezvous: every node scores every group, the highest
//!     scores keep it.)

mod leaders;
mod plan;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use assay_storage_model::catalog::{Members, Replica, ShardMap};
use assay_storage_model::{GroupId, NodeId, ObjectKey, ReplicaId, ShardId};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub use leaders::leaders;
pub use plan::{CATALOG_VOTERS, Move, Nodes, catalog_voters, plan};

/// Replicas of a shard where there are nodes enough.
pub const SHARD_REPLICAS: usize = 3;
/// Members of the catalog in a first map; nodes that come later are added to them.
const CATALOG_REPLICAS: usize = 5;

/// Keeps the scores of nodes apart from every other use of the hash. On disk in effect: it decides who keeps what.
const SCORE_SEED: u64 = 0x6173_7361_7901;

/// Returns the shard that holds an object's rows (P1).
///
/// # Panics
/// Panics if there are no shards; a map has at least four.
pub fn shard_of(object: &ObjectKey, shards: u16) -> ShardId {
    assert!(shards > 0, "a cluster has shards");
    let shard = xxh3_64(&object.to_bytes()) % u64::from(shards);
    ShardId(u16::try_from(shard).expect("below a u16"))
}

/// The nodes that keep a group, best first, at most `replicas` of them (P2, P3).
pub fn nodes_of(group: GroupId, nodes: &[NodeId], replicas: usize) -> Vec<NodeId> {
    let nodes: BTreeSet<NodeId> = nodes.iter().copied().collect();
    let mut ranked: Vec<NodeId> = nodes.into_iter().collect();
    ranked.sort_by_key(|node| (Reverse(score(group, *node)), *node));
    ranked.truncate(replicas);
    ranked
}

/// The first map of a cluster: every group on its nodes, replicas numbered from 1, the catalog's first. Later maps
/// come from moves and not from here.
pub fn first_map(nodes: &[NodeId], shards: u16, replicas: usize) -> ShardMap {
    let mut next = 1;
    let mut members = |group, replicas| {
        let number = |node| {
            let id = ReplicaId(next);
            next += 1;
            Replica { id, node }
        };
        Members { epoch: 1, replicas: nodes_of(group, nodes, replicas).into_iter().map(number).collect() }
    };
    let catalog = members(GroupId::CATALOG, CATALOG_REPLICAS);
    let shards = (0..shards).map(|shard| members(GroupId::of_shard(ShardId(shard)), replicas)).collect();
    ShardMap { catalog, shards }
}

fn score(group: GroupId, node: NodeId) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&group.0.to_le_bytes());
    bytes[8..].copy_from_slice(&node.0.to_le_bytes());
    xxh3_64_with_seed(&bytes, SCORE_SEED)
}

#[cfg(test)]
mod tests {
    use assay_storage_model::ObjectKind;
    use expect_test::{Expect, expect};

    use super::*;

    fn object(number: u128) -> ObjectKey {
        let mut bytes = [0; ObjectKey::BYTES];
        bytes[15] = (number % 3) as u8;
        bytes[16] = ObjectKind::Experiment as u8;
        bytes[17..33].copy_from_slice(&number.to_be_bytes());
        ObjectKey::from_bytes(&bytes).expect("a key")
    }

    fn nodes(numbers: &[u64]) -> Vec<NodeId> {
        numbers.iter().copied().map(NodeId).collect()
    }

    /// Shard by shard, the nodes that keep it, best first.
    fn places(numbers: &[u64], shards: u16, replicas: usize) -> Vec<Vec<u64>> {
        let group = |shard| GroupId::of_shard(ShardId(shard));
        let of = |shard| nodes_of(group(shard), &nodes(numbers), replicas).iter().map(|node| node.0).collect();
        (0..shards).map(of).collect()
    }

    fn check(numbers: &[u64], replicas: usize, expected: Expect) {
        let line = |nodes: Vec<u64>| nodes.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        expected.assert_eq(&places(numbers, 8, replicas).into_iter().map(line).collect::<Vec<_>>().join(" "));
    }

    #[test]
    fn an_object_keeps_its_shard_for_ever() {
        let found: Vec<u16> = (0..16).map(|number| shard_of(&object(number), 16).0).collect();
        expect!["[10, 14, 14, 12, 4, 7, 2, 15, 11, 1, 1, 5, 14, 6, 12, 9]"].assert_eq(&format!("{found:?}"));
    }

    #[test]
    fn objects_spread_evenly() {
        let mut counts = [0_u32; 16];
        for number in 0..16_000 {
            counts[usize::from(shard_of(&object(number), 16).0)] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_group_keeps_its_nodes_for_ever() {
        check(&[1, 2, 3, 4, 5], 3, expect!["1,5,2 2,3,1 2,1,4 2,5,4 1,5,4 3,1,4 2,4,3 2,3,1"]);
    }

    #[test]
    fn one_node_keeps_everything() {
        check(&[7], 3, expect![["7 7 7 7 7 7 7 7"]]);
        let map = first_map(&nodes(&[7]), 16, SHARD_REPLICAS);
        assert_eq!(map.catalog.replicas, [Replica { id: ReplicaId(1), node: NodeId(7) }]);
        assert_eq!(map.shards.len(), 16);
        let ids: Vec<u64> = map.replicas().map(|replica| replica.id.0).collect();
        assert_eq!(ids, (1..=17).collect::<Vec<_>>());
    }

    #[test]
    fn without_nodes_nothing_is_placed() {
        assert!(first_map(&[], 4, 3).replicas().next().is_none());
    }

    #[test]
    fn the_order_in_which_nodes_are_named_does_not_matter() {
        assert_eq!(places(&[1, 2, 3, 4], 64, 3), places(&[4, 2, 2, 1, 3], 64, 3));
    }

    #[test]
    fn a_node_that_joins_only_takes_and_one_that_leaves_only_gives() {
        for replicas in 1..=4 {
            let (few, many) = (places(&[1, 2, 3, 4, 5], 256, replicas), places(&[1, 2, 3, 4, 5, 6], 256, replicas));
            let mut taken = 0;
            for (before, after) in few.iter().zip(&many) {
                assert!(after.iter().all(|node| before.contains(node) || *node == 6), "P3 {before:?} {after:?}");
                let stayed: Vec<_> = after.iter().filter(|node| **node != 6).collect();
                assert!(before.iter().take(stayed.len()).eq(stayed), "P3, also in rank {before:?} {after:?}");
                taken += usize::from(after.contains(&6));
            }
            let share = 256 * replicas / 6;
            assert!((share * 2 / 3..share * 3 / 2).contains(&taken), "{taken} of {share} for {replicas}");
        }
    }

    #[test]
    fn every_node_leads_some_groups() {
        let best: BTreeSet<u64> = places(&[1, 2, 3], 16, 3).iter().map(|nodes| nodes[0]).collect();
        assert_eq!(best.len(), 3);
    }
}
