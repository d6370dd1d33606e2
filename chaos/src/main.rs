//! assay-chaos: breaks a store of its own in many ways and reports whether it held.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use assay_chaos::report::{Report, Verdict};
use assay_chaos::single_node::worker::{self, WorkerArgs};
use assay_chaos::single_node::{bit_flip, crash, disk_full, dump, power_cut, sync_fails};
use assay_chaos::{cluster, http_crash, sabotage, sim};
use assay_storage_model::sabotage as told;
use clap::{Args, Parser, Subcommand};
use cluster::Kind;
use tokio::signal::unix::{SignalKind, signal};

/// Breaks a store of its own and reports whether it held: valid, invalid or unknown. Only valid exits with 0.
///
/// Parts that need something this machine lacks (root, a program, the Python SDK) are skipped. If the rest held, the
/// verdict is "not covered", and the exit code is 0; with ASSAY_REQUIRE=all it is unknown, a failure.
#[derive(Debug, Parser)]
#[command(name = "assay-chaos", version = version())]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// kill -9 while writing, sealing, compacting and recovering
    Crash {
        /// Kills
        #[arg(long, default_value_t = 10)]
        runs: u32,
        #[command(flatten)]
        common: Common,
    },
    /// kill -9 of the whole program under load of the Python SDK and plain clients (needs python3 and the package index)
    HttpCrash {
        /// Kills
        #[arg(long, default_value_t = 10)]
        runs: u32,
        #[command(flatten)]
        common: Common,
    },
    /// Power cuts on a loop-mounted ext4 (needs root, xfs_io)
    PowerCut {
        /// Cuts
        #[arg(long, default_value_t = 6)]
        runs: u32,
        #[command(flatten)]
        common: Common,
    },
    /// Single flipped bits in every kind of file
    BitFlip {
        /// Flips
        #[arg(long, default_value_t = 50)]
        flips: u32,
        /// All of them after a kill instead of mostly after a clean stop
        #[arg(long)]
        after_kill: bool,
        #[command(flatten)]
        common: Common,
    },
    /// A disk that fills and empties (needs root)
    DiskFull {
        /// Times it is filled
        #[arg(long, default_value_t = 4)]
        runs: u32,
        #[command(flatten)]
        common: Common,
    },
    /// Syncs and writes that fail (needs strace)
    SyncFails {
        /// Processes in which one call fails
        #[arg(long, default_value_t = 12)]
        runs: u32,
        #[command(flatten)]
        common: Common,
    },
    /// A cluster of real processes under attack: kills, pauses, partitions, power cuts, full disks, changes of members
    Run(RunArgs),
    /// State that only an old leader has: a fixed scenario on a cluster of three (needs root, iptables)
    OldLeader(Common),
    /// Three nodes with a relay between them that delays every byte, and clients at all of them: a story
    FarApart {
        /// Seconds that clients work
        #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(10..=43_200))]
        seconds: u64,
        /// Delay from one node to another; half of a round trip
        #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=750))]
        delay_ms: u64,
        #[command(flatten)]
        common: Common,
    },
    /// Online scoring on a cluster of three under kills, pauses and partitions: a story
    Scoring {
        /// Seconds with faults
        #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(20..=43_200))]
        seconds: u64,
        /// Spans that clients log
        #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u32).range(1000..=1_000_000))]
        spans: u32,
        #[command(flatten)]
        common: Common,
    },
    /// A cluster of three goes over from an earlier program to this one, node after node, under load: a story
    Upgrade {
        /// The earlier program; the later one is that of this build, or the one that ASSAY_BIN names
        #[arg(long)]
        from: PathBuf,
        /// Start the nodes with the earlier program again afterwards, one after the other
        #[arg(long)]
        back: bool,
        /// Seconds that clients work; the last 25 seconds or more are without restarts
        #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u64).range(40..=43_200))]
        seconds: u64,
        #[command(flatten)]
        common: Common,
    },
    /// Holds what a kept run left behind against the checkers once more
    Check {
        /// The directory that the run named
        dir: PathBuf,
        /// File for the report, as JSON
        #[arg(long)]
        report: Option<PathBuf>,
    },
    /// Whole clusters in one thread each, on simulated time, network and disks, for the given number of seeds
    Sim(sim::SimOptions),
    /// Deliberate faults of the product, each of which a short run has to see (debug builds have them)
    Sabotage {
        /// Only these faults, such as skip-fsync,stale-read
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
        /// File for the report, as JSON
        #[arg(long)]
        report: Option<PathBuf>,
    },
    #[command(hide = true)]
    Worker(WorkerArgs),
    #[command(hide = true)]
    Dump {
        #[arg(long)]
        dir: PathBuf,
        /// An object and a version to read besides the newest: 3:1000192656880881099
        #[arg(long, value_parser = object_and_version)]
        at: Vec<(u8, u64)>,
    },
}

