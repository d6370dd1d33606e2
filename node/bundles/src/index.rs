//! Entries of the cache in order of their last use, and the choice of those to evict.

use std::collections::HashMap;

use thiserror::Error;

use crate::kind::BundleKey;

/// Reason why the cache has no space for a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CacheFull {
    /// No eviction helps.
    #[error("the code bundle takes {bytes} bytes on the disk; the cache of bundles has at most {max}")]
    Larger { bytes: u64, max: u64 },
    /// Bundles in use are not evicted. A later try may succeed.
    #[error(
        "the code bundle takes {bytes} bytes on the disk; \
         of the {max} bytes of the cache, bundles in use take {in_use}; try again later"
    )]
    BytesInUse { bytes: u64, in_use: u64, max: u64 },
    /// Bundles in use are not evicted. A later try may succeed.
    #[error("the cache has at most {max} code bundles, and all are in use; try again later")]
    BundlesInUse { max: usize },
}

/// Use of an entry by one holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryUse {
    /// Number of the entry. A later entry of the same key has another one.
    pub number: u64,
    /// The directory is known to agree with its manifest.
    pub is_checked: bool,
}

/// Sums over the entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexTotals {
    pub bundles: usize,
    pub bytes: u64,
    pub bundles_in_use: usize,
    pub bytes_in_use: u64,
}

/// Entries of the cache. It never has more than its limits, because room is made before an entry is added.
#[derive(Debug)]
pub(crate) struct BundleIndex {
    bytes_max: u64,
    bundles_max: usize,
    entries: HashMap<BundleKey, IndexEntry>,
    /// Number of the last use, which orders the entries.
    last_use: u64,
    last_number: u64,
}

#[derive(Debug)]
struct IndexEntry {
    number: u64,
    bytes: u64,
    last_use: u64,
    holders: usize,
    is_checked: bool,
}

impl BundleIndex {
    pub fn new(bytes_max: u64, bundles_max: usize) -> BundleIndex {
        BundleIndex { bytes_max, bundles_max, entries: HashMap::new(), last_use: 0, last_number: 0 }
    }

    /// Adds an entry that was found on the disk, as the last used one. The limits are not checked.
    pub fn add_found(&mut self, key: BundleKey, bytes: u64) {
        self.add(key, bytes, 0, false);
    }

    /// Adds an entry with one holder, for which [`BundleIndex::victims`] made room.
    pub fn add_held(&mut self, key: BundleKey, bytes: u64) -> EntryUse {
        let number = self.add(key, bytes, 1, true);
        EntryUse { number, is_checked: true }
    }

    /// Starts a use of an entry, which makes it the last used one.
    pub fn acquire(&mut self, key: &BundleKey) -> Option<EntryUse> {
        let entry = self.entries.get_mut(key)?;
        self.last_use += 1;
        entry.last_use = self.last_use;
        entry.holders += 1;
        Some(EntryUse { number: entry.number, is_checked: entry.is_checked })
    }

    /// Ends a use of an entry. The entry may have been removed meanwhile.
    pub fn release(&mut self, key: &BundleKey, number: u64) {
        if let Some(entry) = self.numbered(key, number) {
            entry.holders -= 1;
        }
    }

    /// Notes that the directory of an entry agrees with its manifest.
    pub fn set_checked(&mut self, key: &BundleKey, number: u64) {
        if let Some(entry) = self.numbered(key, number) {
            entry.is_checked = true;
        }
    }

