//! Progress of one query, which the threads that run it update.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// Resources that a query has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryUsage {
    /// Number of rows that filters, groups and orders went through, on all nodes.
    pub rows_scanned: u64,
    /// Highest memory of a part of the query on one node, in bytes.
    pub memory_bytes: u64,
}

impl QueryUsage {
    pub fn is_nothing(&self) -> bool {
        *self == QueryUsage::default()
    }
}

/// What a query does at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryPhase {
    /// It waits for a permit to run.
    #[default]
    Waiting,
    /// It reads rows.
    Running,
    /// Its client reads the rows that were found.
    Sending,
}

impl QueryPhase {
    const ALL: [QueryPhase; 3] = [QueryPhase::Waiting, QueryPhase::Running, QueryPhase::Sending];
}

/// Progress of one query.
#[derive(Debug, Default)]
pub struct QueryProgress {
    rows_scanned: AtomicU64,
    memory_bytes: AtomicU64,
    phase: AtomicU8,
}

impl QueryProgress {
    pub fn scanned(&self, rows: u64) {
        self.rows_scanned.fetch_add(rows, Ordering::Relaxed);
    }

    /// Notes the present memory of a part.
    pub fn holds(&self, bytes: u64) {
        self.memory_bytes.fetch_max(bytes, Ordering::Relaxed);
    }

    /// Adds the usage on another node.
    pub fn add(&self, usage: QueryUsage) {
        self.scanned(usage.rows_scanned);
        self.holds(usage.memory_bytes);
    }

    pub fn usage(&self) -> QueryUsage {
        QueryUsage {
            rows_scanned: self.rows_scanned.load(Ordering::Relaxed),
            memory_bytes: self.memory_bytes.load(Ordering::Relaxed),
        }
    }

    /// Returns the usage since the last call, for a node that sends it part by part.
    pub fn take_usage(&self) -> QueryUsage {
        QueryUsage {
            rows_scanned: self.rows_scanned.swap(0, Ordering::Relaxed),
            memory_bytes: self.memory_bytes.swap(0, Ordering::Relaxed),
        }
    }

    pub fn enter(&self, phase: QueryPhase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    pub fn phase(&self) -> QueryPhase {
        QueryPhase::ALL.get(usize::from(self.phase.load(Ordering::Relaxed))).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_added_and_memory_is_the_highest() {
        let progress = QueryProgress::default();
        progress.scanned(5);
        progress.holds(100);
        progress.holds(40);
        progress.add(QueryUsage { rows_scanned: 7, memory_bytes: 60 });
        let expected = QueryUsage { rows_scanned: 12, memory_bytes: 100 };
        assert_eq!((progress.usage(), progress.take_usage()), (expected, expected));
        assert!(progress.usage().is_nothing(), "what was sent is not sent again");
    }

    #[test]
    fn a_query_waits_until_it_enters_another_phase() {
        let progress = QueryProgress::default();
        assert_eq!(progress.phase(), QueryPhase::Waiting);
        for phase in QueryPhase::ALL {
            progress.enter(phase);
            assert_eq!(progress.phase(), phase);
        }
    }
}
