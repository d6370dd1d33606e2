//! Spawner of sandboxed processes.
//!
//! A process of a sandbox dies with the thread that started it. All are therefore started by one thread, which lives as
//! long as the spawner.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;

use crate::cgroups::{CgroupError, SandboxCgroups};
use crate::jail::{JailHost, JailPlan, command_line};
use crate::process::{KillOnDrop, SandboxedProcess};

/// Upper bound of the processes that wait to be started.
const WAITING_MAX: usize = 256;
/// Upper bound of the inherited sockets of one process.
const STREAMS_MAX: usize = 64;
/// Distance between the first users of two servers whose process ids follow each other.
const USERS_APART: u32 = 7_919;
/// Variable with the numbers of the inherited sockets, such as `10,12`.
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
    #[error("limiting the sandbox by cgroup v2: {0}; restart the server if its cgroup was changed")]
    Cgroup(#[from] CgroupError),
    #[error("the spawner has stopped")]
    Stopped,
}

/// Order for the thread of a spawner.
pub(crate) enum Order {
    Start(Box<JailPlan>, mpsc::SyncSender<Order>, mpsc::SyncSender<Result<SandboxedProcess, SpawnError>>),
    /// Ended process, whose state the thread takes from the kernel.
    Reap(Child),
}

/// Where a spawner starts processes.
struct SpawnerPlace {
    host: JailHost,
    cgroups: Option<SandboxCgroups>,
}

/// Starter of sandboxed processes.
#[derive(Clone, Debug)]
pub struct Spawner {
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
    /// Starts the thread of a spawner. With `cgroups`, each process and all that descend from it are in one of them.
    pub fn start(host: JailHost, cgroups: Option<SandboxCgroups>) -> io::Result<Spawner> {
        let (orders, received) = mpsc::sync_channel(WAITING_MAX);
        let place = SpawnerPlace { host, cgroups };
        let run = move || serve(&place, &received);
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
fn serve(place: &SpawnerPlace, orders: &mpsc::Receiver<Order>) {
    // Servers of one machine begin at different users.
    let mut number = std::process::id().wrapping_mul(USERS_APART);
    for order in orders {
        match order {
            Order::Start(plan, back, answer) => {
                number = number.wrapping_add(1);
                // A caller that has left drops the process, which ends it.
                let _ = answer.send(start(place, (&plan, number), &back));
            }
            Order::Reap(mut child) => {
                let _ = child.wait();
            }
        }
    }
}

fn start(
    place: &SpawnerPlace,
    (plan, number): (&JailPlan, u32),
    back: &mpsc::SyncSender<Order>,
) -> Result<SandboxedProcess, SpawnError> {
    if plan.streams > STREAMS_MAX {
        return Err(SpawnError::ManyStreams);
    }
    let (program, arguments) = command_line(&place.host, plan, number)?;
    let failed = |why: io::Error| SpawnError::Start { program: program.display().to_string(), why };
    let cgroup = place.cgroups.as_ref().map(|cgroups| cgroups.create(&plan.limits)).transpose()?.map(Arc::new);
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
    let kill = KillOnDrop::new(child, !plan.has_private_root(), cgroup, back.clone());
    if let Some(cgroup) = kill.cgroup() {
        cgroup.place(kill.id())?;
    }
    // The stage waits for this byte, so no code of users has run yet.
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
