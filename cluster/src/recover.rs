//! Going on with one node after a majority was lost for good.
//!
//! Done on a directory that no node runs on. Every replica there is made the only one of its group (`force_alone`), and
//! `RECOVERING` is left behind: the next start leads everything alone, gives the other nodes up and takes their replicas
//! from the map before anything else can happen, and then removes the file. Asked again it does the same again.
//!
//! The directories of the nodes that were given up must never be started again: together they may still be a majority.

use std::collections::BTreeSet;
use std::sync::Arc;

use assay_cluster_raft::{follow_state, force_alone};
use assay_storage_blobs::Blobs;
use assay_storage_catalog::{Catalog, CatalogConfig};
use assay_storage_disk::SharedDisk;
use assay_storage_log::{Log, LogConfig};
use assay_storage_model::catalog::{CatalogCommand, ChangeReplicas, Expect, Replica};
use assay_storage_model::{GroupId, LogPosition, NodeId, ShardId};
use serde::Serialize;

use crate::Shared;
use crate::authority::now_micros;
use crate::config::ClusterConfig;
use crate::error::OpenError;
use crate::home::{HomeError, Lock, read_format};
use crate::keeping::{Keeping, KeptReplica, KeptState};
use crate::nodes::{self, NodeRecord, NodeState};
use crate::replicas::open_shard;
use crate::start::kept_replicas;

const RECOVERING: &str = "RECOVERING";

/// What recovering would mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recovery {
    pub node: NodeId,
    /// Nodes that are given up for good.
    pub given_up: Vec<NodeId>,
    /// Shards with a replica here: they go on with what it has.
    pub kept: usize,
    /// Shards without one here: nothing of them is on this node.
    pub lost: Vec<ShardId>,
}

struct Opened {
    keeping: Keeping,
    kept: Vec<KeptReplica>,
    recovery: Recovery,
    log: Log,
    _lock: Lock,
}

/// What would be lost and kept; changes nothing.
pub fn recovery(config: &ClusterConfig) -> Result<Recovery, OpenError> {
    open(config).map(|opened| opened.recovery)
}

fn open(config: &ClusterConfig) -> Result<Opened, OpenError> {
    let (disk, dir): (SharedDisk, _) = (config.disk.clone(), config.data_dir.clone());
    let lock = Lock::take(&dir)?;
    let format = read_format(disk.as_ref(), &dir)?.ok_or_else(|| HomeError::NotOurs(dir.clone()))?;
    let keeping = Keeping { disk: disk.clone(), dir: dir.clone() };
    let node = keeping.node()?.node;
    let kept = kept_replicas(&keeping, format)?;
    let kept: Vec<KeptReplica> = kept.into_iter().filter(|replica| replica.state == KeptState::Kept).collect();
    let log = Log::open(disk.clone(), &dir.join("log"), LogConfig::default())?;
    let catalog = kept.iter().find(|replica| replica.group == GroupId::CATALOG).ok_or(OpenError::NoCatalog)?;
    let catalog =
        Catalog::open(CatalogConfig { disk, dir: dir.join(&catalog.dir), kv_cache_bytes: config.kv_cache_bytes })?;
    let state = catalog.read();
    // Those that were written down last; the catalog is as old as its last seal here.
    let mut others: BTreeSet<NodeId> = match keeping.kept_peers()? {
        Some(peers) => peers.into_keys().collect(),
        None => nodes::addresses(&state).into_keys().collect(),
    };
    others.remove(&node);
    let here = |shard: &ShardId| kept.iter().any(|replica| replica.group == GroupId::of_shard(*shard));
    if others.is_empty() {
        return Err(OpenError::Alone);
    }
    let (with, without): (Vec<ShardId>, Vec<ShardId>) = (0..format.shards).map(ShardId).partition(here);
    drop(state);
    let recovery = Recovery { node, given_up: others.into_iter().collect(), kept: with.len(), lost: without };
    Ok(Opened { keeping, kept, recovery, log, _lock: lock })
}

