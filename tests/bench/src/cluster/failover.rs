//! `failover`: time in which a shard takes no writes when its leading node is killed, and when it is stopped as
//! planned.
//!
//! ```text
//! kill     kill -9 ──► writes to its shards succeed again ──► start ──► ready ──► settled
//! drain    cluster drain ──► SIGTERM ──► ended ──► start ──► ready ──► cluster undrain ──► settled
//! ```
//! Meanwhile one writer per shard sends a small row twenty times a second. In the end every acknowledged row is read
//! from every node.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use assay_storage_model::ShardId;
use serde::Serialize;

use super::nodes::Nodes;
use super::readback::{ReadBack, read_back};
use super::writers::{self, Acknowledged, WriteLoad, Written, one_in_each_shard};
use crate::http::client_runtime;
use crate::report::{Report, Threshold, median, percentile};

const NODES: usize = 3;
const SHARDS: u16 = 16;
const KILL_SECONDS_MEDIAN_MAX: f64 = 2.0;
const KILL_SECONDS_MAX: f64 = 10.0;
const DRAIN_SECONDS_MEDIAN_MAX: f64 = 1.2;
/// Between two of them all is calm for so long.
const CALM: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct FailoverOptions {
    pub program: PathBuf,
    pub kills: usize,
    pub drains: usize,
}

#[derive(Debug, Serialize)]
struct Kill {
    node: u64,
    /// Seconds since the load began.
    at: f64,
    /// The one that was picked, and all that the node led.
    shard: u16,
    led: Vec<u16>,
    /// Time until the killed node was ready again after its start, and until everything was in place.
    ready_seconds: f64,
    settled_seconds: f64,
}

#[derive(Debug, Serialize)]
struct Drain {
    node: u64,
    from: f64,
    upto: f64,
    drain_seconds: f64,
    stop_seconds: f64,
    ready_seconds: f64,
    undrain_seconds: f64,
}

pub fn run(options: &FailoverOptions, dir: &Path, json_file: Option<&Path>) -> anyhow::Result<()> {
    let mut nodes = Nodes::found(&options.program, dir, NODES, SHARDS)?;
    let runtime = client_runtime()?;
    let targets = Arc::new(nodes.targets());
    let objects = runtime.block_on(one_in_each_shard(&targets[0], SHARDS))?;
    let load = WriteLoad::start(runtime, &targets, objects, writers::EVERY);
    load.all_write_since(0.0)?;
    let (mut kills, mut drains) = (Vec::new(), Vec::new());
    for number in 0..options.kills {
        std::thread::sleep(CALM);
        let kill = kill(&mut nodes, &load, number).with_context(|| format!("kill {}", number + 1))?;
        eprintln!("kill {}: node {}, ready again after {:.2} s", number + 1, kill.node, kill.ready_seconds);
        kills.push(kill);
    }
    for number in 0..options.drains {
        std::thread::sleep(CALM);
        let drain = drain(&mut nodes, &load, number % NODES).with_context(|| format!("drain {}", number + 1))?;
        eprintln!("drain {}: node {}, {:.1} s in all", number + 1, drain.node, drain.upto - drain.from);
        drains.push(drain);
    }
    std::thread::sleep(CALM);
    let (runtime, written) = load.end()?;
    let read = runtime.block_on(read_back(&targets, &written))?;
    let mut report = Report::new("failover");
    kill_figures(&mut report, &kills, &written);
    drain_figures(&mut report, &drains, &written);
    row_figures(&mut report, &written, &read);
    report.detail("kills", &kills)?;
    report.detail("kills_seconds", kills.iter().map(|kill| outages(kill, &written)).collect::<Vec<_>>())?;
    report.detail("drains", &drains)?;
    report.detail("drains_seconds", drains.iter().map(|drain| pauses(drain, &written)).collect::<Vec<_>>())?;
    report.detail("read_back", &read)?;
    report.detail("written", &written)?;
    report.finish(json_file)
}

