//! State of one upstream: its failures, its cooling and its probe.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::RETRY_AFTER_MS_MAX;

/// First cooling time after a 429 without a delay.
pub const LIMIT_COOLING_MS_MIN: u64 = 5_000;
/// Longest cooling time after a 429 without a delay.
pub const LIMIT_COOLING_MS_MAX: u64 = 60_000;
/// Number of failures within the window that cool an upstream.
pub const FAILURES_MAX: usize = 3;
pub const FAILURE_WINDOW_MS: u64 = 30_000;
pub const FAILURE_COOLING_MS: u64 = 30_000;
/// Time after which a probe without a result counts as lost.
pub const PROBE_MS_MAX: u64 = 30_000;
/// Upper bound of the counted doublings.
const STEP_MAX: u32 = 16;

/// Failure of an upstream that matters for its cooling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamFailure {
    /// Status 429, with the delay from its headers.
    RateLimited { retry_after_ms: Option<u64> },
    /// Status 5xx, or a failed connection.
    Unavailable,
}

/// Availability of an upstream for calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoolingPhase {
    Free,
    /// Calls avoid the upstream, or one call probes it.
    Cooling {
        until_ms: u64,
    },
    /// The next call is the probe.
    ProbeDue,
}

/// Time of an attempt. `attempt` distinguishes attempts of the same millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct AttemptMark {
    at_ms: u64,
    attempt: u64,
}

/// Decision to avoid an upstream. The latest decision counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct CoolingHold {
    since_ms: u64,
    until_ms: u64,
    /// Number of 429s without a success between them, up to a maximum.
    step: u32,
}

/// State of one upstream. All members only grow with time, so two states have a join.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoolingState {
    /// Start of the latest successful attempt. Failures up to then are removed.
    succeeded_ms: u64,
    /// Latest failures, at most [`FAILURES_MAX`].
    failures: BTreeSet<AttemptMark>,
    hold: Option<CoolingHold>,
    probe: Option<AttemptMark>,
}

impl CoolingState {
    pub fn phase(&self, now_ms: u64) -> CoolingPhase {
        let Some(hold) = self.hold else { return CoolingPhase::Free };
        if now_ms < hold.until_ms {
            return CoolingPhase::Cooling { until_ms: hold.until_ms };
        }
        let probe_end = self
            .probe
            .filter(|probe| probe.at_ms >= hold.until_ms)
            .map(|probe| probe.at_ms.saturating_add(PROBE_MS_MAX));
        match probe_end {
            Some(until_ms) if now_ms < until_ms => CoolingPhase::Cooling { until_ms },
            _ => CoolingPhase::ProbeDue,
        }
    }

    /// Returns the time of the last change or of the end of cooling, whichever is later.
    pub fn last_ms(&self) -> u64 {
        let failure = self.failures.last().map_or(0, |mark| mark.at_ms);
        let hold = self.hold.map_or(0, |hold| hold.until_ms);
        self.succeeded_ms.max(failure).max(hold).max(self.probe.map_or(0, |probe| probe.at_ms))
    }

    pub(super) fn probe(&mut self, now_ms: u64, attempt: u64) {
        self.probe = self.probe.max(Some(AttemptMark { at_ms: now_ms, attempt }));
    }

    pub(super) fn fail(&mut self, now_ms: u64, attempt: u64, failure: UpstreamFailure) {
        if now_ms <= self.succeeded_ms {
            return;
        }
        let was_held = self.hold.is_some();
        let step = self.hold.map_or(0, |hold| hold.step);
        match failure {
            UpstreamFailure::RateLimited { retry_after_ms } => {
                // Calls that were in flight when cooling began count as a single failure.
                let is_new = self.hold.is_none_or(|hold| now_ms >= hold.until_ms);
                let doubled = (LIMIT_COOLING_MS_MIN << step.min(STEP_MAX)).min(LIMIT_COOLING_MS_MAX);
                let usual = if is_new { doubled } else { 0 };
                let delay = retry_after_ms.unwrap_or(usual).min(RETRY_AFTER_MS_MAX);
                self.hold_for(now_ms, delay, if is_new { (step + 1).min(STEP_MAX) } else { step.max(1) });
            }
            UpstreamFailure::Unavailable => {
                self.failures.insert(AttemptMark { at_ms: now_ms, attempt });
                self.keep_latest();
                let begin = now_ms.saturating_sub(FAILURE_WINDOW_MS);
                let recent = self.failures.iter().filter(|mark| mark.at_ms > begin).count();
                // A failed probe renews the cooling at once.
                if recent >= FAILURES_MAX || was_held {
                    self.hold_for(now_ms, FAILURE_COOLING_MS, step);
                }
            }
        }
    }

    pub(super) fn succeed(&mut self, begun_ms: u64) {
        self.succeeded_ms = self.succeeded_ms.max(begun_ms);
        self.drop_past();
    }

    /// Returns the least upper bound of two states.
    #[must_use]
    pub fn join(&self, other: &CoolingState) -> CoolingState {
        let mut joined = CoolingState {
            succeeded_ms: self.succeeded_ms.max(other.succeeded_ms),
            failures: self.failures.union(&other.failures).copied().collect(),
            hold: self.hold.max(other.hold),
            probe: self.probe.max(other.probe),
        };
        joined.drop_past();
        joined.keep_latest();
        joined
    }

    /// Cools for a delay from now, or longer if that was already decided.
    fn hold_for(&mut self, now_ms: u64, delay_ms: u64, step: u32) {
        let until_ms = now_ms.saturating_add(delay_ms).max(self.hold.map_or(0, |hold| hold.until_ms));
        self.hold = self.hold.max(Some(CoolingHold { since_ms: now_ms, until_ms, step }));
    }

    fn drop_past(&mut self) {
        let succeeded = self.succeeded_ms;
        self.failures.retain(|mark| mark.at_ms > succeeded);
        self.hold = self.hold.filter(|hold| hold.since_ms > succeeded);
        self.probe = self.probe.filter(|probe| probe.at_ms > succeeded);
    }

    fn keep_latest(&mut self) {
        while self.failures.len() > FAILURES_MAX {
            self.failures.pop_first();
        }
    }
}
