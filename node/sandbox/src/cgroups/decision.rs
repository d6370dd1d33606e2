//! Decision whether the server can divide its cgroup: from facts, without changes.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::files::PROCESSES_FILE;
use super::{CHILD_CONTROLLERS_FILE, processes_of};

/// Name of the cgroup of the server.
pub const SERVER_NAME: &str = "assay-server";
/// Name of the cgroup of all sandboxes.
pub const SANDBOXES_NAME: &str = "assay-sandboxes";
/// File with the controllers that a cgroup may give to its children.
const CONTROLLERS_FILE: &str = "cgroup.controllers";
/// Type of the file system of cgroup v2.
const FILE_SYSTEM: &str = "cgroup2";
/// Controllers without which a sandbox cannot be limited.
const NEEDED: [&str; 2] = ["memory", "pids"];
const OWN_CGROUP: &str = "/proc/self/cgroup";
const MOUNTS: &str = "/proc/self/mountinfo";

/// Facts about the cgroup in which the server was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CgroupFacts {
    /// Cgroup to divide.
    pub root: PathBuf,
    /// Controllers that its children can have.
    pub controllers: Vec<String>,
    /// Processes of the cgroup, and of the server's one of an earlier start.
    pub processes: Vec<u32>,
    /// Directory or file that the server's user may not write to.
    pub unwritable: Option<PathBuf>,
}

/// Cgroup to divide, and what its children can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupPlan {
    pub root: PathBuf,
    /// Whether children can have shares of the processors.
    pub has_cpu: bool,
}

/// Answer whether the kernel can hold limits of whole sandboxes, in the words of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CgroupOffer {
    Available(CgroupPlan),
    /// Reason why not, with what to do about it.
    Missing(String),
}

impl fmt::Display for CgroupOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CgroupOffer::Available(_) => f.write_str("cgroup v2"),
            CgroupOffer::Missing(why) => write!(f, "no cgroup v2: {why}"),
        }
    }
}

impl CgroupOffer {
    /// Looks at the cgroup of this process. Changes nothing.
    pub fn of_this_process() -> CgroupOffer {
        let read = |path: &str| fs::read_to_string(path).map_err(|why| format!("{path} could not be read: {why}"));
        let found = read(OWN_CGROUP).and_then(|own| Ok((own, read(MOUNTS)?)));
        let plan = found.and_then(|(own, mounts)| {
            let directory = located(&own, &mounts)?;
            let facts = look(&directory)
                .map_err(|why| format!("the cgroup {} could not be read: {why}", directory.display()))?;
            decide(&facts, std::process::id())
        });
        match plan {
            Ok(plan) => CgroupOffer::Available(plan),
            Err(why) => CgroupOffer::Missing(why),
        }
    }
}

/// Returns the directory of a process's cgroup, from the texts of `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn located(own: &str, mounts: &str) -> Result<PathBuf, String> {
    let Some(own) = own.lines().find_map(|line| line.strip_prefix("0::")) else {
        return Err("the kernel has no cgroup v2: start a kernel that has it".to_owned());
    };
    let found: Vec<(PathBuf, PathBuf)> = mounts.lines().filter_map(parse_mount).collect();
    if found.is_empty() {
        return Err("it is not mounted: mount cgroup2 at /sys/fs/cgroup".to_owned());
    }
    // A later mount covers an earlier one at the same place.
    let visible = found.iter().rev().find_map(|(root, place)| {
        let below = Path::new(own).strip_prefix(root).ok()?;
        // Without the slash that an empty path adds.
        Some(if below.as_os_str().is_empty() { place.clone() } else { place.join(below) })
    });
    visible.ok_or_else(|| format!("the mounted part does not contain {own}: mount the cgroup of the server"))
}

/// Returns root and place of a mount of cgroup v2.
fn parse_mount(line: &str) -> Option<(PathBuf, PathBuf)> {
    let (mount, system) = line.split_once(" - ")?;
    if system.split(' ').next() != Some(FILE_SYSTEM) {
        return None;
    }
    let mut fields = mount.split(' ').skip(3).map(|field| PathBuf::from(field.replace("\\040", " ")));
    Some((fields.next()?, fields.next()?))
}

/// Reads the facts about a cgroup.
fn look(directory: &Path) -> io::Result<CgroupFacts> {
    // A server that was started among the cgroups of an earlier one uses these.
    let is_of_server = directory.file_name().is_some_and(|name| name == SERVER_NAME);
    let root = directory.parent().filter(|_| is_of_server).unwrap_or(directory).to_owned();
    let controllers = fs::read_to_string(root.join(CONTROLLERS_FILE))?;
    let mut processes = processes_of(&root)?;
    match processes_of(&root.join(SERVER_NAME)) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
        found => processes.extend(found.unwrap_or_default()),
    }
    let needed = [root.clone(), root.join(PROCESSES_FILE), root.join(CHILD_CONTROLLERS_FILE)];
    let unwritable = needed.into_iter().find(|path| rustix::fs::access(path, Access::WRITE_OK).is_err());
    let controllers = controllers.split_whitespace().map(str::to_owned).collect();
    Ok(CgroupFacts { root, controllers, processes, unwritable })
}

