//! Plan of a jail: what a process sees and may use, and the arguments of bubblewrap for it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::stage::{STAGE_COMMAND, StageInstructions};
use crate::strength::SandboxStrength;

/// Path of the server's program in a private root.
const STAGE_PATH: &str = "/run/assay/stage";
/// Path of the temporary directory in a private root.
pub(crate) const TEMP_PATH: &str = "/tmp";
/// Upper bound of the bytes in shared memory of a jail.
const SHARED_MEMORY_BYTES_MAX: u64 = 64 << 20;
/// Directories of the system that interpreters load libraries from. Those that are links stay links.
const SYSTEM_PATHS: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];
/// Files of the system that interpreters and TLS libraries read.
const SYSTEM_FILES: [&str; 7] = [
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/alternatives",
];
/// First user and group of sandboxed processes where the server runs as root. No system assigns such high ids.
const FIRST_USER: u32 = 2_000_000_000;
/// Upper bound of the users, after which the first one is used again.
const USERS_MAX: u32 = 100_000;

/// Directory or file that a jail sees, read-only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JailBind {
    pub source: PathBuf,
    /// Path in a private root. Without one, a process sees the source.
    pub target: PathBuf,
}

/// Resource limits of a jail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JailLimits {
    /// Memory of all processes together, checked by the server.
    pub memory_bytes: u64,
    /// Processes and threads together.
    pub processes: u64,
    /// Open files of one process.
    pub open_files: u64,
    /// Open files of all processes together, checked by the server: sockets hold memory of the kernel.
    pub all_open_files: u64,
    /// Size of one file.
    pub file_bytes: u64,
    /// Size of the temporary directory in a private root.
    pub temp_bytes: u64,
    /// Files in the temporary directory of a private root, checked by the server: each holds memory of the kernel.
    pub temp_files: u64,
}

impl Default for JailLimits {
    fn default() -> JailLimits {
        JailLimits {
            memory_bytes: 512 << 20,
            processes: 128,
            open_files: 256,
            all_open_files: 2_048,
            file_bytes: 256 << 20,
            temp_bytes: 256 << 20,
            temp_files: 10_000,
        }
    }
}

/// Process to start, and what it sees.
#[derive(Clone, Debug)]
pub struct JailPlan {
    pub strength: SandboxStrength,
    /// Program and arguments, as paths that the process sees.
    pub command: Vec<OsString>,
    pub read_only: Vec<JailBind>,
    /// Socket of the server for network connections. Only a private root has it.
    pub tunnel: Option<JailBind>,
    /// Directory of the server for temporary files where there is no private root. The server removes it.
    pub temp: PathBuf,
    /// Number of connected sockets that the process inherits, for network connections without a private root.
    pub streams: usize,
    pub limits: JailLimits,
    /// Environment of the process. Contains no variables of users: the loader would obey them outside of the jail.
    pub environment: Vec<(String, OsString)>,
}

impl JailPlan {
    /// Returns the path of a bind as the process sees it.
    pub fn visible<'a>(&self, bind: &'a JailBind) -> &'a Path {
        if self.has_private_root() { &bind.target } else { &bind.source }
    }

    /// Returns the temporary directory as the process sees it.
    pub fn visible_temp(&self) -> &Path {
        if self.has_private_root() { Path::new(TEMP_PATH) } else { &self.temp }
    }

    pub fn has_private_root(&self) -> bool {
        self.strength == SandboxStrength::Full
    }
}

/// Programs and identity of the server that starts a jail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JailHost {
    /// Program of this server, which has the command of the stage.
    pub stage: PathBuf,
    /// Program `bwrap`, for private roots.
    pub bubblewrap: Option<PathBuf>,
    pub is_root: bool,
}

