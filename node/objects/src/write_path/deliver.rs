//! Delivery of writes to the leaders of their shards: to local actors, or in one message to each other node.
//!
//! D1: a call reserves capacity for all of its writes, here and on the way to other nodes, before it sends the first
//!     one. It waits for the reservations until its deadline.
//! D2: a write is repeated only if it was certainly not written, because its node was not reached, does not lead, or is
//!     busy. If a response is lost, the outcome is unknown.
//! D3: the search for a leader and retries at a busy leader end at the deadline. The write is then not written.
//! D4: the remaining time of a write is sent to the other node as the time limit of the response.

mod legacy;
mod service;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster::{
    AskError, Attempt, Attempts, Feature, LeaderCall, LeaderMessage, LeaderRequest, RetryUntil, Round, ServiceNames,
    Unserved, encode_frames,
};
use assay_node_limits::Holder;
use assay_storage_model::command::Outcome;
use assay_storage_model::{GroupId, NodeId, NotWritten, ObjectKey, WriteFailure, WriteOutcome, Xact};
use bytes::Bytes;
use futures::future::{join, join_all};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::Patience;
use crate::write_path::outcomes::WriteAttempt;
use crate::write_path::registry::{AdmittedCall, ObjectRegistry, OutboundReservation, WriteCall};
use crate::write_path::reservations::ReservationRequest;
use crate::write_path::work::{Encoded, Work};

pub(crate) use service::{OutcomeForm, WriteService};

/// Time after the deadline at which a write without an outcome counts as unknown. A log entry takes milliseconds, so
/// such a write waits for a missing quorum.
const ANSWER_AFTER_MAX: Duration = Duration::from_secs(10);
const BUSY_THERE: &str = "too many writes are waiting on the leader of this shard";

/// Writes of a call on their way to the nodes that lead their shards.
struct Delivery<'a> {
    registry: &'a Arc<ObjectRegistry>,
    holder: Holder,
    until: Instant,
    asker: &'a Bytes,
    sent_any: bool,
}

/// Sends writes to the leaders of their shards. An error means that none of them was sent.
pub(crate) async fn deliver(
    registry: &Arc<ObjectRegistry>,
    works: Vec<Work>,
    patience: Patience,
    asker: &Bytes,
) -> Result<Vec<WriteOutcome>, NotWritten> {
    let Some(holder) = works.first().map(|work| Holder::new(work.object().org.0, patience.credential)) else {
        return Ok(Vec::new());
    };
    let group = |work: &Work| GroupId::of_shard(registry.cluster.locate(&work.object()));
    let requests = works.into_iter().map(|work| (group(&work), work)).collect();
    let mut delivery = Delivery { registry, holder, until: patience.until, asker, sent_any: false };
    let until = RetryUntil::both(patience.until); // D3
    let outcomes = registry.cluster.ask_leaders(&mut delivery, requests, until).await?;
    Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(unserved)).collect())
}

fn unserved(unserved: Unserved<Work>) -> WriteOutcome {
    Err(match unserved {
        Unserved::NoLeader(_) => NotWritten::NotLeader.into(),
        Unserved::Busy(_) => NotWritten::busy(BUSY_THERE).into(),
        Unserved::Lost => WriteFailure::Unknown { why: "a write has no outcome".into() },
    })
}

impl LeaderCall for Delivery<'_> {
    type Request = Work;
    type Response = WriteOutcome;
    type Error = NotWritten;

    async fn attempt(&mut self, round: Round<Work>) -> Attempts<Self> {
        let Round { here, there } = round;
        let (places, works): (Vec<usize>, Vec<Work>) = here.into_iter().map(|one| (one.place, one.request)).unzip();
        let sent = match send_here(self.registry, self.holder, works, remote_requests(&there), self.until).await {
            Ok(sent) => sent,
            Err(refusal) if !self.sent_any => return Err(refusal), // D1
            Err(refusal) => {
                let all = places.into_iter().chain(there.into_values().flatten().map(|one| one.place));
                return Ok(all.map(|place| (place, Attempt::Done(Err(refusal.clone().into())))).collect());
            }
        };
        let AdmittedCall { attempts: local, outbound } = sent;
        self.sent_any |= !local.is_empty() || !there.is_empty();
        let remote = there.into_iter().map(|(node, writes)| send(self.registry, node, writes, self.until, self.asker));
        let remote = with_reservations(join_all(remote), outbound);
        let (local, remote) = join(answered(local, self.until), remote).await;
        let attempts = places.into_iter().zip(local).chain(remote.into_iter().flatten());
        Ok(attempts.map(|(place, attempt)| (place, with_work(attempt))).collect())
    }
}

