//! Groups of one member.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use assay_storage_disk::RealDisk;
use assay_storage_log::Log;
use assay_storage_model::command::Outcome;
use assay_storage_model::{GroupId, NodeId, NotWritten, ReplicaId, WriteFailure, WriteOutcome, Xact};
use bytes::Bytes;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::open_log;
use crate::apply::machine::memory::{MemoryMachine, Sealed};
use crate::{
    Admission, AdmissionState, Bootstrap, CacheBudget, Group, GroupConfig, IncomingDir, LargeError, LargeWrite,
    LargeWrites, NoPeers, NodeParts, OnFatal, SealThreads, StartError, Throttle, Timing, WRITE_WAIT_MAX, Work,
};

const GROUP: GroupId = GroupId(16);

/// Blob store that records its calls instead of keeping blobs.
#[derive(Debug, Default)]
struct Large {
    put: Mutex<Vec<Bytes>>,
    named: Mutex<BTreeSet<u64>>,
}

impl LargeWrites for Large {
    fn put(&self, framed: &Bytes) -> Result<LargeWrite, LargeError> {
        self.put.lock().push(framed.clone());
        Ok(LargeWrite { hash: [7; 32], length: framed.len() as u64, hold: Box::new(()) })
    }

    fn spread(&self, _: [u8; 32], _: u64, _: Vec<NodeId>) -> BoxFuture<'static, Result<(), LargeError>> {
        panic!("a group of one has nobody to spread to");
    }

    fn ensure(&self, _: [u8; 32], _: u64, _: Vec<NodeId>) -> BoxFuture<'static, Result<(), LargeError>> {
        Box::pin(async { Ok(()) })
    }

    fn expect(&self, _: [u8; 32], _: u64, _: Vec<NodeId>) -> BoxFuture<'static, Result<(), LargeError>> {
        panic!("a group of one is sent no entries");
    }

    fn named(&self, _group: GroupId, index: u64, hash: [u8; 32]) {
        assert_eq!(hash, [7; 32]);
        self.named.lock().insert(index);
    }

    fn purged(&self, _group: GroupId, up_to: u64) {
        self.named.lock().retain(|index| *index > up_to);
    }

    fn truncated(&self, _group: GroupId, from: u64) {
        self.named.lock().retain(|index| *index < from);
    }
}

/// Group of one member, with the parts of it that survive a crash.
struct GroupHarness {
    dir: TempDir,
    sealed: Sealed,
    admission: Arc<Admission>,
    fatal: Arc<Mutex<Vec<String>>>,
    large: Arc<Large>,
}

impl GroupHarness {
    fn new() -> GroupHarness {
        let dir = tempfile::tempdir().expect("a directory for the test");
        GroupHarness {
            dir,
            sealed: Sealed::default(),
            admission: Arc::default(),
            fatal: Arc::default(),
            large: Arc::default(),
        }
    }

    async fn start(&self, founding: Bootstrap) -> Result<Running, StartError> {
        let log = open_log(self.dir.path());
        let machine = Arc::new(MemoryMachine::open(Arc::clone(&self.sealed)));
        let seals = SealThreads::start(()).expect("a thread");
        let heard = Arc::clone(&self.fatal);
        let node = NodeParts {
            cluster_name: "test".into(),
            timing: Timing::default(),
            runtime: Handle::current(),
            cache: CacheBudget::default(),
            seals,
            admission: Arc::clone(&self.admission),
            counters: Arc::default(),
            fatal: OnFatal::call(move |why| heard.lock().push(why)),
            peers: Arc::new(NoPeers),
            throttle: Arc::new(Throttle::new(0)),
            work: Work::Threads,
        };
        let counters = Arc::clone(&node.counters);
        let config = GroupConfig {
            group: GROUP,
            replica: ReplicaId(5),
            founding,
            log: log.group(GROUP),
            machine: Arc::clone(&machine) as _,
            large: Arc::clone(&self.large) as _,
            incoming: IncomingDir { disk: Arc::new(RealDisk), dir: self.dir.path().join("incoming") },
        };
        let group = Group::start(config, node).await?;
        group.lead().await.expect("a group of one leads");
        Ok(Running { group, machine, log, counters })
    }

    async fn found(&self) -> Running {
        self.start(Bootstrap::Now(vec![(ReplicaId(5), NodeId(1))])).await.expect("starts")
    }

    async fn again(&self) -> Running {
        self.start(Bootstrap::Before).await.expect("starts again")
    }
}

struct Running {
    group: Group,
    machine: Arc<MemoryMachine>,
    log: Log,
    counters: Arc<crate::Counters>,
}

