//! Guarantees of the blob store, tested on the real disk, on the simulated one, and on one that fails at every call in
//! turn.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_storage_blobs::{BLOB_BYTES_MAX, BlobError, BlobName, Blobs};
use assay_storage_disk::{
    Disk, Fault, FaultPlan, FaultyDisk, Operation, RealDisk, SharedDisk, SimulatedDisk, read_whole,
};

const DIR: &str = "/data/blobs";

fn simulated() -> (SimulatedDisk, PathBuf) {
    (SimulatedDisk::new(), PathBuf::from(DIR))
}

fn open(disk: &SimulatedDisk) -> Blobs {
    Blobs::open(Arc::new(disk.clone()), Path::new(DIR)).unwrap()
}

fn path_of(name: BlobName) -> PathBuf {
    let name = name.to_string();
    Path::new(DIR).join(&name[..2]).join(&name)
}

/// Content that differs by number; every third is larger than a block.
fn content(number: u64) -> Vec<u8> {
    let length = if number.is_multiple_of(3) { 9_000 } else { 100 };
    (0..length).map(|at: u64| (at.wrapping_mul(number + 7) >> 3) as u8).chain(number.to_le_bytes()).collect()
}

fn keeps_its_promises(disk: SharedDisk, dir: &Path) {
    let blobs = Blobs::open(Arc::clone(&disk), dir).unwrap();
    let contents: Vec<Vec<u8>> = (0..20).map(content).chain([vec![]]).collect();
    let mut kept = BTreeMap::new();
    for content in &contents {
        let name = blobs.put(content).unwrap();
        assert_eq!(blobs.put(content).unwrap(), name);
        assert_eq!(name, BlobName::of(content));
        kept.insert(name, content.len() as u64);
    }
    assert_eq!(blobs.list().unwrap(), kept.clone().into_iter().collect::<Vec<_>>());
    let gone = BlobName::of(&contents[3]);
    assert!(blobs.contains(gone).unwrap());
    assert!(blobs.remove(gone).unwrap());
    assert!(!blobs.remove(gone).unwrap());
    assert!(!blobs.contains(gone).unwrap());
    assert!(matches!(blobs.get(gone, 9_008), Err(BlobError::Missing { .. })));
    let mut last = 0;
    assert_eq!(blobs.verify_all(|progress| last = progress.files_checked).unwrap(), vec![]);
    assert_eq!(last, 20);
    drop(blobs);
    let again = Blobs::open(disk, dir).unwrap();
    for content in contents.iter().filter(|content| BlobName::of(content) != gone) {
        let length = content.len() as u64;
        assert_eq!(again.get(BlobName::of(content), length).unwrap(), content);
        assert!(matches!(again.get(BlobName::of(content), length + 1), Err(BlobError::Damaged { .. })));
        assert!(matches!(again.get(BlobName::of(content), BLOB_BYTES_MAX * 9), Err(BlobError::Damaged { .. })));
    }
}

#[test]
fn promises_hold_on_the_real_disk() {
    let root = tempfile::tempdir().unwrap();
    keeps_its_promises(Arc::new(RealDisk), &root.path().join("blobs"));
}

#[test]
fn promises_hold_on_the_simulated_disk() {
    let (disk, dir) = simulated();
    keeps_its_promises(Arc::new(disk), &dir);
}

#[test]
fn promises_hold_on_a_faulty_disk_without_faults() {
    let (disk, dir) = simulated();
    keeps_its_promises(Arc::new(FaultyDisk::new(Arc::new(disk), FaultPlan::none())), &dir);
}

#[test]
fn putting_what_is_there_writes_nothing() {
    let (disk, dir) = simulated();
    let faulty = FaultyDisk::new(Arc::new(disk), FaultPlan::none());
    let blobs = Blobs::open(Arc::new(faulty.clone()), &dir).unwrap();
    blobs.put(&content(1)).unwrap();
    blobs.put(&content(1)).unwrap();
    assert_eq!(faulty.calls(Operation::Append), 1);
}

