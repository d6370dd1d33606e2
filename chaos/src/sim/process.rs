//! Process of a simulated node: its log writer, its replicas, its upkeep. It ends with a crash, after which its tasks
//! have no effect on others: its disk is a copy, its links are cut, its log has failed.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use assay_cluster::starts::Registry;
use assay_cluster_raft::{
    Admission, Bootstrap, CacheBudget, Group, GroupConfig, IncomingDir, LargeWrites, Machine, NoLargeWrites, NodeParts,
    OnFatal, SealThreads, Throttle, Timing, Work,
};
use assay_storage_blobs::Blobs;
use assay_storage_catalog::Catalog;
use assay_storage_disk::SharedDisk;
use assay_storage_kv::Kvs;
use assay_storage_log::Log;
use assay_storage_log::simulated::{self, Rounds};
use assay_storage_model::{GroupId, NodeId, ReplicaId};
use assay_storage_shard::{KvKind, Shard, ShardConfig};
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::checked_machine::{MachineState, Watched};
use super::crash_disk::{CrashPoint, MachineDisk, WatchedDisk, WatchedKvs};
use super::large_writes::{BlobNames, Large};
use super::network::Wired;
use super::object_access::Lines;
use super::stale_copies::introduce_all;
use super::world::{ReplicaPlacement, SimWorld};

/// Every so many looks a shard's segments are merged as far as they can be.
const COMPACTED_ONE_IN: u64 = 4;

pub struct SimProcess {
    pub node: NodeId,
    /// Number of this process among the node's processes.
    pub number: u32,
    pub kept: MachineDisk,
    pub blobs: Arc<Blobs>,
    pub names: Mutex<BlobNames>,
    pub groups: RwLock<BTreeMap<GroupId, Running>>,
    pub lines: Mutex<BTreeMap<u8, Arc<Lines>>>,
    pub point: Arc<CrashPoint>,
    /// Accepted processes of other nodes.
    pub starts: Mutex<Registry>,
    /// Held while a replica starts or is replaced: both decide by what the other leaves.
    pub replacing: tokio::sync::Mutex<()>,
    dead: AtomicBool,
    /// Notified when it dies.
    died: Notify,
    log: Log,
    disk: SharedDisk,
}

/// A replica that runs.
#[derive(Clone, Debug)]
pub struct Running {
    pub group: Group,
    pub state: MachineState,
}

impl fmt::Debug for SimProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimProcess").field("node", &self.node).field("number", &self.number).finish_non_exhaustive()
    }
}

impl SimProcess {
    /// A process over what the node has on its disk; nothing runs yet.
    pub fn begin(
        world: &Arc<SimWorld>,
        node: NodeId,
        number: u32,
        (kept, starts): (MachineDisk, Registry),
    ) -> Result<Arc<SimProcess>, String> {
        let weak = Arc::downgrade(world);
        let point = CrashPoint::new(move || {
            if let Some(world) = weak.upgrade() {
                world.crash_life(node, number);
            }
        });
        let disk: SharedDisk = Arc::new(WatchedDisk { disk: kept.disk.clone(), point: Arc::clone(&point) });
        let blobs = Blobs::open(disk.clone(), &PathBuf::from("/blobs")).map_err(|error| error.to_string())?;
        let arrived = Arc::new(Notify::new());
        let (log, rounds) = simulated::open(&kept.log, {
            let arrived = Arc::clone(&arrived);
            Arc::new(move || arrived.notify_one())
        });
        let life = Arc::new(SimProcess {
            node,
            number,
            kept,
            blobs: Arc::new(blobs),
            names: Mutex::default(),
            groups: RwLock::default(),
            lines: Mutex::default(),
            point,
            starts: Mutex::new(starts),
            replacing: tokio::sync::Mutex::default(),
            dead: AtomicBool::new(false),
            died: Notify::new(),
            log,
            disk,
        });
        tokio::spawn(write_log(Arc::downgrade(world), Arc::clone(&life), rounds, arrived));
        tokio::spawn(introduce_all(Arc::downgrade(world), Arc::clone(&life)));
        tokio::spawn(upkeep(Arc::downgrade(world), Arc::clone(&life)));
        Ok(life)
    }

    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    pub async fn died(&self) {
        let told = self.died.notified();
        tokio::pin!(told);
        told.as_mut().enable();
        if !self.is_dead() {
            told.await;
        }
    }

    /// Ends all communication of this process.
    pub fn die(&self) {
        self.dead.store(true, Ordering::Relaxed);
        self.died.notify_waiters();
        for running in std::mem::take(&mut *self.groups.write()).into_values() {
            tokio::spawn(async move { running.group.shutdown().await });
        }
    }

    pub fn running(&self, group: GroupId) -> Option<Running> {
        self.groups.read().get(&group).cloned()
    }

