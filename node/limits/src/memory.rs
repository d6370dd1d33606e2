//! Size of the machine's memory, from which default budgets are derived.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Size assumed if the system does not report one.
const UNKNOWN_BYTES: u64 = 2 << 30;

/// Returns the memory that this process may use, in bytes.
///
/// This is the machine's memory or the limit of the control group, whichever is lower. It is read once.
pub fn memory_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| read(Path::new("/")))
}

/// Returns a fraction of the memory within bounds.
///
/// For example, `memory_share(32, 64 << 20, 512 << 20)` is a 32nd of the memory, from 64 to 512 MiB.
pub fn memory_share(parts: u64, min: u64, max: u64) -> u64 {
    (memory_bytes() / parts.max(1)).clamp(min, max.max(min))
}

fn read(root: &Path) -> u64 {
    let limits = groups(root).into_iter().filter_map(|file| limit(&file));
    let machine = fs::read_to_string(root.join("proc/meminfo")).ok().and_then(|text| total(&text));
    limits.chain(machine).min().unwrap_or(UNKNOWN_BYTES)
}

/// Returns the files that may hold a memory limit, for versions 1 and 2 of control groups.
///
/// They belong to the control group of the process and to its ancestors. In a container, the own group is often mounted
/// as the root.
fn groups(root: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut files = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (mount, name) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|one| one == "memory") => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        let own = Path::new(path.trim_start_matches('/'));
        files.extend(own.ancestors().map(|group| root.join(mount).join(group).join(name)));
    }
    files
}

/// Reads a limit in bytes. Returns `None` for `max` or a missing file.
///
/// Version 1 expresses "no limit" as a number above any memory size.
fn limit(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a root directory with the given files.
    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        root
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:        8388608 kB\nMemFree: 1 kB\n");

    #[track_caller]
    fn reads(files: &[(&str, &str)], bytes: u64) {
        assert_eq!(read(root(&[&[MEMINFO], files].concat()).path()), bytes);
    }

    #[test]
    fn the_lowest_limit_counts() {
        reads(&[], 8 << 30);
        let version2 = ("proc/self/cgroup", "0::/system.slice/assay.service\n");
        reads(&[version2, ("sys/fs/cgroup/system.slice/assay.service/memory.max", "max\n")], 8 << 30);
        reads(&[version2, ("sys/fs/cgroup/system.slice/assay.service/memory.max", "1073741824\n")], 1 << 30);
        reads(&[version2, ("sys/fs/cgroup/system.slice/memory.max", "2147483648\n")], 2 << 30);
        reads(&[("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", "3221225472\n")], 3 << 30);
        let version1 = ("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n");
        reads(&[version1, ("sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n")], 512 << 20);
        reads(&[version1, ("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n")], 8 << 30);
        assert_eq!(read(root(&[]).path()), UNKNOWN_BYTES);
    }

    #[test]
    fn a_share_has_bounds() {
        assert_eq!(memory_share(1 << 40, 64 << 20, 512 << 20), 64 << 20);
        assert_eq!(memory_share(1, 1 << 20, 2 << 20), 2 << 20);
    }
}
