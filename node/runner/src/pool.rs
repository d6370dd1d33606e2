//! Idle workers by key, and which one leaves. Without a clock and without processes.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

/// Key of an idle worker.
pub trait PoolKey: Clone + Eq + Hash {
    /// Owner among whom the places of idle workers are shared.
    type Owner: Copy + Eq + Hash;

    fn owner(&self) -> Self::Owner;
}

/// Limits of all idle workers of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleLimits {
    pub workers: usize,
    /// Memory of the workers together.
    pub bytes: u64,
    /// Time after which an idle worker leaves.
    pub time: Duration,
}

/// Idle workers of a node.
///
/// A worker serves the key that it was started for, and no other one. The newest idle worker of a key is taken first, so
/// that the others become old and leave. Above the limits, the owner with the largest share gives up its oldest worker.
#[derive(Debug)]
pub struct IdlePool<K, W> {
    limits: IdleLimits,
    workers: BTreeMap<u64, IdleWorker<K, W>>,
    by_key: HashMap<K, Vec<u64>>,
    bytes: u64,
    next: u64,
}

#[derive(Debug)]
struct IdleWorker<K, W> {
    key: K,
    worker: W,
    bytes: u64,
    since: Duration,
}

/// Idle workers of one owner.
#[derive(Clone, Copy, Debug)]
struct OwnerShare {
    workers: usize,
    bytes: u64,
    /// Number of the worker that has been idle the longest.
    oldest: u64,
}

impl<K: PoolKey, W> IdlePool<K, W> {
    pub fn new(limits: IdleLimits) -> IdlePool<K, W> {
        IdlePool { limits, workers: BTreeMap::new(), by_key: HashMap::new(), bytes: 0, next: 0 }
    }

