//! `ingest --nodes 3`: cost of rows that are kept three times, compared with one node and the same bytes in the same
//! run.
//!
//! All nodes share this machine's processors, so rows a second mean little; rows per CPU second of all servers predict
//! a cluster on machines of its own. Without any overhead three nodes that each keep every row would reach a third of
//! one node's rate. As in `ingest` on one node, every run begins with empty directories, and the sides take turns.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

use super::nodes::Nodes;
use crate::http::client::Target;
use crate::http::client_runtime;
use crate::http::ingest::{IngestOptions, rendered};
use crate::http::request_driver::{Bodies, Driven, DriverLane, Pace, drive};
use crate::http::server_process::ServerProcess;
use crate::process::{CpuSeconds, Memory, Process, cpu_between};
use crate::report::{Report, Threshold, median, percentile};

/// Rows for a CPU second, all nodes together, to those of one node.
const RATIO_MIN: f64 = 0.3;
const SHARDS: u16 = 16;
const LOOK: Duration = Duration::from_millis(20);

/// One node or a cluster, driven once.
#[derive(Debug, Serialize)]
struct ClusterIngestRun {
    driven: Driven,
    /// CPU time of all nodes together, by kind of work, from the first request to the last answer.
    cpu: CpuSeconds,
    /// CPU seconds of each node.
    cpu_seconds: Vec<f64>,
    memory: Vec<Memory>,
}

impl ClusterIngestRun {
    fn rows_per_cpu_second(&self) -> f64 {
        self.driven.operations as f64 / self.cpu_seconds.iter().sum::<f64>()
    }

    fn p(&self, share: f64) -> f64 {
        percentile(self.driven.answer_ms.iter().copied(), share)
    }
}

#[derive(Debug, Serialize)]
struct ClusterIngestPair {
    one: ClusterIngestRun,
    cluster: ClusterIngestRun,
}

impl ClusterIngestPair {
    fn ratio(&self) -> f64 {
        self.cluster.rows_per_cpu_second() / self.one.rows_per_cpu_second()
    }
}

pub fn run(options: &IngestOptions, nodes: usize, dir: &Path, json_file: Option<&Path>) -> anyhow::Result<()> {
    let bodies = rendered(options);
    let upto = options.seconds.map(Duration::from_secs);
    let fast = Pace { every: None, upto };
    let bench = ClusterIngest { options, bodies: &bodies, nodes };
    let mut pairs = Vec::new();
    for number in 0..options.pairs.max(1) {
        let dir = dir.join(format!("run-{number}"));
        let sides = if number.is_multiple_of(2) { [1, nodes] } else { [nodes, 1] };
        let [first, second] = sides.map(|side| bench.one_run(side, fast, &dir));
        let (one, cluster) = if number.is_multiple_of(2) { (first?, second?) } else { (second?, first?) };
        let pair = ClusterIngestPair { one, cluster };
        let [one, cluster] = [&pair.one, &pair.cluster].map(ClusterIngestRun::rows_per_cpu_second);
        eprintln!("pair {}: {one:.0} and {cluster:.0} rows for a CPU second, {:.3}", number + 1, pair.ratio());
        pairs.push(pair);
        std::fs::remove_dir_all(&dir)?;
    }
    let peak = median(pairs.iter().map(|pair| pair.cluster.driven.requests as f64 / pair.cluster.driven.seconds));
    let pace = Pace { every: Some(Duration::from_secs_f64(2.0 / peak)), upto };
    let paced = bench.one_run(nodes, pace, &dir.join("paced"))?;
    let mut report = Report::new("ingest --nodes");
    figures(&mut report, nodes, &pairs);
    paced_figures(&mut report, &paced);
    memory_figures(&mut report, &pairs, &paced);
    report.detail("options", (options.connections, options.projects, options.rows_per_request))?;
    report.detail("pairs", &pairs)?;
    report.detail("paced", &paced)?;
    report.finish(json_file)
}

struct ClusterIngest<'a> {
    options: &'a IngestOptions,
    bodies: &'a Bodies,
    nodes: usize,
}

/// Driven servers; stopped on drop.
enum ClusterIngestSide {
    One(ServerProcess),
    Cluster(Nodes),
}

impl ClusterIngestSide {
    fn targets(&self) -> Vec<Target> {
        match self {
            ClusterIngestSide::One(server) => vec![server.target().clone()],
            ClusterIngestSide::Cluster(nodes) => nodes.targets(),
        }
    }

    fn processes(&self) -> Vec<Process> {
        match self {
            ClusterIngestSide::One(server) => vec![server.process()],
            ClusterIngestSide::Cluster(nodes) => nodes.processes().into_iter().map(|(_, process)| process).collect(),
        }
    }
}

