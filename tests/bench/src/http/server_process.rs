//! A server as a process of its own: started, addressed by its own output, measured, killed.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use rustix::process::{Pid, Signal};

use super::client::Target;
use crate::client_threads::spawn;
use crate::process::{CpuSeconds, Process, cpu_between};

/// Time limit for a server to report ready.
const READY_WAIT_MAX: Duration = Duration::from_secs(120);
/// A server gives what is under way 30 s, and then closes its store.
const STOP_WAIT_MAX: Duration = Duration::from_secs(60);
const STOP_LOOK: Duration = Duration::from_millis(5);
/// Lines of a server's output that may wait to be looked at.
const LINES_MAX: usize = 64;
/// First key of the server, used by the client.
const KEY: &str = "sk-assayBenchAssayBenchAssayBenchAssayBenchAssayB";
/// Lines of a failed server's stderr that are shown.
const COMPLAINTS_SHOWN: usize = 10;
/// A server whose threads use less than this share of a processor has nothing left to do.
const QUIET_SHARE: f64 = 0.05;
const QUIET_LOOK: Duration = Duration::from_secs(2);
const QUIET_LOOKS_MAX: u32 = 150;

/// It is killed when this is dropped.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    target: Target,
    /// Address of the gRPC listener for exporters.
    otlp: Option<SocketAddr>,
}

fn serving(program: &Path, data_dir: &Path, listen: SocketAddr, settings: &[(&str, &str)]) -> Command {
    let mut command = Command::new(program);
    command.args(["serve", "--listen", &listen.to_string(), "--data-dir"]).arg(data_dir);
    // Programs of before, which are measured too, do not know the setting.
    if listen.port() != 0 {
        command.args(["--set", "http.otlp_listen=off"]);
    }
    command.env("ASSAY_API_KEY", KEY).envs(settings.iter().copied());
    command
}

