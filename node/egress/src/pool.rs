//! Pool of connections for later calls, with bounds of concurrent calls.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::dial::HttpConnection;
use crate::purpose::EgressPurpose;
use crate::tls::TlsOptions;
use crate::url::{UrlOrigin, UrlScheme};

/// Minimum time between two searches for expired idle connections.
const SWEEP_EVERY_MIN: Duration = Duration::from_millis(50);
/// Time within which a kept connection must accept a request. It needs some time after the previous body.
const READY_MAX: Duration = Duration::from_millis(50);

/// Bounds of connections. Open connections belong to calls in progress or are idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    pub calls_max: usize,
    /// Upper bound for one organization and origin.
    pub calls_per_origin_max: usize,
    pub idle_max: usize,
    /// Upper bound for one organization and origin.
    pub idle_per_origin_max: usize,
    /// Maximum idle time of a connection.
    pub idle_time: Duration,
    /// Age up to which a connection is reused. Afterwards, the name is resolved again.
    pub age_max: Duration,
}

impl Default for PoolLimits {
    fn default() -> PoolLimits {
        PoolLimits {
            calls_max: 2048,
            calls_per_origin_max: 1024,
            idle_max: 512,
            idle_per_origin_max: 128,
            idle_time: Duration::from_secs(30),
            age_max: Duration::from_secs(5 * 60),
        }
    }
}

/// Current numbers of calls and connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolCounts {
    /// Number of organizations and origins with calls in progress or idle connections.
    pub origins: usize,
    pub calls: usize,
    pub idle: usize,
}

/// Key of calls that may share connections: everything that determines their checks and certificates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PoolKey {
    pub(crate) organization: Uuid,
    pub(crate) purpose: EgressPurpose,
    pub(crate) origin: UrlOrigin,
    pub(crate) tls: Option<Arc<TlsOptions>>,
    /// Number of the policy, so that connections of an older policy are not reused.
    pub(crate) policy: u64,
}

#[derive(Debug)]
struct IdleConnection {
    connection: HttpConnection,
    since: Instant,
}

#[derive(Debug)]
struct PoolSlot {
    calls: Arc<Semaphore>,
    /// Idle connections, the most recently used one last.
    idle: Vec<IdleConnection>,
}

#[derive(Debug, Default)]
struct PoolSlots {
    by_key: HashMap<PoolKey, PoolSlot>,
    idle: usize,
    has_sweeper: bool,
}

#[derive(Debug)]
pub(crate) struct ConnectionPool {
    limits: PoolLimits,
    calls: Arc<Semaphore>,
    slots: Mutex<PoolSlots>,
}

/// Permit of one call in progress.
#[derive(Debug)]
pub(crate) struct CallPermit {
    pool: Arc<ConnectionPool>,
    pub(crate) key: PoolKey,
    of_origin: Option<OwnedSemaphorePermit>,
    _of_all: OwnedSemaphorePermit,
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        drop(self.of_origin.take());
        self.pool.slots.lock().remove_unused(&self.key);
    }
}

impl CallPermit {
    /// Returns a kept connection that accepts a request now.
    pub(crate) async fn kept_connection(&self) -> Option<HttpConnection> {
        loop {
            // The loop ends, because each iteration takes a connection out of the pool.
            let mut connection = self.pool.take(&self.key)?;
            let ready = timeout_at(Instant::now() + READY_MAX, connection.requests.ready()).await;
            if matches!(ready, Ok(Ok(()))) {
                return Some(connection);
            }
        }
    }

    /// Keeps the connection for the next call.
    pub(crate) fn keep(self, connection: HttpConnection) {
        if !connection.requests.is_closed() {
            self.pool.put(&self.key, connection);
        }
    }
}

impl ConnectionPool {
    pub(crate) fn new(limits: PoolLimits) -> Arc<ConnectionPool> {
        let calls = Arc::new(Semaphore::new(limits.calls_max));
        Arc::new(ConnectionPool { limits, calls, slots: Mutex::default() })
    }

    /// Waits until a call may begin. Returns `None` after the deadline.
    pub(crate) async fn permit(self: &Arc<Self>, key: PoolKey, until: Instant) -> Option<CallPermit> {
        let of_origin = {
            let mut slots = self.slots.lock();
            let new = || PoolSlot { calls: Arc::new(Semaphore::new(self.limits.calls_per_origin_max)), idle: vec![] };
            Arc::clone(&slots.by_key.entry(key.clone()).or_insert_with(new).calls)
        };
        let waiting = timeout_at(until, async {
            const NEVER_CLOSED: &str = "the semaphores are never closed";
            let of_origin = of_origin.acquire_owned().await.expect(NEVER_CLOSED);
            (of_origin, Arc::clone(&self.calls).acquire_owned().await.expect(NEVER_CLOSED))
        });
        let unused = UnusedSlot { pool: self, key: &key };
        let permits = waiting.await.ok();
        drop(unused);
        let (of_origin, of_all) = permits?;
        Some(CallPermit { pool: Arc::clone(self), key, of_origin: Some(of_origin), _of_all: of_all })
    }

