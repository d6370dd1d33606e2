//! The thread that applies one group's entries.
//!
//! One thread per group and not a pool: what is applied is CPU work of up to some milliseconds an entry, it must
//! keep its order, and a slow group must not hold up the others; an idle thread costs a stack. The worker of
//! consensus hands over a batch and waits for its outcomes, so the queue is as short as one batch, and the runtime
//! that sends heartbeats never computes.
//!
//! A1: entries are applied in order, each once; the position that is published never runs ahead of the machine.
//! A2: after an error or a panic nothing more is applied.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use assay_storage_model::command::Outcome;
use assay_storage_model::{GroupId, LogPosition};
use bytes::Bytes;
use openraft::{EntryPayload, StoredMembership};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};

use crate::encoding;
use crate::fatal::{APPLY_THREAD, OnFatal};
use crate::machine::{Machine, MachineError};
use crate::types::{EntryBytes, EntryOf, position_of};

/// Batches that wait for the thread. The worker waits for each, so one is enough.
const BATCHES_WAITING_MAX: usize = 1;

/// The index up to which a group applied, plus one; 0 before its first entry.
pub(crate) type AppliedNext = watch::Sender<u64>;

struct Batch {
    entries: Vec<EntryOf>,
    answer: oneshot::Sender<Result<Vec<Vec<Outcome>>, MachineError>>,
}

/// Where the worker of consensus hands batches over. The thread ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Applier {
    batches: mpsc::Sender<Batch>,
    fatal: OnFatal,
}

/// To wait for the end of the thread, which comes when its [`Applier`] is gone.
#[derive(Clone, Debug, Default)]
pub struct ApplyThread(Arc<Mutex<Option<JoinHandle<()>>>>);

impl ApplyThread {
    /// Blocking.
    pub fn join(&self) {
        if let Some(handle) = self.0.lock().take() {
            // A panic in it has been reported where its batch was waited for.
            let _ = handle.join();
        }
    }
}

impl Applier {
    pub fn start(
        group: GroupId,
        machine: Arc<dyn Machine>,
        applied: Arc<AppliedNext>,
        fatal: OnFatal,
    ) -> io::Result<(Applier, ApplyThread)> {
        let (sender, receiver) = mpsc::channel(BATCHES_WAITING_MAX);
        let name = match group.shard() {
            Some(shard) => format!("{APPLY_THREAD}{shard}"),
            None => format!("{APPLY_THREAD}cat"),
        };
        let work = move || run(receiver, &*machine, &applied);
        let handle = thread::Builder::new().name(name).spawn(work)?;
        Ok((Applier { batches: sender, fatal }, ApplyThread(Arc::new(Mutex::new(Some(handle))))))
    }

    /// The outcomes of each entry, in order. An error has been reported as fatal.
    pub async fn apply(&self, entries: Vec<EntryOf>) -> Result<Vec<Vec<Outcome>>, MachineError> {
        let (answer, outcomes) = oneshot::channel();
        let sent = self.batches.send(Batch { entries, answer }).await;
        let result = match sent {
            Ok(()) => outcomes.await.unwrap_or_else(|_| Err(MachineError::fatal("the apply thread panicked"))),
            Err(_) => Err(MachineError::fatal("the apply thread is gone")),
        };
        result.inspect_err(|error| self.fatal.report(format_args!("applying an entry: {error}")))
    }
}

fn run(mut batches: mpsc::Receiver<Batch>, machine: &dyn Machine, applied: &AppliedNext) {
    while let Some(Batch { entries, answer }) = batches.blocking_recv() {
        let mut outcomes = Vec::with_capacity(entries.len());
        let mut result = Ok(());
        for entry in entries {
            let position = position_of(&entry.log_id);
            match apply_one(machine, position, entry) {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
            applied.send_replace(position.index + 1); // A1
        }
        let failed = result.is_err();
        // The worker is gone only when its group shuts down.
        let _ = answer.send(result.map(|()| outcomes));
        if failed {
            return; // A2
        }
    }
}

fn apply_one(machine: &dyn Machine, position: LogPosition, entry: EntryOf) -> Result<Vec<Outcome>, MachineError> {
    let log_id = entry.log_id;
    match entry.payload {
        EntryPayload::Normal(EntryBytes(bytes)) => apply_commands(machine, position, &bytes),
        EntryPayload::Blank => machine.apply_blank(position).map(|()| Vec::new()),
        EntryPayload::Membership(membership) => {
            let stored = encoding::encode_stored_membership(&StoredMembership::new(Some(log_id), membership));
            machine.apply_membership(position, &stored).map(|()| Vec::new())
        }
    }
}

fn apply_commands(machine: &dyn Machine, position: LogPosition, entry: &Bytes) -> Result<Vec<Outcome>, MachineError> {
    machine.apply(position, entry).map_err(|error| MachineError::fatal(format_args!("{position}: {error}")))
}