/// Holds the reservations of writes to other nodes until these have responded.
async fn with_reservations<T>(sending: impl Future<Output = T>, _outbound: Vec<OutboundReservation>) -> T {
    sending.await
}

fn remote_requests(there: &BTreeMap<NodeId, Vec<LeaderRequest<Work>>>) -> Vec<ReservationRequest<NodeId>> {
    let each = there.iter().flat_map(|(node, writes)| writes.iter().map(move |one| (*node, &one.request)));
    each.map(|(lane, work)| ReservationRequest { object: work.object(), lane, bytes: work.bytes() }).collect()
}

/// Decodes the command of a write that has to be repeated (D2).
fn with_work(attempt: WriteAttempt) -> Attempt<Work, WriteOutcome> {
    let (command, is_busy) = match attempt {
        Attempt::Done(outcome) => return Attempt::Done(outcome),
        Attempt::Elsewhere(command) => (command, false),
        Attempt::Busy(command) => (command, true),
    };
    match Encoded::read(command) {
        Ok(write) if is_busy => Attempt::Busy(Work::Encoded(write)),
        Ok(write) => Attempt::Elsewhere(Work::Encoded(write)),
        Err(why) => Attempt::Done(Err(NotWritten::Failed(why.to_string()).into())),
    }
}

/// Sends writes to the local actors and reserves capacity for those to other nodes.
///
/// A write without rows needs no order and returns the last id of its shard.
async fn send_here(
    registry: &Arc<ObjectRegistry>,
    holder: Holder,
    works: Vec<Work>,
    there: Vec<ReservationRequest<NodeId>>,
    until: Instant,
) -> Result<AdmittedCall, NotWritten> {
    let empty: Vec<Option<ObjectKey>> = works.iter().map(|work| (work.rows() == 0).then(|| work.object())).collect();
    let works = works.into_iter().filter(|work| work.rows() > 0).collect();
    let sent = registry.send(WriteCall { holder, works, there, until }).await?;
    let mut with_rows = sent.attempts.into_iter();
    let each = empty.into_iter().map(|empty| {
        let (answer, attempt) = oneshot::channel();
        let Some(object) = empty else { return with_rows.next().unwrap_or(attempt) };
        let _ = answer.send(Attempt::Done(last_of(registry, &object))); // its other end is right here
        attempt
    });
    Ok(AdmittedCall { attempts: each.collect(), outbound: sent.outbound })
}

/// Returns the last id of an object's shard, or that the object is deleted.
fn last_of(registry: &ObjectRegistry, object: &ObjectKey) -> WriteOutcome {
    let shard = registry.cluster.shard(registry.cluster.locate(object));
    let shard = shard.ok_or(NotWritten::NotLeader)?;
    Ok(match shard.object(object) {
        Some(record) if record.dropped => Outcome::ObjectGone,
        _ => Outcome::Done { last: shard.last() },
    })
}

/// Waits for the outcomes from actors, in order and with one deadline for all.
async fn answered(attempts: Vec<oneshot::Receiver<WriteAttempt>>, until: Instant) -> Vec<WriteAttempt> {
    let deadline = until.max(Instant::now()) + ANSWER_AFTER_MAX;
    let unknown = |why: String| Attempt::Done(Err(WriteFailure::Unknown { why }));
    let mut all = Vec::with_capacity(attempts.len());
    for attempt in attempts {
        all.push(match timeout_at(deadline, attempt).await {
            Ok(Ok(attempt)) => attempt,
            Ok(Err(_)) => unknown("the object's actor ended before the outcome was known".into()),
            Err(_) => unknown(format!("there was no response within {} s of its deadline", ANSWER_AFTER_MAX.as_secs())),
        });
    }
    all
}

/// Writes in one message to the node that leads their shards.
struct WriteMessage {
    commands: Vec<Bytes>,
    form: OutcomeForm,
}

