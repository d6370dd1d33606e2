//! Admission of queries: a budget of permits, shared fairly between organizations and credentials.
//!
//! A query holds its permit while it works, but not while its client reads the response. Async jobs have the lowest
//! priority.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use assay_node_limits::{Budget, Holder, Reading, Refusals, Refused, Reservation};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::AskError;

/// Name of the permits in metrics and log lines, which is that of their setting.
const PERMITS: &str = "queries.running_max";
/// Name of refusals because of too many waiting queries.
const WAITING: &str = "queries.waiting_max";
/// Interval at which an async job checks for a free permit.
const BEHIND_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct Admission {
    permits: Budget,
    refusals: Refusals,
    waiting_max: usize,
    /// Number of waiting queries by organization.
    waiting: Mutex<BTreeMap<Uuid, usize>>,
}

/// Permit to run, released on drop.
pub(crate) type Permit = Reservation;

impl Admission {
    pub fn new(running_max: usize, waiting_max: usize, refusals: &Refusals) -> Arc<Admission> {
        Arc::new(Admission {
            permits: Budget::new(PERMITS, running_max.max(1) as u64, refusals),
            refusals: refusals.clone(),
            waiting_max,
            waiting: Mutex::default(),
        })
    }

    /// Returns the name and the state of the budget.
    pub fn reading(&self) -> (&'static str, Reading) {
        (self.permits.name(), self.permits.reading())
    }

    /// Waits for a permit until a deadline. Dropping the future leaves the queue.
    pub async fn enter(self: &Arc<Admission>, who: Holder, until: Instant) -> Result<Permit, AskError> {
        if let Some(permit) = self.permits.try_acquire(who, 1) {
            return Ok(permit);
        }
        let _place = WaitingPlace::take(self, who.organization)?;
        self.permits.acquire(who, 1, until).await.map_err(|refused| AskError::Refused {
            retry_after_seconds: retry_after(&refused),
            why: format!("too many queries are running ({PERMITS}): {refused}; try again in a moment"),
        })
    }

    /// Waits for a permit that no interactive query waits for.
    pub async fn enter_behind(&self, who: Holder) -> Permit {
        loop {
            if let Some(permit) = self.permits.try_acquire(who, 1) {
                return permit;
            }
            sleep(BEHIND_EVERY).await;
        }
    }
}

pub(crate) fn retry_after(refused: &Refused) -> u64 {
    match refused {
        Refused::Full { retry_after, .. } => retry_after.as_secs().max(1),
        Refused::NeverFits { .. } => 1,
    }
}

/// Place among the waiting queries, released on drop.
struct WaitingPlace {
    admission: Arc<Admission>,
    organization: Uuid,
}

impl WaitingPlace {
    /// Takes a place. An organization has at most half of the places, so that others find one.
    fn take(admission: &Arc<Admission>, organization: Uuid) -> Result<WaitingPlace, AskError> {
        let mut waiting = admission.waiting.lock();
        let (all, own) = (waiting.values().sum::<usize>(), waiting.get(&organization).copied().unwrap_or(0));
        if all >= admission.waiting_max || own >= admission.waiting_max.div_ceil(2) {
            drop(waiting);
            admission.refusals.note(WAITING, organization);
            let why = format!("{all} queries are waiting already ({WAITING}); try again in a moment");
            return Err(AskError::Refused { why, retry_after_seconds: 1 });
        }
        *waiting.entry(organization).or_default() += 1;
        Ok(WaitingPlace { admission: Arc::clone(admission), organization })
    }
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        let mut waiting = self.admission.waiting.lock();
        if let Some(count) = waiting.get_mut(&self.organization) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&self.organization);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt;

    use super::*;

    fn who(organization: u128, credential: u128) -> Holder {
        Holder::new(Uuid::from_u128(organization), Uuid::from_u128(credential))
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    fn counts(admission: &Admission) -> (u64, u64) {
        let (_, reading) = admission.reading();
        (reading.held, reading.waiting)
    }

    #[tokio::test(start_paused = true)]
    async fn a_single_key_has_85_percent_of_the_permits_and_leaves_the_rest_to_others() {
        let admission = Admission::new(16, 64, &Refusals::default());
        let mut own = Vec::new();
        while let Some(permit) = admission.enter(who(1, 1), soon()).now_or_never() {
            own.push(permit.expect("a permit"));
        }
        assert!(own.len() * 100 >= 16 * 85, "{} of 16", own.len());
        let other = admission.enter(who(2, 2), soon()).now_or_never().expect("it need not wait").expect("a permit");
        drop((own, other));
        assert_eq!(counts(&admission), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_query_waits_for_its_permit_and_is_told_when_to_come_again() {
        let admission = Admission::new(1, 8, &Refusals::default());
        let first = admission.enter(who(1, 1), soon()).await.expect("there is room");
        let began = Instant::now();
        let refused = admission.enter(who(2, 2), soon()).await.map(drop);
        let Err(AskError::Refused { retry_after_seconds, why }) = refused else { panic!("{refused:?}") };
        assert!(began.elapsed() >= Duration::from_secs(30) && retry_after_seconds >= 1, "{why}");
        assert!(why.contains("queries.running_max"), "{why}");
        let mut waits = pin!(admission.enter(who(2, 2), soon()));
        assert!(waits.as_mut().now_or_never().is_none());
        drop(first);
        let second = waits.await.expect("its turn");
        assert_eq!(counts(&admission), (1, 0));
        drop(second);
        assert_eq!(counts(&admission), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn who_leaves_gives_the_place_up_and_who_finds_none_is_told() {
        let admission = Admission::new(1, 2, &Refusals::default());
        let _running = admission.enter(who(1, 1), soon()).await.expect("there is room");
        let mut own = Box::pin(admission.enter(who(1, 1), soon()));
        assert!(own.as_mut().now_or_never().is_none());
        let refused = admission.enter(who(1, 3), soon()).await.map(drop);
        assert!(matches!(refused, Err(AskError::Refused { .. })), "half of the places are its own");
        let mut other = Box::pin(admission.enter(who(2, 2), soon()));
        assert!(other.as_mut().now_or_never().is_none());
        assert!(admission.enter(who(3, 4), soon()).await.is_err());
        drop((own, other));
        assert!(admission.waiting.lock().is_empty());
        assert_eq!(counts(&admission), (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_waits_for_comes_last() {
        let admission = Admission::new(1, 8, &Refusals::default());
        let permit = admission.enter(who(1, 1), soon()).await.expect("there is room");
        let mut behind = Box::pin(admission.enter_behind(who(1, 1)));
        assert!(behind.as_mut().now_or_never().is_none());
        let mut first = Box::pin(admission.enter(who(2, 2), soon()));
        assert!(first.as_mut().now_or_never().is_none());
        sleep(BEHIND_EVERY).await;
        drop(permit);
        assert!(behind.as_mut().now_or_never().is_none());
        drop(first.await.expect("its turn"));
        drop(behind.await);
        assert_eq!(counts(&admission), (0, 0));
    }
}
