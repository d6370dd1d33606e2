//! Lifecycle of a replica on this node: opening, start, removal, and discard.
//!
//! A new replica is recorded in `REPLICAS` before its directory is created. A leaving replica is recorded as leaving
//! and stopped. Then its log is forgotten and its directory is removed. A failed step is repeated while the node runs,
//! and by its next start. The log is keyed by group, so the next replica of a group starts here only after the previous
//! one is gone.
//!
//! A damaged replica stays closed, and its log, votes and directory stay unchanged. It is discarded only after the
//! others confirmed that they can do without it. Its number is never used again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use assay_cluster_directory::node_files::{KeptReplica, KeptState, NodeFiles, dir_of};
use assay_cluster_network::large_writes::ClusterLargeWrites;
use assay_cluster_raft::{
    Bootstrap, Group, GroupConfig, IncomingDir, LargeWrites, Machine, NoLargeWrites, RecordedGroup, StartError,
};
use assay_cluster_replicas::HostedReplica;
use assay_storage_blobs::BlobName;
use assay_storage_log::Log;
use assay_storage_model::catalog::ShardMap;
use assay_storage_model::{GroupId, NodeId, ReplicaId, ShardId};
use assay_storage_shard::{KvKind, Shard, ShardConfig};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::Shared;
use crate::config::ClusterConfig;
use crate::error::OpenError;

/// Subdirectory of a replica for the files that it fetches.
const INCOMING: &str = "incoming";
/// Time limit for readers, seals and compaction to release a damaged shard.
const LET_GO_MAX: Duration = Duration::from_secs(60);
/// Time limit for users to release a leaving shard. The removal is retried, and other replicas wait meanwhile.
const LEAVING_LET_GO_MAX: Duration = Duration::from_secs(2);

/// Replicas of this node that do not run, in addition to their lines in `REPLICAS`.
#[derive(Debug, Default)]
pub(crate) struct RestingReplicas {
    damaged: Mutex<BTreeSet<(GroupId, ReplicaId)>>,
    /// Shards of ended replicas that may still be in use.
    held: Mutex<BTreeMap<GroupId, Weak<Shard>>>,
}

/// Replica that stays closed, with the blobs that its log would need after a reopening.
pub(crate) struct ClosedReplica {
    pub group: GroupId,
    pub replica: ReplicaId,
    pub blobs: Vec<(u64, [u8; 32])>,
}

/// Decides about a damaged replica at a start. Blocking.
///
/// The replica stays closed if other replicas vote in its group. The start fails if no other node can have its data.
pub(crate) fn close_damaged(
    (log, node_files): (&Log, &NodeFiles),
    kept: &KeptReplica,
    map: Option<&ShardMap>,
    node: NodeId,
) -> Result<Option<ClosedReplica>, OpenError> {
    let recorded = RecordedGroup::read(&log.group(kept.group));
    let recorded = recorded.map_err(OpenError::io(format!("cannot read the log of group {}", kept.group)))?;
    let placed = map.and_then(|map| map.group(kept.group));
    let others = match (&recorded.voters, placed) {
        (Some(voters), _) => voters.iter().any(|voter| *voter != kept.replica),
        // The log may be purged of the membership. The map, as this node last knew it, names the members instead.
        (None, Some(members)) => members.replicas.iter().any(|replica| replica.node != node),
        // The catalog here was not sealed since this node joined. Other nodes may have the data, and closing the
        // replica is harmless.
        (None, None) => !node_files.peers()?.is_empty(),
    };
    Ok(others.then_some(ClosedReplica { group: kept.group, replica: kept.replica, blobs: recorded.blobs }))
}

pub(crate) fn open_shard(
    config: &ClusterConfig,
    blobs: &Arc<assay_storage_blobs::Blobs>,
    shard: ShardId,
    dir: &str,
) -> Result<Arc<Shard>, OpenError> {
    let opened = Shard::open(ShardConfig {
        disk: config.disk.clone(),
        dir: config.data_dir.join(dir),
        blobs: Arc::clone(blobs),
        kv: KvKind::Sled { cache_bytes: config.kv_cache_bytes },
    });
    opened.map_err(|source| OpenError::Shard { shard, source })
}

/// Moves the directory of a damaged replica aside for inspection, and deletes the previously kept one. Blocking.
fn set_aside(node_files: &NodeFiles, replica: &KeptReplica) -> Result<(), OpenError> {
    let (from, to) = (node_files.dir.join(&replica.dir), node_files.dir.join(format!("{}.damaged", replica.dir)));
    let failed = || OpenError::io(format!("setting {} aside", from.display()));
    if !node_files.disk.exists(&from).map_err(failed())? {
        return Ok(());
    }
    if node_files.disk.exists(&to).map_err(failed())? {
        node_files.disk.remove_dir_all(&to).map_err(failed())?;
    }
    node_files.disk.rename(&from, &to).map_err(failed())?;
    node_files.disk.sync_dir(assay_storage_disk::parent_of(&to)).map_err(failed())
}

