//! Store under test: a node of one, with budgets so small that seals and compactions never rest. The only file here
//! that names the cluster's API.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use assay_cluster::{Cluster, ClusterConfig};
use assay_storage_log::LogConfig;
use assay_storage_model::command::Outcome;
use assay_storage_model::{GroupId, ObjectKey, ObjectKind, OrgId, ShardId, WriteFailure, Xact};
use assay_storage_shard::{Shard, View};
use bytes::Bytes;

/// Objects the workload writes to; few, so that clients collide.
pub const OBJECTS: u8 = 6;
/// The fewest a cluster may have; objects share them.
const SHARDS: u16 = 4;
const MEMORY_BUDGET_BYTES: u64 = 1 << 20;
const LOG_BUDGET_BYTES: u64 = 4 << 20;
const LOG_FILE_BYTES: u64 = 1 << 20;
const KV_CACHE_BYTES: u64 = 1 << 20;

/// Result of one write.
#[derive(Debug)]
pub enum StoreReply {
    Written {
        xact: Xact,
        again: bool,
    },
    /// The key was used with other content.
    Reused {
        xact: Xact,
    },
    Refused {
        why: String,
    },
    Unknown {
        why: String,
    },
}

#[derive(Debug)]
pub struct Store {
    cluster: Cluster,
    keys: Vec<ObjectKey>,
}

impl Store {
    pub async fn open(dir: &Path) -> anyhow::Result<Store> {
        let config = ClusterConfig {
            data_dir: dir.to_path_buf(),
            shards: SHARDS,
            memory_budget_bytes: MEMORY_BUDGET_BYTES,
            log: LogConfig { budget_bytes: LOG_BUDGET_BYTES, file_bytes: LOG_FILE_BYTES, ..LogConfig::default() },
            kv_cache_bytes: KV_CACHE_BYTES,
            ..ClusterConfig::default()
        };
        let keys = (0..OBJECTS).map(object_key).collect::<anyhow::Result<_>>()?;
        Ok(Store { cluster: Cluster::open(config).await?, keys })
    }

    pub fn key(&self, object: u8) -> ObjectKey {
        self.keys[usize::from(object)]
    }

    fn shard_id(&self, object: u8) -> ShardId {
        self.cluster.locate(&self.key(object))
    }

    fn shard(&self, object: u8) -> anyhow::Result<Arc<Shard>> {
        self.cluster.shard(self.shard_id(object)).context("a shard that is not here")
    }

    pub fn view(&self, object: u8) -> anyhow::Result<View> {
        Ok(self.shard(object)?.view())
    }

    /// Returns when everything acknowledged before can be read.
    pub async fn fence(&self, object: u8) -> anyhow::Result<()> {
        self.cluster.fence(GroupId::of_shard(self.shard_id(object))).await?;
        Ok(())
    }

    pub async fn write(&self, object: u8, command: Bytes) -> StoreReply {
        match self.cluster.write(self.shard_id(object), command).await {
            Ok(Outcome::Written { xact }) => StoreReply::Written { xact, again: false },
            Ok(Outcome::Duplicate { xact }) => StoreReply::Written { xact, again: true },
            Ok(Outcome::KeyReused { xact }) => StoreReply::Reused { xact },
            Ok(other) => StoreReply::Unknown { why: format!("an answer that is none: {other:?}") },
            Err(WriteFailure::NotWritten(why)) => StoreReply::Refused { why: why.to_string() },
            Err(WriteFailure::Unknown { why }) => StoreReply::Unknown { why },
        }
    }

    pub async fn seal(&self, object: u8) -> anyhow::Result<()> {
        self.cluster.seal(GroupId::of_shard(self.shard_id(object))).await?;
        Ok(())
    }

    pub async fn compact(&self, object: u8) -> anyhow::Result<()> {
        let shard = self.shard(object)?;
        tokio::task::spawn_blocking(move || shard.compact(&|| {})).await??;
        Ok(())
    }

    /// A clean stop.
    pub async fn close(self) -> anyhow::Result<()> {
        self.cluster.shutdown().await?;
        Ok(())
    }
}

pub fn object_key(number: u8) -> anyhow::Result<ObjectKey> {
    // Ids are parsed, so that no crate for making them is needed here.
    let id = |number: u8| format!("00000000-0000-4000-8000-0000000000{number:02x}").parse::<OrgId>();
    let kind = ObjectKind::ALL[usize::from(number) % ObjectKind::ALL.len()];
    Ok(ObjectKey::new(id(1)?, kind, id(number + 16)?.0))
}
