//! Test of a log that waits for a file descriptor when it begins a new file.
//!
//! The test runs in a separate process, which a shell starts with few descriptors.

use std::env;
use std::fs::File;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use assay_storage_disk::{RealDisk, files_ran_out};
use assay_storage_log::{Log, LogConfig, LogRecord};
use assay_storage_model::GroupId;

/// Environment variable of the process with few descriptors.
const FEW: &str = "FEW_FILE_DESCRIPTORS";
const FILES_MAX: u64 = 128;
const FILE_BYTES: u64 = 64 << 10;
const PAYLOAD_BYTES: usize = 16 << 10;
const RECORDS_MAX: u64 = 32;
const STARVED_FOR: Duration = Duration::from_millis(500);

/// Opens files until the process has no descriptor left.
fn take_all() -> Vec<File> {
    let mut taken = Vec::new();
    loop {
        match File::open("/dev/null") {
            Ok(file) => taken.push(file),
            Err(error) if files_ran_out(&error) => return taken,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_log_without_a_free_descriptor_waits_and_goes_on() {
    if env::var_os(FEW).is_none() {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("ulimit -n {FILES_MAX} && exec \"$0\"")).arg(env::current_exe().unwrap());
        assert!(shell.env(FEW, "1").status().unwrap().success());
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let config = LogConfig { file_bytes: FILE_BYTES, ..LogConfig::default() };
    let log = Log::open(Arc::new(RealDisk), &root.path().join("log"), config).unwrap();
    let group = log.group(GroupId(1));

    let (done, answers) = channel();
    let append = |index: u64| {
        let record = LogRecord { index, term: 1, payload: vec![7; PAYLOAD_BYTES].into() };
        let done = done.clone();
        group.append(vec![record], Box::new(move |answer| done.send(answer).unwrap()));
    };
    let taken = take_all();
    let mut last = 0;
    // Records are appended one at a time, because those of one batch share a file.
    loop {
        last += 1;
        assert!(last <= RECORDS_MAX, "no record needed another file");
        append(last);
        match answers.recv_timeout(STARVED_FOR) {
            Ok(answer) => answer.unwrap(),
            Err(RecvTimeoutError::Timeout) => break,
            Err(error) => panic!("{error}"),
        }
    }
    drop(taken);
    answers.recv_timeout(Duration::from_secs(30)).unwrap().unwrap();
    append(last + 1);
    answers.recv_timeout(Duration::from_secs(30)).unwrap().unwrap();
    assert_eq!(group.read(1, last + 2, usize::MAX).unwrap().len() as u64, last + 1);
}
