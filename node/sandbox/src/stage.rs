//! Inner stage of a sandbox: the server's program, executed again, restricts itself and becomes the interpreter.
//!
//! The stage runs before any thread starts, so that every restriction holds for the whole process.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::Write;
use std::os::fd::IntoRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use rustix::process::{Gid, Resource, Rlimit, Signal, Uid};
use serde::{Deserialize, Serialize};

use crate::jail::JailLimits;
use crate::landlock_rules::{FileRules, restrict};
use crate::spawner::STREAMS_VARIABLE;
use crate::strength::SandboxStrength;
use crate::syscalls::{FilterScope, install};

/// Hidden command of the server's program that runs the stage.
pub const STAGE_COMMAND: &str = "function-stage";
/// Variable with the number of the file descriptor of the channel.
pub const CHANNEL_VARIABLE: &str = "ASSAY_CHANNEL";
/// Program name that stands for the server's own program, which takes the channel as its standard input.
pub const OWN_PROGRAM: &str = "assay-worker";
/// Program name that ends the stage with a report instead of an interpreter, for trials.
pub const TRIAL_COMMAND: &str = "assay-trial";
/// Niceness of sandboxed processes, above that of the server. Those that compute for long get a higher one.
const NICENESS: i32 = 5;
/// Score by which the kernel prefers sandboxed processes when memory runs out.
const OUT_OF_MEMORY_SCORE: &str = "1000";
/// Factor between the memory of a sandbox and the private memory of one process, reserved memory included.
///
/// The server measures the memory in use. This limit ends a process that grows between two measurements.
const RESERVED_MEMORY_FACTOR: u64 = 4;
/// Upper bound of the processor time of one process. The server ends calls much earlier.
const PROCESSOR_SECONDS_MAX: u64 = 24 * 3_600;
/// Upper bound of the processes of a user, where the limit holds for all processes of that user.
const SHARED_PROCESSES_MAX: u64 = 4_096;
/// Upper bound of signals and timers that wait, each of which holds memory of the kernel.
const PENDING_SIGNALS_MAX: u64 = 1_024;
/// Mode of a temporary directory that belongs to the user of one sandbox.
const OWN_MODE: u32 = 0o700;

/// Restrictions for the stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageInstructions {
    pub strength: SandboxStrength,
    pub limits: JailLimits,
    /// User and group to become, if the server runs as root.
    pub user: Option<u32>,
    pub readable: Vec<PathBuf>,
    pub temp: PathBuf,
}

/// Report of a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialReport {
    pub has_landlock: bool,
    pub has_private_processes: bool,
    /// Actions that the sandbox did not refuse.
    pub escapes: Vec<String>,
}

/// Error of the stage, with the step that failed.
#[derive(Debug, thiserror::Error)]
#[error("the sandbox could not be closed: {step}: {why}")]
pub struct StageError {
    step: &'static str,
    why: String,
}

impl StageError {
    fn new(step: &'static str, why: impl ToString) -> StageError {
        StageError { step, why: why.to_string() }
    }
}

/// Restricts this process and executes the command. Returns only on failure, or never.
///
/// `arguments` are the words after [`STAGE_COMMAND`]: instructions, `--`, program, arguments.
pub fn run_stage(arguments: &[OsString]) -> Result<Infallible, StageError> {
    let [instructions, separator, program, rest @ ..] = arguments else {
        return Err(StageError::new("arguments", "expected instructions, `--` and a program"));
    };
    if separator != "--" {
        return Err(StageError::new("arguments", "expected `--` after the instructions"));
    }
    let instructions = instructions.to_str().ok_or_else(|| StageError::new("arguments", "not UTF-8"))?;
    let instructions: StageInstructions =
        serde_json::from_str(instructions).map_err(|why| StageError::new("instructions", why))?;
    await_start().map_err(|why| StageError::new("start", why))?;
    let is_own = program == OWN_PROGRAM;
    let channel = if is_own { keep_channel() } else { separate_channel() };
    let channel = channel.map_err(|why| StageError::new("channel", why))?;
    // The path is read before the sandbox closes.
    let own = std::env::current_exe().map_err(|why| StageError::new("program", why))?;
    prepare(&instructions)?;
    let has_landlock = close(&instructions)?;
    if program == TRIAL_COMMAND {
        report(&instructions, has_landlock)?;
        std::process::exit(0);
    }
    let program = if is_own { own.as_os_str() } else { program };
    let mut command = Command::new(program);
    let failed = command.args(rest).env(CHANNEL_VARIABLE, channel.to_string()).exec();
    Err(StageError::new("execute", format!("{}: {failed}", program.display())))
}

