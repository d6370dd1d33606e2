//! Minimum rates at which bodies must arrive and responses must be read.
//!
//! The types are pure: from the number of transferred bytes they compute when the next bytes are due.
//!
//! P1: a due time is never beyond the time limit of the whole body.
//! P2: more received bytes never make the due time earlier.

use std::time::Duration;

use tokio::time::Instant;

use crate::config::HttpConfig;

/// Minimum rate and time limits of one body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    pub whole: Duration,
    pub grace: Duration,
    pub bytes_per_second_min: u64,
}

impl Pace {
    pub fn of(config: &HttpConfig) -> Pace {
        Pace {
            whole: Duration::from_secs(config.body_seconds_max),
            grace: Duration::from_secs(config.body_grace_seconds),
            bytes_per_second_min: config.body_bytes_per_second_min,
        }
    }

    /// Returns the time from the start of the body by which more bytes must arrive.
    pub fn due(&self, received: u64) -> Duration {
        let earned_millis = received.saturating_mul(1000) / self.bytes_per_second_min.max(1);
        let due = self.grace.saturating_add(Duration::from_millis(earned_millis));
        due.min(self.whole)
    }
}

/// Remaining time of a reader.
///
/// Each byte that the reader takes extends the time, up to the grace period. A long fast transfer thus allows no longer
/// stall. The time stands still while the server has nothing to send.
#[derive(Clone, Copy, Debug)]
pub struct ReaderPace {
    grace: Duration,
    bytes_per_second_min: u64,
    left: Duration,
    /// Time since which the server waits for the reader, or `None` while the reader waits for the server.
    since: Option<Instant>,
}

impl ReaderPace {
    pub fn new(config: &HttpConfig) -> ReaderPace {
        let grace = Duration::from_secs(config.answer_grace_seconds);
        ReaderPace { grace, bytes_per_second_min: config.answer_bytes_per_second_min.max(1), left: grace, since: None }
    }

    /// Records that the reader has taken everything it was given, which is `bytes` bytes.
    pub fn pause(&mut self, now: Instant, bytes: usize) {
        let Some(since) = self.since.take() else { return };
        let earned = Duration::from_millis((bytes as u64).saturating_mul(1000) / self.bytes_per_second_min);
        let left = self.left.saturating_sub(now.saturating_duration_since(since));
        self.left = left.saturating_add(earned).min(self.grace);
    }

    /// Records that there are bytes for the reader to take.
    pub fn go_on(&mut self, now: Instant) {
        self.since = Some(now);
    }

    /// Returns when the reader must have taken the bytes, or `None` while the reader waits for the server.
    pub fn due(&self) -> Option<Instant> {
        Some(self.since? + self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reader_has_the_grace_and_what_it_earns() {
        let config =
            HttpConfig { answer_grace_seconds: 10, answer_bytes_per_second_min: 1000, ..HttpConfig::default() };
        let (start, seconds) = (Instant::now(), Duration::from_secs);
        let mut pace = ReaderPace::new(&config);
        assert_eq!(pace.due(), None, "nothing is there to be taken");
        pace.go_on(start);
        assert_eq!(pace.due(), Some(start + seconds(10)));
        pace.pause(start + seconds(6), 2000);
        assert_eq!(pace.due(), None);
        pace.go_on(start + seconds(100));
        assert_eq!(pace.due(), Some(start + seconds(106)), "four were left, and two were earned");
        pace.pause(start + seconds(101), 1 << 30);
        pace.go_on(start + seconds(101));
        assert_eq!(pace.due(), Some(start + seconds(111)), "no more than the grace");
    }

    const PACE: Pace =
        Pace { whole: Duration::from_secs(60), grace: Duration::from_secs(10), bytes_per_second_min: 1000 };

    #[test]
    fn a_body_that_has_not_begun_has_the_grace() {
        assert_eq!(PACE.due(0), Duration::from_secs(10));
    }

    #[test]
    fn every_byte_earns_time_up_to_the_time_for_the_whole() {
        assert_eq!(PACE.due(5_000), Duration::from_secs(15));
        assert_eq!(PACE.due(1), Duration::from_millis(10_001));
        assert_eq!(PACE.due(50_001), Duration::from_secs(60));
        assert_eq!(PACE.due(u64::MAX), Duration::from_secs(60), "P1");
    }

    #[test]
    fn more_bytes_never_make_the_next_due_sooner() {
        let dues: Vec<Duration> = (0..2000).map(|step| PACE.due(step * 37)).collect();
        assert!(dues.windows(2).all(|pair| pair[0] <= pair[1]), "P2");
    }
}
