//! Admission of calls by all matching budgets, and settlement of their cost.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use futures::future::join_all;
use parking_lot::Mutex;
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;
use uuid::Uuid;

use crate::amounts::BudgetAmounts;
use crate::call::{BudgetCall, BudgetRefusal};
use crate::catalog::BudgetCatalog;
use crate::counters::BudgetCounters;
use crate::headers::RateLimitHeaders;
use crate::ledger::BudgetWriter;
use crate::metrics;
use crate::queue::{LedgerHold, LedgerQueue, QueueParts, ReserveAnswer};
use crate::rule::{BudgetAction, BudgetRule, BudgetScope};
use crate::rule_table::RuleCache;

/// Maximum time for which a call waits for its reservations.
pub const ADMISSION_WAIT_MAX: Duration = Duration::from_secs(5);
/// Maximum time for which a response waits for its settlement.
pub const SETTLEMENT_WAIT_MAX: Duration = Duration::from_secs(30);
/// Minimum and maximum lifetime of a reservation.
const TIMEOUT_BOUNDS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(24 * 3600));

/// Handle to the budgets of all organizations, whose clones share all state.
#[derive(Clone)]
pub struct Budgets {
    parts: Arc<QueueParts>,
    queues: Arc<Mutex<HashMap<Uuid, Arc<LedgerQueue>>>>,
}

impl fmt::Debug for Budgets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budgets").field("writer", &self.parts.writer).finish_non_exhaustive()
    }
}

/// Admission of one call.
///
/// Dropping it without a settlement releases its reservations in the background.
pub struct BudgetReservation {
    budgets: Budgets,
    call: BudgetCall,
    held: HeldBudgets,
    /// Budgets of the provider secret that the current attempt uses.
    of_secret: HeldBudgets,
}

impl fmt::Debug for BudgetReservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BudgetReservation").field("call", &self.call).finish_non_exhaustive()
    }
}

/// Reservations and write queues of the budgets that count one call.
#[derive(Default)]
struct HeldBudgets {
    holds: Vec<LedgerHold>,
    /// Queues of budgets that count the call without a reservation.
    counted: Vec<Arc<LedgerQueue>>,
    headers: RateLimitHeaders,
}

/// Error for a settlement that is not durable yet. The node keeps writing it in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the cost of the call could not be stored within {} s; this node still tries", SETTLEMENT_WAIT_MAX.as_secs())]
pub struct SettlementPending;

impl Budgets {
    /// Creates the budgets of a catalog. Tasks of the runtime write the ledgers.
    pub fn new(catalog: Arc<dyn BudgetCatalog>, runtime: Handle) -> Budgets {
        let parts = QueueParts {
            catalog,
            rules: RuleCache::default(),
            writer: BudgetWriter(Uuid::new_v4()),
            batches: AtomicU64::new(1),
            runtime,
            counters: BudgetCounters::default(),
        };
        Budgets { parts: Arc::new(parts), queues: Arc::default() }
    }

    /// Admits a call, and reserves its estimate in all matching budgets or in none.
    ///
    /// Without a matching budget that rejects calls, this performs no I/O.
    pub async fn admit(&self, call: BudgetCall) -> Result<BudgetReservation, BudgetRefusal> {
        let table = self.parts.rules.table(&*self.parts.catalog);
        let rules = if table.is_empty() { Vec::new() } else { table.matching(call.org, call.scopes()) };
        let held = self.hold(&call, &rules).await?;
        Ok(BudgetReservation { budgets: self.clone(), call, held, of_secret: HeldBudgets::default() })
    }

    async fn hold(&self, call: &BudgetCall, rules: &[Arc<BudgetRule>]) -> Result<HeldBudgets, BudgetRefusal> {
        let held = self.try_hold(call, rules).await;
        match &held {
            Ok(_) => {}
            Err(BudgetRefusal::Unavailable(_)) => BudgetCounters::add(&self.parts.counters.unavailable),
            Err(_) => BudgetCounters::add(&self.parts.counters.refused),
        }
        held
    }

    async fn try_hold(&self, call: &BudgetCall, rules: &[Arc<BudgetRule>]) -> Result<HeldBudgets, BudgetRefusal> {
        let (rejecting, counting): (Vec<_>, Vec<_>) =
            rules.iter().partition(|rule| rule.action == BudgetAction::Reject);
        for rule in &rejecting {
            if call.estimate_nano_usd.is_none() && rule.limits.nano_usd.is_some() && !rule.allow_unpriced {
                let (budget, rule, model) = (rule.id, rule.description(), call.model.clone());
                return Err(BudgetRefusal::Unpriced { budget, rule, model });
            }
        }
        let time = call.timeout.clamp(TIMEOUT_BOUNDS.0, TIMEOUT_BOUNDS.1);
        let waits = rejecting.iter().map(|rule| self.queue(rule).reserve(call.estimate(), time));
        // After a timeout the receivers are gone, so late reservations are released.
        let answers = timeout(ADMISSION_WAIT_MAX, join_all(waits)).await.map_err(|_| {
            let waited = ADMISSION_WAIT_MAX.as_secs();
            BudgetRefusal::Unavailable(format!("the reservation was not stored within {waited} s"))
        })?;
        let mut held =
            HeldBudgets { counted: counting.iter().map(|rule| self.queue(rule)).collect(), ..HeldBudgets::default() };
        let mut refused = None;
        for (rule, answer) in rejecting.iter().zip(answers) {
            match answer {
                Ok(ReserveAnswer::Granted(hold, standing)) => {
                    held.holds.push(hold);
                    held.headers.add(&standing);
                }
                Ok(ReserveAnswer::NoBudget) => {}
                Ok(ReserveAnswer::Refused(refusal, standing)) => {
                    held.headers.add(&standing);
                    refused = longer(refused, (rule, refusal));
                }
                Ok(ReserveAnswer::Failed(why)) => return Err(BudgetRefusal::Unavailable(why)),
                Err(oneshot::error::RecvError { .. }) => {
                    return Err(BudgetRefusal::Unavailable("this node is shutting down".into()));
                }
            }
        }
        match refused {
            None => Ok(held),
            Some((rule, refusal)) => Err(BudgetRefusal::Exceeded {
                budget: rule.id,
                rule: rule.description(),
                limit: refusal.limit,
                retry_after_seconds: refusal.retry_after_seconds,
                headers: held.headers,
            }),
        }
    }

