//! Reads and writes of an object through a simulated node, like the product's actors and readers: another shell around
//! the same queue.

use std::sync::Arc;
use std::time::Duration;

use assay_cluster_raft::WRITE_WAIT_MAX;
use assay_node_objects::pure::{Enqueued, WriteQueue};
use assay_storage_model::command::{Action, Outcome, RequestId};
use assay_storage_model::{GroupId, NodeId, NotWritten, ObjectKey, ShardId, WriteFailure, WriteOutcome, Xact};
use assay_storage_shard::{Shard, View};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::checked_machine::MachineState;
use super::process::{Running, SimProcess};
use super::world::{SHARDS, SimWorld};
use crate::single_node::documents::{RowSpec, request_id, write_command};
use crate::single_node::store::{StoreReply, object_key};

/// Objects of a simulation.
pub const OBJECTS: u8 = 4;
/// Pause before the front of a queue retries a full committer.
const ASKED_AGAIN_AFTER: Duration = Duration::from_millis(2);
/// Number of tries of a write that surely failed.
const TRIES_MAX: u32 = 4;
const TRIED_AGAIN_AFTER: Duration = Duration::from_millis(40);
/// A client waits no longer.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(15);

/// Write queue of one object in one process.
#[derive(Debug, Default)]
pub struct Lines(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    queue: WriteQueue<AssignedWrite>,
    asks_again: bool,
}

#[derive(Debug)]
struct AssignedWrite {
    command: Bytes,
    request: Option<RequestId>,
    answer: oneshot::Sender<StoreReply>,
}

/// A write as a client means it.
#[derive(Clone, Debug)]
pub struct SimWrite {
    pub object: u8,
    pub request: Option<String>,
    /// Name stored in its rows, by which they are found.
    pub name: String,
    pub rows: Vec<RowSpec>,
}

pub fn group_of(object: u8) -> GroupId {
    GroupId::of_shard(ShardId(u16::from(object) % SHARDS))
}

pub fn key_of(object: u8) -> ObjectKey {
    object_key(object).expect("an id that parses")
}

fn refused(why: impl ToString) -> StoreReply {
    StoreReply::Refused { why: why.to_string() }
}

fn unknown(why: impl ToString) -> StoreReply {
    StoreReply::Unknown { why: why.to_string() }
}

impl SimWorld {
    /// Writes through this node; returns the client's result.
    pub async fn write(self: &Arc<Self>, node: NodeId, wanted: &SimWrite) -> StoreReply {
        let Some(life) = self.life(node) else { return refused("nobody listens") };
        let answer = async {
            let mut told = refused("nobody leads");
            for _ in 0..TRIES_MAX {
                told = match self.write_once(&life, wanted).await {
                    Ok(told) => return told,
                    Err(told) => told,
                };
                sleep(TRIED_AGAIN_AFTER).await;
            }
            told
        };
        tokio::select! {
            biased;
            () = life.died() => unknown("the node ended"),
            answer = timeout(ANSWER_WAIT_MAX, answer) => answer.unwrap_or_else(|_| unknown("no answer came")),
        }
    }

    /// An error where it was surely not written and another try may do better.
    async fn write_once(self: &Arc<Self>, life: &Arc<SimProcess>, wanted: &SimWrite) -> Result<StoreReply, StoreReply> {
        let group = group_of(wanted.object);
        let running = life.running(group).ok_or_else(|| refused("the replica is not here"))?;
        if running.group.leads() {
            return self.enter(life, &running, wanted).await;
        }
        let status = running.group.status();
        let leader = status.leader.and_then(|leader| status.members.iter().find(|member| member.replica == leader));
        let node = leader.map(|member| member.node).filter(|node| *node != life.node);
        let node = node.ok_or_else(|| refused("nobody leads"))?;
        let Some(there) = self.pass(life, node).await else {
            // Whether the way there or the way back is cut, the sender cannot tell.
            return Ok(unknown("no answer came"));
        };
        let running = there.running(group).ok_or_else(|| refused("the replica is not there"))?;
        let told = self.enter(&there, &running, wanted).await;
        match self.pass(&there, life.node).await {
            Some(back) if back.number == life.number => told,
            _ => Ok(unknown("no answer came")),
        }
    }

