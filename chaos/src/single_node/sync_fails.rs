//! A sync or a write that fails, once, at a random call: the process ends, and nothing acknowledged is lost.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use crate::capabilities;
use crate::report::Report;
use crate::single_node::crash::count;
use crate::single_node::disk_full::exited_clearly;
use crate::single_node::harness::{Orders, StoreHarness, WorkerLife};
use crate::single_node::worker_history::WorkerEvent;

/// Calls of one thread among which one fails. Half of the processes found their directory while it happens.
const CALL_MAX: u32 = 60;
/// Operations of the life before, where there is one.
const OPERATIONS_BEFORE: u32 = 80;
/// A failure that has not come by then will not.
const LIFE_MAX: Duration = Duration::from_secs(8);
/// Time limit for the process to end after a failed call.
const EXIT_MAX: Duration = Duration::from_secs(20);
const FAULTS: [&str; 4] =
    ["fdatasync:error=EIO", "fsync:error=EIO", "pwrite64:error=EIO", "fdatasync,fsync:error=ENOSPC"];

pub fn run(seed: u64, runs: u32, report: &mut Report) -> anyhow::Result<Vec<PathBuf>> {
    report.not_covered = capabilities::missing(false, &["strace"]);
    if !report.not_covered.is_empty() {
        return Ok(Vec::new());
    }
    report.coverage.want("calls that failed", u64::from(runs.div_ceil(2)));
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for run in 0..runs {
        let mut scene = StoreHarness::new(rng.random(), None)?;
        let good = (run.is_multiple_of(2) || found(&mut scene, report)?) && one(&mut scene, &mut rng, report)?;
        count(&scene, report);
        eprintln!("sync fails: {} of {runs} done", run + 1);
        if !good {
            return Ok(vec![scene.keep()]);
        }
    }
    Ok(Vec::new())
}

/// A life in which nothing fails.
fn found(scene: &mut StoreHarness, report: &mut Report) -> anyhow::Result<bool> {
    let mut worker = scene.start_worker(&Orders { operations: Some(OPERATIONS_BEFORE), ..Orders::default() })?;
    if !scene.ready(&mut worker, report)? {
        return Ok(false);
    }
    let until = Instant::now() + EXIT_MAX;
    scene.follow(&mut worker, until, |_| false)?;
    let ended = worker.wait(until)?.is_some_and(|status| status.success());
    if !ended {
        report.findings.push(format!("a life without a failure did not end well: {}", worker.last_words()));
    }
    Ok(ended)
}

fn one(scene: &mut StoreHarness, rng: &mut ChaCha8Rng, report: &mut Report) -> anyhow::Result<bool> {
    let fault = FAULTS.choose(rng).context("no faults")?;
    let injection = format!("inject={fault}:when={}", rng.random_range(1..=CALL_MAX));
    let trace = scene.work().join("trace");
    // -D: the process itself is our child, and the tracer ends with it.
    let tracer = [
        "strace",
        "-D",
        "-f",
        "-qqq",
        "-o",
        &trace.to_string_lossy(),
        "-e",
        "trace=fdatasync,fsync,pwrite64",
        "-e",
        &injection,
    ];
    let through = tracer.map(str::to_owned).to_vec();
    let upkeep_after = Some(Duration::from_millis(300));
    let mut worker = scene.start_worker(&Orders { through, upkeep_after, ..Orders::default() })?;
    let failed = || std::fs::read(&trace).is_ok_and(|text| String::from_utf8_lossy(&text).contains("(INJECTED)"));
    let end = Instant::now() + LIFE_MAX;
    let mut life = WorkerLife::Running;
    while life == WorkerLife::Running && Instant::now() < end && !failed() {
        life = scene.follow(&mut worker, Instant::now() + Duration::from_millis(50), |_| false)?.0;
    }
    if life == WorkerLife::Running && failed() {
        life = scene.follow(&mut worker, Instant::now() + EXIT_MAX, |_| false)?.0;
        if life == WorkerLife::Running {
            report.findings.push(format!("{injection}: the process lives on {} s later", EXIT_MAX.as_secs()));
        }
    }
    let outcome = if failed() { "installed" } else { "skipped" };
    scene.record(WorkerEvent::Fault { what: injection.clone(), outcome: outcome.into() })?;
    let good = match life {
        WorkerLife::Ended => exited_clearly(&mut worker, report)?,
        WorkerLife::Running => {
            scene.kill(&mut worker, "it did not end by itself")?;
            !failed()
        }
    };
    report.runs.push(json!({ "injected": injection, "outcome": outcome, "said": worker.last_words() }));
    if failed() {
        report.coverage.add("calls that failed", 1);
        report.coverage.add(&format!("{fault}, failed"), 1);
    }
    if !good {
        report.findings.push(format!("that was {injection}"));
    }
    Ok(scene.check(rng, report)? && good)
}