#[test]
fn a_damaged_blob_is_never_served_and_healed_by_the_next_put() {
    let (disk, _) = simulated();
    let blobs = open(&disk);
    let (bytes, other) = (content(0), content(1));
    let (name, length) = (blobs.put(&bytes).unwrap(), bytes.len() as u64);
    blobs.put(&other).unwrap();
    let damages: [&dyn Fn(); 3] = [
        &|| disk.flip_bit(&path_of(name), 4_321).unwrap(),
        &|| disk.open(&path_of(name)).unwrap().set_len(length - 1).unwrap(),
        &|| assert_eq!(disk.open(&path_of(name)).unwrap().append(b"more").unwrap(), length),
    ];
    for damage in damages {
        damage();
        assert!(matches!(blobs.get(name, length), Err(BlobError::Damaged { .. })));
        let found = blobs.verify_all(|_| {}).unwrap();
        assert_eq!(found.iter().map(|damage| damage.name).collect::<Vec<_>>(), vec![Some(name)]);
        blobs.put(&bytes).unwrap();
        assert_eq!(blobs.get(name, length).unwrap(), bytes);
    }
}

#[test]
fn a_blob_is_read_once_by_a_process_that_did_not_write_it() {
    let (disk, dir) = simulated();
    let (good, bad) = (content(0), content(3));
    let (good_name, bad_name) = (open(&disk).put(&good).unwrap(), open(&disk).put(&bad).unwrap());
    disk.flip_bit(&path_of(bad_name), 4_321).unwrap();
    let faulty = FaultyDisk::new(Arc::new(disk.clone()), FaultPlan::none());
    let blobs = Blobs::open(Arc::new(faulty.clone()), &dir).unwrap();
    for _ in 0..3 {
        assert!(blobs.is_sound(good_name).unwrap());
        assert!(!blobs.is_sound(bad_name).unwrap());
    }
    assert_eq!(faulty.calls(Operation::Open), 2, "each was read once");
    assert_eq!(blobs.put(&bad).unwrap(), bad_name);
    assert!(blobs.is_sound(bad_name).unwrap(), "it was replaced");
    assert_eq!(open(&disk).get(bad_name, bad.len() as u64).unwrap(), bad);
    blobs.remove(good_name).unwrap();
    assert!(!blobs.is_sound(good_name).unwrap());
}

#[test]
fn every_bit_of_a_blob_is_guarded() {
    let (disk, _) = simulated();
    let blobs = open(&disk);
    let name = blobs.put(b"guarded").unwrap();
    for bit in 0..56 {
        disk.flip_bit(&path_of(name), bit).unwrap();
        assert!(matches!(blobs.get(name, 7), Err(BlobError::Damaged { .. })));
        disk.flip_bit(&path_of(name), bit).unwrap();
    }
    assert_eq!(blobs.get(name, 7).unwrap().as_ref(), b"guarded");
}

#[test]
fn what_a_crash_left_is_removed_and_what_is_not_ours_is_named() {
    let (disk, dir) = simulated();
    drop(open(&disk));
    disk.create(&dir.join("tmp/17")).unwrap().append(b"half a blo").unwrap();
    disk.create_dir_all(&dir.join("ab")).unwrap();
    disk.create(&dir.join("ab/notes.txt")).unwrap();
    disk.create(&dir.join("README")).unwrap();
    let blobs = open(&disk);
    assert_eq!(disk.list(&dir.join("tmp")).unwrap(), vec![]);
    assert_eq!(blobs.list().unwrap(), vec![]);
    let strangers: Vec<PathBuf> = blobs.verify_all(|_| {}).unwrap().into_iter().map(|found| found.path).collect();
    assert_eq!(strangers, [dir.join("README"), dir.join("ab/notes.txt")]);
}

#[test]
fn a_failed_sync_stops_writes_and_not_reads() {
    for operation in [Operation::Sync, Operation::SyncDir] {
        let (disk, dir) = simulated();
        let faulty = FaultyDisk::new(Arc::new(disk), FaultPlan::none());
        let blobs = Blobs::open(Arc::new(faulty.clone()), &dir).unwrap();
        let name = blobs.put(&content(1)).unwrap();
        faulty.set_plan(FaultPlan::fail(operation, 1, Fault::InputOutput));
        assert!(matches!(blobs.put(&content(2)), Err(BlobError::Io(_))));
        assert!(matches!(blobs.put(&content(2)), Err(BlobError::Stopped)));
        assert!(matches!(blobs.remove(name), Err(BlobError::Stopped)));
        assert_eq!(blobs.get(name, content(1).len() as u64).unwrap(), content(1));
    }
}

