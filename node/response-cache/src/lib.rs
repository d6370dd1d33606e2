//! Response cache of the AI gateway: answers to identical requests, encrypted on the disks of the nodes (1.8, G-20, G-21).
//!
//! ```text
//! headers, endpoint, body ── CachePlan ──┐                       ┌─ Hit:  the answer is replayed
//! body, caller, servers ──── CacheKey ───┴─ ResponseCache::begin ┤
//!                                                                └─ Lead: call upstream, then CacheLead::store
//! ```
//! | module | subject |
//! |---|---|
//! | [`decision`] | what a request may read and write; pure |
//! | [`key`] | the key of an answer, from a canonical form of the body, and the node that owns it; pure |
//! | `entry`, `index`, `wire` | bytes of entries and messages, and which entries go first; pure |
//! | `cipher`, `store` | encryption, and files below the data directory |
//! | `flights` | identical calls under way share one |
//! | `cluster_peers` | messages between nodes |
//! | `cache` | all of it together |
//!
//! Each key has one owner among the live nodes, which keeps its entry. A look-up that the owner does not answer soon is a
//! miss. Errors are never the caller's: an answer that cannot be kept is only not kept.
//!
//! The gateway gives only complete answers without errors or refusals, and checks a hit against the rights of its caller.

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

/// Directory of the entries, below the data directory of a node.
pub const CACHE_DIRECTORY: &str = "gateway-cache";
