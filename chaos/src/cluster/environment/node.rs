//! One node: its data, its addresses, and the lives of its process.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::capabilities;
use crate::child_process::{Child, Next, tool};
use crate::loop_image::LoopImage;
use crate::single_node::disk_full;

/// Time limit for a node to become ready.
pub const READY_MAX: Duration = Duration::from_secs(60);
const BALLAST: &str = "filler";

/// Location of a node's data.
#[derive(Debug)]
pub enum Home {
    Directory(PathBuf),
    /// A disk of its own, which can fill and lose its power.
    Disk(LoopImage),
}

impl Home {
    fn root(&self) -> &Path {
        match self {
            Home::Directory(path) => path,
            Home::Disk(disk) => disk.path(),
        }
    }
}

#[derive(Debug)]
pub struct Node {
    pub number: u8,
    pub http: SocketAddr,
    pub metrics: SocketAddr,
    pub peer: SocketAddr,
    // Before the home: who has files open must be gone before a disk can go.
    process: Option<Child>,
    home: Home,
    logs: PathBuf,
    lives: u32,
    /// The program that it runs, where that is not the one under trial.
    pub program: Option<PathBuf>,
    /// Words in front of the program.
    pub through: Vec<String>,
    /// Arguments besides its address and directory.
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// The library that shows it another time, if it has a clock of its own.
    pub fake_time: Option<PathBuf>,
    /// Why it may end by itself just now.
    excuse: Option<String>,
    /// It is never started again.
    pub gone: bool,
    unmounted: bool,
}

impl Node {
    pub fn new(number: u8, addresses: [SocketAddr; 3], home: Home, logs: &Path) -> Node {
        let [http, metrics, peer] = addresses;
        Node {
            number,
            http,
            metrics,
            peer,
            process: None,
            home,
            logs: logs.to_path_buf(),
            lives: 0,
            program: None,
            through: Vec::new(),
            arguments: Vec::new(),
            environment: Vec::new(),
            fake_time: None,
            excuse: None,
            gone: false,
            unmounted: false,
        }
    }

    pub fn data_dir(&self) -> PathBuf {
        self.home.root().join("data")
    }

    pub fn disk(&self) -> Option<&LoopImage> {
        match &self.home {
            Home::Disk(disk) => Some(disk),
            Home::Directory(_) => None,
        }
    }

    /// The program that this node runs from its next start on.
    pub fn program(&self) -> anyhow::Result<PathBuf> {
        self.program.clone().map_or_else(capabilities::program, Ok)
    }

    /// Adds settings, each as `table.name=value`, from the next start on.
    pub fn set(&mut self, settings: impl IntoIterator<Item = String>) {
        self.arguments.extend(settings.into_iter().flat_map(|setting| ["--set".to_owned(), setting]));
    }

    /// Log of the current life.
    fn log(&self) -> PathBuf {
        self.logs.join(format!("node-{}-life-{}.stderr", self.number, self.lives))
    }

    /// Returns whether the log of the current life contains these words.
    pub fn logged(&self, words: &str) -> anyhow::Result<bool> {
        let log = self.log();
        let text = std::fs::read(&log).with_context(|| format!("reading {}", log.display()))?;
        Ok(String::from_utf8_lossy(&text).contains(words))
    }

