//! Capabilities of this machine. A missing one is reported as not covered, never skipped silently.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// Set by who has installed everything: then what is missing is a failure.
const REQUIRE: &str = "ASSAY_REQUIRE";

pub fn everything_required() -> bool {
    std::env::var_os(REQUIRE).is_some_and(|value| value == "all")
}

/// Environment variable with the path of the product's program, if it is not beside this one.
const PROGRAM_VARIABLE: &str = "ASSAY_BIN";

/// Returns whether this process runs as root.
pub fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    ids.is_some_and(|ids| ids.split_ascii_whitespace().nth(1) == Some("0"))
}

/// Returns whether `program` is on the path.
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]).any(|dir| dir.join(program).is_file())
}

/// Returns the missing requirements, one line each.
pub fn missing(root: bool, programs: &[&str]) -> Vec<String> {
    let mut missing = Vec::new();
    if root && !is_root() {
        missing.push("root".to_owned());
    }
    if root && !Path::new("/dev/loop-control").exists() {
        missing.push("loop devices".to_owned());
    }
    missing.extend(programs.iter().filter(|program| !has(program)).map(|program| format!("the program {program}")));
    missing
}

/// Returns the product's program beside this one, if it was built.
pub fn assay_program() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?.with_file_name("assay");
    program.is_file().then_some(program)
}

/// The program that the whole is tried with: the one that is named, or the one from the same build.
pub fn program() -> anyhow::Result<PathBuf> {
    if let Some(given) = std::env::var_os(PROGRAM_VARIABLE) {
        return Ok(given.into());
    }
    assay_program()
        .with_context(|| format!("assay is not built: cargo build -p assay, or name it with {PROGRAM_VARIABLE}"))
}
