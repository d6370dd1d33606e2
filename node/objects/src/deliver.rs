//! Writes to where their shards are led: to actors here, or in one message to each other node that leads some of them.
//!
//! D1: every place on this node is taken, or none, before anything is sent anywhere: those of writes that are led here, and
//!     those on the way to another node. The call waits for them until its deadline.
//! D2: a write is sent again only where it is sure that it was not written: its node was not reached, said that another
//!     one leads, or said that it is busy. An answer that is lost is unknown.
//! D3: looking for a leader, and asking a busy one again, end after a while, and then nothing of that write is written.
//! D4: the time that a write may still wait goes with it to the other node, as the time within which that has to answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use assay_cluster::{
    AnswersFor, AskError, Attempt, Attempts, Deed, LeaderCall, LeaderMessage, LeaderRequest, NoAnswer, NotWritten,
    Prefer, RetryUntil, Round, Route, ServiceNames, Unserved, decode_frames, encode_frames,
};
use assay_node_auth::Asker;
use assay_node_limits::Holder;
use assay_storage_model::event::RowError;
use assay_storage_model::{GroupId, NodeId, ObjectKey, Xact};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, join, join_all};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::Patience;
use crate::answer::{Answer, Done, Refused};
use crate::book::{Refusal, Wanted};
use crate::office::{Office, OutboundPlace, Sent, Wants};
use crate::work::{Encoded, Work};

pub(crate) const WRITE: ServiceNames = ServiceNames { plain: "objects.write", on_behalf: "objects.write.for" };
/// A write that still has no answer so long after its deadline is answered as unknown. Up to the deadline it may wait for
/// its place and for memory, and an entry takes milliseconds: whoever waits this long waits for a quorum that is not there.
const ANSWER_AFTER_MAX: Duration = Duration::from_secs(10);
const BUSY_THERE: &str = "too many writes wait on the node that leads this shard";
/// Writes of one message from another node.
const WRITES_MAX: usize = 1024;

/// Writes of a call on their way to the nodes that lead their shards.
struct Delivery<'a> {
    office: &'a Arc<Office>,
    holder: Holder,
    until: Instant,
    asker: &'a Bytes,
    sent_any: bool,
}

/// An answer to every write, or none of them was sent.
pub(crate) async fn deliver(
    office: &Arc<Office>,
    works: Vec<Work>,
    patience: Patience,
    asker: &Bytes,
) -> Result<Vec<Answer>, Refusal> {
    let Some(holder) = works.first().map(|work| Holder::new(work.object().org.0, patience.credential)) else {
        return Ok(Vec::new());
    };
    let group = |work: &Work| GroupId::of_shard(office.cluster.locate(&work.object()));
    let requests = works.into_iter().map(|work| (group(&work), work)).collect();
    let mut delivery = Delivery { office, holder, until: patience.until, asker, sent_any: false };
    let until = RetryUntil::both(patience.until); // D3
    let answers = office.cluster.ask_leaders(&mut delivery, requests, until).await?;
    Ok(answers.into_iter().map(|answer| answer.unwrap_or_else(unserved)).collect())
}

fn unserved(unserved: Unserved<Work>) -> Answer {
    Err(match unserved {
        Unserved::NoLeader(_) => Refused::NotWritten(NotWritten::NotLeader { leader: None }),
        Unserved::Busy(_) => Refused::NotWritten(NotWritten::Busy(BUSY_THERE)),
        Unserved::Lost => Refused::Unknown("a write has no answer".into()),
    })
}

impl LeaderCall for Delivery<'_> {
    type Request = Work;
    type Response = Answer;
    type Error = Refusal;

    async fn attempt(&mut self, round: Round<Work>) -> Attempts<Self> {
        let Round { here, there } = round;
        let (places, works): (Vec<usize>, Vec<Work>) = here.into_iter().map(|one| (one.place, one.request)).unzip();
        let sent = match send_here(self.office, self.holder, works, wanted_there(&there), self.until).await {
            Ok(sent) => sent,
            Err(refusal) if !self.sent_any => return Err(refusal), // D1
            Err(refusal) => {
                let all = places.into_iter().chain(there.into_values().flatten().map(|one| one.place));
                return Ok(all.map(|place| (place, Attempt::Done(Err(no_place(refusal))))).collect());
            }
        };
        let Sent { answers: local, outbound } = sent;
        self.sent_any |= !local.is_empty() || !there.is_empty();
        let remote = there.into_iter().map(|(node, writes)| send(self.office, node, writes, self.until, self.asker));
        let remote = with_places(join_all(remote), outbound);
        let (local, remote) = join(answered(local, self.until), remote).await;
        let answers = places.into_iter().zip(local).chain(remote.into_iter().flatten());
        Ok(answers.map(|(place, answer)| (place, attempt_of(answer))).collect())
    }
}

