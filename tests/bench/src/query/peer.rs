//! DuckDB and chDB: each is a Python process of its own, controlled line by line. Their environment is made once, from
//! the versions in `peers/query.lock`, and cached in cargo's target directory.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::measurements::{Runs, Times};
use super::query_result::QueryResult;
use crate::process::Process;
use crate::python::{PythonEnvironment, folder_beside};

/// Every package with its version, and the script, included in this program.
const REQUIREMENTS: &str = include_str!("../../peers/query.lock");
const PROGRAM: &str = include_str!("../../peers/query.py");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    DuckDb,
    ChDb,
}

impl Engine {
    pub const ALL: [Engine; 2] = [Engine::DuckDb, Engine::ChDb];

    /// Returns the name used by the script and in figures.
    pub fn name(self) -> &'static str {
        match self {
            Engine::DuckDb => "duckdb",
            Engine::ChDb => "chdb",
        }
    }
}

/// Python environment with the engines, and its script.
#[derive(Clone, Debug)]
pub struct Environment {
    python: PathBuf,
    program: PathBuf,
}

impl Environment {
    /// Returns the environment in `folder`, or beside this program; makes it if it is missing or has other versions.
    pub fn made(folder: Option<PathBuf>) -> anyhow::Result<Environment> {
        let folder = folder_beside(folder, "query-peers")?;
        let environment = PythonEnvironment { requirements: REQUIREMENTS, programs: "DuckDB and chDB" };
        let python = environment.made(&folder)?;
        let program = folder.join("query.py");
        std::fs::write(&program, PROGRAM)?;
        Ok(Environment { python, program })
    }

    pub fn start(&self, engine: Engine, dir: &Path) -> anyhow::Result<Peer> {
        self.run(engine.name(), dir)
    }

    /// Returns the content of Parquet files, whoever wrote them.
    pub fn look(&self, files: &[PathBuf]) -> anyhow::Result<QueryResult> {
        let mut reader = self.run("parquet", Path::new("."))?;
        reader.told(&json!({ "look": files }))
    }

    fn run(&self, engine: &str, dir: &Path) -> anyhow::Result<Peer> {
        let mut command = Command::new(&self.python);
        command.arg("-B").arg(&self.program).arg(engine).arg(dir);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("starting {}", self.python.display()))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().context("the program's output")?;
        Ok(Peer { child, stdin, lines: BufReader::new(stdout).lines() })
    }
}

/// One engine at work. It is killed when this is dropped.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

#[derive(Deserialize)]
struct PeerLoaded {
    seconds: f64,
}

#[derive(Deserialize)]
struct PeerReply {
    ms: Vec<f64>,
    #[serde(default)]
    answers: Vec<QueryResult>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

/// The files that are loaded.
#[derive(Clone, Debug)]
pub struct Files {
    pub spans: PathBuf,
    pub trials: [PathBuf; 2],
    pub events: PathBuf,
}

impl Peer {
    pub fn process(&self) -> Process {
        Process::of(&self.child)
    }

    pub fn version(&mut self) -> anyhow::Result<String> {
        Ok(self.told::<Version>(&json!({ "version": null }))?.version)
    }

    /// The seconds it took.
    pub fn load(&mut self, files: &Files) -> anyhow::Result<f64> {
        let task = json!({ "spans": files.spans, "trials": files.trials, "events": files.events });
        Ok(self.told::<PeerLoaded>(&json!({ "load": task }))?.seconds)
    }

    /// Runs each text in turn, repeatedly; returns the times, and each result.
    pub fn ask(&mut self, texts: &[String], runs: Runs) -> anyhow::Result<(Times, Vec<QueryResult>)> {
        let task = json!({ "ask": texts, "runs": [runs.least, runs.most], "seconds": runs.seconds });
        let asked: PeerReply = self.told(&task)?;
        Ok((Times(asked.ms), asked.answers))
    }

    /// Has the file written anew as often as it must be.
    pub fn write(&mut self, text: &str, file: &Path, runs: Runs) -> anyhow::Result<Times> {
        let task = json!({ "write": text, "file": file, "runs": [runs.least, runs.most] });
        Ok(Times(self.told::<PeerReply>(&task)?.ms))
    }

    /// Lets it end by itself, so that what it wrote is whole.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.stdin = None;
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { bail!("the program ended with {status}") }
    }

    fn told<T: DeserializeOwned>(&mut self, task: &Value) -> anyhow::Result<T> {
        let stdin = self.stdin.as_mut().context("a program that listens")?;
        writeln!(stdin, "{task}")
            .and_then(|()| stdin.flush())
            .context("the program has ended: what it said is above")?;
        let line = self.lines.next().context("the program ended over a task: what it said is above")??;
        serde_json::from_str(&line).with_context(|| format!("the program said {line}"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Both fail when it has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
