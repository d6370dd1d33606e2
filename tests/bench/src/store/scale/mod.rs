//! `scale`: whether the millionth row costs as much as the first, and the work left after a kill.
//!
//! One process loads the rows and continues until the log is near its budget; it is killed with SIGKILL. A second one
//! opens the directory, reports ready, and reads. Rows are generated when they are written and again when they are
//! checked; none is kept.

pub mod load;
pub mod read;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use crate::process::{Memory, ProcessPart};
use crate::report::{Report, Threshold, percentile};

/// Rows between two marks of the throughput.
pub const MARK_ROWS: u64 = 100_000;
/// Marks in the table; the JSON file has all.
const MARKS_SHOWN: usize = 10;
const READY_SECONDS_MAX: f64 = 5.0;
const GET_MS_P50_MAX: f64 = 1.0;
const PAGE_MS_MAX: f64 = 10.0;
/// The last hundred thousand rows go at least at this share of the first ones' rate.
const LAST_TO_FIRST_MIN: f64 = 0.85;
const RESIDENT_MIB_MAX: f64 = 1024.0;
/// Limit of the memory from ten million rows on.
const RESIDENT_MIB_MAX_LARGE: f64 = 2048.0;
const LARGE_ROWS: u64 = 10_000_000;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScaleTask {
    pub dir: PathBuf,
    pub rows: u64,
    pub merges: f64,
    pub seed: u64,
    pub lanes: usize,
    /// Result of the loading process: (object, rows acknowledged).
    pub objects: Vec<(u64, u64)>,
}

/// Message of the loading process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum LoadMessage {
    Mark {
        rows: u64,
        seconds: f64,
        memory: Memory,
    },
    Loaded(ScaleLoaded),
    /// It waits to be killed.
    ReadyToDie {
        log_bytes: u64,
        log_budget_bytes: u64,
        objects: Vec<(u64, u64)>,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScaleLoaded {
    pub rows: u64,
    pub operations: u64,
    pub late_merges: u64,
    pub seconds: f64,
    pub entry_bytes: u64,
    pub write_bytes: u64,
    pub disk_bytes: u64,
    pub memory: Memory,
    pub backlog: crate::store::single_node::Backlog,
}

/// Measurements of the reading process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answers {
    /// From the start of the process until every shard answered a linearizable read.
    pub ready_seconds: f64,
    pub memory_ready: Memory,
    pub memory_after: Memory,
    /// Milliseconds of each lookup: the first ones after the start, and those after them.
    pub get_cold_ms: Vec<f64>,
    pub any_page_cold_ms: Vec<f64>,
    pub get_warm_ms: Vec<f64>,
    pub absent_ms: Vec<f64>,
    pub newest_page_ms: Vec<f64>,
    pub any_page_ms: Vec<f64>,
    pub trace_ms: Vec<f64>,
    pub segments: u64,
}

