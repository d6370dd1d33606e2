//! Rate limiting with a token bucket per rule and subject, shared by all nodes of the cluster.
//!
//! ```text
//! caller known ──> rules that match the request ──> a token of each ──> body is read, request is served
//!                                                     └─> none: 429, Retry-After
//! ```
//! A bucket counts the requests of one subject of a rule, such as an organization. Each bucket has one home among the
//! nodes (`key`), which holds the tokens (`bucket`). In a cluster, every node takes tokens from the home in small
//! batches that expire soon (`lease`). The home does the same for its own requests. A single node takes them directly
//! from the bucket.
//!
//! A node that cannot reach a home admits its share, which is the limit divided by the number of nodes. It reports the
//! admitted requests when it reaches the home again. A restarted home begins with a full burst.
//!
//! [`RatePeers`] reaches the other nodes, and `cluster_peers` implements it. Without rules, none of this runs.

mod bucket;
mod cluster_peers;
mod counters;
mod key;
mod lease;
mod mix;
mod readings;
mod rules;
#[cfg(test)]
mod simulation;
mod table;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use assay_node_auth::Principal;
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use uuid::Uuid;

pub use cluster_peers::{ClusterPeers, serve_leases};
pub use readings::RateReading;
pub use rules::{Per, RateRule};
pub(crate) use rules::{check_rates, warnings};

use crate::LimitsConfig;
use bucket::{Ask, Bucket, Grant, Micros, SECOND};
use counters::RateCounters;
use key::BucketKey;
use lease::{Event, LEASE, Lease, Verdict};
use rules::CompiledRule;
use table::BoundedTable;

/// Nodes of the cluster, as this node sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateView {
    pub own: NodeId,
    /// Number of all members, including silent ones.
    pub known: usize,
    /// Nodes that can be homes, including this one.
    pub alive: Vec<NodeId>,
}

/// Connection to the other nodes of the cluster.
pub trait RatePeers: Send + Sync + fmt::Debug + 'static {
    /// Returns the nodes. It is called for each request that matches a rule, so it must be cheap.
    fn view(&self) -> Arc<RateView>;

    /// Sends a request to another node, which passes it to [`RateLimiter::answer`].
    fn ask(&self, node: NodeId, body: Bytes, within: Duration) -> BoxFuture<'static, Result<Bytes, String>>;
}

/// Admission of requests by the configured rules. Clones share all state.
#[derive(Clone, Debug, Default)]
pub struct RateLimiter(Option<Arc<Limiter>>);

#[derive(Debug)]
struct Limiter {
    rules: Vec<CompiledRule>,
    places: HashMap<u64, usize>,
    leases: Mutex<BoundedTable<HeldLease>>,
    /// Never held while locking `leases`, to prevent a deadlock.
    homes: Mutex<BoundedTable<Bucket>>,
    peers: Arc<dyn RatePeers>,
    counts: RateCounters,
    began: Instant,
    /// Runtime for requests to homes, which outlive the requests that caused them.
    runtime: Handle,
}

/// Lease with its home and a channel to the requests that wait for it.
#[derive(Debug)]
struct HeldLease {
    lease: Lease,
    home: NodeId,
    told: watch::Sender<()>,
}

/// Error for a request that a rule refused. The message names the rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the rate limit {rule} is reached; try again in {retry_after_seconds} s")]
pub struct RateExceeded {
    rule: String,
    pub retry_after_seconds: u64,
}

/// Request that waits for a bucket. Dropping it ends the wait, even after the caller hung up.
struct PendingRequest {
    limiter: Arc<Limiter>,
    key: BucketKey,
}

enum Admission {
    Admit,
    Refuse { wait: Micros },
    Wait { until: Micros, told: watch::Receiver<()> },
}

impl RateLimiter {
    /// Creates a limiter. Without rules, it admits everything.
    pub fn new(config: &LimitsConfig, peers: Arc<dyn RatePeers>, runtime: Handle) -> Result<RateLimiter, String> {
        config.check()?;
        if config.rates.is_empty() {
            return Ok(RateLimiter::default());
        }
        let rules: Vec<CompiledRule> = config.rates.iter().map(CompiledRule::new).collect::<Result<_, _>>()?;
        let places = rules.iter().enumerate().map(|(place, rule)| (rule.fingerprint, place)).collect();
        let counts = RateCounters::new(rules.len());
        let (leases, homes, began) = (Mutex::default(), Mutex::default(), Instant::now());
        Ok(RateLimiter(Some(Arc::new(Limiter { rules, places, leases, homes, peers, counts, began, runtime }))))
    }

