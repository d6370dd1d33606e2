//! How fast a body has to come. Pure: knows how much came, and answers when the next bytes are due.
//!
//! P1: what is due never lies beyond the time for the whole body.
//! P2: more bytes never make the next ones due sooner.

use std::time::Duration;

use crate::config::HttpConfig;

/// The rules for one body.
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

    /// When, from the start of the body, more must have come.
    pub fn due(&self, received: u64) -> Duration {
        let earned_millis = received.saturating_mul(1000) / self.bytes_per_second_min.max(1);
        let due = self.grace.saturating_add(Duration::from_millis(earned_millis));
        due.min(self.whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
