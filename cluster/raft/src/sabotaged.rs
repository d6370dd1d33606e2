//! Deliberate faults of replicas that need more than a line. Not part of a regular build.

use std::mem;
use std::time::Duration;

use assay_storage_log::LogRecord;
use assay_storage_model::command::{Command, Outcome};
use assay_storage_model::entry::Entry;
use assay_storage_model::sabotage::{self, Sabotage};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::timeout;

/// A majority that has not answered by then is not waited for.
const QUORUM_WAIT: Duration = Duration::from_millis(250);

/// Outcome of an entry; of a sabotaged leader's, with its writes taken for written where no majority has them yet.
pub(crate) async fn written<T>(entry: Option<Bytes>, proposed: impl Future<Output = T>) -> Result<T, Vec<Outcome>> {
    let Some(outcomes) = entry.and_then(|entry| hoped_for(&entry)) else { return Ok(proposed.await) };
    timeout(QUORUM_WAIT, proposed).await.map_err(|_| outcomes)
}

/// Outcomes of its writes, if all goes well.
fn hoped_for(entry: &Bytes) -> Option<Vec<Outcome>> {
    let Ok(Entry::Commands(commands)) = Entry::decode(entry) else { return None };
    let hoped_for = |command: &Bytes| match Command::decode(command) {
        Ok(Command::Write(write)) => Some(Outcome::Written { xact: write.assigned }),
        _ => None,
    };
    commands.iter().map(hoped_for).collect()
}

/// Place in memory where a sabotaged follower leaves entries that it has answered for: its newest, in memory, until
/// others come.
#[derive(Debug, Default)]
pub(crate) struct Late(Mutex<Vec<LogRecord>>);

impl Late {
    /// Records that are to be written when `records` come: these, and what has waited for them.
    pub fn due(&self, records: Vec<LogRecord>, leads: bool) -> Vec<LogRecord> {
        if !sabotage::is(Sabotage::AckOnLeaderOnly) {
            return records;
        }
        let mut late = self.0.lock();
        if leads {
            return mem::take(&mut *late).into_iter().chain(records).collect();
        }
        mem::replace(&mut *late, records)
    }

    pub fn truncate(&self, since: u64) {
        self.0.lock().retain(|record| record.index < since);
    }

    pub fn purge(&self, up_to: u64) {
        self.0.lock().retain(|record| record.index > up_to);
    }
}
