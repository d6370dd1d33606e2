//! Limits of whole sandboxes that the kernel holds, by cgroup v2 where the server has a delegated subtree.
//!
//! ```text
//! cgroup of the server's start
//! ├── assay-server      the server, with all its threads
//! └── assay-sandboxes   one cgroup for each sandbox
//! ```
//! | module | contents |
//! |---|---|
//! | [`decision`] | whether a subtree can be used, decided from facts |
//! | `files` | files of cgroups |
//! | [`sandbox`] | cgroup of one sandbox: limits, members, events |
//! | `leaving` | removal of cgroups whose processes may still be ending |
//!
//! A process and its threads are in one cgroup, so the server itself has to leave the one that it divides.

pub mod decision;
mod files;
mod leaving;
pub mod sandbox;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io, thread};

use rustix::io::Errno;

use crate::jail::JailLimits;
use decision::{CgroupPlan, SANDBOXES_NAME, SERVER_NAME};
use files::{PROCESSES_FILE, WEIGHT_FILE, entered, written};
use leaving::{LeavingCgroups, remove_cgroup};
use sandbox::SandboxCgroup;

/// File with the controllers that the children of a cgroup have.
const CHILD_CONTROLLERS_FILE: &str = "cgroup.subtree_control";
/// Controllers that limits need.
const NEEDED_CONTROLLERS: &str = "+memory +pids";
/// Share of the processors of all sandboxes together, where the server has 100. It is that of niceness 5.
const SANDBOXES_WEIGHT: u32 = 33;
/// Upper bound of the attempts to enable controllers, while a process of a trial is still ending.
const ENABLE_ATTEMPTS_MAX: usize = 50;
/// Upper bound of the names that are tried for a cgroup, since earlier ones may be left.
const NAMES_MAX: usize = 64;

/// Error of a step with a cgroup, with the file or directory.
#[derive(Debug, thiserror::Error)]
#[error("{step} {place}: {why}", place = place.display())]
pub struct CgroupError {
    step: &'static str,
    place: PathBuf,
    why: io::Error,
}

impl CgroupError {
    pub(crate) fn new(step: &'static str, place: &Path, why: impl Into<io::Error>) -> CgroupError {
        CgroupError { step, place: place.to_owned(), why: why.into() }
    }
}

/// Parent of the cgroups of sandboxes. Clones share it.
#[derive(Clone, Debug)]
pub struct SandboxCgroups(Arc<SharedCgroups>);

#[derive(Debug)]
struct SharedCgroups {
    directory: PathBuf,
    has_weights: bool,
    /// Number of the last cgroup.
    number: AtomicU64,
    leaving: LeavingCgroups,
}

impl SandboxCgroups {
    /// Moves this process into a child of its cgroup, and prepares another one as the parent of sandboxes.
    ///
    /// Cgroups of sandboxes of an earlier start are removed. If a step fails, the process returns to its cgroup.
    pub fn arrange(plan: &CgroupPlan) -> Result<SandboxCgroups, CgroupError> {
        arranged(plan).inspect_err(|_| {
            // The first error is the one to report.
            let _ = written(&plan.root.join(CHILD_CONTROLLERS_FILE), "-cpu -pids -memory");
            let _ = entered(&plan.root);
            let _ = fs::remove_dir(plan.root.join(SANDBOXES_NAME));
            let _ = fs::remove_dir(plan.root.join(SERVER_NAME));
        })
    }

    /// Returns the directory of the parent.
    pub fn directory(&self) -> &Path {
        &self.0.directory
    }

    /// Makes the cgroup of a sandbox, with its limits and without processes.
    pub fn create(&self, limits: &JailLimits) -> Result<SandboxCgroup, CgroupError> {
        let directory = self.make_directory()?;
        // Removes the directory if a limit cannot be set.
        let cgroup = SandboxCgroup::new(directory, self.0.has_weights, self.0.leaving.clone());
        cgroup.set_limits(limits)?;
        Ok(cgroup)
    }

    fn make_directory(&self) -> Result<PathBuf, CgroupError> {
        for _ in 0..NAMES_MAX {
            let number = self.0.number.fetch_add(1, Ordering::Relaxed);
            let directory = self.0.directory.join(format!("sandbox-{number}"));
            match fs::create_dir(&directory) {
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
                Err(why) => return Err(CgroupError::new("making the cgroup", &directory, why)),
                Ok(()) => return Ok(directory),
            }
        }
        Err(CgroupError::new("making a cgroup in", &self.0.directory, io::ErrorKind::AlreadyExists))
    }
}

fn arranged(plan: &CgroupPlan) -> Result<SandboxCgroups, CgroupError> {
    let (server, directory) = (plan.root.join(SERVER_NAME), plan.root.join(SANDBOXES_NAME));
    make(&server)?;
    entered(&server).map_err(|why| CgroupError::new("moving the server to", &server, why))?;
    enable(&plan.root, NEEDED_CONTROLLERS)?;
    make(&directory)?;
    remove_children(&directory)?;
    enable(&directory, NEEDED_CONTROLLERS)?;
    // The kernel refuses weights where realtime processes run. Limits hold without them.
    let enable_weights = || {
        enable(&plan.root, "+cpu")?;
        enable(&directory, "+cpu")?;
        let file = directory.join(WEIGHT_FILE);
        written(&file, &SANDBOXES_WEIGHT.to_string()).map_err(|why| CgroupError::new("writing to", &file, why))
    };
    let has_weights = plan.has_cpu && enable_weights().is_ok();
    let leaving = LeavingCgroups::start().map_err(|why| CgroupError::new("a thread for", &directory, why))?;
    let number = AtomicU64::new(1);
    let cgroups = SandboxCgroups(Arc::new(SharedCgroups { directory, has_weights, number, leaving }));
    // Tries what each sandbox needs.
    drop(cgroups.create(&JailLimits::default())?);
    Ok(cgroups)
}

/// Makes a cgroup. One of an earlier start is used again.
fn make(directory: &Path) -> Result<(), CgroupError> {
    match fs::create_dir(directory) {
        Err(why) if why.kind() != io::ErrorKind::AlreadyExists => {
            Err(CgroupError::new("making the cgroup", directory, why))
        }
        _ => Ok(()),
    }
}

/// Gives controllers to the children of a cgroup.
fn enable(directory: &Path, controllers: &str) -> Result<(), CgroupError> {
    let file = directory.join(CHILD_CONTROLLERS_FILE);
    for _ in 1..ENABLE_ATTEMPTS_MAX {
        match written(&file, controllers) {
            Err(why) if why.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {}
            done => return done.map_err(|why| CgroupError::new("writing to", &file, why)),
        }
        thread::sleep(leaving::RETRY_EVERY);
    }
    written(&file, controllers).map_err(|why| CgroupError::new("writing to", &file, why))
}

/// Ends what an earlier start left, and removes its cgroups.
fn remove_children(directory: &Path) -> Result<(), CgroupError> {
    let failed = |why| CgroupError::new("clearing", directory, why);
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_type().map_err(failed)?.is_dir() {
            remove_cgroup(&entry.path())
                .map_err(|why| CgroupError::new("removing the cgroup of an earlier start", &entry.path(), why))?;
        }
    }
    Ok(())
}

/// Returns the ids of the processes of a cgroup. Those of other process tables are 0.
pub(crate) fn processes_of(directory: &Path) -> io::Result<Vec<u32>> {
    let text = fs::read_to_string(directory.join(PROCESSES_FILE))?;
    Ok(text.lines().filter_map(|line| line.trim().parse().ok()).collect())
}
