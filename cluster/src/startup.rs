//! Startup of a node: directory, log, states, network, consensus, registration in the cluster, and upkeep, in this
//! order.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Instant, SystemTime};

use assay_cluster_directory::AcknowledgedTable;
use assay_cluster_directory::data_dir::{Format, Lock, check_before_lock, read_or_found, write_format};
use assay_cluster_directory::node_files::{FOUNDER, KeptReplica, KeptState, NodeFile, NodeFiles, replicas_of_founder};
use assay_cluster_directory::starts;
use assay_cluster_network::{Network, OwnReplicas, StartHistories};
use assay_cluster_placement::first_map;
use assay_cluster_raft::fatal::CONSENSUS_THREAD;
use assay_cluster_raft::{Admission, Bootstrap, CacheBudget, Counters, Group, NodeParts, SealThreads, Throttle, Work};
use assay_cluster_replicas::{BlobWrites, Replicas, Upkeep, UpkeepConfig, UpkeepParts};
use assay_storage_blobs::Blobs;
use assay_storage_catalog::{Catalog, CatalogConfig};
use assay_storage_disk::Ballast;
use assay_storage_log::Log;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, SHARDS_MAX, SHARDS_MIN, ShardMap};
use assay_storage_model::command::Outcome;
use assay_storage_model::{ClusterId, GroupId, NodeId, NotWritten, WriteFailure};
use assay_storage_shard::Shard;
use bytes::Bytes;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc;
use tokio::task::{JoinSet, spawn_blocking};
use uuid::Uuid;

use crate::config::{ClusterConfig, PeerConfig};
use crate::error::OpenError;
use crate::maintenance::reconcile::{Clocks, Health, Reconcilers, Spared};
use crate::membership::recovery::check_recovery;
use crate::monitoring::catalog_contact::CatalogHeard;
use crate::replica_lifecycle::{ClosedReplica, RestingReplicas, close_damaged, finish_leaving, open_shard};
use crate::routing::LeaderHints;
use crate::stale_copies::on_disk::Beginning;
use crate::{Cluster, Shared};

const CONSENSUS_THREADS: usize = 2;
const BALLAST: &str = "BALLAST";

/// State that is opened before consensus starts.
struct States {
    log: Log,
    blobs: Arc<Blobs>,
    catalog: Arc<Catalog>,
    /// Replicas, each with the state of its shard.
    replicas: Vec<(KeptReplica, Option<Arc<Shard>>)>,
    /// Damaged replicas.
    closed: Vec<ClosedReplica>,
    /// Content of `REPLICAS`.
    kept: Vec<KeptReplica>,
    /// Content of `STARTS`, including this start.
    starts: starts::KeptStarts,
}

/// Capacity of the channel for damaged replicas. Each is reported once, and a node has at most one per group.
const DAMAGED_MAX: usize = SHARDS_MAX + 1;

/// Number of shards that are opened concurrently. Opening mostly waits for the disk.
const SHARDS_OPENED_AT_ONCE: usize = 8;

/// Data directory, and the node that it belongs to.
struct Home {
    lock: Arc<Lock>,
    format: Format,
    node_files: NodeFiles,
    node: NodeFile,
}

/// Opens the node. Not inlined, so that this code is compiled once, in this crate.
#[inline(never)]
pub(crate) fn open(config: ClusterConfig) -> BoxFuture<'static, Result<Cluster, OpenError>> {
    Box::pin(open_node(config))
}