#[derive(Clone, Debug, Args)]
struct RunArgs {
    /// Seconds that clients work; the last 25 seconds are without faults
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u64).range(40..=43_200))]
    seconds: u64,
    /// Nodes of the cluster; one is a node alone
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=5))]
    nodes: u8,
    /// Only these faults, such as kill,pause,power-cut; by default all that this machine supports
    #[arg(long, value_delimiter = ',')]
    faults: Vec<Kind>,
    /// Keep history, logs and data also of a run that held
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Debug, Args)]
struct Common {
    /// Repeats the schedule of an earlier run; a fresh one if not given
    #[arg(long)]
    seed: Option<u64>,
    /// File for the report, as JSON
    #[arg(long)]
    report: Option<PathBuf>,
}

type ScenarioRun = fn(u64, u32, &mut Report) -> anyhow::Result<Vec<PathBuf>>;

fn version() -> &'static str {
    told::version(env!("CARGO_PKG_VERSION"))
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    // Before anything is tried: a word that names no fault ends the program here.
    if let Some(confession) =
        told::confession().filter(|_| !matches!(command, Command::Worker(_) | Command::Dump { .. }))
    {
        eprintln!("{confession}");
    }
    let done = match command {
        Command::Crash { runs, common } => storm("crash", "--runs", runs, &common, crash::run),
        Command::HttpCrash { runs, common } => storm("http-crash", "--runs", runs, &common, http_crash::run),
        Command::PowerCut { runs, common } => storm("power-cut", "--runs", runs, &common, power_cut::run),
        Command::BitFlip { flips, after_kill: false, common } => {
            storm("bit-flip", "--flips", flips, &common, bit_flip::run)
        }
        Command::BitFlip { flips, after_kill: true, common } => {
            storm("bit-flip", "--after-kill --flips", flips, &common, bit_flip::run_after_kill)
        }
        Command::DiskFull { runs, common } => storm("disk-full", "--runs", runs, &common, disk_full::run),
        Command::SyncFails { runs, common } => storm("sync-fails", "--runs", runs, &common, sync_fails::run),
        Command::Run(args) => run_cluster(args),
        Command::OldLeader(common) => tell("old-leader", "", &common, cluster::old_leader::run),
        Command::FarApart { seconds, delay_ms, common } => {
            let words = format!("--seconds {seconds} --delay-ms {delay_ms}");
            tell("far-apart", &words, &common, |seed, interrupted, report| {
                cluster::far_apart::run(
                    cluster::far_apart::FarApartOptions { seed, seconds, delay_ms },
                    interrupted,
                    report,
                )
            })
        }
        Command::Scoring { seconds, spans, common } => {
            let words = format!("--seconds {seconds} --spans {spans}");
            tell("scoring", &words, &common, |seed, interrupted, report| {
                cluster::scoring::run(cluster::scoring::ScoringOptions { seed, seconds, spans }, interrupted, report)
            })
        }
        Command::Upgrade { from, back, seconds, common } => {
            let direction = if back { " --back" } else { "" };
            let words = format!("--from {} --seconds {seconds}{direction}", from.display());
            tell("upgrade", &words, &common, |seed, interrupted, report| {
                cluster::upgrade::run(
                    &cluster::upgrade::UpgradeOptions { seed, seconds, from, back },
                    interrupted,
                    report,
                )
            })
        }
        Command::Check { dir, report } => check_again(&dir, report.as_deref()),
        Command::Sim(options) => simulate(&options),
        Command::Sabotage { only, report } => on_trial(&only, report.as_deref()),
        Command::Worker(args) => inside(worker::run(args)),
        Command::Dump { dir, at } => inside(print_dump(dir, at)),
    };
    match done {
        Ok(code) => code,
        Err(why) => {
            eprintln!("{why:#}");
            ExitCode::from(2)
        }
    }
}

fn storm(name: &str, unit: &str, size: u32, common: &Common, scenario: ScenarioRun) -> anyhow::Result<ExitCode> {
    let seed = common.seed.unwrap_or_else(rand::random);
    let mut report = Report::new(name, seed, &format!("{unit} {size}"));
    let kept = match scenario(seed, size, &mut report) {
        Ok(kept) => kept,
        Err(why) => {
            report.troubles.push(format!("{why:#}"));
            Vec::new()
        }
    };
    finish(report, common.report.as_deref(), &kept)
}

