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
/// Memory budget of all memory tables together. Writes wait at twice this size.
pub const MEMORY_BUDGET_BYTES: u64 = 128 << 20;
/// Maximum age of the oldest row in a memory table before the table is sealed, however small it is.
const SEAL_AGE: Duration = Duration::from_secs(600);
/// Delay that lets one erasure cover several deletes, because it rewrites segments and copies the log.
const ERASE_AFTER: Duration = Duration::from_secs(600);
/// Budget of the keyed store of one group.
const KV_CACHE_BYTES: u64 = 2 << 20;

/// Default number of replicas of a shard, if there are enough nodes.
pub const REPLICAS_DEFAULT: u16 = 3;
/// Time after which a silent node counts as lost and its replicas are rebuilt on other nodes.
pub const DEAD_AFTER: Duration = Duration::from_secs(600);
/// Rate limit of the network and disk traffic of moved replicas.
pub const MOVE_BYTES_A_SECOND: u64 = 64 << 20;

/// Interval of scrubs, which bound the time until damage in unread data is found.
pub const SCRUB_EVERY: Duration = Duration::from_secs(24 * 3600);

/// Validity of a node's certificate. It is renewed when a third is left, so a clock may be wrong by months.
pub const CERTIFICATE_VALID: Duration = Duration::from_secs(365 * 24 * 3600);
/// Minimum validity of a certificate. With a shorter one, the check for renewal could come too late.
pub const CERTIFICATE_VALID_MIN: Duration = Duration::from_secs(10);

/// Settings by which other nodes reach this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerConfig {
    pub listen: SocketAddr,
    /// Address announced to other nodes: a host name or an IP address, and a port.
    pub address: String,
}

impl PeerConfig {
    /// Creates the settings. A numeric address is also listened on; otherwise the node listens on all addresses.
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
    /// Number of shards for a new directory. An existing one keeps its own number.
    pub shards: u16,
    /// Number of replicas of each shard, for a new cluster.
    pub replicas: u16,
    /// Peer settings, or `None` if no other node can reach this one.
    pub peer: Option<PeerConfig>,
    pub dead_after: Duration,
    /// Heartbeat and election times, which must be the same on all nodes of a cluster.
    pub timing: Timing,
    /// Rate limit of moved replicas. 0 means no limit.
    pub move_bytes_a_second: u64,
    /// Interval in which the segments of all replicas here are read and the replicas are compared.
    pub scrub_every: Duration,
    /// Validity of certificates that this node issues, for itself and for nodes that join through it.
    pub certificate_valid: Duration,
    /// Cluster that the directory must belong to, if known.
    pub cluster: Option<ClusterId>,
    /// Reason why the directory must already contain data, as a clause such as `store.cluster_id is set`.
    ///
    /// With `None`, a directory without data founds a cluster.
    pub expects_data: Option<String>,
    pub memory_budget_bytes: u64,
    pub seal_age: Duration,
    /// Delay after which the remaining data of a deleted object is removed from files.
    pub erase_after: Duration,
    pub log: LogConfig,
    pub kv_cache_bytes: u64,
    pub disk: SharedDisk,
    /// Wrapping of the authority's key. A founder without it creates no authority and thus admits no other node.
    pub keys: Option<Arc<dyn KeyWrap>>,
    /// Fault injection for calls to other nodes, in tests.
    pub fault_injector: Option<Arc<dyn FaultInjector>>,
    /// Reaction to an error after which this node must not continue.
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
