//! Ledger of one budget: use in the current window, and reservations of the running calls of all nodes.
//!
//! A call is admitted while every limit has a remainder after all reservations. Money and tokens therefore exceed
//! their limits by less than one call, if no call uses more than it reserved. Requests and concurrent calls never
//! exceed their limits.
//!
//! Reservations that expire at the same time are summed. The number of nodes therefore bounds the size of a ledger, and
//! the number of calls does not matter.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::amounts::BudgetAmounts;
use crate::rule::{BudgetLimits, BudgetRule};
use crate::window::{BudgetWindow, WindowBounds};

/// Upper bound of the number of processes in one ledger.
pub const WRITERS_MAX: usize = 64;
/// Upper bound of the number of expiry times per process, which keeps the record below a megabyte.
pub const GROUPS_MAX: usize = 160;
/// Time for which a ledger keeps the last batch number of a process without reservations.
pub const WRITER_KEPT_MS: i64 = 10 * 60_000;
/// Number of steps in a time limit. Reservations that expire within the same step expire together.
const EXPIRY_PARTS: i64 = 64;
const EXPIRY_STEP_MIN_MS: i64 = 1000;
/// Retry delay after a refusal that the end of another call may lift.
const RETRY_SOON_SECONDS: u64 = 1;
/// Retry delay after a refusal by a budget whose window never ends.
const RETRY_NEVER_SECONDS: u64 = 86_400;

/// Identity of one run of a node's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BudgetWriter(pub Uuid);

/// Use in one window, and reservations of all processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetLedger {
    pub(crate) window: BudgetWindow,
    pub(crate) begins_ms: i64,
    pub(crate) spent: BudgetAmounts,
    pub(crate) requests: u64,
    pub(crate) writers: BTreeMap<BudgetWriter, WriterReservations>,
}

/// Reservations of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriterReservations {
    /// Number of the last batch, by which the process recognizes a write with an unknown outcome.
    pub batch: u64,
    pub wrote_ms: i64,
    /// Sums of reservations by expiry time.
    pub groups: BTreeMap<i64, ReservedGroup>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReservedGroup {
    pub calls: u64,
    pub amounts: BudgetAmounts,
}

/// Reservation of one call in one ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerReservation {
    pub amounts: BudgetAmounts,
    pub until_ms: i64,
    /// Start of the window in which the request was counted.
    pub window_begins_ms: i64,
}

/// Change of a ledger by a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerChange {
    Reserve {
        amounts: BudgetAmounts,
        /// Duration after which the reservation has expired.
        timeout_ms: i64,
    },
    Settle {
        reservation: LedgerReservation,
        actual: BudgetAmounts,
    },
    /// Ends a call that used nothing.
    Release {
        reservation: LedgerReservation,
    },
    /// Records the use of calls without reservations.
    Count {
        calls: u64,
        actual: BudgetAmounts,
    },
}

/// Result of one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerAnswer {
    Reserved { reservation: LedgerReservation, standing: BudgetStanding },
    Refused { refusal: LedgerRefusal, standing: BudgetStanding },
    Done,
}

/// Limit that caused a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReachedLimit {
    Usd,
    Tokens,
    Requests,
    Concurrent,
    /// The ledger has no space for another reservation.
    Reservations,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerRefusal {
    pub limit: ReachedLimit,
    pub retry_after_seconds: u64,
}

/// Remainders of the limits that response headers report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetStanding {
    /// Limit and remainder of requests.
    pub requests: Option<(u64, u64)>,
    /// Limit and remainder of tokens.
    pub tokens: Option<(u64, u64)>,
    /// Time until the end of the window, or `None` if the window never ends.
    pub resets_in_ms: Option<i64>,
}

/// Effect of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerOutcome {
    pub answers: Vec<LedgerAnswer>,
    /// Whether the ledger has to be stored.
    pub changed: bool,
    /// Whether the batch used up a limit.
    pub exhausted: bool,
}

/// Sums of a ledger at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerTotals {
    pub bounds: WindowBounds,
    pub spent: BudgetAmounts,
    pub requests: u64,
    pub reserved: BudgetAmounts,
    /// Number of calls with reservations.
    pub calls: u64,
}

impl BudgetLedger {
    pub fn new(rule: &BudgetRule, now_ms: i64) -> BudgetLedger {
        BudgetLedger {
            window: rule.window,
            begins_ms: rule.window.around(now_ms).begins_ms,
            spent: BudgetAmounts::default(),
            requests: 0,
            writers: BTreeMap::new(),
        }
    }