pub fn run(task: ScaleTask, json_file: Option<&Path>) -> anyhow::Result<()> {
    let mut report = Report::new("scale");
    let mut load = ProcessPart::start("scale-load", &task)?;
    let (mut marks, mut loaded) = (Vec::new(), None);
    let (log_bytes, log_budget_bytes, objects) = loop {
        match load.next::<LoadMessage>()?.context("the loading process ended before it was killed")? {
            LoadMessage::Mark { rows, seconds, memory } => {
                eprintln!("{rows} rows after {seconds:.1} s, resident {} MiB", memory.resident_bytes >> 20);
                marks.push((rows, seconds, memory));
            }
            LoadMessage::Loaded(all) => loaded = Some(all),
            LoadMessage::ReadyToDie { log_bytes, log_budget_bytes, objects } => {
                break (log_bytes, log_budget_bytes, objects);
            }
        }
    };
    let Some(loaded) = loaded else { bail!("the loading process did not say what it loaded") };
    let at_death = load.process().memory()?;
    load.kill()?;
    eprintln!("killed with {} of {} MiB of log", log_bytes >> 20, log_budget_bytes >> 20);
    let large = task.rows >= LARGE_ROWS;
    let task = ScaleTask { objects, ..task };
    let began = Instant::now();
    let answers: Answers = ProcessPart::start("scale-read", &task)?.only()?;
    eprintln!("read for {:.1} s", began.elapsed().as_secs_f64());
    report.detail("marks", &marks)?;
    report.detail("loaded", &loaded)?;
    report.detail("answers", &answers)?;
    load_figures(&mut report, &marks, &loaded);
    let most = if large { RESIDENT_MIB_MAX_LARGE } else { RESIDENT_MIB_MAX };
    report.promised("resident while loading, peak", mib(at_death.peak_bytes), "MiB", Threshold::AtMost(most));
    report.promised("resident after loading", mib(loaded.memory.resident_bytes), "MiB", Threshold::AtMost(most));
    report.figure("log when killed / its budget", log_bytes as f64 / log_budget_bytes as f64, "");
    read_figures(&mut report, &answers, most);
    report.finish(json_file)
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn load_figures(report: &mut Report, marks: &[(u64, f64, Memory)], loaded: &ScaleLoaded) {
    let mut rates = Vec::new();
    let mut before = (0, 0.0);
    let shown_every = marks.len().div_ceil(MARKS_SHOWN).max(1);
    for (number, (rows, seconds, memory)) in (1..).zip(marks) {
        let rate = (rows - before.0) as f64 / (seconds - before.1);
        if number == 1 || number == marks.len() || number % shown_every == 0 {
            report.figure(format!("rows {} to {}", before.0, rows), rate, "rows/s");
            report.figure("  resident then", mib(memory.resident_bytes), "MiB");
        }
        rates.push(rate);
        before = (*rows, *seconds);
    }
    if let (Some(first), Some(last)) = (rates.first(), rates.last()) {
        let name = "last 100 thousand / first";
        match loaded.rows < LARGE_ROWS {
            true => report.promised(name, last / first, "", Threshold::AtLeast(LAST_TO_FIRST_MIN)),
            false => report.figure(name, last / first, ""),
        }
    }
    report.figure("rows", loaded.rows as f64, "");
    report.figure("merges to rows of long ago", loaded.late_merges as f64, "");
    report.figure("rate", loaded.rows as f64 / loaded.seconds, "rows/s");
    report.figure("rate", loaded.entry_bytes as f64 / 1e6 / loaded.seconds, "MB/s");
    report.figure("bytes written per byte accepted", loaded.write_bytes as f64 / loaded.entry_bytes as f64, "");
    report.figure(
        "bytes on disk per byte accepted, log included",
        loaded.disk_bytes as f64 / loaded.entry_bytes as f64,
        "",
    );
}

fn read_figures(report: &mut Report, answers: &Answers, resident_mib_max: f64) {
    report.promised("ready after kill -9", answers.ready_seconds, "s", Threshold::AtMost(READY_SECONDS_MAX));
    report.figure("resident when ready", mib(answers.memory_ready.resident_bytes), "MiB");
    let peak = mib(answers.memory_after.peak_bytes);
    report.promised("resident while reading, peak", peak, "MiB", Threshold::AtMost(resident_mib_max));
    report.figure("segments", answers.segments as f64, "");
    let p = |times: &[f64], share| percentile(times.iter().copied(), share);
    report.promised("a row by id, p50", p(&answers.get_warm_ms, 0.5), "ms", Threshold::AtMost(GET_MS_P50_MAX));
    report.figure("a row by id, p99", p(&answers.get_warm_ms, 0.99), "ms");
    report.figure("a row by id, from the disk, p50", p(&answers.get_cold_ms, 0.5), "ms");
    report.figure("an id that is not there, p50", p(&answers.absent_ms, 0.5), "ms");
    report.figure("an id that is not there, p99", p(&answers.absent_ms, 0.99), "ms");
    report.promised(
        "newest page of 100 traces, p50",
        p(&answers.newest_page_ms, 0.5),
        "ms",
        Threshold::AtMost(PAGE_MS_MAX),
    );
    report.figure("newest page of 100 traces, p99", p(&answers.newest_page_ms, 0.99), "ms");
    report.promised("any page of 100 traces, p50", p(&answers.any_page_ms, 0.5), "ms", Threshold::AtMost(PAGE_MS_MAX));
    report.figure("any page of 100 traces, p99", p(&answers.any_page_ms, 0.99), "ms");
    report.figure("any page of 100 traces, from the disk, p50", p(&answers.any_page_cold_ms, 0.5), "ms");
    report.figure("one trace, p50", p(&answers.trace_ms, 0.5), "ms");
    report.figure("one trace, p99", p(&answers.trace_ms, 0.99), "ms");
}
