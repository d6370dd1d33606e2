//! Network between simulated nodes: messages are delayed, duplicated, reordered or lost.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::Duration;

use assay_cluster::starts::Stop;
use assay_cluster_raft::{Chunks, FileWanted, Message, PeerError, Peers, ReceiveError, Way};
use assay_storage_model::{GroupId, NodeId, ReplicaId};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};

use super::process::SimProcess;
use super::stale_copies::introduce;
use super::world::SimWorld;

/// Duration of a refused connection.
const REFUSED_AFTER: Duration = Duration::from_micros(300);
/// Time after which a silent connection is closed, with all its requests, as the transport does by its pings.
const SILENT_MAX: Duration = Duration::from_secs(3);

#[derive(Debug, Default)]
pub struct Wires(Mutex<NetworkState>);

#[derive(Debug, Default)]
struct NetworkState {
    /// Cut directions, from one node to another.
    cut: BTreeSet<(NodeId, NodeId)>,
    faults: NetworkFaults,
}

/// Faults of messages, in messages of a thousand; and their maximum delay, in microseconds.
#[derive(Clone, Debug, Default)]
pub struct NetworkFaults {
    pub lost: u64,
    pub twice: u64,
    pub late: u64,
    pub late_by: Range<u64>,
}

impl Wires {
    pub fn cut(&self, pairs: impl IntoIterator<Item = (NodeId, NodeId)>) {
        self.0.lock().cut.extend(pairs);
    }

    pub fn set_faults(&self, faults: NetworkFaults) {
        self.0.lock().faults = faults;
    }

    pub fn mend(&self) {
        *self.0.lock() = NetworkState::default();
    }

    fn is_open(&self, from: NodeId, to: NodeId) -> bool {
        !self.0.lock().cut.contains(&(from, to))
    }

    fn faults(&self) -> NetworkFaults {
        self.0.lock().faults.clone()
    }
}

impl SimWorld {
    /// A message on its way: the process that it reaches, if it reaches one.
    pub async fn pass(&self, from: &SimProcess, to: NodeId) -> Option<Arc<SimProcess>> {
        let faults = self.wires.faults();
        let mut takes = self.dice.micros(&self.plan.wire);
        if self.dice.per_mille(faults.late) {
            takes += self.dice.micros(&faults.late_by);
        }
        let lost = self.dice.per_mille(faults.lost) || from.is_dead() || !self.wires.is_open(from.node, to);
        sleep(takes).await;
        if lost || !self.wires.is_open(from.node, to) {
            return None;
        }
        self.life(to).filter(|life| !life.is_dead())
    }

    /// Sends a request to a group's replica on another node, and waits at most `within` for the response.
    async fn ask(self: Arc<Self>, from: Arc<SimProcess>, message: Message) -> Result<Bytes, PeerError> {
        let Message { way, kind, body, within } = message;
        let until = Instant::now() + within;
        let refused = || PeerError::Unreachable("nobody is there".into());
        if from.is_dead() || self.life(way.node).is_none() {
            sleep(REFUSED_AFTER).await;
            return Err(refused());
        }
        if self.dice.per_mille(self.wires.faults().twice) {
            tokio::spawn(Arc::clone(&self).again(Arc::clone(&from), way, kind, body.clone()));
        }
        let (own, theirs) = ((way.group, way.from), (way.group, way.to));
        let answer = async {
            if from.way_out(way.node, own, theirs) == Err(Stop::Introduce) {
                introduce(&self, &from, way.node).await;
            }
            let meant = match from.way_out(way.node, own, theirs) {
                Ok(meant) => meant,
                Err(stop) => return Some(Err(PeerError::Unreachable(stop.to_string()))),
            };
            let there = self.pass(&from, way.node).await?;
            if let Err(stop) = there.way_in(&from, meant, (theirs, own)) {
                let back = self.pass(&there, from.node).await?;
                if stop == Stop::Introduce && back.number == from.number {
                    from.starts.lock().forget(way.node);
                }
                return Some(Err(PeerError::Unreachable(stop.to_string())));
            }
            self.trace.say(format_args!("{} > {} {} {}", from.node, way.node, kind.name(), body.len()));
            let answer = match there.replica(way.group, way.to) {
                Some(group) => {
                    let way = back(way, from.node);
                    tokio::select! {
                        biased;
                        () = there.died() => return None,
                        answer = received(async move { group.receive(way, kind, body).await }) => answer?,
                    }
                }
                None => Err(PeerError::Refused { why: "the replica is not here".into(), leader: None }),
            };
            let back = self.pass(&there, from.node).await?;
            (back.number == from.number).then_some(answer)
        };
        let whole = async {
            match answer.await {
                Some(answer) => answer,
                None => {
                    sleep(SILENT_MAX).await;
                    Err(PeerError::Lost("the connection was silent".into()))
                }
            }
        };
        timeout_at(until, whole).await.unwrap_or_else(|_| Err(PeerError::Lost("too late".into())))
    }

