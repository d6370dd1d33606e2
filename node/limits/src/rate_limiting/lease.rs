//! Lease: tokens of a remote bucket that a node holds for a short time, in batches.
//!
//! The caller provides the time and sends the returned messages.
//!
//! ```text
//! request ──> a token is there ─────────────────────────────> admitted
//!         ├─> the home said lately that it has none ────────> refused, nobody is asked
//!         ├─> the home does not answer ─────────────────────> admitted or refused by this node's share
//!         └─> the home is asked, for all who wait and a bit more ──> waits
//! ```
//! Requests admitted by the share are a debt. The next request to the home reports it, and the home deducts it.

use super::bucket::{Ask, Bucket, Grant, Micros, SECOND, Terms, seconds, whole};
use super::mix::mix;

/// Minimum average time between requests to the home for one limit.
pub const ASK_EVERY: Micros = 50_000;
/// Number of requests to the home that may be sent at once after a pause.
const ASKS_AT_ONCE: f64 = 2.0;
/// Maximum time that a request waits for the home. Then the home counts as silent.
pub const ANSWER_WAIT_MAX: Micros = 50_000;
/// Lifetime of tokens, and the time limit of a response.
pub const LEASE: Micros = 200_000;
/// Time after which an unanswered request to the home counts as lost.
const ASK_ENDS: Micros = LEASE + 100_000;
/// Time between requests to a silent home.
const PROBE_EVERY: Micros = 100_000;
/// Maximum time until a refused node asks again, even if the next token comes later.
const CLOSED_MAX: Micros = SECOND;
/// Upper bound of the tokens that all nodes together hold in advance, in seconds of the rate.
const AHEAD_SECONDS: f64 = 0.25;
/// Time window in which requests are counted to estimate their rate.
const DEMAND_WINDOW: Micros = 100_000;

/// Event that is not a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A waiting request left.
    Leave,
    /// Another rule refused a request that was admitted here.
    Back,
    /// The home answered the request sent at `sent`.
    Answered { sent: Micros, grant: Grant },
    /// The request failed or the other node is not the home.
    Failed { sent: Micros },
    /// Another node is now the home.
    Moved,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Admit,
    /// Refusal with the time until the next token.
    Refuse {
        wait: Micros,
    },
    /// The request must decide again after a message, and at `until` at the latest.
    Wait {
        until: Micros,
    },
}

/// Decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// Message for the home.
    pub ask: Option<Ask>,
    /// Whether this node's share decided.
    pub alone: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lease {
    tokens: u32,
    /// Moment at which the tokens expire.
    ends: Micros,
    unused: u32,
    debt: u32,
    waiting: u32,
    asked: Option<LeaseRequest>,
    /// Bucket that limits the requests to the home.
    asks: Bucket,
    /// Moment before which no request is sent to the home.
    closed: Micros,
    /// Moment of the next token, according to the home.
    opens: Micros,
    /// Moment at which the last request to the home failed.
    lost: Option<Micros>,
    share: Bucket,
    demand: Demand,
    jitter: Jitter,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct LeaseRequest {
    at: Micros,
    want: u32,
    debt: u32,
}

const ASKS: Terms = Terms { per_second: SECOND as f64 / ASK_EVERY as f64, burst: ASKS_AT_ONCE };

impl Lease {
    pub fn new(now: Micros, terms: Terms, nodes: usize) -> Lease {
        Lease {
            tokens: 0,
            ends: now,
            unused: 0,
            debt: 0,
            waiting: 0,
            asked: None,
            asks: Bucket::new(now, ASKS),
            closed: now,
            opens: now,
            lost: None,
            share: Bucket::new(now, terms.shared(nodes)),
            demand: Demand { per_second: 0.0, count: 0, since: now },
            jitter: Jitter(now),
        }
    }

    pub fn step(&mut self, now: Micros, event: Event) {
        self.expire(now);
        let is_this = |sent| self.asked.is_some_and(|asked: LeaseRequest| asked.at == sent);
        match event {
            Event::Leave => self.waiting = self.waiting.saturating_sub(1),
            Event::Back => {
                self.ends = if self.tokens == 0 { now + LEASE } else { self.ends };
                self.tokens += 1;
            }
            Event::Answered { sent, grant } if is_this(sent) => self.answered(now, grant),
            Event::Failed { sent } if is_this(sent) => self.failed(now),
            // The request was given up.
            Event::Answered { .. } | Event::Failed { .. } => {}
            Event::Moved => self.lost = None,
        }
    }

    /// Decides about a request. `first` is false for a request that waited and decides again.
    pub fn take(&mut self, now: Micros, terms: Terms, nodes: usize, first: bool) -> Decision {
        self.expire(now);
        if first {
            self.demand.count(now);
        }
        if self.tokens > 0 {
            self.tokens -= 1;
            return Decision { verdict: Verdict::Admit, ask: None, alone: false };
        }
        if let Some(asked) = self.asked {
            let until = asked.at + ANSWER_WAIT_MAX;
            return match now < until && self.lost.is_none() {
                true => self.wait(until, first, None),
                false => self.alone(now, terms, nodes, None),
            };
        }
        if let Some(lost) = self.lost {
            let due = now >= lost + PROBE_EVERY;
            let ask = due.then(|| self.ask(now, terms, nodes, 1));
            return self.alone(now, terms, nodes, ask);
        }
        if now < self.closed {
            let wait = self.opens.max(self.closed) - now;
            return Decision { verdict: Verdict::Refuse { wait }, ask: None, alone: false };
        }
        let slot = self.asks.step(now, ASKS, Ask { want: 1, ..Ask::default() });
        if slot.granted == 0 {
            return self.wait(now + slot.wait, first, None);
        }
        let others = self.waiting;
        let ask = self.ask(now, terms, nodes, if first { others + 1 } else { others.max(1) });
        self.wait(now + ANSWER_WAIT_MAX, first, Some(ask))
    }

    /// Returns whether a new lease would behave the same.
    pub fn is_idle(&self, now: Micros, terms: Terms, nodes: usize) -> bool {
        let holds = self.waiting > 0 || self.asked.is_some() || self.debt > 0 || (self.tokens > 0 && now < self.ends);
        !holds && self.opens <= now && self.share.is_full(now, terms.shared(nodes))
    }

    fn wait(&mut self, until: Micros, first: bool, ask: Option<Ask>) -> Decision {
        self.waiting += u32::from(first);
        Decision { verdict: Verdict::Wait { until }, ask, alone: false }
    }

    /// Decides by this node's share because the home is silent.
    fn alone(&mut self, now: Micros, terms: Terms, nodes: usize, ask: Option<Ask>) -> Decision {
        let grant = self.share.step(now, terms.shared(nodes), Ask { want: 1, ..Ask::default() });
        let verdict = match grant.granted {
            0 => Verdict::Refuse { wait: grant.wait },
            _ => {
                self.debt = self.debt.saturating_add(1);
                Verdict::Admit
            }
        };
        Decision { verdict, ask, alone: true }
    }

    /// Creates a request to the home for `needed` requests and for those expected before the next one.
    fn ask(&mut self, now: Micros, terms: Terms, nodes: usize, needed: u32) -> Ask {
        let soon = self.demand.at(now) * seconds(ASK_EVERY);
        let ahead = soon.min(terms.per_second * AHEAD_SECONDS / nodes.max(1) as f64);
        let want = needed.saturating_add(whole(ahead));
        self.asked = Some(LeaseRequest { at: now, want, debt: self.debt });
        // Unused tokens are reported once, because a repeated report would create tokens.
        Ask { want, unused: std::mem::take(&mut self.unused), debt: self.debt }
    }

    fn answered(&mut self, now: Micros, grant: Grant) {
        let Some(asked) = self.asked.take() else { return };
        self.lost = None;
        self.debt -= asked.debt.min(self.debt);
        // The lifetime starts with the request, so valid tokens have left the bucket only recently.
        self.ends = asked.at + LEASE;
        self.tokens = self.tokens.saturating_add(grant.granted.min(asked.want));
        if grant.granted < asked.want {
            self.opens = now.saturating_add(grant.wait);
            self.closed = now + grant.wait.clamp(ASK_EVERY, CLOSED_MAX) + self.jitter.below(now, ASK_EVERY);
        }
    }

    /// Records a failed request to the home.
    ///
    /// The home may have received it, so a debt may be deducted twice but is never lost.
    fn failed(&mut self, now: Micros) {
        if self.asked.take().is_some() {
            self.lost = Some(now);
        }
    }

    fn expire(&mut self, now: Micros) {
        if self.tokens > 0 && now >= self.ends {
            self.unused = self.unused.saturating_add(std::mem::take(&mut self.tokens));
        }
        if self.asked.is_some_and(|asked| now >= asked.at + ASK_ENDS) {
            self.failed(now);
        }
    }
}

/// Jitter for the next request to the home.
///
/// Without it, nodes that are refused at the same pace ask in a fixed order, and the first one gets all tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Jitter(u64);

impl Jitter {
    fn below(&mut self, now: Micros, most: Micros) -> Micros {
        self.0 = mix(self.0 ^ now);
        self.0 % most
    }
}

/// Estimated rate of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Demand {
    per_second: f64,
    count: u32,
    since: Micros,
}

impl Demand {
    fn count(&mut self, now: Micros) {
        self.settle(now);
        self.count = self.count.saturating_add(1);
    }

    fn at(&mut self, now: Micros) -> f64 {
        self.settle(now);
        self.per_second
    }

    /// Averages the old and the new rate, so the estimate adapts within a few windows.
    fn settle(&mut self, now: Micros) {
        let passed = now.saturating_sub(self.since);
        if passed >= DEMAND_WINDOW {
            self.per_second = (self.per_second + f64::from(self.count) / seconds(passed)) / 2.0;
            (self.count, self.since) = (0, now);
        }
    }
}
