//! Guarantees of the log, tested against a model, injected faults and damaged files.

mod damage;
mod faults;
mod measure;
mod model;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;

use assay_storage_disk::{RealDisk, SharedDisk};
use assay_storage_model::GroupId;
use bytes::Bytes;
use rand::{Rng, RngCore};
use rand_chacha::ChaCha8Rng;

use crate::{Completion, GroupLog, GroupState, Log, LogConfig, LogError, LogRecord};

/// Configuration with small files, so that a test has many of them.
const SMALL: LogConfig =
    LogConfig { budget_bytes: 64 << 10, file_bytes: 8 << 10, batch_bytes_max: 4 << 10, write_delay: None };

fn disk() -> SharedDisk {
    Arc::new(RealDisk)
}

/// Directory for one log and its watermark.
struct LogDir(tempfile::TempDir);

impl LogDir {
    fn new() -> LogDir {
        LogDir(tempfile::tempdir().unwrap())
    }

    fn log(&self) -> PathBuf {
        self.0.path().join("log")
    }

    fn watermark(&self) -> PathBuf {
        self.0.path().join("log.watermark")
    }

    fn open(&self) -> Result<Log, LogError> {
        Log::open(disk(), &self.log(), SMALL)
    }

    /// Copies the current files, as a crash of the process would leave them.
    fn copy(&self) -> LogDir {
        let copy = LogDir::new();
        fs::create_dir(copy.log()).unwrap();
        for entry in fs::read_dir(self.log()).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), copy.log().join(entry.file_name())).unwrap();
        }
        fs::copy(self.watermark(), copy.watermark()).unwrap();
        copy
    }

    /// Returns the names and bytes of all files except the lock.
    fn content(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files: Vec<_> = fs::read_dir(self.log()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.push(self.watermark());
        let files = files.into_iter().filter(|path| !path.ends_with("LOCK") && path.exists());
        files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }
}

/// Waits for the completion of an operation.
fn wait(call: impl FnOnce(Completion)) -> Result<(), LogError> {
    let (sender, receiver) = channel();
    call(Box::new(move |result| sender.send(result).unwrap()));
    receiver.recv().unwrap()
}

fn records(from: u64, count: u64, term: u64, bytes: usize) -> Vec<LogRecord> {
    let payload = |index: u64| Bytes::from(format!("{index}/{term}/").into_bytes().repeat(bytes / 4 + 1));
    (from..from + count).map(|index| LogRecord { index, term, payload: payload(index) }).collect()
}

fn random_records(rng: &mut ChaCha8Rng, from: u64, term: u64, bytes_max: usize) -> Vec<LogRecord> {
    let count = rng.random_range(1..6);
    let mut next = || {
        let mut payload = vec![0; rng.random_range(0..bytes_max)];
        rng.fill_bytes(&mut payload);
        Bytes::from(payload)
    };
    (from..from + count).map(|index| LogRecord { index, term, payload: next() }).collect()
}

fn read_all(group: &GroupLog) -> Result<Vec<LogRecord>, LogError> {
    let GroupState { first, last, .. } = group.state();
    let mut all = Vec::new();
    let mut next = first;
    while last.is_some_and(|(last, _)| next <= last) {
        let some = group.read(next, u64::MAX, 4096)?;
        next = some.last().expect("a record exists, so a read is not empty").index + 1;
        all.extend(some);
    }
    Ok(all)
}

fn path_of<'a>(files: &'a BTreeMap<PathBuf, Vec<u8>>, ends: &str) -> Vec<&'a Path> {
    files.keys().filter(|path| path.to_string_lossy().ends_with(ends)).map(PathBuf::as_path).collect()
}
