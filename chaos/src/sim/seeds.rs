//! Runs of many seeds, on all processors, for a number or for a time.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use parking_lot::Mutex;

use super::{REPEATABLE, SimOutcome, simulate};
use crate::report::Report;

/// Every so many seeds one is run twice, and must do the same.
const TWICE_ONE_IN: u64 = 40;
/// Number of failing seeds kept; more add little.
const FAILURES_MAX: usize = 10;
/// A seed that takes longer on the machine's clock hangs, also on a machine that has little time for it.
const SEED_TAKES_MAX: Duration = Duration::from_secs(600);

/// Seeds that once found an error, with its description. They run before any other. A change of the simulation's random
/// draws gives a seed another history, so each error should also have a test beside the fixed code.
const REGRESSIONS: &[(u64, &str)] = &[
    (23, "a node ended itself at every start: its log was purged up to where another leader's began to differ"),
    (8187, "members that no majority knew of yet passed for settled, and one more was given up"),
    (
        11178,
        "an entry under way that a snapshot took the place of was waited for without end, and its group took no more",
    ),
    (11809, "a node ended itself: a sender of a term that was over asked for entries that had been purged"),
    (185, "a leader that led on after its restart confirmed reads from before what it had acknowledged"),
];

#[derive(Clone, Debug, clap::Args)]
pub struct SimOptions {
    /// Number of seeds
    #[arg(long, default_value_t = 200)]
    pub seeds: u64,
    /// Run for this many seconds, with any number of seeds
    #[arg(long)]
    pub seconds: Option<u64>,
    /// The first seed; a fresh one if not given. With --seeds 1 it repeats one run
    #[arg(long)]
    pub seed: Option<u64>,
    /// Threads; all processors if not given
    #[arg(long)]
    pub threads: Option<usize>,
    /// Log level of the nodes, to stderr: error, warn, info, debug or trace. With --seeds 1
    #[arg(long)]
    pub log: Option<tracing::Level>,
    /// File for the trace of the last seed
    #[arg(long)]
    pub trace: Option<PathBuf>,
    /// File for the report, as JSON
    #[arg(long)]
    pub report: Option<PathBuf>,
}

#[derive(Debug, Default)]
struct Sum {
    failures: Vec<SimOutcome>,
    entries: usize,
    elections: usize,
    acknowledged: usize,
    faults: usize,
    twice: u64,
}

#[derive(Debug)]
struct SeedRuns {
    next: AtomicU64,
    done: AtomicU64,
    stop: AtomicBool,
    sum: Mutex<Sum>,
    /// The seed that each thread is at, and since when.
    at: Mutex<Vec<(u64, Instant)>>,
}

/// Runs the seeds and fills the report.
pub fn run(options: &SimOptions, first: u64, report: &mut Report) -> anyhow::Result<()> {
    if let Some(level) = options.log {
        tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(level).with_ansi(false).init();
    }
    let began = Instant::now();
    let threads = options.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)).max(1);
    let shared = Arc::new(SeedRuns {
        next: AtomicU64::new(0),
        done: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        sum: Mutex::default(),
        at: Mutex::new(vec![(0, Instant::now()); threads]),
    });
    let mut running = Vec::new();
    for number in 0..threads {
        let (shared, options) = (Arc::clone(&shared), options.clone());
        running.push(thread::spawn(move || work(number, &shared, &options, first, began)));
    }
    while running.iter().any(|thread| !thread.is_finished()) {
        thread::sleep(Duration::from_millis(200));
        let hangs = shared.at.lock().iter().find(|(_, since)| since.elapsed() > SEED_TAKES_MAX).copied();
        if let Some((seed, _)) = hangs.filter(|_| running.iter().any(|thread| !thread.is_finished())) {
            // Its thread cannot be stopped; the process ends with the report.
            report.findings.push(format!("seed {seed} hangs"));
            break;
        }
    }
    for thread in running.into_iter().filter(thread::JoinHandle::is_finished) {
        thread.join().map_err(|_| anyhow::anyhow!("a thread of the simulation panicked"))??;
    }
    tell(&shared, report);
    Ok(())
}

fn seed_of(place: u64, first: u64) -> u64 {
    match usize::try_from(place).ok().and_then(|place| REGRESSIONS.get(place)) {
        Some((seed, _)) => *seed,
        None => first.wrapping_add(place - REGRESSIONS.len() as u64),
    }
}

fn work(number: usize, shared: &SeedRuns, options: &SimOptions, first: u64, began: Instant) -> anyhow::Result<()> {
    let alone = options.seeds == 1 && options.seconds.is_none();
    let skipped = if alone { REGRESSIONS.len() as u64 } else { 0 };
    let enough = |done: u64| match options.seconds {
        Some(seconds) => began.elapsed() >= Duration::from_secs(seconds),
        None => done >= options.seeds,
    };
    loop {
        let place = shared.next.fetch_add(1, Ordering::Relaxed);
        if enough(place) || shared.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let seed = seed_of(place + skipped, first);
        shared.at.lock()[number] = (seed, Instant::now());
        let outcome = simulate(seed, options.trace.is_some())?;
        let again = REPEATABLE && place.is_multiple_of(TWICE_ONE_IN);
        let digest = if again { simulate(seed, false)?.digest } else { outcome.digest };
        if let Some(path) = &options.trace {
            std::fs::write(path, &outcome.trace).with_context(|| format!("writing {}", path.display()))?;
        }
        shared.at.lock()[number] = (seed, Instant::now());
        shared.done.fetch_add(1, Ordering::Relaxed);
        let mut sum = shared.sum.lock();
        sum.entries += outcome.entries;
        sum.elections += outcome.elections;
        sum.acknowledged += outcome.acknowledged;
        sum.faults += outcome.faults;
        sum.twice += u64::from(again);
        let mut outcome = SimOutcome { trace: String::new(), ..outcome };
        if digest != outcome.digest {
            outcome.findings.push("run twice, it did not do the same".into());
        }
        if !outcome.findings.is_empty() {
            eprintln!("seed {seed}: {}", outcome.findings[0]);
            sum.failures.push(outcome);
            shared.stop.fetch_or(sum.failures.len() >= FAILURES_MAX, Ordering::Relaxed);
        }
    }
}

fn tell(shared: &SeedRuns, report: &mut Report) {
    let (sum, seeds) = (shared.sum.lock(), shared.done.load(Ordering::Relaxed));
    if let Some(first) = sum.failures.first() {
        report.replay = format!("chaos/simulate --seeds 1 --seed {}", first.seed);
    }
    for failure in &sum.failures {
        report.findings.extend(failure.findings.iter().map(|finding| format!("seed {}: {finding}", failure.seed)));
    }
    ["seeds", "entries", "terms", "writes acknowledged"].into_iter().for_each(|what| report.coverage.want(what, 1));
    if !REPEATABLE {
        report.notes.push(
            "a seed does not give the same run again in this build; chaos/simulate makes one where it does".into(),
        );
    }
    let counts = [
        ("seeds", seeds),
        ("entries", sum.entries as u64),
        ("terms", sum.elections as u64),
        ("writes acknowledged", sum.acknowledged as u64),
        ("faults", sum.faults as u64),
        ("run twice", sum.twice),
    ];
    counts.into_iter().for_each(|(what, count)| report.coverage.add(what, count));
    report.details.insert("repeatable".into(), REPEATABLE.into());
}
