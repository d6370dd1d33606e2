//! Removal of cgroups whose processes may still be ending.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use super::files::written;

/// File by which all processes of a cgroup are killed, from Linux 5.14.
const KILL_FILE: &str = "cgroup.kill";
/// Upper bound of the attempts to remove a cgroup. What is left is removed at the next start.
const ATTEMPTS_MAX: usize = 200;
/// Time between two attempts.
pub(crate) const RETRY_EVERY: Duration = Duration::from_millis(20);
/// Upper bound of the cgroups that wait for their removal.
const WAITING_MAX: usize = 4_096;

/// Remover of cgroups, which tries again in a thread of its own.
#[derive(Clone, Debug)]
pub(crate) struct LeavingCgroups(mpsc::SyncSender<PathBuf>);

/// Cgroup that waits for its removal.
struct LeavingCgroup {
    directory: PathBuf,
    attempts: usize,
}

impl LeavingCgroups {
    /// Starts the thread, which ends with the last clone.
    pub(crate) fn start() -> io::Result<LeavingCgroups> {
        let (orders, received) = mpsc::sync_channel(WAITING_MAX);
        thread::Builder::new().name("sandbox-cgroups".into()).spawn(move || serve(&received))?;
        Ok(LeavingCgroups(orders))
    }

    /// Kills the processes of a cgroup, and removes it now or soon.
    pub(crate) fn remove(&self, directory: PathBuf) {
        kill(&directory);
        if !is_removed(&directory) {
            let _ = self.0.try_send(directory);
        }
    }
}

fn serve(orders: &mpsc::Receiver<PathBuf>) {
    let (mut waiting, mut looked) = (Vec::<LeavingCgroup>::new(), Instant::now());
    loop {
        let order = match waiting.is_empty() {
            true => orders.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected),
            false => orders.recv_timeout(RETRY_EVERY),
        };
        match order {
            Ok(directory) => waiting.push(LeavingCgroup { directory, attempts: 0 }),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) if waiting.is_empty() => return,
            Err(mpsc::RecvTimeoutError::Disconnected) => thread::sleep(RETRY_EVERY),
        }
        if looked.elapsed() >= RETRY_EVERY {
            waiting.retain_mut(|cgroup| {
                cgroup.attempts += 1;
                !is_removed(&cgroup.directory) && cgroup.attempts < ATTEMPTS_MAX
            });
            looked = Instant::now();
        }
    }
}

/// Kills the processes of a cgroup. Before Linux 5.14, those that the server knows are killed by their ids only.
pub(crate) fn kill(directory: &Path) {
    let _ = written(&directory.join(KILL_FILE), "1");
}

/// Kills the processes of a cgroup, and waits until it is removed.
pub(crate) fn remove_cgroup(directory: &Path) -> io::Result<()> {
    kill(directory);
    for _ in 1..ATTEMPTS_MAX {
        if is_removed(directory) {
            return Ok(());
        }
        thread::sleep(RETRY_EVERY);
    }
    fs::remove_dir(directory)
}

fn is_removed(directory: &Path) -> bool {
    match fs::remove_dir(directory) {
        Ok(()) => true,
        Err(why) => why.kind() == io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_is_removed_as_soon_as_it_can_be() {
        let ground = tempfile::tempdir().expect("a directory");
        let directory = ground.path().join("sandbox-1");
        // A directory that is not empty stands for a cgroup with processes.
        fs::create_dir_all(directory.join("process")).expect("directories");
        let leaving = LeavingCgroups::start().expect("a thread");
        leaving.remove(directory.clone());
        assert!(directory.exists());
        fs::remove_dir(directory.join("process")).expect("removed");
        let is_gone = (0..500).any(|_| {
            thread::sleep(Duration::from_millis(10));
            !directory.exists()
        });
        assert!(is_gone);
        assert!(remove_cgroup(&directory).is_ok(), "a missing one is no error");
    }
}