/// Places on the way to other nodes are held until these have answered.
async fn with_places<T>(sending: impl Future<Output = T>, _outbound: Vec<OutboundPlace>) -> T {
    sending.await
}

fn wanted_there(there: &BTreeMap<NodeId, Vec<LeaderRequest<Work>>>) -> Vec<Wanted<NodeId>> {
    let each = there.iter().flat_map(|(node, writes)| writes.iter().map(move |one| (*node, &one.request)));
    each.map(|(lane, work)| Wanted { object: work.object(), lane, bytes: work.bytes() }).collect()
}

/// Whether the answer stands, or the write is to be sent again. D2.
fn attempt_of(answer: Answer) -> Attempt<Work, Answer> {
    let (command, is_busy) = match answer {
        Err(Refused::NotLeader(command)) => (command, false),
        Err(Refused::Later { command, .. }) => (command, true),
        other => return Attempt::Done(other),
    };
    match Encoded::read(command) {
        Ok(write) if is_busy => Attempt::Busy(Work::Encoded(write)),
        Ok(write) => Attempt::Elsewhere(Work::Encoded(write)),
        Err(why) => Attempt::Done(Err(Refused::NotWritten(NotWritten::Failed(why.to_string())))),
    }
}

fn no_place(refusal: Refusal) -> Refused {
    match refusal {
        Refusal::Full(why) => Refused::NotWritten(NotWritten::Busy(why)),
        Refusal::Closed => Refused::NotWritten(NotWritten::Closing),
    }
}

/// To the actors of this node, with the places of what goes to others; a write without rows has nothing to be ordered and
/// is answered with what is there.
async fn send_here(
    office: &Arc<Office>,
    holder: Holder,
    works: Vec<Work>,
    there: Vec<Wanted<NodeId>>,
    until: Instant,
) -> Result<Sent, Refusal> {
    let empty: Vec<Option<ObjectKey>> = works.iter().map(|work| (work.rows() == 0).then(|| work.object())).collect();
    let works = works.into_iter().filter(|work| work.rows() > 0).collect();
    let sent = office.send(Wants { holder, works, there, until }).await?;
    let mut with_rows = sent.answers.into_iter();
    let each = empty.into_iter().map(|empty| {
        let (answer, answered) = oneshot::channel();
        let Some(object) = empty else { return with_rows.next().unwrap_or(answered) };
        let _ = answer.send(last_of(office, &object)); // its other end is right here
        answered
    });
    Ok(Sent { answers: each.collect(), outbound: sent.outbound })
}

/// The last id of the shard of an object that can be written to.
fn last_of(office: &Office, object: &ObjectKey) -> Answer {
    let shard = office.cluster.shard(office.cluster.locate(object));
    let shard = shard.ok_or(Refused::NotWritten(NotWritten::NotLeader { leader: None }))?;
    match shard.object(object) {
        Some(record) if record.dropped => Err(Refused::Gone),
        _ => Ok(Done { xact: shard.last(), duplicate: false }),
    }
}

/// The answers of actors, in their order. They are under way together, so one deadline holds for all of them.
async fn answered(answers: Vec<oneshot::Receiver<Answer>>, until: Instant) -> Vec<Answer> {
    let deadline = until.max(Instant::now()) + ANSWER_AFTER_MAX;
    let mut all = Vec::with_capacity(answers.len());
    for answer in answers {
        all.push(match timeout_at(deadline, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Refused::Unknown("the object's actor ended meanwhile".into())),
            Err(_) => {
                let why = format!("no answer came within {} s of its deadline", ANSWER_AFTER_MAX.as_secs());
                Err(Refused::Unknown(why))
            }
        });
    }
    all
}

/// What a write came to, as the node that led its shard tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Told {
    Done {
        xact: Xact,
        duplicate: bool,
    },
    Gone,
    KeyReused {
        xact: Xact,
    },
    /// The row counts within the write as it was sent here.
    Row {
        row: usize,
        problem: String,
    },
    NotLeader,
    Busy,
    NoSpace(String),
    NotWritten(String),
    Unknown(String),
}

fn tell(answer: Answer) -> Told {
    match answer {
        Ok(Done { xact, duplicate }) => Told::Done { xact, duplicate },
        Err(Refused::Gone) => Told::Gone,
        Err(Refused::KeyReused { xact }) => Told::KeyReused { xact },
        Err(Refused::Row(RowError { row, problem, .. })) => Told::Row { row, problem },
        Err(Refused::NotLeader(_)) => Told::NotLeader,
        Err(Refused::Later { .. }) => Told::Busy,
        Err(Refused::Unknown(why)) => Told::Unknown(why),
        Err(Refused::NotWritten(why)) => match why {
            NotWritten::NotLeader { .. } | NotWritten::Closing => Told::NotLeader,
            NotWritten::Busy(_) => Told::Busy,
            NotWritten::NoSpace(why) => Told::NoSpace(why),
            other => Told::NotWritten(other.to_string()),
        },
    }
}

