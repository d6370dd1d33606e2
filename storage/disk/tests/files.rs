//! A process without a free file descriptor waits for one. The only test of its binary, since it lowers the limit of the
//! whole process.

use std::fs::File;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use assay_storage_disk::{Disk, RealDisk};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const FILES_MAX: u64 = 64;
const STARVED_FOR: Duration = Duration::from_millis(300);

/// Opens files until the process may open no more.
fn take_all() -> Vec<File> {
    let mut taken = Vec::new();
    loop {
        match File::open("/dev/null") {
            Ok(file) => taken.push(file),
            Err(error) => {
                assert!(assay_storage_disk::files_ran_out(&error), "{error}");
                return taken;
            }
        }
    }
}

/// Runs `operation` while no descriptor is free, and frees them all after a while.
fn starved(operation: impl FnOnce() -> io::Result<()>) {
    let taken = take_all();
    let began = Instant::now();
    let freed = thread::spawn(move || {
        thread::sleep(STARVED_FOR);
        drop(taken);
    });
    operation().unwrap();
    assert!(began.elapsed() >= STARVED_FOR, "the operation did not need a descriptor");
    freed.join().unwrap();
}

#[test]
fn every_operation_waits_for_a_free_descriptor() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name);
    setrlimit(Resource::Nofile, Rlimit { current: Some(FILES_MAX), maximum: getrlimit(Resource::Nofile).maximum })
        .unwrap();

    starved(|| RealDisk.create(&path("a")).map(drop));
    starved(|| RealDisk.create_bulk(&path("b")).map(drop));
    starved(|| RealDisk.open(&path("a")).map(drop));
    starved(|| RealDisk.list(root.path()).map(drop));
    starved(|| RealDisk.sync_dir(root.path()));
    starved(|| RealDisk.create_dir_all(&path("c/d")));
    let names: Vec<String> = RealDisk.list(root.path()).unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["a", "b", "c"]);

    let _taken = take_all();
    let missing = RealDisk.rename(Path::new("/nowhere/a"), Path::new("/nowhere/b")).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound, "any other error is returned at once");
}
