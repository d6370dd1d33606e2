//! Memory, processor time and number of processes of a sandbox, read from `/proc`.

use std::fs;
use std::time::Duration;

/// Upper bound of the processes that one measurement looks at.
const PROCESSES_MAX: usize = 10_000;
/// Ticks of the kernel's clock in a second, the same on all Linux systems.
const TICKS_PER_SECOND: u64 = 100;

/// What the processes of a sandbox use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SandboxUsage {
    /// Memory of all processes; pages that several share count for each.
    pub memory_bytes: u64,
    /// Processor time of the processes that live, and of those that they waited for.
    pub processor: Duration,
    /// Processes and threads.
    pub threads: u64,
}

/// Measures a process and all that descend from it. Processes that end meanwhile are left out.
pub fn measure(root: u32) -> SandboxUsage {
    let mut usage = SandboxUsage::default();
    let mut waiting = vec![root];
    for _ in 0..PROCESSES_MAX {
        let Some(process) = waiting.pop() else { break };
        let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else { continue };
        let Some(parsed) = parse_stat(&stat) else { continue };
        usage.processor += parsed.processor;
        usage.threads += parsed.threads;
        usage.memory_bytes += memory_of(process);
        waiting.extend(children_of(process));
    }
    usage
}

/// Returns the memory of all processes, with shared pages divided between those that share them.
///
/// The kernel walks all page tables for it, which is dear: call it to confirm that a limit is passed.
pub fn measure_shared_memory(root: u32) -> u64 {
    let mut waiting = vec![root];
    let mut bytes = 0;
    for _ in 0..PROCESSES_MAX {
        let Some(process) = waiting.pop() else { break };
        let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup"));
        bytes += rollup.map_or_else(|_| memory_of(process), |rollup| kibibytes(&rollup, "Pss"));
        waiting.extend(children_of(process));
    }
    bytes
}

fn memory_of(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    kibibytes(&status, "RssAnon") + kibibytes(&status, "RssShmem")
}

/// Returns the children of all threads of a process.
fn children_of(process: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let read = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    let lists: Vec<String> = threads.flatten().map(read).collect();
    lists.iter().flat_map(|list| list.split_ascii_whitespace()).filter_map(|id| id.parse().ok()).collect()
}

fn kibibytes(text: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let value = lines.find(|(found, _)| *found == name).map(|(_, value)| value.trim());
    let number = value.and_then(|value| value.strip_suffix(" kB")).and_then(|number| number.trim().parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

#[derive(Debug, PartialEq, Eq)]
struct ProcessStat {
    processor: Duration,
    threads: u64,
}

/// Parses `/proc/<pid>/stat`. The name of the program may contain spaces and parentheses.
fn parse_stat(stat: &str) -> Option<ProcessStat> {
    let rest = &stat[stat.rfind(')')? + 1..];
    // The first field here is the third of the file, the state.
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let ticks = number(14)? + number(15)? + number(16)? + number(17)?;
    let processor = Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND);
    Some(ProcessStat { processor, threads: number(20)? })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::thread;

    use super::*;

    #[test]
    fn a_stat_with_a_strange_name_is_read() {
        let stat =
            "71 (a) b (c) S 1 71 71 0 -1 4194560 100 200 0 0 150 50 10 40 20 0 7 0 12 1000 50 18446744073709551615";
        let expected = ProcessStat { processor: Duration::from_millis(2500), threads: 7 };
        assert_eq!(parse_stat(stat), Some(expected));
        assert_eq!(parse_stat("71 (a"), None);
    }

    #[test]
    fn children_count_with_their_parent() {
        let script = "exec 3<&0; cat <&3 & wait";
        let mut parent = Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().expect("a shell");
        let has_both = (0..500).any(|_| {
            thread::sleep(Duration::from_millis(10));
            measure(parent.id()).threads == 2
        });
        let (usage, shared) = (measure(parent.id()), measure_shared_memory(parent.id()));
        // Both end with their input.
        drop(parent.stdin.take());
        parent.wait().expect("a shell");
        assert!(has_both && usage.memory_bytes > 0 && shared > 0, "{usage:?} {shared}");
        assert_eq!(measure(u32::MAX), SandboxUsage::default());
    }
}