    /// Starts the program; it may take a while until it is ready.
    pub fn launch(&mut self) -> anyhow::Result<()> {
        ensure!(self.process.is_none() && !self.gone, "node {} runs or is gone", self.number);
        self.remount()?;
        self.lives += 1;
        if let Some(why) = self.excuse.clone() {
            self.excuse(&why)?;
        }
        let mut words: Vec<String> = Vec::new();
        if capabilities::has("setpriv") {
            // Should this process die without a word, its children do not outlive it.
            words.extend(["setpriv", "--pdeathsig", "KILL", "--"].map(str::to_owned));
        }
        words.extend(self.through.iter().cloned());
        words.extend(self.clock_words());
        words.push(self.program()?.to_string_lossy().into_owned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(["serve", "--listen", &self.http.to_string(), "--data-dir"]);
        command.arg(self.data_dir()).args(&self.arguments).envs(self.environment.iter().cloned());
        command.args(["--set", &format!("http.metrics_listen={}", self.metrics), "--set", "http.otlp_listen=off"]);
        // What the terminal sends to all is not for nodes: they are ended one by one.
        command.process_group(0);
        let log = self.log();
        self.process = Some(Child::start(command, &log)?);
        Ok(())
    }

    /// Returns the settings for a faked clock. Only the program itself gets it, not its wrappers.
    fn clock_words(&self) -> Vec<String> {
        let Some(library) = &self.fake_time else { return Vec::new() };
        vec![
            "env".into(),
            format!("LD_PRELOAD={}", library.display()),
            format!("FAKETIME_TIMESTAMP_FILE={}", self.file("clock").display()),
            "FAKETIME_CACHE_DURATION=1".into(),
            "FAKETIME_DONT_FAKE_MONOTONIC=1".into(),
        ]
    }

    /// Waits until it reports ready. A process that ends meanwhile is left for `exited` to find.
    pub fn await_ready(&mut self, deadline: Instant) -> anyhow::Result<bool> {
        let process = self.process.as_mut().context("it does not run")?;
        loop {
            match process.next(deadline) {
                Next::Line(line) if line.starts_with("Assay is ready at ") => return Ok(true),
                Next::Line(_) => {}
                Next::Late => {
                    anyhow::bail!("node {} was not ready within {READY_MAX:?}: {}", self.number, process.last_words())
                }
                Next::Ended => return Ok(false),
            }
        }
    }

    pub fn runs(&self) -> bool {
        self.process.is_some()
    }

    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    pub fn signal(&self, name: &str) -> anyhow::Result<()> {
        self.process.as_ref().context("it does not run")?.signal(name)
    }

    pub fn kill(&mut self) -> anyhow::Result<()> {
        match self.process.take() {
            Some(mut process) => {
                process.kill()?;
                self.bury(process.id());
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Removes the shared memory that the clock library leaves behind after a crash.
    fn bury(&self, pid: u32) {
        if self.fake_time.is_some() {
            for file in [format!("/dev/shm/faketime_shm_{pid}"), format!("/dev/shm/sem.faketime_sem_{pid}")] {
                // Mostly it has tidied up.
                let _ = std::fs::remove_file(file);
            }
        }
    }

    /// SIGTERM, and the end of it; a node that does not end is killed, and nothing is answered.
    pub fn terminate(&mut self, wait: Duration) -> anyhow::Result<Option<ExitStatus>> {
        let Some(mut process) = self.process.take() else { return Ok(None) };
        process.signal("TERM")?;
        let ended = process.wait(Instant::now() + wait)?;
        if ended.is_none() {
            process.kill()?;
        }
        self.bury(process.id());
        Ok(ended)
    }

    /// Allows this life, and those it begins until `answer_for_itself`, to end by themselves and log the reason.
    pub fn excuse(&mut self, why: &str) -> anyhow::Result<()> {
        let file = self.logs.join(format!("node-{}-life-{}.excuse", self.number, self.lives));
        std::fs::write(file, why).context("writing an excuse")?;
        self.excuse = Some(why.to_owned());
        Ok(())
    }

    /// Records a file of the data directory before a fault damages it. The node may report that damage at any later
    /// time, when the file is next read.
    pub fn record_damage(&self, path: &Path) -> anyhow::Result<()> {
        let file = self.logs.join(format!("node-{}.damaged", self.number));
        let name = path.strip_prefix(self.data_dir()).unwrap_or(path);
        let mut list = OpenOptions::new().create(true).append(true).open(&file)?;
        writeln!(list, "{}", name.display()).with_context(|| format!("writing {}", file.display()))
    }

    /// Ends the excuse: from here on an unexpected end is a finding.
    pub fn answer_for_itself(&mut self) {
        self.excuse = None;
    }

    pub fn excused(&self) -> Option<String> {
        self.excuse.clone()
    }

    /// Returns whether and how it ended by itself, with its last lines of stderr.
    pub fn exited(&mut self) -> anyhow::Result<Option<String>> {
        let Some(process) = &mut self.process else { return Ok(None) };
        let Some(status) = process.wait(Instant::now())? else { return Ok(None) };
        let (words, pid) = (process.last_words(), process.id());
        self.process = None;
        self.bury(pid);
        Ok(Some(format!("{status}: {words}")))
    }

    /// Nothing more reaches its disk. Who cuts many cuts all disks first, then ends the processes.
    pub fn cut_power(&mut self) -> anyhow::Result<()> {
        self.excuse("its disk lost power")?;
        self.disk().context("it has no disk of its own")?.cut_power()
    }

    /// Unmounts the disk; unsynced data is lost.
    pub fn unmount(&mut self) -> anyhow::Result<()> {
        if let Home::Disk(disk) = &mut self.home {
            disk.unmount()?;
            self.unmounted = true;
        }
        Ok(())
    }

    /// Mounts its disk again, if it was unmounted.
    pub fn remount(&mut self) -> anyhow::Result<()> {
        if let Home::Disk(disk) = &mut self.home
            && self.unmounted
        {
            disk.mount()?;
            self.unmounted = false;
        }
        Ok(())
    }

    /// Limits the files that its process may open. Returns the limit before.
    pub fn limit_files(&self, soft: &str) -> anyhow::Result<String> {
        let Some(pid) = self.pid() else { return Ok(soft.to_owned()) };
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).context("reading its limits")?;
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).context("no limit of files")?;
        let before = line.split_ascii_whitespace().next().context("no limit of files")?.to_owned();
        tool("prlimit", &["--pid", &pid.to_string(), &format!("--nofile={soft}:")])?;
        Ok(before)
    }

    /// The place of a second copy of its data, on the same disk.
    pub fn aside(&self) -> PathBuf {
        self.home.root().join("aside")
    }

    /// Fills the disk except for this many MiB.
    pub fn fill(&self, leave_mib: u64) -> anyhow::Result<()> {
        ensure!(self.disk().is_some(), "it has no disk of its own");
        disk_full::fill(&self.home.root().join(BALLAST), leave_mib)
    }

    pub fn empty(&self) -> anyhow::Result<()> {
        let ballast = self.home.root().join(BALLAST);
        if ballast.exists() {
            std::fs::remove_file(ballast)?;
        }
        Ok(())
    }

    /// Its data is copied to where it can be looked at.
    pub fn keep(&mut self, to: &Path) -> anyhow::Result<()> {
        self.remount()?;
        if let Home::Disk(disk) = &self.home {
            crate::directory_copies::copy(&disk.path().join("data"), to)?;
        }
        Ok(())
    }

    /// Returns its open files and sockets, threads and memory, as reported by the system.
    pub fn gauges(&self) -> Vec<(String, f64)> {
        let Some(pid) = self.pid() else { return Vec::new() };
        let held = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let held: Vec<PathBuf> = held.filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect();
        let sockets = held.iter().filter(|held| held.to_string_lossy().starts_with("socket:")).count();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_ascii_whitespace().next()?.parse::<f64>().ok()
        };
        let mut gauges = vec![("files".to_owned(), held.len() as f64), ("sockets".to_owned(), sockets as f64)];
        gauges.extend(number("Threads:").map(|threads| ("threads".to_owned(), threads)));
        gauges.extend(number("VmRSS:").map(|memory| ("memory_kib".to_owned(), memory)));
        gauges
    }

    /// Writes the wait state of every thread beside its log, for a process that hangs.
    pub fn autopsy(&self) -> anyhow::Result<()> {
        let Some(pid) = self.pid() else { return Ok(()) };
        let mut said = String::new();
        for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            let task = task?.path();
            let read = |name: &str| std::fs::read_to_string(task.join(name)).unwrap_or_default();
            said += &format!("{} {} {}", read("comm").trim(), read("wchan"), read("syscall"));
        }
        let file = self.logs.join(format!("node-{}-life-{}.threads", self.number, self.lives));
        std::fs::write(file, said).context("writing what threads wait for")
    }

    /// Returns a file next to its logs, such as for the output of a command.
    pub fn file(&self, name: &str) -> PathBuf {
        self.logs.join(format!("node-{}-{name}", self.number))
    }

    /// Moves the clock that it is shown; only where it was started with one of its own.
    pub fn set_clock(&self, offset_seconds: i64) -> anyhow::Result<()> {
        let file = self.file("clock");
        let mut told = File::create(&file)?;
        std::io::Write::write_all(&mut told, format!("{offset_seconds:+}\n").as_bytes())?;
        Ok(())
    }
}