    /// Returns whether there are any rules.
    pub fn has_rules(&self) -> bool {
        self.0.is_some()
    }

    /// Answers another node that asks for tokens of a bucket whose home is this node.
    ///
    /// The error says why it gets none.
    pub fn answer(&self, body: &[u8]) -> Result<Bytes, String> {
        let limiter = self.0.as_ref().ok_or("this node has no rules")?;
        if let Some(key) = wire::read_reading(body) {
            return limiter.answer_reading(key);
        }
        let (key, ask) = wire::read_ask(body).ok_or("the request cannot be decoded")?;
        let place = limiter.places.get(&key.rule).ok_or("this node has no such rule")?;
        let view = limiter.peers.view();
        // While the nodes disagree about the home, neither of them hands out the whole limit.
        if key.home(&view.alive) != Some(view.own) {
            return Err("the home of this bucket is another node".into());
        }
        let grant =
            limiter.at_home(limiter.now(), *place, key, ask).ok_or("this node has no room for more counters")?;
        Ok(wire::grant(&grant))
    }

    /// Returns the metrics in Prometheus text format.
    pub fn text(&self) -> String {
        let Some(limiter) = &self.0 else { return String::new() };
        // Each lock is released before the next one is taken: elsewhere `leases` is locked before `homes`.
        let buckets = limiter.homes.lock().len();
        let leases = limiter.leases.lock().len();
        limiter.counts.text(&limiter.rules, buckets, leases)
    }

    /// Admits or refuses a request of an authenticated caller. `project` returns the project of the request.
    pub async fn admit(
        &self,
        method: &str,
        path: &str,
        who: &Principal,
        project: impl Fn() -> Option<Uuid>,
    ) -> Result<(), RateExceeded> {
        let Some(limiter) = &self.0 else { return Ok(()) };
        let mut taken: Vec<(usize, BucketKey)> = Vec::new();
        for (place, rule) in limiter.rules.iter().enumerate().filter(|(_, rule)| rule.is_about(method, path, who)) {
            let key = rule.key(who, &project);
            if let Err(wait) = limiter.take(place, key).await {
                limiter.counts.refused(place, who.org.0);
                taken.into_iter().for_each(|(place, key)| limiter.give_back(place, key));
                return Err(RateExceeded::new(rule, wait));
            }
            taken.push((place, key));
        }
        taken.into_iter().for_each(|(place, _)| limiter.counts.admitted(place));
        Ok(())
    }
}

impl RateExceeded {
    fn new(rule: &CompiledRule, wait: Micros) -> RateExceeded {
        RateExceeded { rule: rule.config.description(), retry_after_seconds: wait.div_ceil(SECOND).max(1) }
    }
}

impl Limiter {
    fn now(&self) -> Micros {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(Micros::MAX)
    }

    /// Takes one token. The error is the time until the next token.
    async fn take(self: &Arc<Limiter>, place: usize, key: BucketKey) -> Result<(), Micros> {
        let mut waits: Option<PendingRequest> = None;
        loop {
            match self.step(place, key, waits.is_none()) {
                Admission::Admit => return Ok(()),
                Admission::Refuse { wait } => return Err(wait),
                Admission::Wait { until, mut told } => {
                    waits.get_or_insert_with(|| PendingRequest { limiter: Arc::clone(self), key });
                    let until = self.began + Duration::from_micros(until);
                    // The loop decides again after the message or the timeout.
                    let _ = timeout_at(until, told.changed()).await;
                }
            }
        }
    }

