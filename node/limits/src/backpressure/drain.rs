//! Rate at which a budget is released while requests wait. The caller provides the time.

use std::time::Duration;

/// Minimum duration of a measurement before its rate is used.
pub const MEASURED_MIN: Duration = Duration::from_secs(5);
/// Number of seconds that a measurement looks back.
const WINDOW_SECONDS: u64 = 30;

/// Bounds of the retry time that a refused client receives.
const RETRY_AFTER_MIN: Duration = Duration::from_secs(1);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// Amounts released in each of the last seconds, since requests began to wait.
#[derive(Debug, Default)]
pub struct Drain {
    since: Option<Duration>,
    seconds: [(u64, u64); WINDOW_SECONDS as usize],
}

impl Drain {
    /// Records whether requests wait. A measurement begins when the first one waits.
    pub fn note_waiting(&mut self, now: Duration, is_any: bool) {
        match (is_any, self.since) {
            (true, None) => *self = Drain { since: Some(now), ..Drain::default() },
            (false, Some(_)) => self.since = None,
            _ => {}
        }
    }

    pub fn note_given_back(&mut self, now: Duration, amount: u64) {
        if self.since.is_none() {
            return;
        }
        let second = now.as_secs();
        let place = &mut self.seconds[(second % WINDOW_SECONDS) as usize];
        *place = if place.0 == second { (second, place.1 + amount) } else { (second, amount) };
    }

    /// Returns the amount released per second, or `None` if the measurement is shorter than `MEASURED_MIN`.
    pub fn rate(&self, now: Duration) -> Option<f64> {
        let measured = now.saturating_sub(self.since?).min(Duration::from_secs(WINDOW_SECONDS - 1));
        if measured < MEASURED_MIN {
            return None;
        }
        let first = now.as_secs().saturating_sub(WINDOW_SECONDS - 1);
        let sum: u64 = self.seconds.iter().filter(|(second, _)| *second >= first).map(|(_, amount)| amount).sum();
        Some(sum as f64 / measured.as_secs_f64())
    }

    /// Returns the time after which an amount is likely to be free, in whole seconds.
    ///
    /// Returns the shortest time if the rate is unknown.
    pub fn retry_after(&self, now: Duration, amount: u64) -> Duration {
        let Some(rate) = self.rate(now) else { return RETRY_AFTER_MIN };
        let seconds = (amount as f64 / rate.max(f64::MIN_POSITIVE)).ceil();
        Duration::from_secs(seconds.min(RETRY_AFTER_MAX.as_secs_f64()) as u64).clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn nothing_is_estimated_before_it_was_measured() {
        let mut drain = Drain::default();
        drain.note_given_back(at(99), 1_000_000);
        drain.note_waiting(at(100), true);
        drain.note_given_back(at(101), 50);
        assert_eq!((drain.rate(at(104)), drain.retry_after(at(104), 1_000)), (None, at(1)));
        assert_eq!((drain.rate(at(105)), drain.retry_after(at(105), 100)), (Some(10.0), at(10)));
        drain.note_waiting(at(106), false);
        assert_eq!(drain.rate(at(110)), None);
        drain.note_waiting(at(110), true);
        assert_eq!(drain.rate(at(115)), Some(0.0), "an earlier wait does not count");
    }

    #[test]
    fn an_estimate_has_bounds() {
        let mut drain = Drain::default();
        drain.note_waiting(at(0), true);
        assert_eq!(drain.retry_after(at(10), 1), at(60));
        drain.note_given_back(at(10), 1_000_000);
        assert_eq!(drain.retry_after(at(10), 1), at(1));
    }

    #[test]
    fn only_the_last_seconds_count() {
        let mut drain = Drain::default();
        drain.note_waiting(at(0), true);
        drain.note_given_back(at(1), 1_000_000);
        (100..=129).for_each(|second| drain.note_given_back(at(second), 29));
        let rate = drain.rate(at(129)).expect("measured");
        assert!((29.0..=31.0).contains(&rate), "{rate}");
    }
}
