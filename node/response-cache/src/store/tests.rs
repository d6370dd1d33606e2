//! Tests of the store on a simulated disk: restarts, limits, damage and failures.

use std::collections::BTreeSet;

use assay_storage_disk::{Fault, FaultPlan, FaultyDisk, Operation, SimulatedDisk};

use super::*;

const DIRECTORY: &str = "/node/gateway-cache";
const MINUTE_MS: u64 = 60_000;

fn id(organization: u128, name: u8) -> EntryId {
    EntryId { organization: OrgId(Uuid::from_u128(organization)), name: [name; 32] }
}

fn file(created_ms: u64, ttl_s: u32, sealed: &[u8]) -> EntryFile {
    EntryFile::new(EntryTimes { created_ms, ttl_s }, sealed).expect("is short")
}

fn open(disk: &SharedDisk, limits: CacheLimits, now_ms: u64) -> EntryStore {
    let counters = Arc::new(CacheCounters::default());
    EntryStore::open(Arc::clone(disk), Path::new(DIRECTORY), limits, counters, now_ms).expect("the disk works")
}

fn put(store: &EntryStore, id: &EntryId, now_ms: u64) {
    let written = store.write(id, &file(now_ms, 3600, &id.name), now_ms).expect("the disk works");
    assert_eq!(written, StoreOutcome::Stored);
}

fn is_kept(store: &EntryStore, id: &EntryId, now_ms: u64) -> bool {
    let stored = store.read(id, MaxAge::Any, now_ms);
    stored.is_some_and(|stored| stored.file.sealed() == id.name)
}

/// Returns the names of the files on the disk.
fn names(disk: &SimulatedDisk) -> BTreeSet<String> {
    disk.files().iter().map(|(path, _)| path.file_name().expect("a file").to_string_lossy().into_owned()).collect()
}

fn expected_names(ids: &[EntryId]) -> BTreeSet<String> {
    ids.iter().map(EntryId::file_name).collect()
}

fn simulated() -> (Arc<SimulatedDisk>, SharedDisk) {
    let disk = Arc::new(SimulatedDisk::new());
    (Arc::clone(&disk), disk)
}

#[test]
fn entries_survive_a_restart() {
    let (simulated, disk) = simulated();
    let store = open(&disk, CacheLimits::default(), 0);
    put(&store, &id(1, 1), 1000);
    put(&store, &id(2, 1), 2000);
    put(&store, &id(1, 1), 3000);
    let usage = store.usage();
    drop(store);
    let store = open(&disk, CacheLimits::default(), 5000);
    assert_eq!((store.usage(), usage), ((2 * 4096, 2), (2 * 4096, 2)));
    assert!(is_kept(&store, &id(1, 1), 5000) && is_kept(&store, &id(2, 1), 5000));
    let times = store.read(&id(1, 1), MaxAge::Any, 5000).expect("is kept").file.heading.times;
    assert_eq!(times, EntryTimes { created_ms: 3000, ttl_s: 3600 }, "the newer one");
    assert!(!is_kept(&store, &id(1, 2), 5000) && !is_kept(&store, &id(3, 1), 5000));
    assert_eq!(simulated.files().len(), 2, "no temporary file stays");
}

#[test]
fn the_order_of_use_survives_a_restart() {
    let (simulated, disk) = simulated();
    let limits = CacheLimits { entries_max: 3, ..CacheLimits::default() };
    let store = open(&disk, limits, 0);
    for name in 1..=3 {
        put(&store, &id(1, name), name.into());
    }
    assert!(is_kept(&store, &id(1, 1), 20 * MINUTE_MS));
    drop(store);
    let store = open(&disk, limits, 21 * MINUTE_MS);
    put(&store, &id(1, 4), 21 * MINUTE_MS);
    assert_eq!(names(&simulated), expected_names(&[id(1, 1), id(1, 3), id(1, 4)]));
    drop(store);
    let store = open(&disk, CacheLimits { entries_max: 1, ..limits }, 22 * MINUTE_MS);
    assert_eq!(names(&simulated), expected_names(&[id(1, 4)]), "limits hold for what is found too");
    assert_eq!(store.counters.read(0, 0).evicted, 2);
}