#[test]
fn a_full_disk_refuses_and_goes_on_when_there_is_room() {
    let disk = SimulatedDisk::with_total(10_000);
    let blobs = open(&disk);
    let first = blobs.put(&content(0)).unwrap();
    assert!(matches!(blobs.put(&content(3)), Err(BlobError::Io(_))));
    assert_eq!(disk.list(&Path::new(DIR).join("tmp")).unwrap(), vec![], "the part that fitted is given back");
    blobs.remove(first).unwrap();
    blobs.put(&content(3)).unwrap();
}

/// Puts, removes and damages by a seed; returns what must be there, and what may be.
fn work(blobs: &Blobs, seed: u64) -> (BTreeMap<BlobName, u64>, Vec<u64>) {
    let mut sure = BTreeMap::new();
    let mut unsure = Vec::new();
    for step in 0..8 {
        let number = (seed * 31 + step * step * 7 + step) % 6;
        let name = BlobName::of(&content(number));
        if step % 4 == 3 {
            if blobs.remove(name).is_err() {
                unsure.push(number);
            }
            sure.remove(&name);
        } else if blobs.put(&content(number)).is_ok() {
            sure.insert(name, number);
        } else if !sure.contains_key(&name) {
            unsure.push(number);
        }
    }
    (sure, unsure)
}

/// Every acknowledged blob is there, and any other is there whole or missing, never half.
fn check_after_crash(disk: &SimulatedDisk, sure: &BTreeMap<BlobName, u64>, context: &str) {
    let blobs = open(disk);
    for number in 0..6 {
        let bytes = content(number);
        match blobs.get(BlobName::of(&bytes), bytes.len() as u64) {
            Ok(found) => assert_eq!(found, bytes, "{context}"),
            Err(BlobError::Missing { name }) => assert!(!sure.contains_key(&name), "{context}: {name} is lost"),
            Err(error) => panic!("{context}: {error}"),
        }
    }
    assert_eq!(blobs.verify_all(|_| {}).unwrap(), vec![], "{context}");
}

#[test]
fn a_power_cut_takes_no_acknowledged_blob_and_leaves_no_half_one() {
    for seed in 0..60 {
        let (disk, _) = simulated();
        let (sure, unsure) = work(&open(&disk), seed);
        assert_eq!(unsure, Vec::<u64>::new());
        for cut in 0..6 {
            let found = disk.power_cut(seed * 100 + cut);
            check_after_crash(&found, &sure, &format!("seed {seed}, cut {cut}"));
            // And once more, during the recovery itself.
            check_after_crash(&found.power_cut(cut), &sure, &format!("seed {seed}, cut {cut}, twice"));
        }
    }
}

#[test]
fn a_fault_at_any_call_loses_no_acknowledged_blob() {
    for fault in [Fault::InputOutput, Fault::NoSpace, Fault::ShortWrite, Fault::DoneButReported] {
        let mut nth = 1;
        loop {
            let (disk, dir) = simulated();
            let faulty = FaultyDisk::new(Arc::new(disk.clone()), FaultPlan::fail_any(nth, fault));
            let sure = match Blobs::open(Arc::new(faulty.clone()), &dir) {
                Ok(blobs) => work(&blobs, nth).0,
                Err(_) => BTreeMap::new(),
            };
            let context = format!("{fault:?} at call {nth}");
            check_after_crash(&disk, &sure, &context);
            for cut in 0..4 {
                check_after_crash(&disk.power_cut(cut), &sure, &format!("{context}, cut {cut}"));
            }
            if faulty.injected() == 0 {
                break;
            }
            nth += 1;
        }
        assert!(nth > 30, "the walk met every call");
    }
}

#[test]
fn the_files_hold_the_content_and_nothing_else() {
    let (disk, _) = simulated();
    let name = open(&disk).put(b"as it is").unwrap();
    assert_eq!(read_whole(&disk, &path_of(name), 100).unwrap(), b"as it is");
}
