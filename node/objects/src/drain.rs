//! How fast places are given back while writes wait for them, for the time that a refusal names. Pure.

use std::time::{Duration, Instant};

/// Nothing is said of the rate before it was measured for so long; older measures give way after as long.
const MEASURED_FOR: Duration = Duration::from_secs(5);
/// What a refusal names at the least, and before there is a rate.
pub const RETRY_AFTER_MIN: Duration = Duration::from_secs(1);
/// And at the most: by then other writes have come and gone.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub struct Drain {
    /// Of the measure that goes on: when it began, and the bytes given back since.
    current: Option<(Instant, u64)>,
    bytes_a_second: Option<f64>,
}

impl Drain {
    /// Bytes were given back; `waits` says whether anyone waits for them. Without waiters the rate says nothing.
    pub fn note(&mut self, now: Instant, bytes: usize, waits: bool) {
        if !waits {
            self.current = None;
            return;
        }
        let (began, before) = self.current.unwrap_or((now, 0));
        let sum = before.saturating_add(bytes as u64);
        let elapsed = now.saturating_duration_since(began);
        if elapsed < MEASURED_FOR {
            self.current = Some((began, sum));
            return;
        }
        self.bytes_a_second = Some(sum as f64 / elapsed.as_secs_f64());
        self.current = Some((now, 0));
    }

    /// How long so many bytes take at the rate that was measured last.
    pub fn takes(&self, bytes: usize) -> Duration {
        let Some(rate) = self.bytes_a_second.filter(|rate| *rate > 0.0) else { return RETRY_AFTER_MIN };
        let seconds = (bytes as f64 / rate).ceil().min(RETRY_AFTER_MAX.as_secs_f64());
        Duration::from_secs_f64(seconds).max(RETRY_AFTER_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_known_after_five_seconds_of_waiting_and_bounds_what_is_said() {
        let (mut drain, start) = (Drain::default(), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        (0..5).for_each(|second| drain.note(at(second), 1000, true));
        assert_eq!(drain.takes(1_000_000), RETRY_AFTER_MIN, "not measured for long enough");
        drain.note(at(5), 1000, true);
        assert_eq!(drain.takes(12_000), Duration::from_secs(10), "6000 bytes in 5 seconds");
        assert_eq!(drain.takes(1), RETRY_AFTER_MIN);
        assert_eq!(drain.takes(usize::MAX), RETRY_AFTER_MAX);
    }

    #[test]
    fn a_time_without_waiters_is_not_part_of_the_measure() {
        let (mut drain, start) = (Drain::default(), Instant::now());
        drain.note(start, 1000, true);
        drain.note(start + Duration::from_secs(60), 1, false);
        drain.note(start + Duration::from_secs(61), 1000, true);
        drain.note(start + Duration::from_secs(66), 4000, true);
        assert_eq!(drain.takes(10_000), Duration::from_secs(10));
    }
}
