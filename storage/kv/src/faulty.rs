//! Store that fails at the n-th commit of another store, before the commit is done or after it.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::{Batch, Entries, Kv, KvError};

/// Point at which the commit fails. The caller gets the same error either way and cannot distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitFault {
    /// Nothing of the batch is there.
    BeforeApplying,
    /// All of it is there, durably.
    AfterApplying,
}

/// Wraps any store. After the fault it takes no further commits, as the store on disk would not.
#[derive(Debug)]
pub struct FaultyKv {
    inner: Arc<dyn Kv>,
    /// Number of the commit that fails (1 is the next one), and the point of failure.
    plan: Option<(u64, CommitFault)>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    commits: u64,
    stopped: bool,
}

impl FaultyKv {
    pub fn new(inner: Arc<dyn Kv>, plan: Option<(u64, CommitFault)>) -> FaultyKv {
        FaultyKv { inner, plan, state: Mutex::new(State::default()) }
    }

    /// Commits so far that were within the limits, the failed one included.
    pub fn commits(&self) -> u64 {
        self.state.lock().commits
    }
}

impl Kv for FaultyKv {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, KvError> {
        self.inner.get(key)
    }

    fn scan(&self, prefix: &[u8]) -> Result<Entries, KvError> {
        self.inner.scan(prefix)
    }

    fn commit(&self, batch: &Batch) -> Result<(), KvError> {
        batch.check_limits()?;
        let mut state = self.state.lock();
        if state.stopped {
            return Err(KvError::Stopped);
        }
        state.commits += 1;
        match self.plan {
            Some((nth, fault)) if nth == state.commits => {
                state.stopped = true;
                if fault == CommitFault::AfterApplying {
                    self.inner.commit(batch)?;
                }
                Err(std::io::Error::other("a fault was injected at this commit").into())
            }
            _ => self.inner.commit(batch),
        }
    }

    fn entries(&self) -> u64 {
        self.inner.entries()
    }
}
