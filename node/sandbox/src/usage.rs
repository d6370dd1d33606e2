//! Memory, processor time, processes and files of a sandbox, read from `/proc`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use crate::jail::TEMP_PATH;

/// Upper bound of the processes that one measurement looks at.
const PROCESSES_MAX: usize = 10_000;
/// Ticks of the kernel's clock in a second, the same on all Linux systems.
const TICKS_PER_SECOND: u64 = 100;
/// Lines of the status of a process that count as its memory.
///
/// Page tables count too: a process can make gigabytes of them by reading memory that it never writes.
const MEMORY_LINES: [&str; 4] = ["RssAnon", "RssShmem", "VmPTE", "HugetlbPages"];
/// Lines of the rollup that divide shared pages between processes.
const DIVIDED_LINES: [&str; 2] = ["Pss_Anon", "Pss_Shmem"];

/// Resources that the processes of a sandbox use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SandboxUsage {
    /// Memory of all processes; pages that several share count for each.
    pub memory_bytes: u64,
    /// Processor time of the processes that live, and of those that they waited for.
    pub processor: Duration,
    pub processes: u64,
    /// Processes and threads.
    pub threads: u64,
}

/// Measures a process and all that descend from it. Processes that end meanwhile are left out.
///
/// The measurement ends early once it has found more than `threads_max` threads, because such a sandbox may start
/// processes faster than they can be counted.
pub fn measure(root: u32, threads_max: u64) -> SandboxUsage {
    let mut usage = SandboxUsage::default();
    walk(root, |process| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat"));
        if let Some(parsed) = stat.ok().as_deref().and_then(parse_stat) {
            usage.processor += parsed.processor;
            usage.processes += 1;
            usage.threads += parsed.threads;
            usage.memory_bytes += memory_of(process);
        }
        usage.threads <= threads_max
    });
    usage
}

/// Returns the memory of all processes, with shared pages divided between those that share them.
///
/// The kernel walks all page tables for it, which is dear: call it to confirm that a limit is passed.
pub fn measure_shared_memory(root: u32) -> u64 {
    let mut bytes = 0;
    walk(root, |process| {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup"));
        bytes += match rollup {
            Ok(rollup) => sum(&rollup, &DIVIDED_LINES) + sum(&status, &MEMORY_LINES[2..]),
            Err(_) => sum(&status, &MEMORY_LINES),
        };
        true
    });
    bytes
}

/// Returns the number of open files of all processes. Those of processes that hide them are left out.
pub fn count_open_files(root: u32) -> u64 {
    let mut count = 0;
    walk(root, |process| {
        count += fs::read_dir(format!("/proc/{process}/fd")).map_or(0, |listed| listed.count() as u64);
        true
    });
    count
}

/// Returns the number of files in the temporary directory of a private root, directories included.
///
/// `temp_bytes` is the size of that directory. Before the private root is ready there are none.
pub fn count_temporary_files(root: u32, temp_bytes: u64) -> u64 {
    let own = fs::metadata(TEMP_PATH).map(|found| found.dev()).ok();
    let mut count = 0;
    for process in family(root) {
        let place = format!("/proc/{process}/root{TEMP_PATH}");
        let is_private = fs::metadata(&place).is_ok_and(|found| Some(found.dev()) != own);
        let Some(found) = rustix::fs::statvfs(Path::new(&place)).ok().filter(|_| is_private) else { continue };
        if found.f_blocks.saturating_mul(found.f_frsize) == temp_bytes {
            count = count.max(found.f_files.saturating_sub(found.f_ffree));
        }
    }
    count
}

/// Returns the ids of a process and of all that descend from it.
pub(crate) fn family(root: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    walk(root, |process| {
        found.insert(process);
        true
    });
    found
}

/// Visits a process and all that descend from it, parents first, until a visit returns false.
///
/// A process that has ended is visited no more.
fn walk(root: u32, mut visit: impl FnMut(u32) -> bool) {
    let mut waiting = vec![root];
    for _ in 0..PROCESSES_MAX {
        let Some(process) = waiting.pop() else { break };
        let Some(children) = children_of(process) else { continue };
        if !visit(process) {
            break;
        }
        waiting.extend(children);
    }
}

