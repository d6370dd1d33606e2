//! Fences before a credential is refused: one read behind a fence of the catalog, shared by concurrent callers and
//! rate-limited.
//!
//! A caller joins the next round, so that its fence covers everything acknowledged before the call. Rounds are
//! rate-limited, so that attempts with random keys cannot overload the leader of the catalog. A burst is allowed, so
//! that other callers rarely wait. Requests of authenticated callers do not use these rounds: their fences are shared
//! at a lower level, and they have limits of their own.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use assay_cluster::{Cluster, FenceError};
use assay_storage_model::GroupId;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;

/// Time between two rounds at a sustained rate.
pub const FENCE_INTERVAL: Duration = Duration::from_millis(250);
/// Upper bound of a burst of rounds, enough for a few clients with an old key.
pub const FENCES_AT_ONCE_MAX: u32 = 20;

type Round = Shared<BoxFuture<'static, Result<(), FenceError>>>;

pub struct Fences {
    cluster: Arc<Cluster>,
    gate: Mutex<Gate>,
}

#[derive(Default)]
struct Gate {
    /// Round that has not started.
    next: Option<Round>,
    pace: Pace,
}

impl fmt::Debug for Fences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fences").finish_non_exhaustive()
    }
}

impl Fences {
    pub fn new(cluster: Arc<Cluster>) -> Arc<Fences> {
        Arc::new(Fences { cluster, gate: Mutex::default() })
    }

    /// Returns when everything acknowledged before the call can be read here.
    pub async fn pass(self: &Arc<Self>) -> Result<(), FenceError> {
        let round = {
            let mut gate = self.gate.lock();
            let Gate { next, pace } = &mut *gate;
            let begin = || round(Arc::downgrade(self), pace.turn(Instant::now())).boxed().shared();
            next.get_or_insert_with(begin).clone()
        };
        round.await
    }
}

/// Waits for its turn, closes the round and reads behind a fence. Any of the waiting callers drives it.
async fn round(fences: Weak<Fences>, turn: Instant) -> Result<(), FenceError> {
    tokio::time::sleep_until(turn.into()).await;
    let gone = || FenceError::Stopped("this node is shutting down".into());
    let fences = fences.upgrade().ok_or_else(gone)?;
    fences.gate.lock().next = None;
    fences.cluster.fence(GroupId::CATALOG).await.map(drop)
}

/// Rate limit of rounds.
#[derive(Debug, Default)]
struct Pace {
    /// Time at which the next round would be due at the sustained rate.
    due: Option<Instant>,
}

impl Pace {
    fn turn(&mut self, now: Instant) -> Instant {
        let due = self.due.map_or(now, |due| due.max(now)) + FENCE_INTERVAL;
        self.due = Some(due);
        due.checked_sub(FENCE_INTERVAL * FENCES_AT_ONCE_MAX).map_or(now, |turn| turn.max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_rounds_come_at_once_and_the_rest_at_the_pace() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        for _ in 0..FENCES_AT_ONCE_MAX {
            assert_eq!(pace.turn(start), start);
        }
        assert_eq!(pace.turn(start), start + FENCE_INTERVAL);
        assert_eq!(pace.turn(start + FENCE_INTERVAL), start + FENCE_INTERVAL * 2);
        let later = start + Duration::from_secs(60);
        for _ in 0..FENCES_AT_ONCE_MAX {
            assert_eq!(pace.turn(later), later);
        }
        assert!(pace.turn(later) > later);
    }
}
