//! Writes to where their shards are led: to actors here, or in one message to each other node that leads some of them.
//!
//! D1: every place here is taken, or none, before anything is sent anywhere.
//! D2: a write is sent again only where it is sure that it was not written: its node was not reached, or said that
//!     another one leads. An answer that is lost is unknown.
//! D3: looking for a leader ends after a while, and then nothing of that write is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use assay_cluster::{AnswersFor, AskError, Deed, NoAnswer, NotWritten, ROUTE_WAIT_MAX, Route, ServiceNames};
use assay_storage_model::event::RowError;
use assay_storage_model::{GroupId, NodeId, ObjectKey, Xact};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::FutureExt;
use futures::future::{BoxFuture, join, join_all};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};

use crate::answer::{Answer, Done, Refused};
use crate::book::Refusal;
use crate::office::Office;
use crate::threads::ActorThreads;
use crate::work::{Encoded, Work};

pub(crate) const WRITE: ServiceNames = ServiceNames { plain: "objects.write", on_behalf: "objects.write.for" };
/// A write that was sent is answered as unknown after this. Memory is waited for 20 s at most, and an entry takes
/// milliseconds: whoever waits this long waits for a quorum that is not there.
pub(crate) const ANSWER_WAIT_MAX: Duration = Duration::from_secs(40);
const SENT_AGAIN_AFTER: Duration = Duration::from_millis(25);
/// Writes of one message from another node.
const WRITES_MAX: usize = 1024;

struct Pending {
    /// Among the writes of the call.
    place: usize,
    work: Work,
}

/// Where the writes of a call go.
#[derive(Default)]
struct Split {
    here: Vec<Pending>,
    there: BTreeMap<NodeId, Vec<Pending>>,
    nowhere: Vec<Pending>,
}

fn split(office: &Office, pending: Vec<Pending>) -> Split {
    let mut split = Split::default();
    for one in pending {
        let group = GroupId::of_shard(office.cluster.locate(&one.work.object()));
        match office.cluster.route(group) {
            Route::Here => split.here.push(one),
            Route::There(node) => split.there.entry(node).or_default().push(one),
            Route::Nobody => split.nowhere.push(one),
        }
    }
    split
}

/// An answer to every write, or none of them was sent.
pub(crate) async fn deliver(
    office: &Arc<Office>,
    threads: &ActorThreads,
    works: Vec<Work>,
    asker: &Bytes,
) -> Result<Vec<Answer>, Refusal> {
    let mut answers: Vec<Option<Answer>> = works.iter().map(|_| None).collect();
    let mut pending: Vec<Pending> =
        works.into_iter().enumerate().map(|(place, work)| Pending { place, work }).collect();
    let (until, mut sent) = (Instant::now() + ROUTE_WAIT_MAX, false);
    while !pending.is_empty() {
        let Split { here, there, nowhere } = split(office, pending);
        let (places, works): (Vec<usize>, Vec<Work>) = here.into_iter().map(|one| (one.place, one.work)).unzip();
        let local = match send_here(office, threads, works) {
            Ok(local) => local,
            Err(refusal) if !sent => return Err(refusal), // D1
            Err(_) => {
                let busy = || Err(Refused::NotWritten(NotWritten::Busy("too many writes wait on this node")));
                places.iter().for_each(|place| answers[*place] = Some(busy()));
                Vec::new()
            }
        };
        sent |= !local.is_empty() || !there.is_empty();
        let remote = join_all(there.into_iter().map(|(node, writes)| send(office, node, writes, asker)));
        let (local, remote) = join(answered(local), remote).await;
        let done = places.into_iter().zip(local).chain(remote.into_iter().flatten());
        pending = nowhere;
        for (place, answer) in done {
            match answer {
                Err(Refused::NotLeader(command)) => match Encoded::read(command) {
                    Ok(write) => pending.push(Pending { place, work: Work::Encoded(write) }), // D2
                    Err(why) => answers[place] = Some(Err(Refused::NotWritten(NotWritten::Failed(why.to_string())))),
                },
                other => answers[place] = Some(other),
            }
        }
        if pending.is_empty() || Instant::now() >= until {
            break; // D3
        }
        sleep(SENT_AGAIN_AFTER).await;
    }
    let unsent = || Err(Refused::NotWritten(NotWritten::NotLeader { leader: None }));
    Ok(answers.into_iter().map(|answer| answer.unwrap_or_else(unsent)).collect())
}

