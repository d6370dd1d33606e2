//! Recovery of a cluster from one node after a permanent loss of the majority.
//!
//! The recovery runs on a directory without a running node. First it checks that each replica has log entries and a
//! readable state that reaches them. Then it writes `RECOVERING`, gives every replica a new number, and makes it the
//! only member of its group (`ForcedRecovery`).
//!
//! The next start leads every group alone. Before anything else, it removes the other nodes and their replicas from the
//! map, and then deletes the file. A repeated recovery does the same again.
//!
//! The directories of the removed nodes must never be started again, because together they may still be a majority. The
//! recovery does not rely on events that this node has not seen. Nodes admitted by the lost ones are not part of the
//! cluster, and numbers that they may have assigned are skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use assay_cluster_directory::data_dir::{Format, HomeError, Lock, read_format};
use assay_cluster_directory::node_files::{KeptReplica, KeptState, NodeFiles};
use assay_cluster_directory::starts;
use assay_cluster_network::node_records::{self, NodeRecord, NodeState, Removed};
use assay_cluster_raft::{ForcedRecovery, RecordedGroup};
use assay_storage_blobs::Blobs;
use assay_storage_catalog::{Catalog, CatalogConfig};
use assay_storage_disk::SharedDisk;
use assay_storage_log::{Log, LogConfig};
use assay_storage_model::catalog::{
    CatalogCommand, CatalogOutcome, ChangeReplicas, DeleteRecord, Expect, GiveIds, IDS_GIVEN_MAX, Replica,
};
use assay_storage_model::{Applied, GroupId, LogPosition, NodeId, ReplicaId, ShardId};
use serde::Serialize;

use crate::Shared;
use crate::certificates::node_certificates::{now_micros, record_of};
use crate::config::ClusterConfig;
use crate::error::OpenError;
use crate::replica_lifecycle::open_shard;
use crate::startup::kept_replicas;

const RECOVERING: &str = "RECOVERING";
/// Contents of the marker.
const RECOVERS: &[u8] = b"the next start finishes a recovery\n";
const RESTORES: &[u8] = b"the next start finishes a restore\n";
const MARKER_BYTES_MAX: u64 = 256;
/// Number of node and replica numbers that are skipped, because the lost nodes may have assigned them.
///
/// Each joining node takes one of each, and each placed replica takes one. Assigning that many takes hours of moves, or
/// a dozen refills of the largest cluster (256 shards with three replicas), all without contact to this node. The skip
/// is stored as a floor, so it costs nothing.
pub(crate) const NUMBERS_SKIPPED: u64 = 10_000;
const _: () = assert!(NUMBERS_SKIPPED <= IDS_GIVEN_MAX as u64, "given out with one command");

/// Effects of a recovery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recovery {
    pub node: NodeId,
    /// Nodes that are removed permanently.
    pub given_up: Vec<NodeId>,
    /// Number of shards that continue with the data of their replica here.
    pub kept: usize,
    /// Shards without an intact replica here: it is missing, damaged, or was never filled.
    pub lost: Vec<ShardId>,
    /// Kept shards whose replica here has no vote, according to this node.
    ///
    /// Such a replica was being filled or was about to leave, so it may lack writes acknowledged long ago.
    pub not_voting: Vec<ShardId>,
    /// Whether the replica of the catalog has no vote. In a larger cluster this is normal for most nodes.
    pub catalog_not_voting: bool,
}

struct Opened {
    node_files: NodeFiles,
    kept: Vec<KeptReplica>,
    recovery: Recovery,
    /// Sealed position of each replica.
    sealed: BTreeMap<GroupId, Option<LogPosition>>,
    /// First number above all replicas known to this node.
    next_replica: ReplicaId,
    log: Log,
    _lock: Lock,
}

/// Returns what a recovery would lose and keep, without changing anything.
pub fn recovery(config: &ClusterConfig) -> Result<Recovery, OpenError> {
    open(config).map(|opened| opened.recovery)
}

