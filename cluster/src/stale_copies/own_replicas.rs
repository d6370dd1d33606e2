//! Knowledge of this node about its own replicas and the followers of groups led here, for the comparison of starts.

use std::io;

use assay_cluster_directory::{KeptReplica, KeptState};
use assay_cluster_network::{Network, OwnReplicas};
use assay_cluster_raft::{Acknowledged, HardState};
use assay_storage_model::{GroupId, ReplicaId};

use crate::Shared;

impl OwnReplicas for Shared {
    fn hard_states(&self) -> io::Result<Vec<(GroupId, ReplicaId, HardState)>> {
        let kept: Vec<KeptReplica> = self.kept.lock().clone();
        let kept = kept.into_iter().filter(|one| one.state == KeptState::Kept);
        let hard_state = |one: KeptReplica| {
            let sealed = match one.group.shard() {
                Some(shard) => self.replicas.shard(shard).and_then(|shard| shard.sealed().position),
                None => self.catalog.sealed().position,
            };
            Ok((one.group, one.replica, HardState::read(&self.log.group(one.group), sealed)?))
        };
        kept.map(hard_state).collect()
    }

    /// Returns the acknowledged position of a follower, including positions that a leader here has not stored yet.
    fn acknowledged(&self, group: GroupId, replica: ReplicaId) -> Option<Acknowledged> {
        self.note_acknowledged(group);
        self.start_histories.table.get((group, replica))
    }

    fn network(&self) -> &Network {
        &self.net
    }
}

impl Shared {
    /// Records the current acknowledgements of a leader here.
    pub fn note_acknowledged(&self, group: GroupId) {
        let Some(found) = self.replicas.group(group) else { return };
        for (replica, acknowledged) in found.acknowledged() {
            self.start_histories.table.note((group, replica), acknowledged);
        }
    }
}