/// To the actors of this node; a write without rows has nothing to be ordered and is answered with what is there.
fn send_here(
    office: &Arc<Office>,
    threads: &ActorThreads,
    works: Vec<Work>,
) -> Result<Vec<oneshot::Receiver<Answer>>, Refusal> {
    let empty: Vec<Option<ObjectKey>> = works.iter().map(|work| (work.rows() == 0).then(|| work.object())).collect();
    let with_rows = works.into_iter().filter(|work| work.rows() > 0).collect();
    let mut sent = office.send(threads, with_rows)?.into_iter();
    let each = empty.into_iter().map(|empty| {
        let (answer, answered) = oneshot::channel();
        let Some(object) = empty else { return sent.next().unwrap_or(answered) };
        let _ = answer.send(last_of(office, &object)); // its other end is right here
        answered
    });
    Ok(each.collect())
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
pub(crate) async fn answered(answers: Vec<oneshot::Receiver<Answer>>) -> Vec<Answer> {
    let deadline = Instant::now() + ANSWER_WAIT_MAX;
    let mut all = Vec::with_capacity(answers.len());
    for answer in answers {
        all.push(match timeout_at(deadline, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Refused::Unknown("the object's actor ended meanwhile".into())),
            Err(_) => Err(Refused::Unknown(format!("no answer came within {} s", ANSWER_WAIT_MAX.as_secs()))),
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
        Err(Refused::Unknown(why)) => Told::Unknown(why),
        Err(Refused::NotWritten(why)) => match why {
            NotWritten::NotLeader { .. } | NotWritten::Closing => Told::NotLeader,
            NotWritten::Busy(_) => Told::Busy,
            NotWritten::NoSpace(why) => Told::NoSpace(why),
            other => Told::NotWritten(other.to_string()),
        },
    }
}

fn heard(told: Told, command: &Bytes) -> Answer {
    Err(match told {
        Told::Done { xact, duplicate } => return Ok(Done { xact, duplicate }),
        Told::Gone => Refused::Gone,
        Told::KeyReused { xact } => Refused::KeyReused { xact },
        Told::Row { row, problem } => Refused::Row(RowError { row, path: String::new(), problem }),
        Told::NotLeader => Refused::NotLeader(command.clone()),
        Told::Busy => Refused::NotWritten(NotWritten::Busy("too many writes wait on the node that leads this shard")),
        Told::NoSpace(why) => Refused::NotWritten(NotWritten::NoSpace(why)),
        Told::NotWritten(why) => Refused::NotWritten(NotWritten::Failed(why)),
        Told::Unknown(why) => Refused::Unknown(why),
    })
}

async fn send(office: &Office, node: NodeId, writes: Vec<Pending>, asker: &Bytes) -> Vec<(usize, Answer)> {
    // The leader gives the id; this one is only as long as any that it gives.
    let placeholder = Xact::at_micros(u64::try_from((office.clock)()).unwrap_or(0));
    let groups: Vec<GroupId> =
        writes.iter().map(|one| GroupId::of_shard(office.cluster.locate(&one.work.object()))).collect();
    let commands: Vec<(usize, Bytes)> =
        writes.into_iter().map(|one| (one.place, one.work.command(placeholder))).collect();
    let body = frame(commands.iter().map(|(_, command)| command));
    let same = |refused: &dyn Fn(&Bytes) -> Refused| {
        commands.iter().map(|(place, command)| (*place, Err(refused(command)))).collect::<Vec<_>>()
    };
    let in_vain = |group: &GroupId| office.cluster.note_leader(*group, node, None);
    let (service, body) = office.cluster.addressed(node, WRITE, asker, body);
    match office.cluster.ask(node, service, body, ANSWER_WAIT_MAX).await {
        Ok(answer) => match serde_json::from_slice::<Vec<Told>>(&answer) {
            Ok(told) if told.len() == commands.len() => {
                let elsewhere = groups.iter().zip(&told).filter(|(_, told)| **told == Told::NotLeader);
                elsewhere.for_each(|(group, _)| in_vain(group));
                let answers = commands.iter().zip(told);
                answers.map(|((place, command), told)| (*place, heard(told, command))).collect()
            }
            _ => same(&|_| Refused::Unknown(format!("the answer of node {node} does not read"))),
        },
        Err(AskError::NotReached { .. } | AskError::NotLeader { .. }) => {
            groups.iter().for_each(in_vain);
            same(&|command| Refused::NotLeader(command.clone()))
        }
        // These are not sent again, and the next need not go the same way.
        Err(AskError::Refused { why, .. }) => {
            groups.iter().for_each(in_vain);
            same(&|_| Refused::NotWritten(NotWritten::Failed(why.clone())))
        }
        Err(AskError::Unknown { why, .. }) => {
            groups.iter().for_each(in_vain);
            same(&|_| Refused::Unknown(why.clone()))
        }
    }
}

/// Length u32 and bytes of each.
fn frame<'a>(commands: impl Iterator<Item = &'a Bytes> + Clone) -> Bytes {
    let mut body = BytesMut::with_capacity(commands.clone().map(|command| command.len() + 4).sum());
    for command in commands {
        body.put_u32_le(u32::try_from(command.len()).expect("a command is far below 4 GiB"));
        body.put_slice(command);
    }
    body.freeze()
}

fn unframe(mut body: Bytes) -> Option<Vec<Bytes>> {
    let mut commands = Vec::new();
    while body.remaining() >= 4 && commands.len() < WRITES_MAX {
        let length = body.get_u32_le() as usize;
        if length > body.remaining() {
            return None;
        }
        commands.push(body.split_to(length));
    }
    body.is_empty().then_some(commands)
}

/// Takes writes that came to other nodes, for shards that are led here.
pub(crate) struct WriteDoor {
    pub office: Arc<Office>,
    pub threads: Arc<ActorThreads>,
}

impl std::fmt::Debug for WriteDoor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WriteDoor")
    }
}

