//! Conformance suite of every [`Kv`]; each implementation's tests call [`run`] in one line.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Batch, Entries, KEY_BYTES_MAX, Kv, KvError, VALUE_BYTES_MAX};

/// Opens one store, again and again; the handle before has been dropped.
pub type Reopen = Box<dyn Fn() -> Arc<dyn Kv>>;

/// Runs the whole suite; `make` gives a new, empty store by the way to open it. Panics with what differs.
pub fn run(make: impl Fn() -> Reopen) {
    a_new_store_is_empty(&make());
    a_commit_is_seen_and_survives_a_reopen(&make());
    the_last_change_to_a_key_counts(&make());
    a_scan_is_ordered_and_bounded_by_its_prefix(&make());
    what_is_too_large_is_refused_and_changes_nothing(&make());
    the_largest_keys_and_values_are_kept(&make());
    readers_see_all_of_a_commit_or_nothing(&make());
    many_commits_equal_a_map(&make());
}

/// A batch of puts, for tests.
pub fn puts(entries: &[(&[u8], &[u8])]) -> Batch {
    let mut batch = Batch::new();
    for (key, value) in entries {
        batch.put(*key, *value);
    }
    batch
}

fn owned(entries: &[(&[u8], &[u8])]) -> Entries {
    entries.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

fn a_new_store_is_empty(open: &Reopen) {
    for _ in 0..2 {
        let kv = open();
        assert_eq!(kv.entries(), 0);
        assert_eq!(kv.get(b"").unwrap(), None);
        assert_eq!(kv.scan(b"").unwrap(), vec![]);
        kv.commit(&Batch::new()).unwrap();
    }
}

fn a_commit_is_seen_and_survives_a_reopen(open: &Reopen) {
    let entries: &[(&[u8], &[u8])] = &[(b"", b"empty key"), (b"a", b"1"), (b"b", b"")];
    open().commit(&puts(entries)).unwrap();
    let kv = open();
    assert_eq!(kv.scan(b"").unwrap(), owned(entries));
    assert_eq!(kv.get(b"b").unwrap(), Some(vec![]));
    let mut batch = puts(&[(b"c", b"3")]);
    batch.delete(*b"a");
    batch.delete(*b"never there");
    kv.commit(&batch).unwrap();
    drop(kv);
    let kv = open();
    assert_eq!(kv.entries(), 3);
    assert_eq!(kv.get(b"a").unwrap(), None);
    assert_eq!(kv.scan(b"").unwrap(), owned(&[(b"", b"empty key"), (b"b", b""), (b"c", b"3")]));
}

fn the_last_change_to_a_key_counts(open: &Reopen) {
    let mut batch = Batch::new();
    batch.put(*b"a", *b"1");
    batch.put(*b"a", *b"2");
    batch.put(*b"b", *b"1");
    batch.delete(*b"b");
    batch.delete(*b"c");
    batch.put(*b"c", *b"1");
    assert_eq!(batch.len(), 3);
    let kv = open();
    kv.commit(&batch).unwrap();
    assert_eq!(kv.scan(b"").unwrap(), owned(&[(b"a", b"2"), (b"c", b"1")]));
    assert_eq!(kv.entries(), 2);
}

fn a_scan_is_ordered_and_bounded_by_its_prefix(open: &Reopen) {
    let kv = open();
    let keys: [&[u8]; 6] = [b"b\xff\xff", b"a", b"b", b"c", b"b\x00", b"ba"];
    for key in keys {
        kv.commit(&puts(&[(key, b"v")])).unwrap();
    }
    let found: Vec<Vec<u8>> = kv.scan(b"b").unwrap().into_iter().map(|(key, _)| key).collect();
    assert_eq!(found, [&b"b"[..], b"b\x00", b"ba", b"b\xff\xff"]);
    assert_eq!(kv.scan(b"\xff").unwrap(), vec![]);
    assert_eq!(kv.scan(b"").unwrap().len(), 6);
}

fn what_is_too_large_is_refused_and_changes_nothing(open: &Reopen) {
    let kv = open();
    let (long_key, long_value) = (vec![1; KEY_BYTES_MAX + 1], vec![1; VALUE_BYTES_MAX + 1]);
    let mut long_delete = puts(&[(b"a", b"1")]);
    long_delete.delete(long_key.clone());
    let batches = [puts(&[(b"a", b"1"), (b"b", &long_value)]), puts(&[(b"a", b"1"), (&long_key, b"")]), long_delete];
    for batch in batches {
        let error = kv.commit(&batch).unwrap_err();
        assert!(matches!(error, KvError::TooLarge { .. }), "{error}");
    }
    assert_eq!(kv.entries(), 0);
    kv.commit(&puts(&[(b"a", b"1")])).unwrap();
    assert_eq!(kv.get(&long_key).unwrap(), None);
}

fn the_largest_keys_and_values_are_kept(open: &Reopen) {
    let kv = open();
    let mut batch = Batch::new();
    for number in 0..100_u8 {
        batch.put(vec![number; KEY_BYTES_MAX], vec![number; VALUE_BYTES_MAX]);
    }
    kv.commit(&batch).unwrap();
    drop(kv);
    let kv = open();
    assert_eq!(kv.entries(), 100);
    for (number, (key, value)) in kv.scan(b"").unwrap().into_iter().enumerate() {
        assert_eq!((key, value), (vec![number as u8; KEY_BYTES_MAX], vec![number as u8; VALUE_BYTES_MAX]));
    }
}

fn readers_see_all_of_a_commit_or_nothing(open: &Reopen) {
    let kv = open();
    let commit = |number: u8| {
        let keys: Vec<[u8; 1]> = (0..20).map(|key| [key]).collect();
        let mut batch = Batch::new();
        keys.iter().for_each(|key| batch.put(*key, [number]));
        kv.commit(&batch).unwrap();
    };
    commit(0);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut last = 0;
            while last < 20 {
                // Two single reads, later key first: once the first key of a commit is seen, all of it is.
                let first = kv.get(&[0]).unwrap().unwrap()[0];
                let after = kv.get(&[19]).unwrap().unwrap()[0];
                assert!(after >= first, "a commit was seen by half");
                assert!(first >= last, "time went backwards");
                last = first;
            }
        });
        (1..=20).for_each(commit);
        reader.join().unwrap();
    });
}

fn many_commits_equal_a_map(open: &Reopen) {
    let mut expected = BTreeMap::new();
    let mut dice = 12_345_u64;
    let mut roll = |sides: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % sides
    };
    for _ in 0..4 {
        let kv = open();
        for _ in 0..25 {
            let mut batch = Batch::new();
            for _ in 0..roll(8) {
                let key = format!("key {}", roll(60)).into_bytes();
                if roll(3) == 0 {
                    expected.remove(&key);
                    batch.delete(key);
                } else {
                    let value = vec![roll(256) as u8; roll(VALUE_BYTES_MAX as u64 + 1) as usize];
                    expected.insert(key.clone(), value.clone());
                    batch.put(key, value);
                }
            }
            kv.commit(&batch).unwrap();
            assert_eq!(kv.entries(), expected.len() as u64);
        }
        assert_eq!(kv.scan(b"").unwrap(), expected.clone().into_iter().collect::<Entries>());
    }
}
