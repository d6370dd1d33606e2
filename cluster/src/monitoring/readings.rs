//! Readings for metrics: the groups of this node, its log and its peers.

use std::collections::BTreeMap;

use assay_cluster_raft::GroupStatus;
use assay_cluster_transport::PeerCounts;
use assay_storage_model::{NodeId, ShardId};

use crate::Cluster;

/// Reading of one replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupReading {
    /// Shard of the group, or `None` for the catalog.
    pub shard: Option<ShardId>,
    /// Whether the replica leads, with a recent confirmation by a majority.
    pub leads: bool,
    /// Whether the group has a leader that is not known to be isolated.
    pub has_leader: bool,
    pub term: u64,
    pub last: Option<u64>,
    pub applied: Option<u64>,
    /// Entries that the slowest member lacks, according to its leader.
    pub behind: Option<u64>,
    pub waiting: u64,
    pub unapplied_bytes: u64,
}

/// Syncs of the log since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LogSyncs {
    pub count: u64,
    pub seconds: f64,
}

/// Returns the state of the group in consensus. An isolated leader does not step down by itself, so it counts only with
/// a confirmation.
fn reading_of(shard: Option<ShardId>, status: &GroupStatus) -> GroupReading {
    let slowest = status.members.iter().map(|member| member.matched.unwrap_or(0)).min();
    let behind = slowest.zip(status.last).map(|(slowest, last)| last.saturating_sub(slowest));
    let leads = status.leads_confirmed();
    GroupReading {
        shard,
        leads,
        has_leader: status.is_led(),
        term: status.term,
        last: status.last,
        applied: status.applied,
        behind: behind.filter(|_| leads),
        ..GroupReading::default()
    }
}

impl Cluster {
    pub fn readings(&self) -> Vec<GroupReading> {
        let groups = self.shared.replicas.groups();
        let reading = |group: &assay_cluster_raft::Group| {
            let (waiting, unapplied_bytes) = (group.waiting_commands() as u64, group.unapplied_bytes());
            GroupReading { waiting, unapplied_bytes, ..reading_of(group.id().shard(), &group.status()) }
        };
        groups.iter().map(reading).collect()
    }

    pub fn peer_counts(&self) -> BTreeMap<NodeId, PeerCounts> {
        self.net().transport().map(assay_cluster_transport::Transport::counts).unwrap_or_default()
    }

    pub fn log_syncs(&self) -> LogSyncs {
        let (count, seconds) = self.shared.log.syncs();
        LogSyncs { count, seconds }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use assay_cluster_raft::Member;
    use assay_storage_model::ReplicaId;

    use super::*;

    /// Regression: an isolated leader was reported as leading, and as having a leader, for as long as it was isolated.
    #[test]
    fn a_leader_that_nobody_confirms_leads_nothing() {
        let member = |replica: u64, matched| Member {
            replica: ReplicaId(replica),
            node: NodeId(replica),
            voter: true,
            matched: Some(matched),
        };
        let status = |leads: bool, heard: Option<u64>| GroupStatus {
            leads,
            leader: Some(ReplicaId(1)),
            members: vec![member(1, 9), member(2, 5)],
            last: Some(9),
            quorum_heard: heard.map(Duration::from_secs),
            ..GroupStatus::default()
        };
        let read = |leads: bool, heard: Option<u64>| {
            let GroupReading { leads, has_leader, behind, .. } = reading_of(None, &status(leads, heard));
            (leads, has_leader, behind)
        };
        assert_eq!(read(true, Some(1)), (true, true, Some(4)));
        assert_eq!(read(true, Some(60)), (false, false, None));
        assert_eq!(read(true, None), (false, false, None));
        assert_eq!(read(false, None), (false, true, None), "one that follows knows no better");
    }
}