impl AnswersFor for WriteDoor {
    fn answer_for(
        &self,
        principal: Option<Bytes>,
        _from: NodeId,
        body: Bytes,
        _within: Duration,
    ) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let (office, threads) = (Arc::clone(&self.office), Arc::clone(&self.threads));
        async move {
            let bad = || NoAnswer::Refused("forwarded writes that do not read".into());
            let commands = unframe(body).ok_or_else(bad)?;
            let writes: Vec<Encoded> =
                commands.into_iter().map(Encoded::read).collect::<Result<_, _>>().map_err(|_| bad())?;
            let objects: BTreeSet<ObjectKey> = writes.iter().map(|write| write.object).collect();
            office.cluster.check(principal, Deed::Write, objects.into_iter().collect()).await?;
            let answers = take(&office, &threads, writes).await;
            let told: Vec<Told> = answers.into_iter().map(tell).collect();
            Ok(Bytes::from(serde_json::to_vec(&told).expect("plain data encodes")))
        }
        .boxed()
    }
}

/// Only what is led here: whoever sent the others hears so, and does not send them through a third node.
async fn take(office: &Arc<Office>, threads: &ActorThreads, writes: Vec<Encoded>) -> Vec<Answer> {
    let group = |write: &Encoded| GroupId::of_shard(office.cluster.locate(&write.object));
    let is_here = |write: &Encoded| office.cluster.route(group(write)) == Route::Here;
    let here: Vec<bool> = writes.iter().map(is_here).collect();
    let mut answers: Vec<Answer> = writes.iter().map(|write| Err(Refused::NotLeader(write.command.clone()))).collect();
    let mine = writes.into_iter().zip(&here).filter(|(_, here)| **here).map(|(write, _)| Work::Encoded(write));
    let sent = send_here(office, threads, mine.collect());
    let places = here.iter().enumerate().filter(|(_, here)| **here).map(|(place, _)| place);
    match sent {
        Ok(sent) => {
            let taken = answered(sent).await;
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
            assert_eq!(heard(serde_json::from_slice(&text).expect("decodes"), &command), answer);
        }
        let closing = tell(Err(Refused::NotWritten(NotWritten::Closing)));
        assert_eq!(closing, Told::NotLeader, "a node that stops has not written it, and another will");
    }

    #[test]
    fn commands_are_framed_and_a_cut_frame_is_refused() {
        let commands = [Bytes::from_static(b"abc"), Bytes::new()];
        let body = frame(commands.iter());
        assert_eq!(unframe(body.clone()), Some(commands.to_vec()));
        assert_eq!(unframe(body.slice(..body.len() - 1)), None);
    }
}
