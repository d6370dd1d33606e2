//! One object's actor: a thin shell around its line.
//!
//! ```text
//! Enter ── line.enter ──> made here, or, with merges or large, on a blocking thread (bases read ahead, encoded)
//!                              └──> line.made ──> front of the line ──> committer ──> outcome ──> answer
//! ```
//! Messages are handled without an await, so they enter the line in the order in which they came. A write is submitted
//! without waiting for the outcome of the one before. Its place in the mailbox is held until it is answered, which bounds
//! what the line and the committer hold for this object. A committer that is full is asked again by the front of the line
//! until that write's deadline, and the others stay behind it.

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

use crate::line::{Entered, Line};
use crate::office::{Counters, Office, Place};
use crate::outcomes::{Acknowledged, WriteAttempt};
use crate::work::Work;

/// Up to here a write is encoded on the actor's thread: some tens of microseconds.
const ENCODED_HERE_BYTES_MAX: usize = 256 << 10;
/// The front of the line asks a full committer again after this: about what an entry takes.
const COMMITTER_ASKED_AGAIN_AFTER: Duration = Duration::from_millis(2);

/// One write, prepared and with its place.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Enter {
    pub write: Work,
    pub place: Place,
    /// How long it may wait to become part of an entry.
    pub until: Instant,
    pub answer: oneshot::Sender<WriteAttempt>,
}

/// Ready to be submitted.
struct Made {
    command: Bytes,
    reply: Reply,
}

/// Who waits for a write, and the place it holds.
struct Reply {
    request: Option<RequestId>,
    rows: usize,
    until: Instant,
    answer: oneshot::Sender<WriteAttempt>,
    place: Place,
}

impl Reply {
    fn send(self, attempt: WriteAttempt) {
        drop(self.place); // before the answer: who has it may write again at once
        let _ = self.answer.send(attempt); // who asked may have given up; the write stands all the same
    }
}

pub(crate) struct ObjectActor {
    office: Arc<Office>,
    object: ObjectKey,
    shard: ShardId,
    line: Line<Made>,
    /// The committer was full, and will be asked again.
    asks_again: bool,
    last_entered: Instant,
}

impl ObjectActor {
    pub fn new(office: Arc<Office>, object: ObjectKey, shard: ShardId) -> ObjectActor {
        let (line, last_entered) = (Line::default(), Instant::now());
        ObjectActor { office, object, shard, line, asks_again: false, last_entered }
    }

    fn enter(&mut self, message: Enter, context: &mut Context<ObjectActor>) {
        let Enter { write, place, until, answer } = message;
        let request = write.request();
        let reply = Reply { request, rows: write.rows(), until, answer, place };
        let now = (self.office.clock)();
        let Some(shard) = self.office.cluster.shard(self.shard) else {
            let placeholder = Xact::at_micros(u64::try_from(now).unwrap_or(0));
            return reply.send(Attempt::Elsewhere(write.command(placeholder)));
        };
        if shard.object(&self.object).is_some_and(|record| record.dropped) {
            return reply.send(Attempt::Done(Ok(Outcome::ObjectGone)));
        }
        match self.line.enter(now, shard.last(), request.as_ref()) {
            Entered::Known { xact } => {
                Counters::add(&self.office.counters.duplicates, 1);
                reply.send(Attempt::Done(Ok(Outcome::Duplicate { xact })));
            }
            Entered::Reused { xact } => reply.send(Attempt::Done(Ok(Outcome::KeyReused { xact }))),
            Entered::Go { number, assigned } => self.make(write, number, assigned, reply, shard, context),
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
                // Apply reads them itself then, and has the last word on damage.
                tracing::warn!(%object, %why, "could not read ahead for merges");
            }
            write.command(assigned)
        });
        let made = making.into_actor(self).map(move |made, actor, context| {
            // It can only have panicked, and then the process ends or a test wants to see it.
            let command = made.expect("reading ahead and encoding end well");
            actor.made(number, command, reply, context);
        });
        context.spawn(made);
    }

    fn made(&mut self, number: u64, command: Bytes, reply: Reply, context: &mut Context<ObjectActor>) {
        self.line.made(number, Made { command, reply });
        if !self.asks_again {
            self.submit(context);
        }
    }

    /// Submits from the front of the line what is ready.
    fn submit(&mut self, context: &mut Context<ObjectActor>) {
        while let Some(front) = self.line.front() {
            let command = front.command.clone();
            let until = front.reply.until;
            let submitted = self.office.cluster.submit(self.shard, command.clone(), until);
            if matches!(submitted, Err(NotWritten::Busy(_))) && Instant::now() < until {
                self.asks_again = true;
                context.run_later(COMMITTER_ASKED_AGAIN_AFTER, |actor, context| {
                    actor.asks_again = false;
                    actor.submit(context);
                });
                return;
            }
            let Some(Made { reply, .. }) = self.line.pop() else { return };
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
        let counters = &self.office.counters;
        if let Some(Acknowledged { xact, duplicate }) = Acknowledged::of(&outcome) {
            if let Some(request) = &reply.request {
                self.line.settled(request, xact);
            }
            if duplicate {
                Counters::add(&counters.duplicates, 1);
            } else {
                Counters::add(&counters.writes, 1);
                Counters::add(&counters.rows, reply.rows);
            }
        } else if matches!(outcome, Err(WriteFailure::Unknown { .. })) {
            Counters::add(&counters.unknown, 1);
        }
        reply.send(attempt_of(outcome, command));
    }
}

/// Gives the command back if another replica leads: the sender tries again there.
fn attempt_of(outcome: WriteOutcome, command: Bytes) -> WriteAttempt {
    match outcome {
        Err(WriteFailure::NotWritten(NotWritten::NotLeader)) => Attempt::Elsewhere(command),
        outcome => Attempt::Done(outcome),
    }
}

impl Actor for ObjectActor {
    type Context = Context<ObjectActor>;

    fn started(&mut self, context: &mut Context<ObjectActor>) {
        context.run_interval(self.office.idle, |actor, context| {
            if actor.last_entered.elapsed() >= actor.office.idle && actor.office.put_away(&actor.object) {
                context.stop();
            }
        });
    }
}

impl Handler<Enter> for ObjectActor {
    type Result = ();

    fn handle(&mut self, message: Enter, context: &mut Context<ObjectActor>) {
        self.last_entered = Instant::now();
        self.enter(message, context);
    }
}
