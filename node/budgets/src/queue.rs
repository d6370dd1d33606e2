//! Write queue of one ledger on this node, which combines waiting changes into one conditional write at a time.
//!
//! A write that lost to another node is repeated on the newer ledger. A write with an unknown outcome is sent again
//! unchanged. The repetition ends when the ledger contains the batch number, or has a newer revision without it. No
//! change is therefore applied twice or lost.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use assay_storage_model::OrgId;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::sleep;
use uuid::Uuid;

use crate::amounts::BudgetAmounts;
use crate::catalog::{BudgetCatalog, LedgerPut, LedgerPutOutcome};
use crate::counters::BudgetCounters;
use crate::ledger::{
    BudgetLedger, BudgetStanding, BudgetWriter, LedgerAnswer, LedgerChange, LedgerOutcome, LedgerRefusal,
    LedgerReservation,
};
use crate::rule_table::RuleCache;

/// Upper bound of the number of changes in one write.
pub const BATCH_MAX: usize = 1024;
/// Upper bound of the number of waiting changes beyond which new reservations fail.
///
/// Settlements and releases need no bound, because each of them follows a reservation.
pub const WAITING_MAX: usize = 10_000;
/// Upper bound of the number of waiting changes beyond which calls without reservations are counted together.
pub const COUNTS_WAITING_MAX: usize = 10_000;
/// Initial and maximum wait after a write that lost to another node.
const CONFLICT_WAIT: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));
/// Initial and maximum wait after a failed write.
const FAILURE_WAIT: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// Upper bound of the number of times a wait is doubled.
const DOUBLINGS_MAX: u32 = 10;

/// State that the write queues of a node share.
pub(crate) struct QueueParts {
    pub catalog: Arc<dyn BudgetCatalog>,
    pub rules: RuleCache,
    pub writer: BudgetWriter,
    pub batches: AtomicU64,
    pub runtime: Handle,
    pub counters: BudgetCounters,
}

pub(crate) struct LedgerQueue {
    parts: Arc<QueueParts>,
    pub budget: Uuid,
    org: OrgId,
    state: Mutex<QueueState>,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<QueuedChange>,
    /// Whether a task is writing batches.
    running: bool,
}

struct QueuedChange {
    change: LedgerChange,
    reply: ChangeReply,
}

enum ChangeReply {
    Reservation(oneshot::Sender<ReserveAnswer>),
    Durable(oneshot::Sender<()>),
    Nobody,
}

/// Answer to a reservation.
pub(crate) enum ReserveAnswer {
    Granted(LedgerHold, BudgetStanding),
    Refused(LedgerRefusal, BudgetStanding),
    /// The budget was deleted.
    NoBudget,
    Failed(String),
}

/// Reservation of a call in one ledger, which is released if it is dropped without a settlement.
pub(crate) struct LedgerHold {
    queue: Arc<LedgerQueue>,
    reservation: Option<LedgerReservation>,
}

/// Prepared write of a batch.
struct BatchWrite {
    put: LedgerPut,
    batch: u64,
    outcome: LedgerOutcome,
    /// Whether an earlier attempt had an unknown outcome and may therefore still take effect.
    may_be_made: bool,
}

/// Result of one attempt to write a batch.
enum AttemptEnd {
    Applied(LedgerOutcome),
    NoBudget,
    Unreadable(String),
    /// The batch is undecided, and needs another attempt after this wait.
    Again(Duration),
}

/// State of the attempts to write one batch.
#[derive(Default)]
struct Attempts {
    pending: Option<BatchWrite>,
    lost: u32,
    failed: u32,
    fenced: bool,
}

impl QueueState {
    /// Adds a call to the newest waiting count, and returns whether there is one.
    fn join_count(&mut self, actual: BudgetAmounts) -> bool {
        for queued in self.waiting.iter_mut().rev() {
            if let LedgerChange::Count { calls, actual: sum } = &mut queued.change {
                *calls = calls.saturating_add(1);
                *sum = sum.plus(actual);
                return true;
            }
        }
        false
    }
}

impl LedgerQueue {
    pub fn new(parts: Arc<QueueParts>, budget: Uuid, org: OrgId) -> Arc<LedgerQueue> {
        Arc::new(LedgerQueue { parts, budget, org, state: Mutex::default() })
    }