    pub fn len(&self) -> usize {
        self.workers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    /// Takes an idle worker of a key.
    pub fn take(&mut self, key: &K) -> Option<W> {
        let id = *self.by_key.get(key)?.last()?;
        self.remove(id)
    }

    /// Adds a worker that has become idle, with the bytes of its memory. Returns the workers that leave for it.
    pub fn put(&mut self, key: K, worker: W, bytes: u64, now: Duration) -> Vec<W> {
        let id = self.next;
        self.next += 1;
        self.by_key.entry(key.clone()).or_default().push(id);
        self.workers.insert(id, IdleWorker { key, worker, bytes, since: now });
        self.bytes = self.bytes.saturating_add(bytes);
        let mut leaving = Vec::new();
        while self.workers.len() > self.limits.workers || self.bytes > self.limits.bytes {
            let is_crowded = self.workers.len() > self.limits.workers;
            let Some(worker) = self.surplus(is_crowded).and_then(|id| self.remove(id)) else { break };
            leaving.push(worker);
        }
        leaving
    }

    /// Returns the oldest worker of the owner with the largest share of the places, or else of the memory.
    fn surplus(&self, is_crowded: bool) -> Option<u64> {
        let mut shares: HashMap<K::Owner, OwnerShare> = HashMap::new();
        // Numbers grow, so the first one of an owner has been idle the longest.
        for (id, idle) in &self.workers {
            let none = OwnerShare { workers: 0, bytes: 0, oldest: *id };
            let share = shares.entry(idle.key.owner()).or_insert(none);
            share.workers += 1;
            share.bytes = share.bytes.saturating_add(idle.bytes);
        }
        let size = |share: &OwnerShare| if is_crowded { share.workers as u64 } else { share.bytes };
        let largest = shares.into_values().max_by_key(|share| (size(share), std::cmp::Reverse(share.oldest)));
        largest.map(|share| share.oldest)
    }

    /// Removes the workers that have been idle too long.
    pub fn expire(&mut self, now: Duration) -> Vec<W> {
        let is_old = |idle: &IdleWorker<K, W>| now.saturating_sub(idle.since) >= self.limits.time;
        let old: Vec<u64> = self.workers.iter().filter(|(_, idle)| is_old(idle)).map(|(id, _)| *id).collect();
        old.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    /// Removes the workers that a check refuses.
    pub fn discard(&mut self, mut is_bad: impl FnMut(&mut W) -> bool) -> Vec<W> {
        let bad = self.workers.iter_mut().filter_map(|(id, idle)| is_bad(&mut idle.worker).then_some(*id));
        let bad: Vec<u64> = bad.collect();
        bad.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    fn remove(&mut self, id: u64) -> Option<W> {
        let idle = self.workers.remove(&id)?;
        self.bytes = self.bytes.saturating_sub(idle.bytes);
        if let Some(ids) = self.by_key.get_mut(&idle.key) {
            ids.retain(|known| *known != id);
            if ids.is_empty() {
                self.by_key.remove(&idle.key);
            }
        }
        Some(idle.worker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Owner and function.
    type Key = (char, u32);

    impl PoolKey for Key {
        type Owner = char;

        fn owner(&self) -> char {
            self.0
        }
    }

    fn pool(workers: usize) -> IdlePool<Key, u32> {
        IdlePool::new(IdleLimits { workers, bytes: 100, time: s(60) })
    }

    #[test]
    fn a_worker_serves_its_own_key_only() {
        let mut pool = pool(8);
        assert!(pool.put(('a', 0), 1, 1, s(0)).is_empty());
        assert!(pool.put(('a', 0), 2, 1, s(1)).is_empty());
        assert_eq!(pool.take(&('a', 1)), None);
        let key = ('a', 0);
        assert_eq!((pool.take(&key), pool.take(&key), pool.take(&key)), (Some(2), Some(1), None));
    }

    #[test]
    fn the_oldest_leaves_when_there_are_too_many() {
        let mut small = pool(2);
        assert!(small.put(('a', 0), 1, 1, s(0)).is_empty() && small.put(('b', 0), 2, 1, s(1)).is_empty());
        assert_eq!(small.put(('c', 0), 3, 1, s(2)), [1]);
        assert_eq!((small.take(&('a', 0)), small.len()), (None, 2));
        assert_eq!(pool(0).put(('a', 0), 1, 1, s(0)), [1]);
    }

    #[test]
    fn an_owner_of_many_workers_does_not_displace_those_of_others() {
        let mut pool = pool(4);
        assert!(pool.put(('b', 0), 1, 1, s(0)).is_empty());
        let leaving: Vec<u32> = (10..30).flat_map(|number| pool.put(('a', number), number, 1, s(1))).collect();
        assert_eq!(leaving, (10..27).collect::<Vec<u32>>());
        assert_eq!(pool.take(&('b', 0)), Some(1));
    }

    #[test]
    fn an_owner_of_large_workers_does_not_displace_those_of_others() {
        let mut pool = pool(8);
        assert!(pool.put(('b', 0), 1, 30, s(0)).is_empty());
        assert!(pool.put(('a', 0), 2, 40, s(1)).is_empty());
        assert_eq!(pool.put(('a', 1), 3, 60, s(2)), [2]);
        assert_eq!(pool.put(('c', 0), 4, 101, s(3)), [4], "a worker above the limit is not kept");
        assert_eq!((pool.take(&('b', 0)), pool.take(&('a', 1)), pool.bytes), (Some(1), Some(3), 0));
    }

    #[test]
    fn workers_leave_after_their_time_and_when_they_are_bad() {
        let mut pool = pool(8);
        assert!(pool.put(('a', 0), 1, 1, s(0)).is_empty() && pool.put(('b', 0), 2, 1, s(30)).is_empty());
        assert!(pool.expire(s(59)).is_empty());
        assert_eq!(pool.expire(s(60)), [1]);
        assert_eq!(pool.discard(|worker| *worker == 2), [2]);
        assert!(pool.is_empty());
    }
}
