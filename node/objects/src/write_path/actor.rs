//! Actor of one object, which runs its write queue.
//!
//! ```text
//! EnqueueWrite ── queue.enqueue ──> encoded here or, if large or with merges, on a blocking thread
//!                              └──> queue.mark_ready ──> front of the queue ──> committer ──> outcome ──> answer
//! ```
//! The handler does not await, so messages enter the queue in the order of their arrival. A write is submitted without
//! waiting for the previous outcome. Its reservation lasts until its response, which bounds the memory for this object.
//! While the committer is full, the front of the queue retries until its deadline. The other writes stay behind it.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Message, WrapFuture};
use assay_cluster::Attempt;
use assay_storage_model::command::{Outcome, RequestId};
use assay_storage_model::{NotWritten, ObjectKey, ShardId, WriteFailure, WriteOutcome, Xact};
use assay_storage_shard::Shard;
use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::task;
use tokio::time::Instant;

use crate::write_path::outcomes::{Acknowledged, WriteAttempt};
use crate::write_path::registry::{Counters, ObjectRegistry, Reservation};
use crate::write_path::work::Work;
use crate::write_path::write_queue::{Enqueued, WriteQueue};

/// Size up to which a write is encoded on the actor's thread. That takes some tens of microseconds.
const ENCODED_HERE_BYTES_MAX: usize = 256 << 10;
/// Pause before a retry at a full committer: about the time of one log entry.
const COMMITTER_RETRY_AFTER: Duration = Duration::from_millis(2);

/// Message with one prepared write and its reservation.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct EnqueueWrite {
    pub write: Work,
    pub reservation: Reservation,
    /// Deadline of the wait for the committer.
    pub until: Instant,
    pub answer: oneshot::Sender<WriteAttempt>,
}

/// Encoded write that is ready to be submitted.
struct ReadyWrite {
    command: Bytes,
    reply: Reply,
}

/// Caller that waits for a write, and the reservation of the write.
struct Reply {
    request: Option<RequestId>,
    rows: usize,
    until: Instant,
    answer: oneshot::Sender<WriteAttempt>,
    reservation: Reservation,
}

impl Reply {
    fn send(self, attempt: WriteAttempt) {
        drop(self.reservation); // before the answer, so that the caller can write again at once
        let _ = self.answer.send(attempt); // the caller may have given up
    }
}

/// Actor of one object.
pub(crate) struct ObjectActor {
    registry: Arc<ObjectRegistry>,
    object: ObjectKey,
    shard: ShardId,
    queue: WriteQueue<ReadyWrite>,
    /// Whether a retry at a full committer is scheduled.
    asks_again: bool,
    last_entered: Instant,
}

impl ObjectActor {
    pub fn new(registry: Arc<ObjectRegistry>, object: ObjectKey, shard: ShardId) -> ObjectActor {
        let (queue, last_entered) = (WriteQueue::default(), Instant::now());
        ObjectActor { registry, object, shard, queue, asks_again: false, last_entered }
    }

    fn enter(&mut self, message: EnqueueWrite, context: &mut Context<ObjectActor>) {
        let EnqueueWrite { write, reservation, until, answer } = message;
        let request = write.request();
        let reply = Reply { request, rows: write.rows(), until, answer, reservation };
        let now = (self.registry.clock)();
        let Some(shard) = self.registry.cluster.shard(self.shard) else {
            let placeholder = Xact::at_micros(u64::try_from(now).unwrap_or(0));
            return reply.send(Attempt::Elsewhere(write.command(placeholder)));
        };
        if shard.object(&self.object).is_some_and(|record| record.dropped) {
            return reply.send(Attempt::Done(Ok(Outcome::ObjectGone)));
        }
        match self.queue.enqueue(now, shard.last(), request.as_ref()) {
            Enqueued::Duplicate { xact } => {
                Counters::add(&self.registry.counters.duplicates, 1);
                reply.send(Attempt::Done(Ok(Outcome::Duplicate { xact })));
            }
            Enqueued::KeyReused { xact } => reply.send(Attempt::Done(Ok(Outcome::KeyReused { xact }))),
            Enqueued::Queued { number, assigned } => self.make(write, number, assigned, reply, shard, context),
        }
    }

