//! How many requests may come: limits of the configuration, each for all nodes of the cluster together.
//!
//! ```text
//! caller known ──> rules that the request is about ──> a token of each ──> body is read, request is served
//!                                                        └─> none: 429, Retry-After
//! ```
//! A bucket counts what a rule counts together, such as an organization's requests. Each has one home among the nodes,
//! `key`, which holds the tokens, `bucket`; the other nodes, and the home's own requests, take them from there in small
//! batches that are worth something for a moment only, `lease`. A node alone takes them out of the bucket itself.
//!
//! A node that cannot reach a home lets in its share of the limit, the limit divided by the nodes, and says so when it reaches
//! it again. A home that was restarted begins with a burst.
//!
//! The other nodes are reached through `RatePeers`: this room does not know how. Without rules nothing of this runs.

mod bucket;
mod counts;
mod key;
mod lease;
mod mixed;
mod rules;
#[cfg(test)]
mod sim;
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
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use uuid::Uuid;

pub use rules::{LimitsConfig, Per, RateRule};

use crate::refusal::{Kind, Refusal};
use bucket::{Ask, Bucket, Grant, Micros, SECOND};
use counts::Counts;
use key::Key;
use lease::{Event, LEASE, Lease, Verdict};
use rules::Rule;
use table::Table;

/// The nodes of the cluster as this one sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateView {
    pub own: NodeId,
    /// All that are part of it, also those that are silent.
    pub known: usize,
    /// Those that homes are chosen among, this node with them.
    pub alive: Vec<NodeId>,
}

/// How other nodes are seen and asked.
pub trait RatePeers: Send + Sync + fmt::Debug + 'static {
    /// Asked for each request that a rule is about: it costs next to nothing.
    fn view(&self) -> Arc<RateView>;

    /// The other node gives it to [`Rates::answer`].
    fn ask(&self, node: NodeId, body: Bytes, within: Duration) -> BoxFuture<'static, Result<Bytes, String>>;
}

/// A handle; clones share everything.
#[derive(Clone, Debug, Default)]
pub struct Rates(Option<Arc<Gate>>);

#[derive(Debug)]
struct Gate {
    rules: Vec<Rule>,
    places: HashMap<u64, usize>,
    leases: Mutex<Table<Held>>,
    /// Never held while `leases` is waited for.
    homes: Mutex<Table<Bucket>>,
    peers: Arc<dyn RatePeers>,
    counts: Counts,
    began: Instant,
    /// Where asks run on when the request that made them is gone.
    runtime: Handle,
}

/// A lease, where it is from, and who waits for it.
#[derive(Debug)]
struct Held {
    lease: Lease,
    home: NodeId,
    told: watch::Sender<()>,
}

/// One request that waits for one bucket; dropping it ends that, also where the caller hung up.
struct Waits {
    gate: Arc<Gate>,
    key: Key,
}

enum Outcome {
    Admit,
    Refuse { wait: Micros },
    Wait { until: Micros, told: watch::Receiver<()> },
}

impl Rates {
    /// Without rules there is nothing to be asked for.
    pub fn new(config: &LimitsConfig, peers: Arc<dyn RatePeers>, runtime: Handle) -> Result<Rates, String> {
        config.check()?;
        if config.rates.is_empty() {
            return Ok(Rates::default());
        }
        let rules: Vec<Rule> = config.rates.iter().map(Rule::new).collect::<Result<_, _>>()?;
        let places = rules.iter().enumerate().map(|(place, rule)| (rule.fingerprint, place)).collect();
        let counts = Counts::new(rules.len());
        let (leases, homes, began) = (Mutex::default(), Mutex::default(), Instant::now());
        Ok(Rates(Some(Arc::new(Gate { rules, places, leases, homes, peers, counts, began, runtime }))))
    }

    /// Whether requests are counted at all.
    pub fn has_rules(&self) -> bool {
        self.0.is_some()
    }

    /// What another node asks of a bucket whose home is here; otherwise why it gets no answer.
    pub fn answer(&self, body: &[u8]) -> Result<Bytes, String> {
        let gate = self.0.as_ref().ok_or("this node has no rules")?;
        let (key, ask) = wire::read_ask(body).ok_or("the question does not read")?;
        let place = gate.places.get(&key.rule).ok_or("this node has no such rule")?;
        let view = gate.peers.view();
        // Whoever asks sees other nodes than this one does: as long as that is so nobody gives out the whole limit.
        if key.home(&view.alive) != Some(view.own) {
            return Err("the home of this bucket is another node".into());
        }
        let grant = gate.at_home(gate.now(), *place, key, ask).ok_or("this node counts as much as it can")?;
        Ok(wire::grant(&grant))
    }

    /// Prometheus text format.
    pub(crate) fn text(&self) -> String {
        let Some(gate) = &self.0 else { return String::new() };
        let (buckets, leases) = (gate.homes.lock().len(), gate.leases.lock().len());
        gate.counts.text(&gate.rules, buckets, leases)
    }