/// Finishes the removals that a crash interrupted. Blocking.
pub(crate) fn finish_leaving(node_files: &NodeFiles, kept: &mut [KeptReplica], log: &Log) -> Result<(), OpenError> {
    let leaving: Vec<_> = kept.iter().filter(|replica| replica.state == KeptState::Leaving).cloned().collect();
    for replica in leaving {
        forget_log(log, replica.group)?;
        remove_dir(node_files, &replica)?;
        let left = kept.iter_mut().filter(|other| other.replica == replica.replica);
        left.for_each(|left| left.state = KeptState::Lost);
        node_files.set_replicas(kept)?;
    }
    for replica in kept.iter().filter(|replica| replica.state == KeptState::Lost) {
        forget_log(log, replica.group)?;
        set_aside(node_files, replica)?;
    }
    Ok(())
}

fn forget_log(log: &Log, group: GroupId) -> Result<(), OpenError> {
    let (sender, removed) = std::sync::mpsc::channel();
    log.group(group).remove(Box::new(move |result| drop(sender.send(result))));
    match removed.recv() {
        Ok(result) => Ok(result?),
        Err(_) => Err(OpenError::io("cannot remove a group's log")(std::io::Error::other("the log has stopped"))),
    }
}

fn remove_dir(node_files: &NodeFiles, replica: &KeptReplica) -> Result<(), OpenError> {
    let dir = node_files.dir.join(&replica.dir);
    let failed = || OpenError::io(format!("removing {}", dir.display()));
    if node_files.disk.exists(&dir).map_err(failed())? {
        node_files.disk.remove_dir_all(&dir).map_err(failed())?;
    }
    Ok(())
}

/// Guard of a leaving replica.
///
/// While it exists, no other replica of the group may start here, and the removal is not reported.
struct Ending<'a>(&'a Shared, GroupId);

impl Ending<'_> {
    fn begin(shared: &Shared, group: GroupId) -> Ending<'_> {
        shared.ending.lock().insert(group);
        Ending(shared, group)
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.ending.lock().remove(&self.1);
    }
}

impl Shared {
    /// Starts consensus for a replica with open state, and registers the replica.
    pub async fn start_replica(
        &self,
        group: GroupId,
        replica: ReplicaId,
        dir: &str,
        founding: Bootstrap,
        shard: Option<Arc<Shard>>,
    ) -> Result<Group, StartError> {
        let machine: Arc<dyn Machine> = match &shard {
            Some(shard) => shard.clone(),
            None => self.catalog.clone(),
        };
        let large: Arc<dyn LargeWrites> = match group.shard() {
            Some(_) => Arc::new(ClusterLargeWrites { writes: Arc::clone(&self.writes), net: self.net.clone() }),
            None => Arc::new(NoLargeWrites),
        };
        let incoming =
            IncomingDir { disk: self.config.disk.clone(), dir: self.config.data_dir.join(dir).join(INCOMING) };
        let config = GroupConfig { group, replica, founding, log: self.log.group(group), machine, large, incoming };
        let started = Group::start(config, self.parts.clone()).await?;
        self.replicas.add(HostedReplica { group: started.clone(), shard });
        Ok(started)
    }

    /// Changes `REPLICAS`, on the disk first.
    fn write_down(&self, change: impl FnOnce(&mut Vec<KeptReplica>)) -> Result<(), OpenError> {
        let mut kept = self.kept.lock();
        let mut next = kept.clone();
        change(&mut next);
        self.node_files.set_replicas(&next)?;
        *kept = next;
        Ok(())
    }

    /// Returns the group's line in `REPLICAS`.
    pub fn kept_of(&self, group: GroupId) -> Option<KeptReplica> {
        self.kept.lock().iter().find(|kept| kept.group == group).cloned()
    }

    /// Returns whether the group's replica is being removed at this moment.
    pub fn is_ending(&self, group: GroupId) -> bool {
        self.ending.lock().contains(&group)
    }

    /// Returns whether the state of this replica was found damaged, so that it is closed.
    pub fn is_damaged(&self, group: GroupId, replica: ReplicaId) -> bool {
        self.resting.damaged.lock().contains(&(group, replica))
    }

