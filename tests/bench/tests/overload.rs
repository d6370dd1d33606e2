//! The built program under four times the load it takes: the one threshold of the benchmarks that is a test, since it
//! is about arrival, refusals, and memory. Times need a quiet machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const BENCH: &str = env!("CARGO_BIN_EXE_assay-bench");

/// Returns `ASSAY_BIN`, or the program beside the benchmark, as cargo builds it for the workspace.
fn program() -> PathBuf {
    let beside = || Path::new(BENCH).with_file_name("assay");
    let program = std::env::var_os("ASSAY_BIN").map_or_else(beside, PathBuf::from);
    assert!(program.is_file(), "no program at {}: build it with `cargo build -p assay`", program.display());
    program
}

/// Thresholds that hold whatever else the machine does.
const PROMISED: [&str; 4] =
    ["rows dropped", "rows offered that are not there", "resident, peak", "refusals of light clients"];

#[test]
fn four_times_what_it_takes_arrives_and_light_clients_are_never_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("out.json");
    let mut bench = Command::new(BENCH);
    bench.args(["overload", "--seconds", "6", "--buffer", "128MiB", "--dir"]).arg(dir.path()).arg("--json").arg(&out);
    let output = bench.arg("--program").arg(program()).output().expect("the bench ran");
    let (table, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}");
    let file: Value = serde_json::from_slice(&std::fs::read(&out).expect("the figures")).expect("JSON");
    for name in PROMISED {
        let figures = file["figures"].as_array().expect("figures");
        let figure = figures.iter().find(|figure| figure["name"] == name).expect(name);
        let (value, most) = (figure["value"].as_f64(), figure["wanted"]["at_most"].as_f64());
        assert!(value.expect("a value") <= most.expect("a bound"), "{name}:\n{table}");
    }
    println!("{table}");
}
