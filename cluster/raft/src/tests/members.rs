//! Groups of three members in one process, each with its own log, over a network that can be cut.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use assay_storage_disk::RealDisk;
use assay_storage_log::Log;
use assay_storage_model::{GroupId, NodeId, ReplicaId, WriteFailure};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt};
use parking_lot::{Mutex, RwLock};
use tempfile::TempDir;
use tokio::runtime::Handle;

mod elections;
mod handovers;

use super::open_log;
use crate::apply::machine::Machine;
use crate::apply::machine::memory::{MemoryMachine, Sealed};
use crate::network::wire;
use crate::{
    Admission, Bootstrap, CacheBudget, Chunks, FileWanted, ForcedRecovery, Group, GroupConfig, IncomingDir,
    LogRetention, Message, MessageKind, NoLargeWrites, NodeParts, OnFatal, PeerError, Peers, ReceiveError, SealThreads,
    Throttle, Timing, Way, Work,
};

const GROUP: GroupId = GroupId(16);
const SETTLED_WITHIN: Duration = Duration::from_secs(20);

/// Reachable and isolated replicas.
#[derive(Clone, Debug, Default)]
struct Wire {
    running: Arc<RwLock<BTreeMap<ReplicaId, Group>>>,
    cut: Arc<Mutex<BTreeSet<ReplicaId>>>,
    /// Pairs of replicas that do not reach each other.
    apart: Arc<Mutex<Option<[ReplicaId; 2]>>>,
    /// Replicas that receive nothing but responses to their own requests.
    deaf: Arc<Mutex<BTreeSet<ReplicaId>>>,
    /// Whether reads of a snapshot return changed bytes.
    spoils: Arc<AtomicBool>,
    refused_as_damaged: Arc<AtomicU32>,
    /// Whether followers refuse entries but keep contact with their leader.
    refuses_entries: Arc<AtomicBool>,
    /// Bytes that each link carries in a second. With 0, all of them arrive.
    rate: Arc<AtomicU64>,
}

impl Wire {
    fn reach(&self, way: Way) -> Result<(Group, Way), PeerError> {
        let cut = self.cut.lock();
        let unreachable = || PeerError::Unreachable("cut off".into());
        if cut.contains(&way.from) || cut.contains(&way.to) || self.deaf.lock().contains(&way.to) {
            return Err(unreachable());
        }
        if self.apart.lock().is_some_and(|pair| pair == [way.from, way.to] || pair == [way.to, way.from]) {
            return Err(unreachable());
        }
        let group = self.running.read().get(&way.to).cloned().ok_or_else(unreachable)?;
        Ok((group, Way { from: way.to, to: way.from, node: NodeId(way.from.0), ..way }))
    }
}

fn has_entries(message: &Message) -> bool {
    message.kind == MessageKind::Append
        && wire::decode_append(&message.body).is_ok_and(|append| !append.entries.is_empty())
}

impl Peers for Wire {
    fn send(&self, message: Message) -> BoxFuture<'static, Result<Bytes, PeerError>> {
        let (reached, refused) = (self.reach(message.way), Arc::clone(&self.refused_as_damaged));
        let bytes = message.body.len() as u64;
        let refuses = self.refuses_entries.load(Ordering::Relaxed) && has_entries(&message);
        let takes = (bytes * 1_000_000).checked_div(self.rate.load(Ordering::Relaxed)).map(Duration::from_micros);
        async move {
            let (group, way) = reached?;
            if refuses {
                // As when a large write has not arrived: there is contact with the leader, but consensus does not see
                // the entries.
                group.elections().note_leader();
                return Err(PeerError::Refused { why: "a large write has not arrived yet".into(), leader: None });
            }
            let received = async {
                tokio::time::sleep(takes.unwrap_or_default()).await;
                group.receive(way, message.kind, message.body).await
            };
            let answer = tokio::time::timeout(message.within, received).await;
            match answer {
                Err(_) => Err(PeerError::Lost("too late".into())),
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(ReceiveError::NotLeader { leader })) => {
                    Err(PeerError::Refused { why: "does not lead".into(), leader })
                }
                Ok(Err(error)) => {
                    if matches!(error, ReceiveError::Damaged(_)) {
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(PeerError::Refused { why: error.to_string(), leader: None })
                }
            }
        }
        .boxed()
    }

    fn fetch(&self, way: Way, wanted: FileWanted) -> BoxFuture<'static, Result<Chunks, PeerError>> {
        let (reached, spoils) = (self.reach(way), self.spoils.load(Ordering::Relaxed));
        let spoiled = move |chunk: Bytes| {
            let mut bytes = chunk.to_vec();
            bytes.iter_mut().take(usize::from(spoils)).for_each(|byte| *byte ^= 1);
            Bytes::from(bytes)
        };
        async move { Ok(reached?.0.read_export(wanted).await?.map_ok(spoiled).boxed()) }.boxed()
    }
}

