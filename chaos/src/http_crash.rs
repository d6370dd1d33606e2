//! `kill -9` of the whole program under HTTP load: compares the responses of clients with what the next start reads.
//!
//! Each client writes rows of its own to its own object, one request at a time. So it can tell the content of each row:
//! acknowledged rows are there once, refused ones are not, unanswered ones are whole or absent (`ledger`). Plain
//! clients send raw requests (`http_client`); the Python SDK logs spans (`sdk`). The server is the released program
//! (`server`), with budgets so small that it seals and compacts all the time.

mod ledger;
mod sdk;
mod server;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use assay_test_clients::python;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::http_client::{HttpClient, HttpResponse};
use crate::report::Report;
use ledger::Ledger;
use sdk::{Manner, Sdk};
use server::{API_KEY, Server};

const CLIENTS: u64 = 4;
/// A directory is killed so often before a fresh one is taken.
const RUNS_PER_DIRECTORY: u32 = 8;
const LIFE_MS: std::ops::RangeInclusive<u64> = 100..=1500;
const ROWS_PER_REQUEST_MAX: usize = 20;
/// Traces of one page when everything is read back.
const PAGE: u64 = 500;
/// Findings reported of one client: so few that every client is included.
const FINDINGS_MAX: usize = 4;
/// An answer that does not come within this time is none.
const WAIT: Duration = Duration::from_secs(20);

/// One client: its object's path and the expected state of its rows.
#[derive(Debug)]
struct HttpWriter {
    number: u64,
    project: String,
    ledger: Ledger,
    rng: ChaCha8Rng,
}

/// A directory with all its writers.
#[derive(Debug)]
struct ProgramHarness<'a> {
    dir: &'a Path,
    /// Address of its server, from the first start on.
    address: Option<SocketAddr>,
    writers: Vec<HttpWriter>,
    /// Python with the SDK, if it is there; its process starts with the first server.
    python: Option<&'static Path>,
    sdk: Option<Sdk>,
    rng: ChaCha8Rng,
}

pub fn run(seed: u64, runs: u32, report: &mut Report) -> anyhow::Result<Vec<PathBuf>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let python = python::environment().map_err(|why| report.not_covered.push(format!("the Python SDK: {why}"))).ok();
    report.coverage.want("kills", u64::from(runs));
    report.coverage.want("requests acknowledged", u64::from(runs) * 5);
    report.coverage.want("requests without an answer", u64::from(runs) / 4);
    if python.is_some() {
        report.coverage.want("SDK requests acknowledged", u64::from(runs) * 3);
        report.coverage.want("SDK requests without an answer", u64::from(runs));
        report.coverage.want("SDK flushes taken for kept", u64::from(runs) * 2);
    }
    let (mut left, mut manner) = (runs, Manner::Patient);
    while left > 0 {
        let here = left.min(RUNS_PER_DIRECTORY);
        left -= here;
        let dir = tempfile::Builder::new().prefix("assay-http-crash-").tempdir()?;
        let mut scene = ProgramHarness::new(dir.path(), python, rng.random());
        for run in 0..here {
            let life = Duration::from_millis(rng.random_range(LIFE_MS));
            scene.live(life, manner, report)?;
            report.coverage.add("kills", 1);
            eprintln!("http-crash: {} of {runs} done", runs - left - here + run + 1);
            if !report.findings.is_empty() {
                break;
            }
        }
        if report.findings.is_empty() {
            scene.last_look(report)?;
        }
        if !report.findings.is_empty() {
            drop(scene);
            return Ok(vec![dir.keep()]);
        }
        manner = if manner == Manner::Patient { Manner::Hasty } else { Manner::Patient };
    }
    Ok(Vec::new())
}

