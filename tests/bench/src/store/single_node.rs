//! Store of a single node as driven by the benchmarks: a cluster of one, with blocking calls.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use assay_bench::generate::Merged;
use assay_cluster::{Cluster, ClusterConfig};
use assay_storage_model::command::Outcome;
use assay_storage_model::{GroupId, NotWritten, ShardId, WriteFailure};
use assay_storage_shard::Shard;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use crate::client_threads::{SHARDS, join, spawn};

/// Pause before a retry after a refusal for lack of space; it is part of the measured time.
const BUSY_WAIT: Duration = Duration::from_millis(2);
/// Duration of refusals of one write after which the benchmark fails.
const BUSY_MAX: Duration = Duration::from_secs(120);

/// Unfinished work of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Backlog {
    /// Since the measured work began.
    pub seconds: f64,
    pub memory_bytes: u64,
    pub log_bytes: u64,
    pub segments: u64,
    pub segments_per_shard_max: u64,
    pub segment_bytes: u64,
    /// Seals requested and not finished; seals and steps of compaction done since the start.
    pub sealing: u64,
    pub seals: u64,
    pub compactions: u64,
}

/// Compaction has ended when none was done for this long.
const COMPACTED_QUIET: Duration = Duration::from_secs(3);
const COMPACTED_TRIES_MAX: usize = 100;

#[derive(Debug)]
pub struct StoreNode {
    runtime: Runtime,
    cluster: Cluster,
}

impl StoreNode {
    pub fn open(dir: &Path) -> anyhow::Result<StoreNode> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("bench-runtime")
            .enable_all()
            .build()?;
        let config = ClusterConfig { data_dir: dir.to_owned(), shards: SHARDS, ..ClusterConfig::default() };
        let cluster = runtime.block_on(Cluster::open(config)).context("opening the store")?;
        Ok(StoreNode { runtime, cluster })
    }

    /// Returns when these commands, one log entry, are durable and applied.
    pub fn propose(&self, shard: u16, commands: Vec<Bytes>, merged: &[Merged]) -> anyhow::Result<()> {
        self.fetch_bases(shard, merged)?;
        let group = GroupId::of_shard(ShardId(shard));
        let began = Instant::now();
        loop {
            match self.runtime.block_on(self.cluster.propose(group, commands.clone())) {
                Ok(outcomes) => return all_written(&outcomes, commands.len()),
                Err(WriteFailure::NotWritten(NotWritten::Busy(_))) if began.elapsed() < BUSY_MAX => {
                    std::thread::sleep(BUSY_WAIT);
                }
                Err(error) => return Err(error).with_context(|| format!("writing to shard {shard}")),
            }
        }
    }

    /// Reads the sealed rows that merges fold into, as an object's actor does before it proposes.
    fn fetch_bases(&self, shard: u16, merged: &[Merged]) -> anyhow::Result<()> {
        let shard = self.shard(shard)?;
        for Merged { object, ids } in merged {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            shard.fetch_bases(object, &ids)?;
        }
        Ok(())
    }

    pub fn shard(&self, shard: u16) -> anyhow::Result<Arc<Shard>> {
        self.cluster.shard(ShardId(shard)).with_context(|| format!("shard {shard}"))
    }

    fn shards(&self) -> anyhow::Result<Vec<Arc<Shard>>> {
        (0..SHARDS).map(|shard| self.shard(shard)).collect()
    }

    pub fn log_bytes(&self) -> u64 {
        self.cluster.log_bytes()
    }

    pub fn log_budget_bytes(&self) -> u64 {
        self.cluster.log_budget_bytes()
    }

    pub fn backlog(&self, began: Instant) -> anyhow::Result<Backlog> {
        let mut backlog =
            Backlog { seconds: began.elapsed().as_secs_f64(), log_bytes: self.log_bytes(), ..Backlog::default() };
        let upkeep = self.cluster.upkeep_counts();
        (backlog.sealing, backlog.seals, backlog.compactions) = (upkeep.sealing, upkeep.seals, upkeep.compactions);
        for shard in self.shards()? {
            let size = shard.size();
            backlog.memory_bytes += size.memory_bytes as u64;
            backlog.segments += size.segments as u64;
            backlog.segments_per_shard_max = backlog.segments_per_shard_max.max(size.segments as u64);
            backlog.segment_bytes += size.segment_bytes;
        }
        Ok(backlog)
    }

    /// Every group answers a linearizable read.
    pub fn fence_all(&self) -> anyhow::Result<()> {
        let groups = (0..SHARDS).map(|shard| GroupId::of_shard(ShardId(shard))).chain([GroupId::CATALOG]);
        for group in groups {
            self.runtime.block_on(self.cluster.fence(group)).with_context(|| format!("fencing group {group}"))?;
        }
        Ok(())
    }

    /// Waits until nothing was compacted for a while.
    pub fn compacted(&self) -> anyhow::Result<()> {
        let mut before = self.cluster.upkeep_counts().compactions;
        for _ in 0..COMPACTED_TRIES_MAX {
            std::thread::sleep(COMPACTED_QUIET);
            let now = self.cluster.upkeep_counts().compactions;
            if now == before {
                return Ok(());
            }
            before = now;
        }
        bail!("compaction does not come to an end")
    }

    /// Seals every shard, and compacts until there is nothing left to compact.
    pub fn settle(&self) -> anyhow::Result<()> {
        for shard in 0..SHARDS {
            let group = GroupId::of_shard(ShardId(shard));
            self.runtime.block_on(self.cluster.seal(group)).with_context(|| format!("sealing shard {shard}"))?;
        }
        let shards = self.shards()?;
        join(spawn("compact-rest", move || {
            for shard in shards {
                while shard.compact(&|| {})? {}
            }
            Ok(())
        })?)
    }

    pub fn shutdown(&self) -> anyhow::Result<()> {
        self.runtime.block_on(self.cluster.shutdown()).context("closing the store")
    }
}

fn all_written(outcomes: &[Outcome], commands: usize) -> anyhow::Result<()> {
    let refused = outcomes.iter().find(|outcome| !matches!(outcome, Outcome::Written { .. }));
    if let Some(refused) = refused {
        bail!("a write was answered {refused:?}");
    }
    if outcomes.len() != commands {
        bail!("{commands} writes got {} answers", outcomes.len());
    }
    Ok(())
}
