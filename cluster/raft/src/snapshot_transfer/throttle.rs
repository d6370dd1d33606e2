//! Throttle, in bytes a second, of background transfers between nodes, such as snapshots of rebuilt replicas.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Burst that is allowed after a quiet time, as a share of a second.
const BURST: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub struct Throttle {
    bytes_a_second: u64,
    /// Time at which everything taken so far has passed at the configured rate.
    passed_at: Mutex<Option<Instant>>,
}

impl Throttle {
    /// Creates a throttle. There is no limit if `bytes_a_second` is 0.
    pub fn new(bytes_a_second: u64) -> Throttle {
        Throttle { bytes_a_second, passed_at: Mutex::new(None) }
    }

    pub(crate) async fn take(&self, bytes: usize) {
        let wait = self.wait(bytes, Instant::now());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    fn wait(&self, bytes: usize, now: Instant) -> Duration {
        if self.bytes_a_second == 0 {
            return Duration::ZERO;
        }
        let takes = Duration::from_secs_f64(bytes as f64 / self.bytes_a_second as f64);
        let mut passed_at = self.passed_at.lock();
        let start = passed_at.map_or(now, |at| at.max(now));
        let end = start + takes;
        *passed_at = Some(end);
        end.saturating_duration_since(now).saturating_sub(BURST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_the_rest_waits_its_turn() {
        let (throttle, now) = (Throttle::new(1000), Instant::now());
        assert_eq!(throttle.wait(200, now), Duration::ZERO);
        assert_eq!(throttle.wait(1000, now), Duration::from_secs(1));
        assert_eq!(throttle.wait(1000, now), Duration::from_secs(2));
        assert_eq!(throttle.wait(100, now + Duration::from_secs(60)), Duration::ZERO);
        assert_eq!(Throttle::new(0).wait(usize::MAX, now), Duration::ZERO);
    }
}