fn heard(told: Told, command: Bytes) -> Answer {
    Err(match told {
        Told::Done { xact, duplicate } => return Ok(Done { xact, duplicate }),
        Told::Gone => Refused::Gone,
        Told::KeyReused { xact } => Refused::KeyReused { xact },
        Told::Row { row, problem } => Refused::Row(RowError { row, path: String::new(), problem }),
        Told::NotLeader => Refused::NotLeader(command),
        Told::Busy => Refused::Later { command, why: BUSY_THERE },
        Told::NoSpace(why) => Refused::NotWritten(NotWritten::NoSpace(why)),
        Told::NotWritten(why) => Refused::NotWritten(NotWritten::Failed(why)),
        Told::Unknown(why) => Refused::Unknown(why),
    })
}

/// Writes in one message to the node that leads their shards.
struct WriteMessage {
    commands: Vec<Bytes>,
}

impl LeaderMessage for WriteMessage {
    type Response = Vec<Told>;
    const REPEATABLE: bool = false;

    fn service(&self) -> ServiceNames {
        WRITE
    }

    fn encode(&self) -> Bytes {
        encode_frames(self.commands.iter().map(|command| &command[..]))
    }

    fn decode(&self, response: Bytes) -> Option<Vec<Told>> {
        serde_json::from_slice(&response).ok().filter(|told: &Vec<Told>| told.len() == self.commands.len())
    }
}

async fn send(
    office: &Office,
    node: NodeId,
    writes: Vec<LeaderRequest<Work>>,
    until: Instant,
    asker: &Bytes,
) -> Vec<(usize, Answer)> {
    // The leader gives the id; this one is only as long as any that it gives.
    let placeholder = Xact::at_micros(u64::try_from((office.clock)()).unwrap_or(0));
    let places: Vec<(usize, GroupId)> = writes.iter().map(|one| (one.place, one.group)).collect();
    let groups: Vec<GroupId> = places.iter().map(|(_, group)| *group).collect();
    let commands = writes.into_iter().map(|one| one.request.command(placeholder)).collect();
    let message = WriteMessage { commands };
    let within = until.saturating_duration_since(Instant::now()) + ANSWER_AFTER_MAX; // D4
    let told = office.cluster.send_about(node, &groups, asker, &message, within).await;
    let answers = message.commands.into_iter().enumerate().map(|(number, command)| match &told {
        Ok(told) => heard(told[number].clone(), command),
        Err(why) => Err(refused(why, command)),
    });
    let answers: Vec<(usize, Answer)> = places.iter().map(|(place, _)| *place).zip(answers).collect();
    for ((_, group), (_, answer)) in places.iter().zip(&answers).filter(|_| told.is_ok()) {
        if matches!(answer, Err(Refused::NotLeader(_))) {
            office.cluster.note_leader(*group, node, None);
        }
    }
    answers
}

/// What a write came to whose message has no response.
fn refused(why: &AskError, command: Bytes) -> Refused {
    match why {
        AskError::NotReached { .. } | AskError::NotLeader { .. } => Refused::NotLeader(command),
        AskError::Busy { .. } => Refused::Later { command, why: BUSY_THERE },
        AskError::Refused { why, .. } => Refused::NotWritten(NotWritten::Failed(why.clone())),
        AskError::Unknown { why, .. } => Refused::Unknown(why.clone()),
    }
}

/// Takes writes that came to other nodes, for shards that are led here.
pub(crate) struct WriteDoor {
    pub office: Arc<Office>,
}

impl std::fmt::Debug for WriteDoor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WriteDoor")
    }
}

/// Whose share of places forwarded writes take: the credential's on whose behalf they are sent, where it is known, else
/// the sending node's, which shares its own places between credentials.
fn sharer(principal: Option<&Bytes>, from: NodeId) -> Uuid {
    let who = principal.and_then(|bytes| Asker::from_bytes(bytes)?.principal());
    who.map_or(Uuid::from_u128(u128::from(from.0)), |who| who.credential.record())
}