    fn make(
        &mut self,
        write: Work,
        number: u64,
        assigned: Xact,
        reply: Reply,
        shard: Arc<Shard>,
        context: &mut Context<ObjectActor>,
    ) {
        if !write.has_merges() && write.bytes() <= ENCODED_HERE_BYTES_MAX {
            let command = write.command(assigned);
            return self.made(number, command, reply, context);
        }
        let making = task::spawn_blocking(move || {
            let (object, merged) = (write.object(), write.merged());
            let merged: Vec<&str> = merged.iter().map(String::as_str).collect();
            if !merged.is_empty()
                && let Err(why) = shard.fetch_bases(&object, &merged)
            {
                // The state machine then reads the rows itself, and handles damage.
                tracing::warn!(%object, %why, "could not prefetch rows for merges");
            }
            write.command(assigned)
        });
        let made = making.into_actor(self).map(move |made, actor, context| {
            // The task can only have panicked. The process then ends, unless a test catches the panic.
            let command = made.expect("reading ahead and encoding end well");
            actor.made(number, command, reply, context);
        });
        context.spawn(made);
    }

    fn made(&mut self, number: u64, command: Bytes, reply: Reply, context: &mut Context<ObjectActor>) {
        self.queue.mark_ready(number, ReadyWrite { command, reply });
        if !self.asks_again {
            self.submit(context);
        }
    }

    /// Submits ready writes from the front of the queue.
    fn submit(&mut self, context: &mut Context<ObjectActor>) {
        while let Some(front) = self.queue.front() {
            let command = front.command.clone();
            let until = front.reply.until;
            let submitted = self.registry.cluster.submit(self.shard, command.clone(), until);
            if matches!(submitted, Err(NotWritten::Busy(_))) && Instant::now() < until {
                self.asks_again = true;
                context.run_later(COMMITTER_RETRY_AFTER, |actor, context| {
                    actor.asks_again = false;
                    actor.submit(context);
                });
                return;
            }
            let Some(ReadyWrite { reply, .. }) = self.queue.pop() else { return };
            match submitted {
                Err(why) => reply.send(attempt_of(Err(why.into()), command)),
                Ok(pending) => {
                    let settled = pending.outcome().into_actor(self);
                    context.spawn(settled.map(move |outcome, actor, _| actor.settle(reply, outcome, command)));
                }
            }
        }
    }

    fn settle(&mut self, reply: Reply, outcome: WriteOutcome, command: Bytes) {
        let counters = &self.registry.counters;
        if let Some(Acknowledged { xact, duplicate }) = Acknowledged::of(&outcome) {
            if let Some(request) = &reply.request {
                self.queue.note_written(request, xact);
            }
            if duplicate {
                Counters::add(&counters.duplicates, 1);
            } else {
                Counters::add(&counters.writes, 1);
                Counters::add(&counters.rows, reply.rows);
                self.registry.meters.written(self.object.org.0, reply.rows, command.len());
            }
        } else if matches!(outcome, Err(WriteFailure::Unknown { .. })) {
            Counters::add(&counters.unknown, 1);
        }
        reply.send(attempt_of(outcome, command));
    }
}

/// Returns the command if another replica leads, so that the sender can retry there.
fn attempt_of(outcome: WriteOutcome, command: Bytes) -> WriteAttempt {
    match outcome {
        Err(WriteFailure::NotWritten(NotWritten::NotLeader)) => Attempt::Elsewhere(command),
        outcome => Attempt::Done(outcome),
    }
}

impl Actor for ObjectActor {
    type Context = Context<ObjectActor>;

    fn started(&mut self, context: &mut Context<ObjectActor>) {
        context.run_interval(self.registry.idle, |actor, context| {
            if actor.last_entered.elapsed() >= actor.registry.idle && actor.registry.put_away(&actor.object) {
                context.stop();
            }
        });
    }
}

impl Handler<EnqueueWrite> for ObjectActor {
    type Result = ();

    fn handle(&mut self, message: EnqueueWrite, context: &mut Context<ObjectActor>) {
        self.last_entered = Instant::now();
        self.enter(message, context);
    }
}
