//! Runs the conformance suite over every store, and random histories against a map.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use assay_storage_kv::suite::{self, Reopen};
use assay_storage_kv::{Batch, CommitFault, Entries, FaultyKv, Kv, KvError, MemoryKv, SledKv};
use parking_lot::Mutex;
use proptest::prelude::*;

const CACHE_BYTES: u64 = 1 << 20;

fn reopen_sled() -> Reopen {
    let root = tempfile::tempdir().unwrap();
    Box::new(move || Arc::new(SledKv::open(&root.path().join("kv"), CACHE_BYTES).unwrap()))
}

/// Every open is of what a power cut left of the store before.
fn reopen_memory() -> Reopen {
    let last = Mutex::new(Arc::new(MemoryKv::new()));
    Box::new(move || {
        let mut last = last.lock();
        let next = Arc::new(last.power_cut());
        *last = Arc::clone(&next);
        next
    })
}

#[test]
fn the_store_on_disk_keeps_the_promises() {
    suite::run(reopen_sled);
}

#[test]
fn the_twin_in_memory_keeps_the_promises() {
    suite::run(reopen_memory);
}

#[test]
fn a_faulty_store_without_faults_keeps_the_promises() {
    suite::run(|| {
        let inner = reopen_memory();
        Box::new(move || Arc::new(FaultyKv::new(inner(), None)))
    });
}

#[test]
fn a_failed_commit_is_whole_or_absent_and_the_last() {
    for (fault, expected) in [(CommitFault::BeforeApplying, 1), (CommitFault::AfterApplying, 2)] {
        let inner = Arc::new(MemoryKv::new());
        let kv = FaultyKv::new(Arc::clone(&inner) as Arc<dyn Kv>, Some((2, fault)));
        kv.commit(&suite::puts(&[(b"a", b"1")])).unwrap();
        assert!(matches!(kv.commit(&suite::puts(&[(b"b", b"2")])), Err(KvError::Io(_))));
        assert!(matches!(kv.commit(&suite::puts(&[(b"c", b"3")])), Err(KvError::Stopped)));
        assert_eq!(kv.commits(), 2);
        assert_eq!(inner.power_cut().entries(), expected);
    }
}

#[test]
fn a_check_reports_what_is_there() {
    let root = tempfile::tempdir().unwrap();
    assert!(matches!(SledKv::check(root.path()), Err(KvError::Io(_))), "nothing is made by a check");
    let kv = SledKv::open(root.path(), CACHE_BYTES).unwrap();
    kv.commit(&suite::puts(&[(b"a", b"12"), (b"bc", b"345")])).unwrap();
    assert!(matches!(SledKv::check(root.path()), Err(KvError::InUse { .. })));
    drop(kv);
    let report = SledKv::check(root.path()).unwrap();
    assert_eq!((report.entries, report.bytes, report.commits), (2, 8, 1));
}

#[test]
fn a_snapshot_that_sled_never_finished_does_no_harm() {
    let root = tempfile::tempdir().unwrap();
    for number in 0..3_u8 {
        let kv = SledKv::open(root.path(), CACHE_BYTES).unwrap();
        kv.commit(&suite::puts(&[(&[number], b"kept")])).unwrap();
        assert_eq!(kv.entries(), u64::from(number) + 1);
        drop(kv);
        std::fs::write(root.path().join("snap.FFFFFFFFFFFFFFF0.generating"), b"half a snapsh").unwrap();
    }
}

/// One commit of a random history: key numbers, each with the length and byte of its new value, if any.
type Step = Vec<(u8, Option<(u16, u8)>)>;

fn histories() -> impl Strategy<Value = Vec<Step>> {
    let value = proptest::option::of((0..=4096_u16, any::<u8>()));
    proptest::collection::vec(proptest::collection::vec((0..40_u8, value), 0..12), 1..12)
}

fn follow(dir: &Path, history: &[Step]) {
    let memory = MemoryKv::new();
    let mut expected = BTreeMap::new();
    for steps in history.chunks(4) {
        let kv = SledKv::open(dir, CACHE_BYTES).unwrap();
        for step in steps {
            let mut batch = Batch::new();
            for (key, value) in step {
                let key = vec![b'k', *key];
                match value.map(|(length, byte)| vec![byte; usize::from(length)]) {
                    Some(value) => {
                        batch.put(key.clone(), value.clone());
                        expected.insert(key, value);
                    }
                    None => {
                        batch.delete(key.clone());
                        expected.remove(&key);
                    }
                }
            }
            kv.commit(&batch).unwrap();
            memory.commit(&batch).unwrap();
        }
        let wanted: Entries = expected.clone().into_iter().collect();
        assert_eq!(kv.scan(b"k").unwrap(), wanted);
        assert_eq!(memory.scan(b"k").unwrap(), wanted);
        assert_eq!((kv.entries(), memory.entries()), (wanted.len() as u64, wanted.len() as u64));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_equals_a_map(history in histories()) {
        let root = tempfile::tempdir().unwrap();
        follow(root.path(), &history);
    }
}