    fn queue(&self, rule: &BudgetRule) -> Arc<LedgerQueue> {
        let make = || LedgerQueue::new(Arc::clone(&self.parts), rule.id, rule.org);
        Arc::clone(self.queues.lock().entry(rule.id).or_insert_with(make))
    }

    /// Returns the metrics in Prometheus text format.
    pub fn metrics_text(&self) -> String {
        let rules = self.parts.rules.table(&*self.parts.catalog).all();
        metrics::text(&rules, &*self.parts.catalog, &self.parts.counters)
    }

    /// Deletes ledgers of deleted budgets, and logs the result.
    pub async fn sweep_and_say(&self) {
        match self.sweep().await {
            Ok(0) => {}
            Ok(ledgers) => tracing::info!(ledgers, "deleted ledgers of deleted budgets"),
            Err(why) => tracing::warn!(why, "could not delete ledgers of deleted budgets; a later sweep retries"),
        }
    }

    /// Deletes ledgers of deleted budgets, and returns their number.
    ///
    /// Every node has to call this periodically.
    pub async fn sweep(&self) -> Result<usize, String> {
        let table = self.parts.rules.table(&*self.parts.catalog);
        self.queues.lock().retain(|budget, queue| table.has(*budget) || Arc::strong_count(queue) > 1);
        // A ledger is younger than its budget, so a ledger without a budget belongs to a deleted one. The table has to
        // be read after the ledgers.
        let (ledgers, table) = (self.parts.catalog.ledgers(), self.parts.rules.table(&*self.parts.catalog));
        let mut deleted = 0;
        // A newer version may have written a rule that this one cannot read. Its ledger stays.
        let is_gone = |budget: Uuid| !table.has(budget) && !self.parts.catalog.exists(budget);
        for (budget, revision) in ledgers.into_iter().filter(|(budget, _)| is_gone(*budget)) {
            self.parts.catalog.delete(budget, revision).await?;
            deleted += 1;
        }
        Ok(deleted)
    }
}

/// Returns the refusal with the longer wait, or the known one if the waits are equal.
fn longer<R>(
    known: Option<(R, crate::ledger::LedgerRefusal)>,
    found: (R, crate::ledger::LedgerRefusal),
) -> Option<(R, crate::ledger::LedgerRefusal)> {
    match known {
        Some(known) if known.1.retry_after_seconds >= found.1.retry_after_seconds => Some(known),
        _ => Some(found),
    }
}

impl BudgetReservation {
    /// Releases the reservations of the previous provider secret, and reserves in the budgets of this one.
    ///
    /// After a refusal, the caller may try another secret.
    pub async fn use_secret(&mut self, secret: Uuid) -> Result<(), BudgetRefusal> {
        self.of_secret = HeldBudgets::default();
        let table = self.budgets.parts.rules.table(&*self.budgets.parts.catalog);
        let rules =
            if table.is_empty() { Vec::new() } else { table.matching(self.call.org, [BudgetScope::Secret(secret)]) };
        self.of_secret = self.budgets.hold(&self.call, &rules).await?;
        Ok(())
    }

    /// Returns the rate limit headers of the response, which do not reveal budgets of provider secrets.
    pub fn headers(&self) -> RateLimitHeaders {
        self.held.headers
    }

    /// Returns whether any budget counts this call.
    pub fn is_counted(&self) -> bool {
        [&self.held, &self.of_secret].into_iter().any(|held| !held.holds.is_empty() || !held.counted.is_empty())
    }

    /// Replaces the reservations with the actual use.
    ///
    /// The use is written even if the future is not awaited. The future resolves when the use is durable, and a
    /// response must not end before that.
    pub fn settle(self, actual: BudgetAmounts) -> impl Future<Output = Result<(), SettlementPending>> + Send + 'static {
        let BudgetReservation { held, of_secret, .. } = self;
        let mut waits = Vec::new();
        for held in [held, of_secret] {
            waits.extend(held.holds.into_iter().map(|hold| hold.settle(actual)));
            waits.extend(held.counted.iter().map(|queue| queue.count(actual)));
        }
        async move {
            let all = timeout(SETTLEMENT_WAIT_MAX, join_all(waits)).await.map_err(|_| SettlementPending)?;
            if all.iter().all(Result::is_ok) { Ok(()) } else { Err(SettlementPending) }
        }
    }
}
