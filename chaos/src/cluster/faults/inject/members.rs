//! Membership changes under load.

use std::time::Duration;

use anyhow::Context;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::cluster::faults::conductor::{Conductor, Injected};

/// Nodes at most: each is a process and a disk of this machine. One more, and the next change takes one away.
const NODES_MAX: usize = 5;
/// Replicas move while clients write.
const MOVE_MAX: Duration = Duration::from_secs(60);

impl Conductor<'_> {
    /// One more node, or one less where there are enough.
    pub(super) fn add_node(&mut self) -> anyhow::Result<Injected> {
        let members = self.world.members();
        if members.len() >= NODES_MAX {
            let number = members.last().copied().context("there are no nodes")?;
            let id = self.world.id_of(number)?.to_string();
            self.world.cluster_anywhere(&["drain", &id], MOVE_MAX)?;
            self.world.settle()?;
            self.world.cluster_insisting(&["remove", &id], MOVE_MAX)?;
            // As an operator is told to: what it has is rebuilt first. With the next node lost a group would have lost two.
            self.world.settle()?;
            self.world.bury(number)?;
            self.stage.set_nodes(self.world.nodes_at());
            return Ok(Injected::Installed(format!("node {number} is drained and removed")));
        }
        let number = self.world.add()?;
        self.world.cluster_anywhere(&["rebalance"], MOVE_MAX)?;
        self.stage.set_nodes(self.world.nodes_at());
        self.world.settle()?;
        Ok(Injected::Installed(format!("node {number} joins")))
    }

    /// A node is lost for good with all it had, and a new one takes its place.
    pub(super) fn replace_node(&mut self, rng: &mut ChaCha8Rng) -> anyhow::Result<Injected> {
        // Nobody gives one node up while another is missing: a group may have replicas on both.
        self.world.settle()?;
        let members = self.world.members();
        let old = members[rng.random_range(0..members.len())];
        let old_id = self.world.id_of(old)?.to_string();
        self.world.bury(old)?;
        self.stage.set_nodes(self.world.nodes_at());
        let new = self.world.add()?;
        let new_id = self.world.id_of(new)?.to_string();
        self.world.cluster_insisting(&["replace", &old_id, &new_id], MOVE_MAX)?;
        self.stage.set_nodes(self.world.nodes_at());
        self.world.settle()?;
        Ok(Injected::Installed(format!("node {old} is lost, node {new} takes its place")))
    }
}