    /// Lets a request of somebody who is known in, or refuses it. `project` says which project it counts for.
    pub(crate) async fn admit(
        &self,
        method: &str,
        path: &str,
        who: &Principal,
        project: impl Fn() -> Option<Uuid>,
    ) -> Result<(), Refusal> {
        let Some(gate) = &self.0 else { return Ok(()) };
        let mut taken: Vec<(usize, Key)> = Vec::new();
        for (place, rule) in gate.rules.iter().enumerate().filter(|(_, rule)| rule.is_about(method, path, who)) {
            let key = rule.key(who, &project);
            if let Err(wait) = gate.take(place, key).await {
                gate.counts.refused(place);
                taken.into_iter().for_each(|(place, key)| gate.give_back(place, key));
                return Err(refusal(rule, wait));
            }
            taken.push((place, key));
        }
        taken.into_iter().for_each(|(place, _)| gate.counts.admitted(place));
        Ok(())
    }
}

/// Names the rule, so that whoever is refused knows whom to ask about what.
fn refusal(rule: &Rule, wait: Micros) -> Refusal {
    let seconds = wait.div_ceil(SECOND).max(1);
    let why = format!("the rate limit {} is reached; try again in {seconds} s", rule.config.said());
    Refusal { retry_after_seconds: Some(seconds), ..Refusal::new(Kind::Busy, why) }
}

impl Gate {
    fn now(&self) -> Micros {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(Micros::MAX)
    }

    /// One token, or how long there will be none.
    async fn take(self: &Arc<Gate>, place: usize, key: Key) -> Result<(), Micros> {
        let mut waits: Option<Waits> = None;
        loop {
            match self.step(place, key, waits.is_none()) {
                Outcome::Admit => return Ok(()),
                Outcome::Refuse { wait } => return Err(wait),
                Outcome::Wait { until, mut told } => {
                    waits.get_or_insert_with(|| Waits { gate: Arc::clone(self), key });
                    let until = self.began + Duration::from_micros(until);
                    // Whichever comes first: it is looked again.
                    let _ = timeout_at(until, told.changed()).await;
                }
            }
        }
    }

    fn step(self: &Arc<Gate>, place: usize, key: Key, first: bool) -> Outcome {
        let (now, terms, view) = (self.now(), self.rules[place].terms, self.peers.view());
        let full = Outcome::Refuse { wait: SECOND };
        if view.known <= 1 {
            let grant = self.at_home(now, place, key, Ask { want: 1, ..Ask::default() });
            return match grant {
                Some(Grant { granted: 0, wait }) => Outcome::Refuse { wait },
                Some(_) => Outcome::Admit,
                None => full,
            };
        }
        let home = key.home(&view.alive).unwrap_or(view.own);
        let mut leases = self.leases.lock();
        let make = || Held { lease: Lease::new(now, terms, view.known), home, told: watch::Sender::new(()) };
        let is_idle = |key: &Key, held: &Held| {
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
            Counts::add(&self.counts.alone);
        }
        match step.verdict {
            Verdict::Admit => Outcome::Admit,
            Verdict::Refuse { wait } => Outcome::Refuse { wait },
            Verdict::Wait { until } => Outcome::Wait { until, told: held.told.subscribe() },
        }
    }

    /// None where there is no room for another bucket.
    fn at_home(&self, now: Micros, place: usize, key: Key, ask: Ask) -> Option<Grant> {
        let terms = self.rules[place].terms;
        let is_idle = |key: &Key, bucket: &Bucket| {
            self.places.get(&key.rule).is_none_or(|place| bucket.is_full(now, self.rules[*place].terms))
        };
        let mut homes = self.homes.lock();
        homes.entry(now, key, || Bucket::new(now, terms), is_idle).map(|bucket| bucket.step(now, terms, ask))
    }

    /// In a task of its own, which ends: a request that is given up takes nobody's answer with it.
    fn send(self: &Arc<Gate>, home: NodeId, key: Key, ask: Ask, sent: Micros) {
        Counts::add(&self.counts.asks);
        let within = Duration::from_micros(LEASE);
        let (gate, asked) = (Arc::clone(self), self.peers.ask(home, wire::ask(&key, &ask), within));
        self.runtime.spawn(async move {
            let answer = timeout(within, asked).await.unwrap_or_else(|_| Err("no answer in time".into()));
            let grant = answer.and_then(|bytes| wire::read_grant(&bytes).ok_or("it does not read".into()));
            let event = match grant {
                Ok(grant) => Event::Answered { sent, grant },
                Err(why) => {
                    Counts::add(&gate.counts.unanswered);
                    tracing::debug!(%home, why, "the home of a limit does not say how much is left");
                    Event::Failed { sent }
                }
            };
            let now = gate.now();
            if let Some(held) = gate.leases.lock().get(&key) {
                held.hear(now, event);
            }
        });
    }

    /// What was taken for a request that another limit refused.
    fn give_back(&self, place: usize, key: Key) {
        let now = self.now();
        if self.peers.view().known <= 1 {
            self.at_home(now, place, key, Ask { unused: 1, ..Ask::default() });
        } else if let Some(held) = self.leases.lock().get(&key) {
            held.lease.step(now, Event::Back);
        }
    }
}

impl Held {
    fn hear(&mut self, now: Micros, event: Event) {
        self.lease.step(now, event);
        self.told.send_replace(());
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        let now = self.gate.now();
        if let Some(held) = self.gate.leases.lock().get(&self.key) {
            held.lease.step(now, Event::Leave);
        }
    }
}