/// Returns program and arguments that start the process of a plan.
///
/// `number` counts the processes of the server. Where it runs as root, each process gets a user of its own, so that the
/// kernel separates them and counts their processes.
pub fn command_line(
    host: &JailHost,
    plan: &JailPlan,
    number: u32,
) -> Result<(PathBuf, Vec<OsString>), serde_json::Error> {
    let user = host.is_root.then(|| FIRST_USER + number % USERS_MAX);
    let stage = stage_arguments(host, plan, user)?;
    match &host.bubblewrap {
        Some(bubblewrap) if plan.has_private_root() => {
            let mut arguments = bubblewrap_arguments(host, plan);
            arguments.extend(["--".into(), STAGE_PATH.into()]);
            arguments.extend(stage);
            Ok((bubblewrap.clone(), arguments))
        }
        _ => Ok((host.stage.clone(), stage)),
    }
}

fn stage_arguments(host: &JailHost, plan: &JailPlan, user: Option<u32>) -> Result<Vec<OsString>, serde_json::Error> {
    let is_private = plan.has_private_root();
    let mut readable: Vec<PathBuf> = plan.read_only.iter().map(|bind| plan.visible(bind).to_owned()).collect();
    readable.extend(SYSTEM_PATHS.iter().chain(&SYSTEM_FILES).map(PathBuf::from));
    readable.push(if is_private { STAGE_PATH.into() } else { host.stage.clone() });
    if let Some(tunnel) = plan.tunnel.as_ref().filter(|_| is_private) {
        readable.push(tunnel.target.clone());
    }
    let instructions = StageInstructions {
        strength: plan.strength,
        limits: plan.limits.clone(),
        user,
        readable,
        temp: plan.visible_temp().to_owned(),
    };
    let mut arguments = vec![STAGE_COMMAND.into(), serde_json::to_string(&instructions)?.into(), "--".into()];
    arguments.extend(plan.command.iter().cloned());
    Ok(arguments)
}

/// Arguments in the making.
#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn push(&mut self, words: &[&OsStr]) {
        self.0.extend(words.iter().map(|word| (*word).to_owned()));
    }

    fn texts(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }
}

