//! Cgroup of one sandbox: its limits, its members, and what the kernel counted against the limits.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;

use super::files::{PROCESSES_FILE, WEIGHT_FILE, count_in, written};
use super::leaving::{LeavingCgroups, kill};
use super::{CgroupError, processes_of};
use crate::jail::JailLimits;
use crate::usage::{children_of, family, has_ended};

/// Memory beyond the limit of a sandbox, for what the watcher does not count: stacks of the kernel, open files, inodes.
///
/// The watcher also names a limit more often before the kernel ends the sandbox.
pub const MEMORY_MARGIN_BYTES: u64 = 32 << 20;
/// Share of the processors of a sandbox that yields to others. The lowest that there is.
const YIELDING_WEIGHT: &str = "1";
/// Upper bound of the attempts to place all processes of a sandbox.
const PLACING_ATTEMPTS_MAX: usize = 20;
/// Upper bound of the processes of one attempt. Before its start, a sandbox has three.
const PLACED_MAX: usize = 64;
/// File that ends all processes of a cgroup if one has to end for want of memory.
const GROUP_FILE: &str = "memory.oom.group";
const MEMORY_FILE: &str = "memory.max";
const SWAP_FILE: &str = "memory.swap.max";
const PROCESS_LIMIT_FILE: &str = "pids.max";
const MEMORY_EVENTS_FILE: &str = "memory.events";
const PROCESS_EVENTS_FILE: &str = "pids.events";

/// Limit that a sandbox has passed, as the kernel found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededLimit {
    Memory,
    Processes,
}

/// Cgroup of a sandbox. Dropping it kills its processes and removes it.
#[derive(Debug)]
pub struct SandboxCgroup {
    directory: PathBuf,
    has_weights: bool,
    /// Processes that the kernel had refused before the exchange that runs.
    refused_before: AtomicU64,
    leaving: LeavingCgroups,
}

impl SandboxCgroup {
    pub(super) fn new(directory: PathBuf, has_weights: bool, leaving: LeavingCgroups) -> SandboxCgroup {
        SandboxCgroup { directory, has_weights, refused_before: AtomicU64::new(0), leaving }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn set_limits(&self, limits: &JailLimits) -> Result<(), CgroupError> {
        let memory = limits.memory_bytes.saturating_add(MEMORY_MARGIN_BYTES).to_string();
        let values =
            [(MEMORY_FILE, memory), (PROCESS_LIMIT_FILE, limits.processes.to_string()), (GROUP_FILE, "1".into())];
        for (name, value) in values {
            self.set(name, &value)?;
        }
        // A kernel that does not count swap has no such file.
        match written(&self.directory.join(SWAP_FILE), "0") {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
                Err(CgroupError::new("writing to", &self.directory.join(SWAP_FILE), why))
            }
            _ => Ok(()),
        }
    }

    /// Moves a process and all that descend from it here.
    ///
    /// Parents move first, and only then are their children listed. What a member starts is a member, so none is missed.
    pub fn place(&self, root: u32) -> Result<(), CgroupError> {
        for _ in 0..PLACING_ATTEMPTS_MAX {
            self.move_family(root)?;
            let processes = processes_of(&self.directory)
                .map_err(|why| CgroupError::new("reading the processes of", &self.directory, why))?;
            let members: BTreeSet<u32> = processes.into_iter().collect();
            if family(root).into_iter().all(|process| members.contains(&process) || has_ended(process)) {
                return Ok(());
            }
        }
        Err(CgroupError::new("placing a sandbox in", &self.directory, Errno::AGAIN))
    }

    fn move_family(&self, root: u32) -> Result<(), CgroupError> {
        let mut waiting = vec![root];
        for _ in 0..PLACED_MAX {
            let Some(process) = waiting.pop() else { break };
            match written(&self.directory.join(PROCESSES_FILE), &process.to_string()) {
                // It has ended.
                Err(why) if why.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => {}
                Err(why) => return Err(CgroupError::new("moving a process to", &self.directory, why)),
                Ok(()) => waiting.extend(children_of(process).unwrap_or_default()),
            }
        }
        Ok(())
    }

    /// Notes the start of an exchange. What the kernel refused before does not count against it.
    pub fn begin(&self) {
        self.refused_before.store(self.refused(), Ordering::Relaxed);
    }

    /// Returns the limit that the sandbox has passed: its memory at any time, or its processes since the last start of
    /// an exchange.
    pub fn exceeded(&self) -> Option<ExceededLimit> {
        let events = fs::read_to_string(self.directory.join(MEMORY_EVENTS_FILE)).unwrap_or_default();
        if is_out_of_memory(&events) {
            return Some(ExceededLimit::Memory);
        }
        (self.refused() > self.refused_before.load(Ordering::Relaxed)).then_some(ExceededLimit::Processes)
    }

