//! Bounded table of buckets or leases. It drops idle entries periodically and when it is full.

use std::collections::HashMap;

use super::bucket::{Micros, SECOND};
use super::key::BucketKey;

/// Upper bound of the entries, which take some hundred bytes each.
const ENTRIES_MAX: usize = 50_000;
const SWEEP_EVERY: Micros = 10 * SECOND;
/// Minimum time between sweeps of a full table.
const SWEEP_FULL_EVERY: Micros = SECOND;

#[derive(Debug)]
pub(super) struct BoundedTable<V> {
    entries: HashMap<BucketKey, V>,
    swept: Micros,
}

impl<V> Default for BoundedTable<V> {
    fn default() -> BoundedTable<V> {
        BoundedTable { entries: HashMap::new(), swept: 0 }
    }
}

impl<V> BoundedTable<V> {
    pub fn get(&mut self, key: &BucketKey) -> Option<&mut V> {
        self.entries.get_mut(key)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the entry and creates it if it is missing. Returns `None` if the table is full.
    pub fn entry(
        &mut self,
        now: Micros,
        key: BucketKey,
        make: impl FnOnce() -> V,
        is_idle: impl Fn(&BucketKey, &V) -> bool,
    ) -> Option<&mut V> {
        if !self.entries.contains_key(&key) {
            let every = if self.len() < ENTRIES_MAX { SWEEP_EVERY } else { SWEEP_FULL_EVERY };
            if now >= self.swept + every {
                self.swept = now;
                self.entries.retain(|key, entry| !is_idle(key, entry));
            }
            if self.len() >= ENTRIES_MAX {
                return None;
            }
        }
        Some(self.entries.entry(key).or_insert_with(make))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(second: usize) -> BucketKey {
        BucketKey { rule: 1, first: 0, second: second as u128 }
    }

    #[test]
    fn a_full_table_takes_nothing_until_something_is_idle() {
        let mut table = BoundedTable::default();
        for number in 0..ENTRIES_MAX {
            assert!(table.entry(0, key(number), || number, |_, _| true).is_some());
        }
        assert!(table.entry(SECOND, key(ENTRIES_MAX), || 0, |_, _| false).is_none(), "all are in use");
        assert_eq!(table.entry(SECOND, key(7), || 0, |_, _| false), Some(&mut 7), "those that are there are found");
        assert!(table.entry(SECOND, key(ENTRIES_MAX), || 0, |_, _| true).is_none(), "it was looked through just now");
        assert!(table.entry(2 * SECOND, key(ENTRIES_MAX), || 0, |_, number| *number > 9).is_some());
        assert_eq!(table.len(), 11);
    }

    #[test]
    fn what_is_idle_goes_from_time_to_time() {
        let mut table = BoundedTable::default();
        table.entry(0, key(1), || 1, |_, _| true);
        table.entry(SECOND, key(2), || 2, |_, _| true);
        assert_eq!(table.len(), 2);
        table.entry(SWEEP_EVERY, key(3), || 3, |_, number| *number == 1);
        assert!(table.len() == 2 && table.get(&key(1)).is_none());
    }
}
