//! Registry of the replicas that run on this node, by group. Replicas come and go, so each user looks one up each time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use assay_cluster_raft::Group;
use assay_storage_model::{GroupId, ReplicaId, ShardId};
use assay_storage_shard::Shard;
use parking_lot::RwLock;

/// Replica that runs on this node.
#[derive(Clone, Debug)]
pub struct HostedReplica {
    pub group: Group,
    /// Shard of the group, or `None` for the catalog.
    pub shard: Option<Arc<Shard>>,
}

#[derive(Clone, Debug, Default)]
pub struct Replicas {
    hosted: Arc<RwLock<BTreeMap<GroupId, HostedReplica>>>,
    /// Whether the log of the catalog has records that are to be erased.
    catalog_remains: Arc<AtomicBool>,
}

impl Replicas {
    pub fn add(&self, hosted: HostedReplica) {
        self.hosted.write().insert(hosted.group.id(), hosted);
    }

    pub fn remove(&self, group: GroupId) -> Option<HostedReplica> {
        self.hosted.write().remove(&group)
    }

    pub fn group(&self, group: GroupId) -> Option<Group> {
        self.hosted.read().get(&group).map(|hosted| hosted.group.clone())
    }

    /// Returns the group, if its replica here has this number.
    pub fn replica(&self, group: GroupId, replica: ReplicaId) -> Option<Group> {
        self.group(group).filter(|found| found.replica() == replica)
    }

    pub fn shard(&self, shard: ShardId) -> Option<Arc<Shard>> {
        self.hosted.read().get(&GroupId::of_shard(shard))?.shard.clone()
    }

    /// Returns the replicas by group.
    pub fn all(&self) -> Vec<HostedReplica> {
        self.hosted.read().values().cloned().collect()
    }

    pub fn groups(&self) -> Vec<Group> {
        self.hosted.read().values().map(|hosted| hosted.group.clone()).collect()
    }

    /// Returns the groups that have a replica here.
    pub fn ids(&self) -> Vec<GroupId> {
        self.hosted.read().keys().copied().collect()
    }

    /// Lets the next round of erasure rewrite the log of the catalog.
    pub fn mark_catalog_remains(&self) {
        self.catalog_remains.store(true, Ordering::Relaxed);
    }

    pub fn has_catalog_remains(&self) -> bool {
        self.catalog_remains.load(Ordering::Relaxed)
    }

    /// Returns whether the log of the catalog is to be rewritten, and removes the mark.
    pub fn take_catalog_remains(&self) -> bool {
        self.catalog_remains.swap(false, Ordering::Relaxed)
    }

    pub fn shards(&self) -> Vec<Arc<Shard>> {
        self.hosted.read().values().filter_map(|hosted| hosted.shard.clone()).collect()
    }
}
