//! Routing of requests to the leader of a group: lookup, sending, and retries.

mod delegated;
mod frames;
mod hints;
mod leader_routing;
mod service;
mod streams;
pub(crate) mod views;
mod writes;

use assay_cluster_network::NoAnswer;
use assay_storage_model::{GroupId, NodeId};

pub use frames::{decode_frames, encode_frames};
pub(crate) use hints::LeaderHints;
pub use leader_routing::{
    Attempt, Attempts, LeaderCall, LeaderMessage, LeaderRequest, ROUTE_WAIT_MAX, RetryUntil, Round, Unserved,
};
pub(crate) use writes::{PROPOSE, ProposeService};

use crate::{Cluster, Shared};

/// Node that serves requests about a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    Here,
    There(NodeId),
    /// This node knows no leader.
    Nobody,
}

/// Preferred replica of a group for a request. The replica of this node is used only if it votes, and serves reads
/// after a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefer {
    Leader,
    /// The leader, or the replica of this node while no leader is known.
    LeaderElseOwn,
    /// The replica of this node.
    Own,
}

impl Shared {
    /// Returns the route to the leader according to a voting replica on this node. A node without one asks the members
    /// in turn, until one leads or names the leader.
    pub fn route(&self, group: GroupId) -> Route {
        let Some(found) = self.replicas.group(group) else { return self.guess(group) };
        if found.leads() {
            return Route::Here;
        }
        if !found.votes() {
            return self.guess(group); // a learner learns of another leader late, and of none once it was removed
        }
        let status = found.status();
        let leader = status.leader.and_then(|leader| status.members.iter().find(|member| member.replica == leader));
        match leader {
            Some(member) if member.node != self.node => Route::There(member.node),
            // The named leader does not lead yet, or there is no named leader.
            _ => Route::Nobody,
        }
    }

    fn guess(&self, group: GroupId) -> Route {
        self.hints.whom(group, &self.others(group)).map_or(Route::Nobody, Route::There)
    }

    /// Returns the other nodes with a replica of the group, according to the shard map.
    fn others(&self, group: GroupId) -> Vec<NodeId> {
        let state = self.catalog.read();
        let Some(members) = state.shard_map().and_then(|map| map.group(group)) else { return Vec::new() };
        members.replicas.iter().map(|replica| replica.node).filter(|node| *node != self.node).collect()
    }

    /// Records the leader that node `asked` named, or that it named none.
    pub fn note_leader(&self, group: GroupId, asked: NodeId, leader: Option<NodeId>) {
        let leader = leader.filter(|leader| *leader != self.node);
        self.hints.note(group, &self.others(group), asked, leader);
    }

    pub fn leader_node(&self, group: GroupId) -> Option<NodeId> {
        match self.route(group) {
            Route::Here => Some(self.node),
            Route::There(node) => Some(node),
            Route::Nobody => None,
        }
    }
}

impl Cluster {
    pub fn route(&self, group: GroupId, prefer: Prefer) -> Route {
        let leader = || self.shared.route(group);
        match prefer {
            Prefer::Own if self.has_data(group) => Route::Here,
            Prefer::LeaderElseOwn => match leader() {
                Route::Nobody if self.has_data(group) => Route::Here,
                route => route,
            },
            Prefer::Own | Prefer::Leader => leader(),
        }
    }

    /// Records the leader that node `asked` named, or that it named none.
    pub fn note_leader(&self, group: GroupId, asked: NodeId, leader: Option<NodeId>) {
        self.shared.note_leader(group, asked, leader);
    }

    /// Returns the refusal of a request about a group that this node does not serve. It names the leader if that is
    /// another node.
    pub fn not_leader(&self, group: GroupId) -> NoAnswer {
        self.shared.not_leader(group)
    }
}

impl Shared {
    fn not_leader(&self, group: GroupId) -> NoAnswer {
        NoAnswer::NotLeader { leader: self.leader_node(group).filter(|leader| *leader != self.node) }
    }
}
