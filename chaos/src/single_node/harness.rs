//! Harness of one data directory under attack: the worker that writes to it, the history of all its lives, and the
//! check of the state after each.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

use crate::child_process::{Child, Next, myself};
use crate::report::Report;
use crate::single_node::dump::Dump;
use crate::single_node::store_checks;
use crate::single_node::worker_history::{Recorder, WorkerEvent, WorkerHistory};

/// A start that takes longer is a finding.
const READY_MAX: Duration = Duration::from_secs(60);
/// A dump that takes longer is a finding.
const DUMP_MAX: Duration = Duration::from_secs(180);
/// Earlier versions read again in each check.
const VERSIONS_AGAIN: usize = 10;
/// The client under whose name dumps are recorded.
const DUMP_CLIENT: u32 = 1_000_000;

#[derive(Debug)]
pub struct StoreHarness {
    work: TempDir,
    /// The data directory.
    pub dir: PathBuf,
    recorder: Recorder,
    seed: u64,
    run: u32,
    dumps: u32,
}

/// Options of a worker besides its directory.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    /// Force a seal and a compaction so long after the start.
    pub upkeep_after: Option<Duration>,
    /// Stop cleanly after so many operations.
    pub operations: Option<u32>,
    pub clients: Option<u32>,
    /// Wrapper of the worker's process, such as a tracer.
    pub through: Vec<String>,
}

/// Outcome of a worker's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerLife {
    /// Still running when the time was over.
    Running,
    /// It closed its output: it is ending.
    Ended,
}

/// Outcome of opening and reading everything.
#[derive(Debug)]
pub enum Opened {
    Whole(Box<Dump>),
    /// It ended with an error and these words.
    Refused {
        status: String,
        words: String,
    },
    /// It did not end in time.
    Hung,
}

impl StoreHarness {
    /// A fresh place; `dir` is where the data goes, below the place if none is given.
    pub fn new(seed: u64, dir: Option<&Path>) -> anyhow::Result<StoreHarness> {
        let work = tempfile::Builder::new().prefix("assay-chaos-").tempdir().context("making a temporary directory")?;
        let dir = dir.map_or_else(|| work.path().join("data"), Path::to_path_buf);
        let recorder = Recorder::create(&work.path().join("history.jsonl"))?;
        Ok(StoreHarness { work, dir, recorder, seed, run: 0, dumps: 0 })
    }

    pub fn work(&self) -> &Path {
        self.work.path()
    }

    /// Leaves everything where it is, for someone to look at.
    pub fn keep(self) -> PathBuf {
        self.work.keep()
    }

    pub fn record(&mut self, said: WorkerEvent) -> anyhow::Result<()> {
        self.recorder.record(said)
    }

    pub fn history(&self) -> WorkerHistory {
        WorkerHistory::of(self.recorder.events())
    }

