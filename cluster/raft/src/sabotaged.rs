//! Deliberate faults of replicas that need more than one line. Release builds have none.

use std::mem;
use std::time::Duration;

use assay_storage_log::LogRecord;
use assay_storage_model::command::{Command, Outcome};
use assay_storage_model::entry::Entry;
use assay_storage_model::sabotage::{self, Sabotage};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::timeout;

/// Time after which a sabotaged leader no longer waits for a majority.
const QUORUM_WAIT: Duration = Duration::from_millis(250);

/// Returns the outcome of an entry. A sabotaged leader acknowledges its writes before a majority has them.
pub(crate) async fn written<T>(entry: Option<Bytes>, proposed: impl Future<Output = T>) -> Result<T, Vec<Outcome>> {
    let Some(outcomes) = entry.and_then(|entry| hoped_for(&entry)) else { return Ok(proposed.await) };
    timeout(QUORUM_WAIT, proposed).await.map_err(|_| outcomes)
}

/// Returns the outcomes of the writes of an entry if all succeed.
fn hoped_for(entry: &Bytes) -> Option<Vec<Outcome>> {
    let Ok(Entry::Commands(commands)) = Entry::decode(entry) else { return None };
    let hoped_for = |command: &Bytes| match Command::decode(command) {
        Ok(Command::Write(write)) => Some(Outcome::Written { xact: write.assigned }),
        _ => None,
    };
    commands.iter().map(hoped_for).collect()
}

/// Memory in which a sabotaged follower leaves its newest acknowledged entries until others come.
#[derive(Debug, Default)]
pub(crate) struct Late(Mutex<Vec<LogRecord>>);

impl Late {
    /// Returns the records to write when `records` come: on a leader these and the delayed ones, elsewhere only the
    /// delayed ones.
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