    pub fn reserve(
        self: &Arc<LedgerQueue>,
        amounts: BudgetAmounts,
        timeout: Duration,
    ) -> oneshot::Receiver<ReserveAnswer> {
        let (reply, answer) = oneshot::channel();
        if self.state.lock().waiting.len() >= WAITING_MAX {
            let why = format!("{WAITING_MAX} calls already wait for a reservation");
            // The receiver still exists, so the send cannot fail.
            let _ = reply.send(ReserveAnswer::Failed(why));
            return answer;
        }
        let timeout_ms = i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX);
        self.push(LedgerChange::Reserve { amounts, timeout_ms }, ChangeReply::Reservation(reply));
        answer
    }

    /// Counts a call without a reservation. The receiver resolves when the change is durable.
    ///
    /// While too many changes wait, the call joins a waiting count. It is not lost, but its receiver fails at once.
    pub fn count(self: &Arc<LedgerQueue>, actual: BudgetAmounts) -> oneshot::Receiver<()> {
        let (reply, durable) = oneshot::channel();
        let mut state = self.state.lock();
        if state.waiting.len() >= COUNTS_WAITING_MAX && state.join_count(actual) {
            return durable;
        }
        self.push_to(&mut state, LedgerChange::Count { calls: 1, actual }, ChangeReply::Durable(reply));
        durable
    }

    fn push(self: &Arc<LedgerQueue>, change: LedgerChange, reply: ChangeReply) {
        self.push_to(&mut self.state.lock(), change, reply);
    }

    fn push_to(self: &Arc<LedgerQueue>, state: &mut QueueState, change: LedgerChange, reply: ChangeReply) {
        state.waiting.push_back(QueuedChange { change, reply });
        if !std::mem::replace(&mut state.running, true) {
            self.parts.runtime.spawn(Arc::clone(self).run());
        }
    }

    async fn run(self: Arc<LedgerQueue>) {
        let (mut batch, mut attempts) = (Vec::new(), Attempts::default());
        loop {
            // A batch with an unknown outcome must not change.
            if attempts.pending.is_none() && !self.fill(&mut batch) {
                return;
            }
            match self.attempt(&batch, &mut attempts).await {
                AttemptEnd::Again(wait) => {
                    sleep(wait).await;
                    continue;
                }
                AttemptEnd::Applied(outcome) => self.answer(std::mem::take(&mut batch), outcome),
                AttemptEnd::NoBudget => batch.drain(..).for_each(|queued| queued.reply.no_budget()),
                AttemptEnd::Unreadable(why) => {
                    tracing::error!(budget = %self.budget, why, "the ledger of a budget is damaged");
                    batch.drain(..).for_each(|queued| queued.reply.failed(&why));
                }
            }
            attempts = Attempts::default();
        }
    }

    /// Adds waiting changes to a batch, and returns whether there is work to do.
    ///
    /// Ends of calls come first. Reservations without a waiting caller are dropped.
    fn fill(&self, batch: &mut Vec<QueuedChange>) -> bool {
        let mut state = self.state.lock();
        let more = BATCH_MAX.saturating_sub(batch.len()).min(state.waiting.len());
        batch.extend(state.waiting.drain(..more));
        batch.retain(|queued| match &queued.reply {
            ChangeReply::Reservation(reply) => !reply.is_closed(),
            _ => true,
        });
        batch.sort_by_key(|queued| matches!(queued.change, LedgerChange::Reserve { .. }));
        if batch.is_empty() && state.waiting.is_empty() {
            state.running = false;
            return false;
        }
        true
    }

    async fn attempt(&self, batch: &[QueuedChange], attempts: &mut Attempts) -> AttemptEnd {
        let parts = &self.parts;
        let Some(rule) = parts.rules.get(&*parts.catalog, self.budget) else { return AttemptEnd::NoBudget };
        let stored = parts.catalog.ledger(self.budget);
        let revision = stored.as_ref().map(|stored| stored.revision);
        let now_ms = parts.catalog.now_ms();
        let mut ledger = match stored.map(|stored| BudgetLedger::decode(&stored.body)) {
            None => BudgetLedger::new(&rule, now_ms),
            Some(Ok(ledger)) => ledger,
            Some(Err(error)) => return AttemptEnd::Unreadable(error.to_string()),
        };
        if let Some(pending) = attempts.pending.take() {
            if ledger.last_batch(parts.writer) == Some(pending.batch) {
                return AttemptEnd::Applied(pending.outcome);
            }
            if revision == pending.put.expect {
                return self.write(pending, attempts).await;
            }
            // Its expected revision is past, so the write did not take effect and never will.
        }
        let number = parts.batches.fetch_add(1, Ordering::Relaxed);
        let changes: Vec<LedgerChange> = batch.iter().map(|queued| queued.change).collect();
        let outcome = ledger.apply(&rule, (parts.writer, number), now_ms, &changes);
        if !outcome.changed {
            if attempts.fenced || changes.is_empty() {
                return AttemptEnd::Applied(outcome);
            }
            // Another node may have freed amounts that the local copy does not show yet.
            attempts.fenced = true;
            return match parts.catalog.fence().await {
                Ok(()) => AttemptEnd::Again(Duration::ZERO),
                Err(_) => AttemptEnd::Applied(outcome),
            };
        }
        let put = LedgerPut { budget: self.budget, org: self.org, expect: revision, body: ledger.encode() };
        self.write(BatchWrite { put, batch: number, outcome, may_be_made: false }, attempts).await
    }

    async fn write(&self, write: BatchWrite, attempts: &mut Attempts) -> AttemptEnd {
        let counters = &self.parts.counters;
        BudgetCounters::add(&counters.writes);
        let sent = self.parts.catalog.put(write.put.clone()).await;
        let (wait, is_unknown) = match sent {
            LedgerPutOutcome::Written => return AttemptEnd::Applied(write.outcome),
            LedgerPutOutcome::Stale => {
                BudgetCounters::add(&counters.conflicts);
                attempts.lost = attempts.lost.saturating_add(1);
                (self.wait(CONFLICT_WAIT, attempts.lost), false)
            }
            LedgerPutOutcome::NotWritten(why) => {
                tracing::warn!(budget = %self.budget, why, "cannot write the ledger of a budget; retrying");
                (self.failed(attempts), false)
            }
            LedgerPutOutcome::Unknown(why) => {
                tracing::warn!(budget = %self.budget, why, "the write of a budget's ledger has an unknown outcome");
                // If the fence fails, the copy may lack the write. Sending the write again is harmless.
                let _ = self.parts.catalog.fence().await;
                (self.failed(attempts), true)
            }
        };
        if is_unknown || write.may_be_made {
            attempts.pending = Some(BatchWrite { may_be_made: true, ..write });
        }
        AttemptEnd::Again(wait)
    }

    fn failed(&self, attempts: &mut Attempts) -> Duration {
        BudgetCounters::add(&self.parts.counters.failures);
        attempts.failed = attempts.failed.saturating_add(1);
        self.wait(FAILURE_WAIT, attempts.failed)
    }

    /// Returns a wait that doubles with every attempt. Each process scales it differently, so that one of them wins.
    fn wait(&self, (first, most): (Duration, Duration), attempt: u32) -> Duration {
        let doubled = first.saturating_mul(1 << attempt.min(DOUBLINGS_MAX)).min(most);
        let share = (self.parts.writer.0.as_u128() >> (attempt % 16 * 8)) as u8;
        doubled.mul_f64(f64::from(share) / f64::from(u8::MAX))
    }

    fn answer(self: &Arc<LedgerQueue>, batch: Vec<QueuedChange>, outcome: LedgerOutcome) {
        if outcome.exhausted {
            BudgetCounters::add(&self.parts.counters.exhausted);
            tracing::warn!(budget = %self.budget, org = %self.org, "a budget is used up until its window ends");
        }
        for (queued, answer) in batch.into_iter().zip(outcome.answers) {
            match (queued.reply, answer) {
                (ChangeReply::Reservation(reply), LedgerAnswer::Reserved { reservation, standing }) => {
                    let hold = LedgerHold { queue: Arc::clone(self), reservation: Some(reservation) };
                    // If the caller has given up, the send returns the hold, and dropping it releases it.
                    drop(reply.send(ReserveAnswer::Granted(hold, standing)));
                }
                (ChangeReply::Reservation(reply), LedgerAnswer::Refused { refusal, standing }) => {
                    drop(reply.send(ReserveAnswer::Refused(refusal, standing)));
                }
                (reply, _) => reply.done(),
            }
        }
    }
}

