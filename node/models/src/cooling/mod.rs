//! Cooling: upstreams that failed are left alone for a while (G-16).
//!
//! A 429 cools an upstream until the time that it names, else for 5 s, doubled with each further one up to 60 s. Three
//! failures within 30 s cool it for 30 s. After that one call probes it: a success ends the cooling, a failure renews it.
//!
//! Nodes exchange their states and join them. The join is commutative, associative and idempotent, so that states may
//! arrive late, twice and in any order.

mod rate_limits;
mod state;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

pub use rate_limits::{RETRY_AFTER_MS_MAX, retry_after_ms};
pub use state::{
    CoolingPhase, CoolingState, FAILURE_COOLING_MS, FAILURE_WINDOW_MS, FAILURES_MAX, LIMIT_COOLING_MS_MAX,
    LIMIT_COOLING_MS_MIN, PROBE_MS_MAX, UpstreamFailure,
};

/// States of one table. Over it, the stalest is forgotten.
pub const COOLING_STATES_MAX: usize = 10_000;
/// Time after its last change or cooling until a state is forgotten.
pub const FORGET_MS: u64 = 10 * 60 * 1000;
/// Difference between the clocks of two nodes.
pub const CLOCK_SKEW_MS_MAX: u64 = 60_000;

/// What cools: a secret for a model, by the model's upstream name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CoolingKey {
    pub secret_id: String,
    pub model: String,
}

/// States of all upstreams that failed lately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoolingTable {
    states: HashMap<CoolingKey, CoolingState>,
}

impl CoolingTable {
    pub fn new() -> CoolingTable {
        CoolingTable::default()
    }

    pub fn phase(&self, key: &CoolingKey, now_ms: u64) -> CoolingPhase {
        self.states.get(key).map_or(CoolingPhase::Free, |state| state.phase(now_ms))
    }

    /// Returns whether calls leave an upstream alone. One that is due for a probe is not cooling.
    pub fn is_cooling(&self, key: &CoolingKey, now_ms: u64) -> bool {
        matches!(self.phase(key, now_ms), CoolingPhase::Cooling { .. })
    }

    /// Begins an attempt, which is the probe where one is due. Returns the end of cooling if the upstream cools or is being
    /// probed; the attempt is then left out unless nothing else is left. `attempt` is a number of its own, such as a random
    /// one.
    pub fn begin(&mut self, key: &CoolingKey, now_ms: u64, attempt: u64) -> Result<(), u64> {
        let Some(state) = self.states.get_mut(key) else { return Ok(()) };
        match state.phase(now_ms) {
            CoolingPhase::Free => Ok(()),
            CoolingPhase::Cooling { until_ms } => Err(until_ms),
            CoolingPhase::ProbeDue => {
                state.probe(now_ms, attempt);
                Ok(())
            }
        }
    }

    /// Records a failed attempt and returns the upstream's phase.
    pub fn fail(&mut self, key: &CoolingKey, now_ms: u64, attempt: u64, failure: UpstreamFailure) -> CoolingPhase {
        self.make_room(key);
        let state = self.states.entry(key.clone()).or_default();
        state.fail(now_ms, attempt, failure);
        state.phase(now_ms)
    }

    /// Records a success of an attempt that began at `begun_ms`. What failed later still counts.
    pub fn succeed(&mut self, key: &CoolingKey, begun_ms: u64) {
        // an upstream without failures needs no state
        if let Some(state) = self.states.get_mut(key) {
            state.succeed(begun_ms);
        }
    }

    /// Returns the state of an upstream; `None` if it has not failed lately.
    pub fn state(&self, key: &CoolingKey) -> Option<&CoolingState> {
        self.states.get(key)
    }

    /// Returns the states, to send them to other nodes.
    pub fn states(&self) -> impl Iterator<Item = (&CoolingKey, &CoolingState)> {
        self.states.iter()
    }

    /// Joins a state of another node; returns whether that changed anything. A state of a time that cannot be yet is left
    /// out: it would cool until then.
    pub fn join(&mut self, key: &CoolingKey, other: &CoolingState, now_ms: u64) -> bool {
        if other.last_ms() > now_ms.saturating_add(RETRY_AFTER_MS_MAX + CLOCK_SKEW_MS_MAX) {
            return false;
        }
        self.make_room(key);
        let state = self.states.entry(key.clone()).or_default();
        let joined = state.join(other);
        let changed = *state != joined;
        *state = joined;
        changed
    }

    /// Forgets states that no longer matter.
    pub fn forget(&mut self, now_ms: u64) {
        self.states.retain(|_, state| state.last_ms().saturating_add(FORGET_MS) > now_ms);
    }

    fn make_room(&mut self, key: &CoolingKey) {
        if self.states.len() < COOLING_STATES_MAX || self.states.contains_key(key) {
            return;
        }
        let stalest = self.states.iter().min_by(|(a, one), (b, other)| (one.last_ms(), a).cmp(&(other.last_ms(), b)));
        if let Some(stalest) = stalest.map(|(key, _)| key.clone()) {
            self.states.remove(&stalest);
        }
    }
}

#[cfg(test)]
mod tests;
