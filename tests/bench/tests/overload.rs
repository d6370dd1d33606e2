//! The built program, asked for four times what it can take: the one promise of the bench that is a test, since it is
//! about what is answered and what memory it takes. Its one time is held against the same server's own calm.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const BENCH: &str = env!("CARGO_BIN_EXE_assay-bench");

/// `ASSAY_BIN`, or the program beside the bench, as cargo builds it for the workspace.
fn program() -> PathBuf {
    let beside = || Path::new(BENCH).with_file_name("assay");
    let program = std::env::var_os("ASSAY_BIN").map_or_else(beside, PathBuf::from);
    assert!(program.is_file(), "no program at {}: build it with `cargo build -p assay`", program.display());
    program
}

#[test]
fn four_times_what_it_can_take_is_refused_in_order_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("out.json");
    let mut bench = Command::new(BENCH);
    bench.args(["overload", "--seconds", "30", "--dir"]).arg(dir.path()).arg("--json").arg(&out);
    let output = bench.arg("--program").arg(program()).output().expect("the bench ran");
    let (table, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}");
    let file: Value = serde_json::from_slice(&std::fs::read(&out).expect("the figures")).expect("JSON");
    let promised = |figure: &&Value| figure["wanted"].is_object();
    assert_eq!(file["figures"].as_array().expect("figures").iter().filter(promised).count(), 5, "{table}");
    assert!(!table.contains("MISSED"), "{table}\n{}", file["details"]["storm"]["others"]);
    println!("{table}");
}
