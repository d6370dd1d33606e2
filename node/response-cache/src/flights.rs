//! Identical concurrent calls on this node: the first one leads, and the others wait for its response.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::entry::CachedResponse;
use crate::key::CacheKey;

/// Upper bound of the calls that others may wait for. Further calls are not shared.
const FLIGHTS_MAX: usize = 10_000;

type FlightOutcome = Option<Arc<CachedResponse>>;

#[derive(Debug, Default)]
pub(crate) struct FlightTable(Mutex<HashMap<CacheKey, watch::Receiver<FlightOutcome>>>);

/// Role of a caller in a flight.
#[derive(Debug)]
pub(crate) enum FlightRole {
    Leads(LedFlight),
    Waits(FollowedFlight),
    /// The table is full.
    Alone,
}

/// Flight that the caller leads. Dropping it without a published response lets the next caller lead.
#[derive(Debug)]
pub(crate) struct LedFlight {
    table: Arc<FlightTable>,
    key: CacheKey,
    outcome: watch::Sender<FlightOutcome>,
}

/// Flight that another caller leads.
#[derive(Debug)]
pub(crate) struct FollowedFlight(watch::Receiver<FlightOutcome>);

impl FlightTable {
    /// Joins the flight, or begins it if there is none.
    pub fn join(self: &Arc<FlightTable>, key: &CacheKey) -> FlightRole {
        let mut flights = self.0.lock();
        let is_full = flights.len() >= FLIGHTS_MAX;
        match flights.entry(*key) {
            Entry::Occupied(flight) => FlightRole::Waits(FollowedFlight(flight.get().clone())),
            Entry::Vacant(_) if is_full => FlightRole::Alone,
            Entry::Vacant(vacant) => {
                let (outcome, receiver) = watch::channel(None);
                vacant.insert(receiver);
                FlightRole::Leads(LedFlight { table: Arc::clone(self), key: *key, outcome })
            }
        }
    }

    /// Returns the flight if there is one.
    pub fn follow(&self, key: &CacheKey) -> Option<FollowedFlight> {
        self.0.lock().get(key).cloned().map(FollowedFlight)
    }
}

impl LedFlight {
    /// Sends the response to all waiting requests, and to those that join before the flight is dropped.
    pub fn publish(&self, response: Arc<CachedResponse>) {
        self.outcome.send_replace(Some(response));
    }
}

impl Drop for LedFlight {
    fn drop(&mut self) {
        // The entry must go before the sender, so that a woken request finds no flight.
        self.table.0.lock().remove(&self.key);
    }
}

impl FollowedFlight {
    /// Returns the response, or `None` if the leader had none or the time is over.
    pub async fn wait(mut self, until: Instant) -> FlightOutcome {
        let outcome = timeout_at(until, self.0.wait_for(Option::is_some)).await.ok()?.ok()?;
        outcome.clone()
    }
}

#[cfg(test)]
mod tests {
    use assay_storage_model::OrgId;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_full_table_lets_further_calls_go_alone() {
        let table = Arc::new(FlightTable::default());
        let key = |number: usize| {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&number.to_le_bytes());
            CacheKey::of_hash(OrgId(Uuid::nil()), hash)
        };
        let mut led: Vec<FlightRole> = (0..FLIGHTS_MAX).map(|number| table.join(&key(number))).collect();
        assert!(led.iter().all(|role| matches!(role, FlightRole::Leads(_))));
        assert!(matches!(table.join(&key(FLIGHTS_MAX)), FlightRole::Alone));
        assert!(matches!(table.join(&key(3)), FlightRole::Waits(_)));
        led.pop();
        assert!(matches!(table.join(&key(FLIGHTS_MAX)), FlightRole::Leads(_)));
        drop(led);
        assert!(table.0.lock().is_empty());
    }
}