/// Decides whether the server with a process id can divide its cgroup. The error says what is missing.
pub fn decide(facts: &CgroupFacts, own: u32) -> Result<CgroupPlan, String> {
    let root = facts.root.display();
    let has = |name: &str| facts.controllers.iter().any(|controller| controller == name);
    let missing: Vec<&str> = NEEDED.into_iter().filter(|name| !has(name)).collect();
    if !missing.is_empty() {
        let missing = missing.join(" and ");
        return Err(format!("the cgroup {root} does not offer {missing}: delegate it to the server"));
    }
    if let Some(unwritable) = &facts.unwritable {
        let unwritable = unwritable.display();
        return Err(format!("the server may not write to {unwritable}: delegate the cgroup to the server's user"));
    }
    if facts.processes.iter().any(|process| *process != own) {
        return Err(format!("the cgroup {root} contains other processes: start the server in one of its own"));
    }
    Ok(CgroupPlan { root: facts.root.clone(), has_cpu: has("cpu") })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u32 = 71;
    const MOUNT: &str = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    const HYBRID: &str = "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
        32 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    /// Tree of directories that looks like a cgroup.
    struct FakeCgroup(tempfile::TempDir);

    impl FakeCgroup {
        fn new(controllers: &str, processes: &str) -> FakeCgroup {
            let fake = FakeCgroup(tempfile::tempdir().expect("a directory"));
            fake.put(CONTROLLERS_FILE, controllers);
            fake.put(PROCESSES_FILE, processes);
            fake.put(CHILD_CONTROLLERS_FILE, "");
            fake
        }

        fn path(&self) -> &Path {
            self.0.path()
        }

        fn put(&self, name: &str, text: &str) {
            let file = self.path().join(name);
            fs::create_dir_all(file.parent().expect("a parent")).expect("a directory");
            fs::write(file, text).expect("a file");
        }

        fn decided(&self, directory: &Path) -> Result<CgroupPlan, String> {
            decide(&look(directory).expect("facts"), OWN)
        }
    }

    #[test]
    fn the_cgroup_of_a_process_is_located() {
        let own = "0::/system.slice/assay.service\n";
        assert_eq!(located(own, MOUNT), Ok("/sys/fs/cgroup/system.slice/assay.service".into()));
        let hybrid = located(&format!("4:memory:/x\n{own}"), HYBRID);
        assert_eq!(hybrid, Ok("/sys/fs/cgroup/unified/system.slice/assay.service".into()));
        let part = MOUNT.replace(" / /sys", " /system.slice /sys");
        assert_eq!(located(own, &part), Ok("/sys/fs/cgroup/assay.service".into()));
        assert_eq!(located("0::/\n", MOUNT).map(PathBuf::into_os_string), Ok("/sys/fs/cgroup".into()));
        let spaced = MOUNT.replace("/sys/fs/cgroup", "/a\\040b");
        assert_eq!(located("0::/c\n", &spaced), Ok("/a b/c".into()));
    }

    #[test]
    fn a_cgroup_that_cannot_be_located_is_explained() {
        let of = |own: &str, mounts: &str| located(own, mounts).expect_err("no directory");
        assert!(of("4:memory:/x\n", MOUNT).contains("no cgroup v2"));
        assert!(
            of("0::/x\n", "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n").contains("not mounted")
        );
        assert!(of("0::/../other\n", &MOUNT.replace(" / /sys", " /assay /sys")).contains("/../other"));
    }

    #[test]
    fn a_delegated_cgroup_is_divided() {
        let fake = FakeCgroup::new("cpuset cpu io memory pids\n", "71\n");
        let plan = CgroupPlan { root: fake.path().to_owned(), has_cpu: true };
        assert_eq!(fake.decided(fake.path()), Ok(plan.clone()));
        fake.put("assay-server/cgroup.procs", "");
        assert_eq!(fake.decided(fake.path()), Ok(plan), "what an earlier start left is used again");
        let fake = FakeCgroup::new("memory pids\n", "");
        fake.put("assay-server/cgroup.procs", "71\n");
        let plan = CgroupPlan { root: fake.path().to_owned(), has_cpu: false };
        assert_eq!(fake.decided(&fake.path().join(SERVER_NAME)), Ok(plan));
        assert_eq!(CgroupOffer::Available(fake.decided(fake.path()).expect("a plan")).to_string(), "cgroup v2");
    }

    #[test]
    fn what_is_missing_is_named() {
        let of = |fake: &FakeCgroup| fake.decided(fake.path()).expect_err("something is missing");
        assert!(of(&FakeCgroup::new("cpu pids\n", "71\n")).contains("does not offer memory:"));
        assert!(of(&FakeCgroup::new("", "71\n")).contains("does not offer memory and pids:"));
        assert!(of(&FakeCgroup::new("memory pids\n", "71\n72\n")).contains("contains other processes"));
        let fake = FakeCgroup::new("memory pids\n", "71\n");
        fake.put("assay-server/cgroup.procs", "40\n");
        assert!(of(&fake).contains("contains other processes"), "a server that runs");
        let fake = FakeCgroup::new("memory pids\n", "71\n");
        fs::remove_file(fake.path().join(CHILD_CONTROLLERS_FILE)).expect("removed");
        assert!(of(&fake).contains("may not write to") && of(&fake).contains(CHILD_CONTROLLERS_FILE));
        let missing = CgroupOffer::Missing(of(&fake)).to_string();
        assert!(missing.starts_with("no cgroup v2: the server may not write to"), "{missing}");
    }
}