    pub fn start_worker(&mut self, orders: &Orders) -> anyhow::Result<Child> {
        self.run += 1;
        let mut command = match orders.through.split_first() {
            None => myself()?,
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments).arg(std::env::current_exe()?);
                command
            }
        };
        command.arg("worker").arg("--dir").arg(&self.dir).arg("--history").arg(self.work.path().join("history.jsonl"));
        let numbers = [
            ("--seed", Some(self.seed)),
            ("--run", Some(u64::from(self.run))),
            ("--ops", orders.operations.map(u64::from)),
            ("--clients", orders.clients.map(u64::from)),
            ("--upkeep-after-ms", orders.upkeep_after.map(|after| after.as_millis() as u64)),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                command.arg(name).arg(number.to_string());
            }
        }
        Child::start(command, &self.work.path().join(format!("worker-{}.stderr", self.run)))
    }

    /// Records the worker's output until `until`, or until an event that `stop` waits for.
    pub fn follow(
        &mut self,
        worker: &mut Child,
        until: Instant,
        stop: impl Fn(&WorkerEvent) -> bool,
    ) -> anyhow::Result<(WorkerLife, bool)> {
        loop {
            match worker.next(until) {
                Next::Line(line) => {
                    let said: WorkerEvent =
                        serde_json::from_str(&line).with_context(|| format!("the worker said {line}"))?;
                    let met = stop(&said);
                    self.recorder.record(said)?;
                    if met {
                        return Ok((WorkerLife::Running, true));
                    }
                }
                Next::Late => return Ok((WorkerLife::Running, false)),
                Next::Ended => return Ok((WorkerLife::Ended, false)),
            }
        }
    }

    /// Waits until the worker writes; whether it does.
    pub fn ready(&mut self, worker: &mut Child, report: &mut Report) -> anyhow::Result<bool> {
        let until = Instant::now() + READY_MAX;
        match self.follow(worker, until, |said| matches!(said, WorkerEvent::Ready { .. }))? {
            (WorkerLife::Running, true) => return Ok(true),
            (WorkerLife::Running, false) => {
                report.findings.push(format!("run {}: not ready after {} s", self.run, READY_MAX.as_secs()));
                self.kill(worker, "hung at start")?;
            }
            (WorkerLife::Ended, _) => {
                worker.wait(until)?;
                report.findings.push(format!("run {}: ended before it was ready: {}", self.run, worker.last_words()));
            }
        }
        Ok(false)
    }

    /// Kills it with `kill -9`; records its remaining output.
    pub fn kill(&mut self, worker: &mut Child, why: &str) -> anyhow::Result<()> {
        let status = worker.kill()?;
        let outcome = if status.code().is_none() { "installed" } else { "skipped" };
        self.drain(worker)?;
        self.recorder.record(WorkerEvent::Fault { what: format!("kill -9, {why}"), outcome: outcome.into() })
    }

    /// Records the remaining output of an ended worker.
    pub fn drain(&mut self, worker: &mut Child) -> anyhow::Result<()> {
        while let Next::Line(line) = worker.next(Instant::now() + READY_MAX) {
            let said = serde_json::from_str(&line).with_context(|| format!("the worker said {line}"))?;
            self.recorder.record(said)?;
        }
        Ok(())
    }

    /// Opens everything in a process of its own, and checks it; findings go to the report.
    pub fn check(&mut self, rng: &mut ChaCha8Rng, report: &mut Report) -> anyhow::Result<bool> {
        let before = report.findings.len();
        let versions = self.versions(rng);
        match self.open(&self.dir.clone(), &versions, DUMP_MAX)? {
            Opened::Whole(dump) => {
                let history = self.history();
                let found = store_checks::all(&history, &dump);
                report.findings.extend(found.into_iter().map(|finding| format!("run {}: {finding}", self.run)));
                report
                    .coverage
                    .add("versions read again", dump.pictures.len().saturating_sub(dump.newest.len()) as u64);
                let seen = store_checks::newly_seen(&history, &dump);
                report.coverage.add("unknown writes that were there", seen.len() as u64);
                self.remember(&dump, seen)?;
            }
            Opened::Refused { status, words } => {
                report.findings.push(format!("run {}: it does not open or read: {status}: {words}", self.run))
            }
            Opened::Hung => report.findings.push(format!("run {}: opening and reading hangs", self.run)),
        }
        Ok(report.findings.len() == before)
    }

    /// Records a dump as a read: it must be repeatable later.
    fn remember(&mut self, dump: &Dump, seen: Vec<(String, u64)>) -> anyhow::Result<()> {
        for (write, xact) in seen {
            self.recorder.record(WorkerEvent::Seen { write, xact })?;
        }
        for (object, version) in &dump.newest {
            let digest = dump.pictures[&(*object, *version)].digest.clone();
            let (client, object, version) = (DUMP_CLIENT, *object, *version);
            self.recorder.record(WorkerEvent::Read { client, object, version, digest, asked: false })?;
        }
        Ok(())
    }

    /// Versions to read again: some that were read, some that were acknowledged.
    pub fn versions(&self, rng: &mut ChaCha8Rng) -> Vec<(u8, u64)> {
        let history = self.history();
        let read = history.reads.iter().map(|read| (read.object, read.version));
        let written =
            history.writes.values().filter_map(|write| write.xacts().next().map(|(_, xact)| (write.object, xact)));
        let known: Vec<(u8, u64)> = read.chain(written).collect();
        let mut versions: Vec<(u8, u64)> = Vec::new();
        if !known.is_empty() {
            versions.extend((0..VERSIONS_AGAIN).map(|_| known[rng.random_range(0..known.len())]));
        }
        versions.sort_unstable();
        versions.dedup();
        versions
    }

    /// Opens `dir` in a process of its own and reads all of it.
    pub fn open(&mut self, dir: &Path, versions: &[(u8, u64)], time: Duration) -> anyhow::Result<Opened> {
        self.dumps += 1;
        open(dir, versions, time, &self.work.path().join(format!("dump-{}", self.dumps)))
    }
}

/// Opens `dir` in a process of its own and reads all of it; its output goes to files named after `output`.
pub fn open(dir: &Path, versions: &[(u8, u64)], time: Duration, output: &Path) -> anyhow::Result<Opened> {
    let mut command = myself()?;
    command.arg("dump").arg("--dir").arg(dir);
    for (object, version) in versions {
        command.arg("--at").arg(format!("{object}:{version}"));
    }
    let mut child = Child::start(command, &output.with_extension("stderr"))?;
    let until = Instant::now() + time;
    let mut text = String::new();
    loop {
        match child.next(until) {
            Next::Line(line) => {
                text.push_str(&line);
                text.push('\n');
            }
            Next::Late => return Ok(Opened::Hung),
            Next::Ended => break,
        }
    }
    match child.wait(until)? {
        None => Ok(Opened::Hung),
        Some(status) if status.success() => match Dump::parse(&text) {
            Ok(dump) => {
                std::fs::write(output.with_extension("jsonl"), text).context("keeping a dump")?;
                Ok(Opened::Whole(Box::new(dump)))
            }
            Err(why) => bail!("a dump that ended well does not parse: {why:#}"),
        },
        Some(status) => Ok(Opened::Refused { status: status.to_string(), words: child.last_words() }),
    }
}