#[test]
fn files_of_evicted_entries_are_removed() {
    let (simulated, disk) = simulated();
    let limits = CacheLimits { bytes_max: 4 * 4096, organization_bytes_max: 2 * 4096, entries_max: 100 };
    let store = open(&disk, limits, 0);
    for name in 1..=4 {
        put(&store, &id(1, name), 0);
    }
    put(&store, &id(2, 1), 0);
    assert_eq!(names(&simulated), expected_names(&[id(1, 3), id(1, 4), id(2, 1)]), "the cap of an organization");
    let too_large = store.write(&id(3, 1), &file(0, 60, &[7; 3 * 4096]), 0).expect("the disk works");
    assert_eq!(too_large, StoreOutcome::Refused);
    assert_eq!((store.usage(), store.counters.read(0, 0).evicted), ((3 * 4096, 3), 2));
}

#[test]
fn an_entry_goes_after_its_time() {
    let (simulated, disk) = simulated();
    let store = open(&disk, CacheLimits::default(), 0);
    for (name, ttl_s) in [(1, 60), (2, 61), (3, 7200)] {
        store.write(&id(1, name), &file(0, ttl_s, &[name; 32]), 0).expect("the disk works");
    }
    assert!(is_kept(&store, &id(1, 1), MINUTE_MS - 1) && !is_kept(&store, &id(1, 1), MINUTE_MS));
    assert_eq!(names(&simulated), expected_names(&[id(1, 2), id(1, 3)]));
    assert!(store.read(&id(1, 3), MaxAge::Seconds(59), MINUTE_MS).is_none(), "it is too old for this caller only");
    put(&store, &id(1, 4), 10 * MINUTE_MS);
    assert_eq!(names(&simulated), expected_names(&[id(1, 3), id(1, 4)]), "nobody asked for the second one");
    drop(store);
    let store = open(&disk, CacheLimits::default(), 7_200_000);
    assert_eq!(names(&simulated), expected_names(&[]));
    let late = store.write(&id(1, 5), &file(0, 60, b"x"), 7_200_000).expect("the disk works");
    assert_eq!((late, simulated.files().len()), (StoreOutcome::Refused, 0), "one that is expired is not written");
}

#[test]
fn damaged_and_foreign_files_are_removed() {
    let (simulated, disk) = simulated();
    let store = open(&disk, CacheLimits::default(), 0);
    for name in 1..=6 {
        put(&store, &id(1, name), 0);
    }
    let path = |name| store.path(&id(1, name));
    // These files are damaged while the node runs.
    simulated.flip_bit(&path(1), 0).expect("is there");
    simulated.flip_bit(&path(2), 5 * 8).expect("is there");
    disk.open(&path(3)).and_then(|file| file.set_len(20)).expect("is there");
    disk.remove(&path(4)).expect("is there");
    for name in 1..=4 {
        assert!(!is_kept(&store, &id(1, name), 0), "{name}");
    }
    assert_eq!(store.usage().1, 2);
    // This file is damaged while the node is down.
    disk.open(&path(5)).and_then(|file| file.append(b"x")).expect("is there");
    let write = |name: &str| {
        let path = Path::new(DIRECTORY).join(name);
        disk.create(&path).and_then(|file| file.append(b"something")).expect("the disk works");
    };
    let (organization, upper) = (id(1, 1).organization, "AB".repeat(32));
    for name in ["note", &format!("{organization}/{upper}"), &format!("{organization}/{}.9.tmp", "ab".repeat(32))] {
        write(name);
    }
    write(&format!("{organization}/{}", "ab".repeat(32)));
    let store = open(&disk, CacheLimits::default(), 0);
    assert_eq!(names(&simulated), expected_names(&[id(1, 6)]));
    assert!(is_kept(&store, &id(1, 6), 0));
    assert_eq!(store.counters.read(0, 0).damaged, 2);
}

