//! Short chaos tests that run with every test: the whole harness in processes of its own. Tests that need root are in
//! the binary alone.

use std::io::Write;
use std::process::Command;

/// Runs a test; any other verdict than valid fails with its output, including the command that repeats it.
fn storm(arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_assay-chaos")).args(arguments).output().expect("starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    println!("{said}");
    // To the stream itself: what a passing test prints is not shown.
    for lacking in said.lines().filter_map(|line| line.trim().strip_prefix("not covered: ")) {
        let _ = writeln!(std::io::stderr(), "NOT COVERED by {}: {lacking}", arguments.join(" "));
    }
}

#[test]
fn ten_crashes_lose_nothing_that_was_acknowledged() {
    storm(&["crash", "--runs", "10"]);
}

#[test]
fn ten_kills_of_the_program_under_http_load_lose_nothing_that_was_acknowledged() {
    storm(&["http-crash", "--runs", "10"]);
}

#[test]
fn fifty_flipped_bits_are_detected_or_harmless() {
    storm(&["bit-flip", "--flips", "50"]);
}

#[test]
fn simulated_clusters_keep_what_they_promise() {
    storm(&["sim", "--seeds", "12"]);
}

#[test]
fn a_fault_that_there_is_not_is_refused() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay-chaos"));
    let output = command.args(["sabotage", "--only", "no-such-fault"]).output().expect("starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    let expected = if cfg!(debug_assertions) { "there is no fault `no-such-fault`" } else { "use debug builds" };
    assert!(output.status.code() == Some(2) && errors.contains(expected), "{errors}");
}

#[test]
fn help_names_every_storm() {
    let output = Command::new(env!("CARGO_BIN_EXE_assay-chaos")).arg("--help").output().expect("starts");
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    for name in [
        "crash",
        "http-crash",
        "power-cut",
        "bit-flip",
        "disk-full",
        "sync-fails",
        "run",
        "sim",
        "check",
        "old-leader",
        "far-apart",
        "upgrade",
        "scoring",
        "sabotage",
    ] {
        assert!(help.contains(name), "{name} in {help}");
    }
}