async fn open_node(config: ClusterConfig) -> Result<Cluster, OpenError> {
    let began = Instant::now();
    let Home { lock, format, node_files, node } = take_home(&config)?;
    let config = with_kept_address(config, &node)?;
    let ballast = spawn_blocking({
        let (config, lock) = (config.clone(), Arc::clone(&lock));
        move || reserve_ballast(&config, &lock)
    });
    let states = states(&config, &node_files, format, node.node).await?;
    tracing::info!(cluster = %format.cluster, node = %node.node, ms = began.elapsed().as_millis(), "store opened");

    let runtime = ConsensusRuntime::start()?;
    let seals = SealThreads::start(Arc::clone(&lock)).map_err(OpenError::io("cannot start the seal threads"))?;
    let net = Network::default();
    let table = AcknowledgedTable::open(&*config.disk, &config.data_dir)?;
    let start_histories =
        Arc::new(StartHistories::new(node_files.clone(), states.starts, table, config.timing.heartbeat)?);
    net.compare(Arc::clone(&start_histories));
    let (damaged, damage) = mpsc::channel(DAMAGED_MAX);
    let mut parts = parts(&config, format, (runtime.handle(), seals.clone()), &net);
    parts.fatal = parts.fatal.close_damaged(move |group, replica| {
        let _ = damaged.try_send((group, replica)); // nobody listens at shutdown
    });
    let shared = Arc::new(Shared {
        id: format.cluster,
        node: node.node,
        shards: format.shards,
        config: config.clone(),
        replicas: Replicas::default(),
        catalog: states.catalog,
        net,
        hints: LeaderHints::default(),
        log: states.log,
        writes: BlobWrites::new(Arc::clone(&states.blobs)),
        blobs: states.blobs,
        parts,
        kept: Mutex::new(states.kept),
        ending: Mutex::default(),
        node_files,
        spared: Spared::default(),
        clocks: Clocks::default(),
        resting: RestingReplicas::default(),
        catalog_heard: CatalogHeard::default(),
        start_histories,
        health: Health::default(),
        closing: AtomicBool::new(false),
        started: SystemTime::now(),
    });
    states.closed.into_iter().for_each(|closed| shared.keep_closed(closed));
    let own_replicas: Arc<dyn OwnReplicas> = shared.clone();
    shared.start_histories.begin(&own_replicas);
    // Other nodes must be reachable before a group requests votes from them.
    shared.open_network().await?;
    start_groups(&shared, states.replicas, format).await?;
    if shared.is_alone().await {
        lead_all(&shared, format).await?;
    } else if shared.config.peer.is_some() && shared.net.transport().is_none() {
        return Err(OpenError::NoCertificate);
    }
    shared.writes.sweep().map_err(OpenError::io("listing large writes"))?;
    tracing::info!(groups = shared.replicas.all().len(), ms = began.elapsed().as_millis(), "every replica runs");

    let upkeep = start_upkeep(&shared, runtime.handle(), &lock)?;
    let reconcilers = Reconcilers::start(Arc::clone(&shared), damage, &runtime.handle());
    ballast.await.map_err(|error| OpenError::io("making the ballast")(std::io::Error::other(error)))?;
    Ok(Cluster { shared, upkeep, reconcilers, seals, runtime, _lock: lock })
}

fn start_upkeep(shared: &Shared, runtime: Handle, lock: &Arc<Lock>) -> Result<Upkeep, OpenError> {
    let started = Upkeep::start(UpkeepParts {
        config: upkeep_config(&shared.config),
        replicas: shared.replicas.clone(),
        log: shared.log.clone(),
        writes: Arc::clone(&shared.writes),
        admission: Arc::clone(&shared.parts.admission),
        runtime,
        lock: Arc::clone(lock),
        suspects: Arc::clone(shared.net.suspects()),
    });
    started.map_err(OpenError::io("starting the upkeep"))
}

fn upkeep_config(config: &ClusterConfig) -> UpkeepConfig {
    UpkeepConfig {
        disk: config.disk.clone(),
        data_dir: config.data_dir.clone(),
        memory_budget_bytes: config.memory_budget_bytes,
        log_budget_bytes: config.log.budget_bytes,
        seal_age: config.seal_age,
        erase_after: config.erase_after,
        on_fatal: config.on_fatal.clone(),
    }
}

