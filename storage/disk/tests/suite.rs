//! The one suite over every disk there is.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_storage_disk::{Disk, FaultPlan, FaultyDisk, RealDisk, SharedDisk, SimulatedDisk, suite};

fn simulated() -> (SharedDisk, PathBuf) {
    let disk = SimulatedDisk::new();
    disk.create_dir_all(Path::new("/data")).unwrap();
    (Arc::new(disk), PathBuf::from("/data"))
}

#[test]
fn the_real_disk_keeps_the_promises() {
    let root = tempfile::tempdir().unwrap();
    let numbers = std::cell::Cell::new(0);
    suite::run(|| {
        numbers.set(numbers.get() + 1);
        let dir = root.path().join(numbers.get().to_string());
        RealDisk.create_dir_all(&dir).unwrap();
        (Arc::new(RealDisk), dir)
    });
}

#[test]
fn the_simulated_disk_keeps_the_promises() {
    suite::run(simulated);
}

#[test]
fn a_faulty_disk_without_faults_keeps_the_promises() {
    suite::run(|| {
        let (inner, dir) = simulated();
        (Arc::new(FaultyDisk::new(inner, FaultPlan::none())), dir)
    });
}

#[test]
fn files_and_directories_are_for_their_owner_alone() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("a/b");
    RealDisk.create_dir_all(&dir).unwrap();
    RealDisk.create(&dir.join("c")).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&root.path().join("a")), 0o700);
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(mode(&dir.join("c")), 0o600);
}

#[test]
fn errors_name_the_file() {
    let error = RealDisk.open(Path::new("/no/such/file")).unwrap_err();
    assert!(error.to_string().contains("/no/such/file"), "{error}");
}
