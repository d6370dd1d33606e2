//! Tests of a replica whose log does not respond, as on a disk that hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use assay_storage_disk::RealDisk;
use assay_storage_log::simulated::{self, SimulatedFiles};
use assay_storage_model::{GroupId, NodeId, ReplicaId};
use bytes::Bytes;
use futures::future::join_all;
use openraft::testing::log_id;
use openraft::{EntryPayload, Vote};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use crate::apply::machine::memory::MemoryMachine;
use crate::network::wire::{AppendOf, AppendedOf, decode_appended, encode_append};
use crate::types::{EntryBytes, EntryOf};
use crate::{
    Admission, Bootstrap, CacheBudget, Group, GroupConfig, IncomingDir, MessageKind, NoLargeWrites, NoPeers, NodeParts,
    OnFatal, ReceiveError, SealThreads, Throttle, Timing, Way, Work,
};

const GROUP: GroupId = GroupId(16);
const WAY: Way = Way { group: GROUP, from: ReplicaId(1), to: ReplicaId(9), node: NodeId(9) };
const ENTRY_BYTES: usize = 1 << 20;
/// Time limit of a leader in these tests.
const GIVES_UP_AFTER: Duration = Duration::from_millis(150);

/// Incoming message, counted while it is in use.
struct CountedMessage {
    bytes: Bytes,
    held: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for CountedMessage {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for CountedMessage {
    fn drop(&mut self) {
        self.held.fetch_sub(1, Ordering::SeqCst);
    }
}

fn held(bytes: &Bytes, held: &Arc<AtomicUsize>) -> Bytes {
    held.fetch_add(1, Ordering::SeqCst);
    Bytes::from_owner(CountedMessage { bytes: bytes.clone(), held: Arc::clone(held) })
}

async fn join(log: &assay_storage_log::Log, dir: &std::path::Path) -> Group {
    let node = NodeParts {
        cluster_name: "test".into(),
        timing: Timing::default(),
        runtime: Handle::current(),
        cache: CacheBudget::default(),
        seals: SealThreads::start(()).expect("a thread"),
        admission: Arc::new(Admission::default()),
        counters: Arc::default(),
        fatal: OnFatal::call(|why| panic!("{why}")),
        peers: Arc::new(NoPeers),
        throttle: Arc::new(Throttle::new(0)),
        work: Work::Threads,
    };
    let config = GroupConfig {
        group: GROUP,
        replica: ReplicaId(1),
        founding: Bootstrap::Joining,
        log: log.group(GROUP),
        machine: Arc::new(MemoryMachine::default()),
        large: Arc::new(NoLargeWrites),
        incoming: IncomingDir { disk: Arc::new(RealDisk), dir: dir.join("incoming") },
    };
    Group::start(config, node).await.expect("a replica starts")
}

/// Regression: the leader gives up each append and sends it again while the log of this replica is one sync behind.
/// Each of them stayed in the queue of consensus, hundreds of megabytes a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_do_not_pile_up_behind_a_log_that_stalls() {
    let dir = tempfile::tempdir().expect("a directory for the test");
    let (log, mut rounds) = simulated::open(&SimulatedFiles::default(), Arc::new(|| {}));
    let group = join(&log, dir.path()).await;
    let payload = EntryPayload::Normal(EntryBytes(Bytes::from(vec![7; ENTRY_BYTES])));
    let entries = vec![EntryOf { log_id: log_id(1, 9, 0), payload }];
    let append = AppendOf { vote: Vote::new_committed(1, 9), prev_log_id: None, entries, leader_commit: None };
    let heartbeat = AppendOf { entries: Vec::new(), ..append.clone() };
    let (append, heartbeat) = (encode_append(&append), encode_append(&heartbeat));
    for (message, most) in [(&append, 1), (&heartbeat, 8)] {
        let all = Arc::new(AtomicUsize::new(0));
        let sent =
            (0..50).map(|_| timeout(GIVES_UP_AFTER, group.receive(WAY, MessageKind::Append, held(message, &all))));
        let answers = join_all(sent).await;
        let busy = answers.iter().filter(|answer| matches!(answer, Ok(Err(ReceiveError::Busy(_))))).count();
        assert_eq!((busy, all.load(Ordering::SeqCst) <= most), (50 - most, true), "{answers:?}");
    }
    let works = tokio::spawn(async move {
        loop {
            rounds.write();
            rounds.sync();
            sleep(Duration::from_millis(1)).await;
        }
    });
    let answer = group.receive(WAY, MessageKind::Append, append).await.expect("it goes on when its log does");
    assert_eq!(decode_appended(&answer), Ok(AppendedOf::Success));
    group.shutdown().await;
    works.abort();
}