    /// Makes the sandbox yield to others, until its end.
    pub fn yield_processors(&self) {
        if self.has_weights {
            // It only yields sooner; limits hold without it.
            let _ = written(&self.directory.join(WEIGHT_FILE), YIELDING_WEIGHT);
        }
    }

    /// Kills the processes of the sandbox.
    pub(crate) fn kill(&self) {
        kill(&self.directory);
    }

    /// Returns how many processes and threads the kernel has refused.
    fn refused(&self) -> u64 {
        count_in(&fs::read_to_string(self.directory.join(PROCESS_EVENTS_FILE)).unwrap_or_default(), "max")
    }

    fn set(&self, name: &str, value: &str) -> Result<(), CgroupError> {
        let file = self.directory.join(name);
        written(&file, value).map_err(|why| CgroupError::new("writing to", &file, why))
    }
}

impl Drop for SandboxCgroup {
    fn drop(&mut self) {
        self.leaving.remove(std::mem::take(&mut self.directory));
    }
}

/// Returns whether processes were killed because this cgroup reached its limit.
///
/// A process that was killed because the whole machine had no memory is counted too, but not as `oom`.
fn is_out_of_memory(events: &str) -> bool {
    let killed = count_in(events, "oom_kill").max(count_in(events, "oom_group_kill"));
    count_in(events, "oom") > 0 && killed > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ground() -> (tempfile::TempDir, SandboxCgroup) {
        let ground = tempfile::tempdir().expect("a directory");
        let directory = ground.path().join("sandbox-1");
        fs::create_dir(&directory).expect("a directory");
        let cgroup = SandboxCgroup::new(directory, true, LeavingCgroups::start().expect("a thread"));
        (ground, cgroup)
    }

    fn put(cgroup: &SandboxCgroup, name: &str, text: &str) {
        fs::write(cgroup.directory().join(name), text).expect("a file");
    }

    fn read(cgroup: &SandboxCgroup, name: &str) -> String {
        fs::read_to_string(cgroup.directory().join(name)).expect("a file")
    }

    #[test]
    fn limits_are_written_with_their_margin() {
        let (_ground, cgroup) = ground();
        let why = cgroup.set_limits(&JailLimits::default()).unwrap_err().to_string();
        assert!(why.starts_with("writing to ") && why.contains("memory.max"), "{why}");
        for name in [MEMORY_FILE, PROCESS_LIMIT_FILE, GROUP_FILE] {
            put(&cgroup, name, "");
        }
        cgroup.set_limits(&JailLimits::default()).expect("limits, without swap");
        put(&cgroup, SWAP_FILE, "");
        put(&cgroup, WEIGHT_FILE, "");
        cgroup.set_limits(&JailLimits::default()).expect("limits");
        cgroup.yield_processors();
        let expected = [
            (MEMORY_FILE, (544 << 20).to_string()),
            (PROCESS_LIMIT_FILE, "128".to_owned()),
            (GROUP_FILE, "1".to_owned()),
            (SWAP_FILE, "0".to_owned()),
            (WEIGHT_FILE, "1".to_owned()),
        ];
        for (name, value) in expected {
            assert_eq!(read(&cgroup, name), value, "{name}");
        }
    }

    #[test]
    fn a_refused_process_counts_in_its_exchange_only() {
        let (_ground, cgroup) = ground();
        assert_eq!(cgroup.exceeded(), None, "a cgroup that is gone has no events");
        put(&cgroup, PROCESS_EVENTS_FILE, "max 3\n");
        assert_eq!(cgroup.exceeded(), Some(ExceededLimit::Processes));
        cgroup.begin();
        assert_eq!(cgroup.exceeded(), None);
        put(&cgroup, PROCESS_EVENTS_FILE, "max 4\n");
        assert_eq!(cgroup.exceeded(), Some(ExceededLimit::Processes));
        put(&cgroup, MEMORY_EVENTS_FILE, "low 0\nhigh 0\nmax 9\noom 1\noom_kill 2\noom_group_kill 1\n");
        assert_eq!(cgroup.exceeded(), Some(ExceededLimit::Memory));
    }

    #[test]
    fn memory_of_the_machine_is_no_limit_of_a_sandbox() {
        assert!(is_out_of_memory("max 4\noom 1\noom_kill 1\n"));
        assert!(!is_out_of_memory("max 0\noom 0\noom_kill 1\n"), "the machine ran out of memory");
        assert!(!is_out_of_memory("max 40\noom 1\noom_kill 0\n"), "the kernel found memory");
        assert!(!is_out_of_memory(""));
    }
}