    /// Keeps a damaged replica closed, together with the blobs that its log needs.
    pub fn keep_closed(&self, closed: ClosedReplica) {
        let ClosedReplica { group, replica, blobs } = closed;
        blobs.into_iter().for_each(|(index, hash)| self.writes.named(group, index, BlobName(hash)));
        self.resting.damaged.lock().insert((group, replica));
    }

    /// Stops a replica that must not run again but keeps its data. It is discarded once the others do without it.
    pub async fn close_replica(&self, group: GroupId, replica: ReplicaId) {
        self.resting.damaged.lock().insert((group, replica));
        if self.replicas.replica(group, replica).is_some()
            && let Err(error) = self.stop_replica(group, replica, LEAVING_LET_GO_MAX).await
        {
            // Its consensus has ended. The later discard waits for its readers again.
            tracing::debug!(%group, %replica, %error, "a replica is closed but still being read");
        }
    }

    /// Marks a replica as lost that this node does not have but may have had. The planner assigns another number.
    pub fn never_take(&self, group: GroupId, replica: ReplicaId) -> Result<(), OpenError> {
        let line = KeptReplica { group, replica, dir: dir_of(group, replica), state: KeptState::Lost };
        self.write_down(|kept| {
            if !kept.iter().any(|other| other.group == group && other.state != KeptState::Lost) {
                kept.retain(|other| other.group != group);
                kept.push(line);
            }
        })
    }

    /// Gives up this node's copy of the catalog. The other nodes assign a new number, and their leader fills the new
    /// copy.
    pub async fn lose_catalog(&self, replica: ReplicaId) -> Result<(), OpenError> {
        let is_it = |kept: &KeptReplica| kept.group == GroupId::CATALOG && kept.replica == replica;
        self.write_down(|kept| {
            kept.iter_mut().filter(|kept| is_it(kept)).for_each(|kept| kept.state = KeptState::Lost)
        })?;
        self.stop_replica(GroupId::CATALOG, replica, LET_GO_MAX).await?;
        self.catalog_heard.forget();
        let (log, catalog) = (self.log.clone(), Arc::clone(&self.catalog));
        let clearing = tokio::task::spawn_blocking(move || {
            forget_log(&log, GroupId::CATALOG)?;
            catalog.clear().map_err(OpenError::Catalog)
        });
        clearing.await.map_err(|error| OpenError::io("clearing the catalog")(std::io::Error::other(error)))??;
        self.resting.damaged.lock().remove(&(GroupId::CATALOG, replica));
        Ok(())
    }

    /// Marks a number of the catalog's replica as lost, if it was assigned to this node and may have run here.
    pub fn never_take_catalog(&self, replica: ReplicaId) -> Result<(), OpenError> {
        let is_lost = |kept: &&mut KeptReplica| kept.group == GroupId::CATALOG && kept.state == KeptState::Lost;
        self.write_down(|kept| kept.iter_mut().filter(is_lost).for_each(|kept| kept.replica = replica))
    }

    /// Starts an empty copy of the catalog under its new number. The group's leader fills it.
    pub async fn add_catalog(&self, replica: ReplicaId) -> Result<(), OpenError> {
        let mut dir = None;
        self.write_down(|kept| {
            for line in kept.iter_mut().filter(|kept| kept.group == GroupId::CATALOG && kept.state == KeptState::Lost) {
                line.replica = replica;
                line.state = KeptState::Kept;
                dir = Some(line.dir.clone());
            }
        })?;
        let Some(dir) = dir else { return Ok(()) };
        self.start_replica(GroupId::CATALOG, replica, &dir, Bootstrap::Joining, None).await?;
        tracing::info!(%replica, "a new copy of the catalog waits for its group's leader");
        Ok(())
    }

    /// Starts an empty replica from the map, which the group's leader fills. The record of a discarded replica is
    /// removed first.
    pub async fn add_replica(self: &Arc<Self>, group: GroupId, replica: ReplicaId) -> Result<(), OpenError> {
        let new = KeptReplica { group, replica, dir: dir_of(group, replica), state: KeptState::Kept };
        let mut made = false;
        self.write_down(|kept| {
            let is_before = |other: &KeptReplica| other.group == group && other.state != KeptState::Lost;
            // The previous replica may still be here, or may be ending now.
            if !self.is_ending(group) && !kept.iter().any(is_before) {
                kept.retain(|other| other.group != group);
                kept.push(new.clone());
                made = true;
            }
        })?;
        if made { self.start_kept(&new).await } else { Ok(()) }
    }