fn finish(report: Report, file: Option<&Path>, kept: &[PathBuf]) -> anyhow::Result<ExitCode> {
    Ok(match report.finish(file, kept)? {
        Verdict::Valid | Verdict::NotCovered => ExitCode::SUCCESS,
        Verdict::Invalid | Verdict::Unknown => ExitCode::FAILURE,
    })
}

fn run_cluster(args: RunArgs) -> anyhow::Result<ExitCode> {
    let RunArgs { seconds, nodes, faults, keep, common } = args;
    let seed = common.seed.unwrap_or_else(rand::random);
    let options = cluster::ClusterRunOptions { seed, seconds, nodes, faults, keep };
    let mut report = Report::new("run", seed, &options.words());
    let interrupted = interrupted_by_signals()?;
    let kept = cluster::run(&options, interrupted, &mut report).unwrap_or_else(|why| {
        report.troubles.push(format!("{why:#}"));
        Vec::new()
    });
    finish(report, common.report.as_deref(), &kept)
}

fn simulate(options: &sim::SimOptions) -> anyhow::Result<ExitCode> {
    let first = options.seed.unwrap_or_else(rand::random);
    let mut report = Report::new("sim", first, "--seeds 1");
    if let Err(why) = sim::run(options, first, &mut report) {
        report.troubles.push(format!("{why:#}"));
    }
    finish(report, options.report.as_deref(), &[])
}

/// Runs a scenario and reports its result.
fn tell(
    name: &str,
    words: &str,
    common: &Common,
    story: impl FnOnce(u64, &AtomicBool, &mut Report) -> anyhow::Result<Vec<PathBuf>>,
) -> anyhow::Result<ExitCode> {
    let seed = common.seed.unwrap_or_else(rand::random);
    let mut report = Report::new(name, seed, words);
    let interrupted = interrupted_by_signals()?;
    let kept = story(seed, interrupted, &mut report).unwrap_or_else(|why| {
        report.troubles.push(format!("{why:#}"));
        Vec::new()
    });
    finish(report, common.report.as_deref(), &kept)
}

fn check_again(dir: &Path, file: Option<&Path>) -> anyhow::Result<ExitCode> {
    let mut report = Report::new("check", 0, &dir.to_string_lossy());
    if let Err(why) = cluster::check_again(dir, &mut report) {
        report.troubles.push(format!("{why:#}"));
    }
    finish(report, file, &[])
}

fn on_trial(only: &[String], file: Option<&Path>) -> anyhow::Result<ExitCode> {
    let words = if only.is_empty() { String::new() } else { format!("--only {}", only.join(",")) };
    let mut report = Report::new("sabotage", 0, &words);
    report.replay = format!("assay-chaos sabotage {words}");
    let kept = sabotage::run(only, &mut report)?;
    finish(report, file, &kept)
}

/// Set by SIGINT, SIGTERM and SIGHUP: namespaces, mounts and processes are taken down before this process ends.
fn interrupted_by_signals() -> anyhow::Result<&'static AtomicBool> {
    static INTERRUPTED: AtomicBool = AtomicBool::new(false);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting a runtime")?;
    let listening = {
        let _inside = runtime.enter();
        let listen = |kind| signal(kind).context("listening for signals");
        [listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?, listen(SignalKind::hangup())?]
    };
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let [mut interrupt, mut terminate, mut hangup] = listening;
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
                INTERRUPTED.store(true, Ordering::Relaxed);
            }
        });
    })?;
    Ok(&INTERRUPTED)
}

/// The hidden commands run the store in this process.
fn inside(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<ExitCode> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::WARN).with_ansi(false).init();
    assay_cluster::install_abort_hook();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.context("starting a runtime")?.block_on(work)?;
    Ok(ExitCode::SUCCESS)
}

async fn print_dump(dir: PathBuf, at: Vec<(u8, u64)>) -> anyhow::Result<()> {
    // Not locked: the future must be able to move between threads.
    let mut out = BufWriter::new(std::io::stdout());
    dump::print(&dir, &at, &mut out).await?;
    out.flush().context("writing the dump")
}

fn object_and_version(text: &str) -> Result<(u8, u64), String> {
    let parts = text.split_once(':').and_then(|(object, version)| Some((object.parse().ok()?, version.parse().ok()?)));
    parts.ok_or_else(|| format!("`{text}` is not of the form 3:1000192656880881099"))
}
