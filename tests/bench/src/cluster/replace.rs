//! `replace`: one of three nodes is lost for good and replaced by an empty one, while clients insert at full speed.
//!
//! ```text
//! load ──► before ──► kill -9 ──► two of three ──► join ──► cluster replace ──► status --wait ──► after
//! ```
//! In the end every acknowledged row is read from every node, including the new one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::Serialize;

use super::nodes::Nodes;
use super::stream::{NodeContents, SentRows, Stream, find};
use crate::http::client_runtime;
use crate::process::bytes_below;
use crate::report::{Report, Threshold};

const NODES: usize = 3;
const SHARDS: u16 = 16;
/// Lower bound of the clients' rate while a replica is made, as a share of their rate before.
const MEANWHILE_MIN: f64 = 0.5;
/// Duration of the rate measurements, before and while one node is missing.
const LOOK: Duration = Duration::from_secs(15);
const TICK: Duration = Duration::from_millis(200);
/// The node that is lost: not the one that founded the cluster, and not the last one that joined.
const LOST: usize = 1;

#[derive(Clone, Debug)]
pub struct ReplaceOptions {
    pub program: PathBuf,
    pub bytes: u64,
    pub clients: usize,
    pub rows_per_request: usize,
    pub seed: u64,
}

/// Clients' results in one part of the run.
#[derive(Clone, Debug, Serialize)]
struct ReplacePart {
    seconds: f64,
    mb_per_second: f64,
    /// Second by second, in MB.
    course: Vec<f64>,
}

#[derive(Debug, Serialize)]
struct ReplaceMeasurement {
    /// Bytes when the node was lost.
    bytes: u64,
    before: ReplacePart,
    without: ReplacePart,
    /// From `cluster replace` until everything was settled.
    meanwhile: ReplacePart,
    after: ReplacePart,
    join_seconds: f64,
    /// Bytes on the new node's disk then.
    new_node_bytes: u64,
}

pub fn run(options: &ReplaceOptions, dir: &Path, json_file: Option<&Path>) -> anyhow::Result<()> {
    let mut nodes = Nodes::found(&options.program, dir, NODES, SHARDS)?;
    let targets = Arc::new(nodes.targets());
    let (clients, rows) = (options.clients, options.rows_per_request);
    let stream = Stream::start(client_runtime()?, &targets, clients, rows, options.seed)?;
    while stream.bytes()? < options.bytes {
        std::thread::sleep(TICK);
    }
    let measured = replace(&mut nodes, &stream, dir)?;
    let (runtime, sent) = stream.end()?;
    nodes.settle()?;
    let sent = Arc::new(sent);
    let mut found = Vec::new();
    for (place, target) in nodes.targets().iter().enumerate().filter(|(place, _)| *place != LOST) {
        let of_node = runtime.block_on(find(target, nodes.number(place), &sent, options.seed))?;
        eprintln!("node {}: {} rows, {} missing", of_node.node, of_node.rows, of_node.missing);
        found.push(of_node);
    }
    let mut report = Report::new("replace");
    figures(&mut report, &measured);
    row_figures(&mut report, &sent, &found);
    report.detail("measured", &measured)?;
    report.detail("told", sent.iter().flat_map(|of| &of.told).collect::<Vec<_>>())?;
    report.detail("found", &found)?;
    report.finish(json_file)
}

fn replace(nodes: &mut Nodes, stream: &Stream, dir: &Path) -> anyhow::Result<ReplaceMeasurement> {
    let bytes = stream.bytes()?;
    let before = part(stream, |began| Ok(began.elapsed() >= LOOK))?;
    eprintln!("{} MB; {:.1} MB/s before", bytes / 1_000_000, before.mb_per_second);
    nodes.kill(LOST)?;
    let without = part(stream, |began| Ok(began.elapsed() >= LOOK))?;
    eprintln!("{:.1} MB/s with two of three", without.mb_per_second);
    let began = Instant::now();
    let new = nodes.join().context("the new node")?;
    let join_seconds = began.elapsed().as_secs_f64();
    nodes.replace(LOST, new)?;
    let meanwhile = part(stream, |_| Ok(nodes.status()?.settled))?;
    eprintln!("settled after {:.1} s, {:.1} MB/s meanwhile", meanwhile.seconds, meanwhile.mb_per_second);
    let new_node_bytes = bytes_below(&dir.join(format!("node-{}", nodes.number(new))))?;
    let after = part(stream, |began| Ok(began.elapsed() >= LOOK))?;
    Ok(ReplaceMeasurement { bytes, before, without, meanwhile, after, join_seconds, new_node_bytes })
}

/// Measures the clients' results until `over`.
fn part(stream: &Stream, over: impl Fn(Instant) -> anyhow::Result<bool>) -> anyhow::Result<ReplacePart> {
    const WAIT_MAX: Duration = Duration::from_secs(3600);
    let (began, before) = (Instant::now(), stream.bytes()?);
    let (mut course, mut last) = (Vec::new(), (began, before));
    while !over(began)? {
        ensure!(began.elapsed() < WAIT_MAX, "not settled after {} s", WAIT_MAX.as_secs());
        std::thread::sleep(TICK);
        let (since, bytes) = (last.0.elapsed().as_secs_f64(), stream.bytes()?);
        if since >= 1.0 {
            course.push(((bytes - last.1) as f64 / 1e5 / since).round() / 10.0);
            last = (Instant::now(), bytes);
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    Ok(ReplacePart { seconds, mb_per_second: (stream.bytes()? - before) as f64 / 1e6 / seconds, course })
}

fn figures(report: &mut Report, measured: &ReplaceMeasurement) {
    report.figure("inserted before", measured.bytes as f64 / 1e9, "GB");
    report.figure("clients get, before", measured.before.mb_per_second, "MB/s");
    report.figure("clients get, two of three nodes", measured.without.mb_per_second, "MB/s");
    report.figure("clients get, while it is replaced", measured.meanwhile.mb_per_second, "MB/s");
    report.figure("clients get, after", measured.after.mb_per_second, "MB/s");
    let ratio = measured.meanwhile.mb_per_second / measured.before.mb_per_second;
    report.promised("while it is replaced / before", ratio, "", Threshold::AtLeast(MEANWHILE_MIN));
    report.figure("the new node joins and is ready", measured.join_seconds, "s");
    report.figure("replaced, until all is settled", measured.meanwhile.seconds, "s");
    report.figure("the new node's directory then", measured.new_node_bytes as f64 / 1e9, "GB");
}

fn row_figures(report: &mut Report, sent: &[SentRows], found: &[NodeContents]) {
    report.figure("rows acknowledged", sent.iter().map(|of| of.rows).sum::<u64>() as f64, "");
    let sum = |get: fn(&SentRows) -> u64| sent.iter().map(get).sum::<u64>() as f64;
    report.figure("requests refused with Retry-After", sum(|of| of.troubles.refused), "");
    report.figure("requests broken, by the kill", sum(|of| of.troubles.broken), "");
    let failed = sum(|of| of.troubles.failed + of.troubles.refused_without_word);
    report.promised("requests that failed in any other way", failed, "", Threshold::AtMost(0.0));
    report.figure("rows read back, from all nodes", found.iter().map(|of| of.rows).sum::<u64>() as f64, "");
    let missing = found.iter().map(|of| of.missing).sum::<u64>() as f64;
    report.promised("acknowledged and not there", missing, "", Threshold::AtMost(0.0));
    let strange = found.iter().map(|of| of.strange).sum::<u64>() as f64;
    report.promised("there and not sent, or twice", strange, "", Threshold::AtMost(0.0));
}