    /// Returns the number of the last batch of a process.
    pub fn last_batch(&self, writer: BudgetWriter) -> Option<u64> {
        self.writers.get(&writer).map(|own| own.batch)
    }

    /// Applies the changes in order, after it removes expired reservations and a past window.
    pub fn apply(
        &mut self,
        rule: &BudgetRule,
        (writer, batch): (BudgetWriter, u64),
        now_ms: i64,
        changes: &[LedgerChange],
    ) -> LedgerOutcome {
        self.advance(rule, now_ms, writer);
        let mut totals = self.totals();
        let before = totals.is_exhausted(&rule.limits);
        let answers: Vec<LedgerAnswer> =
            changes.iter().map(|change| self.step(rule, writer, now_ms, &mut totals, change)).collect();
        let changed = answers.iter().any(|answer| !matches!(answer, LedgerAnswer::Refused { .. }));
        if changed {
            let own = self.writers.entry(writer).or_default();
            own.batch = batch;
            own.wrote_ms = now_ms;
        }
        LedgerOutcome { answers, changed, exhausted: !before && totals.is_exhausted(&rule.limits) }
    }

    /// Moves to the current window, and removes expired reservations.
    ///
    /// A slow clock never moves the ledger back to an earlier window.
    fn advance(&mut self, rule: &BudgetRule, now_ms: i64, writer: BudgetWriter) {
        let begins_ms = rule.window.around(now_ms).begins_ms;
        if begins_ms > self.begins_ms {
            self.spent = BudgetAmounts::default();
            self.requests = 0;
            self.begins_ms = begins_ms;
        } else if self.window != rule.window {
            self.begins_ms = begins_ms;
        }
        self.window = rule.window;
        for own in self.writers.values_mut() {
            own.groups.retain(|until_ms, _| *until_ms > now_ms);
        }
        self.writers.retain(|id, own| {
            *id == writer || !own.groups.is_empty() || own.wrote_ms.saturating_add(WRITER_KEPT_MS) > now_ms
        });
    }

    fn totals(&self) -> LedgerTotals {
        let groups = self.writers.values().flat_map(|own| own.groups.values());
        let zero = (0, BudgetAmounts::default());
        let (calls, reserved) = groups.fold(zero, |(calls, sum), group| (calls + group.calls, sum.plus(group.amounts)));
        let bounds = self.window.around(self.begins_ms);
        LedgerTotals { bounds, spent: self.spent, requests: self.requests, reserved, calls }
    }

    /// Returns the sums at a moment, without the reservations and the use that have expired by then.
    pub fn totals_at(&self, rule: &BudgetRule, now_ms: i64) -> LedgerTotals {
        let mut then = self.clone();
        // The writer only selects the batch number to keep, so any id serves here.
        then.advance(rule, now_ms, BudgetWriter(Uuid::nil()));
        then.totals()
    }

    fn step(
        &mut self,
        rule: &BudgetRule,
        writer: BudgetWriter,
        now_ms: i64,
        totals: &mut LedgerTotals,
        change: &LedgerChange,
    ) -> LedgerAnswer {
        match *change {
            LedgerChange::Reserve { amounts, timeout_ms } => {
                let until_ms = expiry(now_ms, timeout_ms);
                let full = || self.is_full(writer, until_ms).then_some(ReachedLimit::Reservations);
                if let Some(limit) = totals.reached(&rule.limits).or_else(full) {
                    let refusal = LedgerRefusal { limit, retry_after_seconds: totals.retry_after(rule, now_ms, limit) };
                    return LedgerAnswer::Refused { refusal, standing: totals.standing(&rule.limits, now_ms) };
                }
                let group = self.writers.entry(writer).or_default().groups.entry(until_ms).or_default();
                group.calls += 1;
                group.amounts = group.amounts.plus(amounts);
                self.requests = self.requests.saturating_add(1);
                *totals = self.totals_with(totals, totals.calls + 1, totals.reserved.plus(amounts));
                let reservation = LedgerReservation { amounts, until_ms, window_begins_ms: self.begins_ms };
                LedgerAnswer::Reserved { reservation, standing: totals.standing(&rule.limits, now_ms) }
            }
            LedgerChange::Settle { reservation, actual } => {
                self.end(writer, &reservation, totals);
                self.spend(actual, totals);
                LedgerAnswer::Done
            }
            LedgerChange::Release { reservation } => {
                self.end(writer, &reservation, totals);
                if reservation.window_begins_ms == self.begins_ms {
                    self.requests = self.requests.saturating_sub(1);
                    totals.requests = self.requests;
                }
                LedgerAnswer::Done
            }
            LedgerChange::Count { calls, actual } => {
                self.requests = self.requests.saturating_add(calls);
                self.spend(actual, totals);
                LedgerAnswer::Done
            }
        }
    }

