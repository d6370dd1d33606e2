//! The built program, started on a directory of its own and a port the system chose.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The key of a server that is told one. No secret: the server is gone when its test ends.
pub const TEST_KEY: &str = "sk-test0000000000000000000000000000000000000000";

const READY: &str = "Assay is ready at ";
const FOUNDED: &str = "API key (shown once): ";
/// A debug build on a busy machine.
const START_MAX: Duration = Duration::from_secs(120);
/// The server gives what is under way 30 s.
const STOP_MAX: Duration = Duration::from_secs(60);
const STOP_POLL: Duration = Duration::from_millis(20);
/// Lines waiting for the test; the server prints two.
const LINES_MAX: usize = 64;

/// How to start one.
#[derive(Clone, Debug)]
pub struct Options {
    pub data_dir: PathBuf,
    /// None: the server makes a key and prints it.
    pub key: Option<String>,
    /// Settings, as `--set` takes them: `http.listen=...`.
    pub settings: Vec<String>,
}

impl Options {
    pub fn new(data_dir: &Path) -> Options {
        Options { data_dir: data_dir.to_owned(), key: Some(TEST_KEY.into()), settings: Vec::new() }
    }
}

#[derive(Debug)]
pub struct Server {
    child: Child,
    pub url: String,
    /// What requests authenticate with: the key it was told, or the one it printed.
    pub key: String,
    /// Whether it printed a key.
    pub printed_key: bool,
    log: PathBuf,
}

impl Server {
    /// Starts the program and waits until it says that it is ready.
    pub fn start(options: &Options) -> Result<Server> {
        let log = options.data_dir.with_extension("log");
        let mut child = command(options, &log)?.spawn().context("the program does not start")?;
        let lines = lines_of(&mut child)?;
        let mut printed = None;
        let deadline = Instant::now() + START_MAX;
        loop {
            let line = lines.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            let Ok(line) = line else {
                let _ = child.kill();
                let status = child.wait().context("the program cannot be waited for")?;
                bail!("the server did not become ready ({status}). It said:\n{}", tail(&log));
            };
            if let Some(key) = line.strip_prefix(FOUNDED) {
                printed = Some(key.trim().to_owned());
            }
            if let Some(url) = line.strip_prefix(READY) {
                let url = url.trim().trim_end_matches('/').to_owned();
                let key = options.key.clone().or_else(|| printed.clone()).unwrap_or_default();
                return Ok(Server { child, url, key, printed_key: printed.is_some(), log });
            }
        }
    }

    /// What a server that should refuse to start says, all of it; an error where it starts.
    pub fn refusal(options: &Options) -> Result<String> {
        match Server::start(options) {
            Ok(server) => bail!("it started, at {}", server.url),
            Err(error) => Ok(error.to_string()),
        }
    }

    /// SIGTERM, and wait for the end.
    pub fn stop(mut self) -> Result<ExitStatus> {
        let status = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        status.context("`kill` cannot be run")?;
        let deadline = Instant::now() + STOP_MAX;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(STOP_POLL);
        }
        bail!("the server did not stop within {STOP_MAX:?}. It said:\n{}", tail(&self.log))
    }

    /// SIGKILL.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Whether it still runs.
    pub fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The end of what it wrote to its error output.
    pub fn log(&self) -> String {
        tail(&self.log)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where the program is: `ASSAY_BIN`, or beside the test that asks.
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

fn command(options: &Options, log: &Path) -> Result<Command> {
    let mut command = Command::new(program()?);
    // The environment of the tests is not the server's: it would refuse settings that it does not know.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ASSAY_") {
            command.env_remove(name);
        }
    }
    if let Some(key) = &options.key {
        command.env("ASSAY_API_KEY", key);
    }
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(&options.data_dir);
    for setting in &options.settings {
        command.args(["--set", setting]);
    }
    let log = File::create(log).with_context(|| format!("{} cannot be made", log.display()))?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    Ok(command)
}

/// Its lines as they come. The thread reads on behind the last one that is wanted, so that the server never waits.
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

fn tail(log: &Path) -> String {
    const SHOWN_LINES: usize = 40;
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}
