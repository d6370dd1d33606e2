//! Child processes: their output line by line, their end by their own pid, and their last lines of stderr.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::Context;

/// Interval at which an ending process is polled.
const POLL: Duration = Duration::from_millis(2);
/// Bytes of a process's stderr that are shown.
const LAST_WORDS_BYTES: usize = 2000;

#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    lines: Receiver<String>,
    stderr: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    Line(String),
    /// Nothing until the deadline.
    Late,
    /// It closed its output.
    Ended,
}

/// This program again, with a subcommand.
pub fn myself() -> anyhow::Result<Command> {
    Ok(Command::new(std::env::current_exe().context("finding this program's own file")?))
}

impl Child {
    /// Starts `command`, its stdout read by lines, its stderr going to a file.
    pub fn start(mut command: Command, stderr: &Path) -> anyhow::Result<Child> {
        command.stdin(Stdio::null());
        Child::spawn(command, stderr)
    }

    /// Starts the process like `start`, with a pipe to its stdin.
    pub fn start_listening(mut command: Command, stderr: &Path) -> anyhow::Result<(Child, ChildStdin)> {
        command.stdin(Stdio::piped());
        let mut child = Child::spawn(command, stderr)?;
        let orders = child.process.stdin.take().context("the child's stdin")?;
        Ok((child, orders))
    }

    fn spawn(mut command: Command, stderr: &Path) -> anyhow::Result<Child> {
        let errors = File::create(stderr).with_context(|| format!("creating {}", stderr.display()))?;
        let mut process =
            command.stdout(Stdio::piped()).stderr(errors).spawn().with_context(|| format!("starting {command:?}"))?;
        let stdout = process.stdout.take().context("the child's stdout")?;
        let (send, lines) = channel();
        std::thread::Builder::new().name("child-lines".into()).spawn(move || {
            let mut reader = BufReader::new(stdout);
            let mut line = String::new();
            // A last line without its end was never said.
            while matches!(reader.read_line(&mut line), Ok(length) if length > 0) && line.ends_with('\n') {
                if send.send(line.trim_end().to_owned()).is_err() {
                    break;
                }
                line.clear();
            }
        })?;
        Ok(Child { process, lines, stderr: stderr.to_path_buf() })
    }

    /// Returns its pid, which is not reused until the process was waited for.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Sends it a signal by its pid.
    pub fn signal(&self, name: &str) -> anyhow::Result<()> {
        tool("sh", &["-c", "kill -s \"$0\" \"$1\"", name, &self.id().to_string()]).map(drop)
    }

    pub fn next(&mut self, deadline: Instant) -> Next {
        match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => Next::Line(line),
            Err(RecvTimeoutError::Timeout) => Next::Late,
            Err(RecvTimeoutError::Disconnected) => Next::Ended,
        }
    }

    /// Kills it by its pid with `kill -9`; lines written before can still be read.
    pub fn kill(&mut self) -> anyhow::Result<ExitStatus> {
        // An error means that it has ended already.
        let _ = self.process.kill();
        self.process.wait().context("waiting for a killed child")
    }

    /// Its status, if it ends by the deadline.
    pub fn wait(&mut self, deadline: Instant) -> anyhow::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.process.try_wait()? {
                return Ok(Some(status));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::thread::sleep(POLL);
        }
    }

    /// The end of its stderr.
    pub fn last_words(&self) -> String {
        let text = std::fs::read(&self.stderr).unwrap_or_default();
        let from = text.len().saturating_sub(LAST_WORDS_BYTES);
        String::from_utf8_lossy(&text[from..]).trim().to_owned()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both fail when it has ended already, which is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs a command of ours to its end within this time; its stdout, or its last words.
pub fn output(command: Command, stderr: &Path, wait: Duration) -> anyhow::Result<String> {
    let deadline = Instant::now() + wait;
    let mut child = Child::start(command, stderr)?;
    let mut said = String::new();
    loop {
        match child.next(deadline) {
            Next::Line(line) => said += &(line + "\n"),
            Next::Late => anyhow::bail!("it did not end within {wait:?}: {}", child.last_words()),
            Next::Ended => break,
        }
    }
    match child.wait(deadline)? {
        Some(status) if status.success() => Ok(said),
        Some(status) => anyhow::bail!("{status}: {}", child.last_words()),
        None => anyhow::bail!("it did not end within {wait:?}: {}", child.last_words()),
    }
}

/// Runs a tool to its end; returns its stdout, or its error output.
pub fn tool(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("starting {program}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::bail!("{program} {}: {}: {}", arguments.join(" "), output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
