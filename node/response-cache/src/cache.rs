//! Cache of a node: look-ups at the owner of a key, storage of responses, and calls that share one response.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use assay_storage_disk::SharedDisk;
use assay_storage_model::{NodeId, OrgId};
use bytes::Bytes;
use futures::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::cipher::EntryKeys;
use crate::cluster_peers::CachePeers;
use crate::counters::{CacheCounters, CacheCounts};
use crate::decision::{CachePlan, MaxAge};
use crate::entry::{CacheableResponse, CachedResponse, EntryFile};
use crate::flights::{FlightRole, FlightTable, LedFlight};
use crate::index::{CacheLimits, EntryId};
use crate::key::CacheKey;
use crate::store::{EntryStore, StoreOutcome};
use crate::wire::{self, CacheMessage};

/// Time limit of a look-up on another node. A later response counts as a miss.
pub const LOOKUP_WITHIN: Duration = Duration::from_millis(50);
/// Time limit of writing or removing entries on another node.
pub const STORE_WITHIN: Duration = Duration::from_secs(2);
/// Maximum total time that a call waits for identical ones. Afterwards it runs beside them.
pub const FLIGHT_WAIT_MAX: Duration = Duration::from_secs(30);
/// Maximum number of concurrent file operations.
const FILE_WORK_MAX: usize = 8;

/// Clock in milliseconds since 1970.
#[derive(Clone)]
pub struct CacheClock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl CacheClock {
    pub fn new(now_ms: impl Fn() -> u64 + Send + Sync + 'static) -> CacheClock {
        CacheClock(Arc::new(now_ms))
    }

    /// Returns the system clock.
    pub fn system() -> CacheClock {
        let since = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        CacheClock::new(move || u64::try_from(since().as_millis()).unwrap_or(u64::MAX))
    }

    fn now_ms(&self) -> u64 {
        (self.0)()
    }
}

impl fmt::Debug for CacheClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CacheClock")
    }
}

/// Settings and dependencies of a cache.
#[derive(Clone, Debug)]
pub struct CacheSettings {
    pub disk: SharedDisk,
    /// Directory of the entries. Nothing else may use it.
    pub directory: PathBuf,
    pub limits: CacheLimits,
    pub keys: Arc<dyn EntryKeys>,
    pub peers: Arc<dyn CachePeers>,
    pub clock: CacheClock,
    /// Runtime for file operations and for writes that outlive their request.
    pub runtime: Handle,
}

/// Response cache of a node. Clones share all state.
#[derive(Clone, Debug)]
pub struct ResponseCache(Arc<CacheState>);

#[derive(Debug)]
struct CacheState {
    store: EntryStore,
    keys: Arc<dyn EntryKeys>,
    peers: Arc<dyn CachePeers>,
    flights: Arc<FlightTable>,
    counters: Arc<CacheCounters>,
    clock: CacheClock,
    permits: Arc<Semaphore>,
    runtime: Handle,
}

/// Next step of a request.
#[derive(Debug)]
pub enum CacheStart {
    /// The cache has a response.
    Hit(CachedResponse),
    /// The caller makes the call.
    Lead(CacheLead),
}

/// Call that others may wait for. Dropping it lets the next of them make the call.
#[derive(Debug)]
pub struct CacheLead {
    cache: ResponseCache,
    key: CacheKey,
    ttl_s: Option<u32>,
    flight: Option<LedFlight>,
}

impl ResponseCache {
    /// Opens the cache and indexes its entries. This blocks the thread.
    pub fn open(settings: CacheSettings) -> io::Result<ResponseCache> {
        let CacheSettings { disk, directory, limits, keys, peers, clock, runtime } = settings;
        let counters = Arc::new(CacheCounters::default());
        let store = EntryStore::open(disk, &directory, limits, Arc::clone(&counters), clock.now_ms())?;
        let (flights, permits) = (Arc::default(), Arc::new(Semaphore::new(FILE_WORK_MAX)));
        Ok(ResponseCache(Arc::new(CacheState { store, keys, peers, flights, counters, clock, permits, runtime })))
    }

