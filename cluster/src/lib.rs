//! Cluster layer: placement of replicas, and agreement between them.
//!
//! The layer manages the groups of this node, the connections to the other nodes, and the current and wanted leaders.
//! It builds on the storage layer. HTTP, users and queries belong to upper layers.
//!
//! ```text
//! data directory
//!   FORMAT        version, cluster, number of shards, and whether the founding ended (directory::data_dir)
//!   NODE, PEERS, REPLICAS, tls/     identity, other nodes' addresses, own replicas (directory::node_files)
//!   STARTS        starts of this node, last starts of others, and replicas that must not run (directory::starts)
//!   ACKNOWLEDGED  acknowledged positions of followers of the groups led here (directory::acknowledged)
//!   LOCK          held while a process uses the directory
//!   BALLAST       reserved space for a start on a full disk
//!   log/          the logs and votes of all groups; log.watermark beside it
//!   blobs/        large writes, named by their content
//!   catalog/      the control group
//!   shards/000/   one directory per shard; 000-r57 for a later replica
//! ```
//! At start, a node takes the lock, reads its files, opens the log, and then opens the state of every replica.
//! Consensus then reapplies the entries that were committed since the last seals.
//!
//! A single node is open once every group leads and has applied all of its log. A node of several is open once its
//! replicas run. It is ready once it has contact with the catalog (`Cluster::is_ready`). A bootstrap that a crash
//! interrupted starts again, because nothing was acknowledged before its end.
//!
//! Concurrently, reconcilers move the actual state to the wanted state (`maintenance::reconcile`). Each one compares
//! the two states and makes one step.

mod archive;
mod certificates;
mod config;
mod error;
mod maintenance;
mod membership;
mod monitoring;
mod replica_lifecycle;
mod routing;
mod stale_copies;
mod startup;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use assay_cluster_directory::node_files::{KeptReplica, NodeFiles};
use assay_cluster_network::{Network, StartHistories, node_records};
use assay_cluster_placement::shard_of;
use assay_cluster_raft::{ApplyThread, Counters, Group, NodeParts, SealThreads};
use assay_cluster_replicas::{BlobWrites, Replicas, Upkeep};
use assay_storage_blobs::Blobs;
use assay_storage_catalog::Catalog;
use assay_storage_disk::SharedDisk;
use assay_storage_log::Log;
use assay_storage_model::{Applied, ClusterId, GroupId, NodeId, NotWritten, ObjectKey, ShardId};
use assay_storage_shard::Shard;
use bytes::Bytes;
use parking_lot::Mutex;

pub use archive::LogStatus;
pub use assay_cluster_directory::starts;
pub use assay_cluster_directory::{
    FORMAT_VERSION, Format, HomeError, Lock, NodeFile, read_format, read_node, read_replicas,
};
pub use assay_cluster_network::{
    AskError, AskStream, DelegatedService, Feature, Guard, NoAnswer, NodeProgram, NodeRecord, NodeState, ObjectAccess,
    Service, ServiceNames, StreamService,
};
pub use assay_cluster_raft::{
    AppliedContent, AppliedEntries, AppliedEntry, BadTiming, Counts, ExportFile, FenceError, GroupStatus, OnFatal,
    Pending, SealError, Timing, contradiction_in, install_abort_hook,
};
pub use assay_cluster_replicas::UpkeepCounts;
pub use assay_cluster_transport::{CallFaults, FaultInjector, PeerCounts};
pub use assay_storage_log::LogConfig;
pub use assay_storage_shard::StoredAmount;
pub use certificates::key_rotation::AuthorityStatus;
pub use certificates::key_wrap::KeyWrap;
pub use config::{
    CERTIFICATE_VALID_MIN, ClusterConfig, MEMORY_BUDGET_BYTES, PeerConfig, REPLICAS_DEFAULT, SHARDS_DEFAULT,
};
pub use error::OpenError;
pub use maintenance::reconcile::PeersTime;
pub use membership::join::{JoinError, Joined, is_token, join};
pub use membership::operations::OperateError;
pub use membership::recovery::{Recovery, recover, recovery};
pub use membership::restore::{RestoredGroup, RestoredIdentity, RestoredNode};
pub use membership::upgrade::UpgradeReport;
pub use monitoring::catalog_contact::CATALOG_SILENCE_MAX;
pub use monitoring::readings::{GroupReading, LogSyncs};
pub use monitoring::status::{ClusterStatus, GroupReport, NodeFacts, NodeReport, ReplicaReport, Role};
pub use routing::views::ViewError;
pub use routing::{
    Attempt, Attempts, LeaderCall, LeaderMessage, LeaderRequest, Prefer, ROUTE_WAIT_MAX, RetryUntil, Round, Route,
    Unserved, decode_frames, encode_frames,
};
pub use stale_copies::on_disk::{check_node_files, closed_groups, log_is_of_other_time};

