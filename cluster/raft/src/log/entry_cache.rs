//! Cache of a group's newest entries, so that applying them needs no read from the disk.
//!
//! E1: the cached entries are the tail of the log without a gap.
//! E2: all caches of a node together stay below their budget, plus the newest entry of each group.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use openraft::EntryPayload;

use crate::types::{EntryBytes, EntryOf};

/// Budget in bytes of the cached entries of all groups of a node. In a group of one member, apply needs each entry
/// once, right after its append.
pub const ENTRY_CACHE_BYTES_MAX: usize = 32 << 20;
/// Counted size of an entry in addition to its bytes.
const ENTRY_OVERHEAD_BYTES: usize = 96;

/// Upper bound of the bytes that the caches of a node hold together.
#[derive(Clone, Debug)]
pub struct CacheBudget {
    used: Arc<AtomicUsize>,
    limit: usize,
}

impl CacheBudget {
    pub fn new(limit_bytes: usize) -> CacheBudget {
        CacheBudget { used: Arc::default(), limit: limit_bytes }
    }
}

impl Default for CacheBudget {
    fn default() -> Self {
        CacheBudget::new(ENTRY_CACHE_BYTES_MAX)
    }
}

#[derive(Debug)]
pub(crate) struct EntryCache {
    entries: VecDeque<EntryOf>,
    budget: CacheBudget,
}

impl EntryCache {
    pub fn new(budget: CacheBudget) -> EntryCache {
        EntryCache { entries: VecDeque::new(), budget }
    }

    /// Adds an entry that was appended to the log.
    pub fn push(&mut self, entry: EntryOf) {
        if self.entries.back().is_some_and(|last| last.log_id.index + 1 != entry.log_id.index) {
            self.clear(); // E1
        }
        self.budget.used.fetch_add(size_of_entry(&entry), Ordering::Relaxed);
        self.entries.push_back(entry);
        while self.entries.len() > 1 && self.budget.used.load(Ordering::Relaxed) > self.budget.limit {
            self.drop_first(); // E2
        }
    }

    /// Returns entries `start..end` if the cache has all of them, limited to `bytes_max` but at least one.
    pub fn get(&self, start: u64, end: u64, bytes_max: usize) -> Option<Vec<EntryOf>> {
        let first = self.entries.front()?.log_id.index;
        let skip = usize::try_from(start.checked_sub(first)?).ok()?;
        let wanted = usize::try_from(end.checked_sub(start)?).ok()?;
        if self.entries.len() < skip.checked_add(wanted)? {
            return None;
        }
        let mut bytes = 0;
        let taken = self.entries.range(skip..skip + wanted).take_while(|entry| {
            let is_first = bytes == 0;
            bytes += size_of_entry(entry);
            is_first || bytes <= bytes_max
        });
        Some(taken.cloned().collect())
    }

    /// Removes the entries from `index` on, which are no longer in the log.
    pub fn truncate(&mut self, index: u64) {
        while self.entries.back().is_some_and(|entry| entry.log_id.index >= index) {
            let entry = self.entries.pop_back().expect("there is a last one");
            self.budget.used.fetch_sub(size_of_entry(&entry), Ordering::Relaxed);
        }
    }

    /// Removes the entries up to `index`, which are no longer in the log.
    pub fn purge(&mut self, index: u64) {
        while self.entries.front().is_some_and(|entry| entry.log_id.index <= index) {
            self.drop_first();
        }
    }

    fn clear(&mut self) {
        while !self.entries.is_empty() {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        if let Some(entry) = self.entries.pop_front() {
            self.budget.used.fetch_sub(size_of_entry(&entry), Ordering::Relaxed);
        }
    }
}

impl Drop for EntryCache {
    fn drop(&mut self) {
        self.clear();
    }
}

fn size_of_entry(entry: &EntryOf) -> usize {
    let body = match &entry.payload {
        EntryPayload::Normal(EntryBytes(bytes)) => bytes.len(),
        EntryPayload::Blank | EntryPayload::Membership(_) => 0,
    };
    body + ENTRY_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use openraft::{CommittedLeaderId, LogId};

    fn entry(index: u64, bytes: usize) -> EntryOf {
        let log_id = LogId::new(CommittedLeaderId::new(1, 1), index);
        EntryOf { log_id, payload: EntryPayload::Normal(EntryBytes(Bytes::from(vec![0; bytes]))) }
    }

    fn indexes(found: Option<Vec<EntryOf>>) -> Option<Vec<u64>> {
        Some(found?.iter().map(|entry| entry.log_id.index).collect())
    }

    fn filled(budget: &CacheBudget, bytes: usize, range: std::ops::Range<u64>) -> EntryCache {
        let mut cache = EntryCache::new(budget.clone());
        range.for_each(|index| cache.push(entry(index, bytes)));
        cache
    }

    #[test]
    fn a_range_is_found_whole_or_not_at_all() {
        let mut cache = filled(&CacheBudget::default(), 10, 5..9);
        assert_eq!(indexes(cache.get(5, 9, usize::MAX)), Some(vec![5, 6, 7, 8]));
        assert_eq!(indexes(cache.get(4, 6, usize::MAX)), None);
        assert_eq!(indexes(cache.get(7, 10, usize::MAX)), None);
        cache.purge(5);
        cache.truncate(8);
        assert_eq!(indexes(cache.get(5, 7, usize::MAX)), None);
        assert_eq!(indexes(cache.get(6, 8, usize::MAX)), Some(vec![6, 7]));
    }

    #[test]
    fn a_limit_in_bytes_still_gives_one_entry() {
        let cache = filled(&CacheBudget::default(), 1000, 0..4);
        assert_eq!(indexes(cache.get(1, 4, 10)), Some(vec![1]));
        assert_eq!(indexes(cache.get(1, 4, 2_300)), Some(vec![1, 2]));
    }

    #[test]
    fn all_groups_together_stay_within_the_budget() {
        let budget = CacheBudget::new(10_000);
        let first = filled(&budget, 1_000, 0..20);
        assert!(budget.used.load(Ordering::Relaxed) <= 10_000);
        let second = filled(&budget, 1_000, 0..20);
        assert_eq!(second.entries.len(), 1, "the newest stays even when others took all");
        drop((first, second));
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn after_a_gap_only_the_new_entries_are_known() {
        let mut cache = filled(&CacheBudget::default(), 10, 0..4);
        cache.push(entry(9, 10));
        assert_eq!(indexes(cache.get(3, 4, usize::MAX)), None);
        assert_eq!(indexes(cache.get(9, 10, usize::MAX)), Some(vec![9]));
    }
}
