//! Idle workers by key, and which one leaves. Without a clock and without processes.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

/// Idle workers of a node.
///
/// A worker serves the key that it was started for, and no other one. The newest idle worker of a key is taken first, so
/// that the others become old and leave.
#[derive(Debug)]
pub struct IdlePool<K, W> {
    idle_max: usize,
    idle_time: Duration,
    workers: BTreeMap<u64, IdleWorker<K, W>>,
    by_key: HashMap<K, Vec<u64>>,
    next: u64,
}

#[derive(Debug)]
struct IdleWorker<K, W> {
    key: K,
    worker: W,
    since: Duration,
}

impl<K: Clone + Eq + Hash, W> IdlePool<K, W> {
    pub fn new(idle_max: usize, idle_time: Duration) -> IdlePool<K, W> {
        IdlePool { idle_max, idle_time, workers: BTreeMap::new(), by_key: HashMap::new(), next: 0 }
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

    /// Adds a worker that has become idle. Returns the workers that leave for it.
    pub fn put(&mut self, key: K, worker: W, now: Duration) -> Vec<W> {
        let id = self.next;
        self.next += 1;
        self.by_key.entry(key.clone()).or_default().push(id);
        self.workers.insert(id, IdleWorker { key, worker, since: now });
        let mut leaving = Vec::new();
        while self.workers.len() > self.idle_max {
            // Numbers grow, so the first one has been idle the longest.
            let Some(oldest) = self.workers.keys().next().copied() else { break };
            leaving.extend(self.remove(oldest));
        }
        leaving
    }

    /// Removes the workers that have been idle too long.
    pub fn expire(&mut self, now: Duration) -> Vec<W> {
        let is_old = |idle: &IdleWorker<K, W>| now.saturating_sub(idle.since) >= self.idle_time;
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

    #[test]
    fn a_worker_serves_its_own_key_only() {
        let mut pool = IdlePool::new(8, s(60));
        assert!(pool.put("a", 1, s(0)).is_empty());
        assert!(pool.put("a", 2, s(1)).is_empty());
        assert_eq!(pool.take(&"b"), None);
        assert_eq!((pool.take(&"a"), pool.take(&"a"), pool.take(&"a")), (Some(2), Some(1), None));
    }

    #[test]
    fn the_oldest_leaves_when_there_are_too_many() {
        let mut pool = IdlePool::new(2, s(60));
        assert!(pool.put("a", 1, s(0)).is_empty() && pool.put("b", 2, s(1)).is_empty());
        assert_eq!(pool.put("c", 3, s(2)), [1]);
        assert_eq!((pool.take(&"a"), pool.len()), (None, 2));
        let mut none = IdlePool::new(0, s(60));
        assert_eq!(none.put("a", 1, s(0)), [1]);
    }

    #[test]
    fn workers_leave_after_their_time_and_when_they_are_bad() {
        let mut pool = IdlePool::new(8, s(60));
        assert!(pool.put("a", 1, s(0)).is_empty() && pool.put("b", 2, s(30)).is_empty());
        assert!(pool.expire(s(59)).is_empty());
        assert_eq!(pool.expire(s(60)), [1]);
        assert_eq!(pool.discard(|worker| *worker == 2), [2]);
        assert!(pool.is_empty());
    }
}
