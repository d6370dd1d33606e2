//! Counters of the cache of one node.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the start of a node, and the size of its cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Number of requests answered from the cache, including shared responses.
    pub hits: u64,
    /// Number of hits on entries of other nodes.
    pub remote_hits: u64,
    /// Number of hits that waited for the response to an identical request.
    pub shared: u64,
    /// Number of requests that looked for an entry without success.
    pub misses: u64,
    /// Number of entries written on this node, including those for other nodes.
    pub stored: u64,
    /// Number of entries removed because of the limits.
    pub evicted: u64,
    /// Number of entries removed after their expiry.
    pub expired: u64,
    /// Number of entries removed because they could not be read or decrypted.
    pub damaged: u64,
    /// Number of responses that were too large or did not fit on the disk.
    pub refused: u64,
    /// Number of failures of the disk, of keys, and of other nodes.
    pub errors: u64,
    /// Size of the entries on the disk.
    pub bytes: u64,
    /// Current number of entries.
    pub entries: u64,
}

#[derive(Debug, Default)]
pub(crate) struct CacheCounters {
    pub hits: AtomicU64,
    pub remote_hits: AtomicU64,
    pub shared: AtomicU64,
    pub misses: AtomicU64,
    pub stored: AtomicU64,
    pub evicted: AtomicU64,
    pub expired: AtomicU64,
    pub damaged: AtomicU64,
    pub refused: AtomicU64,
    pub errors: AtomicU64,
}

impl CacheCounters {
    pub fn add(counter: &AtomicU64) {
        CacheCounters::add_many(counter, 1);
    }

    pub fn add_many(counter: &AtomicU64, count: usize) {
        counter.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub fn read(&self, bytes: u64, entries: usize) -> CacheCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CacheCounts {
            hits: read(&self.hits),
            remote_hits: read(&self.remote_hits),
            shared: read(&self.shared),
            misses: read(&self.misses),
            stored: read(&self.stored),
            evicted: read(&self.evicted),
            expired: read(&self.expired),
            damaged: read(&self.damaged),
            refused: read(&self.refused),
            errors: read(&self.errors),
            bytes,
            entries: entries as u64,
        }
    }
}
