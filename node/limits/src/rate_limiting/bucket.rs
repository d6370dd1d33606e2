//! Token bucket of one limit at its home. The caller provides the time.

/// Microseconds since a start that all calls of one bucket share.
pub type Micros = u64;

pub const SECOND: Micros = 1_000_000;

/// Tolerance for rounding, because tokens are fractional.
const ROUNDING: f64 = 1e-6;
/// Minimum burst in seconds of the rate. The batches that nodes request would exceed a smaller burst.
const BURST_SECONDS_MIN: f64 = 0.1;
/// Burst of a node's share in seconds of its rate.
const SHARE_SECONDS: f64 = 0.2;
/// Minimum burst of a share. Requests arrive at random, so a burst of one would leave a quarter of a small share
/// unused.
const SHARE_BURST_MIN: f64 = 2.0;

/// Fill rate and capacity of a bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    pub per_second: f64,
    pub burst: f64,
}

impl Terms {
    pub fn new(per_second: f64, burst: f64) -> Terms {
        Terms { per_second, burst: burst.max(per_second * BURST_SECONDS_MIN).max(1.0) }
    }

    /// Returns the equal share of each node, with a burst for a short silence of the home. At least one request fits.
    pub fn shared(self, nodes: usize) -> Terms {
        let nodes = nodes.max(1) as f64;
        let per_second = self.per_second / nodes;
        let moment = (per_second * SHARE_SECONDS).max(SHARE_BURST_MIN);
        Terms { per_second, burst: moment.min(self.burst / nodes).max(1.0) }
    }
}

/// Request of a node to a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    pub want: u32,
    /// Tokens that were granted earlier, were not used, and come back.
    pub unused: u32,
    /// Number of requests that the node admitted by its share while the home was silent. The bucket deducts them.
    pub debt: u32,
}

/// Answer of a bucket to an [`Ask`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    pub granted: u32,
    /// Time until the next token, if fewer tokens were granted than wanted.
    pub wait: Micros,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// Number of tokens. It is negative if nodes admitted too many requests.
    tokens: f64,
    at: Micros,
    /// Moment of the bucket's creation.
    since: Micros,
}

impl Bucket {
    /// Creates a full bucket.
    pub fn new(now: Micros, terms: Terms) -> Bucket {
        Bucket { tokens: terms.burst, at: now, since: now }
    }

    pub fn step(&mut self, now: Micros, terms: Terms, ask: Ask) -> Grant {
        self.tokens = self.tokens_at(now, terms);
        self.at = self.at.max(now);
        // Debts from before the creation of this bucket do not count, because the bucket starts full.
        let debt_max = seconds(now.saturating_sub(self.since)) * terms.per_second;
        self.tokens = (self.tokens + f64::from(ask.unused)).min(terms.burst) - f64::from(ask.debt).min(debt_max);
        let granted = whole(self.tokens).min(ask.want);
        self.tokens -= f64::from(granted);
        let wait = if granted < ask.want { micros((1.0 - self.tokens).max(0.0) / terms.per_second) } else { 0 };
        Grant { granted, wait }
    }

    /// Returns whether the bucket is as full as a new one.
    pub fn is_full(&self, now: Micros, terms: Terms) -> bool {
        self.tokens_at(now, terms) + ROUNDING >= terms.burst
    }

    pub fn tokens_at(&self, now: Micros, terms: Terms) -> f64 {
        (self.tokens + seconds(now.saturating_sub(self.at)) * terms.per_second).min(terms.burst)
    }
}

pub(super) fn seconds(micros: Micros) -> f64 {
    micros as f64 / SECOND as f64
}

/// Converts seconds to microseconds. Rounding up ensures that a promised token exists at that moment.
fn micros(seconds: f64) -> Micros {
    // The cast saturates at the largest number.
    (seconds * SECOND as f64).ceil() as Micros
}

/// Returns the number of whole tokens.
pub(super) fn whole(tokens: f64) -> u32 {
    // The cast turns a negative number into zero.
    (tokens + ROUNDING).floor() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms { per_second: 10.0, burst: 5.0 };

    fn wants(want: u32) -> Ask {
        Ask { want, ..Ask::default() }
    }

    #[test]
    fn a_new_bucket_is_full_and_fills_at_its_rate() {
        let mut bucket = Bucket::new(0, TERMS);
        assert!(bucket.is_full(0, TERMS));
        assert_eq!(bucket.step(0, TERMS, wants(8)), Grant { granted: 5, wait: 100_000 });
        assert_eq!(bucket.step(50_000, TERMS, wants(1)), Grant { granted: 0, wait: 50_000 });
        assert_eq!(bucket.step(100_000, TERMS, wants(1)), Grant { granted: 1, wait: 0 });
        assert!(!bucket.is_full(599_000, TERMS) && bucket.is_full(600_000, TERMS));
        assert_eq!(bucket.step(SECOND * 60, TERMS, wants(8)).granted, 5, "never more than the burst");
    }

    #[test]
    fn what_comes_back_fits_in_or_is_gone() {
        let mut bucket = Bucket::new(0, TERMS);
        bucket.step(0, TERMS, wants(4));
        assert_eq!(bucket.step(0, TERMS, Ask { want: 9, unused: 2, debt: 0 }).granted, 3);
        assert_eq!(bucket.step(0, TERMS, Ask { want: 9, unused: 50, debt: 0 }).granted, 5);
    }

    #[test]
    fn a_debt_is_paid_unless_it_is_older_than_the_bucket() {
        let mut bucket = Bucket::new(0, TERMS);
        let owes = |debt| Ask { want: 1, unused: 0, debt };
        assert_eq!(bucket.step(0, TERMS, owes(1000)).granted, 1, "nothing was let in beside a new one");
        let later = SECOND * 2;
        assert_eq!(bucket.step(later, TERMS, owes(15)), Grant { granted: 0, wait: 1_100_000 });
        assert_eq!(bucket.step(later + 1_100_000, TERMS, wants(1)).granted, 1);
    }

    #[test]
    fn time_that_goes_back_gives_nothing() {
        let mut bucket = Bucket::new(SECOND, TERMS);
        bucket.step(SECOND, TERMS, wants(5));
        assert_eq!(bucket.step(0, TERMS, wants(1)).granted, 0);
        assert_eq!(bucket.step(SECOND, TERMS, wants(1)).granted, 0);
    }

    #[test]
    fn a_burst_holds_one_request_and_a_tenth_of_a_second() {
        assert_eq!(Terms::new(0.1, 0.0).burst, 1.0);
        assert_eq!(Terms::new(1000.0, 1.0).burst, 100.0);
        let shared = |rate: f64| Terms { per_second: rate, burst: rate }.shared(3).burst;
        assert_eq!([1.0, 9.0, 90.0].map(shared), [1.0, 2.0, 6.0]);
    }
}
