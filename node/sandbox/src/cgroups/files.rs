//! Files of cgroups, which the kernel makes: they are written to, and never created.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// File with the processes of a cgroup; a process whose id is written to it moves there.
pub(crate) const PROCESSES_FILE: &str = "cgroup.procs";
/// File with the share of the processors that a cgroup has beside its siblings.
pub(crate) const WEIGHT_FILE: &str = "cpu.weight";
/// Id that stands for the process that writes it.
const OWN_ID: &str = "0";

/// Writes a value in one call, as the kernel expects it.
pub(crate) fn written(file: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(file)?.write_all(value.as_bytes())
}

/// Moves this process, with all its threads, to a cgroup.
pub(crate) fn entered(directory: &Path) -> io::Result<()> {
    written(&directory.join(PROCESSES_FILE), OWN_ID)
}

/// Returns a count in a file of lines such as `oom_kill 3`. A line that the kernel does not have is 0.
pub(crate) fn count_in(text: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(found, _)| *found == name).and_then(|(_, count)| count.trim().parse().ok()).unwrap_or(0)
}
