//! Counts of a node for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the start of the process.
#[derive(Debug, Default)]
pub(crate) struct BudgetCounters {
    /// Calls that a budget refused.
    pub refused: AtomicU64,
    /// Calls that were refused because a ledger could not be written.
    pub unavailable: AtomicU64,
    pub writes: AtomicU64,
    /// Writes that lost to another node.
    pub conflicts: AtomicU64,
    /// Writes that failed, or whose outcome is unknown.
    pub failures: AtomicU64,
    /// Windows that used up a limit.
    pub exhausted: AtomicU64,
}

impl BudgetCounters {
    pub fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
