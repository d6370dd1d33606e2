//! Backlog of entries that are in the log of a follower and not yet applied, bounded to limit memory.
//!
//! The backlog keeps each entry instead of a sum. An entry that is truncated, or replaced by a snapshot, is never
//! applied and must not be waited for.

use std::collections::VecDeque;
use std::time::Duration;

use openraft::EntryPayload;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::types::{Consensus, EntryBytes, EntryOf};

/// Upper bound of the bytes of unapplied entries, above which a follower accepts no more.
pub const UNAPPLIED_BYTES_MAX: u64 = 64 << 20;

/// Entries between the log and apply. Entries from before this process are not counted.
#[derive(Debug, Default)]
pub(crate) struct Lag {
    waiting: Mutex<UnappliedEntries>,
    less: Notify,
}

#[derive(Debug, Default)]
struct UnappliedEntries {
    /// Index and bytes of each entry, in the order of the log.
    entries: VecDeque<(u64, u64)>,
    bytes: u64,
}

impl UnappliedEntries {
    fn push(&mut self, index: u64, bytes: u64) {
        self.entries.push_back((index, bytes));
        self.bytes += bytes;
    }

    fn forget(&mut self, gone: Option<(u64, u64)>) {
        self.bytes -= gone.map_or(0, |(_, bytes)| bytes);
    }
}

impl Lag {
    pub fn appended<'a>(&self, entries: impl Iterator<Item = &'a EntryOf>) {
        let mut waiting = self.waiting.lock();
        for entry in entries {
            match payload_bytes(&entry.payload) {
                0 => {}
                bytes => waiting.push(entry.log_id.index, bytes),
            }
        }
    }

    /// Removes entries that were applied or are part of an installed snapshot.
    pub fn passed(&self, up_to: u64) {
        let mut waiting = self.waiting.lock();
        while waiting.entries.front().is_some_and(|(index, _)| *index <= up_to) {
            let gone = waiting.entries.pop_front();
            waiting.forget(gone);
        }
        drop(waiting);
        self.less.notify_waiters();
    }

    pub fn truncated(&self, since: u64) {
        let mut waiting = self.waiting.lock();
        while waiting.entries.back().is_some_and(|(index, _)| *index >= since) {
            let gone = waiting.entries.pop_back();
            waiting.forget(gone);
        }
        drop(waiting);
        self.less.notify_waiters();
    }

    pub fn bytes(&self) -> u64 {
        self.waiting.lock().bytes
    }

    fn is_large(&self) -> bool {
        self.bytes() > UNAPPLIED_BYTES_MAX
    }

    /// Waits for space up to this time, and returns whether there is some.
    pub async fn wait_for_space(&self, within: Duration) -> bool {
        let until = Instant::now() + within;
        loop {
            let less = self.less.notified();
            if !self.is_large() {
                return true;
            }
            if timeout(until.saturating_duration_since(Instant::now()), less).await.is_err() {
                return !self.is_large();
            }
        }
    }
}

/// Returns the bytes of an entry's payload.
pub(crate) fn payload_bytes(payload: &EntryPayload<Consensus>) -> u64 {
    match payload {
        EntryPayload::Normal(EntryBytes(bytes)) => bytes.len() as u64,
        EntryPayload::Blank | EntryPayload::Membership(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use openraft::testing::log_id;

    use super::*;

    const MIB: usize = 1 << 20;

    fn entry(index: u64, bytes: usize) -> EntryOf {
        let payload = EntryPayload::Normal(EntryBytes(Bytes::from(vec![0; bytes])));
        EntryOf { log_id: log_id(1, 1, index), payload }
    }

    fn append(lag: &Lag, indices: std::ops::Range<u64>, bytes: usize) {
        let entries: Vec<EntryOf> = indices.map(|index| entry(index, bytes)).collect();
        lag.appended(entries.iter());
    }

    /// Regression: a voter whose tail was truncated repeatedly accepted no entries until a restart.
    #[tokio::test(start_paused = true)]
    async fn what_is_truncated_or_inside_a_snapshot_is_not_waited_for() {
        let lag = Lag::default();
        append(&lag, 0..70, MIB);
        assert!(!lag.wait_for_space(Duration::from_millis(100)).await);
        lag.truncated(10);
        assert_eq!(lag.bytes(), 10 * MIB as u64);
        append(&lag, 10..70, MIB);
        assert!(!lag.wait_for_space(Duration::from_millis(100)).await, "what came in its place counts");
        lag.passed(1000);
        assert_eq!(lag.bytes(), 0);
        assert!(lag.wait_for_space(Duration::ZERO).await);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_for_space_hears_of_it_and_old_entries_count_for_nothing() {
        let lag = Lag::default();
        lag.passed(5); // entries of an earlier process
        append(&lag, 6..75, MIB);
        let (has_space, ()) = tokio::join!(lag.wait_for_space(Duration::from_millis(100)), async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            lag.passed(20);
        });
        assert!(has_space);
        assert_eq!(lag.bytes(), 54 * MIB as u64);
    }
}