    /// Begins a request.
    ///
    /// Identical requests that may read and write wait for the first of them, for at most [`FLIGHT_WAIT_MAX`].
    pub async fn begin(&self, key: &CacheKey, plan: CachePlan) -> CacheStart {
        let start = match plan.read {
            None => self.lead(key, plan),
            Some(max_age) if plan.write_ttl_s.is_some() => self.begin_shared(key, max_age, plan).await,
            Some(max_age) => self.begin_reading(key, max_age, plan).await,
        };
        match (&start, plan.read) {
            (CacheStart::Hit(_), _) => CacheCounters::add(&self.0.counters.hits),
            (CacheStart::Lead(_), Some(_)) => CacheCounters::add(&self.0.counters.misses),
            (CacheStart::Lead(_), None) => {}
        }
        start
    }

    /// Begins a call without a look-up. Later requests can share its response if it may be written.
    fn lead(&self, key: &CacheKey, plan: CachePlan) -> CacheStart {
        let flight = match plan.write_ttl_s.map(|_| self.0.flights.join(key)) {
            Some(FlightRole::Leads(flight)) => Some(flight),
            _ => None,
        };
        self.lead_with(key, plan, flight)
    }

    fn lead_with(&self, key: &CacheKey, plan: CachePlan, flight: Option<LedFlight>) -> CacheStart {
        CacheStart::Lead(CacheLead { cache: self.clone(), key: *key, ttl_s: plan.write_ttl_s, flight })
    }

    async fn begin_shared(&self, key: &CacheKey, max_age: MaxAge, plan: CachePlan) -> CacheStart {
        let until = Instant::now() + FLIGHT_WAIT_MAX;
        // Each iteration waits for another leader, so the deadline bounds the loop.
        while Instant::now() < until {
            match self.0.flights.join(key) {
                FlightRole::Leads(flight) => {
                    let Some(cached) = self.get(key, max_age).await else {
                        return self.lead_with(key, plan, Some(flight));
                    };
                    flight.publish(Arc::new(cached.clone()));
                    return CacheStart::Hit(cached);
                }
                FlightRole::Waits(flight) => {
                    if let Some(cached) = flight.wait(until).await {
                        return match self.shared(&cached, max_age) {
                            Some(hit) => hit,
                            None => self.lead_with(key, plan, None),
                        };
                    }
                }
                FlightRole::Alone => {
                    return match self.get(key, max_age).await {
                        Some(cached) => CacheStart::Hit(cached),
                        None => self.lead_with(key, plan, None),
                    };
                }
            }
        }
        self.lead_with(key, plan, None)
    }

    /// Begins a request whose response may not be written. It waits for others, but no request waits for it.
    async fn begin_reading(&self, key: &CacheKey, max_age: MaxAge, plan: CachePlan) -> CacheStart {
        if let Some(cached) = self.get(key, max_age).await {
            return CacheStart::Hit(cached);
        }
        let shared = match self.0.flights.follow(key) {
            Some(flight) => flight.wait(Instant::now() + FLIGHT_WAIT_MAX).await,
            None => None,
        };
        let hit = shared.and_then(|cached| self.shared(&cached, max_age));
        hit.unwrap_or_else(|| self.lead_with(key, plan, None))
    }

    /// Returns the response of another call if it is young enough, because that call may have accepted an older entry.
    fn shared(&self, cached: &CachedResponse, max_age: MaxAge) -> Option<CacheStart> {
        let is_young = max_age.admits(cached.age_s(self.0.clock.now_ms()));
        is_young.then(|| {
            CacheCounters::add(&self.0.counters.shared);
            CacheStart::Hit(cached.clone())
        })
    }

    /// Looks up an entry at its owner. Every failure counts as a miss.
    pub async fn get(&self, key: &CacheKey, max_age: MaxAge) -> Option<CachedResponse> {
        let Some(owner) = self.other_owner(key) else { return self.get_here(key, max_age).await };
        match self.ask(owner, &CacheMessage::Get(*key, max_age), LOOKUP_WITHIN).await.map(wire::read_found) {
            Ok(Some(Some(file))) => self.open_remote(key, max_age, file).await,
            Ok(Some(None)) => None,
            Ok(None) => {
                self.failed(&format!("node {owner} sent an entry that cannot be decoded"));
                None
            }
            // The entry may be stored here if the owner was silent during the write.
            Err(_) => self.get_here(key, max_age).await,
        }
    }