/// Kills the leader of a shard, waits until every shard takes writes, and restarts the node.
fn kill(nodes: &mut Nodes, load: &WriteLoad, number: usize) -> anyhow::Result<Kill> {
    let status = nodes.settle()?;
    let shard = u16::try_from(number % usize::from(SHARDS))?;
    let leads = |shard: u16| {
        let group = status.groups.iter().find(|group| group.shard == Some(ShardId(shard)));
        group.and_then(|group| group.leader).map(|node| node.0)
    };
    let node = leads(shard).with_context(|| format!("nobody leads shard {shard}"))?;
    let led = (0..SHARDS).filter(|shard| leads(*shard) == Some(node)).collect();
    let (place, at) = (nodes.place(node)?, load.now());
    nodes.kill(place)?;
    load.all_write_since(at)?;
    let ready_seconds = nodes.start(place)?;
    let began = Instant::now();
    nodes.settle()?;
    Ok(Kill { node, at, shard, led, ready_seconds, settled_seconds: began.elapsed().as_secs_f64() })
}

fn drain(nodes: &mut Nodes, load: &WriteLoad, place: usize) -> anyhow::Result<Drain> {
    nodes.settle()?;
    let from = load.now();
    let drain_seconds = nodes.on_node("drain", place)?;
    let stop_seconds = nodes.stop(place)?;
    let ready_seconds = nodes.start(place)?;
    let undrain_seconds = nodes.on_node("undrain", place)?;
    nodes.settle()?;
    // Leads are given back in steps.
    std::thread::sleep(CALM);
    let upto = load.now();
    Ok(Drain { node: nodes.number(place), from, upto, drain_seconds, stop_seconds, ready_seconds, undrain_seconds })
}

/// Seconds from `since` until a row was acknowledged that was sent after it.
fn again(rows: &[Acknowledged], since: f64) -> f64 {
    let first = rows.iter().find(|row| row.sent > since);
    first.map_or(f64::INFINITY, |row| row.at - since)
}

/// The longest time between two acknowledgements one after the other, of those of which one lies in the window.
pub fn longest_pause(rows: &[Acknowledged], from: f64, upto: f64) -> f64 {
    let pairs = rows.windows(2).filter(|pair| pair[1].at >= from && pair[0].at <= upto);
    pairs.map(|pair| pair[1].at - pair[0].at).fold(0.0, f64::max)
}

/// Outage of each shard that the killed node led.
fn outages(kill: &Kill, written: &[Written]) -> Vec<f64> {
    kill.led.iter().map(|shard| again(&written[usize::from(*shard)].rows, kill.at)).collect()
}

/// Pause of each shard during one planned restart.
fn pauses(drain: &Drain, written: &[Written]) -> Vec<f64> {
    written.iter().map(|of| longest_pause(&of.rows, drain.from, drain.upto)).collect()
}

fn kill_figures(report: &mut Report, kills: &[Kill], written: &[Written]) {
    if kills.is_empty() {
        return;
    }
    let picked: Vec<f64> = kills.iter().map(|kill| again(&written[usize::from(kill.shard)].rows, kill.at)).collect();
    let worst = kills.iter().flat_map(|kill| outages(kill, written));
    report.figure("kills of the node that leads a shard", kills.len() as f64, "");
    let name = "writes to that shard succeed again, median";
    report.promised(name, median(picked.iter().copied()), "s", Threshold::AtMost(KILL_SECONDS_MEDIAN_MAX));
    report.figure("writes to that shard succeed again, p90", percentile(picked.iter().copied(), 0.9), "s");
    let name = "writes to all of its shards succeed again, worst";
    report.promised(name, worst.fold(0.0, f64::max), "s", Threshold::AtMost(KILL_SECONDS_MAX));
    report.figure("killed node ready again, median", median(kills.iter().map(|kill| kill.ready_seconds)), "s");
    report.figure("and all settled, median", median(kills.iter().map(|kill| kill.settled_seconds)), "s");
}

