//! Restore of a cluster into an empty data directory, from states and log entries of a backup.
//!
//! The directory becomes the only node of a new cluster, with an identity of its own. The states keep the positions of
//! the old groups. Each group gets a membership of one new replica, as a recovery writes it (`recovery`), so that the
//! first start elects it and removes the old nodes from the map. The first start also replaces the authority of
//! certificates. A restored node and the nodes of the old cluster therefore refuse each other: they have different
//! cluster ids, and neither trusts the certificates of the other.
//!
//! The file `FORMAT` is written last. Before that, the directory is not a data directory, and a start refuses it. A
//! repeated restore removes what an interrupted one left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_cluster_directory::data_dir::{Format, HomeError, Lock, begin_restore, check_before_lock, finish_restore};
use assay_cluster_directory::node_files::{FOUNDER, KeptReplica, NodeFile, NodeFiles, replicas_of_founder};
use assay_cluster_network::node_records::{self, NodeState};
use assay_cluster_placement::first_map;
use assay_cluster_raft::{ForcedRecovery, Machine};
use assay_storage_blobs::Blobs;
use assay_storage_catalog::{Catalog, CatalogConfig};
use assay_storage_log::{Log, LogConfig};
use assay_storage_model::{ClusterId, GroupId, LogPosition, NodeId, ReplicaId};
use bytes::Bytes;
use uuid::Uuid;

use crate::config::ClusterConfig;
use crate::error::OpenError;
use crate::membership::recovery::{NUMBERS_SKIPPED, write_restoring};
use crate::replica_lifecycle::open_shard;

/// Directory for the files of one group before they are installed, below the directory of the group.
const INCOMING: &str = "incoming";

/// Data directory that is being filled.
#[derive(Debug)]
pub struct RestoredNode {
    config: ClusterConfig,
    format: Format,
    node_files: NodeFiles,
    replicas: Vec<KeptReplica>,
    blobs: Arc<Blobs>,
    _lock: Lock,
}

/// Group of a restored node whose state is being filled. All calls block.
#[derive(Debug)]
pub struct RestoredGroup {
    group: GroupId,
    machine: Arc<dyn Machine>,
    /// The catalog itself, if this is its group.
    catalog: Option<Arc<Catalog>>,
    incoming: PathBuf,
    blobs: Arc<Blobs>,
}

/// Identity of a restored node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoredIdentity {
    pub cluster: ClusterId,
    pub node: NodeId,
}

impl RestoredNode {
    /// Locks an empty directory, or one with an interrupted restore, which it empties. Nothing else is changed.
    pub fn create(config: &ClusterConfig, shards: u16) -> Result<RestoredNode, OpenError> {
        let (disk, dir) = (config.disk.clone(), config.data_dir.clone());
        match check_before_lock(disk.as_ref(), &dir, None) {
            Err(HomeError::UnfinishedRestore(_)) => {}
            checked => checked?,
        }
        let existing = assay_cluster_directory::read_format(disk.as_ref(), &dir)?;
        if existing.is_some() {
            return Err(OpenError::Recovery(format!(
                "{} holds the data of a node; restore into an empty directory",
                dir.display()
            )));
        }
        disk.create_dir_all(&dir).map_err(OpenError::io(format!("making {}", dir.display())))?;
        let lock = Lock::take(&dir)?;
        begin_restore(disk.as_ref(), &dir)?;
        let format = Format { cluster: ClusterId(Uuid::new_v4()), shards, founded: true };
        let replicas = replicas_of_founder(&first_map(&[FOUNDER], shards, 1));
        let blobs = Blobs::open(disk.clone(), &dir.join("blobs")).map_err(OpenError::io("opening the blobs"))?;
        let node_files = NodeFiles { disk, dir };
        let (config, blobs) = (config.clone(), Arc::new(blobs));
        Ok(RestoredNode { config, format, node_files, replicas, blobs, _lock: lock })
    }

    /// Returns all groups of the cluster.
    pub fn groups(&self) -> Vec<GroupId> {
        self.replicas.iter().map(|replica| replica.group).collect()
    }

    /// Opens the empty state of a group.
    pub fn group(&self, group: GroupId) -> Result<RestoredGroup, OpenError> {
        let kept = self.replicas.iter().find(|replica| replica.group == group).ok_or(OpenError::NoCatalog)?;
        let dir = self.config.data_dir.join(&kept.dir);
        let (machine, catalog): (Arc<dyn Machine>, _) = match group.shard() {
            Some(shard) => (open_shard(&self.config, &self.blobs, shard, &kept.dir)?, None),
            None => {
                let catalog = open_catalog(&self.config, &dir)?;
                (catalog.clone(), Some(catalog))
            }
        };
        let (incoming, blobs) = (dir.join(INCOMING), Arc::clone(&self.blobs));
        Ok(RestoredGroup { group, machine, catalog, incoming, blobs })
    }

