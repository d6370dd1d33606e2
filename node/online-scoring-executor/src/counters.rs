//! Counters of online scoring for the metrics of a node.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the start of the process, and present amounts.
#[derive(Debug, Default)]
pub(crate) struct ScoringCounters {
    pub runs: AtomicU64,
    pub failures: AtomicU64,
    pub skipped: AtomicU64,
    pub reused: AtomicU64,
    pub stale: AtomicU64,
}

impl ScoringCounters {
    pub fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the metrics in Prometheus text format.
    pub fn text(&self, logs: usize, open: u64, running: u64, lag_ms: u64) -> String {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed).to_string();
        let rows = [
            ("runs_total", "counter", "Runs of functions that ended.", count(&self.runs)),
            ("failures_total", "counter", "Runs of functions that failed.", count(&self.failures)),
            ("skipped_total", "counter", "Runs that a cap of their rule refused.", count(&self.skipped)),
            ("reused_total", "counter", "Results of earlier runs that were used again.", count(&self.reused)),
            ("stale_total", "counter", "Results that their row no longer waited for.", count(&self.stale)),
            ("logs", "gauge", "Logs that this node follows.", logs.to_string()),
            ("open_triggers", "gauge", "Triggers that wait or run.", open.to_string()),
            ("running", "gauge", "Functions that run.", running.to_string()),
            (
                "lag_seconds",
                "gauge",
                "Age of the oldest write that is not scored yet.",
                format!("{:.3}", lag_ms as f64 / 1000.0),
            ),
        ];
        let each = rows.into_iter().map(|(name, kind, help, value)| {
            let name = format!("assay_online_scoring_{name}");
            format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n")
        });
        each.collect()
    }
}
