//! Ledger of one budget: what the current window has spent, and the reservations of calls under way on all nodes.
//!
//! A call is admitted while something is left of every limit, reservations included. So money and tokens exceed their
//! limit by less than one call, provided that no call uses more than it reserved; requests and concurrent calls never
//! exceed it. Reservations that expire at the same time are summed, so the size of a ledger is bounded by the number of
//! nodes and not of calls.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::amounts::BudgetAmounts;
use crate::rule::{BudgetLimits, BudgetRule};
use crate::window::{BudgetWindow, WindowBounds};

/// Upper bound of the processes with reservations in one ledger.
pub const WRITERS_MAX: usize = 64;
/// Upper bound of the expiry times of one process in one ledger. The record stays below a megabyte.
pub const GROUPS_MAX: usize = 160;
/// Time for which the last batch of a process without reservations is remembered.
pub const WRITER_KEPT_MS: i64 = 10 * 60_000;
/// Parts of a time limit: calls whose reservations expire within one of them expire together.
const EXPIRY_PARTS: i64 = 64;
const EXPIRY_STEP_MIN_MS: i64 = 1000;
/// Wait after a refusal that the end of another call may change.
const RETRY_SOON_SECONDS: u64 = 1;
/// Wait after a refusal by a budget whose window never ends.
const RETRY_NEVER_SECONDS: u64 = 86_400;

/// One run of a node's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BudgetWriter(pub Uuid);

/// Amounts of one window, and reservations.
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
    /// Number of its last batch, by which it recognizes a write whose outcome it did not learn.
    pub batch: u64,
    pub wrote_ms: i64,
    /// Sums by the time at which they expire.
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
    /// Begin of the window in which the request was counted.
    pub window_begins_ms: i64,
}

/// One step of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerChange {
    Reserve {
        amounts: BudgetAmounts,
        /// Duration after which the call no longer holds its reservation.
        timeout_ms: i64,
    },
    Settle {
        reservation: LedgerReservation,
        actual: BudgetAmounts,
    },
    /// End of a call that used nothing.
    Release {
        reservation: LedgerReservation,
    },
    /// Use of a call that reserved nothing.
    Count {
        actual: BudgetAmounts,
    },
}

/// Answer to one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerAnswer {
    Reserved { reservation: LedgerReservation, standing: BudgetStanding },
    Refused { refusal: LedgerRefusal, standing: BudgetStanding },
    Done,
}

/// Limit that refused a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReachedLimit {
    Usd,
    Tokens,
    Requests,
    Concurrent,
    /// The ledger itself has no space for another reservation.
    Reservations,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerRefusal {
    pub limit: ReachedLimit,
    pub retry_after_seconds: u64,
}

/// What is left of the limits that response headers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetStanding {
    /// Limit and remainder.
    pub requests: Option<(u64, u64)>,
    pub tokens: Option<(u64, u64)>,
    /// Time until the window ends; `None` without an end.
    pub resets_in_ms: Option<i64>,
}

/// Effect of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerOutcome {
    pub answers: Vec<LedgerAnswer>,
    /// Whether there is something to store.
    pub changed: bool,
    /// Whether the batch spent the last of a limit.
    pub exhausted: bool,
}

/// Sums of a ledger at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerTotals {
    pub bounds: WindowBounds,
    pub spent: BudgetAmounts,
    pub requests: u64,
    pub reserved: BudgetAmounts,
    /// Calls with reservations.
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

    /// Applies the changes in their order. Expired reservations and a past window are removed first.
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

    /// Moves to the window of this moment, and removes what expired. A clock that is behind does not move it back.
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

    /// Returns the sums at a moment, without what expired by then.
    pub fn totals_at(&self, rule: &BudgetRule, now_ms: i64) -> LedgerTotals {
        let mut then = self.clone();
        // Which process asks matters only to what is remembered of it.
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
            LedgerChange::Count { actual } => {
                self.requests = self.requests.saturating_add(1);
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

    /// Takes a call out of its group. An expired reservation is gone already.
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
    /// Returns the first limit of which nothing is left.
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

    /// Returns whether the window has used up a limit, reservations aside.
    pub fn is_exhausted(&self, limits: &BudgetLimits) -> bool {
        self.without_calls().reached(&BudgetLimits { concurrent: None, ..*limits }).is_some()
    }

    fn without_calls(&self) -> LedgerTotals {
        LedgerTotals { reserved: BudgetAmounts::default(), calls: 0, ..*self }
    }

    /// A refusal lasts until the window ends, except that calls under way may use less than they reserved.
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

/// Returns when a reservation of this moment expires: within the time limit, rounded down to a step.
fn expiry(now_ms: i64, timeout_ms: i64) -> i64 {
    let step = (timeout_ms / EXPIRY_PARTS).max(EXPIRY_STEP_MIN_MS);
    let until_ms = now_ms.saturating_add(timeout_ms);
    (until_ms - until_ms.rem_euclid(step)).max(now_ms + 1)
}

#[cfg(test)]
mod tests;