fn open(config: &ClusterConfig) -> Result<Opened, OpenError> {
    let (disk, dir): (SharedDisk, _) = (config.disk.clone(), config.data_dir.clone());
    let lock = Lock::take(&dir)?;
    let format = read_format(disk.as_ref(), &dir)?.ok_or_else(|| HomeError::NotOurs(dir.clone()))?;
    let node_files = NodeFiles { disk: disk.clone(), dir: dir.clone() };
    let node = node_files.node()?.node;
    let mut kept = kept_replicas(&node_files, format)?;
    let highest = kept.iter().map(|replica| replica.replica.0).max().unwrap_or(0);
    kept.retain(|replica| replica.state == KeptState::Kept);
    kept.sort_by_key(|replica| replica.group);
    let log = Log::open(disk.clone(), &dir.join("log"), LogConfig::default())?;
    let home = kept.iter().find(|replica| replica.group == GroupId::CATALOG).ok_or(OpenError::NoCatalog)?;
    let catalog = Catalog::open(CatalogConfig {
        disk: disk.clone(),
        dir: dir.join(&home.dir),
        kv_cache_bytes: config.kv_cache_bytes,
    })?;
    let state = catalog.read();
    // The peers file is newer than the catalog, which is as old as its last seal here.
    let mut others: BTreeSet<NodeId> = match node_files.kept_peers()? {
        Some(peers) => peers.into_keys().collect(),
        None => node_records::addresses(&state).into_keys().collect(),
    };
    others.remove(&node);
    if others.is_empty() {
        return Err(OpenError::Alone);
    }
    let next_replica = ReplicaId(state.next_ids().1.0.max(highest.saturating_add(1)));
    drop(state);
    let mut sealed = BTreeMap::from([(GroupId::CATALOG, catalog.sealed().position)]);
    let catalog_votes = match had(&log, home, &catalog.sealed())? {
        Had::Nothing => return Err(OpenError::NothingOfCatalog),
        found => found == Had::Voter,
    };
    let mut recovery = Recovery {
        node,
        given_up: others.into_iter().collect(),
        kept: 0,
        lost: Vec::new(),
        not_voting: Vec::new(),
        catalog_not_voting: !catalog_votes,
    };
    look_at_shards(config, format, &kept, &log, &mut recovery, &mut sealed)?;
    Ok(Opened { node_files, kept, recovery, sealed, next_replica, log, _lock: lock })
}

/// Data that this node has of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Had {
    Nothing,
    Voter,
    NoVoter,
}

fn had(log: &Log, kept: &KeptReplica, sealed: &Applied) -> Result<Had, OpenError> {
    let failed = || OpenError::io(format!("cannot read the log of group {}", kept.group));
    let recorded = RecordedGroup::read(&log.group(kept.group)).map_err(failed())?;
    let reaches = sealed.position.map(|position| position.index);
    if (!recorded.has_entries && reaches.is_none()) || recorded.purged > reaches {
        return Ok(Had::Nothing);
    }
    let voters = recorded.voters_or_applied(sealed).map_err(failed())?;
    Ok(if voters.is_some_and(|voters| voters.contains(&kept.replica)) { Had::Voter } else { Had::NoVoter })
}

fn look_at_shards(
    config: &ClusterConfig,
    format: Format,
    kept: &[KeptReplica],
    log: &Log,
    recovery: &mut Recovery,
    sealed: &mut BTreeMap<GroupId, Option<LogPosition>>,
) -> Result<(), OpenError> {
    let blobs = Blobs::open(config.disk.clone(), &config.data_dir.join("blobs"));
    let blobs = Arc::new(blobs.map_err(OpenError::io("opening the blobs"))?);
    for shard in (0..format.shards).map(ShardId) {
        let here = kept.iter().find(|replica| replica.group == GroupId::of_shard(shard));
        let found = match here {
            None => Had::Nothing,
            Some(kept) => match open_shard(config, &blobs, shard, &kept.dir) {
                Ok(opened) => {
                    let state = opened.sealed();
                    sealed.insert(kept.group, state.position);
                    had(log, kept, &state)?
                }
                Err(OpenError::Shard { source, .. }) if source.is_damage() => {
                    tracing::error!(%shard, %source, "its replica here is damaged");
                    Had::Nothing
                }
                Err(error) => return Err(error),
            },
        };
        match found {
            Had::Nothing => recovery.lost.push(shard),
            Had::Voter => recovery.kept += 1,
            Had::NoVoter => {
                recovery.kept += 1;
                recovery.not_voting.push(shard);
            }
        }
    }
    Ok(())
}

