//! `functions` in a short form on the built program: completion, and results that do not depend on time. It needs root,
//! for a control group.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const BENCH: &str = env!("CARGO_BIN_EXE_assay-bench");
/// Programs that code functions need.
const NEEDED: [&str; 3] = ["bwrap", "node", "python3"];
/// Complaints about a machine that cannot count processor time.
const UNCOUNTED: [&str; 2] = ["there is no cgroup v2", "run the benchmark as root"];
/// Figures of calls at once, with values that hold whatever else the machine does.
const PROMISED: [&str; 2] = ["6 calls at once: answered", "6 calls at once: greedy ones ended by their limit"];

/// Returns `ASSAY_BIN`, or the program beside the benchmark, as cargo builds it for the workspace.
fn program() -> PathBuf {
    let beside = || Path::new(BENCH).with_file_name("assay");
    let program = std::env::var_os("ASSAY_BIN").map_or_else(beside, PathBuf::from);
    assert!(program.is_file(), "no program at {}: build it with `cargo build -p assay`", program.display());
    program
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn not_covered(why: &str) {
    assert_ne!(std::env::var("ASSAY_REQUIRE").as_deref(), Ok("all"), "{why}");
    eprintln!("NOT COVERED: the benchmark of functions: {why}");
}

#[test]
fn functions_are_measured_beside_bare_interpreters() {
    if let Some(absent) = NEEDED.iter().find(|program| !is_there(program)) {
        return not_covered(&format!("there is no {absent}"));
    }
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("out.json");
    let mut bench = Command::new(BENCH);
    bench.args(["functions", "--seconds", "1", "--rounds", "1", "--starts", "2", "--rows", "0"]);
    bench.args(["--crowd", "6", "--crowd-seconds", "12", "--dir"]).arg(dir.path()).arg("--json").arg(&out);
    let output = bench.arg("--program").arg(program()).output().expect("the bench ran");
    let (table, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if let Some(why) = UNCOUNTED.iter().find(|why| told.contains(**why)) {
        return not_covered(why);
    }
    assert!(output.status.success(), "{told}");
    let file: Value = serde_json::from_slice(&std::fs::read(&out).expect("the figures")).expect("JSON");
    let figures = file["figures"].as_array().expect("figures");
    let figure = |name: &str| figures.iter().find(|figure| figure["name"] == name).unwrap_or_else(|| panic!("{name}"));
    for name in PROMISED {
        let (value, least) = (figure(name)["value"].as_f64(), figure(name)["wanted"]["at_least"].as_f64());
        assert!(value.expect("a value") >= least.expect("a bound"), "{name}:\n{table}");
    }
    for language in ["JavaScript", "Python"] {
        for name in ["a warm call, p50", "calls a CPU second", "a cold start, CPU"] {
            let value = figure(&format!("{language}: {name}"))["value"].as_f64().expect("a value");
            assert!(value > 0.0, "{language}: {name}:\n{table}");
        }
    }
}
