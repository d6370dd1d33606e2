//! Opening a node, in order: directory, log, states, consensus, upkeep.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use assay_cluster_placement::first_map;
use assay_cluster_raft::fatal::CONSENSUS_THREAD;
use assay_cluster_raft::{
    Admission, CacheBudget, Counters, Founding, Group, GroupConfig, LargeWrites, Machine, NoLargeWrites, NodeParts,
    NotWritten, ProposeError, SealThreads,
};
use assay_storage_blobs::Blobs;
use assay_storage_catalog::{Catalog, CatalogConfig};
use assay_storage_disk::Ballast;
use assay_storage_log::Log;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Members, SHARDS_MAX, SHARDS_MIN, ShardMap};
use assay_storage_model::command::Outcome;
use assay_storage_model::{ClusterId, GroupId, NodeId, ShardId};
use assay_storage_shard::{KvKind, Shard, ShardConfig};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::Cluster;
use crate::config::ClusterConfig;
use crate::error::OpenError;
use crate::home::{Format, Lock, read_or_found, write_format};
use crate::large::{BlobWrites, LargeDoor};
use crate::upkeep::{Upkeep, UpkeepParts};

/// The only node there is, until nodes join.
const THIS_NODE: NodeId = NodeId(1);
const CONSENSUS_THREADS: usize = 2;
const BALLAST: &str = "BALLAST";

/// What was opened before consensus starts.
struct States {
    log: Log,
    blobs: Arc<Blobs>,
    catalog: Arc<Catalog>,
    shards: Vec<Arc<Shard>>,
}

pub(crate) async fn open(config: ClusterConfig) -> Result<Cluster, OpenError> {
    let began = Instant::now();
    let (lock, format) = take_home(&config)?;
    let map = first_map(&[THIS_NODE], format.shards, 1);
    let opening = {
        let config = config.clone();
        tokio::task::spawn_blocking(move || open_states(&config, format))
    };
    let states = opening.await.map_err(|error| OpenError::io("opening the store")(std::io::Error::other(error)))??;
    tracing::info!(cluster = %format.cluster, shards = format.shards, ms = began.elapsed().as_millis(), "store opened");

    let runtime = ConsensusRuntime::start()?;
    let lock = Arc::new(lock);
    let seals = SealThreads::start(Arc::clone(&lock)).map_err(OpenError::io("starting the threads that seal"))?;
    let writes = BlobWrites::new(Arc::clone(&states.blobs));
    let parts = NodeParts {
        cluster_name: format.cluster.to_string(),
        runtime: runtime.handle(),
        cache: CacheBudget::default(),
        seals: seals.clone(),
        admission: Arc::new(Admission::default()),
        counters: Arc::new(Counters::default()),
        fatal: config.on_fatal.clone(),
    };
    let groups = start_groups(&states, &map, format, &parts, &writes).await?;
    if !format.founded {
        set_map(&groups[0], &map).await?;
        write_format(config.disk.as_ref(), &config.data_dir, &Format { founded: true, ..format })?;
    }
    check_map(&states.catalog, &map)?;
    writes.sweep().map_err(OpenError::io("listing large writes"))?;
    tracing::info!(groups = groups.len(), ms = began.elapsed().as_millis(), "every group leads");

    let upkeep = Upkeep::start(UpkeepParts {
        config: config.clone(),
        groups: groups.clone(),
        shards: states.shards.clone(),
        log: states.log.clone(),
        writes,
        admission: Arc::clone(&parts.admission),
        runtime: runtime.handle(),
        lock: Arc::clone(&lock),
    })
    .map_err(OpenError::io("starting the upkeep"))?;
    Ok(Cluster {
        id: format.cluster,
        apply_threads: groups.iter().map(Group::apply_thread).collect(),
        groups,
        shards: states.shards,
        catalog: states.catalog,
        log: states.log,
        log_budget_bytes: config.log.budget_bytes,
        blobs: states.blobs,
        counters: parts.counters,
        upkeep,
        seals,
        runtime,
        _lock: lock,
    })
}

fn take_home(config: &ClusterConfig) -> Result<(Lock, Format), OpenError> {
    let (min, max) = (SHARDS_MIN, SHARDS_MAX);
    if !(min..=max).contains(&usize::from(config.shards)) {
        return Err(OpenError::Shards { found: config.shards, min, max });
    }
    let dir = &config.data_dir;
    config.disk.create_dir_all(dir).map_err(OpenError::io(format!("making {}", dir.display())))?;
    let lock = Lock::take(dir)?;
    let cluster = config.cluster.unwrap_or_else(|| ClusterId(Uuid::new_v4()));
    let new = Format { cluster, shards: config.shards, founded: false };
    let format = read_or_found(config.disk.as_ref(), dir, new, config.cluster)?;
    reserve_ballast(config, dir);
    Ok((lock, format))
}