// Sends may fail, because the waiting caller may have given up.
impl ChangeReply {
    fn done(self) {
        if let ChangeReply::Durable(reply) = self {
            let _ = reply.send(());
        }
    }

    fn no_budget(self) {
        match self {
            ChangeReply::Reservation(reply) => drop(reply.send(ReserveAnswer::NoBudget)),
            other => other.done(),
        }
    }

    /// Fails a reservation. The end of a call gets no reply, because it is not durable.
    fn failed(self, why: &str) {
        if let ChangeReply::Reservation(reply) = self {
            drop(reply.send(ReserveAnswer::Failed(why.to_owned())));
        }
    }
}

impl LedgerHold {
    /// Replaces the reservation with the actual use. The receiver resolves when the change is durable.
    pub fn settle(mut self, actual: BudgetAmounts) -> oneshot::Receiver<()> {
        let (reply, durable) = oneshot::channel();
        if let Some(reservation) = self.reservation.take() {
            self.queue.push(LedgerChange::Settle { reservation, actual }, ChangeReply::Durable(reply));
        }
        durable
    }
}

impl Drop for LedgerHold {
    fn drop(&mut self) {
        if let Some(reservation) = self.reservation.take() {
            self.queue.push(LedgerChange::Release { reservation }, ChangeReply::Nobody);
        }
    }
}