fn parts(config: &ClusterConfig, format: Format, (runtime, seals): (Handle, SealThreads), net: &Network) -> NodeParts {
    NodeParts {
        cluster_name: format.cluster.to_string(),
        timing: config.timing,
        runtime,
        cache: CacheBudget::default(),
        seals,
        admission: Arc::new(Admission::default()),
        counters: Arc::new(Counters::default()),
        fatal: config.on_fatal.clone(),
        peers: Arc::new(net.clone()),
        throttle: Arc::new(Throttle::new(config.move_bytes_a_second)),
        work: Work::Threads,
    }
}

/// Returns the configuration with the last announced address, unless it has an address itself.
fn with_kept_address(config: ClusterConfig, node: &NodeFile) -> Result<ClusterConfig, OpenError> {
    let kept = match (&config.peer, &node.address) {
        (None, Some(address)) => Some(PeerConfig::new(address, None).map_err(OpenError::OtherMap)?),
        _ => None,
    };
    Ok(ClusterConfig { peer: config.peer.or(kept), ..config })
}

fn take_home(config: &ClusterConfig) -> Result<Home, OpenError> {
    let (min, max) = (SHARDS_MIN, SHARDS_MAX);
    if !(min..=max).contains(&usize::from(config.shards)) {
        return Err(OpenError::Shards { found: config.shards, min, max });
    }
    let dir = &config.data_dir;
    check_before_lock(config.disk.as_ref(), dir, config.expects_data.as_deref())?;
    config.disk.create_dir_all(dir).map_err(OpenError::io(format!("making {}", dir.display())))?;
    let lock = Arc::new(Lock::take(dir)?);
    let cluster = config.cluster.unwrap_or_else(|| ClusterId(Uuid::new_v4()));
    let new = Format { cluster, shards: config.shards, founded: false };
    let format = read_or_found(config.disk.as_ref(), dir, new, config.cluster)?;
    let node_files = NodeFiles { disk: config.disk.clone(), dir: dir.clone() };
    let node = node_files.node()?;
    Ok(Home { lock, format, node_files, node })
}

/// Reserves space for a start on a full disk.
///
/// A failure is only a warning, because a node must be able to start on a full disk. The lock is held, so no other
/// process uses the directory.
fn reserve_ballast(config: &ClusterConfig, _lock: &Lock) {
    if let Err(error) = Ballast::reserve(config.disk.as_ref(), &config.data_dir.join(BALLAST)) {
        tracing::warn!(%error, "no space for the ballast; free disk space urgently");
    }
}

/// Returns the shard map of a founder before any other node joined.
fn founding_map(format: Format) -> ShardMap {
    first_map(&[FOUNDER], format.shards, 1)
}

/// Returns the replicas of a directory. Without a record of them, they are those of the bootstrap.
pub(crate) fn kept_replicas(node_files: &NodeFiles, format: Format) -> Result<Vec<KeptReplica>, OpenError> {
    Ok(node_files.replicas()?.unwrap_or_else(|| replicas_of_founder(&founding_map(format))))
}

async fn states(
    config: &ClusterConfig,
    node_files: &NodeFiles,
    format: Format,
    node: NodeId,
) -> Result<States, OpenError> {
    let (config, node_files) = (config.clone(), node_files.clone());
    let opening = spawn_blocking(move || open_states(&config, &node_files, format, node)).await;
    opening.map_err(|error| OpenError::io("opening the store")(std::io::Error::other(error)))?
}

