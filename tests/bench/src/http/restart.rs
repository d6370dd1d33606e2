//! `restart`: time until a killed server is ready again, at the given size.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use super::client::{Connection, Target};
use super::client_runtime;
use super::row_loader::{Loader, RowLoaderOptions};
use super::server_process::ServerProcess;
use crate::process::Memory;
use crate::report::{Report, Threshold, median};

const KILLS: usize = 3;
/// Share of the rows that is written again before each kill, so that the log is not empty.
const BURST: u64 = 50;
const READY_SECONDS_MAX: f64 = 6.0;
const READY_LOOK: Duration = Duration::from_millis(5);
const READY_WAIT_MAX: Duration = Duration::from_secs(120);

#[derive(Debug, Serialize)]
struct ServerRestart {
    rows: u64,
    /// From the start of the process until `/readyz` returns 200.
    ready_seconds: f64,
    /// Until it reported its address.
    listening_seconds: f64,
    /// Until the newest trace was fetched.
    fetched_seconds: f64,
    memory: Memory,
}

pub fn run(options: &RowLoaderOptions, dir: &Path, json_file: Option<&Path>) -> anyhow::Result<()> {
    let data_dir = dir.join("assay");
    let runtime = client_runtime()?;
    let mut server = ServerProcess::assay(&options.program, &data_dir)?;
    let mut loader = runtime.block_on(Loader::new(server.target(), options))?;
    runtime.block_on(loader.load(options.rows))?;
    let mut restarts = Vec::new();
    for number in 1..=KILLS {
        runtime.block_on(loader.load(options.rows / BURST))?;
        server.kill()?;
        let began = Instant::now();
        server = ServerProcess::assay(&options.program, &data_dir)?;
        let listening_seconds = began.elapsed().as_secs_f64();
        let ready_seconds = runtime.block_on(ready(server.target(), began))?;
        runtime.block_on(newest_trace(server.target(), &loader.fetch_path()))?;
        let fetched_seconds = began.elapsed().as_secs_f64();
        let (rows, memory) = (loader.rows(), server.process().memory()?);
        eprintln!("kill {number} at {rows} rows: ready after {ready_seconds:.2} s");
        restarts.push(ServerRestart { rows, ready_seconds, listening_seconds, fetched_seconds, memory });
        loader = runtime.block_on(loader.moved_to(server.target()))?;
    }
    let mut report = Report::new("restart");
    figures(&mut report, &restarts);
    report.detail("restarts", &restarts)?;
    report.finish(json_file)
}

fn figures(report: &mut Report, restarts: &[ServerRestart]) {
    let most = |get: fn(&ServerRestart) -> f64| restarts.iter().map(get).fold(0.0, f64::max);
    report.figure("rows at the last kill", most(|restart| restart.rows as f64), "");
    report.figure("ready after kill -9, median", median(restarts.iter().map(|restart| restart.ready_seconds)), "s");
    let worst = most(|restart| restart.ready_seconds);
    report.promised("ready after kill -9, longest", worst, "s", Threshold::AtMost(READY_SECONDS_MAX));
    report.figure("newest trace fetched, longest", most(|restart| restart.fetched_seconds), "s");
    let resident = most(|restart| restart.memory.peak_bytes as f64 / f64::from(1 << 20));
    report.figure("resident by then, peak", resident, "MiB");
}

/// Polls until the server is ready; returns the seconds since `began`.
pub async fn ready(target: &Target, began: Instant) -> anyhow::Result<f64> {
    let mut connection = Connection::new(target);
    while began.elapsed() < READY_WAIT_MAX {
        match connection.get("/readyz").await?.status {
            200 => return Ok(began.elapsed().as_secs_f64()),
            503 => tokio::time::sleep(READY_LOOK).await,
            other => bail!("/readyz says {other}"),
        }
    }
    bail!("not ready after {} s", READY_WAIT_MAX.as_secs())
}

async fn newest_trace(target: &Target, path: &str) -> anyhow::Result<()> {
    let answer = Connection::new(target).post(path, &Bytes::from_static(b"{\"limit\":1}")).await?;
    let answer: Value = answer.json(path)?;
    ensure!(answer["events"].as_array().is_some_and(|events| !events.is_empty()), "nothing is there after the restart");
    Ok(())
}
