//! openraft's storage suite, over a log in a directory, with a machine in memory and with a real shard.
//!
//! The catalog is left out, because the suite applies entries with gaps, which a catalog treats as damage.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use assay_storage_blobs::Blobs;
use assay_storage_disk::{RealDisk, SharedDisk};
use assay_storage_log::Log;
use assay_storage_model::{GroupId, LogPosition, ReplicaId};
use assay_storage_shard::{KvKind, Shard, ShardConfig};
use bytes::Bytes;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine};
use openraft::testing::{StoreBuilder, Suite, blank_ent, log_id};
use openraft::{EntryPayload, RaftLogReader, RaftSnapshotBuilder};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::open_log;
use crate::apply::apply_thread::{Applier, ApplyParts};
use crate::apply::backlog::Lag;
use crate::apply::machine::Machine;
use crate::apply::machine::memory::MemoryMachine;
use crate::apply::seal::SealThreads;
use crate::apply::state_machine::StateMachine;
use crate::error::SealError;
use crate::fatal::OnFatal;
use crate::log::entry_cache::CacheBudget;
use crate::log::journal::Journal;
use crate::log::log_store::LogStore;
use crate::types::{Consensus, EntryBytes, EntryOf, StorageErrorOf};
use crate::work::Work;
use crate::write_path::large_writes::NoLargeWrites;

/// Builder of empty stores, each in its own directory.
struct Stores {
    machine: fn(&Path) -> Arc<dyn Machine>,
}

type Guard = (TempDir, Log);

impl StoreBuilder<Consensus, LogStore, StateMachine, Guard> for Stores {
    async fn build(&self) -> Result<(Guard, LogStore, StateMachine), StorageErrorOf> {
        let dir = tempfile::tempdir().expect("a directory for the test");
        let log = open_log(dir.path());
        let fatal = OnFatal::call(|why| panic!("the suite broke the store: {why}"));
        let (group, replica) = (GroupId(16), ReplicaId(1));
        let journal = Journal::new(log.group(group), Work::Threads, fatal.clone());
        let (whose, large) = ((group, replica), Arc::new(NoLargeWrites));
        let store = LogStore::open(whose, journal, large, None, CacheBudget::default(), Arc::default());
        let store = store.await.expect("an empty log opens");
        let machine = (self.machine)(dir.path());
        let applied = Arc::new(watch::Sender::new(0));
        let (applier, _) = Applier::start(ApplyParts {
            group,
            replica,
            machine: Arc::clone(&machine),
            large: Arc::new(NoLargeWrites),
            applied: Arc::clone(&applied),
            lag: Arc::default(),
            runtime: Handle::current(),
            work: Work::Threads,
            fatal: fatal.clone(),
        })
        .expect("a thread");
        let seals = SealThreads::start(()).expect("a thread");
        let (seals_ended, serving) = (Arc::default(), Arc::new(AtomicBool::new(true)));
        let work = Work::Threads;
        let machine =
            StateMachine { group, replica, machine, applier, applied, seals, seals_ended, work, serving, fatal };
        Ok(((dir, log), store, machine))
    }
}

fn in_memory(_dir: &Path) -> Arc<dyn Machine> {
    Arc::new(MemoryMachine::default())
}

fn a_shard(dir: &Path) -> Arc<dyn Machine> {
    let disk: SharedDisk = Arc::new(RealDisk);
    let blobs = Arc::new(Blobs::open(disk.clone(), &dir.join("blobs")).expect("blobs open"));
    let kv = KvKind::Sled { cache_bytes: 1 << 20 };
    Shard::open(ShardConfig { disk, dir: dir.join("shard"), blobs, kv }).expect("a shard opens")
}

#[test]
fn openraft_finds_no_fault_with_our_store() {
    Suite::test_all(Stores { machine: in_memory }).expect("the suite of openraft passes");
}

#[test]
fn openraft_finds_no_fault_with_our_store_over_a_shard() {
    Suite::test_all(Stores { machine: a_shard }).expect("the suite of openraft passes");
}

/// Regression: a node whose log diverged from another leader's requested the purged entry before the divergence. The
/// node ended, also at its next start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_is_behind_a_purge_can_be_taken_away() {
    let ((_dir, log), mut store, _machine) = Stores { machine: in_memory }.build().await.expect("a store");
    store.blocking_append((0..4).map(|index| blank_ent(1, 1, index))).await.expect("appends");
    store.purge(log_id(1, 1, 2)).await.expect("purges");
    store.truncate(log_id(1, 1, 3)).await.expect("truncates");
    let state = store.get_log_state().await.expect("a state");
    assert_eq!((state.last_purged_log_id, state.last_log_id), (Some(log_id(1, 1, 2)), Some(log_id(1, 1, 2))));
    store.blocking_append([blank_ent(2, 2, 3)]).await.expect("appends");
    assert_eq!(store.get_log_state().await.expect("a state").last_log_id, Some(log_id(2, 2, 3)));
    assert_eq!(log.group(GroupId(16)).state().last, Some((3, 2)));
}

