//! Rules of landlock for a sandboxed process: files it may read or write, no TCP, no signals to other processes.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

/// Newest interface of the kernel whose restrictions are used: files, TCP, abstract sockets and signals.
const NEWEST: ABI = ABI::V6;
/// Files about itself that a process may read where it sees the process table of the machine.
///
/// The directory as a whole would also show the network of the machine.
const ABOUT_ITSELF: [&str; 12] =
    ["cgroup", "cmdline", "comm", "environ", "fd", "fdinfo", "limits", "maps", "mountinfo", "stat", "statm", "status"];
/// Devices that a process may open where it sees those of the machine.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Files that a process may use.
#[derive(Debug)]
pub struct FileRules<'a> {
    pub readable: &'a [PathBuf],
    pub temp: &'a Path,
    /// Whether `/dev` and `/proc` are those of a private root.
    pub has_private_root: bool,
}

/// Restricts this thread and all that it starts. Returns whether the kernel enforces any of the rules.
///
/// Paths that do not exist are left out. An older kernel enforces what it knows.
pub fn restrict(rules: &FileRules<'_>) -> Result<bool, RulesetError> {
    let reading = AccessFs::from_read(NEWEST);
    let all = AccessFs::from_all(NEWEST);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()?;
    for path in rules.readable {
        ruleset = allowed(ruleset, path, reading)?;
    }
    ruleset = allowed(ruleset, rules.temp, all)?;
    if rules.has_private_root {
        // Without writing, a process keeps the score by which the kernel ends it first.
        ruleset = allowed(ruleset, Path::new("/proc"), reading)?;
        ruleset = allowed(ruleset, Path::new("/dev"), all)?;
    } else {
        for name in ABOUT_ITSELF {
            let is_directory = matches!(name, "fd" | "fdinfo");
            let access = if is_directory { reading } else { AccessFs::ReadFile.into() };
            ruleset = allowed(ruleset, &Path::new("/proc/self").join(name), access)?;
        }
        for device in DEVICES {
            ruleset = allowed(ruleset, Path::new(device), AccessFs::ReadFile | AccessFs::WriteFile)?;
        }
    }
    Ok(ruleset.restrict_self()?.ruleset != RulesetStatus::NotEnforced)
}

fn allowed(
    ruleset: RulesetCreated,
    path: &Path,
    access: impl Into<landlock::BitFlags<AccessFs>>,
) -> Result<RulesetCreated, RulesetError> {
    match PathFd::new(path) {
        Ok(file) => ruleset.add_rule(PathBeneath::new(file, access.into())),
        Err(_) => Ok(ruleset),
    }
}
