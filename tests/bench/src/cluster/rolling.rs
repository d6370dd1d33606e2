//! `rolling`: every node is stopped, started and waited for, one after the other, while clients read and write.
//!
//! A plain restart, as an upgrade does it: SIGTERM, start, ready, and on to the next. Nothing is drained before; what a
//! node leads it gives away as it stops.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;

use super::failover::{longest_pause, row_figures};
use super::nodes::Nodes;
use super::readback::read_back;
use super::readers::{Read, Readers};
use super::writers::{self, WriteLoad, Written, one_in_each_shard};
use crate::http::client_runtime;
use crate::report::{Report, Threshold, median, percentile};

const NODES: usize = 3;
const SHARDS: u16 = 16;
/// Time limit of a restart on a small data set.
const NODE_SECONDS_MAX: f64 = 10.0;
/// Pause before the first and after the last restart.
const CALM: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct RollingOptions {
    pub program: PathBuf,
    /// Number of restarts of all nodes.
    pub rounds: usize,
}

#[derive(Debug, Serialize)]
struct NodeRestart {
    node: u64,
    /// Seconds since the load began.
    from: f64,
    stop_seconds: f64,
    ready_seconds: f64,
}

pub fn run(options: &RollingOptions, dir: &Path, json_file: Option<&Path>) -> anyhow::Result<()> {
    let mut nodes = Nodes::found(&options.program, dir, NODES, SHARDS)?;
    let runtime = client_runtime()?;
    let targets = Arc::new(nodes.targets());
    let objects = runtime.block_on(one_in_each_shard(&targets[0], SHARDS))?;
    let load = WriteLoad::start(runtime, &targets, objects.clone(), writers::EVERY);
    let readers = Readers::start(&load, &targets, &objects);
    load.all_write_since(0.0)?;
    std::thread::sleep(CALM);
    let (began, mut restarts) = (Instant::now(), Vec::new());
    for place in (0..NODES).cycle().take(NODES * options.rounds.max(1)) {
        let from = load.now();
        let stop_seconds = nodes.stop(place).with_context(|| format!("node {}", place + 1))?;
        let ready_seconds = nodes.start(place).with_context(|| format!("node {}", place + 1))?;
        eprintln!("node {}: stopped in {stop_seconds:.2} s, ready in {ready_seconds:.2} s", place + 1);
        restarts.push(NodeRestart { node: nodes.number(place), from, stop_seconds, ready_seconds });
    }
    let seconds = began.elapsed().as_secs_f64();
    std::thread::sleep(CALM);
    let read = readers.end(&load)?;
    let (runtime, written) = load.end()?;
    nodes.settle()?;
    let back = runtime.block_on(read_back(&targets, &written))?;
    let mut report = Report::new("rolling");
    restart_figures(&mut report, &restarts, seconds, &written);
    read_figures(&mut report, &read);
    write_figures(&mut report, &written);
    row_figures(&mut report, &written, &back);
    report.detail("restarts", &restarts)?;
    report.detail("read", &read)?;
    report.detail("written", &written)?;
    report.detail("read_back", &back)?;
    report.finish(json_file)
}

fn restart_figures(report: &mut Report, restarts: &[NodeRestart], seconds: f64, written: &[Written]) {
    let each = || restarts.iter().map(|restart| restart.stop_seconds + restart.ready_seconds);
    report.figure("restarts", restarts.len() as f64, "");
    report.figure("all of them", seconds, "s");
    report.figure("stopped and ready again, a node, median", median(each()), "s");
    let longest = each().fold(0.0, f64::max);
    report.promised("stopped and ready again, a node, longest", longest, "s", Threshold::AtMost(NODE_SECONDS_MAX));
    let pause = |restart: &NodeRestart| {
        let upto = restart.from + restart.stop_seconds + restart.ready_seconds;
        written.iter().map(|of| longest_pause(&of.rows, restart.from, upto)).fold(0.0, f64::max)
    };
    report.figure("no write to a shard, worst shard, median", median(restarts.iter().map(pause)), "s");
    report.figure("no write to a shard, worst", restarts.iter().map(pause).fold(0.0, f64::max), "s");
}

fn read_figures(report: &mut Report, read: &Read) {
    report.figure("reads", read.reads as f64, "");
    report.figure("a read, p50", percentile(read.answer_ms.iter().copied(), 0.5), "ms");
    report.figure("a read, p99", percentile(read.answer_ms.iter().copied(), 0.99), "ms");
    report.figure("a read, longest", read.answer_ms.iter().copied().fold(0.0, f64::max), "ms");
    report.figure("reads refused with Retry-After", read.troubles.refused as f64, "");
    let failed = read.troubles.failures() + read.refused_again;
    report.promised("reads that failed", failed as f64, "", Threshold::AtMost(0.0));
    report.promised("reads that missed an acknowledged row", read.stale as f64, "", Threshold::AtMost(0.0));
}

fn write_figures(report: &mut Report, written: &[Written]) {
    let rows = || written.iter().flat_map(|of| &of.rows);
    report.figure("writes refused with Retry-After", rows().map(|row| row.troubles.refused).sum::<u64>() as f64, "");
    let failed: u64 = rows().map(|row| row.troubles.failures() + u64::from(row.troubles.refused > 1)).sum();
    report.figure("writes that failed", failed as f64, "");
}
