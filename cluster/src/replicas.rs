//! Opening, starting, taking away and giving up the replicas of this node.
//!
//! A new replica is written down in `REPLICAS` before its directory is made. One that leaves is written down as leaving,
//! stopped, its log forgotten, its directory removed, and then its line; a crash in between is finished by the next
//! start. The log is kept by group, so a group's next replica comes to this node only after the one before is gone.

use std::sync::Arc;
use std::time::Duration;

use assay_cluster_raft::{Founding, Group, GroupConfig, IncomingDir, LargeWrites, Machine, NoLargeWrites, StartError};
use assay_storage_log::Log;
use assay_storage_model::{GroupId, ReplicaId, ShardId};
use assay_storage_shard::{KvKind, Shard, ShardConfig};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::Shared;
use crate::config::ClusterConfig;
use crate::error::OpenError;
use crate::hub::Hosted;
use crate::keeping::{Keeping, KeptReplica, KeptState, dir_of};
use crate::large::LargeDoor;

/// Below the directory of the replica that fetches.
const INCOMING: &str = "incoming";
/// How long readers, seals and compaction may hold on to a shard that left.
const LET_GO_MAX: Duration = Duration::from_secs(60);

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

/// Sets the directory of a damaged replica aside, where an operator may look into it; the one of before goes. Blocking.
fn set_aside(keeping: &Keeping, replica: &KeptReplica) -> Result<(), OpenError> {
    let (from, to) = (keeping.dir.join(&replica.dir), keeping.dir.join(format!("{}.damaged", replica.dir)));
    let failed = || OpenError::io(format!("setting {} aside", from.display()));
    if !keeping.disk.exists(&from).map_err(failed())? {
        return Ok(());
    }
    if keeping.disk.exists(&to).map_err(failed())? {
        keeping.disk.remove_dir_all(&to).map_err(failed())?;
    }
    keeping.disk.rename(&from, &to).map_err(failed())?;
    keeping.disk.sync_dir(assay_storage_disk::parent_of(&to)).map_err(failed())
}

/// A replica whose state does not open is given up, where there are others that it can be rebuilt from. Blocking.
pub(crate) fn give_up(keeping: &Keeping, kept: &mut [KeptReplica], log: &Log, group: GroupId) -> Result<(), OpenError> {
    let Some(damaged) = kept.iter_mut().find(|replica| replica.group == group) else { return Ok(()) };
    damaged.state = KeptState::Lost;
    let damaged = damaged.clone();
    keeping.set_replicas(kept)?;
    forget_log(log, group)?;
    set_aside(keeping, &damaged)
}

/// What a crash left of replicas that were on their way out. Blocking.
pub(crate) fn finish_leaving(keeping: &Keeping, kept: &mut Vec<KeptReplica>, log: &Log) -> Result<(), OpenError> {
    let leaving: Vec<_> = kept.iter().filter(|replica| replica.state == KeptState::Leaving).cloned().collect();
    for replica in leaving {
        forget_log(log, replica.group)?;
        remove_dir(keeping, &replica)?;
        kept.retain(|other| other.replica != replica.replica);
        keeping.set_replicas(kept)?;
    }
    for replica in kept.iter().filter(|replica| replica.state == KeptState::Lost) {
        forget_log(log, replica.group)?;
        set_aside(keeping, replica)?;
    }
    Ok(())
}

fn forget_log(log: &Log, group: GroupId) -> Result<(), OpenError> {
    let (sender, removed) = std::sync::mpsc::channel();
    log.group(group).remove(Box::new(move |result| drop(sender.send(result))));
    match removed.recv() {
        Ok(result) => Ok(result?),
        Err(_) => Err(OpenError::io("forgetting a group's log")(std::io::Error::other("the log has stopped"))),
    }
}

fn remove_dir(keeping: &Keeping, replica: &KeptReplica) -> Result<(), OpenError> {
    let dir = keeping.dir.join(&replica.dir);
    let failed = || OpenError::io(format!("removing {}", dir.display()));
    if keeping.disk.exists(&dir).map_err(failed())? {
        keeping.disk.remove_dir_all(&dir).map_err(failed())?;
    }
    Ok(())
}