/// Room for a start on a disk that was full. Going without it is said, not fatal: a full disk must be able to start.
fn reserve_ballast(config: &ClusterConfig, dir: &Path) {
    if let Err(error) = Ballast::reserve(config.disk.as_ref(), &dir.join(BALLAST)) {
        tracing::warn!(%error, "no room for the ballast; freeing disk space is urgent");
    }
}

fn open_states(config: &ClusterConfig, format: Format) -> Result<States, OpenError> {
    let dir = &config.data_dir;
    let disk = &config.disk;
    let log = Log::open(disk.clone(), &dir.join("log"), config.log.clone())?;
    let blobs = Blobs::open(disk.clone(), &dir.join("blobs")).map_err(OpenError::io("opening the blobs"))?;
    let blobs = Arc::new(blobs);
    let catalog = Catalog::open(CatalogConfig {
        disk: disk.clone(),
        dir: dir.join("catalog"),
        kv_cache_bytes: config.kv_cache_bytes,
    })?;
    let mut shards = Vec::with_capacity(usize::from(format.shards));
    for shard in (0..format.shards).map(ShardId) {
        let opened = Shard::open(ShardConfig {
            disk: disk.clone(),
            dir: dir.join("shards").join(format!("{:03}", shard.0)),
            blobs: Arc::clone(&blobs),
            kv: KvKind::Sled { cache_bytes: config.kv_cache_bytes },
        });
        shards.push(opened.map_err(|source| OpenError::Shard { shard, source })?);
    }
    Ok(States { log, blobs, catalog, shards })
}

/// A runtime that may be dropped anywhere, also where async code runs: it then ends in the background.
#[derive(Debug)]
pub(crate) struct ConsensusRuntime(Mutex<Option<Runtime>>);

impl ConsensusRuntime {
    fn start() -> Result<ConsensusRuntime, OpenError> {
        let mut builder = Builder::new_multi_thread();
        let built = builder.worker_threads(CONSENSUS_THREADS).thread_name(CONSENSUS_THREAD).enable_all().build();
        let runtime = built.map_err(OpenError::io("starting the runtime of consensus"))?;
        Ok(ConsensusRuntime(Mutex::new(Some(runtime))))
    }

    fn handle(&self) -> Handle {
        self.0.lock().as_ref().expect("taken only at shutdown").handle().clone()
    }

    /// To be dropped where blocking is allowed, which waits for its threads.
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

/// The catalog first, then the shards in order; all apply again what they committed since their seals, side by side.
async fn start_groups(
    states: &States,
    map: &ShardMap,
    format: Format,
    parts: &NodeParts,
    writes: &Arc<BlobWrites>,
) -> Result<Vec<Group>, OpenError> {
    let founding = |members: &Members| match format.founded {
        true => Founding::Before,
        false => Founding::Now(members.replicas.iter().map(|replica| (replica.id, replica.node)).collect()),
    };
    let config =
        |group: GroupId, members: &Members, machine: Arc<dyn Machine>, large: Arc<dyn LargeWrites>| GroupConfig {
            group,
            replica: members.replicas[0].id,
            founding: founding(members),
            log: states.log.group(group),
            machine,
            large,
        };
    let door: Arc<dyn LargeWrites> = Arc::new(LargeDoor(Arc::clone(writes)));
    let catalog: Arc<dyn Machine> = states.catalog.clone();
    let mut configs = vec![config(GroupId::CATALOG, &map.catalog, catalog, Arc::new(NoLargeWrites))];
    for ((shard, number), members) in states.shards.iter().zip(0..).zip(&map.shards) {
        let machine: Arc<dyn Machine> = shard.clone();
        configs.push(config(GroupId::of_shard(ShardId(number)), members, machine, Arc::clone(&door)));
    }
    let mut starting = JoinSet::new();
    for config in configs {
        let parts = parts.clone();
        starting.spawn(async move {
            let group = Group::start(config, parts).await?;
            group.lead().await?;
            tracing::debug!(group = %group.id(), "leads");
            Ok::<_, OpenError>(group)
        });
    }
    let mut groups = Vec::new();
    while let Some(started) = starting.join_next().await {
        let started = started.map_err(|error| OpenError::io("starting a group")(std::io::Error::other(error)))?;
        groups.push(started?);
    }
    groups.sort_by_key(Group::id);
    Ok(groups)
}

/// Once, at the founding: the map is part of what every node must agree on.
async fn set_map(catalog: &Group, map: &ShardMap) -> Result<(), OpenError> {
    let command = CatalogCommand::SetShardMap(map.clone()).encode();
    let outcomes = catalog.propose(vec![Bytes::from(command)]).await?;
    match outcomes.first() {
        // It was set by a founding that a crash cut short.
        Some(Outcome::Catalog(CatalogOutcome::MapSet { .. } | CatalogOutcome::MapWasSet)) => Ok(()),
        other => Err(ProposeError::NotWritten(NotWritten::Failed(format!("the catalog answered {other:?}"))).into()),
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