/// Waits for the byte by which the server starts the process, after it has placed it in its groups.
fn await_start() -> io::Result<()> {
    // Without a buffer, which would swallow the frames that follow.
    let mut byte = [0];
    match rustix::io::read(io::stdin(), &mut byte)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

/// Leaves the channel at the standard input, and returns its number.
fn keep_channel() -> io::Result<i32> {
    let channel = 0;
    close_others(channel)?;
    Ok(channel)
}

/// Moves the channel from the standard input to a descriptor of its own, and returns its number.
fn separate_channel() -> io::Result<i32> {
    let channel = rustix::io::dup(io::stdin())?;
    rustix::stdio::dup2_stdin(fs::File::open("/dev/null")?)?;
    let channel = channel.into_raw_fd();
    close_others(channel)?;
    Ok(channel)
}

/// Closes what the server inherited and did not mean for the sandbox.
fn close_others(channel: i32) -> io::Result<()> {
    let streams = std::env::var(STREAMS_VARIABLE).unwrap_or_default();
    let is_meant =
        |number: i32| number <= 2 || number == channel || streams.split(',').any(|one| one == number.to_string());
    let listed = fs::read_dir("/proc/self/fd")?;
    let open: Vec<i32> = listed.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in open.into_iter().filter(|number| !is_meant(*number)) {
        // The descriptor of the listing itself is closed already.
        let _ = nix::unistd::close(number);
    }
    Ok(())
}

/// Applies what needs rights or files that the process loses afterwards.
fn prepare(instructions: &StageInstructions) -> Result<(), StageError> {
    if instructions.strength != SandboxStrength::Full {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|why| StageError::new("death signal", why))?;
        // A group of its own, by which the server ends it, and orphans that stay among its descendants.
        rustix::process::setsid().map_err(|why| StageError::new("session", why))?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|why| StageError::new("orphans", why))?;
    }
    // These only make the process yield sooner; a kernel that refuses keeps the sandbox closed.
    let _ = fs::write("/proc/self/oom_score_adj", OUT_OF_MEMORY_SCORE);
    let _ = fs::write("/proc/self/autogroup", NICENESS.to_string());
    let _ = rustix::process::nice(NICENESS);
    if let Some(id) = instructions.user {
        if instructions.strength != SandboxStrength::Full {
            own(&instructions.temp, id).map_err(|why| StageError::new("owner of the temporary directory", why))?;
        }
        become_user(id).map_err(|why| StageError::new("user", why))?;
        if instructions.strength != SandboxStrength::Full {
            // A change of user clears the signal.
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
                .map_err(|why| StageError::new("death signal", why))?;
        }
    }
    std::env::set_current_dir(&instructions.temp).map_err(|why| StageError::new("temporary directory", why))?;
    set_limits(instructions).map_err(|why| StageError::new("limits", why))
}

/// Gives the temporary directory to the user of the sandbox, so that those of other sandboxes cannot enter it.
fn own(temp: &Path, id: u32) -> io::Result<()> {
    std::os::unix::fs::chown(temp, Some(id), Some(id))?;
    fs::set_permissions(temp, std::os::unix::fs::PermissionsExt::from_mode(OWN_MODE))
}

fn become_user(id: u32) -> rustix::io::Result<()> {
    let (user, group) = (Uid::from_raw(id), Gid::from_raw(id));
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(group, group, group)?;
    rustix::thread::set_thread_res_uid(user, user, user)
}