/// Replica, with the parts of it that survive a crash.
struct TestReplica {
    dir: TempDir,
    sealed: Sealed,
    machine: Mutex<Option<Arc<MemoryMachine>>>,
    log: Mutex<Option<Log>>,
}

struct TestGroup {
    wire: Wire,
    places: BTreeMap<ReplicaId, TestReplica>,
    fatal: Arc<Mutex<Vec<String>>>,
}

fn replica(number: u64) -> ReplicaId {
    ReplicaId(number)
}

impl TestGroup {
    fn new(replicas: u64) -> TestGroup {
        let place = || TestReplica {
            dir: tempfile::tempdir().expect("a directory"),
            sealed: Sealed::default(),
            machine: Mutex::default(),
            log: Mutex::default(),
        };
        let places = (1..=replicas).map(|number| (replica(number), place())).collect();
        TestGroup { wire: Wire::default(), places, fatal: Arc::default() }
    }

    /// Creates a group founded by its first `members`.
    async fn founded(replicas: u64, members: u64) -> TestGroup {
        let raft = TestGroup::new(replicas);
        let all: Vec<_> = (1..=members).map(|number| (replica(number), NodeId(number))).collect();
        raft.start(replica(1), Bootstrap::Now(all)).await;
        for number in 2..=members {
            raft.start(replica(number), Bootstrap::Joining).await;
        }
        raft
    }

    async fn start(&self, id: ReplicaId, founding: Bootstrap) {
        let place = &self.places[&id];
        let log = open_log(place.dir.path());
        let machine = Arc::new(MemoryMachine::open(Arc::clone(&place.sealed)));
        let heard = Arc::clone(&self.fatal);
        let node = NodeParts {
            cluster_name: "test".into(),
            timing: Timing::default(),
            runtime: Handle::current(),
            cache: CacheBudget::default(),
            seals: SealThreads::start(()).expect("a thread"),
            admission: Arc::new(Admission::default()),
            counters: Arc::default(),
            fatal: OnFatal::call(move |why| heard.lock().push(why)),
            peers: Arc::new(self.wire.clone()),
            throttle: Arc::new(Throttle::new(0)),
            work: Work::Threads,
        };
        let dir: PathBuf = place.dir.path().join("incoming");
        let config = GroupConfig {
            group: GROUP,
            replica: id,
            founding,
            log: log.group(GROUP),
            machine: Arc::clone(&machine) as _,
            large: Arc::new(NoLargeWrites),
            incoming: IncomingDir { disk: Arc::new(RealDisk), dir },
        };
        let group = Group::start(config, node).await.expect("a replica starts");
        self.wire.running.write().insert(id, group);
        *place.machine.lock() = Some(machine);
        *place.log.lock() = Some(log);
    }

    /// Simulates a crash: memory is lost, sealed and logged state stays.
    async fn crash(&self, id: ReplicaId) {
        let group = self.wire.running.write().remove(&id).expect("it runs");
        group.shutdown().await;
        drop(group);
        let place = &self.places[&id];
        *place.machine.lock() = None;
        let log = place.log.lock().take().expect("it has a log");
        tokio::task::spawn_blocking(move || log.shutdown()).await.expect("ends").expect("closes");
    }