    async fn get_here(&self, key: &CacheKey, max_age: MaxAge) -> Option<CachedResponse> {
        let key = *key;
        let work = move |cache: &CacheState| {
            let id = EntryId::of(&key);
            let stored = cache.store.read(&id, max_age, cache.clock.now_ms())?;
            let opened = cache.open_file(&key, &stored.file)?;
            if opened.is_none() {
                cache.store.remove_damaged(&id, stored.generation);
            }
            opened
        };
        self.run(work).await.flatten()
    }

    async fn open_remote(&self, key: &CacheKey, max_age: MaxAge, file: EntryFile) -> Option<CachedResponse> {
        let key = *key;
        let work = move |cache: &CacheState| {
            let (times, now_ms) = (file.heading.times, cache.clock.now_ms());
            let is_valid = !times.is_expired(now_ms) && max_age.admits(times.age_s(now_ms));
            if is_valid { cache.open_file(&key, &file)? } else { None }
        };
        let cached = self.run(work).await.flatten()?;
        CacheCounters::add(&self.0.counters.remote_hits);
        Some(cached)
    }

    /// Stores a response at the owner of its key, or here if the owner is silent. Returns whether it is stored.
    pub async fn put(&self, key: &CacheKey, response: CachedResponse) -> bool {
        let cipher = match self.0.keys.ensured(key.organization()).await {
            Ok(cipher) => cipher,
            Err(why) => {
                self.failed(&why);
                return false;
            }
        };
        let bound_to = *key;
        let sealing = move |cache: &CacheState| {
            let Some(plain) = response.plain() else {
                CacheCounters::add(&cache.counters.refused);
                return None;
            };
            let times = response.times();
            let sealed = cipher.seal(&times.bound_to(&bound_to), &plain).map_err(|why| cache.failed(&why)).ok()?;
            EntryFile::new(times, &sealed)
        };
        let Some(file) = self.run(sealing).await.flatten() else { return false };
        if let Some(owner) = self.other_owner(key) {
            let message = CacheMessage::Put(*key, file.clone());
            let stored = self.ask(owner, &message, STORE_WITHIN).await.ok();
            if let Some(is_stored) = stored.and_then(|bytes| wire::read_done(&bytes)) {
                return is_stored;
            }
        }
        self.put_here(key, file).await
    }

    async fn put_here(&self, key: &CacheKey, file: EntryFile) -> bool {
        let id = EntryId::of(key);
        let writing = move |cache: &CacheState| match cache.store.write(&id, &file, cache.clock.now_ms()) {
            Ok(outcome) => outcome == StoreOutcome::Stored,
            Err(error) => {
                cache.failed(&format!("a response was not cached: {error}"));
                false
            }
        };
        self.run(writing).await.unwrap_or(false)
    }

    /// Removes all entries of an organization on the live nodes. Returns the nodes that did not confirm the removal.
    pub async fn remove_organization(&self, organization: OrgId) -> Vec<NodeId> {
        let view = self.0.peers.view();
        let message = CacheMessage::RemoveOrganization(organization);
        let others = view.alive.iter().filter(|node| **node != view.own).map(|node| async {
            let answer = self.ask(*node, &message, STORE_WITHIN).await.ok();
            let is_done = answer.and_then(|bytes| wire::read_done(&bytes)).unwrap_or(false);
            (!is_done).then_some(*node)
        });
        let (here, others) = tokio::join!(self.remove_organization_here(organization), join_all(others));
        let own = (!here).then_some(view.own);
        own.into_iter().chain(others.into_iter().flatten()).collect()
    }

    /// Removes all entries of an organization on this node. Returns whether that succeeded.
    pub async fn remove_organization_here(&self, organization: OrgId) -> bool {
        let removing = move |cache: &CacheState| match cache.store.remove_organization(organization) {
            Ok(()) => true,
            Err(error) => {
                cache.failed(&format!("cached responses of {organization} were not removed: {error}"));
                false
            }
        };
        self.run(removing).await.unwrap_or(false)
    }

