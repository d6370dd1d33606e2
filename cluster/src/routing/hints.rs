//! Hints at the leaders of groups without a replica on this node, as named by other nodes.

use std::collections::HashMap;

use assay_storage_model::{GroupId, NodeId};
use parking_lot::RwLock;

#[derive(Debug, Default)]
pub(crate) struct LeaderHints(RwLock<HashMap<GroupId, LeaderHint>>);

#[derive(Clone, Copy, Debug, Default)]
struct LeaderHint {
    /// Leader that another node named.
    leader: Option<NodeId>,
    /// Number of failed requests. It selects the next member in turn.
    in_vain: usize,
}

impl LeaderHint {
    fn whom(self, members: &[NodeId]) -> Option<NodeId> {
        let in_turn = || members.get(self.in_vain.checked_rem(members.len())?).copied();
        self.leader.or_else(in_turn)
    }
}

impl LeaderHints {
    /// Returns the node to ask about a group.
    pub fn whom(&self, group: GroupId, members: &[NodeId]) -> Option<NodeId> {
        self.0.read().get(&group).copied().unwrap_or_default().whom(members)
    }

    /// Records the leader that `asked` named, or that `asked` named none or did not respond.
    ///
    /// Without a named leader the next member is asked. It advances once for all requests that were sent to `asked`
    /// concurrently.
    pub fn note(&self, group: GroupId, members: &[NodeId], asked: NodeId, leader: Option<NodeId>) {
        let mut hints = self.0.write();
        let hint = hints.entry(group).or_default();
        match leader.filter(|leader| *leader != asked) {
            Some(leader) => hint.leader = Some(leader),
            None if hint.whom(members) == Some(asked) => {
                *hint = LeaderHint { leader: None, in_vain: hint.in_vain.wrapping_add(1) };
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: GroupId = GroupId(16);
    const MEMBERS: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];

    /// Regression: a node that is not a member of a group asked the first member forever, if that one did not lead and
    /// named no leader.
    #[test]
    fn members_are_asked_in_turn_until_one_leads() {
        let hints = LeaderHints::default();
        for member in [1, 2, 3, 1].map(NodeId) {
            assert_eq!(hints.whom(GROUP, &MEMBERS), Some(member));
            hints.note(GROUP, &MEMBERS, member, None);
            hints.note(GROUP, &MEMBERS, member, None); // two writes were in flight
        }
        assert_eq!(hints.whom(GROUP, &[NodeId(7)]), Some(NodeId(7)), "the map has changed");
        assert_eq!(hints.whom(GROUP, &[]), None);
    }

    #[test]
    fn who_was_named_is_asked_until_that_is_in_vain() {
        let hints = LeaderHints::default();
        hints.note(GROUP, &MEMBERS, NodeId(1), Some(NodeId(3)));
        assert_eq!(hints.whom(GROUP, &MEMBERS), Some(NodeId(3)));
        hints.note(GROUP, &MEMBERS, NodeId(1), None); // response to an earlier write
        assert_eq!(hints.whom(GROUP, &MEMBERS), Some(NodeId(3)));
        hints.note(GROUP, &MEMBERS, NodeId(3), Some(NodeId(3))); // equivalent to no leader, because that node refused
        assert_eq!(hints.whom(GROUP, &MEMBERS), Some(NodeId(2)), "and not whoever named it");
    }
}
