//! `peers`: values of 1 KB made durable on three nodes, by Assay and by two servers made for it: etcd, and NATS with a
//! stream of three replicas.
//!
//! All get the same clients and values, one after the other on the same machine, each with its strongest durability. A
//! client sends its next value when the previous one is acknowledged. etcd and NATS take one value per request; Assay
//! takes rows, one or several per request, and indexes them for queries. Only the values' bytes count. The threshold
//! applies to the largest requests; the cost of single rows is reported too.

mod assay;
mod etcd;
mod nats;
mod putters;
pub mod tool;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use tokio::runtime::Runtime;

use crate::http::client_runtime;
use crate::report::{Report, Threshold};
use putters::{PutMeasurement, Values};

const TO_ETCD_MIN: f64 = 10.0;
const TO_NATS_MIN: f64 = 1.0;

#[derive(Clone, Debug)]
pub struct PeerOptions {
    pub program: PathBuf,
    pub clients: usize,
    pub seconds: u64,
    /// Rows of a request, for each run of Assay.
    pub batches: Vec<usize>,
    pub projects: usize,
    pub seed: u64,
}

/// A server that was measured, and what its acknowledgement means.
#[derive(Debug, Serialize)]
struct PeerSide {
    name: String,
    durability: &'static str,
    measured: PutMeasurement,
}

/// Load of every side.
#[derive(Clone, Debug)]
struct PeerLoad {
    clients: usize,
    time: Duration,
    values: Arc<Values>,
}

type Measure = fn(&Runtime, &PeerLoad, &Path) -> anyhow::Result<PeerSide>;

pub fn run(options: &PeerOptions, dir: &Path, json_file: Option<&Path>) -> anyhow::Result<()> {
    let runtime = client_runtime()?;
    let load = PeerLoad {
        clients: options.clients,
        time: Duration::from_secs(options.seconds.max(1)),
        values: Arc::new(Values::new(options.seed)),
    };
    let (mut ours, mut theirs, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for rows in &options.batches {
        let side = assay::measure(&runtime, options, *rows, &load, &dir.join(format!("assay-{rows}")));
        ours.push(side.with_context(|| format!("Assay, {rows} rows"))?);
    }
    for (peer, least, measure) in
        [("etcd", TO_ETCD_MIN, etcd::measure as Measure), ("nats", TO_NATS_MIN, nats::measure)]
    {
        match measure(&runtime, &load, &dir.join(peer)) {
            Ok(side) => theirs.push((side, least)),
            Err(why) => {
                eprintln!("NOT COVERED: {peer}: {why:#}");
                missing.push(format!("{peer}: {why:#}"));
            }
        }
    }
    let mut report = Report::new("peers");
    ours.iter().chain(theirs.iter().map(|(side, _)| side)).for_each(|side| figures(&mut report, side));
    let most = options.batches.iter().max();
    for (side, least) in &theirs {
        for (assay, rows) in ours.iter().zip(&options.batches) {
            let (name, ratio) = (format!("{} / {}", assay.name, side.name), ratio(&assay.measured, &side.measured));
            // What is promised is what a client gets that sends rows as every SDK does, many at a time.
            match Some(rows) == most {
                true => report.promised(name, ratio, "", Threshold::AtLeast(*least)),
                false => report.figure(name, ratio, ""),
            }
        }
    }
    report.detail("not_covered", &missing)?;
    report.detail("assay", &ours)?;
    report.detail("others", theirs.iter().map(|(side, _)| side).collect::<Vec<_>>())?;
    report.finish(json_file)
}

fn ratio(ours: &PutMeasurement, theirs: &PutMeasurement) -> f64 {
    ours.mb_per_second() / theirs.mb_per_second()
}

fn figures(report: &mut Report, side: &PeerSide) {
    let (name, measured) = (&side.name, &side.measured);
    report.figure(format!("{name} ({})", side.durability), measured.mb_per_second(), "MB/s");
    report.figure(format!("{name}, requests"), measured.requests as f64 / measured.seconds, "/s");
    report.figure(format!("{name}, an acknowledgement, p50"), measured.p(0.5), "ms");
    report.figure(format!("{name}, an acknowledgement, p99"), measured.p(0.99), "ms");
    report.figure(format!("{name}, CPU of its three servers"), measured.cpu_seconds / measured.seconds, "cores");
    let each = measured.cpu_seconds / measured.bytes as f64 * 1e9;
    report.figure(format!("{name}, CPU of its three servers"), each, "s/GB");
}