    /// Opens and starts a recorded replica that does not run.
    pub async fn start_kept(self: &Arc<Self>, kept: &KeptReplica) -> Result<(), OpenError> {
        let KeptReplica { group, replica, dir, .. } = kept.clone();
        let Some(shard) = group.shard() else { return Ok(()) }; // a join creates the catalog's replica
        let (config, blobs, place) = (self.config.clone(), Arc::clone(&self.blobs), dir.clone());
        let opening = tokio::task::spawn_blocking(move || open_shard(&config, &blobs, shard, &place));
        let opened = opening.await.map_err(|error| OpenError::io("opening a shard")(std::io::Error::other(error)))?;
        if let Err(OpenError::Shard { source, .. }) = &opened
            && source.is_damage()
        {
            self.resting.damaged.lock().insert((group, replica));
        }
        self.start_replica(group, replica, &dir, Bootstrap::Joining, Some(opened?)).await?;
        tracing::info!(%group, %replica, "a new replica waits for its group's leader");
        Ok(())
    }

    /// Stops a replica that left its group, and removes it from the disk. Callers repeat this until it succeeds.
    pub async fn drop_replica(self: &Arc<Self>, group: GroupId, replica: ReplicaId) -> Result<(), OpenError> {
        self.end_replica(group, replica, KeptState::Leaving, LEAVING_LET_GO_MAX).await
    }

    /// Stops a damaged replica permanently, and moves its directory aside.
    pub async fn lose_replica(self: &Arc<Self>, group: GroupId, replica: ReplicaId) -> Result<(), OpenError> {
        self.end_replica(group, replica, KeptState::Lost, LET_GO_MAX).await
    }

    async fn end_replica(
        self: &Arc<Self>,
        group: GroupId,
        replica: ReplicaId,
        state: KeptState,
        let_go_max: Duration,
    ) -> Result<(), OpenError> {
        let _ending = Ending::begin(self, group);
        let is_it = |kept: &KeptReplica| kept.group == group && kept.replica == replica;
        let Some(leaving) = self.kept.lock().iter().find(|kept| is_it(kept)).cloned() else { return Ok(()) };
        if leaving.state != state {
            self.write_down(|kept| kept.iter_mut().filter(|kept| is_it(kept)).for_each(|kept| kept.state = state))?;
        }
        self.stop_replica(group, replica, let_go_max).await?;
        self.writes.purged(group, u64::MAX);
        let (forgotten, removed) = oneshot::channel();
        self.log.group(group).remove(Box::new(move |result| drop(forgotten.send(result))));
        let stopped = || OpenError::io("cannot remove a group's log")(std::io::Error::other("the log has stopped"));
        removed.await.map_err(|_| stopped())??;
        let node_files = self.node_files.clone();
        let removing = tokio::task::spawn_blocking(move || match state {
            KeptState::Lost => set_aside(&node_files, &leaving),
            KeptState::Kept | KeptState::Leaving => remove_dir(&node_files, &leaving),
        });
        removing.await.map_err(|error| OpenError::io("removing a replica")(std::io::Error::other(error)))??;
        self.resting.damaged.lock().remove(&(group, replica));
        if state == KeptState::Lost {
            return Ok(()); // the line stays until the planner assigns another number
        }
        // The line stays here too: the replica has voted, so it must not restart empty under the same number.
        self.write_down(|kept| {
            kept.iter_mut().filter(|kept| is_it(kept)).for_each(|kept| kept.state = KeptState::Lost)
        })?;
        tracing::info!(%group, %replica, "a replica left this node");
        Ok(())
    }

    /// Stops the consensus of the replica if it runs, and waits until its files are no longer in use.
    async fn stop_replica(&self, group: GroupId, replica: ReplicaId, let_go_max: Duration) -> Result<(), OpenError> {
        if let Some(HostedReplica { group: stopped, shard }) = self.replicas.remove(group) {
            if let Some(shard) = &shard {
                // A repeated call finds no replica but must wait for the same users of the shard.
                self.resting.held.lock().insert(group, Arc::downgrade(shard));
            }
            stopped.shutdown().await;
            let thread = stopped.apply_thread();
            // The thread ends soon, because it gets no more work.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
        let held = self.resting.held.lock().get(&group).cloned();
        if !let_go(held.unwrap_or_default(), let_go_max).await {
            let why = format!("replica {replica} of group {group} is still in use after {} s", let_go_max.as_secs());
            return Err(OpenError::io("stopping a replica")(std::io::Error::other(why)));
        }
        self.resting.held.lock().remove(&group);
        Ok(())
    }
}

/// Waits until the shard is no longer in use.
async fn let_go(held: Weak<Shard>, at_most: Duration) -> bool {
    let until = Instant::now() + at_most;
    while held.strong_count() > 0 {
        if Instant::now() >= until {
            return false;
        }
        sleep(Duration::from_millis(20)).await;
    }
    true
}
