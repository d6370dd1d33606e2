//! Response cache of the AI gateway, encrypted on the disks of the nodes (1.8, G-20, G-21).
//!
//! ```text
//! headers, endpoint, body ── CachePlan ──┐                       ┌─ Hit:  the answer is replayed
//! body, caller, servers ──── CacheKey ───┴─ ResponseCache::begin ┤
//!                                                                └─ Lead: call upstream, then CacheLead::store
//! ```
//! | module | subject |
//! |---|---|
//! | [`decision`] | which entries a request may read and write, without input or output |
//! | [`key`] | key of a response, from the canonical form of the body, and its owner node, without input or output |
//! | `entry`, `index`, `wire` | encoding of entries and messages, and order of eviction, without input or output |
//! | `cipher`, `store` | encryption, and files in the data directory |
//! | `flights` | identical concurrent calls that share one response |
//! | `cluster_peers` | messages between nodes |
//! | `cache` | combination of all modules |
//!
//! Each key has one owner among the live nodes, which stores its entry. A look-up without a fast response counts as a
//! miss. The caller never sees an error, because a response that cannot be stored is just not stored.
//!
//! The gateway stores only complete responses without errors or refusals. It checks every hit against the rights of its
//! caller.

mod cache;
mod canonical_json;
mod cipher;
mod cluster_peers;
mod counters;
pub mod decision;
mod entry;
mod flights;
mod index;
pub mod key;
mod mix;
mod store;
#[cfg(test)]
mod tests;
mod wire;

pub use cache::{
    CacheClock, CacheLead, CacheSettings, CacheStart, FLIGHT_WAIT_MAX, LOOKUP_WITHIN, ResponseCache, STORE_WITHIN,
};
pub use canonical_json::{CanonicalJsonError, canonical_json};
pub use cipher::{DataKeys, EntryCipher, EntryKeys};
pub use cluster_peers::{CachePeers, CacheView, ClusterCachePeers, serve_cache};
pub use counters::CacheCounts;
pub use decision::{CacheEndpoint, CacheHeaderError, CacheMode, CachePlan, CacheRequest, MaxAge};
pub use entry::{CacheableResponse, CachedResponse, ENTRY_BYTES_MAX, SEAL_BYTES_MAX};
pub use index::CacheLimits;
pub use key::{CacheKey, CacheKeyParts, CacheScope, TRANSLATION_VERSION};

/// Name of the directory of entries in a node's data directory.
pub const CACHE_DIRECTORY: &str = "gateway-cache";
