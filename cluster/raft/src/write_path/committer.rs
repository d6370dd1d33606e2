//! Committer, which batches commands into entries.
//!
//! One entry is in flight while the next fills. One fsync thus serves many writers (decision 1), and a shard's writes
//! keep the order of their submission.

use std::sync::Arc;

use assay_storage_model::command::Outcome;
use assay_storage_model::entry::EntryBuilder;
use assay_storage_model::{NotWritten, WriteFailure, WriteOutcome};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;

use crate::write_path::admission::WRITE_WAIT_MAX;

use crate::counters::Counters;
use crate::write_path::command_queue::{CommandQueue, EntryBatch, OutcomeSender, Payload, WaitingCommand};
use crate::write_path::proposer::Proposer;

/// Command that was accepted and not yet answered.
#[derive(Debug)]
pub struct Pending(oneshot::Receiver<WriteOutcome>);

impl Pending {
    pub async fn outcome(self) -> WriteOutcome {
        let lost = || WriteFailure::Unknown { why: "the node was shut down meanwhile".into() };
        self.0.await.unwrap_or_else(|_| Err(lost()))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Committer {
    shared: Arc<CommitterState>,
    proposer: Proposer,
}

#[derive(Debug, Default)]
struct CommitterState {
    queue: Mutex<CommandQueue>,
    changed: Notify,
    /// Notified when commands were taken from the queue.
    space_freed: Notify,
    closing: watch::Sender<bool>,
    ended: watch::Sender<bool>,
}

/// Guard that releases all waiters, however the committer ends.
struct UntilEnd(Arc<CommitterState>);

impl Drop for UntilEnd {
    fn drop(&mut self) {
        self.0.queue.lock().refuse_all();
        self.0.ended.send_replace(true);
    }
}

impl Committer {
    pub fn start(proposer: Proposer) -> Committer {
        let committer = Committer { shared: Arc::default(), proposer };
        committer.proposer.runtime.spawn(run(committer.clone(), UntilEnd(Arc::clone(&committer.shared))));
        committer
    }

    /// Submits a command as soon as there is room, and returns its outcome.
    pub async fn write(&self, command: Bytes, until: Instant) -> WriteOutcome {
        loop {
            let space_freed = self.shared.space_freed.notified();
            let mut space_freed = std::pin::pin!(space_freed);
            // Enabled before the check, so that a notification in between is not missed.
            space_freed.as_mut().enable();
            match self.submit(command.clone(), until) {
                Ok(pending) => return pending.outcome().await,
                Err(why @ NotWritten::Busy(_)) => {
                    if tokio::time::timeout_at(until, space_freed).await.is_err() {
                        return Err(why.into());
                    }
                }
                Err(why) => return Err(why.into()),
            }
        }
    }

    /// Submits a command, which waits for memory until its deadline. Entries keep the order of these calls.
    pub fn submit(&self, command: Bytes, until: Instant) -> Result<Pending, NotWritten> {
        let bytes = command.len();
        self.proposer.check()?;
        self.proposer.check_size(bytes)?;
        let (answer, pending) = oneshot::channel();
        let mut queue = self.shared.queue.lock();
        queue.check(bytes).inspect_err(|_| Counters::add(&self.proposer.counters.busy, 1))?;
        let payload = if bytes > self.proposer.large.inline_bytes_max() {
            Payload::Large { bytes, blob: self.proposer.keep_large(vec![command]) }
        } else {
            Payload::Inline(command)
        };
        queue.push(WaitingCommand { payload, until, answer });
        drop(queue);
        self.shared.changed.notify_one();
        Ok(Pending(pending))
    }

    pub fn waiting(&self) -> usize {
        self.shared.queue.lock().len()
    }

    /// Stops accepting commands, and returns when the waiting ones are answered. Commands that wait for memory are
    /// refused.
    pub async fn close(&self) {
        self.shared.queue.lock().close();
        self.shared.closing.send_replace(true);
        self.shared.changed.notify_one();
        // `self` holds the sender, so this cannot fail.
        let _ = self.shared.ended.subscribe().wait_for(|ended| *ended).await;
    }

    async fn next(&self) -> Option<EntryBatch> {
        loop {
            let (bytes, deadline, empty, closed) = {
                let queue = self.shared.queue.lock();
                (queue.next_bytes(), queue.first_deadline(), queue.is_empty(), queue.is_closed())
            };
            if empty && closed {
                return None;
            }
            if empty {
                self.shared.changed.notified().await;
                continue;
            }
            // The entry is taken after the wait, so that it contains commands that came meanwhile.
            let mut closing = self.shared.closing.subscribe();
            let until = deadline.unwrap_or_else(|| Instant::now() + WRITE_WAIT_MAX);
            let passed = tokio::select! {
                biased;
                passed = self.proposer.admission.pass(bytes, until) => passed,
                // A new command may have an earlier deadline.
                () = self.shared.changed.notified() => continue,
                _ = closing.wait_for(|closing| *closing) => Err(NotWritten::Closing),
            };
            if let Err(why @ NotWritten::Busy(_)) = &passed {
                let late = self.shared.queue.lock().take_late(Instant::now());
                late.into_iter().for_each(|answer| drop(answer.send(Err(why.clone().into()))));
                self.shared.space_freed.notify_waiters();
                continue;
            }
            let batch = self.shared.queue.lock().take();
            self.shared.space_freed.notify_waiters();
            match (passed, batch) {
                (_, None) => {}
                (Ok(()), Some(batch)) => return Some(batch),
                (Err(why), Some(batch)) => batch.refuse(why),
            }
        }
    }
}

async fn run(committer: Committer, _until_end: UntilEnd) {
    let proposer = &committer.proposer;
    while let Some(batch) = committer.next().await {
        match batch {
            EntryBatch::Inline { commands, answers } => {
                let mut entry = EntryBuilder::for_lengths(commands.iter().map(Bytes::len));
                commands.iter().for_each(|command| entry.push(command));
                let bytes = commands.iter().map(Bytes::len).sum();
                drop(commands);
                answer_all(proposer.propose(entry.finish(), answers.len(), bytes).await, answers);
            }
            EntryBatch::Large { blob, answer } => answer_all(proposer.propose_large(blob, 1).await, vec![answer]),
        }
    }
}

/// Answers all commands. A caller may have given up, but its command still takes effect.
fn answer_all(result: Result<Vec<Outcome>, WriteFailure>, answers: Vec<OutcomeSender>) {
    match result {
        Ok(outcomes) => answers.into_iter().zip(outcomes).for_each(|(answer, outcome)| drop(answer.send(Ok(outcome)))),
        Err(error) => answers.into_iter().for_each(|answer| drop(answer.send(Err(error.clone())))),
    }
}

impl EntryBatch {
    fn refuse(self, why: NotWritten) {
        let answers = match self {
            EntryBatch::Inline { answers, .. } => answers,
            EntryBatch::Large { answer, .. } => vec![answer],
        };
        answers.into_iter().for_each(|answer| drop(answer.send(Err(why.clone().into()))));
    }
}
