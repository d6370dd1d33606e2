//! Which node keeps what, and agreement on it: today one node, whose groups have one member each, on the same path
//! that a cluster takes. Knows the store; knows nothing of HTTP, of users, of queries.
//!
//! ```text
//! data directory
//!   FORMAT        what this directory is: version, cluster, shards, and whether its founding ended (home)
//!   LOCK          held while a process has it
//!   BALLAST       room for a start on a disk that was full
//!   log/          the logs and votes of all groups; log.watermark beside it
//!   blobs/        large writes, named by their content
//!   catalog/      the control group
//!   shards/000/   one directory a shard
//! ```
//! A start takes the lock, reads `FORMAT`, opens the log, then every group's state, and lets consensus apply again what
//! was committed since the last seals. It is over when every group leads and has applied all of it. A founding that a
//! crash cut short is begun again: until it ended nothing was acknowledged.

mod config;
mod error;
mod home;
mod large;
mod start;
mod upkeep;

use std::sync::Arc;

use assay_cluster_placement::shard_of;
use assay_cluster_raft::{ApplyThread, Counters, Group, SealThreads};
use assay_storage_blobs::Blobs;
use assay_storage_catalog::Catalog;
use assay_storage_log::Log;
use assay_storage_model::command::Outcome;
use assay_storage_model::{Applied, ClusterId, GroupId, ObjectKey, ShardId};
use assay_storage_shard::Shard;
use bytes::Bytes;

pub use assay_cluster_raft::{
    Counts, FenceError, NotWritten, OnFatal, Pending, ProposeError, SealError, install_abort_hook,
};
pub use assay_storage_log::LogConfig;
pub use config::{ClusterConfig, MEMORY_BUDGET_BYTES, SHARDS_DEFAULT};
pub use error::OpenError;
pub use home::{FORMAT_VERSION, Format, HomeError, Lock, read_format};
pub use upkeep::UpkeepCounts;

use crate::start::ConsensusRuntime;
use crate::upkeep::Upkeep;

/// A running node. Dropping it without [`Cluster::shutdown`] is as safe as a crash.
#[derive(Debug)]
pub struct Cluster {
    id: ClusterId,
    groups: Vec<Group>,
    shards: Vec<Arc<Shard>>,
    catalog: Arc<Catalog>,
    log: Log,
    log_budget_bytes: u64,
    blobs: Arc<Blobs>,
    counters: Arc<Counters>,
    upkeep: Upkeep,
    seals: SealThreads,
    apply_threads: Vec<ApplyThread>,
    runtime: ConsensusRuntime,
    /// The threads of the upkeep and of seals hold it too: whoever takes the directory next finds nobody in it.
    _lock: Arc<Lock>,
}

impl Cluster {
    /// Opens or founds the node; returns when it can serve.
    pub async fn open(config: ClusterConfig) -> Result<Cluster, OpenError> {
        start::open(config).await
    }

    pub fn id(&self) -> ClusterId {
        self.id
    }

    /// Where an object's rows are kept.
    pub fn locate(&self, object: &ObjectKey) -> ShardId {
        shard_of(object, u16::try_from(self.shards.len()).expect("at most 256 shards"))
    }

    pub fn shards(&self) -> u16 {
        u16::try_from(self.shards.len()).expect("at most 256 shards")
    }

    pub fn shard(&self, shard: ShardId) -> Option<Arc<Shard>> {
        self.shards.get(usize::from(shard.0)).cloned()
    }

    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    pub fn blobs(&self) -> &Arc<Blobs> {
        &self.blobs
    }

    pub fn group(&self, group: GroupId) -> Option<&Group> {
        self.groups.iter().find(|candidate| candidate.id() == group)
    }

    /// One log entry of these commands; durable and applied when it returns.
    pub async fn propose(&self, group: GroupId, commands: Vec<Bytes>) -> Result<Vec<Outcome>, ProposeError> {
        self.known(group)?.propose(commands).await
    }

    /// One command, in the next entry that its shard's committer makes.
    pub async fn write(&self, shard: ShardId, command: Bytes) -> Result<Outcome, ProposeError> {
        self.known(GroupId::of_shard(shard))?.write(command).await
    }

    /// Takes a command in for the next entry; entries keep the order of these calls.
    pub fn submit(&self, shard: ShardId, command: Bytes) -> Result<Pending, NotWritten> {
        self.known(GroupId::of_shard(shard))?.submit(command)
    }

    fn known(&self, group: GroupId) -> Result<&Group, NotWritten> {
        self.group(group).ok_or_else(|| NotWritten::Failed(format!("there is no group {group} here")))
    }

    /// Returns when everything acknowledged before the call can be read here.
    pub async fn fence(&self, group: GroupId) -> Result<u64, FenceError> {
        let known = self.group(group).ok_or_else(|| FenceError::Stopped(format!("there is no group {group} here")))?;
        known.fence().await
    }

    /// Makes what the group applied durable without the log, which is then purged up to there.
    pub async fn seal(&self, group: GroupId) -> Result<Applied, SealError> {
        let known = self.group(group).ok_or_else(|| SealError::Stopped(format!("there is no group {group} here")))?;
        known.seal().await
    }

    pub fn log_bytes(&self) -> u64 {
        self.log.bytes()
    }

    pub fn log_budget_bytes(&self) -> u64 {
        self.log_budget_bytes
    }

    pub fn counts(&self) -> Counts {
        self.counters.read()
    }

    pub fn upkeep_counts(&self) -> UpkeepCounts {
        self.upkeep.counts()
    }

    /// Answers what was taken in, stops consensus and upkeep, and lets go of the directory with the last handle.
    pub async fn shutdown(&self) -> Result<(), SealError> {
        let stopped = |why: String| SealError::Stopped(why);
        self.upkeep.stop();
        for group in &self.groups {
            group.shutdown().await;
        }
        let (upkeep, seals, threads) = (self.upkeep.clone(), self.seals.clone(), self.apply_threads.clone());
        let runtime = self.runtime.take();
        let log = self.log.clone();
        let ended = tokio::task::spawn_blocking(move || {
            upkeep.join();
            seals.stop();
            drop(runtime);
            threads.iter().for_each(ApplyThread::join);
            log.shutdown()
        });
        let ended = ended.await.map_err(|error| stopped(error.to_string()))?;
        ended.map_err(|error| stopped(error.to_string()))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.upkeep.stop();
    }
}
