//! The HTTP commands with their real command lines, against a stand-in server: figures are ignored, only completion
//! counts.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const BENCH: &str = env!("CARGO_BIN_EXE_assay-bench");

/// A program that is called like `assay serve --listen A --data-dir D` and is the bare pipeline.
fn stand_in(dir: &Path) -> PathBuf {
    let path = dir.join("assay");
    let script = format!(
        "#!/bin/sh\n[ \"$1 $2 $4\" = 'serve --listen --data-dir' ] && [ -n \"$ASSAY_API_KEY\" ] || exit 9\n\
         mkdir -p \"$5\" && echo 'API key (shown once): none' && exec '{BENCH}' bare --listen \"$3\" --dir \"$5\"\n"
    );
    std::fs::write(&path, script).expect("a script");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("a program");
    path
}

fn bench(dir: &Path, command: &str, more: &[&str]) -> Output {
    let mut bench = Command::new(BENCH);
    bench.arg(command).arg("--dir").arg(dir).arg("--json").arg(dir.join("out.json")).args(more);
    bench.output().expect("the bench ran")
}

#[test]
fn ingest_drives_both_servers_with_the_same_bytes() {
    let dir = tempfile::tempdir().expect("a directory");
    let program = stand_in(dir.path());
    let program = program.to_str().expect("UTF-8");
    let options = ["--program", program, "--connections", "4", "--requests", "24", "--pairs", "2", "--merges", "0.5"];
    let output = bench(dir.path(), "ingest", &options);
    let (table, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}");
    for name in ["pair 2: assay / bare", "assay, CPU of the client", "half of our peak: p99", "resident, peak of all"] {
        assert!(table.contains(name), "{table}");
    }
    let file = std::fs::read(dir.path().join("out.json")).expect("the figures");
    let file: Value = serde_json::from_slice(&file).expect("JSON");
    for run in [&file["details"]["pairs"][1], &file["details"]["paced"][0]] {
        assert_eq!(run["bare"]["driven"]["operations"], 2400);
        assert_eq!(run["bare"]["driven"]["bytes"], run["assay"]["driven"]["bytes"]);
    }
    let left = std::fs::read_dir(dir.path()).expect("a directory").count();
    assert_eq!(left, 2, "the stand-in and the figures, nothing else");
}

#[test]
fn a_server_that_does_not_start_is_told_with_its_own_words() {
    let dir = tempfile::tempdir().expect("a directory");
    let program = dir.path().join("assay");
    std::fs::write(&program, "#!/bin/sh\necho 'the directory is locked' >&2\nexit 1\n").expect("a script");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("a program");
    let program = ["--program", program.to_str().expect("UTF-8")];
    let few = ["--requests", "1"];
    for (command, more) in [("ingest", &few[..]), ("fetch", &[]), ("restart", &[])] {
        let output = bench(dir.path(), command, &[&program[..], more].concat());
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains("the directory is locked"), "{told}");
    }
}

#[test]
fn a_program_that_is_not_there_is_said_at_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = bench(dir.path(), "restart", &["--program", "/nowhere/assay"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--program"));
}
