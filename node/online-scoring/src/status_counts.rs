//! Counts of a rule for the status operation (G-47), summed over shards.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::trigger_progress::TriggerPhase;

const NANOS_PER_USD: f64 = 1e9;
const MILLIS_PER_SECOND: f64 = 1000.0;

/// Counts of one rule on one shard, or on all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleCounts {
    pub pending: u64,
    pub running: u64,
    /// Triggers that were given up.
    pub failed: u64,
    /// Runs that a cap refused.
    pub skipped: u64,
    /// Age of the oldest version that is not scored yet.
    pub lag_ms: u64,
    /// Costs of the current day in UTC.
    pub cost_nano_usd: u64,
}

impl RuleCounts {
    /// Counts a trigger. Those that are done or cancelled have no count.
    pub fn count(&mut self, phase: TriggerPhase) {
        match phase {
            TriggerPhase::Pending { .. } => self.pending = self.pending.saturating_add(1),
            TriggerPhase::Running { .. } => self.running = self.running.saturating_add(1),
            TriggerPhase::Failed => self.failed = self.failed.saturating_add(1),
            TriggerPhase::Done | TriggerPhase::Cancelled => {}
        }
    }

    /// Returns the counts together with those of another shard.
    pub fn plus(self, other: RuleCounts) -> RuleCounts {
        RuleCounts {
            pending: self.pending.saturating_add(other.pending),
            running: self.running.saturating_add(other.running),
            failed: self.failed.saturating_add(other.failed),
            skipped: self.skipped.saturating_add(other.skipped),
            lag_ms: self.lag_ms.max(other.lag_ms),
            cost_nano_usd: self.cost_nano_usd.saturating_add(other.cost_nano_usd),
        }
    }

    /// Returns the answer of the status operation: `lag` in seconds, `cost` in US dollars.
    pub fn to_json(&self) -> Value {
        json!({
            "pending": self.pending, "running": self.running, "failed": self.failed, "skipped": self.skipped,
            "lag": self.lag_ms as f64 / MILLIS_PER_SECOND, "cost": self.cost_nano_usd as f64 / NANOS_PER_USD,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_add_up_and_the_longest_lag_counts() {
        let mut first = RuleCounts { skipped: 2, lag_ms: 1500, cost_nano_usd: 250_000_000, ..RuleCounts::default() };
        for phase in [
            TriggerPhase::Pending { ready_at_ms: 0 },
            TriggerPhase::Running { since_ms: 0 },
            TriggerPhase::Running { since_ms: 0 },
            TriggerPhase::Done,
            TriggerPhase::Cancelled,
        ] {
            first.count(phase);
        }
        let mut second = RuleCounts { lag_ms: 500, cost_nano_usd: 250_000_000, ..RuleCounts::default() };
        second.count(TriggerPhase::Failed);
        let expected = json!({"pending": 1, "running": 2, "failed": 1, "skipped": 2, "lag": 1.5, "cost": 0.5});
        assert_eq!(first.plus(second).to_json(), expected);
    }
}