use crate::maintenance::reconcile::{Clocks, Health, Reconcilers, Spared};
use crate::monitoring::catalog_contact::CatalogHeard;
use crate::replica_lifecycle::RestingReplicas;
use crate::routing::LeaderHints;
use crate::startup::ConsensusRuntime;

/// State shared by all parts of this node.
#[derive(Debug)]
pub(crate) struct Shared {
    pub id: ClusterId,
    pub node: NodeId,
    pub shards: u16,
    pub config: ClusterConfig,
    pub replicas: Replicas,
    pub catalog: Arc<Catalog>,
    pub net: Network,
    pub hints: LeaderHints,
    pub log: Log,
    pub blobs: Arc<Blobs>,
    pub writes: Arc<BlobWrites>,
    pub parts: NodeParts,
    pub node_files: NodeFiles,
    /// Content of `REPLICAS`.
    pub kept: Mutex<Vec<KeptReplica>>,
    /// Groups whose replica is being removed from this node.
    pub ending: Mutex<BTreeSet<GroupId>>,
    /// Damaged replicas that groups led here recently agreed to do without.
    pub spared: Spared,
    /// Clocks of the other nodes.
    pub clocks: Clocks,
    /// Replicas that do not run.
    pub resting: RestingReplicas,
    pub catalog_heard: CatalogHeard,
    /// Accepted processes of other nodes, and replicas here that must not run.
    pub start_histories: Arc<StartHistories>,
    /// Health of the other nodes that may lead groups.
    pub health: Health,
    pub closing: AtomicBool,
    /// Time at which the process opened the node.
    pub started: SystemTime,
}

/// Running node. Dropping it without [`Cluster::shutdown`] is as safe as a crash.
#[derive(Debug)]
pub struct Cluster {
    shared: Arc<Shared>,
    upkeep: Upkeep,
    reconcilers: Reconcilers,
    seals: SealThreads,
    runtime: ConsensusRuntime,
    /// Lock on the directory, shared with the upkeep and seal threads. It is released only after they stop using the
    /// directory.
    _lock: Arc<Lock>,
}

impl Cluster {
    /// Opens the node, or founds it on an empty directory.
    pub async fn open(config: ClusterConfig) -> Result<Cluster, OpenError> {
        startup::open(config).await
    }

    pub fn id(&self) -> ClusterId {
        self.shared.id
    }

    pub fn node(&self) -> NodeId {
        self.shared.node
    }

    /// Returns the locked directory of this node, in which upper layers may keep files of their own.
    pub fn data_dir(&self) -> &Path {
        &self.shared.config.data_dir
    }

    pub fn disk(&self) -> &SharedDisk {
        &self.shared.config.disk
    }

    /// Returns whether the node is part of the cluster and has a known address.
    pub fn has_node(&self, node: NodeId) -> bool {
        node_records::addresses(&self.shared.catalog.read()).contains_key(&node)
    }

