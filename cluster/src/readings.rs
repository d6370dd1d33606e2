//! What whoever measures is told of the groups of this node, its log and its peers.

use std::collections::BTreeMap;

use assay_cluster_transport::PeerCounts;
use assay_storage_model::{NodeId, ShardId};

use crate::Cluster;

/// One replica at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupReading {
    /// None of the catalog.
    pub shard: Option<ShardId>,
    pub leads: bool,
    pub has_leader: bool,
    pub term: u64,
    pub last: Option<u64>,
    pub applied: Option<u64>,
    /// Of a leader: entries that the slowest member lacks.
    pub behind: Option<u64>,
    pub waiting: u64,
    pub unapplied_bytes: u64,
}

/// The log's syncs since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LogSyncs {
    pub count: u64,
    pub seconds: f64,
}

impl Cluster {
    pub fn readings(&self) -> Vec<GroupReading> {
        let groups = self.shared.hub.groups();
        let reading = |group: &assay_cluster_raft::Group| {
            let status = group.status();
            let slowest = status.members.iter().map(|member| member.matched.unwrap_or(0)).min();
            let behind = slowest.zip(status.last).map(|(slowest, last)| last.saturating_sub(slowest));
            GroupReading {
                shard: group.id().shard(),
                leads: status.leads,
                has_leader: status.leader.is_some(),
                term: status.term,
                last: status.last,
                applied: status.applied,
                behind: behind.filter(|_| status.leads),
                waiting: group.waiting_commands() as u64,
                unapplied_bytes: group.unapplied_bytes(),
            }
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