    fn step(self: &Arc<Limiter>, place: usize, key: BucketKey, first: bool) -> Admission {
        let (now, terms, view) = (self.now(), self.rules[place].terms, self.peers.view());
        let full = Admission::Refuse { wait: SECOND };
        if view.known <= 1 {
            let grant = self.at_home(now, place, key, Ask { want: 1, ..Ask::default() });
            return match grant {
                Some(Grant { granted: 0, wait }) => Admission::Refuse { wait },
                Some(_) => Admission::Admit,
                None => full,
            };
        }
        let home = key.home(&view.alive).unwrap_or(view.own);
        let mut leases = self.leases.lock();
        let make = || HeldLease { lease: Lease::new(now, terms, view.known), home, told: watch::Sender::new(()) };
        let is_idle = |key: &BucketKey, held: &HeldLease| {
            let terms = self.places.get(&key.rule).map(|place| self.rules[*place].terms);
            terms.is_none_or(|terms| held.lease.is_idle(now, terms, view.known))
        };
        let Some(held) = leases.entry(now, key, make, is_idle) else { return full };
        if held.home != home {
            held.home = home;
            held.lease.step(now, Event::Moved);
        }
        let mut step = held.lease.take(now, terms, view.known, first);
        if let Some(ask) = step.ask.take() {
            if home == view.own {
                let grant = self.at_home(now, place, key, ask);
                let event = grant.map_or(Event::Failed { sent: now }, |grant| Event::Answered { sent: now, grant });
                held.hear(now, event);
                if matches!(step.verdict, Verdict::Wait { .. }) {
                    step = held.lease.take(now, terms, view.known, false);
                    if first && !matches!(step.verdict, Verdict::Wait { .. }) {
                        held.lease.step(now, Event::Leave);
                    }
                }
            } else {
                self.send(home, key, ask, now);
            }
        }
        if step.alone {
            RateCounters::add(&self.counts.alone);
        }
        match step.verdict {
            Verdict::Admit => Admission::Admit,
            Verdict::Refuse { wait } => Admission::Refuse { wait },
            Verdict::Wait { until } => Admission::Wait { until, told: held.told.subscribe() },
        }
    }

    /// Requests tokens from a bucket whose home is this node. Returns `None` if there is no space for another bucket.
    fn at_home(&self, now: Micros, place: usize, key: BucketKey, ask: Ask) -> Option<Grant> {
        let terms = self.rules[place].terms;
        let is_idle = |key: &BucketKey, bucket: &Bucket| {
            self.places.get(&key.rule).is_none_or(|place| bucket.is_full(now, self.rules[*place].terms))
        };
        let mut homes = self.homes.lock();
        homes.entry(now, key, || Bucket::new(now, terms), is_idle).map(|bucket| bucket.step(now, terms, ask))
    }

    /// Sends a request to the home in a separate task.
    ///
    /// A cancelled request thus does not lose the response that others wait for.
    fn send(self: &Arc<Limiter>, home: NodeId, key: BucketKey, ask: Ask, sent: Micros) {
        RateCounters::add(&self.counts.asks);
        let within = Duration::from_micros(LEASE);
        let (limiter, asked) = (Arc::clone(self), self.peers.ask(home, wire::ask(&key, &ask), within));
        self.runtime.spawn(async move {
            let answer = timeout(within, asked).await.unwrap_or_else(|_| Err("there was no response in time".into()));
            let grant =
                answer.and_then(|bytes| wire::read_grant(&bytes).ok_or("the response cannot be decoded".into()));
            let event = match grant {
                Ok(grant) => Event::Answered { sent, grant },
                Err(why) => {
                    RateCounters::add(&limiter.counts.unanswered);
                    tracing::debug!(%home, why, "the home of a limit did not report how much is left");
                    Event::Failed { sent }
                }
            };
            let now = limiter.now();
            if let Some(held) = limiter.leases.lock().get(&key) {
                held.hear(now, event);
            }
        });
    }

    /// Returns the token of a request that another rule refused.
    fn give_back(&self, place: usize, key: BucketKey) {
        let now = self.now();
        if self.peers.view().known <= 1 {
            self.at_home(now, place, key, Ask { unused: 1, ..Ask::default() });
        } else if let Some(held) = self.leases.lock().get(&key) {
            held.lease.step(now, Event::Back);
        }
    }
}

impl HeldLease {
    fn hear(&mut self, now: Micros, event: Event) {
        self.lease.step(now, event);
        self.told.send_replace(());
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let now = self.limiter.now();
        if let Some(held) = self.limiter.leases.lock().get(&self.key) {
            held.lease.step(now, Event::Leave);
        }
    }
}