impl ProgramHarness<'_> {
    fn new<'a>(dir: &'a Path, python: Option<&'static Path>, seed: u64) -> ProgramHarness<'a> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let writers = (0..CLIENTS)
            .map(|number| HttpWriter {
                number,
                project: String::new(),
                ledger: Ledger::default(),
                rng: ChaCha8Rng::seed_from_u64(rng.random()),
            })
            .collect();
        ProgramHarness { dir, address: None, writers, python, sdk: None, rng }
    }

    /// One life: what the one before left is checked, then clients write until the kill.
    fn live(&mut self, life: Duration, manner: Manner, report: &mut Report) -> anyhow::Result<()> {
        let mut server = self.start()?;
        self.check(&server, report)?;
        self.wake_sdk(manner)?;
        let stop = Arc::new(AtomicBool::new(false));
        let address = server.address();
        let threads: Vec<JoinHandle<anyhow::Result<HttpWriter>>> = self
            .writers
            .drain(..)
            .map(|writer| {
                let stop = Arc::clone(&stop);
                std::thread::spawn(move || write(writer, address, &stop))
            })
            .collect();
        let until = Instant::now() + life;
        while Instant::now() < until && threads.iter().all(|thread| !thread.is_finished()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        server.kill()?;
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            let writer = thread.join().map_err(|_| anyhow!("a client panicked"))?;
            let mut writer = writer.with_context(|| format!("a client; the server said: {}", server.last_words()))?;
            for (what, count) in writer.ledger.take_counts() {
                report.coverage.add(what, count);
            }
            self.writers.push(writer);
        }
        if let Some(sdk) = &mut self.sdk {
            sdk.until_it_waits().with_context(|| format!("the server said: {}", server.last_words()))?;
        }
        Ok(())
    }

    /// Checks the state after the last kill; then after the retries of the SDK.
    fn last_look(&mut self, report: &mut Report) -> anyhow::Result<()> {
        let server = self.start()?;
        self.check(&server, report)?;
        let Some(sdk) = &mut self.sdk else { return Ok(()) };
        sdk.end().with_context(|| format!("the server said: {}", server.last_words()))?;
        self.check(&server, report)
    }

    fn start(&mut self) -> anyhow::Result<Server> {
        let server = Server::start(self.dir, self.address)?;
        self.address = Some(server.address());
        Ok(server)
    }

    /// Returns when the SDK writes, so that the kill finds it at that.
    fn wake_sdk(&mut self, manner: Manner) -> anyhow::Result<()> {
        let (Some(python), Some(address)) = (self.python, self.address) else { return Ok(()) };
        let sdk = match &mut self.sdk {
            Some(sdk) => {
                sdk.go_on()?;
                sdk
            }
            none => none.insert(Sdk::start(python, address, self.dir, self.rng.random(), manner)?),
        };
        sdk.until_it_writes()
    }

    /// Reads every row back, each client's object to its end.
    fn check(&mut self, server: &Server, report: &mut Report) -> anyhow::Result<()> {
        for writer in self.writers.iter_mut().filter(|writer| !writer.project.is_empty()) {
            let rows = read(server, &writer.project)?;
            report.coverage.add("rows read back", rows.len() as u64);
            tell(&format!("client {}", writer.number), writer.ledger.check(&rows), report);
        }
        if let Some(sdk) = &mut self.sdk {
            let rows = read(server, &sdk.project)?;
            report.coverage.add("SDK rows read back", rows.len() as u64);
            let account = &mut sdk.account;
            tell("the SDK", account.ledger.check(&rows), report);
            tell("the SDK", std::mem::take(&mut account.findings), report);
            for (what, count) in account.ledger.take_counts() {
                report.coverage.add(&format!("SDK {what}"), count);
            }
            report.coverage.add("SDK flushes taken for kept", std::mem::take(&mut account.flushes));
        }
        Ok(())
    }
}

fn tell(client: &str, found: Vec<String>, report: &mut Report) {
    report.findings.extend(found.into_iter().take(FINDINGS_MAX).map(|what| format!("{client}: {what}")));
}

/// Writes until there is no answer any more. An answer that no client may get is an error.
fn write(mut writer: HttpWriter, address: SocketAddr, stop: &AtomicBool) -> anyhow::Result<HttpWriter> {
    let mut client = HttpClient::connect(address, API_KEY, WAIT)?;
    if writer.project.is_empty() {
        let name = json!({ "name": format!("crash {}", writer.number) });
        match client.post("/v1/project", &name) {
            Ok(HttpResponse { status: 200, body, .. }) => {
                writer.project = body["id"].as_str().context("a project without an id")?.to_owned();
            }
            Ok(other) => anyhow::bail!("making a project was answered {other:?}"),
            Err(_) => return Ok(writer), // killed before the first answer
        }
    }
    let path = format!("/v1/project_logs/{}/insert", writer.project);
    while !stop.load(Ordering::Relaxed) {
        let (rows, wrong) = writer.ledger.next(writer.number, ROWS_PER_REQUEST_MAX, &mut writer.rng);
        writer.ledger.sends(&rows);
        let answer = client.post(&path, &json!({ "events": rows }));
        match answer {
            Ok(HttpResponse { status: 200, body, .. }) if !wrong => {
                let ids: Vec<&str> =
                    body["row_ids"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                let sent: Vec<&str> = rows.iter().filter_map(|row| row["id"].as_str()).collect();
                anyhow::ensure!(ids == sent, "the answer names other rows than were sent: {body}");
                writer.ledger.acknowledged();
            }
            Ok(HttpResponse { status: 400, .. }) if wrong => writer.ledger.refused(),
            Ok(HttpResponse { status: 429 | 507, .. }) => writer.ledger.refused(),
            // What is wrong must not be there, whether that was said or not.
            Ok(HttpResponse { status: 503, .. }) | Err(_) if wrong => {
                writer.ledger.refused();
                return Ok(writer);
            }
            Ok(HttpResponse { status: 503, .. }) | Err(_) => {
                writer.ledger.unanswered();
                return Ok(writer);
            }
            Ok(other) => {
                anyhow::bail!("a write of {} rows (wrong on purpose: {wrong}) was answered {other:?}", rows.len())
            }
        }
    }
    Ok(writer)
}

/// All rows of a project's log.
fn read(server: &Server, project: &str) -> anyhow::Result<Vec<Value>> {
    let mut client = HttpClient::connect(server.address(), API_KEY, WAIT)?;
    let path = format!("/v1/project_logs/{project}/fetch");
    let mut rows: Vec<Value> = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let answer = client.post(&path, &json!({ "limit": PAGE, "cursor": cursor }))?;
        anyhow::ensure!(answer.status == 200, "a fetch was answered {answer:?}");
        rows.extend(answer.body["events"].as_array().into_iter().flatten().cloned());
        cursor = answer.body["cursor"].clone();
        if cursor.is_null() {
            return Ok(rows);
        }
    }
}
