//! The built program while it runs: its lines, its log, its end. The process ends when its value is dropped.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A debug build on a busy machine.
pub const START_MAX: Duration = Duration::from_secs(120);
/// A node gives what is under way 30 s.
pub const STOP_MAX: Duration = Duration::from_secs(60);
/// One that closed its output is about to end.
const END_MAX: Duration = Duration::from_secs(10);
const STOP_POLL: Duration = Duration::from_millis(20);
/// Lines waiting for the test; the longest text that a command prints is the state of a cluster, a line a group.
const LINES_MAX: usize = 1024;

#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Locked without contention: tests share a server among threads, which a receiver alone does not allow.
    lines: Mutex<Receiver<String>>,
    log: PathBuf,
}

impl Process {
    /// Starts it. What it prints is for `until`, its error output goes to the file `log`.
    pub fn start(command: &mut Command, log: &Path) -> Result<Process> {
        let file = File::create(log).with_context(|| format!("{} cannot be made", log.display()))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file);
        let mut child = command.spawn().context("the program does not start")?;
        let lines = Mutex::new(lines_of(&mut child)?);
        Ok(Process { child, lines, log: log.to_owned() })
    }

    /// Reads what it prints up to the line that `wanted` takes; an error where that does not come within START_MAX, or
    /// the program ends before.
    pub fn until<T>(&mut self, mut wanted: impl FnMut(&str) -> Option<T>) -> Result<T> {
        let deadline = Instant::now() + START_MAX;
        loop {
            let how = match self.next_line(deadline) {
                Ok(line) => match wanted(&line) {
                    Some(found) => return Ok(found),
                    None => continue,
                },
                Err(RecvTimeoutError::Timeout) => format!("not within {START_MAX:?}"),
                Err(RecvTimeoutError::Disconnected) => match self.ended_within(END_MAX)? {
                    Some(status) => status.to_string(),
                    None => "it closed its output".to_owned(),
                },
            };
            bail!("the program did not become ready ({how}). It said:\n{}", self.log());
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGTERM, and wait for the end.
    pub fn stop(&mut self, within: Duration) -> Result<ExitStatus> {
        signal("TERM", self.id())?;
        let Some(status) = self.ended_within(within)? else {
            bail!("the program did not stop within {within:?}. It said:\n{}", self.log());
        };
        Ok(status)
    }

    /// Waits for its end, and returns what it printed since; an error where it does not end well.
    pub fn finish(&mut self, within: Duration) -> Result<Vec<String>> {
        let Some(status) = self.ended_within(within)? else {
            bail!("the program did not end within {within:?}. It said:\n{}", self.log());
        };
        if !status.success() {
            bail!("the program ended with {status}. It said:\n{}", self.log());
        }
        let deadline = Instant::now() + END_MAX;
        Ok(std::iter::from_fn(|| self.next_line(deadline).ok()).collect())
    }

    fn next_line(&mut self, deadline: Instant) -> Result<String, RecvTimeoutError> {
        let lines = self.lines.get_mut().unwrap_or_else(PoisonError::into_inner);
        lines.recv_timeout(deadline.saturating_duration_since(Instant::now()))
    }

    fn ended_within(&mut self, time: Duration) -> Result<Option<ExitStatus>> {
        let deadline = Instant::now() + time;
        loop {
            let status = self.child.try_wait().context("the program cannot be waited for")?;
            if status.is_some() || Instant::now() >= deadline {
                return Ok(status);
            }
            std::thread::sleep(STOP_POLL);
        }
    }

    /// SIGKILL.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Returns whether it still runs.
    pub fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The end of what it wrote to its error output.
    pub fn log(&self) -> String {
        const SHOWN_LINES: usize = 40;
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended by itself
        let _ = self.child.wait();
    }
}

/// Returns the path of the program: `ASSAY_BIN`, or beside the calling test.
pub fn program() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("ASSAY_BIN") {
        return Ok(PathBuf::from(path));
    }
    let test = std::env::current_exe().context("where this test is")?;
    let folder = test.parent().and_then(Path::parent).context("a folder above the test")?;
    let path = folder.join(format!("assay{}", std::env::consts::EXE_SUFFIX));
    if !path.is_file() {
        bail!(
            "there is no program at {}: build it with `cargo build -p assay`, or name one in ASSAY_BIN",
            path.display()
        );
    }
    Ok(path)
}

/// Creates a command without the environment of the tests: the program would refuse unknown settings.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ASSAY_") {
            command.env_remove(name);
        }
    }
    command
}

/// A command of the program that ends by itself, given nothing on its input or this line.
pub fn run(arguments: &[&str], environment: &[(&str, &str)], input: &str) -> Result<Ran> {
    let mut command = command(&program()?);
    command.args(arguments).envs(environment.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("the program does not start")?;
    // Dropped at once, so that who reads on finds the end.
    child.stdin.take().context("its input")?.write_all(input.as_bytes())?;
    let output = child.wait_with_output().context("the program cannot be waited for")?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Ran { success: output.status.success(), out: text(output.stdout), errors: text(output.stderr) })
}

/// Output of a command.
#[derive(Clone, Debug)]
pub struct Ran {
    pub success: bool,
    pub out: String,
    pub errors: String,
}

impl Ran {
    /// Returns its JSON output; an error if it failed.
    pub fn json(&self) -> Result<Value> {
        if !self.success {
            bail!("the command failed: {}{}", self.out, self.errors);
        }
        serde_json::from_str(&self.out).with_context(|| format!("no JSON: {}", self.out))
    }
}

/// Sends a signal, named as `kill` names it, to a process that is this one's child or such a child's.
pub fn signal(name: &str, process: u32) -> Result<()> {
    let status = Command::new("kill").args([format!("-{name}"), process.to_string()]).status();
    let status = status.context("`kill` cannot be run")?;
    if !status.success() {
        bail!("process {process} takes no signal {name}");
    }
    Ok(())
}

/// Its lines as they come. The thread reads on behind the last one that is wanted, so that the program never waits.
fn lines_of(child: &mut Child) -> Result<Receiver<String>> {
    let out = child.stdout.take().context("its output")?;
    let (sender, lines) = sync_channel(LINES_MAX);
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            let _ = sender.try_send(line);
        }
    });
    Ok(lines)
}