impl ServerProcess {
    /// `assay serve` on a data directory, new or left by another.
    pub fn assay(program: &Path, data_dir: &Path) -> anyhow::Result<ServerProcess> {
        ServerProcess::assay_at(program, data_dir, SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    /// The same with settings as the environment has them.
    pub fn assay_with(program: &Path, data_dir: &Path, settings: &[(&str, &str)]) -> anyhow::Result<ServerProcess> {
        let command = serving(program, data_dir, SocketAddr::from(([127, 0, 0, 1], 0)), settings);
        ServerProcess::start(command, data_dir, Some(KEY.into()))
    }

    /// Starts a server at an address that the clients already have.
    pub fn assay_at(program: &Path, data_dir: &Path, listen: SocketAddr) -> anyhow::Result<ServerProcess> {
        ServerProcess::start(serving(program, data_dir, listen, &[]), data_dir, Some(KEY.into()))
    }

    /// This program's own bare pipeline.
    pub fn bare(dir: &Path) -> anyhow::Result<ServerProcess> {
        let dir_text = dir.to_str().context("a directory with a name in UTF-8")?;
        ServerProcess::part(dir, &["bare", "--listen", "127.0.0.1:0", "--dir", dir_text])
    }

    /// A server that is a command of this program.
    pub fn part(dir: &Path, arguments: &[&str]) -> anyhow::Result<ServerProcess> {
        std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        let mut command = Command::new(std::env::current_exe().context("finding this program's own file")?);
        command.args(arguments);
        ServerProcess::start(command, dir, None)
    }

    fn start(mut command: Command, dir: &Path, key: Option<String>) -> anyhow::Result<ServerProcess> {
        // Beside the directory, which is the server's own.
        let complaints = dir.with_extension("stderr");
        // Behind what it said before it was killed or stopped.
        let stderr = OpenOptions::new().create(true).append(true).open(&complaints);
        let stderr = stderr.with_context(|| format!("creating {}", complaints.display()))?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).spawn();
        let mut child = child.with_context(|| format!("starting {}", command.get_program().display()))?;
        let stdout = child.stdout.take().context("the server's output")?;
        // Dropped, and the child with it killed, where it does not get ready.
        let unset = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut server = ServerProcess { child, target: Target { address: unset, key }, otlp: None };
        (server.target.address, server.otlp) = wait_until_ready(stdout).with_context(|| told(&complaints))?;
        Ok(server)
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    pub fn otlp(&self) -> Option<SocketAddr> {
        self.otlp
    }

    pub fn process(&self) -> Process {
        Process::of(&self.child)
    }

    /// Returns the id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the server has done what its clients left it to do, such as sealing and compacting.
    pub fn quiet(&self) -> anyhow::Result<()> {
        let sum = |used: CpuSeconds| used.values().sum::<f64>();
        for _ in 0..QUIET_LOOKS_MAX {
            let before = self.process().cpu()?;
            std::thread::sleep(QUIET_LOOK);
            if sum(cpu_between(&before, &self.process().cpu()?)) < QUIET_SHARE * QUIET_LOOK.as_secs_f64() {
                return Ok(());
            }
        }
        bail!("the server does not come to rest")
    }

    /// `kill -9`, and waits until it is gone.
    pub fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// SIGTERM, and waits until it has ended as it should.
    pub fn stop(mut self) -> anyhow::Result<()> {
        rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let began = Instant::now();
        while began.elapsed() < STOP_WAIT_MAX {
            if let Some(status) = self.child.try_wait()? {
                return if status.success() { Ok(()) } else { Err(anyhow!("the server ended with {status}")) };
            }
            std::thread::sleep(STOP_LOOK);
        }
        bail!("the server does not stop within {} s", STOP_WAIT_MAX.as_secs())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Both fail when it has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns its address, and that of its gRPC listener.
fn wait_until_ready(stdout: ChildStdout) -> anyhow::Result<(SocketAddr, Option<SocketAddr>)> {
    let (sender, lines) = sync_channel(LINES_MAX);
    spawn("bench-output", move || {
        for line in BufReader::new(stdout).lines() {
            // Read to its end also when nobody looks any more, or the server would wait for room to write.
            let _ = sender.try_send(line?);
        }
        Ok(())
    })?;
    ready_address(&lines)
}

fn ready_address(lines: &Receiver<String>) -> anyhow::Result<(SocketAddr, Option<SocketAddr>)> {
    let (began, mut otlp) = (Instant::now(), None);
    loop {
        match lines.recv_timeout(READY_WAIT_MAX.saturating_sub(began.elapsed())) {
            Ok(line) => {
                if let Some(address) = address_in(&line, " is ready at http://") {
                    return Ok((address, otlp));
                }
                otlp = otlp.or(address_in(&line, " over gRPC at http://"));
            }
            Err(RecvTimeoutError::Disconnected) => bail!("the server ended before it was ready"),
            Err(RecvTimeoutError::Timeout) => bail!("the server is not ready after {} s", READY_WAIT_MAX.as_secs()),
        }
    }
}

/// The address in a line such as `Assay is ready at http://127.0.0.1:8000`.
fn address_in(line: &str, words: &str) -> Option<SocketAddr> {
    line.split_once(words)?.1.trim().parse().ok()
}

/// The end of what a server wrote to stderr.
fn told(complaints: &PathBuf) -> String {
    let text = std::fs::read_to_string(complaints).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let shown = &lines[lines.len().saturating_sub(COMPLAINTS_SHOWN)..];
    format!("the server did not start; it said: {}", if shown.is_empty() { "nothing".into() } else { shown.join("\n") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_says_where_is_found_among_others() {
        let (sender, lines) = sync_channel(4);
        let exporters = "Exporters of OpenTelemetry are served over gRPC at http://127.0.0.1:1234";
        for line in ["API key (shown once): sk-1", exporters, "Assay is ready at http://127.0.0.1:4321"] {
            sender.send(line.to_owned()).expect("room");
        }
        drop(sender);
        let (address, otlp) = ready_address(&lines).expect("an address");
        assert_eq!((address.port(), otlp.map(|otlp| otlp.port())), (4321, Some(1234)));
        assert!(ready_address(&lines).is_err(), "it ended without another word");
        assert_eq!(address_in("Assay is ready at https://elsewhere", " is ready at http://"), None);
    }
}
