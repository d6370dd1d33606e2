//! openraft's storage suite, over a log in a directory and, once each, a machine in memory and a real shard. The
//! catalog stands aside: the suite applies entries with gaps between them, which a catalog takes for damage.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use assay_storage_blobs::Blobs;
use assay_storage_disk::{RealDisk, SharedDisk};
use assay_storage_log::Log;
use assay_storage_model::GroupId;
use assay_storage_shard::{KvKind, Shard, ShardConfig};
use openraft::testing::{StoreBuilder, Suite};
use tempfile::TempDir;
use tokio::sync::watch;

use super::open_log;
use crate::apply::Applier;
use crate::cache::CacheBudget;
use crate::fatal::OnFatal;
use crate::journal::Journal;
use crate::large::NoLargeWrites;
use crate::log_store::LogStore;
use crate::machine::Machine;
use crate::machine::memory::MemoryMachine;
use crate::seal::SealThreads;
use crate::state_machine::StateMachine;
use crate::types::{Consensus, StorageErrorOf};

/// Makes empty stores, each in a directory of its own.
struct Stores {
    machine: fn(&Path) -> Arc<dyn Machine>,
}

type Guard = (TempDir, Log);

impl StoreBuilder<Consensus, LogStore, StateMachine, Guard> for Stores {
    async fn build(&self) -> Result<(Guard, LogStore, StateMachine), StorageErrorOf> {
        let dir = tempfile::tempdir().expect("a directory for the test");
        let log = open_log(&dir.path().join("log"));
        let fatal = OnFatal::call(|why| panic!("the suite broke the store: {why}"));
        let group = GroupId(16);
        let journal = Journal::new(log.group(group), fatal.clone());
        let store = LogStore::open(group, journal, Arc::new(NoLargeWrites), CacheBudget::default());
        let store = store.await.expect("an empty log opens");
        let machine = (self.machine)(dir.path());
        let applied = Arc::new(watch::Sender::new(0));
        let started = Applier::start(group, Arc::clone(&machine), Arc::clone(&applied), fatal.clone());
        let (applier, _) = started.expect("a thread");
        let seals = SealThreads::start(()).expect("a thread");
        let (seals_ended, serving) = (Arc::default(), Arc::new(AtomicBool::new(true)));
        let machine = StateMachine { group, machine, applier, applied, seals, seals_ended, serving, fatal };
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