    /// Returns the peer ports of this node and of all nodes that it knows.
    pub fn peer_ports(&self) -> BTreeSet<u16> {
        let announced = node_records::addresses(&self.shared.catalog.read()).into_values();
        let announced = announced.filter_map(|address| address.rsplit_once(':')?.1.parse().ok());
        let listener = self.net().transport().map(|transport| transport.local_addr().port());
        announced.chain(listener).collect()
    }

    pub(crate) fn net(&self) -> &Network {
        &self.shared.net
    }

    /// Returns the shard that stores the rows of an object.
    pub fn locate(&self, object: &ObjectKey) -> ShardId {
        shard_of(object, self.shared.shards)
    }

    pub fn shards(&self) -> u16 {
        self.shared.shards
    }

    /// Returns the shard's replica on this node, if there is one.
    pub fn shard(&self, shard: ShardId) -> Option<Arc<Shard>> {
        self.shared.replicas.shard(shard)
    }

    /// Reports damage that a reader found in the shard's replica on this node.
    ///
    /// The replica is examined at once, and rebuilt if the other replicas can do without it.
    pub fn suspect(&self, shard: ShardId) {
        self.shared.net.suspects().add(GroupId::of_shard(shard));
    }

    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.shared.catalog
    }

    pub fn blobs(&self) -> &Arc<Blobs> {
        &self.shared.blobs
    }

    /// Returns the group's replica on this node, if there is one.
    pub fn group(&self, group: GroupId) -> Option<Group> {
        self.shared.replicas.group(group)
    }

    /// Returns whether the group's replica on this node can serve reads. A learner may be far behind, so it cannot.
    pub fn has_data(&self, group: GroupId) -> bool {
        self.group(group).is_some_and(|group| group.votes())
    }

    /// Submits a command for the next entry of a shard that is led here. Entries keep the order of these calls.
    pub fn submit(&self, shard: ShardId, command: Bytes, until: tokio::time::Instant) -> Result<Pending, NotWritten> {
        let led_elsewhere = || NotWritten::NotLeader;
        self.group(GroupId::of_shard(shard)).ok_or_else(led_elsewhere)?.submit(command, until)
    }

    /// Waits until everything acknowledged before the call can be read from the replica on this node.
    ///
    /// Waits up to [`ROUTE_WAIT_MAX`] for a leader.
    pub async fn fence(&self, group: GroupId) -> Result<u64, FenceError> {
        self.shared.fence_until(group, tokio::time::Instant::now() + ROUTE_WAIT_MAX).await
    }

    /// Returns whether this node is shutting down, so that waits should be abandoned.
    pub fn is_closing(&self) -> bool {
        self.shared.is_closing()
    }

    /// Makes the applied state of the group durable without the log, and then purges the log up to that position.
    pub async fn seal(&self, group: GroupId) -> Result<Applied, SealError> {
        let known = self
            .group(group)
            .ok_or_else(|| SealError::Stopped(format!("this node has no replica of group {group}")))?;
        known.seal().await
    }

    /// Returns whether this node is the only member of the catalog, as far as it can tell.
    pub fn is_alone(&self) -> bool {
        self.shared.replicas.group(GroupId::CATALOG).is_some_and(|catalog| catalog.is_alone() && catalog.leads())
    }

    /// Returns whether this node recently had contact with the catalog's majority.
    pub fn hears_catalog(&self) -> bool {
        self.shared.hears_catalog()
    }

    /// Waits for contact with the catalog, for a node that has just started.
    pub async fn hears_catalog_soon(&self) -> bool {
        if !self.hears_catalog() {
            self.shared.catalog_heard.first().await;
        }
        self.hears_catalog()
    }

    /// Returns the reason for the missing contact with the catalog, as far as this node can tell.
    pub fn catalog_silence(&self) -> String {
        let status = self.group(GroupId::CATALOG).map(|catalog| catalog.status()).unwrap_or_default();
        let leader = status.leader.filter(|_| !status.leads).or(status.unheard_leader);
        let home = status.members.iter().find(|member| Some(member.replica) == leader).map(|member| member.node);
        match home.filter(|node| *node != self.node()) {
            Some(node) => format!(
                "the catalog's leader, node {node}, cannot be reached, neither directly nor through another node: check \
                 the network between this node and the others"
            ),
            None => "no majority of the catalog responds".to_owned(),
        }
    }

    /// Returns whether this node can serve requests: it has contact with the catalog, and every replica has a leader.
    pub fn is_ready(&self) -> bool {
        self.not_ready().is_empty()
    }

    /// Returns the reasons why this node is not ready.
    pub fn not_ready(&self) -> Vec<String> {
        let mut why = Vec::new();
        if !self.hears_catalog() {
            why.push(self.catalog_silence());
        }
        let groups = self.shared.replicas.groups();
        let lost = groups.iter().filter(|group| !group.is_joining() && !group.status().is_led()).count();
        if lost > 0 {
            why.push(format!("{lost} of {} groups have no leader", groups.len()));
        }
        why.extend(self.shared.start_histories.against().into_iter().map(|(node, found)| found.why_not(node)));
        if self.shared.replicas.group(GroupId::CATALOG).is_none() {
            why.push("this node's copy of the catalog is closed and waits to be rebuilt".to_owned());
        }
        why
    }

    /// Returns the expiry of the certificate used towards other nodes, or `None` without a certificate.
    pub fn certificate_runs_out(&self) -> Option<SystemTime> {
        self.shared.certificate_runs_out()
    }

    pub fn log_bytes(&self) -> u64 {
        self.shared.log.bytes()
    }

    pub fn log_budget_bytes(&self) -> u64 {
        self.shared.config.log.budget_bytes
    }

    pub fn counts(&self) -> Counts {
        self.counters().read()
    }

    fn counters(&self) -> &Arc<Counters> {
        &self.shared.parts.counters
    }

    pub fn upkeep_counts(&self) -> UpkeepCounts {
        self.upkeep.counts()
    }

    /// Completes accepted work, stops consensus and upkeep, and releases the directory with the last handle.
    ///
    /// The node first hands over its leaderships, so that no election is needed.
    pub async fn shutdown(&self) -> Result<(), SealError> {
        let stopped = |why: String| SealError::Stopped(why);
        self.shared.closing.store(true, Ordering::Release);
        self.reconcilers.stop().await;
        self.hand_over_all().await;
        self.upkeep.stop();
        let groups = self.shared.replicas.groups();
        for group in &groups {
            group.shutdown().await;
        }
        if let Some(transport) = self.net().transport() {
            transport.shutdown().await;
        }
        self.net().guard_with(None);
        let (upkeep, seals) = (self.upkeep.clone(), self.seals.clone());
        let runtime = self.runtime.take();
        let log = self.shared.log.clone();
        let ended = tokio::task::spawn_blocking(move || {
            upkeep.join();
            seals.stop();
            drop(runtime);
            groups.iter().map(Group::apply_thread).for_each(|thread: ApplyThread| thread.join());
            log.shutdown()
        });
        let ended = ended.await.map_err(|error| stopped(error.to_string()))?;
        ended.map_err(|error| stopped(error.to_string()))
    }
}

impl Shared {
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Records that the catalog here includes everything acknowledged before `asked`.
    pub fn heard_catalog(&self, asked: Instant) {
        self.catalog_heard.as_of(asked);
    }

    pub fn hears_catalog(&self) -> bool {
        let alone =
            || self.replicas.group(GroupId::CATALOG).is_some_and(|catalog| catalog.is_alone() && catalog.leads());
        self.catalog_heard.is_fresh() || alone()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        self.upkeep.stop();
        if let Some(transport) = self.net().transport() {
            transport.forget_handlers(); // breaks the reference cycle: handlers hold this node
        }
    }
}
