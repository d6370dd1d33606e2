//! What a node is told when it starts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster_raft::OnFatal;
use assay_storage_disk::{RealDisk, SharedDisk};
use assay_storage_log::LogConfig;
use assay_storage_model::ClusterId;

/// Shards of a cluster unless its founder says otherwise; fixed from then on.
pub const SHARDS_DEFAULT: u16 = 16;
/// Memory tables of all groups together; at twice this writes wait.
pub const MEMORY_BUDGET_BYTES: u64 = 128 << 20;
/// A memory table is sealed when its oldest row is this old, however small it is.
const SEAL_AGE: Duration = Duration::from_secs(600);
/// The keyed store of one group.
const KV_CACHE_BYTES: u64 = 2 << 20;

#[derive(Clone, Debug)]
pub struct ClusterConfig {
    pub data_dir: PathBuf,
    /// For a new directory; one that was founded keeps its own number.
    pub shards: u16,
    /// The cluster this directory has to belong to, where that is known.
    pub cluster: Option<ClusterId>,
    pub memory_budget_bytes: u64,
    pub seal_age: Duration,
    pub log: LogConfig,
    pub kv_cache_bytes: u64,
    pub disk: SharedDisk,
    /// What happens when this node must not go on.
    pub on_fatal: OnFatal,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        ClusterConfig {
            data_dir: PathBuf::from("assay-data"),
            shards: SHARDS_DEFAULT,
            cluster: None,
            memory_budget_bytes: MEMORY_BUDGET_BYTES,
            seal_age: SEAL_AGE,
            log: LogConfig::default(),
            kv_cache_bytes: KV_CACHE_BYTES,
            disk: Arc::new(RealDisk),
            on_fatal: OnFatal::default(),
        }
    }
}