    /// Returns whether the key has still this entry.
    pub fn contains(&self, key: &BundleKey, number: u64) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.number == number)
    }

    pub fn remove(&mut self, key: &BundleKey) {
        self.entries.remove(key);
    }

    /// Returns the least recently used entries that have to go before one more entry of this size.
    pub fn victims(&self, bytes: u64) -> Result<Vec<BundleKey>, CacheFull> {
        if bytes > self.bytes_max {
            return Err(CacheFull::Larger { bytes, max: self.bytes_max });
        }
        let totals = self.totals();
        if totals.bundles_in_use >= self.bundles_max {
            return Err(CacheFull::BundlesInUse { max: self.bundles_max });
        }
        if totals.bytes_in_use.saturating_add(bytes) > self.bytes_max {
            return Err(CacheFull::BytesInUse { bytes, in_use: totals.bytes_in_use, max: self.bytes_max });
        }
        Ok(self.oldest_until(self.bytes_max - bytes, self.bundles_max - 1))
    }

    /// Returns the least recently used entries above the limits, which may have changed since the entries were written.
    pub fn surplus(&self) -> Vec<BundleKey> {
        self.oldest_until(self.bytes_max, self.bundles_max)
    }

    pub fn totals(&self) -> IndexTotals {
        let mut totals = IndexTotals::default();
        for entry in self.entries.values() {
            totals.bundles += 1;
            totals.bytes += entry.bytes;
            if entry.holders > 0 {
                totals.bundles_in_use += 1;
                totals.bytes_in_use += entry.bytes;
            }
        }
        totals
    }

    /// Returns the least recently used entries without holders, until the others are within these bounds.
    fn oldest_until(&self, bytes_max: u64, bundles_max: usize) -> Vec<BundleKey> {
        let IndexTotals { mut bundles, mut bytes, .. } = self.totals();
        let mut unused: Vec<_> = self.entries.iter().filter(|(_, entry)| entry.holders == 0).collect();
        unused.sort_unstable_by_key(|(_, entry)| entry.last_use);
        let mut victims = Vec::new();
        for (key, entry) in unused {
            if bytes <= bytes_max && bundles <= bundles_max {
                break;
            }
            bytes -= entry.bytes;
            bundles -= 1;
            victims.push(key.clone());
        }
        victims
    }

    fn add(&mut self, key: BundleKey, bytes: u64, holders: usize, is_checked: bool) -> u64 {
        self.last_use += 1;
        self.last_number += 1;
        let (number, last_use) = (self.last_number, self.last_use);
        self.entries.insert(key, IndexEntry { number, bytes, last_use, holders, is_checked });
        number
    }

    fn numbered(&mut self, key: &BundleKey, number: u64) -> Option<&mut IndexEntry> {
        self.entries.get_mut(key).filter(|entry| entry.number == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::BundleKind;

    fn key(number: u8) -> BundleKey {
        BundleKey::new(BundleKind::Node, format!("{number:064x}").parse().unwrap())
    }

    /// Index with the entries 1, 2, 3 of 10 bytes each, of which 3 was used last. None has holders.
    fn index(bytes_max: u64, bundles_max: usize) -> BundleIndex {
        let mut index = BundleIndex::new(bytes_max, bundles_max);
        (1..=3).for_each(|number| index.add_found(key(number), 10));
        index
    }

    #[test]
    fn the_least_recently_used_entries_go_until_the_new_one_fits() {
        let mut index = index(30, 9);
        let held = index.acquire(&key(1)).unwrap();
        index.release(&key(1), held.number);
        assert_eq!(index.victims(0), Ok(vec![]));
        assert_eq!(index.victims(1), Ok(vec![key(2)]));
        assert_eq!(index.victims(11), Ok(vec![key(2), key(3)]));
        assert_eq!(index.victims(30), Ok(vec![key(2), key(3), key(1)]));
        assert_eq!(index.victims(31), Err(CacheFull::Larger { bytes: 31, max: 30 }));
    }

    #[test]
    fn an_entry_in_use_is_no_victim() {
        let mut index = index(30, 9);
        index.acquire(&key(1)).unwrap();
        assert_eq!(index.victims(20), Ok(vec![key(2), key(3)]));
        assert_eq!(index.victims(21), Err(CacheFull::BytesInUse { bytes: 21, in_use: 10, max: 30 }));
    }

    #[test]
    fn the_number_of_entries_is_bounded() {
        let mut index = index(1000, 3);
        assert_eq!(index.victims(1), Ok(vec![key(1)]));
        (1..=3).for_each(|number| assert!(index.acquire(&key(number)).is_some()));
        assert_eq!(index.victims(1), Err(CacheFull::BundlesInUse { max: 3 }));
    }

    #[test]
    fn entries_above_smaller_limits_are_surplus() {
        assert_eq!(index(30, 3).surplus(), []);
        assert_eq!(index(29, 3).surplus(), [key(1)]);
        assert_eq!(index(30, 1).surplus(), [key(1), key(2)]);
    }

    #[test]
    fn the_release_of_a_removed_entry_leaves_its_successor_in_use() {
        let mut index = index(30, 9);
        let old = index.acquire(&key(1)).unwrap();
        index.remove(&key(1));
        let new = index.add_held(key(1), 10);
        assert!(!index.contains(&key(1), old.number) && index.contains(&key(1), new.number));
        index.release(&key(1), old.number);
        assert_eq!(index.totals().bundles_in_use, 1);
        index.release(&key(1), new.number);
        assert_eq!(index.totals().bundles_in_use, 0);
    }
}
