//! Counters of a node's budgets for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the start of the process.
#[derive(Debug, Default)]
pub(crate) struct BudgetCounters {
    /// Number of calls that a budget refused.
    pub refused: AtomicU64,
    /// Number of calls that were refused because a ledger could not be written.
    pub unavailable: AtomicU64,
    pub writes: AtomicU64,
    /// Number of writes that lost to another node.
    pub conflicts: AtomicU64,
    /// Number of writes that failed or have an unknown outcome.
    pub failures: AtomicU64,
    /// Number of windows that used up a limit.
    pub exhausted: AtomicU64,
}

impl BudgetCounters {
    pub fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