fn open_states(
    config: &ClusterConfig,
    node_files: &NodeFiles,
    format: Format,
    node: NodeId,
) -> Result<States, OpenError> {
    let dir = &config.data_dir;
    let disk = &config.disk;
    let log = Log::open(disk.clone(), &dir.join("log"), config.log.clone())?;
    let blobs = Blobs::open(disk.clone(), &dir.join("blobs")).map_err(OpenError::io("opening the blobs"))?;
    let blobs = Arc::new(blobs);
    let mut kept = kept_replicas(node_files, format)?;
    finish_leaving(node_files, &mut kept, &log)?;
    check_recovery(config, &kept, &log)?;
    let catalog_dir = kept.iter().find(|replica| replica.group == GroupId::CATALOG);
    let catalog_dir = catalog_dir.ok_or(OpenError::NoCatalog)?.dir.clone();
    let catalog = Catalog::open(CatalogConfig {
        disk: disk.clone(),
        dir: dir.join(catalog_dir),
        kv_cache_bytes: config.kv_cache_bytes,
    })?;
    let mut replicas = Vec::with_capacity(kept.len());
    let mut closed = Vec::new();
    let map = catalog.read().shard_map().cloned();
    let mut beginning = Beginning::new((&log, node_files), &dir.join("log"), map.as_deref(), node)?;
    beginning.look_at_log(&kept)?;
    let mut to_open = Vec::with_capacity(kept.len());
    for replica in kept.iter().filter(|replica| replica.state == KeptState::Kept).cloned() {
        match beginning.closed(&replica)? {
            Some(stays) => closed.push(stays),
            None => to_open.push(replica),
        }
    }
    for (replica, opened) in open_shards(config, &blobs, &to_open) {
        match opened {
            Ok(shard) => {
                let applied = shard.as_ref().map_or_else(|| catalog.sealed(), |shard| shard.sealed());
                match beginning.of_other_history(&replica, &applied)? {
                    Some(stays) => closed.push(stays),
                    None => replicas.push((replica, shard)),
                }
            }
            // Other errors are temporary or can be repaired. Giving up an intact replica could cost the group its
            // quorum.
            Err(OpenError::Shard { shard, source }) if source.is_damage() => {
                match close_damaged((&log, node_files), &replica, map.as_deref(), node)? {
                    Some(stays) => {
                        let replica = replica.replica;
                        tracing::error!(%shard, %replica, %source, "a replica is damaged and stays closed");
                        closed.push(stays);
                    }
                    None => return Err(OpenError::DamagedAlone { shard, source }),
                }
            }
            Err(error) => return Err(error),
        }
    }
    // Other nodes may learn of this start only from here on.
    let starts = beginning.write()?;
    Ok(States { log, blobs, catalog, replicas, closed, kept, starts })
}

/// Opens the shard of each replica and returns the results in their order. The catalog has no shard.
fn open_shards(config: &ClusterConfig, blobs: &Arc<Blobs>, replicas: &[KeptReplica]) -> Vec<OpenedReplica> {
    let open = |replica: &KeptReplica| {
        let shard = replica.group.shard();
        (replica.clone(), shard.map(|shard| open_shard(config, blobs, shard, &replica.dir)).transpose())
    };
    let mut all = Vec::with_capacity(replicas.len());
    for some in replicas.chunks(SHARDS_OPENED_AT_ONCE) {
        all.extend(thread::scope(|scope| {
            let opening: Vec<_> = some.iter().map(|replica| scope.spawn(move || open(replica))).collect();
            let opened = opening.into_iter().map(|one| one.join().unwrap_or_else(|panic| resume_unwind(panic)));
            opened.collect::<Vec<_>>()
        }));
    }
    all
}

type OpenedReplica = (KeptReplica, Result<Option<Arc<Shard>>, OpenError>);

/// Runtime that may be dropped anywhere, including async code. It then ends in the background.
#[derive(Debug)]
pub(crate) struct ConsensusRuntime(Mutex<Option<Runtime>>);

impl ConsensusRuntime {
    fn start() -> Result<ConsensusRuntime, OpenError> {
        let mut builder = Builder::new_multi_thread();
        let built = builder.worker_threads(CONSENSUS_THREADS).thread_name(CONSENSUS_THREAD).enable_all().build();
        let runtime = built.map_err(OpenError::io("cannot start the runtime of consensus"))?;
        Ok(ConsensusRuntime(Mutex::new(Some(runtime))))
    }

