//! Slots of running calls, shared between organizations.
//!
//! An organization has at most half of the slots, also while nobody else waits: calls run for minutes, and a slot that is
//! taken cannot be given back earlier. It also has at most half of the places in which calls wait. Calls that wait are
//! served in turns between organizations and credentials.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use assay_node_limits::{Budget, Holder, Refusals, Refused, Reservation};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::error::CodeError;

/// Name of the slots in metrics and log lines, which is that of their setting.
pub const FUNCTION_SLOTS: &str = "functions.running_max";
/// Name of refusals because of too many waiting calls.
const WAITING: &str = "functions.waiting_max";

/// Admission of calls to the slots of a node.
#[derive(Debug)]
pub struct FunctionAdmission {
    slots: Budget,
    refusals: Refusals,
    own_max: usize,
    waiting: Arc<Semaphore>,
    waiting_max: usize,
    organizations: Mutex<HashMap<Uuid, Weak<OrganizationShare>>>,
}

/// Slots and waiting places that an organization may use.
#[derive(Debug)]
struct OrganizationShare {
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

/// Slot of a running call, free again when it is dropped.
#[derive(Debug)]
pub struct FunctionSlot {
    _slot: Reservation,
    _own: OwnedSemaphorePermit,
    _organization: Arc<OrganizationShare>,
}

/// Slots of an admission, and the calls that use them or wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotReading {
    pub slots: u64,
    pub running: u64,
    pub waiting: u64,
}

impl FunctionAdmission {
    pub fn new(running_max: usize, waiting_max: usize, refusals: &Refusals) -> FunctionAdmission {
        let running_max = running_max.max(1);
        FunctionAdmission {
            slots: Budget::new(FUNCTION_SLOTS, running_max as u64, refusals),
            refusals: refusals.clone(),
            own_max: running_max.div_ceil(2),
            waiting: Arc::new(Semaphore::new(waiting_max)),
            waiting_max,
            organizations: Mutex::default(),
        }
    }

    pub fn reading(&self) -> SlotReading {
        let slots = self.slots.reading();
        let waiting = self.waiting_max.saturating_sub(self.waiting.available_permits());
        SlotReading { slots: slots.total, running: slots.held, waiting: waiting as u64 }
    }

    /// Waits for a slot until a deadline. Dropping the future leaves the queue.
    pub async fn enter(&self, who: Holder, until: Instant) -> Result<FunctionSlot, CodeError> {
        let organization = self.organization(who.organization);
        if let Ok(own) = Arc::clone(&organization.running).try_acquire_owned()
            && let Some(slot) = self.slots.try_acquire(who, 1)
        {
            return Ok(FunctionSlot { _slot: slot, _own: own, _organization: organization });
        }
        let crowded = || {
            self.refusals.note(WAITING, who.organization);
            let max = self.waiting_max;
            let why = format!(
                "too many calls of functions are waiting already: {max} may ({WAITING}), and half of them for one \
                 organization. Try again later"
            );
            CodeError::Busy { why, retry_after_seconds: 1 }
        };
        let _own_place = Arc::clone(&organization.waiting).try_acquire_owned().map_err(|_| crowded())?;
        let _place = Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| crowded())?;
        let late = || CodeError::Busy {
            why: format!("too many functions are running ({FUNCTION_SLOTS}): try again later"),
            retry_after_seconds: 5,
        };
        let own = timeout_at(until, Arc::clone(&organization.running).acquire_owned()).await.map_err(|_| late())?;
        // Nobody closes the semaphore.
        let own = own.map_err(|_| late())?;
        let slot = self.slots.acquire(who, 1, until).await.map_err(|refused| match refused {
            Refused::Full { retry_after, .. } => CodeError::Busy {
                why: format!("too many functions are running ({FUNCTION_SLOTS}): try again later"),
                retry_after_seconds: retry_after.as_secs().max(1),
            },
            Refused::NeverFits { .. } => late(),
        })?;
        Ok(FunctionSlot { _slot: slot, _own: own, _organization: organization })
    }

    /// Returns the share of an organization, which exists while it uses or awaits a slot.
    fn organization(&self, id: Uuid) -> Arc<OrganizationShare> {
        let mut organizations = self.organizations.lock();
        if let Some(known) = organizations.get(&id).and_then(Weak::upgrade) {
            return known;
        }
        organizations.retain(|_, slots| slots.strong_count() > 0);
        let places = |count| Arc::new(Semaphore::new(count));
        let waiting = places(self.waiting_max.div_ceil(2));
        let new = Arc::new(OrganizationShare { running: places(self.own_max), waiting });
        organizations.insert(id, Arc::downgrade(&new));
        new
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;

    use super::*;

    fn who(organization: u128) -> Holder {
        Holder::new(Uuid::from_u128(organization), Uuid::from_u128(1))
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[tokio::test(start_paused = true)]
    async fn an_organization_has_half_of_the_slots() {
        let admission = FunctionAdmission::new(4, 8, &Refusals::default());
        let first = admission.enter(who(1), soon()).await.expect("a slot");
        let _second = admission.enter(who(1), soon()).await.expect("a slot");
        assert!(admission.enter(who(1), soon()).now_or_never().is_none(), "a third one waits");
        let _other = admission.enter(who(2), soon()).await.expect("a slot of another organization");
        drop(first);
        assert!(admission.enter(who(1), soon()).now_or_never().is_some_and(|slot| slot.is_ok()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_organization_has_half_of_the_waiting_places() {
        let admission = FunctionAdmission::new(2, 4, &Refusals::default());
        let _running = admission.enter(who(1), soon()).await.expect("a slot");
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(admission.enter(who(1), soon()))).collect();
        assert!(futures::poll!(&mut waiting[0]).is_pending() && futures::poll!(&mut waiting[1]).is_pending());
        let refused = waiting[2].as_mut().now_or_never().expect("an answer").expect_err("no place");
        assert!(matches!(&refused, CodeError::Busy { why, .. } if why.contains("half of them")), "{refused}");
        let _other = admission.enter(who(2), soon()).await.expect("a slot of another organization");
        let mut third = Box::pin(admission.enter(who(3), soon()));
        assert!(futures::poll!(&mut third).is_pending(), "it waits");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_waits_too_long_or_behind_too_many_is_told_when_to_come_back() {
        let admission = FunctionAdmission::new(1, 1, &Refusals::default());
        let _running = admission.enter(who(1), soon()).await.expect("a slot");
        let mut waiting = Box::pin(admission.enter(who(1), soon()));
        assert!(futures::poll!(&mut waiting).is_pending());
        let full = admission.enter(who(2), soon()).await.expect_err("no place");
        assert!(matches!(&full, CodeError::Busy { why, .. } if why.contains("functions.waiting_max")), "{full}");
        let late = waiting.await.expect_err("no slot in time");
        assert!(matches!(&late, CodeError::Busy { why, .. } if why.contains("functions.running_max")), "{late}");
    }
}