fn bubblewrap_arguments(host: &JailHost, plan: &JailPlan) -> Vec<OsString> {
    let mut arguments = Arguments::default();
    arguments.texts(&["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]);
    arguments.texts(&["--hostname", "function", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]);
    if host.is_root {
        // The stage becomes another user, which a user namespace of one user cannot express.
        arguments.texts(&["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]);
    } else {
        arguments.texts(&["--unshare-user", "--disable-userns"]);
    }
    for path in SYSTEM_PATHS {
        system_path(&mut arguments, path);
    }
    // By itself, bubblewrap creates directories that only their owner may enter.
    arguments.texts(&["--perms", "0755", "--dir", "/etc"]);
    for path in SYSTEM_FILES {
        arguments.texts(&["--ro-bind-try", path, path]);
    }
    arguments.texts(&["--proc", "/proc", "--dev", "/dev"]);
    let shared = SHARED_MEMORY_BYTES_MAX.to_string();
    arguments.texts(&["--perms", "1777", "--size", &shared, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]);
    let temp = plan.limits.temp_bytes.to_string();
    arguments.texts(&["--perms", "1777", "--size", &temp, "--tmpfs", TEMP_PATH]);
    let stage = JailBind { source: host.stage.clone(), target: STAGE_PATH.into() };
    let binds: Vec<&JailBind> = [&stage].into_iter().chain(&plan.read_only).chain(&plan.tunnel).collect();
    for directory in directories_above(&binds) {
        arguments.push(&["--perms".as_ref(), "0755".as_ref(), "--dir".as_ref(), directory.as_ref()]);
    }
    for bind in binds {
        arguments.push(&["--ro-bind".as_ref(), bind.source.as_ref(), bind.target.as_ref()]);
    }
    arguments.texts(&["--remount-ro", "/", "--chdir", TEMP_PATH]);
    arguments.0
}

/// Returns the directories that contain targets, parents first, without those that are directories of the system.
fn directories_above(binds: &[&JailBind]) -> BTreeSet<PathBuf> {
    let above = binds.iter().flat_map(|bind| bind.target.ancestors().skip(1));
    let is_system = |path: &Path| SYSTEM_PATHS.iter().any(|system| path.starts_with(system));
    above.filter(|path| path.parent().is_some() && !is_system(path)).map(Path::to_owned).collect()
}

/// Adds a directory of the system. A link such as `/lib` to `usr/lib` stays one.
fn system_path(arguments: &mut Arguments, path: &str) {
    match std::fs::read_link(path) {
        Ok(target) => arguments.push(&["--symlink".as_ref(), target.as_ref(), path.as_ref()]),
        Err(_) => arguments.texts(&["--ro-bind-try", path, path]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(strength: SandboxStrength) -> JailPlan {
        JailPlan {
            strength,
            command: vec!["/usr/bin/python3".into(), "worker.py".into()],
            read_only: vec![JailBind { source: "/data/bundle".into(), target: "/run/assay/bundle".into() }],
            tunnel: Some(JailBind { source: "/data/tunnel".into(), target: "/run/assay/tunnel".into() }),
            temp: "/data/temp".into(),
            streams: 0,
            limits: JailLimits::default(),
            environment: Vec::new(),
        }
    }

    fn line(is_root: bool, strength: SandboxStrength) -> (PathBuf, Vec<String>) {
        let host = JailHost { stage: "/opt/assay".into(), bubblewrap: Some("/usr/bin/bwrap".into()), is_root };
        let (program, arguments) = command_line(&host, &plan(strength), 7).expect("arguments");
        (program, arguments.into_iter().map(|word| word.into_string().expect("UTF-8")).collect())
    }

    fn has(arguments: &[String], words: &[&str]) -> bool {
        arguments.windows(words.len()).any(|window| window == words)
    }

    #[test]
    fn a_full_jail_has_a_private_root() {
        for is_root in [true, false] {
            let (program, arguments) = line(is_root, SandboxStrength::Full);
            assert_eq!(program, Path::new("/usr/bin/bwrap"));
            assert!(has(&arguments, &["--ro-bind", "/data/bundle", "/run/assay/bundle"]));
            assert!(has(&arguments, &["--ro-bind", "/data/tunnel", "/run/assay/tunnel"]));
            assert!(has(&arguments, &["--dir", "/run", "--perms", "0755", "--dir", "/run/assay"]), "{arguments:?}");
            assert_eq!(has(&arguments, &["--unshare-user", "--disable-userns"]), !is_root);
            assert_eq!(has(&arguments, &["--cap-add", "CAP_SETUID"]), is_root);
            let last = ["/usr/bin/python3", "worker.py"];
            assert!(arguments.ends_with(&last.map(str::to_owned)), "{arguments:?}");
            let seen: StageInstructions = {
                let at = arguments.iter().position(|word| word == STAGE_COMMAND).expect("the stage");
                serde_json::from_str(&arguments[at + 1]).expect("instructions")
            };
            assert_eq!(seen.user, is_root.then_some(FIRST_USER + 7));
            assert!(seen.readable.contains(&"/run/assay/bundle".into()) && seen.temp == Path::new("/tmp"));
            assert!(!seen.readable.contains(&"/data/bundle".into()));
        }
    }

    #[test]
    fn a_reduced_jail_sees_the_paths_of_the_machine() {
        let (program, arguments) = line(false, SandboxStrength::Reduced);
        assert_eq!((program.as_path(), arguments[0].as_str()), (Path::new("/opt/assay"), STAGE_COMMAND));
        let seen: StageInstructions = serde_json::from_str(&arguments[1]).expect("instructions");
        assert!(seen.readable.contains(&"/data/bundle".into()) && seen.temp == Path::new("/data/temp"));
        assert!(!seen.readable.iter().any(|path| path.ends_with("tunnel")), "no socket of the server");
    }
}