/// Returns the memory of one process.
pub(crate) fn memory_of(process: u32) -> u64 {
    sum(&fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default(), &MEMORY_LINES)
}

/// Returns the session of a process.
pub(crate) fn session_of(process: u32) -> Option<u32> {
    parse_stat(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?).map(|parsed| parsed.session)
}

/// Returns whether a process is stopped by a signal.
pub(crate) fn is_stopped(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"));
    stat.ok().as_deref().and_then(parse_stat).is_some_and(|parsed| parsed.is_stopped)
}

/// Returns the ids of the threads of a process.
pub(crate) fn threads_of(process: u32) -> Vec<u32> {
    let listed = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns whether a process has ended, also if its parent has not yet noticed.
pub(crate) fn has_ended(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"));
    stat.ok().as_deref().and_then(parse_stat).is_none_or(|parsed| parsed.has_ended)
}

/// Returns the children of all threads of a process, or `None` if it has ended.
pub(crate) fn children_of(process: u32) -> Option<Vec<u32>> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let read = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    let lists: Vec<String> = threads.flatten().map(read).collect();
    Some(lists.iter().flat_map(|list| list.split_ascii_whitespace()).filter_map(|id| id.parse().ok()).collect())
}

/// Returns the bytes in lines of a status.
fn sum(text: &str, names: &[&str]) -> u64 {
    names.iter().map(|name| kibibytes(text, name)).sum()
}

fn kibibytes(text: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let value = lines.find(|(found, _)| *found == name).map(|(_, value)| value.trim());
    let number = value.and_then(|value| value.strip_suffix(" kB")).and_then(|number| number.trim().parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

#[derive(Debug, PartialEq, Eq)]
struct ProcessStat {
    is_stopped: bool,
    has_ended: bool,
    session: u32,
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
    let session = u32::try_from(number(6)?).ok()?;
    let state = *fields.first()?;
    let (is_stopped, has_ended) = (state == "T", matches!(state, "Z" | "X"));
    Some(ProcessStat { is_stopped, has_ended, session, processor, threads: number(20)? })
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
        let (is_stopped, has_ended) = (false, false);
        let processor = Duration::from_millis(2500);
        let expected = ProcessStat { is_stopped, has_ended, session: 71, processor, threads: 7 };
        assert_eq!(parse_stat(stat), Some(expected));
        let ended = parse_stat(&stat.replace(" S 1 ", " Z 1 ")).expect("a stat");
        assert!(ended.has_ended && !ended.is_stopped);
        assert_eq!(parse_stat("71 (a"), None);
    }

    #[test]
    fn memory_includes_page_tables() {
        let status =
            "Name:\tx\nRssAnon:\t     100 kB\nRssFile:\t 9000 kB\nRssShmem:\t 20 kB\nVmPTE:\t 3 kB\nThreads:\t1\n";
        assert_eq!(sum(status, &MEMORY_LINES), 123 << 10);
    }

    #[test]
    fn children_count_with_their_parent() {
        let script = "exec 3<&0; cat <&3 & wait";
        let mut parent = Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().expect("a shell");
        let has_both = (0..500).any(|_| {
            thread::sleep(Duration::from_millis(10));
            measure(parent.id(), u64::MAX).threads == 2
        });
        let (usage, shared) = (measure(parent.id(), u64::MAX), measure_shared_memory(parent.id()));
        let (found, files) = (family(parent.id()), count_open_files(parent.id()));
        let early = measure(parent.id(), 0).processes;
        // Both end with their input.
        drop(parent.stdin.take());
        parent.wait().expect("a shell");
        assert!(has_both && usage.memory_bytes > 0 && shared > 0, "{usage:?} {shared}");
        assert_eq!(early, 1, "it ends with the first process that passes the limit");
        assert!(usage.processes == 2 && found.len() == 2 && files >= 6, "{usage:?} {found:?} {files}");
        assert_eq!(measure(u32::MAX, u64::MAX), SandboxUsage::default());
        assert!(family(u32::MAX).is_empty());
    }
}