    fn group(&self, id: ReplicaId) -> Group {
        self.wire.running.read()[&id].clone()
    }

    fn commands(&self, id: ReplicaId) -> Vec<Bytes> {
        self.places[&id].machine.lock().as_ref().expect("it runs").commands()
    }

    async fn leader(&self) -> ReplicaId {
        self.wait("a leader", |raft| {
            let cut = raft.wire.cut.lock().clone();
            let running = raft.wire.running.read();
            running.iter().find(|(id, group)| group.leads() && !cut.contains(id)).map(|(id, _)| *id)
        })
        .await
    }

    async fn wait<T>(&self, what: &str, look: impl Fn(&TestGroup) -> Option<T>) -> T {
        let until = Instant::now() + SETTLED_WITHIN;
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            assert!(Instant::now() < until, "{what} did not come; fatal: {:?}", self.fatal.lock());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Writes to the leader repeatedly until the write has certainly succeeded. No two texts are the same.
    async fn write(&self, text: &str) {
        let until = Instant::now() + SETTLED_WITHIN;
        loop {
            let leader = self.leader().await;
            match self.group(leader).write(Bytes::copy_from_slice(text.as_bytes())).await {
                Ok(_) => return,
                Err(WriteFailure::NotWritten(_)) if Instant::now() < until => {}
                // On a busy machine a lead may be lost at any time.
                Err(WriteFailure::Unknown { .. }) if Instant::now() < until => {
                    let leader = self.leader().await;
                    if self.group(leader).fence().await.is_ok()
                        && self.commands(leader).contains(&Bytes::from(text.to_owned()))
                    {
                        return;
                    }
                }
                Err(error) => panic!("{text}: {error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn everywhere(&self, count: usize) {
        let ids: Vec<ReplicaId> = self.wire.running.read().keys().copied().collect();
        for id in ids {
            self.wait(&format!("{count} commands at {id}"), |raft| (raft.commands(id).len() >= count).then_some(()))
                .await;
        }
    }
}

fn voters(group: &Group) -> BTreeSet<ReplicaId> {
    group.status().members.iter().filter(|member| member.voter).map(|member| member.replica).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_is_on_all_and_any_of_them_reads_it() {
    let raft = TestGroup::founded(3, 3).await;
    for number in 0..20 {
        raft.write(&format!("w{number}")).await;
        for id in raft.places.keys() {
            raft.group(*id).fence().await.expect("a fence passes anywhere");
            assert_eq!(raft.commands(*id).len(), number + 1, "after a fence replica {id} has what was acknowledged");
        }
    }
    raft.everywhere(20).await;
    assert!(raft.fatal.lock().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_neither_writes_nor_confirms_and_the_others_go_on() {
    let raft = TestGroup::founded(3, 3).await;
    raft.write("before").await;
    let old = raft.leader().await;
    raft.wire.cut.lock().insert(old);
    let alone = raft.group(old);
    let lost = tokio::spawn(async move { alone.write(Bytes::from_static(b"lost")).await });
    let asked = raft.group(old);
    let fence = tokio::spawn(async move { asked.fence().await });
    raft.write("after").await;
    let new = raft.leader().await;
    assert!(fence.await.expect("ends").is_err(), "a leader without a majority confirms nothing");
    raft.wire.cut.lock().clear();
    assert!(matches!(lost.await.expect("ends"), Err(WriteFailure::Unknown { .. } | WriteFailure::NotWritten(_))));
    // Until it learns of the new leader, the old one accepts writes whose outcome is then unknown.
    raft.wait("the old leader's fall", |raft| (raft.group(old).status().leader == Some(new)).then_some(())).await;
    raft.write("healed").await;
    raft.everywhere(3).await;
    for id in raft.places.keys() {
        raft.group(*id).fence().await.expect("passes");
        assert_eq!(raft.commands(*id), ["before", "after", "healed"].map(|text| Bytes::from_static(text.as_bytes())));
    }
}

/// Regression: openraft learned this by a response that ended the replicating task, and stopped if it then had a
/// snapshot for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_steps_down_that_hears_of_another_only_by_answers() {
    let raft = TestGroup::founded(3, 3).await;
    raft.write("before").await;
    let old = raft.leader().await;
    raft.wire.cut.lock().insert(old);
    raft.write("after").await;
    raft.wire.deaf.lock().insert(old);
    raft.wire.cut.lock().clear();
    raft.wait("the old leader's fall", |raft| (!raft.group(old).leads()).then_some(())).await;
    raft.wire.deaf.lock().clear();
    raft.write("healed").await;
    raft.everywhere(3).await;
    assert_eq!(raft.commands(old), ["before", "after", "healed"].map(|text| Bytes::from_static(text.as_bytes())));
    assert!(raft.fatal.lock().is_empty(), "{:?}", raft.fatal.lock());
}

/// Creates a group of three in which one member missed 200 writes, whose entries are purged.
async fn raft_that_went_on_without_one() -> (TestGroup, ReplicaId) {
    let raft = TestGroup::founded(3, 3).await;
    raft.write("first").await;
    let leader = raft.leader().await;
    let away = *raft.places.keys().find(|id| **id != leader).expect("another");
    raft.crash(away).await;
    for number in 0..200 {
        raft.write(&format!("w{number}")).await;
    }
    // All remaining members seal, because any of them may come to lead.
    raft.everywhere(201).await;
    let left: Vec<ReplicaId> = raft.wire.running.read().keys().copied().collect();
    for id in left {
        raft.group(id).seal().await.expect("seals");
        raft.group(id).purge(LogRetention::Nothing).await.expect("purges");
        let purged = |raft: &TestGroup| raft.group(id).status().purged.filter(|index| *index > 100).map(drop);
        raft.wait("a purge", purged).await;
    }
    (raft, away)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_was_away_too_long_is_given_a_snapshot() {
    let (raft, away) = raft_that_went_on_without_one().await;
    raft.start(away, Bootstrap::Joining).await;
    raft.everywhere(201).await;
    // Replayed entries are not sealed. The status may report this a moment later.
    raft.wait("an installed snapshot", |raft| raft.group(away).status().sealed.map(drop)).await;
    raft.write("last").await;
    raft.everywhere(202).await;
    assert!(raft.fatal.lock().is_empty(), "{:?}", raft.fatal.lock());
}

/// Regression: the snapshot was installed unread, which ended the node. At its next start it was offered the same
/// again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_snapshot_is_refused_and_said_to_its_sender_and_nothing_ends() {
    let (raft, away) = raft_that_went_on_without_one().await;
    raft.wire.spoils.store(true, Ordering::Relaxed);
    raft.start(away, Bootstrap::Joining).await;
    let refused = |raft: &TestGroup| (raft.wire.refused_as_damaged.load(Ordering::Relaxed) > 0).then_some(());
    raft.wait("a refusal", refused).await;
    assert!(raft.fatal.lock().is_empty(), "{:?}", raft.fatal.lock());
    assert!(raft.commands(away).len() <= 1, "nothing of it was taken");
    raft.write("meanwhile").await;
    raft.wire.spoils.store(false, Ordering::Relaxed);
    raft.everywhere(202).await;
    let refused = raft.wire.refused_as_damaged.load(Ordering::Relaxed);
    assert!(refused <= 4, "what is of no use is not fetched over and over: {refused}");
    assert!(raft.fatal.lock().is_empty(), "{:?}", raft.fatal.lock());
}

/// Regression: entries that did not arrive within one heartbeat were sent again in full, forever, and without
/// heartbeats meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_entry_passes_a_slow_link_and_its_leader_stays() {
    let raft = TestGroup::founded(3, 3).await;
    raft.write("before").await;
    let (leader, term) = (raft.leader().await, raft.group(raft.leader().await).status().term);
    for (megabits, entries) in [(50, 1), (8, 2)] {
        raft.wire.rate.store(megabits * 1_000_000 / 8, Ordering::Relaxed);
        let began = Instant::now();
        for number in 0..entries {
            raft.write(&format!("{megabits} {number}{}", "x".repeat(1_000_000))).await;
        }
        eprintln!("{entries} entries of 1 MB over {megabits} Mbit/s: {:?}", began.elapsed());
    }
    raft.everywhere(4).await;
    assert_eq!((raft.leader().await, raft.group(leader).status().term), (leader, term), "nobody missed a heartbeat");
    assert!(raft.fatal.lock().is_empty(), "{:?}", raft.fatal.lock());
}

/// Regression: the state was at the snapshot, but the log on disk was before it. The recovery wrote its membership to a
/// position that is never read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_ended_right_after_a_snapshot_came_can_be_made_a_group_of_its_own() {
    let raft = TestGroup::founded(3, 3).await;
    raft.write("first").await;
    let leader = raft.leader().await;
    let left = *raft.places.keys().find(|id| **id != leader).expect("another");
    raft.crash(left).await;
    for number in 0..20 {
        raft.write(&format!("w{number}")).await;
    }
    let leader = raft.leader().await;
    raft.group(leader).seal().await.expect("seals");
    let snapshot = raft.places[&leader].sealed.lock().clone();
    for id in raft.places.keys().copied().filter(|id| *id != left) {
        raft.crash(id).await;
    }
    *raft.places[&left].sealed.lock() = snapshot;
    let sealed = MemoryMachine::open(Arc::clone(&raft.places[&left].sealed)).sealed().position;
    let log = open_log(raft.places[&left].dir.path());
    let before = log.group(GROUP).state().last.map(|(index, _)| index);
    assert!(before < sealed.map(|sealed| sealed.index), "{before:?} {sealed:?}");
    for _ in 0..2 {
        let forced = ForcedRecovery::plan(log.group(GROUP), left, NodeId(left.0), sealed).expect("a plan");
        forced.write().await.expect("a membership is written");
    }
    tokio::task::spawn_blocking(move || log.shutdown()).await.expect("ends").expect("closes");
    raft.start(left, Bootstrap::Before).await;
    raft.write("alone").await;
    assert_eq!(raft.commands(left).len(), 22);
    assert_eq!(voters(&raft.group(left)), [left].into());
    assert!(raft.fatal.lock().is_empty(), "{:?}", raft.fatal.lock());
}

/// Regression: the position in the log is inside the snapshot, so the entry is never committed or dropped. Its waiters
/// blocked the next lead of the group.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_entry_a_snapshot_takes_the_place_of_is_answered() {
    let raft = TestGroup::founded(3, 3).await;
    raft.write("before").await;
    let old = raft.leader().await;
    raft.wire.cut.lock().insert(old);
    let alone = raft.group(old);
    let lost = tokio::spawn(async move { alone.write(Bytes::from_static(b"lost")).await });
    for number in 0..20 {
        raft.write(&format!("w{number}")).await;
    }
    let others: Vec<ReplicaId> = raft.places.keys().copied().filter(|id| *id != old).collect();
    for id in others {
        raft.wait("all writes", |raft| (raft.commands(id).len() == 21).then_some(())).await;
        let group = raft.group(id);
        let written = group.status().applied;
        group.seal().await.expect("seals");
        group.purge(LogRetention::Nothing).await.expect("purges");
        raft.wait("a purge", |_| group.status().purged.filter(|index| Some(*index) >= written).map(drop)).await;
    }
    raft.wire.cut.lock().clear();
    let answer = tokio::time::timeout(SETTLED_WITHIN, lost).await.expect("an answer").expect("ends");
    assert!(matches!(answer, Err(WriteFailure::Unknown { .. })), "{answer:?}");
    raft.write("healed").await;
    raft.wait("the snapshot and what followed", |raft| (raft.commands(old).len() == 22).then_some(())).await;
    assert!(raft.group(old).status().sealed.is_some(), "it was installed and not replayed");
    assert!(raft.fatal.lock().is_empty(), "{:?}", raft.fatal.lock());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_come_and_go_one_change_at_a_time() {
    let raft = TestGroup::founded(4, 1).await;
    raft.write("alone").await;
    let first = raft.group(replica(1));
    for number in 2..=4 {
        raft.start(replica(number), Bootstrap::Joining).await;
        first.add_learner(replica(number), NodeId(number)).await.expect("a learner is added");
    }
    raft.everywhere(1).await;
    first.set_voters([1, 2, 3].map(replica).into()).await.expect("three vote");
    raft.write("three").await;
    assert_eq!(voters(&first), [1, 2, 3].map(replica).into());
    raft.wire.cut.lock().insert(replica(3));
    first.set_voters([1, 2, 4].map(replica).into()).await.expect("the one that is gone is replaced");
    raft.wire.cut.lock().clear();
    raft.write("replaced").await;
    assert_eq!(voters(&first), [1, 2, 4].map(replica).into());
    assert!(first.status().members.iter().all(|member| member.replica != replica(3)), "it is no member any more");
    for id in [1, 2, 4].map(replica) {
        raft.wait("the last write", |raft| (raft.commands(id).len() == 3).then_some(())).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lead_is_handed_over_and_writes_that_waited_are_refused_unwritten() {
    let raft = TestGroup::founded(3, 3).await;
    raft.write("before").await;
    let from = raft.leader().await;
    let to = *raft.places.keys().find(|id| **id != from).expect("another");
    let (giving, writing) = (raft.group(from), raft.group(from));
    let began = Instant::now();
    let handed = tokio::spawn(async move { giving.hand_over(to).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let held = writing.write(Bytes::from_static(b"held")).await;
    handed.await.expect("ends").expect("the lead is handed over");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(matches!(held, Err(WriteFailure::NotWritten(_))), "{held:?}");
    assert!(raft.group(to).leads() && !raft.group(from).leads());
    raft.write("after").await;
    raft.everywhere(2).await;
    assert_eq!(raft.commands(to), [Bytes::from_static(b"before"), Bytes::from_static(b"after")]);
}

/// Regression: a leader that continued after its restart confirmed reads up to its stored committed index, which is
/// less than it had acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_restarts_leads_only_if_it_is_elected_anew() {
    for members in [1, 3] {
        let raft = TestGroup::founded(members, members).await;
        raft.write("acknowledged").await;
        let old = raft.leader().await;
        let term = raft.group(old).status().term;
        for id in raft.places.keys() {
            raft.crash(*id).await;
        }
        for id in raft.places.keys() {
            raft.start(*id, Bootstrap::Before).await;
        }
        raft.group(old).fence().await.expect("a fence passes once there is a leader");
        assert_eq!(raft.commands(old), [Bytes::from_static(b"acknowledged")]);
        assert!(raft.group(raft.leader().await).status().term > term, "whoever leads was elected since");
        assert!(raft.fatal.lock().is_empty(), "{:?}", raft.fatal.lock());
    }
}

/// Regression: the old leader forwarded read requests to the new one, whose own round waited for the old one's
/// response. Both waited for the time limit of two seconds, and every read of the group with them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_at_the_next_leader_go_on_while_the_lead_is_handed_to_it() {
    const ROUNDS: usize = 4;
    let raft = TestGroup::founded(3, 3).await;
    raft.write("before").await;
    for round in 0..ROUNDS {
        let from = raft.leader().await;
        let to = *raft.places.keys().find(|id| **id != from).expect("another");
        let reading: Vec<_> = raft.places.keys().map(|id| raft.group(*id)).collect();
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let readers: Vec<_> = reading
            .into_iter()
            .map(|group| {
                let stop = Arc::clone(&stop);
                tokio::spawn(async move {
                    let mut passed = 0;
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        group.fence().await.expect("a fence passes");
                        passed += 1;
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    passed
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(100)).await;
        raft.group(from).hand_over(to).await.expect("the lead is handed over");
        tokio::time::sleep(Duration::from_millis(100)).await;
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        for reader in readers {
            assert!(reader.await.expect("ends") > 0, "round {round}");
        }
    }
}