fn set_limits(instructions: &StageInstructions) -> rustix::io::Result<()> {
    let limits = &instructions.limits;
    // Without a user or a user namespace of its own, the user's other processes count too. Then the server counts.
    // Otherwise one more than the limit can start, so that a measurement or the cgroup finds that it is passed.
    let has_own_user = instructions.strength == SandboxStrength::Full || instructions.user.is_some();
    let processes = if has_own_user { limits.processes.saturating_add(1) } else { SHARED_PROCESSES_MAX };
    let wanted = [
        (Resource::Core, 0),
        (Resource::Cpu, PROCESSOR_SECONDS_MAX),
        (Resource::Nofile, limits.open_files),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Data, limits.memory_bytes.saturating_mul(RESERVED_MEMORY_FACTOR)),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
        (Resource::Sigpending, PENDING_SIGNALS_MAX),
        (Resource::Nproc, processes),
    ];
    for (resource, limit) in wanted {
        rustix::process::setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    }
    Ok(())
}

/// Closes the sandbox. Returns whether landlock is in force.
fn close(instructions: &StageInstructions) -> Result<bool, StageError> {
    if instructions.strength == SandboxStrength::Unsafe {
        return Ok(false);
    }
    rustix::thread::set_no_new_privs(true).map_err(|why| StageError::new("no new privileges", why))?;
    let has_private_root = instructions.strength == SandboxStrength::Full;
    let rules = FileRules { readable: &instructions.readable, temp: &instructions.temp, has_private_root };
    let has_landlock = restrict(&rules).map_err(|why| StageError::new("landlock", why))?;
    if !has_landlock && !has_private_root {
        return Err(StageError::new("landlock", "this kernel does not have it, and nothing else hides files"));
    }
    let scope = FilterScope { has_private_root, has_own_user: instructions.user.is_some() };
    install(scope).map_err(|why| StageError::new("system calls", why))?;
    Ok(has_landlock)
}

/// Tries what a sandbox has to refuse, and writes a report to the standard output.
fn report(instructions: &StageInstructions, has_landlock: bool) -> Result<(), StageError> {
    let mut escapes = Vec::new();
    let mut refused = |name: &str, is_refused: bool| {
        if !is_refused {
            escapes.push(name.to_owned());
        }
    };
    if instructions.strength != SandboxStrength::Unsafe {
        refused("an Internet socket", std::net::TcpListener::bind("127.0.0.1:0").is_err());
        refused("root", !rustix::process::geteuid().is_root());
        refused("files of the machine", fs::File::open("/etc/passwd").is_err());
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        refused("capabilities", has_status(&status, "CapEff", "0000000000000000"));
        refused("new privileges", has_status(&status, "NoNewPrivs", "1"));
        refused("all system calls", has_status(&status, "Seccomp", "2"));
    }
    let has_private_processes = instructions.strength == SandboxStrength::Full && std::process::id() < FIRST_IDS;
    let report = TrialReport { has_landlock, has_private_processes, escapes };
    let line = serde_json::to_string(&report).map_err(|why| StageError::new("report", why))?;
    io::stdout().lock().write_all(line.as_bytes()).map_err(|why| StageError::new("report", why))
}

/// Process ids of a new namespace are below this one.
const FIRST_IDS: u32 = 10;

fn has_status(status: &str, name: &str, value: &str) -> bool {
    let mut lines = status.lines().filter_map(|line| line.split_once(':'));
    lines.any(|(found, text)| found == name && text.trim() == value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_without_its_words_names_them() {
        for arguments in [&[][..], &["{}".into(), "--".into()], &["{}".into(), "x".into(), "true".into()]] {
            let why = run_stage(arguments).unwrap_err().to_string();
            assert!(why.contains("arguments: expected"), "{why}");
        }
        let why = run_stage(&["{}".into(), "--".into(), "true".into()]).unwrap_err().to_string();
        assert!(why.contains("instructions"), "{why}");
    }

    #[test]
    fn a_state_is_read_from_the_status() {
        let status = "Name:\tx\nCapEff:\t0000000000000000\nSeccomp:\t2\nSeccomp_filters:\t1\n";
        assert!(has_status(status, "Seccomp", "2") && has_status(status, "CapEff", "0000000000000000"));
        assert!(!has_status(status, "Seccomp", "1") && !has_status("", "CapEff", "0000000000000000"));
    }
}
