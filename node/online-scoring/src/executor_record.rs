//! Record of the executor of one project's log, from which another node continues.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::run_caps::RunCaps;

/// Time for which an executor follows a log without rules after a client demanded runs there.
pub const DEMANDED_MS_MAX: u64 = 24 * 3_600_000;
/// Time for which a noted demand is not noted again.
pub const DEMAND_NOTED_MS: u64 = 3_600_000;

/// Record of an executor. Writes name the revision that they replace, so that one executor at a time writes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExecutorRecord {
    /// Position of the log: later than it, all work is found that is not done.
    pub position: u64,
    /// Run of a process that wrote the record last.
    #[serde(default)]
    pub writer: Uuid,
    #[serde(default)]
    pub caps: RunCaps,
    #[serde(default)]
    pub totals: BTreeMap<Uuid, RuleTotals>,
    /// Newest write of the log whose refused runs are counted. A part that is read again does not count twice.
    #[serde(default)]
    pub skipped_xact: u64,
    /// Time at which a client last demanded runs, in milliseconds since the epoch.
    #[serde(default)]
    pub demanded_ms: u64,
    /// Whether rows may have open triggers, also of rules that are paused or deleted.
    #[serde(default)]
    pub has_work: bool,
}

/// Counts of a rule since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleTotals {
    pub runs: u64,
    pub failures: u64,
    /// Triggers that were given up.
    pub failed: u64,
    /// Runs that a cap refused.
    pub skipped: u64,
}

impl ExecutorRecord {
    pub fn decode(body: &[u8]) -> Result<ExecutorRecord, String> {
        serde_json::from_slice(body).map_err(|why| format!("a record of online scoring cannot be decoded: {why}"))
    }

    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default() // plain data always encodes
    }

    /// Returns whether a client demanded runs lately.
    pub fn is_demanded(&self, now_ms: u64) -> bool {
        self.demanded_ms.saturating_add(DEMANDED_MS_MAX) > now_ms
    }

    /// Returns whether the log is followed even without active rules.
    pub fn is_followed(&self, now_ms: u64) -> bool {
        self.has_work || self.is_demanded(now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_and_older_ones_have_defaults() {
        let totals = BTreeMap::from([(Uuid::from_u128(1), RuleTotals { runs: 2, ..RuleTotals::default() })]);
        let record = ExecutorRecord { position: u64::MAX, totals, demanded_ms: 7, ..ExecutorRecord::default() };
        assert_eq!(ExecutorRecord::decode(&record.encode()), Ok(record.clone()));
        assert!(record.is_demanded(DEMANDED_MS_MAX) && !record.is_demanded(DEMANDED_MS_MAX + 7));
        let older = ExecutorRecord::decode(br#"{"position":5}"#).expect("decodes");
        assert_eq!(older, ExecutorRecord { position: 5, ..ExecutorRecord::default() });
        assert!(ExecutorRecord::decode(b"[]").is_err());
    }
}
