//! Threshold of slow queries.

use std::time::Duration;

/// Duration from which a query is logged as slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowThreshold(Option<Duration>);

impl SlowThreshold {
    /// Creates a threshold. With 0 seconds no query is slow.
    pub fn of_seconds(seconds: u64) -> SlowThreshold {
        SlowThreshold(Some(Duration::from_secs(seconds)).filter(|least| !least.is_zero()))
    }

    /// Returns whether a query took longer than the threshold.
    pub fn is_slow(self, took: Duration) -> bool {
        self.0.is_some_and(|least| took > least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_slow_beyond_the_threshold_and_never_with_none() {
        let two = SlowThreshold::of_seconds(2);
        assert!(!two.is_slow(Duration::from_secs(2)) && two.is_slow(Duration::from_millis(2001)));
        assert!(!SlowThreshold::of_seconds(0).is_slow(Duration::from_secs(1 << 20)));
    }
}