impl LeaderMessage for WriteMessage {
    type Response = Vec<WriteOutcome>;
    const REPEATABLE: bool = false;

    fn service(&self) -> ServiceNames {
        self.form.service()
    }

    fn encode(&self) -> Bytes {
        encode_frames(self.commands.iter().map(|command| &command[..]))
    }

    fn decode(&self, response: Bytes) -> Option<Vec<WriteOutcome>> {
        self.form.decode(&response).filter(|outcomes| outcomes.len() == self.commands.len())
    }
}

/// Sends writes to another node in one message, and returns the attempts by the indexes of the writes.
async fn send(
    registry: &ObjectRegistry,
    node: NodeId,
    writes: Vec<LeaderRequest<Work>>,
    until: Instant,
    asker: &Bytes,
) -> Vec<(usize, WriteAttempt)> {
    // The leader assigns the id; this one only has the length of any id.
    let placeholder = Xact::at_micros(u64::try_from((registry.clock)()).unwrap_or(0));
    let places: Vec<usize> = writes.iter().map(|one| one.place).collect();
    let groups: Vec<GroupId> = writes.iter().map(|one| one.group).collect();
    let commands = writes.into_iter().map(|one| one.request.command(placeholder)).collect();
    let has_outcomes = registry.cluster.has_feature(node, Feature::WriteOutcomes);
    let form = if has_outcomes { OutcomeForm::Outcomes } else { OutcomeForm::Legacy };
    let message = WriteMessage { commands, form };
    let within = until.saturating_duration_since(Instant::now()) + ANSWER_AFTER_MAX; // D4
    let response = registry.cluster.send_about(node, &groups, asker, &message, within).await;
    let mut attempts = Vec::with_capacity(places.len());
    match response {
        Ok(outcomes) => {
            for ((outcome, command), group) in outcomes.into_iter().zip(message.commands).zip(groups) {
                let attempt = there(outcome, command);
                if matches!(attempt, Attempt::Elsewhere(_)) {
                    registry.cluster.note_leader(group, node, None);
                }
                attempts.push(attempt);
            }
        }
        Err(why) => attempts.extend(message.commands.into_iter().map(|command| unanswered(&why, command))),
    }
    places.into_iter().zip(attempts).collect()
}

/// Returns the attempt for an outcome from another node, which is final or requires a retry (D2).
fn there(outcome: WriteOutcome, command: Bytes) -> WriteAttempt {
    match outcome {
        Err(WriteFailure::NotWritten(NotWritten::NotLeader)) => Attempt::Elsewhere(command),
        Err(WriteFailure::NotWritten(NotWritten::Busy(_))) => Attempt::Busy(command),
        outcome => Attempt::Done(outcome),
    }
}

/// Returns the attempt for a write whose message got no response.
fn unanswered(why: &AskError, command: Bytes) -> WriteAttempt {
    match why {
        AskError::NotReached { .. } | AskError::NotLeader { .. } => Attempt::Elsewhere(command),
        AskError::Busy { .. } => Attempt::Busy(command),
        AskError::Refused { why, .. } => Attempt::Done(Err(NotWritten::Failed(why.clone()).into())),
        AskError::Unknown { why, .. } => Attempt::Done(Err(WriteFailure::Unknown { why: why.clone() })),
    }
}

#[cfg(test)]
mod tests {
    use assay_storage_model::command::{Command, Write};
    use assay_storage_model::{ObjectKind, OrgId};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_busy_leader_is_asked_again_and_a_lost_answer_is_not() {
        let object = ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::Dataset, Uuid::from_u128(2));
        let write = Write { object, assigned: Xact::ZERO, request: None, rows: Vec::new() };
        let command = Bytes::from(Command::Write(write).encode());
        let told = |outcome: WriteOutcome| with_work(there(outcome, command.clone()));
        let busy = told(Err(NotWritten::busy(BUSY_THERE).into()));
        assert!(matches!(busy, Attempt::Busy(work) if work.object() == object));
        let moved = told(Err(NotWritten::NotLeader.into()));
        assert!(matches!(moved, Attempt::Elsewhere(work) if work.object() == object));
        let lost = told(Err(WriteFailure::Unknown { why: "lost".into() }));
        assert!(matches!(lost, Attempt::Done(Err(WriteFailure::Unknown { .. }))));
    }
}