#[test]
fn an_organization_is_removed_alone() {
    let (simulated, disk) = simulated();
    let store = open(&disk, CacheLimits::default(), 0);
    for (organization, name) in [(1, 1), (1, 2), (2, 1)] {
        put(&store, &id(organization, name), 0);
    }
    for _ in 0..2 {
        store.remove_organization(id(1, 1).organization).expect("also twice");
    }
    assert!(!is_kept(&store, &id(1, 1), 0) && is_kept(&store, &id(2, 1), 0));
    assert_eq!(names(&simulated), expected_names(&[id(2, 1)]));
    put(&store, &id(1, 1), 0);
    assert!(is_kept(&store, &id(1, 1), 0) && store.usage().1 == 2);
}

#[test]
fn a_failure_of_the_disk_loses_no_other_entry_and_leaves_no_file() {
    for operation in [Operation::Create, Operation::Append, Operation::Rename] {
        let (simulated, disk) = simulated();
        let faulty = Arc::new(FaultyDisk::new(disk, FaultPlan::none()));
        let store = open(&(Arc::clone(&faulty) as SharedDisk), CacheLimits::default(), 0);
        put(&store, &id(1, 1), 0);
        faulty.set_plan(FaultPlan::fail(operation, 1, Fault::InputOutput));
        assert!(store.write(&id(1, 1), &file(5, 60, b"newer"), 5).is_err(), "{operation:?}");
        assert!(is_kept(&store, &id(1, 1), 5), "the former one stays after {operation:?}");
        assert_eq!(names(&simulated), expected_names(&[id(1, 1)]), "{operation:?}");
        put(&store, &id(1, 2), 0);
        assert_eq!(store.usage().1, 2);
    }
}

#[test]
fn a_failed_read_is_a_miss() {
    let (simulated, disk) = simulated();
    let faulty = Arc::new(FaultyDisk::new(disk, FaultPlan::none()));
    let store = open(&(Arc::clone(&faulty) as SharedDisk), CacheLimits::default(), 0);
    put(&store, &id(1, 1), 0);
    faulty.set_plan(FaultPlan::fail(Operation::ReadAt, 1, Fault::InputOutput));
    assert!(!is_kept(&store, &id(1, 1), 0));
    assert_eq!((store.usage(), simulated.files().len()), ((0, 0), 0));
    assert_eq!(store.counters.read(0, 0).errors, 1);
}

#[test]
fn nothing_is_written_when_the_disk_is_nearly_full() {
    let disk = Arc::new(SimulatedDisk::with_total(100_000));
    let store = open(&(Arc::clone(&disk) as SharedDisk), CacheLimits::default(), 0);
    let write = |name: u8, bytes: usize| store.write(&id(1, name), &file(0, 60, &vec![7; bytes]), 0);
    assert_eq!(write(1, 80_000).expect("fits"), StoreOutcome::Stored);
    assert_eq!(write(2, 15_000).expect("the disk works"), StoreOutcome::Refused);
    assert_eq!(disk.files().len(), 1);
}

#[test]
fn a_name_reveals_no_key_and_belongs_to_one() {
    let key = |organization, byte| CacheKey::of_hash(OrgId(Uuid::from_u128(organization)), [byte; 32]);
    let ids = [key(1, 1), key(1, 2), key(2, 1)].map(|key| EntryId::of(&key));
    assert!(ids[0].name != ids[1].name && ids[0].name != ids[2].name && ids[0].name != [1; 32]);
    for id in ids {
        assert_eq!(EntryId::parse(id.organization, &id.file_name()), Some(id));
    }
    for name in ["", "ab", &"g".repeat(64), &"é".repeat(32), &format!("+{}", "a".repeat(63))] {
        assert_eq!(EntryId::parse(ids[0].organization, name), None, "{name}");
    }
}
