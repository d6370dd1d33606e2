//! `kill -9` of the whole program under HTTP load: what a client was told is held against what the next start reads.
//!
//! Each client writes rows of its own to its own object, one request at a time, and so knows what each row must say: what
//! was acknowledged, there once; what was refused, not there; what got no answer, whole or not at all (`ledger`). The
//! server is the program as it is shipped (`server`), with budgets so small that it seals and compacts all the while.

mod client;
mod ledger;
mod server;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::report::Report;
use client::{Answer, Client};
use ledger::Ledger;
use server::Server;

const CLIENTS: u64 = 4;
/// A directory is killed so often before a fresh one is taken.
const RUNS_PER_DIRECTORY: u32 = 8;
const LIFE_MS: std::ops::RangeInclusive<u64> = 100..=1500;
const ROWS_PER_REQUEST_MAX: usize = 20;
/// Traces of one page when everything is read back.
const PAGE: u64 = 500;
/// Findings after which one look at the directory is enough.
const FINDINGS_MAX: usize = 20;

/// One client: its object's path and what it knows of its rows.
#[derive(Debug)]
struct Writer {
    number: u64,
    project: String,
    ledger: Ledger,
    rng: ChaCha8Rng,
}

pub fn run(seed: u64, runs: u32, report: &mut Report) -> anyhow::Result<Vec<PathBuf>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    report.coverage.want("kills", u64::from(runs));
    report.coverage.want("requests acknowledged", u64::from(runs) * 5);
    report.coverage.want("requests without an answer", u64::from(runs) / 4);
    let mut left = runs;
    while left > 0 {
        let here = left.min(RUNS_PER_DIRECTORY);
        left -= here;
        let dir = tempfile::Builder::new().prefix("assay-http-crash-").tempdir()?;
        let mut writers: Vec<Writer> = (0..CLIENTS)
            .map(|number| Writer {
                number,
                project: String::new(),
                ledger: Ledger::default(),
                rng: ChaCha8Rng::seed_from_u64(rng.random()),
            })
            .collect();
        for run in 0..here {
            let life = Duration::from_millis(rng.random_range(LIFE_MS));
            writers = one(dir.path(), writers, life, report)?;
            report.coverage.add("kills", 1);
            eprintln!("http-crash: {} of {runs} done", runs - left - here + run + 1);
            if !report.findings.is_empty() {
                return Ok(vec![dir.keep()]);
            }
        }
        // The last look is at what the last kill left.
        let server = Server::start(dir.path())?;
        check(&server, &mut writers, report)?;
        if !report.findings.is_empty() {
            return Ok(vec![dir.keep()]);
        }
    }
    Ok(Vec::new())
}

/// One life: what the one before left is checked, then clients write until the kill.
fn one(
    dir: &std::path::Path,
    mut writers: Vec<Writer>,
    life: Duration,
    report: &mut Report,
) -> anyhow::Result<Vec<Writer>> {
    let mut server = Server::start(dir)?;
    check(&server, &mut writers, report)?;
    let stop = Arc::new(AtomicBool::new(false));
    let address = server.address();
    let threads: Vec<JoinHandle<anyhow::Result<Writer>>> = writers
        .into_iter()
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
    let mut back = Vec::new();
    for thread in threads {
        let writer = thread.join().map_err(|_| anyhow!("a client panicked"))?;
        back.push(writer.with_context(|| format!("a client; the server said: {}", server.last_words()))?);
    }
    for writer in &mut back {
        for (what, count) in writer.ledger.take_counts() {
            report.coverage.add(what, count);
        }
    }
    Ok(back)
}

/// Writes until there is no answer any more. An answer that no client may get is an error.
fn write(mut writer: Writer, address: std::net::SocketAddr, stop: &AtomicBool) -> anyhow::Result<Writer> {
    let mut client = Client::connect(address)?;
    if writer.project.is_empty() {
        let name = json!({ "name": format!("crash {}", writer.number) });
        match client.post("/v1/project", &name) {
            Ok(Answer { status: 200, body }) => {
                writer.project = body["id"].as_str().context("a project without an id")?.to_owned();
            }
            Ok(other) => anyhow::bail!("making a project was answered {other:?}"),
            Err(_) => return Ok(writer), // killed before the first answer
        }
    }
    let path = format!("/v1/project_logs/{}/insert", writer.project);
    while !stop.load(Ordering::Relaxed) {
        let (rows, wrong) = writer.ledger.next(writer.number, ROWS_PER_REQUEST_MAX, &mut writer.rng);
        let answer = client.post(&path, &json!({ "events": rows }));
        match answer {
            Ok(Answer { status: 200, body }) if !wrong => {
                let ids: Vec<&str> =
                    body["row_ids"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                let sent: Vec<&str> = rows.iter().filter_map(|row| row["id"].as_str()).collect();
                anyhow::ensure!(ids == sent, "the answer names other rows than were sent: {body}");
                writer.ledger.acknowledged();
            }
            Ok(Answer { status: 400, .. }) if wrong => writer.ledger.refused(),
            Ok(Answer { status: 429 | 507, .. }) => writer.ledger.refused(),
            Ok(Answer { status: 503, .. }) => writer.ledger.unanswered(),
            Ok(other) => {
                anyhow::bail!("a write of {} rows (wrong on purpose: {wrong}) was answered {other:?}", rows.len())
            }
            Err(_) => {
                writer.ledger.unanswered();
                return Ok(writer);
            }
        }
    }
    Ok(writer)
}

/// Reads every row back, each writer's object to its end.
fn check(server: &Server, writers: &mut [Writer], report: &mut Report) -> anyhow::Result<()> {
    for writer in writers.iter_mut().filter(|writer| !writer.project.is_empty()) {
        let mut client = Client::connect(server.address())?;
        let path = format!("/v1/project_logs/{}/fetch", writer.project);
        let mut rows: Vec<Value> = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let answer = client.post(&path, &json!({ "limit": PAGE, "cursor": cursor }))?;
            anyhow::ensure!(answer.status == 200, "a fetch was answered {answer:?}");
            rows.extend(answer.body["events"].as_array().into_iter().flatten().cloned());
            cursor = answer.body["cursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        let found = writer.ledger.check(&rows);
        let room = FINDINGS_MAX.saturating_sub(report.findings.len());
        report.findings.extend(found.into_iter().take(room).map(|what| format!("client {}: {what}", writer.number)));
        report.coverage.add("rows read back", rows.len() as u64);
    }
    Ok(())
}