/// While a replica is on its way out no other of its group may come, and nobody is told that it is gone.
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
    /// Starts consensus for a replica whose state is open, and makes it known.
    pub async fn start_replica(
        &self,
        group: GroupId,
        replica: ReplicaId,
        dir: &str,
        founding: Founding,
        shard: Option<Arc<Shard>>,
    ) -> Result<Group, StartError> {
        let machine: Arc<dyn Machine> = match &shard {
            Some(shard) => shard.clone(),
            None => self.catalog.clone(),
        };
        let large: Arc<dyn LargeWrites> = match group.shard() {
            Some(_) => Arc::new(LargeDoor { writes: Arc::clone(&self.writes), net: self.net.clone() }),
            None => Arc::new(NoLargeWrites),
        };
        let incoming =
            IncomingDir { disk: self.config.disk.clone(), dir: self.config.data_dir.join(dir).join(INCOMING) };
        let config = GroupConfig { group, replica, founding, log: self.log.group(group), machine, large, incoming };
        let started = Group::start(config, self.parts.clone()).await?;
        self.hub.add(Hosted { group: started.clone(), shard });
        Ok(started)
    }

    /// Makes room for a replica that the map names, and starts it empty: the group's leader fills it.
    pub async fn add_replica(self: &Arc<Self>, group: GroupId, replica: ReplicaId) -> Result<(), OpenError> {
        let Some(shard) = group.shard() else { return Ok(()) }; // the catalog's is made when a node joins
        let dir = dir_of(group, replica);
        {
            let mut kept = self.kept.lock();
            if self.ending.lock().contains(&group) {
                return Ok(()); // the one before is on its way out
            }
            // The one before is still here; or it was given up, and the planner has not yet named another.
            if kept
                .iter()
                .any(|other| other.group == group && (other.state != KeptState::Lost || other.replica == replica))
            {
                return Ok(());
            }
            kept.retain(|other| other.group != group);
            kept.push(KeptReplica { group, replica, dir: dir.clone(), state: KeptState::Kept });
            self.keeping.set_replicas(&kept)?;
        }
        let (config, blobs, place) = (self.config.clone(), Arc::clone(&self.blobs), dir.clone());
        let opening = tokio::task::spawn_blocking(move || open_shard(&config, &blobs, shard, &place));
        let opened =
            opening.await.map_err(|error| OpenError::io("opening a shard")(std::io::Error::other(error)))??;
        self.start_replica(group, replica, &dir, Founding::Joining, Some(opened)).await?;
        tracing::info!(%group, %replica, "a new replica waits for its group's leader");
        Ok(())
    }

    /// Stops a replica that left its group, and takes it from the disk.
    pub async fn drop_replica(self: &Arc<Self>, group: GroupId, replica: ReplicaId) -> Result<(), OpenError> {
        self.end_replica(group, replica, KeptState::Leaving).await
    }

    /// Stops a damaged replica for good, and sets aside what it has.
    pub async fn lose_replica(self: &Arc<Self>, group: GroupId, replica: ReplicaId) -> Result<(), OpenError> {
        self.end_replica(group, replica, KeptState::Lost).await
    }

    async fn end_replica(
        self: &Arc<Self>,
        group: GroupId,
        replica: ReplicaId,
        state: KeptState,
    ) -> Result<(), OpenError> {
        let _ending = Ending::begin(self, group);
        let leaving = {
            let mut kept = self.kept.lock();
            let Some(found) = kept.iter_mut().find(|kept| kept.group == group && kept.replica == replica) else {
                return Ok(());
            };
            found.state = state;
            let leaving = found.clone();
            self.keeping.set_replicas(&kept)?;
            leaving
        };
        if let Some(Hosted { group: stopped, shard }) = self.hub.remove(group) {
            stopped.shutdown().await;
            let thread = stopped.apply_thread();
            // Its thread ends soon: nothing is handed to it any more.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
            drop(stopped);
            if !let_go(shard).await {
                let why = format!("replica {replica} of group {group} is still held after {} s", LET_GO_MAX.as_secs());
                return Err(OpenError::io("stopping a replica")(std::io::Error::other(why)));
            }
        }
        let door = LargeDoor { writes: Arc::clone(&self.writes), net: self.net.clone() };
        door.purged(group, u64::MAX);
        let (forgotten, removed) = oneshot::channel();
        self.log.group(group).remove(Box::new(move |result| drop(forgotten.send(result))));
        let stopped = || OpenError::io("forgetting a group's log")(std::io::Error::other("the log has stopped"));
        removed.await.map_err(|_| stopped())??;
        let keeping = self.keeping.clone();
        let removing = tokio::task::spawn_blocking(move || match state {
            KeptState::Lost => set_aside(&keeping, &leaving),
            KeptState::Kept | KeptState::Leaving => remove_dir(&keeping, &leaving),
        });
        removing.await.map_err(|error| OpenError::io("removing a replica")(std::io::Error::other(error)))??;
        if state == KeptState::Lost {
            return Ok(()); // its line stays until the planner names another
        }
        let mut kept = self.kept.lock();
        kept.retain(|other| other.replica != replica || other.group != group);
        self.keeping.set_replicas(&kept)?;
        tracing::info!(%group, %replica, "a replica left this node");
        Ok(())
    }
}

/// Waits until nobody else holds the shard.
async fn let_go(shard: Option<Arc<Shard>>) -> bool {
    let Some(shard) = shard else { return true };
    let held = Arc::downgrade(&shard);
    drop(shard);
    let until = Instant::now() + LET_GO_MAX;
    while held.strong_count() > 0 {
        if Instant::now() >= until {
            return false;
        }
        sleep(Duration::from_millis(20)).await;
    }
    true
}