/// How far the state of each replica reaches.
fn sealed(config: &ClusterConfig, kept: &[KeptReplica]) -> Result<Vec<Option<LogPosition>>, OpenError> {
    let (disk, dir) = (&config.disk, &config.data_dir);
    let blobs = Blobs::open(disk.clone(), &dir.join("blobs")).map_err(OpenError::io("opening the blobs"))?;
    let blobs = Arc::new(blobs);
    let of = |replica: &KeptReplica| match replica.group.shard() {
        Some(shard) => Ok(open_shard(config, &blobs, shard, &replica.dir)?.sealed().position),
        None => {
            let (disk, dir) = (disk.clone(), dir.join(&replica.dir));
            let catalog = Catalog::open(CatalogConfig { disk, dir, kv_cache_bytes: config.kv_cache_bytes })?;
            Ok(catalog.sealed().position)
        }
    };
    kept.iter().map(of).collect()
}

/// Makes this node a cluster of its own out of what it has.
pub async fn recover(config: &ClusterConfig) -> Result<Recovery, OpenError> {
    let opening = {
        let config = config.clone();
        tokio::task::spawn_blocking(move || {
            let opened = open(&config)?;
            let sealed = sealed(&config, &opened.kept)?;
            Ok::<_, OpenError>((opened, sealed))
        })
    };
    let opened = opening.await.map_err(|error| OpenError::io("opening the store")(std::io::Error::other(error)))??;
    let (opened, sealed) = opened;
    let Opened { keeping, kept, recovery, log, _lock } = opened;
    if !recovery.lost.is_empty() {
        return Err(OpenError::NotAllHere(recovery.lost));
    }
    let marker = keeping.dir.join(RECOVERING);
    let written = assay_storage_disk::replace_whole(&*keeping.disk, &marker, b"the next start finishes a recovery\n");
    written.map_err(OpenError::io(format!("writing {}", marker.display())))?;
    for (replica, sealed) in kept.iter().zip(sealed) {
        let failed = || OpenError::io(format!("group {}", replica.group));
        follow_state(log.group(replica.group), sealed).await.map_err(failed())?;
        force_alone(log.group(replica.group), replica.replica, recovery.node).await.map_err(failed())?;
    }
    let closing = tokio::task::spawn_blocking(move || log.shutdown());
    closing.await.map_err(|error| OpenError::io("closing the log")(std::io::Error::other(error)))??;
    Ok(recovery)
}

impl Shared {
    /// The rest of a recovery, once this node leads everything alone and before it plans anything.
    pub async fn finish_recovery(self: &Arc<Self>) -> Result<(), OpenError> {
        let marker = self.config.data_dir.join(RECOVERING);
        let looking = || OpenError::io(format!("looking for {}", marker.display()));
        if !self.config.disk.exists(&marker).map_err(looking())? {
            return Ok(());
        }
        let failed = |error: crate::OperateError| OpenError::Recovery(error.to_string());
        let others = nodes::all(&self.catalog.read());
        for (node, (record, revision)) in others.into_iter().filter(|(node, _)| *node != self.node) {
            let removed = NodeRecord { state: NodeState::Removed, ..record };
            let put = nodes::put(&removed, Expect::Revision(revision), now_micros());
            self.change(CatalogCommand::Put(put)).await.map_err(failed)?;
            tracing::warn!(%node, "given up by a recovery");
        }
        for group in self.hub.groups() {
            let map = self.catalog.read().shard_map().cloned().ok_or(OpenError::NoCatalog)?;
            let Some(members) = map.group(group.id()) else { continue };
            let own = Replica { id: group.replica(), node: self.node };
            if members.replicas != [own] {
                let change = ChangeReplicas { group: group.id(), expect_epoch: members.epoch, replicas: vec![own] };
                self.change(CatalogCommand::ChangeReplicas(change)).await.map_err(failed)?;
            }
        }
        self.config.disk.remove(&marker).map_err(OpenError::io(format!("removing {}", marker.display())))
    }
}
