//! Thread that applies the entries of one group. A simulation uses a task instead.
//!
//! Each group has its own thread instead of a pool. Applying an entry takes up to some milliseconds of CPU time, must
//! keep its order, and must not delay other groups. An idle thread costs only its stack. The worker of consensus passes
//! a batch and waits for its outcomes, so the queue is as short as one batch. The runtime that sends heartbeats never
//! applies entries.
//!
//! A1: entries are applied in order, each once, and the published position is never ahead of the machine.
//! A2: after an error or a panic nothing more is applied.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use assay_storage_model::command::Outcome;
use assay_storage_model::{GroupId, LogPosition, NodeId, ReplicaId};
use bytes::Bytes;
use openraft::{EntryPayload, StoredMembership};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use crate::apply::backlog::Lag;
use crate::apply::machine::{Machine, MachineError};
use crate::fatal::{APPLY_THREAD, OnFatal};
use crate::log::encoding;
use crate::types::{self, EntryBytes, EntryOf, position_of};
use crate::work::Work;
use crate::write_path::large_writes::{LargeWrites, blob_named};

/// Capacity of the queue of batches. The worker waits for each batch, so one is enough.
const BATCHES_WAITING_MAX: usize = 1;

/// Applied index of a group plus one, or 0 before its first entry.
pub(crate) type AppliedNext = watch::Sender<u64>;

struct ApplyBatch {
    entries: Vec<EntryOf>,
    answer: oneshot::Sender<Result<Vec<Vec<Outcome>>, MachineError>>,
}

/// Handle through which consensus passes batches to the thread. The thread ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Applier {
    batches: mpsc::Sender<ApplyBatch>,
    machine: Arc<dyn Machine>,
    large: Arc<dyn LargeWrites>,
    group: GroupId,
    replica: ReplicaId,
    lag: Arc<Lag>,
    fatal: OnFatal,
}

pub(crate) struct ApplyParts {
    pub group: GroupId,
    pub replica: ReplicaId,
    pub machine: Arc<dyn Machine>,
    pub large: Arc<dyn LargeWrites>,
    pub applied: Arc<AppliedNext>,
    pub lag: Arc<Lag>,
    pub runtime: Handle,
    pub work: Work,
    pub fatal: OnFatal,
}

/// Handle to wait for the end of the thread, which follows the drop of its [`Applier`].
#[derive(Clone, Debug, Default)]
pub struct ApplyThread(Arc<Mutex<Option<JoinHandle<()>>>>);

impl ApplyThread {
    /// Waits for the end of the thread. Blocking.
    pub fn join(&self) {
        if let Some(handle) = self.0.lock().take() {
            // A panic of the thread was reported to the waiter of its batch.
            let _ = handle.join();
        }
    }
}

impl Applier {
    pub fn start(parts: ApplyParts) -> io::Result<(Applier, ApplyThread)> {
        let ApplyParts { group, replica, machine, large, applied, lag, runtime, work, fatal } = parts;
        let (sender, batches) = mpsc::channel(BATCHES_WAITING_MAX);
        let working = Arc::clone(&machine);
        let thread = match &work {
            Work::Threads => {
                let name = match group.shard() {
                    Some(shard) => format!("{APPLY_THREAD}{shard}"),
                    None => format!("{APPLY_THREAD}cat"),
                };
                Some(thread::Builder::new().name(name).spawn(move || run(batches, &*working, &applied))?)
            }
            Work::InPlace(_) => {
                runtime.spawn(run_in_place(work, batches, working, applied));
                None
            }
        };
        let applier = Applier { batches: sender, machine, large, group, replica, lag, fatal };
        Ok((applier, ApplyThread(Arc::new(Mutex::new(thread)))))
    }

    /// Applies a batch and returns the outcomes of each entry, in order. Errors are already reported.
    pub async fn apply(&self, entries: Vec<EntryOf>) -> Result<Vec<Vec<Outcome>>, MachineError> {
        let last = entries.last().map_or(0, |entry| entry.log_id.index);
        self.gather(&entries).await?;
        let (answer, outcomes) = oneshot::channel();
        let sent = self.batches.send(ApplyBatch { entries, answer }).await;
        let result = match sent {
            Ok(()) => outcomes.await.unwrap_or_else(|_| Err(MachineError::fatal("the apply thread panicked"))),
            Err(_) => Err(MachineError::fatal("the apply thread has ended")),
        };
        self.lag.passed(last);
        result.inspect_err(|error| {
            self.fatal.report_failure((self.group, self.replica), &*self.machine, "applying an entry", error);
        })
    }

    /// Waits until the blobs that these entries name are here.
    async fn gather(&self, entries: &[EntryOf]) -> Result<(), MachineError> {
        for (hash, length) in entries.iter().filter_map(|entry| blob_named(&entry.payload)) {
            if let Err(error) = self.large.ensure(hash, length, others_of(&*self.machine, self.replica)?).await {
                let error = MachineError::fatal(error);
                self.fatal.report(format_args!("a large write: {error}"));
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Returns the nodes with another replica of the group.
pub(crate) fn others_of(machine: &dyn Machine, replica: ReplicaId) -> Result<Vec<NodeId>, MachineError> {
    let (_, stored) = types::applied_state(&machine.applied()).map_err(MachineError::fatal)?;
    let others = stored.membership().nodes().filter(|(other, _)| **other != replica.0);
    Ok(others.map(|(_, home)| NodeId(home.node)).collect())
}

fn run(mut batches: mpsc::Receiver<ApplyBatch>, machine: &dyn Machine, applied: &AppliedNext) {
    while let Some(ApplyBatch { entries, answer }) = batches.blocking_recv() {
        let result = apply_all(entries, machine, applied);
        let failed = result.is_err();
        // The worker is gone only while its group shuts down.
        let _ = answer.send(result);
        if failed {
            return; // A2
        }
    }
}

async fn run_in_place(
    work: Work,
    mut batches: mpsc::Receiver<ApplyBatch>,
    machine: Arc<dyn Machine>,
    applied: Arc<AppliedNext>,
) {
    while let Some(ApplyBatch { entries, answer }) = batches.recv().await {
        let (machine, applied) = (Arc::clone(&machine), Arc::clone(&applied));
        let done = work.run(move || apply_all(entries, &*machine, &applied)).await;
        let result = done.unwrap_or_else(|error| Err(MachineError::fatal(error)));
        let failed = result.is_err();
        let _ = answer.send(result);
        if failed {
            return; // A2
        }
    }
}

fn apply_all(
    entries: Vec<EntryOf>,
    machine: &dyn Machine,
    applied: &AppliedNext,
) -> Result<Vec<Vec<Outcome>>, MachineError> {
    let mut outcomes = Vec::with_capacity(entries.len());
    for entry in entries {
        let position = position_of(&entry.log_id);
        outcomes.push(apply_one(machine, position, entry)?);
        applied.send_replace(position.index + 1); // A1
    }
    Ok(outcomes)
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
    machine.apply(position, entry).map_err(|error| error.at(position))
}
