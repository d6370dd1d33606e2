//! Processor time and memory of a server with all processes that descend from it.
//!
//! A worker ends with its process table, and the kernel then adds its time to no parent. A control group counts it.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::process::TICKS_PER_SECOND;

/// Processes that one reading looks at.
const PROCESSES_MAX: usize = 20_000;
/// Looks at a group whose processes are ending.
const REMOVALS_MAX: usize = 100;
const REMOVAL_LOOK: Duration = Duration::from_millis(20);

/// Control group of a server and its descendants. It is removed on drop, after its processes.
#[derive(Debug)]
pub struct ProcessGroup {
    root: u32,
    path: PathBuf,
}

impl ProcessGroup {
    /// Moves a process into a new group, with all that it will start.
    pub fn of(root: u32) -> anyhow::Result<ProcessGroup> {
        let (mounts, own) = (fs::read_to_string("/proc/mounts")?, fs::read_to_string("/proc/self/cgroup")?);
        let parent = own_group(&mounts, &own).context("there is no cgroup v2, which counts the time of workers")?;
        let path = parent.join(format!("assay-bench-{root}"));
        fs::create_dir(&path).with_context(|| format!("creating {}: run the benchmark as root", path.display()))?;
        let group = ProcessGroup { root, path };
        fs::write(group.path.join("cgroup.procs"), root.to_string()).context("moving the server into a group")?;
        Ok(group)
    }

    /// Returns the processor seconds of all processes that were ever in the group.
    pub fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let path = self.path.join("cpu.stat");
        let stat = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        seconds_of(&stat).with_context(|| format!("{} in an unknown form", path.display()))
    }

    /// Returns the bytes of memory of each worker with its descendants, by the id of the worker.
    pub fn worker_bytes(&self) -> BTreeMap<u32, u64> {
        let bytes = |worker: u32| below(worker).into_iter().map(private_bytes).sum();
        children(self.root).into_iter().map(|worker| (worker, bytes(worker))).collect()
    }

    fn remove(&self) -> anyhow::Result<()> {
        for _ in 0..REMOVALS_MAX {
            match fs::remove_dir(&self.path) {
                Err(why) if why.kind() == ErrorKind::ResourceBusy => std::thread::sleep(REMOVAL_LOOK),
                other => return other.context("removing the group"),
            }
        }
        bail!("{} still has processes", self.path.display())
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Err(why) = self.remove() {
            eprintln!("{} is left behind: {why:#}", self.path.display());
        }
    }
}

/// Returns the processor seconds of the children that this program has waited for.
pub fn waited_seconds() -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat").context("reading /proc/self/stat")?;
    waited_seconds_of(&stat).context("/proc/self/stat in an unknown form")
}

/// Returns the directory of the group that a process is in, given its mounts and its groups.
fn own_group(mounts: &str, groups: &str) -> Option<PathBuf> {
    let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mount = mounts.find(|fields| fields.get(2) == Some(&"cgroup2"))?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new(mount.get(1)?).join(path))
}

fn seconds_of(cpu_stat: &str) -> Option<f64> {
    let microseconds = cpu_stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    Some(microseconds.trim().parse::<f64>().ok()? / 1e6)
}

/// Returns the seconds in the sixteenth and seventeenth fields of a `stat` line.
fn waited_seconds_of(stat: &str) -> Option<f64> {
    let mut ticks = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(13).map(str::parse::<f64>);
    Some((ticks.next()?.ok()? + ticks.next()?.ok()?) / TICKS_PER_SECOND)
}

/// Returns a process and all that descend from it.
fn below(root: u32) -> Vec<u32> {
    let (mut all, mut at) = (vec![root], 0);
    while at < all.len().min(PROCESSES_MAX) {
        all.extend(children(all[at]));
        at += 1;
    }
    all
}

fn children(process: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let read = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    let lists: Vec<String> = threads.flatten().map(read).collect();
    lists.iter().flat_map(|list| list.split_ascii_whitespace()).filter_map(|id| id.parse().ok()).collect()
}

/// Returns the memory of a process without files. Pages that several processes share count for each.
fn private_bytes(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let kibibytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0)
    };
    (kibibytes("RssAnon:") + kibibytes("RssShmem:")) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel_are_read() {
        let mounts =
            "proc /proc proc rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";
        assert_eq!(own_group(mounts, "4:cpu:/a\n0::/user/b\n"), Some("/sys/fs/cgroup/user/b".into()));
        assert_eq!(own_group("proc /proc proc rw 0 0\n", "0::/\n"), None);
        assert_eq!(seconds_of("usage_usec 2500000\nuser_usec 1\n"), Some(2.5));
        assert_eq!(seconds_of("user_usec 1\n"), None);
        assert_eq!(waited_seconds_of("7 (a) b) Z 1 2 3 4 5 6 7 8 9 10 150 50 30 10 20 0 1"), Some(0.4));
        assert_eq!(waited_seconds_of("7 (a"), None);
    }

    #[test]
    fn workers_have_their_memory_and_that_of_their_children() {
        let script = "sleep 60 & echo ready; wait";
        let mut outer = std::process::Command::new("sh");
        let outer = outer.args(["-c", script]).stdout(std::process::Stdio::piped()).spawn();
        let mut outer = outer.expect("a shell");
        let mut told = [0; 6];
        std::io::Read::read_exact(outer.stdout.as_mut().expect("output"), &mut told).expect("the shell");
        let inner = children(outer.id());
        assert!(inner.len() == 1 && below(outer.id()).len() == 2 && private_bytes(inner[0]) > 0);
        let id = rustix::process::Pid::from_raw(inner[0] as i32).expect("an id");
        rustix::process::kill_process(id, rustix::process::Signal::KILL).expect("killed");
        outer.wait().expect("the shell");
    }
}