    fn totals_with(&self, totals: &LedgerTotals, calls: u64, reserved: BudgetAmounts) -> LedgerTotals {
        LedgerTotals { spent: self.spent, requests: self.requests, calls, reserved, ..*totals }
    }

    fn spend(&mut self, actual: BudgetAmounts, totals: &mut LedgerTotals) {
        self.spent = self.spent.plus(actual);
        *totals = self.totals_with(totals, totals.calls, totals.reserved);
    }

    /// Removes a call from its group, unless its reservation has already expired.
    fn end(&mut self, writer: BudgetWriter, reservation: &LedgerReservation, totals: &mut LedgerTotals) {
        let Some(own) = self.writers.get_mut(&writer) else { return };
        let Some(group) = own.groups.get_mut(&reservation.until_ms) else { return };
        let after =
            ReservedGroup { calls: group.calls.saturating_sub(1), amounts: group.amounts.minus(reservation.amounts) };
        let freed = group.amounts.minus(after.amounts);
        *group = after;
        if after.calls == 0 {
            own.groups.remove(&reservation.until_ms);
        }
        *totals = self.totals_with(totals, totals.calls.saturating_sub(1), totals.reserved.minus(freed));
    }

    fn is_full(&self, writer: BudgetWriter, until_ms: i64) -> bool {
        match self.writers.get(&writer) {
            Some(own) => own.groups.len() >= GROUPS_MAX && !own.groups.contains_key(&until_ms),
            None => self.writers.len() >= WRITERS_MAX,
        }
    }
}

impl LedgerTotals {
    /// Returns the first limit without a remainder.
    pub fn reached(&self, limits: &BudgetLimits) -> Option<ReachedLimit> {
        let used = self.spent.plus(self.reserved);
        let is_reached = |limit: Option<u64>, used: u64| limit.is_some_and(|limit| used >= limit);
        let all = [
            (ReachedLimit::Usd, is_reached(limits.nano_usd, used.nano_usd)),
            (ReachedLimit::Tokens, is_reached(limits.tokens, used.tokens)),
            (ReachedLimit::Requests, is_reached(limits.requests, self.requests)),
            (ReachedLimit::Concurrent, is_reached(limits.concurrent, self.calls)),
        ];
        all.into_iter().find_map(|(limit, reached)| reached.then_some(limit))
    }

    /// Returns whether the window has used up a limit, not counting reservations.
    pub fn is_exhausted(&self, limits: &BudgetLimits) -> bool {
        self.without_calls().reached(&BudgetLimits { concurrent: None, ..*limits }).is_some()
    }

    fn without_calls(&self) -> LedgerTotals {
        LedgerTotals { reserved: BudgetAmounts::default(), calls: 0, ..*self }
    }

    /// Returns the seconds after which a retry may succeed.
    ///
    /// A refusal lasts until the window ends, unless running calls may still free a part of the limit.
    fn retry_after(&self, rule: &BudgetRule, now_ms: i64, limit: ReachedLimit) -> u64 {
        let is_final = limit != ReachedLimit::Reservations && self.is_exhausted(&rule.limits);
        match self.bounds.ends_ms {
            _ if !is_final => RETRY_SOON_SECONDS,
            None => RETRY_NEVER_SECONDS,
            Some(ends_ms) => u64::try_from(ends_ms - now_ms).map_or(1, |left| left.div_ceil(1000).max(1)),
        }
    }

    fn standing(&self, limits: &BudgetLimits, now_ms: i64) -> BudgetStanding {
        let used = self.spent.plus(self.reserved);
        let left = |limit: Option<u64>, used: u64| limit.map(|limit| (limit, limit.saturating_sub(used)));
        BudgetStanding {
            requests: left(limits.requests, self.requests),
            tokens: left(limits.tokens, used.tokens),
            resets_in_ms: self.bounds.ends_ms.map(|ends_ms| (ends_ms - now_ms).max(0)),
        }
    }
}

/// Returns the expiry time of a new reservation, which is its time limit rounded down to a step.
fn expiry(now_ms: i64, timeout_ms: i64) -> i64 {
    let step = (timeout_ms / EXPIRY_PARTS).max(EXPIRY_STEP_MIN_MS);
    let until_ms = now_ms.saturating_add(timeout_ms);
    (until_ms - until_ms.rem_euclid(step)).max(now_ms + 1)
}

#[cfg(test)]
mod tests;
