//! `store`: rate of durable rows through the whole store, compared with raft-engine alone, fed the same bytes by the
//! same number of threads in the same run. Each side runs in a process of its own, so that memory, bytes written and
//! CPU time are of that side alone; the sides take turns at going first.

pub mod assay;
pub(crate) mod disk_limits;
pub mod peer;
pub(crate) mod scale;
pub(crate) mod single_node;
pub(crate) mod soak;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assay_bench::generate::{Profile, Workload};
use serde::{Deserialize, Serialize};

use crate::process::{CpuSeconds, Memory, ProcessPart};
use crate::report::{Report, Threshold, median};

/// The store's rate must be at least this share of the log's alone.
const RATIO_MIN: f64 = 0.6;
/// Bytes written per byte accepted, compaction included.
const WRITTEN_PER_BYTE_MAX: f64 = 3.0;
/// Bytes for the bare file; its rate settles long before that.
const DISK_BYTES_MAX: u64 = 512 << 20;

#[derive(Clone, Debug)]
pub struct StoreOptions {
    pub bytes: u64,
    pub threads: usize,
    pub merges: f64,
    pub profile: Profile,
    pub runs: usize,
    pub seed: u64,
}

/// Task of a side.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoreTask {
    pub dir: PathBuf,
    pub bytes: u64,
    pub lanes: usize,
    pub merges: f64,
    pub profile: String,
    pub seed: u64,
}

impl StoreTask {
    pub fn workload(&self) -> anyhow::Result<Workload> {
        let profile = self.profile.parse().map_err(anyhow::Error::msg)?;
        let mut workload = Workload::new(self.seed, profile, self.merges);
        // "Long ago" must lie within the run: half of what one object gets, at about 150 KB a write.
        let writes = self.bytes / u64::from(crate::client_threads::SHARDS) / 150_000;
        workload.late_writes = workload.late_writes.min(writes / 3);
        Ok(workload)
    }
}

/// Measurements of a side.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoreMeasurement {
    /// From the first write sent to the last one acknowledged.
    pub seconds: f64,
    /// Row operations acknowledged.
    pub operations: u64,
    pub rows: u64,
    pub late_merges: u64,
    /// Bytes of the entries, and of the documents in them.
    pub entry_bytes: u64,
    pub doc_bytes: u64,
    /// CPU by kind of work until the last acknowledgement.
    pub cpu: CpuSeconds,
    /// CPU of all that follows from these writes, the last compaction included.
    pub cpu_settled: CpuSeconds,
    pub settle_seconds: f64,
    pub write_bytes: u64,
    pub write_bytes_settled: u64,
    pub disk_bytes: u64,
    /// Memory before the first write (including the entries) and after the last.
    pub memory_before: Memory,
    pub memory_after: Memory,
    pub backlog: Vec<crate::store::single_node::Backlog>,
}

impl StoreMeasurement {
    fn mb_per_second(&self) -> f64 {
        self.entry_bytes as f64 / 1e6 / self.seconds
    }

    fn rows_per_second(&self) -> f64 {
        self.operations as f64 / self.seconds
    }
}

#[derive(Debug, Serialize)]
struct StoreRun {
    peer: StoreMeasurement,
    store: StoreMeasurement,
}

pub fn run(options: &StoreOptions, dir: &Path, json_file: Option<&Path>) -> anyhow::Result<()> {
    let mut report = Report::new("store");
    let limit = disk_limits::measure(dir, options.bytes.min(DISK_BYTES_MAX))?;
    report.detail("disk", limit)?;
    let mut runs = Vec::new();
    for number in 0..options.runs.max(1) {
        let run = one_run(options, dir, number)?;
        eprintln!(
            "run {}: raft-engine {:.0} MB/s, store {:.0} MB/s, ratio {:.3}",
            number + 1,
            run.peer.mb_per_second(),
            run.store.mb_per_second(),
            run.store.mb_per_second() / run.peer.mb_per_second()
        );
        runs.push(run);
    }
    report.figure("bare file, 1 MiB appends + fdatasync", limit.mb_per_second, "MB/s");
    report.figure("an append of 1 MiB, p50", limit.append_ms_p50, "ms");
    report.figure("an append of 1 MiB, p99", limit.append_ms_p99, "ms");
    figures(&mut report, &runs);
    report.detail("runs", &runs)?;
    report.finish(json_file)
}