    fn handle(&self) -> Handle {
        self.0.lock().as_ref().expect("taken only at shutdown").handle().clone()
    }

    /// Takes the runtime. The caller must drop it where blocking is allowed, because the drop waits for its threads.
    pub fn take(&self) -> Option<Runtime> {
        self.0.lock().take()
    }
}

impl Drop for ConsensusRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.take() {
            runtime.shutdown_background();
        }
    }
}

/// Starts all groups concurrently. Each reapplies the entries committed since its seal.
async fn start_groups(
    shared: &Arc<Shared>,
    replicas: Vec<(KeptReplica, Option<Arc<Shard>>)>,
    format: Format,
) -> Result<(), OpenError> {
    let mut starting = JoinSet::new();
    for (kept, shard) in replicas {
        let founding = match (format.founded, shared.node == FOUNDER) {
            (false, true) => Bootstrap::Now(vec![(kept.replica, FOUNDER)]),
            (true, true)
                if founding_map(format)
                    .group(kept.group)
                    .is_some_and(|members| members.replicas[0].id == kept.replica) =>
            {
                Bootstrap::Before
            }
            // A replica added after the bootstrap may not have received its membership before the node stopped.
            _ => Bootstrap::Joining,
        };
        let shared = Arc::clone(shared);
        starting.spawn(async move { shared.start_replica(kept.group, kept.replica, &kept.dir, founding, shard).await });
    }
    while let Some(started) = starting.join_next().await {
        started.map_err(|error| OpenError::io("starting a group")(std::io::Error::other(error)))??;
    }
    Ok(())
}

/// Makes a node that is its whole cluster lead every group, and finishes its founding.
async fn lead_all(shared: &Arc<Shared>, format: Format) -> Result<(), OpenError> {
    let mut leading = JoinSet::new();
    for group in shared.replicas.groups() {
        leading.spawn(async move { group.lead().await });
    }
    while let Some(led) = leading.join_next().await {
        led.map_err(|error| OpenError::io("waiting for a group")(std::io::Error::other(error)))??;
    }
    let map = founding_map(format);
    let catalog = shared.replicas.group(GroupId::CATALOG).ok_or(OpenError::NoCatalog)?;
    if !format.founded {
        set_map(&catalog, &map).await?;
    }
    check_map(&shared.catalog, &map)?;
    shared.heard_catalog(Instant::now());
    shared.finish_recovery().await?;
    shared.introduce_founder(&catalog).await?;
    shared.confirm_upgrade_alone(&catalog).await?;
    if !format.founded {
        let (disk, dir) = (&shared.config.disk, &shared.config.data_dir);
        write_format(disk.as_ref(), dir, &Format { founded: true, ..format })?;
    }
    shared.open_network().await
}

/// Records the first shard map during the founding, because every node must agree on the map.
async fn set_map(catalog: &Group, map: &ShardMap) -> Result<(), OpenError> {
    let command = CatalogCommand::SetShardMap(map.clone()).encode();
    let outcomes = catalog.propose(vec![Bytes::from(command)]).await?;
    match outcomes.first() {
        // An earlier founding, interrupted by a crash, has already recorded the map.
        Some(Outcome::Catalog(CatalogOutcome::MapSet { .. } | CatalogOutcome::MapWasSet)) => Ok(()),
        other => Err(WriteFailure::NotWritten(NotWritten::Failed(format!("the catalog answered {other:?}"))).into()),
    }
}

fn check_map(catalog: &Catalog, map: &ShardMap) -> Result<(), OpenError> {
    let state = catalog.read();
    match state.shard_map() {
        Some(found) if found.shards.len() == map.shards.len() => Ok(()),
        Some(found) => {
            Err(OpenError::OtherMap(format!("{} shards there, {} here", found.shards.len(), map.shards.len())))
        }
        None => Err(OpenError::OtherMap("it has none".into())),
    }
}
