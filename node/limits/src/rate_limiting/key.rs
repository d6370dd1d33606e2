//! Key of a bucket: its subject and its home node.

use assay_storage_model::NodeId;

use super::mix::mix;

/// Rule with the ids of the subject that it counts separately, such as an organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BucketKey {
    pub rule: u64,
    pub first: u128,
    pub second: u128,
}

impl BucketKey {
    /// Returns the home by rendezvous hashing, which is equal on all nodes that see the same members.
    ///
    /// A node that leaves moves only its own buckets.
    pub fn home(&self, nodes: &[NodeId]) -> Option<NodeId> {
        nodes.iter().copied().max_by_key(|node| (self.weight(*node), *node))
    }

    fn weight(&self, node: NodeId) -> u64 {
        let halves = [self.first, self.second].map(|id| [id as u64, (id >> 64) as u64]);
        halves.iter().flatten().fold(mix(self.rule ^ mix(node.0)), |weight, half| mix(weight ^ half))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn homes(nodes: &[u64]) -> Vec<u64> {
        let nodes: Vec<NodeId> = nodes.iter().copied().map(NodeId).collect();
        let home = |second| BucketKey { rule: 7, first: 0, second }.home(&nodes).expect("a node").0;
        (0..3000).map(home).collect()
    }

    #[test]
    fn buckets_are_spread_and_stay_where_they_are() {
        let before = homes(&[1, 2, 3]);
        for node in 1..=3 {
            let count = before.iter().filter(|home| **home == node).count();
            assert!((900..1100).contains(&count), "{count} of 3000 at node {node}");
        }
        for (before, after) in before.iter().zip(homes(&[3, 1])) {
            assert!(*before == after || *before == 2, "{before} {after}");
        }
        assert_eq!(BucketKey { rule: 1, first: 2, second: 3 }.home(&[]), None);
    }

    /// Tests that versions of the program agree on the home, because one cluster may run two of them.
    #[test]
    fn a_bucket_keeps_its_home_for_ever() {
        assert_eq!(homes(&[1, 2, 3])[..16], [3, 3, 3, 3, 3, 2, 3, 2, 2, 1, 1, 3, 2, 2, 3, 1]);
    }
}
