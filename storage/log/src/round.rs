//! Round of the writer: the batches that one fsync covers, and the completions that wait for it.
//!
//! A batch holds the records of only one group, because the engine reads and checks a whole batch to return one record.
//! With mixed batches, a replay of N groups would read the log N times.

use std::collections::{BTreeMap, BTreeSet};

use assay_storage_model::GroupId;
use raft_engine::LogBatch;

use crate::frame::Frame;
use crate::{Completion, LogError};

/// Upper bound of the emptied batches that are kept for reuse of their memory.
const SPARE_BATCHES_MAX: usize = 8;

#[derive(Default)]
pub(crate) struct Round {
    pub batches: Vec<LogBatch>,
    /// Index of the batch for each group's next item.
    open: BTreeMap<GroupId, usize>,
    pub touched: BTreeSet<GroupId>,
    pub bytes: usize,
    pub dones: Vec<(Completion, Result<(), LogError>)>,
    spare: Vec<LogBatch>,
}

impl Round {
    pub fn has(&self, group: GroupId) -> bool {
        self.open.contains_key(&group)
    }

    /// Returns the batch for a group's next item.
    pub fn batch(&mut self, group: GroupId) -> &mut LogBatch {
        self.touched.insert(group);
        let place = match self.open.get(&group) {
            Some(place) => *place,
            None => {
                self.batches.push(self.spare.pop().unwrap_or_default());
                self.batches.len() - 1
            }
        };
        self.open.insert(group, place);
        &mut self.batches[place]
    }

    /// Adds records in batches of about `bytes_max`, so that one record can be read without many others.
    pub fn add(&mut self, group: GroupId, frames: &[Frame], bytes_max: usize) -> Result<(), String> {
        let mut from = 0;
        while from < frames.len() {
            let mut bytes = 0;
            let fitting = |frame: &&Frame| {
                let fits = bytes == 0 || bytes + frame.len() <= bytes_max;
                bytes += frame.len();
                fits
            };
            let to = from + frames[from..].iter().take_while(fitting).count();
            let batch = self.batch(group);
            batch.add_entries::<Frame>(group.0, &frames[from..to]).map_err(|error| error.to_string())?;
            let full = batch.approximate_size() >= bytes_max;
            self.bytes += frames[from..to].iter().map(Frame::len).sum::<usize>();
            if full {
                self.open.remove(&group);
            }
            from = to;
        }
        Ok(())
    }

    /// Adds a value of a group to its batch.
    pub fn put(&mut self, group: GroupId, key: &[u8], value: Vec<u8>) -> Result<(), String> {
        self.bytes += key.len() + value.len();
        self.batch(group).put(group.0, key.to_vec(), value).map_err(|error| error.to_string())
    }

    /// Takes back the written batches for the next round.
    pub fn reuse(&mut self, batches: Vec<LogBatch>) {
        self.open.clear();
        self.bytes = 0;
        let room = SPARE_BATCHES_MAX.saturating_sub(self.spare.len());
        self.spare.extend(batches.into_iter().filter(LogBatch::is_empty).take(room));
    }
}
