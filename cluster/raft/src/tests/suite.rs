//! openraft's storage suite, over a log in a directory and a machine in memory.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use assay_storage_log::Log;
use assay_storage_model::GroupId;
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
use crate::seal::SealThread;
use crate::state_machine::StateMachine;
use crate::types::{Consensus, StorageErrorOf};

/// Makes an empty store in a directory of its own.
struct Stores;

type Guard = (TempDir, Log);

impl StoreBuilder<Consensus, LogStore, StateMachine, Guard> for Stores {
    async fn build(&self) -> Result<(Guard, LogStore, StateMachine), StorageErrorOf> {
        let dir = tempfile::tempdir().expect("a directory for the test");
        let log = open_log(dir.path());
        let fatal = OnFatal::call(|why| panic!("the suite broke the store: {why}"));
        let group = GroupId(16);
        let journal = Journal::new(log.group(group), fatal.clone());
        let store = LogStore::open(group, journal, Arc::new(NoLargeWrites), CacheBudget::default());
        let store = store.await.expect("an empty log opens");
        let machine: Arc<dyn Machine> = Arc::new(MemoryMachine::default());
        let applied = Arc::new(watch::Sender::new(0));
        let (applier, _) = Applier::start(group, Arc::clone(&machine), Arc::clone(&applied), fatal.clone()).expect("a thread");
        let (seals, _) = SealThread::start().expect("a thread");
        let (seals_ended, serving) = (Arc::default(), Arc::new(AtomicBool::new(true)));
        let machine = StateMachine { group, machine, applier, applied, seals, seals_ended, serving, fatal };
        Ok(((dir, log), store, machine))
    }
}

#[test]
fn openraft_finds_no_fault_with_our_store() {
    Suite::test_all(Stores).expect("the suite of openraft passes");
}