fn drain_figures(report: &mut Report, drains: &[Drain], written: &[Written]) {
    if drains.is_empty() {
        return;
    }
    let pauses: Vec<Vec<f64>> = drains.iter().map(|drain| pauses(drain, written)).collect();
    let worst: Vec<f64> = pauses.iter().map(|pauses| pauses.iter().copied().fold(0.0, f64::max)).collect();
    report.figure("planned restarts", drains.len() as f64, "");
    report.figure("no write to a shard, all shards, median", median(pauses.concat()), "s");
    let name = "no write to a shard, worst shard, median";
    report.promised(name, median(worst.iter().copied()), "s", Threshold::AtMost(DRAIN_SECONDS_MEDIAN_MAX));
    report.figure("no write to a shard, worst shard, worst", worst.iter().copied().fold(0.0, f64::max), "s");
    let within = |row: &&Acknowledged| drains.iter().any(|drain| row.at >= drain.from && row.sent <= drain.upto);
    let rows: Vec<&Acknowledged> = written.iter().flat_map(|of| &of.rows).filter(within).collect();
    let sum = |get: fn(&Acknowledged) -> u64| rows.iter().map(|row| get(row)).sum::<u64>() as f64;
    report.figure("rows sent meanwhile", rows.len() as f64, "");
    let refused = sum(|row| row.troubles.refused);
    report.figure("refused with Retry-After", refused, "");
    let twice = sum(|row| u64::from(row.troubles.refused > 1));
    report.promised("refused more than once", twice, "", Threshold::AtMost(0.0));
    let failed = sum(|row| row.troubles.failures());
    report.promised("failed in any other way", failed, "", Threshold::AtMost(0.0));
    report.figure("found no connection and went elsewhere", sum(|row| row.troubles.not_sent), "");
    let median_of = |get: fn(&Drain) -> f64| median(drains.iter().map(get));
    report.figure("drain, median", median_of(|drain| drain.drain_seconds), "s");
    report.figure("stop, median", median_of(|drain| drain.stop_seconds), "s");
    report.figure("start until ready, median", median_of(|drain| drain.ready_seconds), "s");
}

pub fn row_figures(report: &mut Report, written: &[Written], read: &[ReadBack]) {
    let took = || written.iter().flat_map(|of| &of.rows).map(|row| (row.at - row.sent) * 1e3);
    report.figure("rows acknowledged", written.iter().map(|of| of.rows.len()).sum::<usize>() as f64, "");
    report.figure("an acknowledgement, p50", percentile(took(), 0.5), "ms");
    report.figure("an acknowledgement, p99", percentile(took(), 0.99), "ms");
    report.figure("rows read back, from all nodes", read.iter().map(|of| of.rows).sum::<u64>() as f64, "");
    let missing = read.iter().map(|of| of.missing).sum::<u64>() as f64;
    report.promised("acknowledged and not there", missing, "", Threshold::AtMost(0.0));
    let strange = read.iter().map(|of| of.strange).sum::<u64>() as f64;
    report.promised("there and not sent, or twice", strange, "", Threshold::AtMost(0.0));
}

#[cfg(test)]
mod tests {
    use super::super::roamer::Troubles;
    use super::*;

    fn rows(times: &[(f64, f64)]) -> Vec<Acknowledged> {
        let row = |(sent, at): &(f64, f64)| Acknowledged { sent: *sent, at: *at, troubles: Troubles::default() };
        times.iter().map(row).collect()
    }

    #[test]
    fn what_was_sent_before_the_kill_does_not_end_the_outage() {
        let rows = rows(&[(0.9, 0.95), (0.99, 1.8), (1.85, 1.9)]);
        assert!((again(&rows, 1.0) - 0.9).abs() < 1e-9);
        assert_eq!(again(&rows, 3.0), f64::INFINITY);
    }

    #[test]
    fn a_pause_that_reaches_into_the_window_counts_whole() {
        let rows = rows(&[(0.0, 0.1), (0.1, 1.1), (1.1, 1.2), (1.2, 1.7), (1.7, 9.0)]);
        assert!((longest_pause(&rows, 1.0, 1.5) - 1.0).abs() < 1e-9);
        assert!((longest_pause(&rows, 1.15, 1.6) - 0.5).abs() < 1e-9);
        assert_eq!(longest_pause(&[], 0.0, 1.0), 0.0);
    }
}