    /// Sends the same message once more, ignoring its response.
    async fn again(
        self: Arc<Self>,
        from: Arc<SimProcess>,
        way: Way,
        kind: assay_cluster_raft::MessageKind,
        body: Bytes,
    ) {
        if let Some(there) = self.pass(&from, way.node).await
            && let Some(group) = there.replica(way.group, way.to)
            && let Ok(meant) = from.way_out(way.node, (way.group, way.from), (way.group, way.to))
            && there.way_in(&from, meant, ((way.group, way.to), (way.group, way.from))).is_ok()
        {
            self.trace.say(format_args!("{} > {} {} again", from.node, way.node, kind.name()));
            drop(group.receive(back(way, from.node), kind, body).await);
        }
    }
}

/// Returns the way from the receiver's side.
fn back(way: Way, from: NodeId) -> Way {
    Way { from: way.to, to: way.from, node: from, ..way }
}

/// Goes on at the receiver when the sender no longer waits.
async fn received(
    receive: impl Future<Output = Result<Bytes, ReceiveError>> + Send + 'static,
) -> Option<Result<Bytes, PeerError>> {
    let (sender, answer) = oneshot::channel();
    tokio::spawn(async move { drop(sender.send(receive.await)) });
    Some(match answer.await.ok()? {
        Ok(answer) => Ok(answer),
        Err(ReceiveError::NotLeader { leader }) => Err(PeerError::Refused { why: "does not lead".into(), leader }),
        Err(error) => Err(PeerError::Refused { why: error.to_string(), leader: None }),
    })
}

/// The wires as one process has them.
#[derive(Debug)]
pub struct Wired {
    pub world: Weak<SimWorld>,
    pub life: Weak<SimProcess>,
}

impl Wired {
    fn both(&self) -> Option<(Arc<SimWorld>, Arc<SimProcess>)> {
        Some((self.world.upgrade()?, self.life.upgrade()?))
    }
}

fn ended() -> PeerError {
    PeerError::Unreachable("the simulation has ended".into())
}

impl Peers for Wired {
    fn send(&self, message: Message) -> BoxFuture<'static, Result<Bytes, PeerError>> {
        let both = self.both();
        async move {
            let (world, life) = both.ok_or_else(ended)?;
            world.ask(life, message).await
        }
        .boxed()
    }

    fn fetch(&self, way: Way, wanted: FileWanted) -> BoxFuture<'static, Result<Chunks, PeerError>> {
        let both = self.both();
        async move {
            let (world, from) = both.ok_or_else(ended)?;
            let lost = || PeerError::Lost("cut off".into());
            let there = world.pass(&from, way.node).await.ok_or_else(lost)?;
            let not_here = || PeerError::Refused { why: "the replica is not here".into(), leader: None };
            let group = there.replica(way.group, way.to).ok_or_else(not_here)?;
            world.trace.say(format_args!("{} > {} fetch {} at {}", from.node, way.node, wanted.file, wanted.offset));
            let chunks = group.read_export(wanted).await?;
            Ok(chunks.then(move |chunk| passed(Arc::clone(&world), Arc::clone(&there), from.node, chunk)).boxed())
        }
        .boxed()
    }
}

/// A piece of a file on its way.
async fn passed(
    world: Arc<SimWorld>,
    there: Arc<SimProcess>,
    to: NodeId,
    chunk: Result<Bytes, PeerError>,
) -> Result<Bytes, PeerError> {
    world.pass(&there, to).await.ok_or_else(|| PeerError::Lost("cut off".into()))?;
    chunk
}

impl SimProcess {
    pub fn replica(&self, group: GroupId, replica: ReplicaId) -> Option<assay_cluster_raft::Group> {
        let groups = self.groups.read();
        groups.get(&group).filter(|found| found.group.replica() == replica).map(|found| found.group.clone())
    }
}