/// Turns this node into a cluster of its own, with the data that it has.
pub async fn recover(config: &ClusterConfig) -> Result<Recovery, OpenError> {
    let opening = {
        let config = config.clone();
        tokio::task::spawn_blocking(move || open(&config))
    };
    let opened = opening.await.map_err(|error| OpenError::io("opening the store")(std::io::Error::other(error)))??;
    let Opened { node_files, mut kept, recovery, sealed, next_replica, log, _lock } = opened;
    if !recovery.lost.is_empty() {
        return Err(OpenError::NotAllHere(recovery.lost));
    }
    // The order is ascending by group: the catalog accepts no number below one that it has already placed.
    let mut forced = Vec::with_capacity(kept.len());
    for (number, replica) in (next_replica.0.saturating_add(NUMBERS_SKIPPED)..).zip(&mut kept) {
        replica.replica = ReplicaId(number);
        let state = sealed.get(&replica.group).copied().flatten();
        let planned = ForcedRecovery::plan(log.group(replica.group), replica.replica, recovery.node, state);
        forced.push((replica.group, planned.map_err(OpenError::io(format!("group {}", replica.group)))?));
    }
    let marker = node_files.dir.join(RECOVERING);
    let written = assay_storage_disk::replace_whole(&*node_files.disk, &marker, RECOVERS);
    written.map_err(OpenError::io(format!("writing {}", marker.display())))?;
    // If the process ends here, a replica with a new number and an old log is no member of its group and stays idle.
    node_files.set_replicas(&kept)?;
    // Every number is new and this node is the whole cluster, so the recorded starts no longer apply.
    if let Some(before) = starts::read(&*node_files.disk, &node_files.dir)? {
        let kept = starts::KeptStarts { closed: BTreeSet::new(), floor: starts::Floor::None, ..before };
        starts::write(&*node_files.disk, &node_files.dir, &kept)?;
    }
    for (group, forced) in forced {
        forced.write().await.map_err(OpenError::io(format!("group {group}")))?;
    }
    let closing = tokio::task::spawn_blocking(move || log.shutdown());
    closing.await.map_err(|error| OpenError::io("closing the log")(std::io::Error::other(error)))??;
    Ok(recovery)
}

fn is_recovering(config: &ClusterConfig) -> Result<bool, OpenError> {
    let marker = config.data_dir.join(RECOVERING);
    config.disk.exists(&marker).map_err(OpenError::io(format!("looking for {}", marker.display())))
}

/// Marks a restored directory, whose first start removes the nodes and the authority of the old cluster. Blocking.
pub(crate) fn write_restoring(node_files: &NodeFiles) -> Result<(), OpenError> {
    let marker = node_files.dir.join(RECOVERING);
    let written = assay_storage_disk::replace_whole(&*node_files.disk, &marker, RESTORES);
    written.map_err(OpenError::io(format!("writing {}", marker.display())))
}

/// Returns whether the directory was restored and still has the authority of the old cluster.
pub(crate) fn is_restoring(config: &ClusterConfig) -> Result<bool, OpenError> {
    Ok(is_recovering(config)? && marker_text(config)? == RESTORES)
}

fn marker_text(config: &ClusterConfig) -> Result<Vec<u8>, OpenError> {
    let marker = config.data_dir.join(RECOVERING);
    let text = assay_storage_disk::read_whole(&*config.disk, &marker, MARKER_BYTES_MAX);
    text.map_err(OpenError::io(format!("reading {}", marker.display())))
}

/// Returns an error if a recovery was interrupted, because some groups still wait for the lost nodes. Blocking.
pub(crate) fn check_recovery(config: &ClusterConfig, kept: &[KeptReplica], log: &Log) -> Result<(), OpenError> {
    if !is_recovering(config)? {
        return Ok(());
    }
    for replica in kept {
        let recorded = RecordedGroup::read(&log.group(replica.group));
        let recorded = recorded.map_err(OpenError::io(format!("cannot read the log of group {}", replica.group)))?;
        // If the membership is sealed and purged, the group has already led alone.
        if recorded.voters.is_some_and(|voters| !voters.iter().eq([&replica.replica])) {
            return Err(OpenError::Recovery("it was interrupted: run `assay cluster recover --force` again".into()));
        }
    }
    Ok(())
}

