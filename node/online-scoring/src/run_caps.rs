//! Caps of rules on runs per minute and costs per day, which another node can continue (G-46).
//!
//! A run reserves its place and estimated cost, then settles the actual cost or releases the place. Admission counts
//! reservations, so costs exceed a cap only by what the runs under way cost above their estimates.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

/// Upper bound of the rules whose usage is counted.
pub const CAPPED_RULES_MAX: usize = 10_000;
const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 86_400_000;

/// Limits of a rule. Absent ones are unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapLimits {
    pub runs_per_minute: Option<u64>,
    pub nano_usd_per_day: Option<u64>,
}

impl CapLimits {
    /// Returns the limits of a rule with those of the server's configuration where it has none.
    pub fn or(self, defaults: CapLimits) -> CapLimits {
        CapLimits {
            runs_per_minute: self.runs_per_minute.or(defaults.runs_per_minute),
            nano_usd_per_day: self.nano_usd_per_day.or(defaults.nano_usd_per_day),
        }
    }
}

/// Cap that a rule has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReachedCap {
    RunsPerMinute,
    CostPerDay,
}

/// Refusal of a run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CapRefusal {
    #[error("rule {rule} has reached its cap {cap:?} until {until_ms} ms after the epoch")]
    Reached {
        rule: Uuid,
        cap: ReachedCap,
        /// Time at which the window of the cap ends.
        until_ms: u64,
        /// Whether the owner of the rule has to be told: once a window.
        tells_owner: bool,
    },
    #[error("{CAPPED_RULES_MAX} rules of online scoring are counted on this shard, which is the maximum")]
    TooManyRules,
}

/// Reservation of a run, which is settled or released.
#[must_use = "a run that is neither settled nor released counts until the end of the day"]
#[derive(Debug, PartialEq, Eq)]
pub struct RunReservation {
    rule: Uuid,
    minute: u64,
    day: u64,
    nano_usd: u64,
}

impl RunReservation {
    pub fn rule(&self) -> Uuid {
        self.rule
    }

    /// Returns whether a run that starts now belongs to a later minute.
    pub fn is_past(&self, now_ms: u64) -> bool {
        self.minute < now_ms / MINUTE_MS
    }
}

/// Usage of one rule in its current windows. Windows are minutes and days in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CapUsage {
    minute: u64,
    runs: u64,
    day: u64,
    spent_nano_usd: u64,
    reserved_nano_usd: u64,
    /// Window after the last one in which the owner was told, for each cap. 0 before the first.
    told_minute_end: u64,
    told_day_end: u64,
}

impl CapUsage {
    /// Moves to the windows of a time. Clocks of nodes differ, so windows never move back.
    fn advance(&mut self, now_ms: u64) {
        let (minute, day) = (now_ms / MINUTE_MS, now_ms / DAY_MS);
        if minute > self.minute {
            (self.minute, self.runs) = (minute, 0);
        }
        if day > self.day {
            (self.day, self.spent_nano_usd, self.reserved_nano_usd) = (day, 0, 0);
        }
    }

    fn reached(&self, limits: CapLimits, estimate: u64) -> Option<ReachedCap> {
        let used = self.spent_nano_usd.saturating_add(self.reserved_nano_usd);
        // without an estimate one run after the other may start, until the cap is used up
        let is_spent = |cap: u64| used >= cap || used.saturating_add(estimate) > cap;
        if limits.nano_usd_per_day.is_some_and(is_spent) {
            return Some(ReachedCap::CostPerDay);
        }
        limits.runs_per_minute.is_some_and(|cap| self.runs >= cap).then_some(ReachedCap::RunsPerMinute)
    }

    fn refuse(&mut self, rule: Uuid, cap: ReachedCap) -> CapRefusal {
        let (window, length, told_end) = match cap {
            ReachedCap::RunsPerMinute => (self.minute, MINUTE_MS, &mut self.told_minute_end),
            ReachedCap::CostPerDay => (self.day, DAY_MS, &mut self.told_day_end),
        };
        let end = window.saturating_add(1);
        let tells_owner = *told_end < end;
        *told_end = end;
        CapRefusal::Reached { rule, cap, until_ms: end.saturating_mul(length), tells_owner }
    }
}

/// Usage of the caps of all rules of a shard. The executor stores it after reservations and before their runs start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCaps {
    rules: BTreeMap<Uuid, CapUsage>,
}

impl RunCaps {
    /// Continues from the stored usage of another node. Reservations count as spent, because their runs may have happened.
    pub fn resume(mut stored: RunCaps) -> RunCaps {
        for usage in stored.rules.values_mut() {
            usage.spent_nano_usd = usage.spent_nano_usd.saturating_add(usage.reserved_nano_usd);
            usage.reserved_nano_usd = 0;
        }
        stored
    }

