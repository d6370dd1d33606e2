//! Token bucket of one limit at its home. Pure: the caller brings the time, in microseconds since some start.

/// Microseconds since some start, the same for all calls of one bucket.
pub type Micros = u64;

pub const SECOND: Micros = 1_000_000;

/// Tolerance for rounding: tokens are counted in fractions.
const ROUNDING: f64 = 1e-6;
/// A burst of less than this much of the rate could not be handed out in the batches that nodes ask for.
const BURST_SECONDS_MIN: f64 = 0.1;
/// Burst of a node's share, in seconds of its rate.
const SHARE_SECONDS: f64 = 0.2;
/// Requests come at random: with room for one alone a quarter of a small share would go unused.
const SHARE_BURST_MIN: f64 = 2.0;

/// Rate at which a bucket fills, and the amount that it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    pub per_second: f64,
    pub burst: f64,
}

impl Terms {
    pub fn new(per_second: f64, burst: f64) -> Terms {
        Terms { per_second, burst: burst.max(per_second * BURST_SECONDS_MIN).max(1.0) }
    }

    /// Returns the equal share of each node, with a burst for a moment's silence. At least one request fits.
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
    /// Tokens granted before and not used, which come back.
    pub unused: u32,
    /// Requests that the node admitted by its share while the home did not answer. They are taken out.
    pub debt: u32,
}

/// Answer of a bucket to an [`Ask`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    pub granted: u32,
    /// Time until the next token, if fewer were granted than wanted.
    pub wait: Micros,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// Negative if nodes admitted more than there was.
    tokens: f64,
    at: Micros,
    /// Moment at which it was made.
    since: Micros,
}

impl Bucket {
    /// Makes a full bucket.
    pub fn new(now: Micros, terms: Terms) -> Bucket {
        Bucket { tokens: terms.burst, at: now, since: now }
    }

    pub fn step(&mut self, now: Micros, terms: Terms, ask: Ask) -> Grant {
        self.tokens = self.tokens_at(now, terms);
        self.at = self.at.max(now);
        // Requests admitted before this bucket existed were not admitted beside it.
        let debt_max = seconds(now.saturating_sub(self.since)) * terms.per_second;
        self.tokens = (self.tokens + f64::from(ask.unused)).min(terms.burst) - f64::from(ask.debt).min(debt_max);
        let granted = whole(self.tokens).min(ask.want);
        self.tokens -= f64::from(granted);
        let wait = if granted < ask.want { micros((1.0 - self.tokens).max(0.0) / terms.per_second) } else { 0 };
        Grant { granted, wait }
    }

    /// Returns whether it is as full as a new one.
    pub fn is_full(&self, now: Micros, terms: Terms) -> bool {
        self.tokens_at(now, terms) + ROUNDING >= terms.burst
    }

    fn tokens_at(&self, now: Micros, terms: Terms) -> f64 {
        (self.tokens + seconds(now.saturating_sub(self.at)) * terms.per_second).min(terms.burst)
    }
}

pub(super) fn seconds(micros: Micros) -> f64 {
    micros as f64 / SECOND as f64
}

/// Rounds up, so that a token promised for that moment is there.
fn micros(seconds: f64) -> Micros {
    // A number that is too large becomes the largest one.
    (seconds * SECOND as f64).ceil() as Micros
}

/// Whole tokens.
pub(super) fn whole(tokens: f64) -> u32 {
    // Below none becomes none.
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
