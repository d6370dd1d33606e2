//! Cooling: failed upstreams are avoided for a while (G-16).
//!
//! A 429 cools an upstream for the delay that it names. Without a delay, it cools for 5 s, doubled with each further
//! 429 up to 60 s. Three failures within 30 s cool an upstream for 30 s. Afterwards, one call probes it. A success ends
//! the cooling, and a failure renews it.
//!
//! Nodes exchange their states and join them. The join is commutative, associative and idempotent. So states may arrive
//! late, repeatedly and in any order.

mod rate_limits;
mod state;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

pub use rate_limits::{RETRY_AFTER_MS_MAX, retry_after_ms};
pub use state::{
    CoolingPhase, CoolingState, FAILURE_COOLING_MS, FAILURE_WINDOW_MS, FAILURES_MAX, LIMIT_COOLING_MS_MAX,
    LIMIT_COOLING_MS_MIN, PROBE_MS_MAX, UpstreamFailure,
};

/// Upper bound of the states of one table. Beyond it, the stalest state is dropped.
pub const COOLING_STATES_MAX: usize = 10_000;
/// Time from the last change or the end of cooling until a state is forgotten.
pub const FORGET_MS: u64 = 10 * 60 * 1000;
/// Upper bound of the difference between the clocks of two nodes.
pub const CLOCK_SKEW_MS_MAX: u64 = 60_000;

/// Subject of cooling: a secret with the upstream name of a model.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CoolingKey {
    pub secret_id: String,
    pub model: String,
}

/// States of all upstreams that failed recently.
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

    /// Returns whether calls avoid an upstream. An upstream that is due for a probe is not cooling.
    pub fn is_cooling(&self, key: &CoolingKey, now_ms: u64) -> bool {
        matches!(self.phase(key, now_ms), CoolingPhase::Cooling { .. })
    }

    /// Begins an attempt, which is the probe if one is due.
    ///
    /// Returns the end of cooling as an error if the upstream cools or is being probed. The caller then skips the
    /// attempt unless no other upstream is left. `attempt` is a unique number, such as a random one.
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

    /// Records a failed attempt and returns the phase of the upstream.
    pub fn fail(&mut self, key: &CoolingKey, now_ms: u64, attempt: u64, failure: UpstreamFailure) -> CoolingPhase {
        self.make_room(key);
        let state = self.states.entry(key.clone()).or_default();
        state.fail(now_ms, attempt, failure);
        state.phase(now_ms)
    }

    /// Records the success of an attempt that began at `begun_ms`. Later failures still count.
    pub fn succeed(&mut self, key: &CoolingKey, begun_ms: u64) {
        // An upstream without failures needs no state.
        if let Some(state) = self.states.get_mut(key) {
            state.succeed(begun_ms);
        }
    }

    /// Returns the state of an upstream, or `None` if it has not failed recently.
    pub fn state(&self, key: &CoolingKey) -> Option<&CoolingState> {
        self.states.get(key)
    }

    /// Returns all states, for other nodes.
    pub fn states(&self) -> impl Iterator<Item = (&CoolingKey, &CoolingState)> {
        self.states.iter()
    }

    /// Joins a state of another node, and returns whether it changed anything.
    ///
    /// A state from an impossible future time is ignored, because it would cool until then.
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

    /// Drops states that no longer matter.
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
