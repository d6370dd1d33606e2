//! Counters of the cache of one node.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the start of the node, and what it keeps now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Requests answered from the cache, including the shared ones.
    pub hits: u64,
    /// Hits that another node kept.
    pub remote_hits: u64,
    /// Hits that waited for the answer to an identical request.
    pub shared: u64,
    /// Requests that looked for an entry and found none.
    pub misses: u64,
    /// Entries written on this node, also for others.
    pub stored: u64,
    /// Entries removed to keep the limits.
    pub evicted: u64,
    /// Entries removed after their time.
    pub expired: u64,
    /// Entries removed because they could not be read or decrypted.
    pub damaged: u64,
    /// Answers that were too large, or for which the disk had too little space.
    pub refused: u64,
    /// Failures of the disk, of keys, and of other nodes.
    pub errors: u64,
    /// Bytes that the entries occupy now.
    pub bytes: u64,
    /// Entries kept now.
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
