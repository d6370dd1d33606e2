//! `store-soak`: checks that sealing and compacting keep up with writing for any duration. Deletes nothing.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use assay_bench::generate::{Profile, Workload};
use assay_storage_disk::{Disk, RealDisk};
use serde::Serialize;

use crate::client_threads::{Lane, join, lanes, spawn};
use crate::process::{CpuSeconds, Process, cpu_between};
use crate::report::{Report, Threshold, percentile, slope};
use crate::store::single_node::{Backlog, StoreNode};

const SAMPLE_EVERY: Duration = Duration::from_secs(5);
/// The soak ends early rather than leave the disk with less.
const FREE_BYTES_MIN: u64 = 15 << 30;
/// Share of the samples in which caches and the first tiers fill; ignored for the growth.
const WARM_UP: f64 = 0.2;
/// Upper bound of a backlog's growth over the rest of the soak, as a share of its mean.
const GROWTH_MAX: f64 = 0.10;
/// Segments a shard is meant to have at most.
const SEGMENTS_PER_SHARD_MAX: f64 = 20.0;

#[derive(Clone, Debug)]
pub struct SoakOptions {
    pub seconds: u64,
    /// Rate limit; unlimited if none.
    pub rate_bytes_per_second: Option<f64>,
    pub threads: usize,
    pub merges: f64,
    pub profile: Profile,
    pub seed: u64,
}

#[derive(Debug, Serialize)]
struct Sample {
    accepted_bytes: u64,
    operations: u64,
    resident_bytes: u64,
    write_bytes: u64,
    backlog: Backlog,
}

#[derive(Debug, Default)]
struct SoakProgress {
    bytes: AtomicU64,
    operations: AtomicU64,
    stop: AtomicBool,
}

pub fn run(options: &SoakOptions, dir: &Path, json_file: Option<&Path>) -> anyhow::Result<()> {
    let mut workload = Workload::new(options.seed, options.profile, options.merges);
    workload.late_writes = 1000;
    let node = Arc::new(StoreNode::open(dir)?);
    let progress = Arc::new(SoakProgress::default());
    let me = Process::myself();
    let (cpu_before, written_before, began) = (me.cpu()?, me.write_bytes()?, Instant::now());
    let lanes = lanes(options.threads);
    let mut clients = Vec::new();
    for at in 0..lanes {
        let (mut lane, node, progress) = (Lane::new(&workload, 1, at, lanes), Arc::clone(&node), Arc::clone(&progress));
        let rate = options.rate_bytes_per_second.map(|rate| rate / lanes as f64);
        clients.push(spawn(&format!("bench-client-{at}"), move || client(&mut lane, &node, &progress, rate))?);
    }
    let mut samples = Vec::new();
    let mut early = false;
    while began.elapsed().as_secs() < options.seconds && !early && !clients.iter().any(|client| client.is_finished()) {
        std::thread::sleep(SAMPLE_EVERY);
        let sample = Sample {
            accepted_bytes: progress.bytes.load(Ordering::Relaxed),
            operations: progress.operations.load(Ordering::Relaxed),
            resident_bytes: me.memory()?.resident_bytes,
            write_bytes: me.write_bytes()? - written_before,
            backlog: node.backlog(began)?,
        };
        eprintln!("{}", told(&sample));
        samples.push(sample);
        early = RealDisk.space(dir)?.free < FREE_BYTES_MIN;
    }
    progress.stop.store(true, Ordering::Relaxed);
    clients.into_iter().try_for_each(join)?;
    let seconds = began.elapsed().as_secs_f64();
    if early {
        eprintln!("stopped early: the disk has less than {} GiB free", FREE_BYTES_MIN >> 30);
    }
    let cpu = cpu_between(&cpu_before, &me.cpu()?);
    let report = report(&samples, seconds, &cpu, me.memory()?.peak_bytes)?;
    node.shutdown()?;
    report.finish(json_file)
}

fn client(lane: &mut Lane, node: &StoreNode, progress: &SoakProgress, rate: Option<f64>) -> anyhow::Result<()> {
    let (began, mut sent) = (Instant::now(), 0.0);
    while !progress.stop.load(Ordering::Relaxed) {
        let (shard, entry) = lane.next();
        if let Some(rate) = rate {
            let due = Duration::from_secs_f64(sent / rate);
            std::thread::sleep(due.saturating_sub(began.elapsed()));
        }
        sent += entry.bytes.len() as f64;
        node.propose(shard, entry.commands, &entry.merged)?;
        progress.bytes.fetch_add(entry.bytes.len() as u64, Ordering::Relaxed);
        progress.operations.fetch_add(entry.counts.operations, Ordering::Relaxed);
    }
    Ok(())
}