fn one_run(options: &StoreOptions, dir: &Path, number: usize) -> anyhow::Result<StoreRun> {
    let side = |name: &str| -> anyhow::Result<StoreMeasurement> {
        let dir = dir.join(format!("run-{number}-{name}"));
        std::fs::create_dir_all(&dir)?;
        let task = StoreTask {
            dir: dir.clone(),
            bytes: options.bytes,
            lanes: crate::client_threads::lanes(options.threads),
            merges: options.merges,
            profile: options.profile.name().into(),
            seed: options.seed,
        };
        // What the side before left in the page cache is written by nobody's time but ours.
        rustix::fs::sync();
        let measured = ProcessPart::start(name, &task)?.only()?;
        std::fs::remove_dir_all(&dir)?;
        Ok(measured)
    };
    if number.is_multiple_of(2) {
        let peer = side("side-raft-engine")?;
        Ok(StoreRun { peer, store: side("side-store")? })
    } else {
        let store = side("side-store")?;
        Ok(StoreRun { peer: side("side-raft-engine")?, store })
    }
}

fn figures(report: &mut Report, runs: &[StoreRun]) {
    let of = |get: fn(&StoreRun) -> f64| median(runs.iter().map(get));
    for (number, run) in runs.iter().enumerate() {
        let ratio = run.store.mb_per_second() / run.peer.mb_per_second();
        report.figure(format!("run {}: store / raft-engine", number + 1), ratio, "");
    }
    report.figure("raft-engine, median", of(|run| run.peer.mb_per_second()), "MB/s");
    report.figure("raft-engine, median", of(|run| run.peer.rows_per_second()), "rows/s");
    report.figure("store, median", of(|run| run.store.mb_per_second()), "MB/s");
    report.figure("store, median", of(|run| run.store.rows_per_second()), "rows/s");
    let ratio = of(|run| run.store.mb_per_second() / run.peer.mb_per_second());
    report.promised("store / raft-engine, median (goal 0.85)", ratio, "", Threshold::AtLeast(RATIO_MIN));
    let written = of(|run| run.store.write_bytes_settled as f64 / run.store.entry_bytes as f64);
    report.promised("bytes written per byte accepted, settled", written, "", Threshold::AtMost(WRITTEN_PER_BYTE_MAX));
    let peer = of(|run| run.peer.write_bytes_settled as f64 / run.peer.entry_bytes as f64);
    report.figure("bytes written per byte accepted, raft-engine", peer, "");
    report.figure("bytes of segments per byte accepted, settled", of(segments_per_byte), "");
    report.figure("seal and compaction behind the last write", of(|run| run.store.settle_seconds), "s");
    report.figure("resident above the entries, peak", of(grown_mib), "MiB");
    for (group, seconds) in cpu_per_gb(runs) {
        report.figure(format!("CPU, {group}"), seconds, "s/GB");
    }
    let peer: f64 = of(|run| run.peer.cpu_settled.values().sum::<f64>() / run.peer.entry_bytes as f64 * 1e9);
    report.figure("CPU, raft-engine alone, all threads", peer, "s/GB");
}

fn segments_per_byte(run: &StoreRun) -> f64 {
    let bytes = run.store.backlog.last().map_or(0, |backlog| backlog.segment_bytes);
    bytes as f64 / run.store.entry_bytes as f64
}

fn grown_mib(run: &StoreRun) -> f64 {
    run.store.memory_after.peak_bytes.saturating_sub(run.store.memory_before.resident_bytes) as f64 / f64::from(1 << 20)
}

/// CPU seconds per GB accepted by kind of work, mean over the runs, everything that follows from the writes included.
fn cpu_per_gb(runs: &[StoreRun]) -> BTreeMap<String, f64> {
    let mut groups = BTreeMap::new();
    for run in runs {
        for (group, seconds) in &run.store.cpu_settled {
            *groups.entry(group.clone()).or_default() +=
                seconds / run.store.entry_bytes as f64 * 1e9 / runs.len() as f64;
        }
    }
    groups
}