impl ClusterIngest<'_> {
    fn one_run(&self, count: usize, pace: Pace, dir: &Path) -> anyhow::Result<ClusterIngestRun> {
        let dir = dir.join(format!("nodes-{count}"));
        std::fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
        let side = if count == self.nodes {
            ClusterIngestSide::Cluster(Nodes::found(&self.options.program, &dir, count, SHARDS)?)
        } else {
            ClusterIngestSide::One(ServerProcess::assay(&self.options.program, &dir.join("assay"))?)
        };
        // What the side before left in the page cache is written by nobody's time but ours.
        rustix::fs::sync();
        let runtime = client_runtime()?;
        let opened = runtime.block_on(DriverLane::spread(&side.targets(), self.bodies.len(), self.options.projects));
        let (lanes, _) = opened.with_context(|| format!("opening projects on {count} nodes"))?;
        let processes = side.processes();
        let before: Vec<CpuSeconds> = processes.iter().map(Process::cpu).collect::<anyhow::Result<_>>()?;
        let driven = runtime.spawn({
            let bodies = Arc::clone(self.bodies);
            async move { drive(lanes, &bodies, pace).await }
        });
        while !driven.is_finished() {
            std::thread::sleep(LOOK);
        }
        let after: Vec<CpuSeconds> = processes.iter().map(Process::cpu).collect::<anyhow::Result<_>>()?;
        let driven = runtime.block_on(driven)?.with_context(|| format!("driving {count} nodes"))?;
        let (mut cpu, mut cpu_seconds) = (CpuSeconds::new(), Vec::new());
        for used in before.iter().zip(&after).map(|(before, after)| cpu_between(before, after)) {
            cpu_seconds.push(used.values().sum());
            used.into_iter().for_each(|(name, seconds)| *cpu.entry(name).or_default() += seconds);
        }
        let memory = processes.iter().map(Process::memory).collect::<anyhow::Result<_>>()?;
        Ok(ClusterIngestRun { driven, cpu, cpu_seconds, memory })
    }
}

fn figures(report: &mut Report, nodes: usize, pairs: &[ClusterIngestPair]) {
    for (number, pair) in pairs.iter().enumerate() {
        report.figure(format!("pair {}: {nodes} nodes / one, rows for a CPU second", number + 1), pair.ratio(), "");
    }
    side_figures(report, "one node", pairs, |pair| &pair.one);
    side_figures(report, &format!("{nodes} nodes"), pairs, |pair| &pair.cluster);
    let ratio = median(pairs.iter().map(ClusterIngestPair::ratio));
    let name = format!("{nodes} nodes / one, rows for a CPU second, median");
    report.promised(name, ratio, "", Threshold::AtLeast(RATIO_MIN));
}

fn side_figures(
    report: &mut Report,
    name: &str,
    pairs: &[ClusterIngestPair],
    side: fn(&ClusterIngestPair) -> &ClusterIngestRun,
) {
    let of = |get: &dyn Fn(&ClusterIngestRun) -> f64| median(pairs.iter().map(|pair| get(side(pair))));
    report.figure(format!("{name}, median"), of(&|run| run.driven.operations_per_second()), "rows/s");
    report.figure(format!("{name}, median"), of(&|run| run.driven.mb_per_second()), "MB/s");
    report.figure(format!("{name}, for a CPU second"), of(&ClusterIngestRun::rows_per_cpu_second), "rows");
    let cores = |run: &ClusterIngestRun| run.cpu_seconds.iter().sum::<f64>() / run.driven.seconds;
    report.figure(format!("{name}, CPU of all servers"), of(&cores), "cores");
    // By kind of work, so that it is seen what a cluster adds.
    let kinds: std::collections::BTreeSet<&String> = pairs.iter().flat_map(|pair| side(pair).cpu.keys()).collect();
    for kind in kinds {
        let cost =
            of(&|run: &ClusterIngestRun| run.cpu.get(kind).copied().unwrap_or(0.0) / run.driven.bytes as f64 * 1e9);
        if cost >= 0.05 {
            report.figure(format!("{name}, CPU: {kind}"), cost, "s/GB");
        }
    }
    report.figure(format!("{name}, an acknowledgement, p50"), of(&|run| run.p(0.5)), "ms");
    report.figure(format!("{name}, an acknowledgement, p99"), of(&|run| run.p(0.99)), "ms");
    let refused: u64 = pairs.iter().map(|pair| side(pair).driven.refused).sum();
    report.figure(format!("{name}, requests refused and sent again"), refused as f64, "");
}

fn paced_figures(report: &mut Report, paced: &ClusterIngestRun) {
    report.figure("at half of the cluster's peak: sent", paced.driven.operations_per_second(), "rows/s");
    report.figure("at half of the cluster's peak: p50", paced.p(0.5), "ms");
    report.figure("at half of the cluster's peak: p99", paced.p(0.99), "ms");
}

fn memory_figures(report: &mut Report, pairs: &[ClusterIngestPair], paced: &ClusterIngestRun) {
    let peak = |runs: &mut dyn Iterator<Item = &ClusterIngestRun>| {
        let peaks = runs.flat_map(|run| run.memory.iter().map(|memory| memory.peak_bytes));
        peaks.max().unwrap_or(0) as f64 / f64::from(1 << 20)
    };
    report.figure("one node, resident, peak", peak(&mut pairs.iter().map(|pair| &pair.one)), "MiB");
    let mut clusters = pairs.iter().map(|pair| &pair.cluster).chain([paced]);
    report.figure("a node of the cluster, resident, peak", peak(&mut clusters), "MiB");
}