    /// Reserves a run of a rule with its estimated cost; 0 if unknown.
    pub fn reserve(
        &mut self,
        rule: Uuid,
        limits: CapLimits,
        estimate_nano_usd: u64,
        now_ms: u64,
    ) -> Result<RunReservation, CapRefusal> {
        if !self.rules.contains_key(&rule) && self.rules.len() >= CAPPED_RULES_MAX {
            return Err(CapRefusal::TooManyRules);
        }
        let usage = self.rules.entry(rule).or_default();
        usage.advance(now_ms);
        if let Some(cap) = usage.reached(limits, estimate_nano_usd) {
            return Err(usage.refuse(rule, cap));
        }
        usage.runs = usage.runs.saturating_add(1);
        usage.reserved_nano_usd = usage.reserved_nano_usd.saturating_add(estimate_nano_usd);
        Ok(RunReservation { rule, minute: usage.minute, day: usage.day, nano_usd: estimate_nano_usd })
    }

    /// Replaces the estimate of a run by its actual cost. The cost belongs to the day of the reservation.
    pub fn settle(&mut self, run: RunReservation, actual_nano_usd: u64) {
        if let Some(usage) = self.rules.get_mut(&run.rule).filter(|usage| usage.day == run.day) {
            usage.reserved_nano_usd = usage.reserved_nano_usd.saturating_sub(run.nano_usd);
            usage.spent_nano_usd = usage.spent_nano_usd.saturating_add(actual_nano_usd);
        }
    }

    /// Gives back a run that did not happen.
    pub fn release(&mut self, run: RunReservation) {
        if let Some(usage) = self.rules.get_mut(&run.rule).filter(|usage| usage.minute == run.minute) {
            usage.runs = usage.runs.saturating_sub(1);
        }
        self.settle(run, 0);
    }

    /// Forgets a deleted rule.
    pub fn forget(&mut self, rule: Uuid) {
        self.rules.remove(&rule);
    }