/// Regression: a sender of an old term requested entries that had been purged meanwhile, and its node ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_too_late_for_what_was_purged_is_sent_nothing() {
    let (_log, mut store, _machine) = Stores { machine: in_memory }.build().await.expect("a store");
    store.blocking_append((0..4).map(|index| blank_ent(1, 1, index))).await.expect("appends");
    store.purge(log_id(1, 1, 2)).await.expect("purges");
    assert_eq!(store.limited_get_log_entries(1, 3).await.expect("reads"), []);
    assert_eq!(store.limited_get_log_entries(3, 4).await.expect("reads"), [blank_ent(1, 1, 3)]);
}

/// Regression: openraft purges while a snapshot is being installed. A crash then left a log that began behind the
/// state.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_disk_keeps_what_is_not_sealed_yet_and_gives_it_up_before_the_next_entry() {
    let dir = tempfile::tempdir().expect("a directory for the test");
    let (log, group) = (open_log(dir.path()), GroupId(16));
    let journal = Journal::new(log.group(group), Work::Threads, OnFatal::call(|why| panic!("{why}")));
    let (machine, large) = (Arc::new(MemoryMachine::default()), Arc::new(NoLargeWrites));
    let sealing = Some(Arc::clone(&machine) as Arc<dyn Machine>);
    let whose = (group, ReplicaId(1));
    let store = LogStore::open(whose, journal, large, sealing, CacheBudget::default(), Arc::default());
    let mut store = store.await.expect("an empty log opens");
    store.blocking_append((0..4).map(|index| blank_ent(1, 1, index))).await.expect("appends");
    store.purge(log_id(1, 1, 5)).await.expect("purges");
    let state = store.get_log_state().await.expect("a state");
    assert_eq!((state.last_purged_log_id, state.last_log_id), (Some(log_id(1, 1, 5)), Some(log_id(1, 1, 5))));
    assert_eq!((log.group(group).state().purged, log.group(group).state().last), (None, Some((3, 1))));
    let mut next = store.clone();
    let appending = tokio::spawn(async move { next.blocking_append([blank_ent(2, 2, 6)]).await });
    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    assert!(!appending.is_finished(), "it waits for the snapshot");
    for index in 0..6 {
        machine.apply_blank(LogPosition { term: 1, replica: 1, index }).expect("applies");
    }
    machine.seal().expect("seals");
    appending.await.expect("ends").expect("appends");
    let state = log.group(group).state();
    assert_eq!((state.purged.map(|purged| purged.index), state.last), (Some(5), Some((6, 2))));
    // Without a later entry, the purge follows a moment after the installation.
    store.purge(log_id(2, 2, 9)).await.expect("purges");
    machine.apply_blank(LogPosition { term: 2, replica: 2, index: 9 }).expect("applies");
    assert_eq!(log.group(group).state().purged.map(|purged| purged.index), Some(5));
    machine.seal().expect("seals");
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let state = log.group(group).state();
    assert_eq!((state.purged.map(|purged| purged.index), state.last), (Some(9), None));
    // After the log is closed, the purge must not run any more.
    store.purge(log_id(2, 2, 12)).await.expect("purges");
    store.close().await;
    machine.apply_blank(LogPosition { term: 2, replica: 2, index: 12 }).expect("applies");
    machine.seal().expect("seals");
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert_eq!(log.group(group).state().purged.map(|purged| purged.index), Some(9));
}

/// Regression: entries that are never applied were waited for. After 64 MiB of them a voter accepted nothing more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_that_leave_the_log_unapplied_no_longer_count_as_unapplied() {
    let dir = tempfile::tempdir().expect("a directory for the test");
    let (log, group, lag) = (open_log(dir.path()), GroupId(16), Arc::new(Lag::default()));
    let journal = Journal::new(log.group(group), Work::Threads, OnFatal::call(|why| panic!("{why}")));
    let (whose, large) = ((group, ReplicaId(1)), Arc::new(NoLargeWrites));
    let store = LogStore::open(whose, journal, large, None, CacheBudget::default(), Arc::clone(&lag));
    let mut store = store.await.expect("an empty log opens");
    let entry = |index| EntryOf {
        log_id: log_id(1, 1, index),
        payload: EntryPayload::Normal(EntryBytes(Bytes::from_static(b"0123456789"))),
    };
    store.blocking_append((0..10).map(entry)).await.expect("appends");
    assert_eq!(lag.bytes(), 100);
    store.truncate(log_id(1, 1, 6)).await.expect("truncates");
    assert_eq!(lag.bytes(), 60);
    store.purge(log_id(1, 1, 3)).await.expect("purges");
    assert_eq!(lag.bytes(), 20);
    store.purge(log_id(1, 1, 50)).await.expect("purges");
    assert_eq!(lag.bytes(), 0);
}

/// Consensus treats the result like a seal that changed nothing. An error would end the process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seal_that_is_asked_for_while_the_node_stops_is_no_failure() {
    let (_log, _store, mut machine) = Stores { machine: in_memory }.build().await.expect("a store");
    let mut ended = machine.seals_ended.subscribe();
    machine.seals.stop();
    let snapshot = machine.get_snapshot_builder().await.build_snapshot().await.expect("nothing has failed");
    assert_eq!(snapshot.meta.last_log_id, None, "nothing may be purged");
    assert!(matches!(ended.borrow_and_update().last, Some(Err(SealError::Stopped(_)))));
}
