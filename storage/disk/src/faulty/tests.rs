//! Faults come where the plan says, and nowhere else.

use super::*;
use crate::{SimulatedDisk, read_whole, replace_whole};

fn faulty(plan: FaultPlan) -> FaultyDisk {
    let inner = SimulatedDisk::new();
    inner.create_dir_all(Path::new("/data")).unwrap();
    FaultyDisk::new(Arc::new(inner), plan)
}

#[test]
fn only_the_nth_call_fails() {
    let disk = faulty(FaultPlan::fail(Operation::Append, 2, Fault::InputOutput));
    let file = disk.create(Path::new("/data/a")).unwrap();
    file.append(b"one").unwrap();
    assert_eq!(file.append(b"two").unwrap_err().raw_os_error(), Some(5));
    file.append(b"three").unwrap();
    assert_eq!(file.len().unwrap(), 8);
    assert_eq!((disk.calls(Operation::Append), disk.injected()), (3, 1));
}

#[test]
fn a_lasting_fault_stays_and_a_path_bounds_it() {
    let disk = faulty(FaultPlan::fail(Operation::Sync, 1, Fault::NoSpace).on_path("bad").lasting());
    let good = disk.create(Path::new("/data/good")).unwrap();
    let bad = disk.create(Path::new("/data/bad")).unwrap();
    for _ in 0..3 {
        good.sync().unwrap();
        assert_eq!(bad.sync().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}

#[test]
fn a_short_write_leaves_half_and_an_error() {
    let disk = faulty(FaultPlan::fail(Operation::Append, 1, Fault::ShortWrite));
    let file = disk.create(Path::new("/data/a")).unwrap();
    assert!(file.append(b"12345678").is_err());
    assert_eq!(file.len().unwrap(), 4);
}

#[test]
fn a_call_can_be_done_and_still_reported_as_failed() {
    let disk = faulty(FaultPlan::fail(Operation::Rename, 1, Fault::DoneButReported));
    replace_whole(&disk, Path::new("/data/a"), b"x").unwrap_err();
    assert!(disk.exists(Path::new("/data/a")).unwrap());
}

#[test]
fn replacing_a_file_survives_a_fault_at_every_call() {
    let path = Path::new("/data/a");
    for fault in [Fault::InputOutput, Fault::NoSpace, Fault::ShortWrite, Fault::DoneButReported] {
        let mut nth = 1;
        loop {
            let inner = SimulatedDisk::new();
            inner.create_dir_all(Path::new("/data")).unwrap();
            replace_whole(&inner, path, b"old").unwrap();
            let disk = FaultyDisk::new(Arc::new(inner.clone()), FaultPlan::fail_any(nth, fault));
            let outcome = replace_whole(&disk, path, b"new content");
            if disk.injected() == 0 {
                assert!(outcome.is_ok());
                break;
            }
            for seed in 0..20 {
                let found = read_whole(&inner.power_cut(seed), path, 100).unwrap();
                assert!(found == b"new content" || (outcome.is_err() && found == b"old"), "call {nth}: {found:?}");
            }
            replace_whole(&inner, path, b"later").unwrap();
            assert_eq!(read_whole(&inner, path, 100).unwrap(), b"later");
            nth += 1;
        }
        assert!(nth > 5, "the walk met every call");
    }
}