    /// Makes the directory a node of a new cluster. All groups must be filled, sealed and closed.
    pub async fn finish(self) -> Result<RestoredIdentity, OpenError> {
        let RestoredNode { config, format, node_files, mut replicas, blobs, _lock } = self;
        drop(blobs);
        let sealed = tokio::task::spawn_blocking({
            let (config, replicas) = (config.clone(), replicas.clone());
            move || sealed_states(&config, &replicas)
        });
        let Sealed { node, next_replica, positions } =
            sealed.await.map_err(|error| OpenError::io("reading the states")(std::io::Error::other(error)))??;
        replicas.sort_by_key(|replica| replica.group);
        for (number, replica) in (next_replica.0.saturating_add(NUMBERS_SKIPPED)..).zip(&mut replicas) {
            replica.replica = ReplicaId(number);
        }
        let log = Log::open(config.disk.clone(), &config.data_dir.join("log"), LogConfig::default())?;
        for replica in &replicas {
            let position = positions.get(&replica.group).copied();
            let planned = ForcedRecovery::plan(log.group(replica.group), replica.replica, node, position);
            let planned = planned.map_err(OpenError::io(format!("group {}", replica.group)))?;
            planned.write().await.map_err(OpenError::io(format!("group {}", replica.group)))?;
        }
        let closing = tokio::task::spawn_blocking(move || log.shutdown());
        closing.await.map_err(|error| OpenError::io("closing the log")(std::io::Error::other(error)))??;
        node_files.set_node(&NodeFile { node, address: None })?;
        node_files.set_replicas(&replicas)?;
        write_restoring(&node_files)?;
        finish_restore(config.disk.as_ref(), &config.data_dir, &format)?;
        Ok(RestoredIdentity { cluster: format.cluster, node })
    }
}

fn open_catalog(config: &ClusterConfig, dir: &Path) -> Result<Arc<Catalog>, OpenError> {
    let (disk, dir, kv_cache_bytes) = (config.disk.clone(), dir.to_owned(), config.kv_cache_bytes);
    Ok(Catalog::open(CatalogConfig { disk, dir, kv_cache_bytes })?)
}

/// What the restored states say.
struct Sealed {
    /// Number of the new node: that of a node of the old cluster, whose record it takes over.
    node: NodeId,
    next_replica: ReplicaId,
    positions: BTreeMap<GroupId, LogPosition>,
}

fn sealed_states(config: &ClusterConfig, replicas: &[KeptReplica]) -> Result<Sealed, OpenError> {
    let mut positions = BTreeMap::new();
    let blobs = Blobs::open(config.disk.clone(), &config.data_dir.join("blobs"));
    let blobs = Arc::new(blobs.map_err(OpenError::io("opening the blobs"))?);
    let mut found = None;
    for replica in replicas {
        let sealed = match replica.group.shard() {
            Some(shard) => open_shard(config, &blobs, shard, &replica.dir)?.sealed(),
            None => {
                let catalog = open_catalog(config, &config.data_dir.join(&replica.dir))?;
                let state = catalog.read();
                let shards = state.shard_map().map(|map| map.shards.len());
                if shards != Some(replicas.len() - 1) {
                    return Err(OpenError::OtherMap(format!("{shards:?} shards there, {} here", replicas.len() - 1)));
                }
                let nodes = node_records::all(&state);
                let present = nodes.iter().find(|(_, (record, _))| record.state != NodeState::Removed);
                found = Some((present.map_or(FOUNDER, |(node, _)| *node), state.next_ids().1));
                drop(state);
                catalog.sealed()
            }
        };
        positions.extend(sealed.position.map(|position| (replica.group, position)));
    }
    let (node, next_replica) = found.ok_or(OpenError::NoCatalog)?;
    Ok(Sealed { node, next_replica, positions })
}

impl RestoredGroup {
    pub fn id(&self) -> GroupId {
        self.group
    }

    /// Returns the empty directory for the files of a state, on the disk of the node.
    pub fn incoming(&self, config: &ClusterConfig) -> Result<&Path, OpenError> {
        let made = config.disk.create_dir_all(&self.incoming);
        made.map_err(OpenError::io(format!("making {}", self.incoming.display())))?;
        Ok(&self.incoming)
    }

    /// Verifies a state, whose files are in [`RestoredGroup::incoming`], and takes it over.
    pub fn install(&self, kept: &[u8], has_files: bool) -> Result<(), OpenError> {
        let incoming = has_files.then_some(self.incoming.as_path());
        let failed = |why: String| OpenError::Recovery(format!("group {}: {why}", self.group));
        self.machine.check(kept, incoming).map_err(|why| failed(why.to_string()))?;
        self.machine.install(kept, incoming).map_err(|why| failed(why.to_string()))
    }

    /// Applies an entry behind the state.
    pub fn apply(&self, position: LogPosition, entry: &Bytes) -> Result<(), OpenError> {
        let applied = self.machine.apply(position, entry).map(drop);
        applied.map_err(|why| OpenError::Recovery(format!("group {}: {why}", self.group)))
    }

    /// Passes an entry without commands.
    pub fn skip(&self, position: LogPosition) -> Result<(), OpenError> {
        let applied = self.machine.apply_blank(position);
        applied.map_err(|why| OpenError::Recovery(format!("group {}: {why}", self.group)))
    }

    /// Keeps the content of a large write, which the next entry names.
    pub fn keep_large_write(&self, content: &[u8]) -> Result<[u8; 32], OpenError> {
        let kept = self.blobs.put(content);
        kept.map(|name| name.0).map_err(|why| OpenError::Recovery(format!("group {}: {why}", self.group)))
    }

    /// Returns the bytes that a seal would free.
    pub fn memory_bytes(&self) -> usize {
        self.machine.memory_bytes()
    }

    /// Makes the state durable.
    pub fn seal(&self) -> Result<(), OpenError> {
        let sealed = self.machine.seal().map(drop);
        sealed.map_err(|why| OpenError::Recovery(format!("group {}: {why}", self.group)))
    }

    /// Returns the catalog, if this is its group.
    pub fn catalog(&self) -> Option<&Arc<Catalog>> {
        self.catalog.as_ref()
    }
}