    /// Takes the newest idle connection that this thread opened.
    ///
    /// The opening thread drives a connection, so a call on another thread would wait for it at each step. TLS
    /// handshakes take longer, so with TLS, a connection of another thread also serves.
    fn take(&self, key: &PoolKey) -> Option<HttpConnection> {
        let thread = thread::current().id();
        let takes_others = key.origin.scheme == UrlScheme::Https;
        let mut slots = self.slots.lock();
        let PoolSlots { by_key, idle, .. } = &mut *slots;
        let kept = &mut by_key.get_mut(key)?.idle;
        let now = Instant::now();
        loop {
            let own = kept.iter().rposition(|entry| entry.connection.thread == thread);
            let at = own.or_else(|| kept.len().checked_sub(1).filter(|_| takes_others))?;
            let last = kept.remove(at);
            *idle -= 1;
            if last.is_usable(&self.limits, now) {
                return Some(last.connection);
            }
        }
    }

    fn put(self: &Arc<Self>, key: &PoolKey, connection: HttpConnection) {
        let now = Instant::now();
        let entry = IdleConnection { connection, since: now };
        let mut slots = self.slots.lock();
        // The slot exists as long as its call holds a permit.
        let Some(slot) = slots.by_key.get_mut(key) else { return };
        if !entry.is_usable(&self.limits, now) || self.limits.idle_max == 0 || self.limits.idle_per_origin_max == 0 {
            return;
        }
        slot.idle.push(entry);
        if slot.idle.len() > self.limits.idle_per_origin_max {
            slot.idle.remove(0);
        } else {
            slots.idle += 1;
        }
        if slots.idle > self.limits.idle_max {
            slots.remove_oldest();
        }
        if !slots.has_sweeper {
            slots.has_sweeper = true;
            tokio::spawn(sweep(Arc::downgrade(self), self.limits.idle_time));
        }
    }

    /// Closes all idle connections.
    pub(crate) fn clear(&self) {
        self.slots.lock().retain(|_| false);
    }

    pub(crate) fn counts(&self) -> PoolCounts {
        let slots = self.slots.lock();
        let calls = self.limits.calls_max - self.calls.available_permits();
        PoolCounts { origins: slots.by_key.len(), calls, idle: slots.idle }
    }
}

impl IdleConnection {
    fn is_usable(&self, limits: &PoolLimits, now: Instant) -> bool {
        let idle = now.saturating_duration_since(self.since);
        let age = now.saturating_duration_since(self.connection.opened);
        idle < limits.idle_time && age < limits.age_max && !self.connection.requests.is_closed()
    }
}

impl PoolSlots {
    fn remove_unused(&mut self, key: &PoolKey) {
        // Waiting calls hold a reference to the semaphore, too.
        if self.by_key.get(key).is_some_and(|slot| slot.idle.is_empty() && Arc::strong_count(&slot.calls) == 1) {
            self.by_key.remove(key);
        }
    }

    fn remove_oldest(&mut self) {
        let first = |slot: &PoolSlot| slot.idle.first().map(|entry| entry.since);
        let oldest = self.by_key.iter().filter_map(|(key, slot)| Some((first(slot)?, key))).min_by_key(|(at, _)| *at);
        let Some(key) = oldest.map(|(_, key)| key.clone()) else { return };
        if let Some(slot) = self.by_key.get_mut(&key) {
            slot.idle.remove(0);
            self.idle -= 1;
        }
        self.remove_unused(&key);
    }

    fn retain(&mut self, keep: impl Fn(&IdleConnection) -> bool) {
        self.by_key.values_mut().for_each(|slot| slot.idle.retain(&keep));
        self.by_key.retain(|_, slot| !slot.idle.is_empty() || Arc::strong_count(&slot.calls) > 1);
        self.idle = self.by_key.values().map(|slot| slot.idle.len()).sum();
    }
}

/// Guard that removes an unused slot, even if the wait is dropped.
struct UnusedSlot<'a> {
    pool: &'a ConnectionPool,
    key: &'a PoolKey,
}

impl Drop for UnusedSlot<'_> {
    fn drop(&mut self) {
        self.pool.slots.lock().remove_unused(self.key);
    }
}

/// Closes connections that are idle for too long. Ends when none is left.
async fn sweep(pool: Weak<ConnectionPool>, idle_time: Duration) {
    loop {
        tokio::time::sleep((idle_time / 4).max(SWEEP_EVERY_MIN)).await;
        let Some(pool) = pool.upgrade() else { return };
        let now = Instant::now();
        let mut slots = pool.slots.lock();
        slots.retain(|entry| entry.is_usable(&pool.limits, now));
        if slots.idle == 0 {
            slots.has_sweeper = false;
            return;
        }
    }
}