    async fn enter(
        self: &Arc<Self>,
        life: &Arc<SimProcess>,
        running: &Running,
        wanted: &SimWrite,
    ) -> Result<StoreReply, StoreReply> {
        let MachineState::Shard(shard) = &running.state else { return Ok(unknown("no shard")) };
        let lines = Arc::clone(life.lines.lock().entry(wanted.object).or_default());
        let request = wanted.request.as_deref().map(|request| request_id(request, &wanted.rows));
        let entered = lines.0.lock().queue.enqueue(self.clock(life.node), shard.last(), request.as_ref());
        let (number, assigned) = match entered {
            Enqueued::Duplicate { xact } => return Ok(StoreReply::Written { xact, again: true }),
            Enqueued::KeyReused { xact } => return Ok(StoreReply::Reused { xact }),
            Enqueued::Queued { number, assigned } => (number, assigned),
        };
        let (answer, told) = oneshot::channel();
        let made = {
            let (world, shard, wanted) = (Arc::clone(self), Arc::clone(shard), wanted.clone());
            async move { AssignedWrite { command: world.make(&shard, &wanted, assigned).await, request, answer } }
        };
        let (lines, running) = (Arc::clone(&lines), running.clone());
        tokio::spawn(async move {
            let made = made.await;
            lines.0.lock().queue.mark_ready(number, made);
            submit(&lines, &running);
        });
        match told.await {
            Err(_) => Ok(unknown("the process ended")),
            Ok(told @ StoreReply::Refused { .. }) => Err(told),
            Ok(told) => Ok(told),
        }
    }

    async fn make(&self, shard: &Arc<Shard>, wanted: &SimWrite, assigned: Xact) -> Bytes {
        let key = key_of(wanted.object);
        let merged = wanted.rows.iter().filter(|row| row.action == Action::Merge).map(|row| row.id.as_str());
        let merged: Vec<&str> = merged.collect();
        if !merged.is_empty() {
            sleep(self.dice.micros(&self.plan.work)).await;
            if let Err(error) = shard.fetch_bases(&key, &merged) {
                self.facts.find(format!("reading ahead for a merge: {error}"));
            }
        }
        write_command(key, assigned, wanted.request.as_deref(), &wanted.name, &wanted.rows)
    }

    /// A picture of the object that has everything acknowledged before the call.
    pub async fn view(&self, node: NodeId, object: u8) -> Result<View, String> {
        let life = self.life(node).ok_or("nobody listens")?;
        let running = life.running(group_of(object)).ok_or("the replica is not here")?;
        let MachineState::Shard(shard) = &running.state else { return Err("no shard".into()) };
        tokio::select! {
            biased;
            () = life.died() => Err("the node ended".into()),
            fenced = running.group.fence() => fenced.map(|_| shard.view()).map_err(|error| error.to_string()),
        }
    }

    /// Returns the node's view, however old.
    pub fn stale_view(&self, node: NodeId, object: u8) -> Option<View> {
        match self.life(node)?.running(group_of(object))?.state {
            MachineState::Shard(shard) => Some(shard.view()),
            MachineState::Catalog(_) => None,
        }
    }
}

/// Submits the ready writes from the front of the queue.
fn submit(lines: &Arc<Lines>, running: &Running) {
    let mut inner = lines.0.lock();
    if inner.asks_again {
        return;
    }
    while let Some(front) = inner.queue.front() {
        let submitted = running.group.submit(front.command.clone(), Instant::now() + WRITE_WAIT_MAX);
        if matches!(submitted, Err(NotWritten::Busy(_))) {
            inner.asks_again = true;
            let (lines, running) = (Arc::clone(lines), running.clone());
            tokio::spawn(async move {
                sleep(ASKED_AGAIN_AFTER).await;
                lines.0.lock().asks_again = false;
                submit(&lines, &running);
            });
            return;
        }
        let Some(AssignedWrite { request, answer, .. }) = inner.queue.pop() else { return };
        match submitted {
            Err(why) => drop(answer.send(refused(why))),
            Ok(pending) => {
                let lines = Arc::clone(lines);
                tokio::spawn(async move {
                    let told = told_of(pending.outcome().await);
                    if let (Some(request), StoreReply::Written { xact, .. }) = (&request, &told) {
                        lines.0.lock().queue.note_written(request, *xact);
                    }
                    drop(answer.send(told));
                });
            }
        }
    }
}

fn told_of(outcome: WriteOutcome) -> StoreReply {
    match outcome {
        Ok(Outcome::Written { xact }) => StoreReply::Written { xact, again: false },
        Ok(Outcome::Duplicate { xact }) => StoreReply::Written { xact, again: true },
        Ok(Outcome::KeyReused { xact }) => StoreReply::Reused { xact },
        Ok(other) => StoreReply::Unknown { why: format!("an answer that is none: {other:?}") },
        Err(WriteFailure::NotWritten(why)) => refused(why),
        Err(WriteFailure::Unknown { why }) => StoreReply::Unknown { why },
    }
}