    /// Returns what a rule has spent on the day of a time.
    pub fn spent_nano_usd(&self, rule: Uuid, now_ms: u64) -> u64 {
        self.rules.get(&rule).filter(|usage| usage.day >= now_ms / DAY_MS).map_or(0, |usage| usage.spent_nano_usd)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULE: Uuid = Uuid::from_u128(1);

    fn limits(runs: Option<u64>, nano_usd: Option<u64>) -> CapLimits {
        CapLimits { runs_per_minute: runs, nano_usd_per_day: nano_usd }
    }

    #[test]
    fn the_limits_of_a_rule_win_over_defaults() {
        assert_eq!(limits(Some(1), None).or(limits(Some(2), Some(3))), limits(Some(1), Some(3)));
    }

    #[test]
    fn a_cap_on_runs_holds_for_a_minute_and_tells_the_owner_once() {
        let mut caps = RunCaps::default();
        let mut reserve = |now_ms| caps.reserve(RULE, limits(Some(2), None), 0, now_ms);
        let refused = |tells_owner, until_ms| {
            Err(CapRefusal::Reached { rule: RULE, cap: ReachedCap::RunsPerMinute, until_ms, tells_owner })
        };
        assert!(reserve(0).is_ok_and(|run| !run.is_past(59_999) && run.is_past(60_000)) && reserve(59_999).is_ok());
        assert_eq!(reserve(59_999), refused(true, 60_000));
        assert_eq!(reserve(59_999), refused(false, 60_000));
        assert!(reserve(60_000).is_ok() && reserve(60_000).is_ok());
        assert_eq!(reserve(60_001), refused(true, 120_000));
        assert_eq!(reserve(0), refused(false, 120_000), "a clock behind does not open an old window");
    }

    #[test]
    fn a_cap_on_costs_counts_estimates_until_they_are_settled() {
        let mut caps = RunCaps::default();
        let limits = limits(None, Some(100));
        let first = caps.reserve(RULE, limits, 60, 0).expect("below the cap");
        assert!(caps.reserve(RULE, limits, 60, 0).is_err());
        caps.settle(first, 10);
        let second = caps.reserve(RULE, limits, 60, 0).expect("below the cap");
        caps.release(second);
        assert_eq!(caps.spent_nano_usd(RULE, 0), 10);
        let third = caps.reserve(RULE, limits, 90, 0).expect("exactly the cap");
        let refusal = caps.reserve(RULE, limits, 0, 0).expect_err("at the cap");
        assert!(matches!(refusal, CapRefusal::Reached { cap: ReachedCap::CostPerDay, until_ms: DAY_MS, .. }));
        assert!(caps.reserve(RULE, limits, 90, DAY_MS).is_ok());
        caps.settle(third, 90);
        assert_eq!(caps.spent_nano_usd(RULE, DAY_MS), 0, "the cost belongs to the day before");
    }

    #[test]
    fn another_node_counts_reserved_runs_as_spent() {
        let mut caps = RunCaps::default();
        let limits = limits(Some(5), Some(100));
        let _lost = caps.reserve(RULE, limits, 60, 0).expect("below the cap");
        let stored = serde_json::to_string(&caps).expect("a text");
        let mut resumed = RunCaps::resume(serde_json::from_str(&stored).expect("a usage"));
        assert_eq!(resumed.spent_nano_usd(RULE, 0), 60);
        assert!(resumed.reserve(RULE, limits, 60, 0).is_err());
        assert!(resumed.reserve(RULE, limits, 40, 0).is_ok());
    }

    #[test]
    fn rules_above_the_limit_are_refused() {
        let mut caps = RunCaps::default();
        for rule in 0..CAPPED_RULES_MAX as u128 {
            let _run = caps.reserve(Uuid::from_u128(rule), CapLimits::default(), 0, 0).expect("there is room");
        }
        let next = Uuid::from_u128(CAPPED_RULES_MAX as u128);
        assert_eq!(caps.reserve(next, CapLimits::default(), 0, 0), Err(CapRefusal::TooManyRules));
        caps.forget(RULE);
        assert!(caps.reserve(next, CapLimits::default(), 0, 0).is_ok());
    }

    #[derive(Clone, Debug)]
    enum CapStep {
        Reserve { estimate: u64 },
        Settle { actual: u64 },
        Release,
        Wait { ms: u64 },
        Crash,
    }

    fn step() -> impl Strategy<Value = CapStep> {
        prop_oneof![
            4 => (0_u64..40).prop_map(|estimate| CapStep::Reserve { estimate }),
            3 => (0_u64..60).prop_map(|actual| CapStep::Settle { actual }),
            1 => Just(CapStep::Release),
            1 => prop_oneof![0_u64..50_000, Just(DAY_MS / 3)].prop_map(|ms| CapStep::Wait { ms }),
            1 => Just(CapStep::Crash),
        ]
    }

    proptest! {
        #[test]
        fn caps_are_exceeded_only_by_the_runs_under_way(
            steps in prop::collection::vec(step(), 1..200), runs_cap in 1_u64..6, cost_cap in 1_u64..200,
        ) {
            let limits = limits(Some(runs_cap), Some(cost_cap));
            let (mut caps, mut stored, mut now_ms) = (RunCaps::default(), RunCaps::default(), 0_u64);
            let mut open: Vec<(RunReservation, u64)> = Vec::new();
            // what really happened: runs by minute, costs by day, and costs above the estimates by day
            let (mut runs, mut costs, mut above) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
            for step in steps {
                match step {
                    CapStep::Reserve { estimate } => {
                        if let Ok(run) = caps.reserve(RULE, limits, estimate, now_ms) {
                            *runs.entry(now_ms / MINUTE_MS).or_insert(0_u64) += 1;
                            open.push((run, now_ms));
                            stored = caps.clone();
                        }
                    }
                    CapStep::Settle { actual } => {
                        if let Some((run, at_ms)) = open.pop() {
                            *costs.entry(at_ms / DAY_MS).or_insert(0_u64) += actual;
                            *above.entry(at_ms / DAY_MS).or_insert(0_u64) += actual.saturating_sub(run.nano_usd);
                            caps.settle(run, actual);
                        }
                    }
                    CapStep::Release => {
                        if let Some((run, at_ms)) = open.pop() {
                            if let Some(count) = runs.get_mut(&(at_ms / MINUTE_MS)) {
                                *count -= 1;
                            }
                            caps.release(run);
                        }
                    }
                    CapStep::Wait { ms } => now_ms += ms,
                    CapStep::Crash => {
                        // the runs of the lost node cost what was estimated
                        for (run, at_ms) in open.drain(..) {
                            *costs.entry(at_ms / DAY_MS).or_insert(0_u64) += run.nano_usd;
                        }
                        let text = serde_json::to_string(&stored).expect("a text");
                        caps = RunCaps::resume(serde_json::from_str(&text).expect("a usage"));
                    }
                }
                prop_assert!(runs.values().all(|count| *count <= runs_cap));
                for (day, cost) in &costs {
                    prop_assert!(*cost <= cost_cap + above.get(day).copied().unwrap_or_default());
                }
            }
        }
    }
}
