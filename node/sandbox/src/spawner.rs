//! Spawner of sandboxed processes, and their handles.
//!
//! A process of a sandbox dies with the thread that started it. All are therefore started by one thread, which lives as
//! long as the spawner.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use crate::jail::{JailHost, JailPlan, command_line};
use crate::usage::{SandboxUsage, measure, measure_shared_memory};

/// Upper bound of the processes that wait to be started.
const WAITING_MAX: usize = 256;
/// Upper bound of the inherited sockets of one process.
const STREAMS_MAX: usize = 64;
/// Variable with the numbers of the inherited sockets, as `first-last`.
pub const STREAMS_VARIABLE: &str = "ASSAY_STREAMS";

/// Error of a start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("starting the sandbox with {program}: {why}")]
    Start { program: String, why: io::Error },
    #[error("the instructions of the sandbox: {0}")]
    Instructions(#[from] serde_json::Error),
    #[error("a sandbox inherits at most {STREAMS_MAX} sockets")]
    ManyStreams,
    #[error("the spawner has stopped")]
    Stopped,
}

/// Order for the thread of a spawner.
enum Order {
    Start(Box<JailPlan>, mpsc::SyncSender<Order>, mpsc::SyncSender<Result<SandboxedProcess, SpawnError>>),
    /// Ended process, whose state the thread takes from the kernel.
    Reap(Child),
}

/// Starter of sandboxed processes.
#[derive(Clone, Debug)]
pub struct Spawner {
    orders: mpsc::SyncSender<Order>,
}

/// Running process of a sandbox. Dropping it kills the process and all that descend from it.
#[derive(Debug)]
pub struct SandboxedProcess {
    /// Channel of the server's frames.
    pub channel: UnixStream,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
    /// Server's ends of the inherited sockets.
    pub streams: Vec<UnixStream>,
    kill: KillOnDrop,
}

/// Handle that kills the process when it is dropped.
#[derive(Debug)]
pub struct KillOnDrop {
    child: Option<Child>,
    /// Whether the processes share a group instead of a process table of their own.
    is_group: bool,
    orders: mpsc::SyncSender<Order>,
}

impl std::fmt::Debug for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Order::Start(..) => "Start",
            Order::Reap(_) => "Reap",
        })
    }
}

impl Spawner {
    /// Starts the thread of a spawner.
    pub fn start(host: JailHost) -> io::Result<Spawner> {
        let (orders, received) = mpsc::sync_channel(WAITING_MAX);
        let run = move || serve(&host, &received);
        thread::Builder::new().name("sandbox-spawner".into()).spawn(run)?;
        Ok(Spawner { orders })
    }

    /// Starts a process. Blocks until the operating system has started it.
    pub fn spawn(&self, plan: JailPlan) -> Result<SandboxedProcess, SpawnError> {
        let (answer, answered) = mpsc::sync_channel(1);
        let order = Order::Start(Box::new(plan), self.orders.clone(), answer);
        self.orders.send(order).map_err(|_| SpawnError::Stopped)?;
        answered.recv().map_err(|_| SpawnError::Stopped)?
    }
}

/// Handles orders until the spawner and all its processes are gone.
fn serve(host: &JailHost, orders: &mpsc::Receiver<Order>) {
    let mut number: u32 = 0;
    for order in orders {
        match order {
            Order::Start(plan, back, answer) => {
                number = number.wrapping_add(1);
                // A caller that has left drops the process, which ends it.
                let _ = answer.send(start(host, (&plan, number), &back));
            }
            Order::Reap(mut child) => {
                let _ = child.wait();
            }
        }
    }
}

fn start(
    host: &JailHost,
    (plan, number): (&JailPlan, u32),
    back: &mpsc::SyncSender<Order>,
) -> Result<SandboxedProcess, SpawnError> {
    if plan.streams > STREAMS_MAX {
        return Err(SpawnError::ManyStreams);
    }
    let (program, arguments) = command_line(host, plan, number)?;
    let failed = |why: io::Error| SpawnError::Start { program: program.display().to_string(), why };
    let (mut channel, theirs) = UnixStream::pair().map_err(failed)?;
    let (streams, inherited) = pairs(plan.streams).map_err(failed)?;
    let mut command = Command::new(&program);
    command.args(&arguments).env_clear().envs(plan.environment.iter().map(|(name, value)| (name, value)));
    if let Some(range) = numbers(&inherited) {
        command.env(STREAMS_VARIABLE, range);
    }
    command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    drop(inherited);
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(failed(io::Error::other("the process has no console")));
    };
    let kill = KillOnDrop { child: Some(child), is_group: !plan.has_private_root(), orders: back.clone() };
    // The stage waits for this byte.
    channel.write_all(&[1]).map_err(failed)?;
    Ok(SandboxedProcess { channel, stdout, stderr, streams, kill })
}

/// Returns connected sockets: the server's ends, and those that the next process inherits.
fn pairs(count: usize) -> io::Result<(Vec<UnixStream>, Vec<OwnedFd>)> {
    let (mut ours, mut theirs) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let first = (0..count).map(|_| UnixStream::pair()).collect::<io::Result<Vec<_>>>()?;
    for (own, other) in first {
        let other = OwnedFd::from(other);
        rustix::io::fcntl_setfd(&other, rustix::io::FdFlags::empty())?;
        ours.push(own);
        theirs.push(other);
    }
    Ok((ours, theirs))
}

/// Returns the descriptors as a text such as `10,12,14`.
fn numbers(inherited: &[OwnedFd]) -> Option<String> {
    use std::os::fd::AsRawFd;
    let numbers: Vec<String> = inherited.iter().map(|stream| stream.as_raw_fd().to_string()).collect();
    (!numbers.is_empty()).then(|| numbers.join(","))
}

impl SandboxedProcess {
    pub fn id(&self) -> u32 {
        self.kill.id()
    }

    /// Measures the processes of the sandbox.
    pub fn usage(&self) -> SandboxUsage {
        measure(self.id())
    }

    /// Separates the parts, so that each can be moved to a task of its own.
    pub fn into_parts(self) -> (UnixStream, ChildStdout, ChildStderr, Vec<UnixStream>, KillOnDrop) {
        (self.channel, self.stdout, self.stderr, self.streams, self.kill)
    }
}

impl KillOnDrop {
    pub fn id(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    pub fn usage(&self) -> SandboxUsage {
        measure(self.id())
    }

    pub fn shared_memory(&self) -> u64 {
        measure_shared_memory(self.id())
    }

    /// Returns whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.as_mut().is_none_or(|child| matches!(child.try_wait(), Ok(Some(_))))
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        if self.is_group {
            let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
            // Fails if the stage has not yet made the group: then there is only the process itself.
            let _ = group.map(|group| rustix::process::kill_process_group(group, rustix::process::Signal::KILL));
        }
        let _ = child.kill();
        // Normally the process is gone at once. Otherwise the thread waits, unless it has to start many.
        if !matches!(child.try_wait(), Ok(Some(_))) {
            let _ = self.orders.try_send(Order::Reap(child));
        }
    }
}
