//! Limit of the bandwidth that a backup takes.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// Limit of bytes a second, shared by all clones.
#[derive(Clone, Debug, Default)]
pub struct Pace(Option<Arc<PaceState>>);

#[derive(Debug)]
struct PaceState {
    bytes_a_second: u64,
    /// Time at which the next bytes may pass.
    next: Mutex<Option<Instant>>,
}

impl Pace {
    /// Creates a limit, or none for `None`.
    pub fn new(bytes_a_second: Option<u64>) -> Pace {
        Pace(bytes_a_second.map(|bytes| Arc::new(PaceState { bytes_a_second: bytes.max(1), next: Mutex::default() })))
    }

    /// Waits until these bytes may pass.
    pub async fn pass(&self, bytes: u64) {
        let Some(state) = &self.0 else { return };
        let at = {
            let mut next = state.next.lock();
            let at = next.map_or_else(Instant::now, |next| next.max(Instant::now()));
            let takes = Duration::from_secs_f64(bytes as f64 / state.bytes_a_second as f64);
            *next = Some(at + takes);
            at
        };
        sleep_until(at).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn bytes_pass_at_the_pace_over_all_clones() {
        let pace = Pace::new(Some(1_000));
        let began = Instant::now();
        for _ in 0..5 {
            pace.clone().pass(500).await;
        }
        assert_eq!(began.elapsed().as_millis(), 2_000);
        Pace::new(None).pass(1 << 40).await;
        assert_eq!(began.elapsed().as_millis(), 2_000);
    }
}