fn failed(error: crate::OperateError) -> OpenError {
    OpenError::Recovery(error.to_string())
}

fn answered(outcome: &CatalogOutcome) -> OpenError {
    OpenError::Recovery(format!("the catalog answered {outcome:?}"))
}

impl Shared {
    /// Finishes a recovery, once this node leads everything alone and before it plans anything.
    pub async fn finish_recovery(self: &Arc<Self>) -> Result<(), OpenError> {
        if !is_recovering(&self.config)? {
            return Ok(());
        }
        self.skip_numbers().await?;
        let others = node_records::all(&self.catalog.read());
        for (node, (record, revision)) in others.into_iter().filter(|(node, _)| *node != self.node) {
            let removed = NodeRecord { state: NodeState::Removed, ..record };
            let put = node_records::put(&removed, Expect::Revision(revision), now_micros());
            self.change(CatalogCommand::Put(put)).await.map_err(failed)?;
            tracing::warn!(%node, "removed by a recovery");
        }
        self.net.set_removed(Removed::of(&self.catalog.read()));
        for group in self.replicas.groups() {
            let map = self.catalog.read().shard_map().cloned().ok_or(OpenError::NoCatalog)?;
            let Some(members) = map.group(group.id()) else { continue };
            let own = Replica { id: group.replica(), node: self.node };
            if members.replicas != [own] {
                let change = ChangeReplicas { group: group.id(), expect_epoch: members.epoch, replicas: vec![own] };
                let outcome = self.change(CatalogCommand::ChangeReplicas(change)).await.map_err(failed)?;
                if !matches!(outcome, CatalogOutcome::ReplicasChanged { .. }) {
                    return Err(answered(&outcome));
                }
            }
        }
        let marker = self.config.data_dir.join(RECOVERING);
        if is_restoring(&self.config)? {
            self.delete_authority().await?;
        }
        self.config.disk.remove(&marker).map_err(OpenError::io(format!("removing {}", marker.display())))
    }

    /// Deletes the authority of the old cluster, whose nodes must not trust this one. The start then makes another.
    async fn delete_authority(self: &Arc<Self>) -> Result<(), OpenError> {
        let record = match record_of(&self.catalog.read()) {
            Ok((_, record)) => record,
            Err(_) => return Ok(()),
        };
        let expect = Expect::Revision(record.revision);
        let delete = CatalogCommand::Delete(DeleteRecord { kind: record.kind, id: record.id, expect });
        let outcome = self.change(delete).await.map_err(failed)?;
        if !matches!(outcome, CatalogOutcome::Deleted { .. }) {
            return Err(answered(&outcome));
        }
        tracing::info!("the restored node gets a certificate authority of its own");
        Ok(())
    }

    /// Skips the numbers that the lost nodes may have assigned, and excludes nodes with these numbers.
    async fn skip_numbers(self: &Arc<Self>) -> Result<(), OpenError> {
        let own = self.replicas.groups().iter().map(|group| group.replica().0).max().unwrap_or(0);
        let mut nodes_skipped = NUMBERS_SKIPPED;
        loop {
            let nodes = u32::try_from(nodes_skipped).unwrap_or(IDS_GIVEN_MAX);
            let wanted = CatalogCommand::GiveIds(GiveIds { nodes, replicas: IDS_GIVEN_MAX });
            let outcome = self.change(wanted).await.map_err(failed)?;
            let CatalogOutcome::IdsGiven { first_node, first_replica } = outcome else {
                return Err(answered(&outcome));
            };
            if nodes > 0 {
                let below = NodeId(first_node.0 + u64::from(nodes));
                let put = node_records::put_removed_below(&self.catalog.read(), below, now_micros());
                let outcome = self.change(CatalogCommand::Put(put)).await.map_err(failed)?;
                if !matches!(outcome, CatalogOutcome::Put { .. }) {
                    return Err(answered(&outcome));
                }
            }
            if first_replica.0 + u64::from(IDS_GIVEN_MAX) > own {
                return Ok(());
            }
            nodes_skipped = 0;
        }
    }
}