impl Running {
    /// Simulates a crash: nothing is sealed, and memory is lost.
    async fn stop(self) {
        self.group.shutdown().await;
        let thread = self.group.apply_thread();
        drop(self.group);
        tokio::task::spawn_blocking(move || thread.join()).await.expect("joins");
        drop(self.log);
    }

    async fn write(&self, text: &str) -> WriteOutcome {
        self.group.write(Bytes::copy_from_slice(text.as_bytes())).await
    }

    fn commands(&self) -> Vec<String> {
        self.machine.commands().iter().map(|command| String::from_utf8_lossy(command).into_owned()).collect()
    }
}

fn written(number: u64) -> WriteOutcome {
    Ok(Outcome::Written { xact: Xact(number) })
}

async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..500 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not within five seconds: {what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_is_there_after_a_start_without_a_seal() {
    let harness = GroupHarness::new();
    let running = harness.found().await;
    for number in 1..=20 {
        assert_eq!(running.write(&format!("row {number}")).await, written(number));
    }
    let before = running.commands();
    running.stop().await;
    let running = harness.again().await;
    assert_eq!(running.commands(), before);
    assert_eq!(running.write("row 21").await, written(21));
    running.stop().await;
    assert_eq!(*harness.fatal.lock(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seal_lets_the_log_go_and_a_start_goes_on_behind_it() {
    let harness = GroupHarness::new();
    let running = harness.found().await;
    for number in 1..=5 {
        running.write(&format!("row {number}")).await.expect("written");
    }
    let applied = running.group.seal().await.expect("sealed");
    let log = running.log.group(GROUP);
    let position = applied.position.expect("something was applied");
    eventually("the log is purged", || log.state().purged.is_some_and(|purged| purged.index == position.index)).await;
    drop(log);
    running.write("row 6").await.expect("written");
    assert_eq!(running.group.unsealed_entries(), 1);
    assert_eq!(running.group.seal().await.expect("sealed again").position.map(|p| p.index), Some(position.index + 1));
    running.write("row 7").await.expect("written");
    running.stop().await;
    let running = harness.again().await;
    assert_eq!(running.commands().len(), 7);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_share_entries_and_keep_their_order() {
    let harness = GroupHarness::new();
    let running = harness.found().await;
    let pending: Vec<_> = (0..500)
        .map(|number| running.group.submit(Bytes::from(format!("{number:04}")), soon()).expect("taken in"))
        .collect();
    for (number, pending) in pending.into_iter().enumerate() {
        assert_eq!(pending.outcome().await, written(number as u64 + 1));
    }
    let found = running.commands();
    assert!(found.is_sorted() && found.len() == 500);
    assert!(running.counters.read().entries < 100, "{:?}", running.counters.read());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_sees_every_write_acknowledged_before_it() {
    let harness = GroupHarness::new();
    let running = harness.found().await;
    for number in 1..50 {
        running.write("row").await.expect("written");
        running.group.fence().await.expect("a fence");
        assert_eq!(running.machine.commands().len(), number);
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_write_travels_as_a_blob_until_its_entry_is_purged() {
    let harness = GroupHarness::new();
    let running = harness.found().await;
    running.write("small").await.expect("written");
    let large = Bytes::from(vec![b'x'; 600 << 10]);
    running.group.write(large.clone()).await.expect("written");
    running.group.propose(vec![large.clone()]).await.expect("written");
    assert_eq!(harness.large.put.lock()[0].len(), large.len() + 9);
    assert_eq!(harness.large.named.lock().len(), 2);
    assert_eq!(running.counters.read().large, 2);
    running.stop().await;

    harness.large.named.lock().clear();
    let running = harness.again().await;
    assert_eq!(harness.large.named.lock().len(), 2, "found again while the log was applied");
    running.group.seal().await.expect("sealed");
    eventually("nobody names the blobs", || harness.large.named.lock().is_empty()).await;
    running.stop().await;
}

fn soon() -> Instant {
    Instant::now() + WRITE_WAIT_MAX
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_says_busy_and_nothing_of_it_was_written() {
    let harness = GroupHarness::new();
    let running = harness.found().await;
    harness.admission.set_state(AdmissionState::Wait);
    let big = Bytes::from(vec![b'x'; 400 << 10]);
    let mut pending = Vec::new();
    let refused = loop {
        match running.group.submit(big.clone(), soon()) {
            Ok(taken) => pending.push(taken),
            Err(why) => break why,
        }
    };
    assert!(matches!(refused, NotWritten::Busy(_)), "{refused}");
    assert!(running.machine.commands().is_empty());
    harness.admission.set_state(AdmissionState::Open);
    let taken = pending.len();
    for pending in pending {
        pending.outcome().await.expect("written");
    }
    assert_eq!(running.machine.commands().len(), taken);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_memory_is_busy_at_its_own_deadline_and_is_not_written() {
    let harness = GroupHarness::new();
    let running = harness.found().await;
    harness.admission.set_state(AdmissionState::Wait);
    let submit = |text: &'static str, wait| {
        let until = Instant::now() + Duration::from_millis(wait);
        running.group.submit(Bytes::from_static(text.as_bytes()), until).expect("taken in")
    };
    let (first, late, last) = (submit("first", 60_000), submit("late", 200), submit("last", 60_000));
    let refused = late.outcome().await;
    assert!(matches!(refused, Err(WriteFailure::NotWritten(NotWritten::Busy(_)))), "{refused:?}");
    harness.admission.set_state(AdmissionState::Open);
    first.outcome().await.expect("written");
    last.outcome().await.expect("written");
    assert_eq!(running.machine.commands().len(), 2);
    running.stop().await;
}

/// Regression: this was refused at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_waits_for_room_in_a_full_queue() {
    let harness = GroupHarness::new();
    let running = harness.found().await;
    harness.admission.set_state(AdmissionState::Wait);
    let big = Bytes::from(vec![b'x'; 400 << 10]);
    let mut pending = Vec::new();
    while let Ok(taken) = running.group.submit(big.clone(), soon()) {
        pending.push(taken);
    }
    let group = running.group.clone();
    let waits = tokio::spawn(async move { group.write(Bytes::from_static(b"row")).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!waits.is_finished());
    harness.admission.set_state(AdmissionState::Open);
    waits.await.expect("ends well").expect("written");
    for pending in pending {
        pending.outcome().await.expect("written");
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_and_an_emptied_one_takes_again() {
    let harness = GroupHarness::new();
    let running = harness.found().await;
    harness.admission.set_state(AdmissionState::NoSpace("1 of 100 bytes is free".into()));
    let refused = running.write("row").await;
    assert!(matches!(refused, Err(WriteFailure::NotWritten(NotWritten::NoSpace(_)))), "{refused:?}");
    harness.admission.set_state(AdmissionState::Open);
    assert_eq!(running.write("row").await, written(1));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_machine_is_fatal_and_its_write_is_unknown() {
    for command in ["damage", "panic"] {
        let harness = GroupHarness::new();
        let running = harness.found().await;
        let outcome = running.write(command).await;
        assert!(matches!(outcome, Err(WriteFailure::Unknown { .. })), "{outcome:?}");
        assert_eq!(harness.fatal.lock().len(), 1, "{command}");
        assert!(running.write("after").await.is_err());
        assert!(running.group.fence().await.is_err());
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_log_is_refused() {
    let mut harness = GroupHarness::new();
    let running = harness.found().await;
    running.write("row").await.expect("written");
    running.group.seal().await.expect("sealed");
    running.stop().await;
    let whole = std::mem::replace(&mut harness.dir, tempfile::tempdir().expect("a directory"));
    let refused = harness.start(Bootstrap::Before).await.map(|_| ());
    assert!(matches!(refused, Err(StartError::LogGone(GROUP))), "{refused:?}");
    harness.dir = whole;
    harness.sealed.lock().applied.position.as_mut().expect("sealed").index += 10;
    let refused = harness.start(Bootstrap::Before).await.map(|_| ());
    assert!(matches!(refused, Err(StartError::LogBehind { .. })), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_shutdown_nothing_is_taken_and_nobody_waits() {
    let harness = GroupHarness::new();
    let running = harness.found().await;
    let last = running.group.submit(Bytes::from_static(b"last"), soon()).expect("taken in");
    running.group.shutdown().await;
    assert_eq!(last.outcome().await, written(1), "what was taken in is answered");
    assert!(matches!(
        running.group.submit(Bytes::from_static(b"late"), soon()),
        Err(NotWritten::Closing | NotWritten::NotLeader)
    ));
    assert!(running.group.fence().await.is_err());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_does_not_wait_for_memory() {
    let harness = GroupHarness::new();
    let running = harness.found().await;
    harness.admission.set_state(AdmissionState::Wait);
    let waiting = running.group.submit(Bytes::from_static(b"row"), soon()).expect("taken in");
    running.group.shutdown().await;
    assert_eq!(waiting.outcome().await, Err(NotWritten::Closing.into()));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_readers_share_rounds() {
    let harness = GroupHarness::new();
    let running = harness.found().await;
    running.write("row").await.expect("written");
    let asked: Vec<_> = (0..1_000)
        .map(|_| {
            let group = running.group.clone();
            tokio::spawn(async move { group.fence().await })
        })
        .collect();
    for answer in asked {
        answer.await.expect("asks").expect("a fence");
    }
    let counts = running.counters.read();
    assert!(counts.fences > 1_000 && counts.fence_rounds < counts.fences, "{counts:?}");
    running.stop().await;
}
