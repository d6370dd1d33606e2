//! Configuration of a node.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster_raft::{OnFatal, Timing};
use assay_cluster_transport::FaultInjector;
use assay_storage_disk::{RealDisk, SharedDisk};
use assay_storage_log::LogConfig;
use assay_storage_model::ClusterId;

use crate::certificates::key_wrap::KeyWrap;

/// Default number of shards of a cluster, fixed when it is bootstrapped.
pub const SHARDS_DEFAULT: u16 = 16;
/// Memory tables of all groups together; at twice this writes wait.
pub const MEMORY_BUDGET_BYTES: u64 = 128 << 20;
/// A memory table is sealed when its oldest row is this old, however small it is.
const SEAL_AGE: Duration = Duration::from_secs(600);
/// Segments are written anew and the log is copied for it: not for each delete.
const ERASE_AFTER: Duration = Duration::from_secs(600);
/// The keyed store of one group.
const KV_CACHE_BYTES: u64 = 2 << 20;

/// Default number of replicas of a shard, if there are enough nodes.
pub const REPLICAS_DEFAULT: u16 = 3;
/// Time after which a silent node counts as gone and its replicas are rebuilt elsewhere.
pub const DEAD_AFTER: Duration = Duration::from_secs(600);
/// Rate at which moved replicas may use the network and disks.
pub const MOVE_BYTES_A_SECOND: u64 = 64 << 20;

/// Interval of scrubs, within which damage is found even if it is never read.
pub const SCRUB_EVERY: Duration = Duration::from_secs(24 * 3600);

/// A node's certificate runs out after this, and is made anew when a third of it is left: a clock may be months wrong
/// before a node is not understood.
pub const CERTIFICATE_VALID: Duration = Duration::from_secs(365 * 24 * 3600);
/// Minimum validity of a certificate. With a shorter one, the check for renewal could come too late.
pub const CERTIFICATE_VALID_MIN: Duration = Duration::from_secs(10);

/// Settings by which other nodes reach this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerConfig {
    pub listen: SocketAddr,
    /// Address announced to others: a host name or an address, and a port.
    pub address: String,
}

impl PeerConfig {
    /// Listens on the address itself where that is a number, else on every address of this machine.
    pub fn new(address: &str, listen: Option<SocketAddr>) -> Result<PeerConfig, String> {
        let wrong = || format!("`{address}` is not of the form host:port, as 10.0.0.1:7400 or node-1.example:7400");
        let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
        let port: u16 = port.parse().map_err(|_| wrong())?;
        if host.is_empty() || port == 0 {
            return Err(wrong());
        }
        let everywhere = || SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        let listen = listen.or_else(|| address.parse().ok()).unwrap_or_else(everywhere);
        Ok(PeerConfig { listen, address: address.to_owned() })
    }
}

#[derive(Clone, Debug)]
pub struct ClusterConfig {
    pub data_dir: PathBuf,
    /// Number of shards for a new directory; an existing one keeps its own number.
    pub shards: u16,
    /// Replicas of each shard, for a new cluster.
    pub replicas: u16,
    /// None: no other node can reach this one.
    pub peer: Option<PeerConfig>,
    pub dead_after: Duration,
    /// Heartbeats and elections; the same on all nodes of a cluster.
    pub timing: Timing,
    /// 0 is no limit.
    pub move_bytes_a_second: u64,
    /// The segments of every shard's replica here are read this often, and replicas are compared.
    pub scrub_every: Duration,
    /// Validity of certificates that this node makes, for itself and for nodes that join through it.
    pub certificate_valid: Duration,
    /// The cluster this directory has to belong to, where that is known.
    pub cluster: Option<ClusterId>,
    /// Why the directory has to hold a node's data already, as a clause such as `store.cluster_id is set`. None: a directory
    /// without data founds a cluster.
    pub expects_data: Option<String>,
    pub memory_budget_bytes: u64,
    pub seal_age: Duration,
    /// Delay after which the rest of a deleted object is removed from files.
    pub erase_after: Duration,
    pub log: LogConfig,
    pub kv_cache_bytes: u64,
    pub disk: SharedDisk,
    /// Wraps the key of the cluster's authority. Without it a founder makes no authority, and so lets no other node in.
    pub keys: Option<Arc<dyn KeyWrap>>,
    /// Faults of calls to other nodes, in tests.
    pub fault_injector: Option<Arc<dyn FaultInjector>>,
    /// Reaction when this node must not go on.
    pub on_fatal: OnFatal,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        ClusterConfig {
            data_dir: PathBuf::from("assay-data"),
            shards: SHARDS_DEFAULT,
            replicas: REPLICAS_DEFAULT,
            peer: None,
            dead_after: DEAD_AFTER,
            timing: Timing::default(),
            move_bytes_a_second: MOVE_BYTES_A_SECOND,
            scrub_every: SCRUB_EVERY,
            certificate_valid: CERTIFICATE_VALID,
            cluster: None,
            expects_data: None,
            memory_budget_bytes: MEMORY_BUDGET_BYTES,
            seal_age: SEAL_AGE,
            erase_after: ERASE_AFTER,
            log: LogConfig::default(),
            kv_cache_bytes: KV_CACHE_BYTES,
            disk: Arc::new(RealDisk),
            keys: None,
            fault_injector: None,
            on_fatal: OnFatal::default(),
        }
    }
}
