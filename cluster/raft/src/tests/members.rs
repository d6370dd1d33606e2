//! Groups of three members in one process, each with a log of its own, over a network that can be cut.

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

use super::open_log;
use crate::apply::machine::Machine;
use crate::apply::machine::memory::{MemoryMachine, Sealed};
use crate::{
    Admission, Bootstrap, CacheBudget, Chunks, FileWanted, ForcedRecovery, Group, GroupConfig, IncomingDir,
    LogRetention, Message, NoLargeWrites, NodeParts, OnFatal, PeerError, Peers, ReceiveError, SealThreads, Throttle,
    Timing, Way, Work,
};

const GROUP: GroupId = GroupId(16);
const SETTLED_WITHIN: Duration = Duration::from_secs(20);

/// Reachable and isolated replicas.
#[derive(Clone, Debug, Default)]
struct Wire {
    running: Arc<RwLock<BTreeMap<ReplicaId, Group>>>,
    cut: Arc<Mutex<BTreeSet<ReplicaId>>>,
    /// Pairs that do not reach each other.
    apart: Arc<Mutex<Option<[ReplicaId; 2]>>>,
    /// Replicas that receive nothing but responses to their own requests.
    deaf: Arc<Mutex<BTreeSet<ReplicaId>>>,
    /// Whether reads of a snapshot return changed bytes.
    spoils: Arc<AtomicBool>,
    refused_as_damaged: Arc<AtomicU32>,
    /// Bytes that each link carries in a second; 0 is all that come.
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

impl Peers for Wire {
    fn send(&self, message: Message) -> BoxFuture<'static, Result<Bytes, PeerError>> {
        let (reached, refused) = (self.reach(message.way), Arc::clone(&self.refused_as_damaged));
        let bytes = message.body.len() as u64;
        let takes = (bytes * 1_000_000).checked_div(self.rate.load(Ordering::Relaxed)).map(Duration::from_micros);
        async move {
            let (group, way) = reached?;
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

/// One replica, and what of it survives a crash.
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

    /// A group founded by its first `members`.
    async fn founded(replicas: u64, members: u64) -> TestGroup {
        let house = TestGroup::new(replicas);
        let all: Vec<_> = (1..=members).map(|number| (replica(number), NodeId(number))).collect();
        house.start(replica(1), Bootstrap::Now(all)).await;
        for number in 2..=members {
            house.start(replica(number), Bootstrap::Joining).await;
        }
        house
    }

    async fn start(&self, id: ReplicaId, founding: Bootstrap) {
        let place = &self.places[&id];
        let log = open_log(&place.dir.path().join("log"));
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
        self.wait("a leader", |house| {
            let cut = house.wire.cut.lock().clone();
            let running = house.wire.running.read();
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

    /// Writes where the group is led, again and again until it is surely written. No two texts are the same.
    async fn write(&self, text: &str) {
        let until = Instant::now() + SETTLED_WITHIN;
        loop {
            let leader = self.leader().await;
            match self.group(leader).write(Bytes::copy_from_slice(text.as_bytes())).await {
                Ok(_) => return,
                Err(WriteFailure::NotWritten(_)) if Instant::now() < until => {}
                // On a machine that is busy a lead may be lost at any time.
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
            self.wait(&format!("{count} commands at {id}"), |house| (house.commands(id).len() >= count).then_some(()))
                .await;
        }
    }
}

fn voters(group: &Group) -> BTreeSet<ReplicaId> {
    group.status().members.iter().filter(|member| member.voter).map(|member| member.replica).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_is_on_all_and_any_of_them_reads_it() {
    let house = TestGroup::founded(3, 3).await;
    for number in 0..20 {
        house.write(&format!("w{number}")).await;
        for id in house.places.keys() {
            house.group(*id).fence().await.expect("a fence passes anywhere");
            assert_eq!(house.commands(*id).len(), number + 1, "after a fence replica {id} has what was acknowledged");
        }
    }
    house.everywhere(20).await;
    assert!(house.fatal.lock().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_neither_writes_nor_confirms_and_the_others_go_on() {
    let house = TestGroup::founded(3, 3).await;
    house.write("before").await;
    let old = house.leader().await;
    house.wire.cut.lock().insert(old);
    let alone = house.group(old);
    let lost = tokio::spawn(async move { alone.write(Bytes::from_static(b"lost")).await });
    let asked = house.group(old);
    let fence = tokio::spawn(async move { asked.fence().await });
    house.write("after").await;
    let new = house.leader().await;
    assert!(fence.await.expect("ends").is_err(), "a leader without a majority confirms nothing");
    house.wire.cut.lock().clear();
    assert!(matches!(lost.await.expect("ends"), Err(WriteFailure::Unknown { .. } | WriteFailure::NotWritten(_))));
    // Until it hears of the new one, the old leader takes writes whose outcome is then unknown.
    house.wait("the old leader's fall", |house| (house.group(old).status().leader == Some(new)).then_some(())).await;
    house.write("healed").await;
    house.everywhere(3).await;
    for id in house.places.keys() {
        house.group(*id).fence().await.expect("passes");
        assert_eq!(house.commands(*id), ["before", "after", "healed"].map(|text| Bytes::from_static(text.as_bytes())));
    }
}

/// openraft learned this by a response that ended the replicating task, and stopped if it then had a snapshot for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_steps_down_that_hears_of_another_only_by_answers() {
    let house = TestGroup::founded(3, 3).await;
    house.write("before").await;
    let old = house.leader().await;
    house.wire.cut.lock().insert(old);
    house.write("after").await;
    house.wire.deaf.lock().insert(old);
    house.wire.cut.lock().clear();
    house.wait("the old leader's fall", |house| (!house.group(old).leads()).then_some(())).await;
    house.wire.deaf.lock().clear();
    house.write("healed").await;
    house.everywhere(3).await;
    assert_eq!(house.commands(old), ["before", "after", "healed"].map(|text| Bytes::from_static(text.as_bytes())));
    assert!(house.fatal.lock().is_empty(), "{:?}", house.fatal.lock());
}

/// A group of three of which one was away for 200 writes, whose entries are gone.
async fn house_that_went_on_without_one() -> (TestGroup, ReplicaId) {
    let house = TestGroup::founded(3, 3).await;
    house.write("first").await;
    let leader = house.leader().await;
    let away = *house.places.keys().find(|id| **id != leader).expect("another");
    house.crash(away).await;
    for number in 0..200 {
        house.write(&format!("w{number}")).await;
    }
    // All that are left: any of them may come to lead.
    house.everywhere(201).await;
    let left: Vec<ReplicaId> = house.wire.running.read().keys().copied().collect();
    for id in left {
        house.group(id).seal().await.expect("seals");
        house.group(id).purge(LogRetention::Nothing).await.expect("purges");
        let purged = |house: &TestGroup| house.group(id).status().purged.filter(|index| *index > 100).map(drop);
        house.wait("a purge", purged).await;
    }
    (house, away)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_was_away_too_long_is_given_a_snapshot() {
    let (house, away) = house_that_went_on_without_one().await;
    house.start(away, Bootstrap::Joining).await;
    house.everywhere(201).await;
    // What is replayed is not sealed. The status may tell a moment later.
    house.wait("an installed snapshot", |house| house.group(away).status().sealed.map(drop)).await;
    house.write("last").await;
    house.everywhere(202).await;
    assert!(house.fatal.lock().is_empty(), "{:?}", house.fatal.lock());
}

/// It was installed unread, which ended the node; at its next start it was offered the same, and so on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_snapshot_is_refused_and_said_to_its_sender_and_nothing_ends() {
    let (house, away) = house_that_went_on_without_one().await;
    house.wire.spoils.store(true, Ordering::Relaxed);
    house.start(away, Bootstrap::Joining).await;
    let refused = |house: &TestGroup| (house.wire.refused_as_damaged.load(Ordering::Relaxed) > 0).then_some(());
    house.wait("a refusal", refused).await;
    assert!(house.fatal.lock().is_empty(), "{:?}", house.fatal.lock());
    assert!(house.commands(away).len() <= 1, "nothing of it was taken");
    house.write("meanwhile").await;
    house.wire.spoils.store(false, Ordering::Relaxed);
    house.everywhere(202).await;
    let refused = house.wire.refused_as_damaged.load(Ordering::Relaxed);
    assert!(refused <= 4, "what is of no use is not fetched over and over: {refused}");
    assert!(house.fatal.lock().is_empty(), "{:?}", house.fatal.lock());
}

/// Regression: entries that did not arrive within one heartbeat were sent again whole, for ever, and without heartbeats
/// meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_entry_passes_a_slow_link_and_its_leader_stays() {
    let house = TestGroup::founded(3, 3).await;
    house.write("before").await;
    let (leader, term) = (house.leader().await, house.group(house.leader().await).status().term);
    for (megabits, entries) in [(50, 1), (8, 2)] {
        house.wire.rate.store(megabits * 1_000_000 / 8, Ordering::Relaxed);
        let began = Instant::now();
        for number in 0..entries {
            house.write(&format!("{megabits} {number}{}", "x".repeat(1_000_000))).await;
        }
        eprintln!("{entries} entries of 1 MB over {megabits} Mbit/s: {:?}", began.elapsed());
    }
    house.everywhere(4).await;
    assert_eq!((house.leader().await, house.group(leader).status().term), (leader, term), "nobody missed a heartbeat");
    assert!(house.fatal.lock().is_empty(), "{:?}", house.fatal.lock());
}

/// Regression: the state was at the snapshot and the log on the disk before it. The membership of one was written to a
/// position that is never read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_ended_right_after_a_snapshot_came_can_be_made_a_group_of_its_own() {
    let house = TestGroup::founded(3, 3).await;
    house.write("first").await;
    let leader = house.leader().await;
    let left = *house.places.keys().find(|id| **id != leader).expect("another");
    house.crash(left).await;
    for number in 0..20 {
        house.write(&format!("w{number}")).await;
    }
    let leader = house.leader().await;
    house.group(leader).seal().await.expect("seals");
    let snapshot = house.places[&leader].sealed.lock().clone();
    for id in house.places.keys().copied().filter(|id| *id != left) {
        house.crash(id).await;
    }
    *house.places[&left].sealed.lock() = snapshot;
    let sealed = MemoryMachine::open(Arc::clone(&house.places[&left].sealed)).sealed().position;
    let log = open_log(&house.places[&left].dir.path().join("log"));
    let before = log.group(GROUP).state().last.map(|(index, _)| index);
    assert!(before < sealed.map(|sealed| sealed.index), "{before:?} {sealed:?}");
    for _ in 0..2 {
        let forced = ForcedRecovery::plan(log.group(GROUP), left, NodeId(left.0), sealed).expect("a plan");
        forced.write().await.expect("a membership is written");
    }
    tokio::task::spawn_blocking(move || log.shutdown()).await.expect("ends").expect("closes");
    house.start(left, Bootstrap::Before).await;
    house.write("alone").await;
    assert_eq!(house.commands(left).len(), 22);
    assert_eq!(voters(&house.group(left)), [left].into());
    assert!(house.fatal.lock().is_empty(), "{:?}", house.fatal.lock());
}

/// Regression: its position in the log is inside the snapshot, so it is never committed or dropped. Its waiters kept
/// the group from its next lead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_entry_a_snapshot_takes_the_place_of_is_answered() {
    let house = TestGroup::founded(3, 3).await;
    house.write("before").await;
    let old = house.leader().await;
    house.wire.cut.lock().insert(old);
    let alone = house.group(old);
    let lost = tokio::spawn(async move { alone.write(Bytes::from_static(b"lost")).await });
    for number in 0..20 {
        house.write(&format!("w{number}")).await;
    }
    let others: Vec<ReplicaId> = house.places.keys().copied().filter(|id| *id != old).collect();
    for id in others {
        house.wait("all writes", |house| (house.commands(id).len() == 21).then_some(())).await;
        let group = house.group(id);
        let written = group.status().applied;
        group.seal().await.expect("seals");
        group.purge(LogRetention::Nothing).await.expect("purges");
        house.wait("a purge", |_| group.status().purged.filter(|index| Some(*index) >= written).map(drop)).await;
    }
    house.wire.cut.lock().clear();
    let answer = tokio::time::timeout(SETTLED_WITHIN, lost).await.expect("an answer").expect("ends");
    assert!(matches!(answer, Err(WriteFailure::Unknown { .. })), "{answer:?}");
    house.write("healed").await;
    house.wait("the snapshot and what followed", |house| (house.commands(old).len() == 22).then_some(())).await;
    assert!(house.group(old).status().sealed.is_some(), "it was installed and not replayed");
    assert!(house.fatal.lock().is_empty(), "{:?}", house.fatal.lock());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_come_and_go_one_change_at_a_time() {
    let house = TestGroup::founded(4, 1).await;
    house.write("alone").await;
    let first = house.group(replica(1));
    for number in 2..=4 {
        house.start(replica(number), Bootstrap::Joining).await;
        first.add_learner(replica(number), NodeId(number)).await.expect("a learner is added");
    }
    house.everywhere(1).await;
    first.set_voters([1, 2, 3].map(replica).into()).await.expect("three vote");
    house.write("three").await;
    assert_eq!(voters(&first), [1, 2, 3].map(replica).into());
    house.wire.cut.lock().insert(replica(3));
    first.set_voters([1, 2, 4].map(replica).into()).await.expect("the one that is gone is replaced");
    house.wire.cut.lock().clear();
    house.write("replaced").await;
    assert_eq!(voters(&first), [1, 2, 4].map(replica).into());
    assert!(first.status().members.iter().all(|member| member.replica != replica(3)), "it is no member any more");
    for id in [1, 2, 4].map(replica) {
        house.wait("the last write", |house| (house.commands(id).len() == 3).then_some(())).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lead_is_handed_over_and_writes_that_waited_are_refused_unwritten() {
    let house = TestGroup::founded(3, 3).await;
    house.write("before").await;
    let from = house.leader().await;
    let to = *house.places.keys().find(|id| **id != from).expect("another");
    let (giving, writing) = (house.group(from), house.group(from));
    let began = Instant::now();
    let handed = tokio::spawn(async move { giving.hand_over(to).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let held = writing.write(Bytes::from_static(b"held")).await;
    handed.await.expect("ends").expect("the lead is handed over");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(matches!(held, Err(WriteFailure::NotWritten(_))), "{held:?}");
    assert!(house.group(to).leads() && !house.group(from).leads());
    house.write("after").await;
    house.everywhere(2).await;
    assert_eq!(house.commands(to), [Bytes::from_static(b"before"), Bytes::from_static(b"after")]);
}

/// Regression: a leader that continued after its restart confirmed reads up to its remembered committed index, which is
/// less than what it had acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_restarts_leads_only_if_it_is_elected_anew() {
    for members in [1, 3] {
        let house = TestGroup::founded(members, members).await;
        house.write("acknowledged").await;
        let old = house.leader().await;
        let term = house.group(old).status().term;
        for id in house.places.keys() {
            house.crash(*id).await;
        }
        for id in house.places.keys() {
            house.start(*id, Bootstrap::Before).await;
        }
        house.group(old).fence().await.expect("a fence passes once there is a leader");
        assert_eq!(house.commands(old), [Bytes::from_static(b"acknowledged")]);
        assert!(house.group(house.leader().await).status().term > term, "whoever leads was elected since");
        assert!(house.fatal.lock().is_empty(), "{:?}", house.fatal.lock());
    }
}

/// The old leader passed questions of reads on to the new one, whose own round waited for the old one's answer: both stood
/// still until their questions timed out, two seconds, and with them every read of the group.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_at_the_next_leader_go_on_while_the_lead_is_handed_to_it() {
    const ROUNDS: usize = 4;
    let house = TestGroup::founded(3, 3).await;
    house.write("before").await;
    for round in 0..ROUNDS {
        let from = house.leader().await;
        let to = *house.places.keys().find(|id| **id != from).expect("another");
        let reading: Vec<_> = house.places.keys().map(|id| house.group(*id)).collect();
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
        house.group(from).hand_over(to).await.expect("the lead is handed over");
        tokio::time::sleep(Duration::from_millis(100)).await;
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        for reader in readers {
            assert!(reader.await.expect("ends") > 0, "round {round}");
        }
    }
}
