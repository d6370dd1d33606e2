//! Running process of a sandbox: its handles, its pauses between calls, and its end.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStderr, ChildStdout};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};

use crate::cgroups::sandbox::SandboxCgroup;
use crate::spawner::Order;
use crate::usage::{SandboxUsage, family, is_stopped, measure, memory_of};

/// Upper bound of the looks at processes that come and go after a function is loaded.
const LOOKS_MAX: usize = 20;
/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Running process of a sandbox. Dropping it kills the process and all that descend from it.
#[derive(Debug)]
pub struct SandboxedProcess {
    /// Channel of the server's frames.
    pub channel: UnixStream,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
    /// Server's ends of the inherited sockets.
    pub streams: Vec<UnixStream>,
    pub(crate) kill: KillOnDrop,
}

/// Handle that kills the process when it is dropped.
#[derive(Debug)]
pub struct KillOnDrop {
    child: Option<Child>,
    /// Whether the processes share a group instead of a process table of their own.
    is_group: bool,
    /// Removed with the last handle of it.
    cgroup: Option<Arc<SandboxCgroup>>,
    orders: mpsc::SyncSender<Order>,
}

/// Processes that a function has after its load. They are all that it may have between two calls.
#[derive(Debug)]
pub struct SettledProcesses {
    root: u32,
    /// Handles by process id. A handle never reaches another process that gets the same id later.
    handles: BTreeMap<u32, OwnedFd>,
}

impl SandboxedProcess {
    pub fn id(&self) -> u32 {
        self.kill.id()
    }

    /// Returns the cgroup of the sandbox, where the kernel holds its limits.
    pub fn cgroup(&self) -> Option<&Arc<SandboxCgroup>> {
        self.kill.cgroup()
    }

    /// Measures the processes of the sandbox.
    pub fn usage(&self) -> SandboxUsage {
        measure(self.id(), u64::MAX)
    }

    /// Separates the parts, so that each can be moved to a task of its own.
    pub fn into_parts(self) -> (UnixStream, ChildStdout, ChildStderr, Vec<UnixStream>, KillOnDrop) {
        (self.channel, self.stdout, self.stderr, self.streams, self.kill)
    }
}

impl KillOnDrop {
    pub(crate) fn new(
        child: Child,
        is_group: bool,
        cgroup: Option<Arc<SandboxCgroup>>,
        orders: mpsc::SyncSender<Order>,
    ) -> KillOnDrop {
        KillOnDrop { child: Some(child), is_group, cgroup, orders }
    }

    /// Returns the cgroup of the process and its descendants, where the kernel holds their limits.
    pub fn cgroup(&self) -> Option<&Arc<SandboxCgroup>> {
        self.cgroup.as_ref()
    }

    pub fn id(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Returns whether the process has ended. Its id stays taken until the handle is dropped.
    pub fn has_ended(&self) -> bool {
        let Some(id) = pid(self.id()) else { return true };
        let asked = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(rustix::process::waitid(WaitId::Pid(id), asked), Ok(None))
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        // The child is not awaited yet, so that neither its id nor its group can belong to another process.
        if let Some(group) = pid(child.id()).filter(|_| self.is_group) {
            // Fails if the stage has not yet made the group: then there is only the process itself.
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        let _ = child.kill();
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        // Normally the process is gone at once. Otherwise the thread waits, unless it has to start many.
        if !matches!(child.try_wait(), Ok(Some(_))) {
            let _ = self.orders.try_send(Order::Reap(child));
        }
    }
}

impl SettledProcesses {
    /// Notes the processes of a sandbox, given the id of the one that was started.
    ///
    /// Returns `None` if they have ended, or still come and go after a while.
    pub fn of(root: u32) -> Option<SettledProcesses> {
        for _ in 0..LOOKS_MAX {
            let handles: BTreeMap<u32, OwnedFd> =
                family(root).into_iter().filter_map(|id| Some((id, handle(id)?))).collect();
            // A handle belongs to the process that has the id now: it was open before this look.
            let settled = SettledProcesses { root, handles };
            if settled.are_all() && !settled.handles.is_empty() {
                return Some(settled);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        None
    }

    /// Stops the processes, and returns the bytes of their memory.
    ///
    /// Returns `None` if there are others: then the sandbox has to end. A process that is being stopped can no longer
    /// start one, so a look after it finds all.
    pub fn pause(&self) -> Option<u64> {
        let is_paused = self.signal(Signal::STOP) && self.are_all();
        is_paused.then(|| self.handles.keys().map(|id| memory_of(*id)).sum())
    }

    /// Returns whether the processes are stopped, some time after their pause.
    pub fn are_paused(&self) -> bool {
        self.handles.keys().all(|id| is_stopped(*id))
    }

    /// Lets the processes continue. Returns false if one has ended.
    pub fn resume(&self) -> bool {
        self.signal(Signal::CONT)
    }

    fn are_all(&self) -> bool {
        family(self.root).iter().eq(self.handles.keys())
    }

    fn signal(&self, signal: Signal) -> bool {
        self.handles.values().all(|handle| rustix::process::pidfd_send_signal(handle, signal).is_ok())
    }
}

fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

fn handle(id: u32) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid(id)?, PidfdFlags::empty()).ok()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};

    use super::*;

    fn state(id: u32) -> String {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("a process");
        stat[stat.rfind(')').expect("a name") + 2..][..1].to_owned()
    }

    fn eventually(is_so: impl Fn() -> bool) -> bool {
        (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            is_so()
        })
    }

    #[test]
    fn a_process_without_others_stops_and_continues() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat");
        let settled = SettledProcesses::of(child.id()).expect("one process");
        assert!(SettledProcesses::of(u32::MAX).is_none());
        assert!(settled.pause().is_some_and(|bytes| bytes > 0) && eventually(|| state(child.id()) == "T"));
        assert!(settled.are_paused());
        assert!(settled.resume() && eventually(|| state(child.id()) != "T"));
        assert!(!settled.are_paused());
        drop(child.stdin.take());
        child.wait().expect("cat");
        assert!(settled.pause().is_none() && !settled.resume());
    }

    #[test]
    fn a_process_that_was_started_later_is_noticed() {
        let script = "read go; cat <&3 & echo started; wait";
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec 3<&0; {script}")]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().expect("a shell");
        let settled = SettledProcesses::of(shell.id()).expect("one process");
        let (mut input, mut output) = (shell.stdin.take().expect("input"), shell.stdout.take().expect("output"));
        std::io::Write::write_all(&mut input, b"go\n").expect("written");
        let mut line = String::new();
        BufReader::new(output.by_ref()).read_line(&mut line).expect("a line");
        assert_eq!(line, "started\n");
        assert_eq!(settled.pause(), None);
        assert!(settled.resume());
        drop(input);
        shell.wait().expect("a shell");
    }
}
