//! `ingest`: rows a second that the whole server acknowledges, compared with the bare pipeline and the same bytes in
//! the same run; then the latency of acknowledgements at half of our own peak, on both.
//!
//! The bodies are made beforehand and kept in memory. Every run starts a new server on an empty directory; the two
//! take turns at going first.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use assay_bench::generate::{GeneratedEvents, ObjectStream, Profile, Workload};
use serde::Serialize;

use super::request_driver::{Bodies, Driven, DriverLane, Pace, drive};
use super::server_process::ServerProcess;
use super::{client_runtime, object_of_lane};
use crate::process::{CpuSeconds, Memory, Process, cpu_between};
use crate::report::{Report, Threshold, median, percentile};

const RATIO_MIN: f64 = 0.4;
const RATIO_MIN_WITH_MERGES: f64 = 0.3;
/// Upper bound of our 99th percentile of latency, as a multiple of the bare pipeline's.
const P99_TO_BARE_MAX: f64 = 5.0;
const RESIDENT_MIB_MAX: f64 = 1024.0;
/// Requests of a run without a given number or duration: about 600 MB.
pub const REQUESTS: u64 = 3000;
/// Bodies prepared for a run that was given seconds only.
const BODIES_BYTES_MAX: u64 = 2 << 30;
/// Runs at a fixed rate; each lasts as long as the bodies do.
const PACED_PAIRS_MAX: usize = 3;
const MEMORY_EVERY: Duration = Duration::from_millis(200);

#[derive(Clone, Debug)]
pub struct IngestOptions {
    pub program: PathBuf,
    pub connections: usize,
    pub projects: usize,
    pub rows_per_request: usize,
    /// Number of requests; at least one of the two limits is given.
    pub requests: Option<u64>,
    pub seconds: Option<u64>,
    pub merges: f64,
    pub profile: Profile,
    pub pairs: usize,
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HttpIngestSide {
    Bare,
    Assay,
}

/// One server, driven once.
#[derive(Debug, Serialize)]
pub struct HttpIngestRun {
    driven: Driven,
    /// CPU time from the first request to the last response.
    server_cpu: CpuSeconds,
    client_cpu_seconds: f64,
    memory: Memory,
    /// Over time, every 200 ms.
    resident_bytes: Vec<u64>,
}

impl HttpIngestRun {
    pub fn operations_per_second(&self) -> f64 {
        self.driven.operations_per_second()
    }