impl AnswersFor for WriteDoor {
    fn answer_for(
        &self,
        principal: Option<Bytes>,
        from: NodeId,
        body: Bytes,
        within: Duration,
    ) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let office = Arc::clone(&self.office);
        let until = Instant::now() + within.saturating_sub(ANSWER_AFTER_MAX); // D4
        let patience = Patience { until, credential: sharer(principal.as_ref(), from) };
        async move {
            let bad = || NoAnswer::Refused("forwarded writes that do not read".into());
            let commands = decode_frames(body, WRITES_MAX).ok_or_else(bad)?;
            let writes: Vec<Encoded> =
                commands.into_iter().map(Encoded::read).collect::<Result<_, _>>().map_err(|_| bad())?;
            let objects: BTreeSet<ObjectKey> = writes.iter().map(|write| write.object).collect();
            office.cluster.check(principal, Deed::Write, objects.into_iter().collect()).await?;
            let answers = take(&office, writes, patience).await;
            let told: Vec<Told> = answers.into_iter().map(tell).collect();
            Ok(Bytes::from(serde_json::to_vec(&told).expect("plain data encodes")))
        }
        .boxed()
    }
}

/// Only what is led here: whoever sent the others hears so, and does not send them through a third node.
async fn take(office: &Arc<Office>, writes: Vec<Encoded>, patience: Patience) -> Vec<Answer> {
    let group = |write: &Encoded| GroupId::of_shard(office.cluster.locate(&write.object));
    let is_here = |write: &Encoded| office.cluster.route(group(write), Prefer::Leader) == Route::Here;
    let here: Vec<bool> = writes.iter().map(is_here).collect();
    let mut answers: Vec<Answer> = writes.iter().map(|write| Err(Refused::NotLeader(write.command.clone()))).collect();
    let mine: Vec<Work> =
        writes.into_iter().zip(&here).filter(|(_, here)| **here).map(|(write, _)| Work::Encoded(write)).collect();
    let Some(org) = mine.first().map(|work| work.object().org) else { return answers };
    let holder = Holder::new(org.0, patience.credential);
    let sent = send_here(office, holder, mine, Vec::new(), patience.until).await;
    let places = here.iter().enumerate().filter(|(_, here)| **here).map(|(place, _)| place);
    match sent {
        Ok(sent) => {
            let taken = answered(sent.answers, patience.until).await;
            places.zip(taken).for_each(|(place, answer)| answers[place] = answer);
        }
        Err(Refusal::Closed) => {} // as good as led elsewhere: soon it is
        Err(Refusal::Full(why)) => {
            places.for_each(|place| answers[place] = Err(Refused::NotWritten(NotWritten::Busy(why))));
        }
    }
    answers
}

#[cfg(test)]
mod tests {
    use assay_storage_model::command::{Command, Write};
    use assay_storage_model::{ObjectKind, OrgId};

    use super::*;

    #[test]
    fn answers_survive_the_way_back() {
        let command = Bytes::from_static(b"c");
        let cases: Vec<Answer> = vec![
            Ok(Done { xact: Xact::new(1, 2), duplicate: true }),
            Err(Refused::Gone),
            Err(Refused::KeyReused { xact: Xact::new(3, 4) }),
            Err(Refused::Row(RowError { row: 3, path: String::new(), problem: "is too large".into() })),
            Err(Refused::NotLeader(command.clone())),
            Err(Refused::NotWritten(NotWritten::NoSpace("full".into()))),
            Err(Refused::Unknown("lost".into())),
        ];
        for answer in cases {
            let text = serde_json::to_vec(&tell(answer.clone())).expect("encodes");
            assert_eq!(heard(serde_json::from_slice(&text).expect("decodes"), command.clone()), answer);
        }
        let closing = tell(Err(Refused::NotWritten(NotWritten::Closing)));
        assert_eq!(closing, Told::NotLeader, "a node that stops has not written it, and another will");
        let busy = tell(Err(Refused::NotWritten(NotWritten::Busy("x"))));
        assert_eq!(heard(busy, command.clone()), Err(Refused::Later { command, why: BUSY_THERE }), "it is sent again");
    }

    #[test]
    fn a_busy_leader_is_asked_again_and_a_lost_answer_is_not() {
        let object = ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::Dataset, Uuid::from_u128(2));
        let write = Write { object, assigned: Xact::ZERO, request: None, rows: Vec::new() };
        let command = Bytes::from(Command::Write(write).encode());
        let busy = attempt_of(Err(Refused::Later { command: command.clone(), why: BUSY_THERE }));
        assert!(matches!(busy, Attempt::Busy(work) if work.object() == object));
        let moved = attempt_of(Err(Refused::NotLeader(command)));
        assert!(matches!(moved, Attempt::Elsewhere(work) if work.object() == object));
        let lost = attempt_of(Err(Refused::Unknown("lost".into())));
        assert!(matches!(lost, Attempt::Done(Err(Refused::Unknown(_)))));
    }
}