    /// Runs the replica that has this place; an error where it does not start although the process lives.
    pub async fn start_replica(
        self: &Arc<Self>,
        world: &Arc<SimWorld>,
        group: GroupId,
        place: &ReplicaPlacement,
    ) -> Result<(), String> {
        let state = self.open(group, place.replica).map_err(|error| format!("opening group {group}: {error}"))?;
        let founding = match &place.founders {
            _ if self.kept.log.has_vote(group) => Bootstrap::Before,
            Some(members) => Bootstrap::Now(members.clone()),
            None => Bootstrap::Joining,
        };
        let (weak, life) = (Arc::downgrade(world), Arc::downgrade(self));
        let machine: Arc<dyn Machine> = Arc::new(Watched {
            world: weak.clone(),
            life: life.clone(),
            group,
            replica: place.replica,
            state: state.clone(),
            inner: state.machine(),
        });
        let large: Arc<dyn LargeWrites> = match state {
            MachineState::Catalog(_) => Arc::new(NoLargeWrites),
            MachineState::Shard(_) => Arc::new(Large { world: weak, life }),
        };
        let incoming =
            IncomingDir { disk: self.disk.clone(), dir: PathBuf::from(format!("/incoming-{group}-{}", place.replica)) };
        let replica = place.replica;
        let config = GroupConfig { group, replica, founding, log: self.log.group(group), machine, large, incoming };
        let group_started = Group::start(config, self.parts(world)).await.map_err(|error| error.to_string())?;
        if self.is_dead() {
            tokio::spawn(async move { group_started.shutdown().await });
            return Ok(());
        }
        self.groups.write().insert(group, Running { group: group_started, state });
        Ok(())
    }

    fn open(&self, group: GroupId, replica: ReplicaId) -> Result<MachineState, String> {
        let kvs = WatchedKvs { kvs: self.kept.kvs.clone(), point: Arc::clone(&self.point) };
        let dir = PathBuf::from(format!("/{group}-{replica}"));
        if group == GroupId::CATALOG {
            let kv = kvs.open(&dir).map_err(|error| error.to_string())?;
            return Catalog::open_on(kv).map(MachineState::Catalog).map_err(|error| error.to_string());
        }
        let kv = KvKind::GivenByDir(Arc::new(kvs));
        let config = ShardConfig { disk: self.disk.clone(), dir, blobs: Arc::clone(&self.blobs), kv };
        Shard::open(config).map(MachineState::Shard).map_err(|error| error.to_string())
    }

    fn parts(self: &Arc<Self>, world: &Arc<SimWorld>) -> NodeParts {
        let (weak, life) = (Arc::downgrade(world), Arc::downgrade(self));
        let work = Work::InPlace({
            let (dice, takes) = (world.dice.apart(), world.plan.work.clone());
            Arc::new(move || dice.micros(&takes))
        });
        let fatal = {
            let (weak, life) = (weak.clone(), life.clone());
            OnFatal::call(move |why| ended(&weak, &life, &why))
        };
        NodeParts {
            cluster_name: "simulated".into(),
            timing: Timing::default(),
            runtime: Handle::current(),
            cache: CacheBudget::new(64 << 10),
            seals: SealThreads::in_place(work.clone()),
            admission: Arc::new(Admission::default()),
            counters: Arc::default(),
            fatal,
            peers: Arc::new(Wired { world: weak, life }),
            throttle: Arc::new(Throttle::new(0)),
            work,
        }
    }

    /// Ends a replica, which will not run again here.
    pub async fn end_replica(&self, group: GroupId) {
        let running = self.groups.write().remove(&group);
        if let Some(running) = running {
            running.group.shutdown().await;
        }
    }

    pub async fn remove_log(&self, group: GroupId) {
        let (sender, gone) = tokio::sync::oneshot::channel();
        self.log.group(group).remove(Box::new(move |removed| drop(sender.send(removed))));
        drop(gone.await);
    }
}

/// A process ended itself. Nothing in a simulation gives it a reason to.
fn ended(world: &Weak<SimWorld>, life: &Weak<SimProcess>, why: &str) {
    let Some((world, life)) = world.upgrade().zip(life.upgrade()) else { return };
    if !life.is_dead() {
        world.facts.find(format!("node {} ended itself: {why}", life.node));
        world.crash_life(life.node, life.number);
    }
}

/// The log's writer: what waits is written, and then synced, for all groups at once.
async fn write_log(world: Weak<SimWorld>, life: Arc<SimProcess>, mut rounds: Rounds, arrived: Arc<Notify>) {
    loop {
        tokio::select! {
            biased;
            () = life.died() => break,
            () = arrived.notified() => {}
        }
        let Some((write, sync)) = world.upgrade().map(|world| world.log_takes(life.node)) else { break };
        sleep(write).await;
        if life.is_dead() || !rounds.write() {
            continue;
        }
        sleep(sync).await;
        if !life.is_dead() {
            rounds.sync();
        }
    }
    rounds.fail("the process has ended");
}

async fn upkeep(world: Weak<SimWorld>, life: Arc<SimProcess>) {
    while !life.is_dead() {
        let Some(strong) = world.upgrade() else { break };
        let (rest, dice) = (strong.dice.micros(&strong.plan.seal), strong.dice.clone());
        drop(strong);
        sleep(rest).await;
        let groups: Vec<GroupId> = life.groups.read().keys().copied().collect();
        let Some(running) = dice.pick(&groups).and_then(|group| life.running(group)) else { continue };
        // It may have been given up meanwhile; another seal will come.
        drop(running.group.seal().await);
        if let MachineState::Shard(shard) = &running.state
            && dice.one_in(COMPACTED_ONE_IN)
            && let Err(error) = shard.compact(&|| {}).and_then(|_| shard.settle(&|| {}))
            && !life.is_dead()
            && let Some(world) = world.upgrade()
        {
            world.facts.find(format!("a compaction failed: {error}"));
        }
    }
}