fn told(sample: &Sample) -> String {
    let mib = |bytes: u64| bytes >> 20;
    format!(
        "{:5.0} s: {} MB accepted, memory tables {} MiB, log {} MiB, segments {} (at most {} a shard), resident {} MiB",
        sample.backlog.seconds,
        sample.accepted_bytes / 1_000_000,
        mib(sample.backlog.memory_bytes),
        mib(sample.backlog.log_bytes),
        sample.backlog.segments,
        sample.backlog.segments_per_shard_max,
        mib(sample.resident_bytes),
    )
}

fn report(samples: &[Sample], seconds: f64, cpu: &CpuSeconds, peak_bytes: u64) -> anyhow::Result<Report> {
    let mut report = Report::new("store-soak");
    let warm = &samples[(samples.len() as f64 * WARM_UP) as usize..];
    let accepted = samples.last().map_or(0, |sample| sample.accepted_bytes) as f64;
    let operations = samples.last().map_or(0, |sample| sample.operations) as f64;
    let mib = f64::from(1 << 20);
    report.figure("wrote for", seconds, "s");
    report.figure("accepted", accepted / 1e9, "GB");
    report.figure("rate", accepted / 1e6 / seconds, "MB/s");
    report.figure("rate", operations / seconds, "rows/s");
    type Get = fn(&Sample) -> f64;
    let backlogs: [(&str, Get); 2] = [
        ("memory tables", |sample| sample.backlog.memory_bytes as f64),
        ("log", |sample| sample.backlog.log_bytes as f64),
    ];
    for (name, get) in backlogs {
        report.figure(format!("{name}, median"), percentile(warm.iter().map(get), 0.5) / mib, "MiB");
        report.figure(format!("{name}, most"), percentile(warm.iter().map(get), 1.0) / mib, "MiB");
        report.promised(
            format!("{name}: growth after warm-up / mean"),
            growth(warm, get),
            "",
            Threshold::AtMost(GROWTH_MAX),
        );
    }
    let most = percentile(warm.iter().map(|sample| sample.backlog.segments_per_shard_max as f64), 1.0);
    report.promised("segments of a shard, most", most, "", Threshold::AtMost(SEGMENTS_PER_SHARD_MAX));
    report.figure("resident, peak", peak_bytes as f64 / mib, "MiB");
    let written = samples.last().map_or(0, |sample| sample.write_bytes) as f64;
    report.figure("bytes written per byte accepted", written / accepted.max(1.0), "");
    for (group, used) in cpu {
        report.figure(format!("CPU, {group}"), used / accepted.max(1.0) * 1e9, "s/GB");
    }
    let keeps_up = backlogs.iter().all(|(_, get)| growth(warm, *get) <= GROWTH_MAX) && most <= SEGMENTS_PER_SHARD_MAX;
    report.promised("keeps up", f64::from(u8::from(keeps_up)), "", Threshold::AtLeast(1.0));
    report.detail("samples", samples)?;
    Ok(report)
}

/// Returns a backlog's growth from the first to the last of these samples, by a linear fit, as a share of its mean.
fn growth(samples: &[Sample], get: fn(&Sample) -> f64) -> f64 {
    let points: Vec<(f64, f64)> = samples.iter().map(|sample| (sample.backlog.seconds, get(sample))).collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return 0.0 };
    let mean = points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64;
    slope(&points) * (last.0 - first.0) / mean.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(memory: impl Fn(f64) -> f64) -> Vec<Sample> {
        (0..100)
            .map(|at| Sample {
                accepted_bytes: 1,
                operations: 1,
                resident_bytes: 0,
                write_bytes: 0,
                backlog: Backlog {
                    seconds: f64::from(at) * 5.0,
                    memory_bytes: memory(f64::from(at)) as u64,
                    log_bytes: 1 << 29,
                    ..Backlog::default()
                },
            })
            .collect()
    }

    #[test]
    fn a_saw_tooth_keeps_up_and_a_ramp_does_not() {
        let verdict = |samples: &[Sample]| {
            let report = report(samples, 500.0, &CpuSeconds::new(), 0).expect("plain values");
            report.table().lines().any(|line| line.contains("keeps up") && line.contains("ok"))
        };
        assert!(verdict(&samples(|at| 1e8 + (at % 7.0) * 3e7)));
        assert!(!verdict(&samples(|at| 1e8 + at * 1e7)));
    }
}