    /// Answers a message from another node. The error says why it cannot.
    pub async fn answer(&self, body: Bytes) -> Result<Bytes, String> {
        match wire::read_message(body).ok_or("the message cannot be decoded")? {
            CacheMessage::Get(key, max_age) => {
                let reading =
                    move |cache: &CacheState| cache.store.read(&EntryId::of(&key), max_age, cache.clock.now_ms());
                let stored = self.run(reading).await.flatten();
                Ok(wire::found(stored.as_ref().map(|stored| &stored.file)))
            }
            CacheMessage::Put(key, file) => Ok(wire::done(self.put_here(&key, file).await)),
            CacheMessage::RemoveOrganization(organization) => {
                Ok(wire::done(self.remove_organization_here(organization).await))
            }
        }
    }

    /// Returns the counters of this node.
    pub fn counts(&self) -> CacheCounts {
        let (bytes, entries) = self.0.store.usage();
        self.0.counters.read(bytes, entries)
    }

    /// Returns the owner of a key, or `None` if it is this node.
    fn other_owner(&self, key: &CacheKey) -> Option<NodeId> {
        let view = self.0.peers.view();
        key.owner(&view.alive).filter(|owner| *owner != view.own)
    }

    async fn ask(&self, node: NodeId, message: &CacheMessage, within: Duration) -> Result<Bytes, String> {
        let asked = self.0.peers.ask(node, wire::message(message), within);
        let answer = timeout(within, asked).await.unwrap_or_else(|_| Err("there was no response in time".into()));
        answer.inspect_err(|why| {
            CacheCounters::add(&self.0.counters.errors);
            tracing::debug!(%node, why, "the owner of a cached response did not respond");
        })
    }

    /// Runs a file operation on a blocking thread. Returns `None` if it panicked or the node shuts down.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce(&CacheState) -> T + Send + 'static) -> Option<T> {
        let permit = Arc::clone(&self.0.permits).acquire_owned().await.ok()?;
        let state = Arc::clone(&self.0);
        let working = self.0.runtime.spawn_blocking(move || {
            let done = work(&state);
            drop(permit);
            done
        });
        working.await.ok()
    }

    fn failed(&self, why: &str) {
        self.0.failed(why);
    }
}

impl CacheState {
    fn failed(&self, why: &str) {
        CacheCounters::add(&self.counters.errors);
        tracing::warn!(why, "the response cache failed");
    }

    /// Decrypts an entry.
    ///
    /// The outer option is `None` if the key is unavailable, and the inner one if the entry is damaged.
    fn open_file(&self, key: &CacheKey, file: &EntryFile) -> Option<Option<CachedResponse>> {
        let cipher = self.keys.existing(key.organization()).map_err(|why| self.failed(&why)).ok()?;
        let times = file.heading.times;
        let plain = cipher.open(&times.bound_to(key), file.sealed());
        Some(plain.and_then(|plain| CachedResponse::read_plain(times, plain)))
    }
}

impl CacheLead {
    /// Returns the lifetime of the entry in seconds, or `None` if the response may not be stored.
    pub fn ttl_s(&self) -> Option<u32> {
        self.ttl_s
    }

    /// Publishes the complete response to waiting requests and stores it. Returns whether it is stored.
    ///
    /// The write continues if the caller stops waiting.
    pub async fn store(self, response: CacheableResponse) -> bool {
        let CacheLead { cache, key, ttl_s, flight } = self;
        let Some(ttl_s) = ttl_s else { return false };
        let cached = CachedResponse::new(response, cache.0.clock.now_ms(), ttl_s);
        if !cached.is_small() {
            CacheCounters::add(&cache.0.counters.refused);
            return false;
        }
        if let Some(flight) = &flight {
            flight.publish(Arc::new(cached.clone()));
        }
        let runtime = cache.0.runtime.clone();
        let writing = runtime.spawn(async move {
            let is_kept = cache.put(&key, cached).await;
            // Until this drop, new requests get the response from the flight, and afterwards from the store.
            drop(flight);
            is_kept
        });
        writing.await.unwrap_or(false)
    }
}