    /// Processor seconds of the server.
    pub fn cpu_per_gb(&self) -> f64 {
        self.server_cpu.values().sum::<f64>() / self.driven.bytes as f64 * 1e9
    }
}

#[derive(Debug, Serialize)]
struct HttpIngestPair {
    bare: HttpIngestRun,
    assay: HttpIngestRun,
}

impl HttpIngestPair {
    fn ratio(&self) -> f64 {
        self.assay.driven.operations_per_second() / self.bare.driven.operations_per_second()
    }
}

pub fn run(options: &IngestOptions, dir: &Path, json_file: Option<&Path>) -> anyhow::Result<()> {
    let bodies = rendered(options);
    let upto = options.seconds.map(Duration::from_secs);
    let mut pairs = Vec::new();
    for number in 0..options.pairs.max(1) {
        let pair = pair(options, &bodies, Pace { every: None, upto }, &dir.join(format!("run-{number}")), number)?;
        let [bare, assay] = [&pair.bare, &pair.assay].map(|run| run.driven.operations_per_second());
        eprintln!("pair {}: bare {bare:.0} rows/s, assay {assay:.0} rows/s, ratio {:.3}", number + 1, pair.ratio());
        pairs.push(pair);
    }
    let peak = median(pairs.iter().map(|pair| pair.assay.driven.requests as f64 / pair.assay.driven.seconds));
    let pace = Pace { every: Some(Duration::from_secs_f64(2.0 / peak)), upto };
    let mut paced = Vec::new();
    for number in 0..pairs.len().min(PACED_PAIRS_MAX) {
        let pair = pair(options, &bodies, pace, &dir.join(format!("paced-{number}")), number)?;
        let [bare, assay] = [&pair.bare, &pair.assay].map(|run| p(run, 0.99));
        eprintln!("at half of our peak, pair {}: p99 bare {bare:.1} ms, assay {assay:.1} ms", number + 1);
        paced.push(pair);
    }
    let mut report = Report::new("ingest");
    figures(&mut report, options, &pairs);
    paced_figures(&mut report, &paced);
    memory_figures(&mut report, pairs.iter().chain(&paced));
    report.detail("connections", options.connections)?;
    report.detail("projects", options.projects)?;
    report.detail("pairs", &pairs)?;
    report.detail("paced", &paced)?;
    report.finish(json_file)
}

/// Returns the bodies of every lane: the requested number, or as many as fit in memory.
pub fn rendered(options: &IngestOptions) -> Bodies {
    let mut workload = Workload::new(options.seed, options.profile, options.merges);
    workload.rows_per_write = options.rows_per_request;
    let lanes = options.connections.max(1);
    let requests = match (options.requests, options.seconds) {
        (Some(requests), _) => requests,
        (None, Some(_)) => u64::MAX,
        (None, None) => REQUESTS,
    };
    if requests < u64::MAX {
        // "Long ago" must lie within the run.
        workload.late_writes = workload.late_writes.min(requests / lanes as u64 / 3);
    }
    let mut streams: Vec<ObjectStream> = (0..lanes).map(|lane| workload.stream(object_of_lane(lane))).collect();
    let mut bodies: Vec<Vec<GeneratedEvents>> = vec![Vec::new(); lanes];
    let (mut made, mut bytes) = (0, 0);
    while made < requests && (requests < u64::MAX || bytes < BODIES_BYTES_MAX) {
        let lane = (made % lanes as u64) as usize;
        let events = streams[lane].next_events();
        bytes += events.body.len() as u64;
        bodies[lane].push(events);
        made += 1;
    }
    eprintln!("{made} bodies of {} MB are ready", bytes / 1_000_000);
    Arc::new(bodies)
}

fn pair(
    options: &IngestOptions,
    bodies: &Bodies,
    pace: Pace,
    dir: &Path,
    number: usize,
) -> anyhow::Result<HttpIngestPair> {
    std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
    let side = |side| one_run(options, bodies, pace, dir, side);
    let pair = if number.is_multiple_of(2) {
        let bare = side(HttpIngestSide::Bare)?;
        HttpIngestPair { bare, assay: side(HttpIngestSide::Assay)? }
    } else {
        let assay = side(HttpIngestSide::Assay)?;
        HttpIngestPair { bare: side(HttpIngestSide::Bare)?, assay }
    };
    std::fs::remove_dir_all(dir)?;
    Ok(pair)
}

/// Sends all bodies to a new server of the program, as fast as it takes them.
pub fn alone(options: &IngestOptions, bodies: &Bodies, dir: &Path) -> anyhow::Result<HttpIngestRun> {
    std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
    let pace = Pace { every: None, upto: options.seconds.map(Duration::from_secs) };
    let run = one_run(options, bodies, pace, dir, HttpIngestSide::Assay)?;
    std::fs::remove_dir_all(dir)?;
    Ok(run)
}

fn one_run(
    options: &IngestOptions,
    bodies: &Bodies,
    pace: Pace,
    dir: &Path,
    side: HttpIngestSide,
) -> anyhow::Result<HttpIngestRun> {
    // What the side before left in the page cache is written by nobody's time but ours.
    rustix::fs::sync();
    let server = match side {
        HttpIngestSide::Bare => ServerProcess::bare(&dir.join("bare"))?,
        HttpIngestSide::Assay => ServerProcess::assay(&options.program, &dir.join("assay"))?,
    };
    let runtime = client_runtime()?;
    let opened = runtime.block_on(DriverLane::open(server.target(), bodies.len(), options.projects));
    let (lanes, _) = opened.with_context(|| format!("opening projects at {side:?}"))?;
    let (process, me) = (server.process(), Process::myself());
    let (server_before, client_before) = (process.cpu()?, me.cpu()?);
    let driven = runtime.spawn({
        let bodies = Arc::clone(bodies);
        async move { drive(lanes, &bodies, pace).await }
    });
    let mut resident_bytes = Vec::new();
    while !driven.is_finished() {
        std::thread::sleep(MEMORY_EVERY);
        resident_bytes.push(process.memory()?.resident_bytes);
    }
    let driven = runtime.block_on(driven)?.with_context(|| format!("driving {side:?}"))?;
    Ok(HttpIngestRun {
        driven,
        server_cpu: cpu_between(&server_before, &process.cpu()?),
        client_cpu_seconds: cpu_between(&client_before, &me.cpu()?).values().sum(),
        memory: process.memory()?,
        resident_bytes,
    })
}

fn p(run: &HttpIngestRun, share: f64) -> f64 {
    percentile(run.driven.answer_ms.iter().copied(), share)
}

fn figures(report: &mut Report, options: &IngestOptions, pairs: &[HttpIngestPair]) {
    for (number, pair) in pairs.iter().enumerate() {
        report.figure(format!("pair {}: assay / bare", number + 1), pair.ratio(), "");
    }
    side_figures(report, "bare", pairs, |pair| &pair.bare);
    side_figures(report, "assay", pairs, |pair| &pair.assay);
    let wanted = if options.merges > 0.0 { RATIO_MIN_WITH_MERGES } else { RATIO_MIN };
    let ratio = median(pairs.iter().map(HttpIngestPair::ratio));
    report.promised("assay / bare, median (goal 0.7)", ratio, "", Threshold::AtLeast(wanted));
}

fn side_figures(
    report: &mut Report,
    name: &str,
    pairs: &[HttpIngestPair],
    side: fn(&HttpIngestPair) -> &HttpIngestRun,
) {
    let of = |get: fn(&HttpIngestRun) -> f64| median(pairs.iter().map(|pair| get(side(pair))));
    report.figure(format!("{name}, median"), of(|run| run.driven.operations_per_second()), "rows/s");
    report.figure(format!("{name}, median"), of(|run| run.driven.mb_per_second()), "MB/s");
    report.figure(format!("{name}, an acknowledgement, p50"), of(|run| p(run, 0.5)), "ms");
    report.figure(format!("{name}, an acknowledgement, p99"), of(|run| p(run, 0.99)), "ms");
    report.figure(format!("{name}, CPU of the client"), of(|run| run.client_cpu_seconds / run.driven.seconds), "cores");
    report.figure(format!("{name}, CPU of the server"), of(HttpIngestRun::cpu_per_gb), "s/GB");
    let refused: u64 = pairs.iter().map(|pair| side(pair).driven.refused).sum();
    report.figure(format!("{name}, requests refused and sent again"), refused as f64, "");
}

fn paced_figures(report: &mut Report, paced: &[HttpIngestPair]) {
    let of = |get: fn(&HttpIngestPair) -> f64| median(paced.iter().map(get));
    report.figure("at half of our peak: sent", of(|pair| pair.assay.driven.operations_per_second()), "rows/s");
    report.figure("at half of our peak: bare, p50", of(|pair| p(&pair.bare, 0.5)), "ms");
    report.figure("at half of our peak: bare, p99", of(|pair| p(&pair.bare, 0.99)), "ms");
    report.figure("at half of our peak: assay, p50", of(|pair| p(&pair.assay, 0.5)), "ms");
    report.figure("at half of our peak: assay, p99", of(|pair| p(&pair.assay, 0.99)), "ms");
    let ratio = of(|pair| p(&pair.assay, 0.99) / p(&pair.bare, 0.99));
    report.promised("at half of our peak: p99, assay / bare", ratio, "", Threshold::AtMost(P99_TO_BARE_MAX));
}

fn memory_figures<'a>(report: &mut Report, pairs: impl Iterator<Item = &'a HttpIngestPair> + Clone) {
    let most = |side: fn(&HttpIngestPair) -> &HttpIngestRun| {
        let peaks = pairs.clone().map(|pair| side(pair).memory.peak_bytes);
        peaks.max().unwrap_or(0) as f64 / f64::from(1 << 20)
    };
    report.figure("bare, resident, peak of all runs", most(|pair| &pair.bare), "MiB");
    let resident = most(|pair| &pair.assay);
    report.promised("assay, resident, peak of all runs", resident, "MiB", Threshold::AtMost(RESIDENT_MIB_MAX));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(requests: Option<u64>, merges: f64) -> IngestOptions {
        IngestOptions {
            program: "assay".into(),
            connections: 3,
            projects: 1,
            rows_per_request: 20,
            requests,
            seconds: None,
            merges,
            profile: Profile::Even,
            pairs: 1,
            seed: 1,
        }
    }

    #[test]
    fn bodies_are_spread_over_the_lanes_and_no_row_is_in_two() {
        let bodies = rendered(&options(Some(10), 0.0));
        assert_eq!(bodies.iter().map(Vec::len).collect::<Vec<_>>(), [4, 3, 3]);
        let ids: std::collections::BTreeSet<&String> = bodies.iter().flatten().flat_map(|events| &events.ids).collect();
        assert_eq!(ids.len(), 200);
    }

    #[test]
    fn merges_of_long_ago_are_within_the_run() {
        let bodies = rendered(&options(Some(60), 0.5));
        let merges: u32 = bodies.iter().flatten().map(|events| events.merges).sum();
        // Half of the spans are merged: a third of all operations, less what is not due yet.
        assert!((340..=400).contains(&merges), "{merges}");
    }
}
