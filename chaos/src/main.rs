//! assay-chaos: breaks a store of its own making in many ways and says whether it held.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use assay_chaos::report::{Report, Verdict};
use assay_chaos::worker::{self, WorkerArgs};
use assay_chaos::{bit_flip, crash, disk_full, dump, http_crash, power_cut, sync_fails};
use clap::{Args, Parser, Subcommand};

/// Breaks a store of its own making and says whether it held: valid, invalid or unknown. Only valid exits with 0.
///
/// What needs something that this machine lacks (root, a program, the Python SDK) is not tried. Where the rest held the
/// verdict is "not covered", and the exit code is 0; with ASSAY_REQUIRE=all it is unknown, a failure.
#[derive(Debug, Parser)]
#[command(name = "assay-chaos", version)]
struct Cli {
    #[command(subcommand)]
    command: Storm,
}

#[derive(Debug, Subcommand)]
enum Storm {
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
    #[command(hide = true)]
    Worker(WorkerArgs),
    #[command(hide = true)]
    Dump {
        #[arg(long)]
        dir: PathBuf,
        /// An object and a version to read beside the newest: 3:1000192656880881099
        #[arg(long, value_parser = object_and_version)]
        at: Vec<(u8, u64)>,
    },
}

#[derive(Clone, Debug, Args)]
struct Common {
    /// Repeats the schedule of an earlier run; a fresh one if not given
    #[arg(long)]
    seed: Option<u64>,
    /// Where the report goes, as JSON
    #[arg(long)]
    report: Option<PathBuf>,
}

type Scenario = fn(u64, u32, &mut Report) -> anyhow::Result<Vec<PathBuf>>;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Storm::Crash { runs, common } => storm("crash", "--runs", runs, &common, crash::run),
        Storm::HttpCrash { runs, common } => storm("http-crash", "--runs", runs, &common, http_crash::run),
        Storm::PowerCut { runs, common } => storm("power-cut", "--runs", runs, &common, power_cut::run),
        Storm::BitFlip { flips, common } => storm("bit-flip", "--flips", flips, &common, bit_flip::run),
        Storm::DiskFull { runs, common } => storm("disk-full", "--runs", runs, &common, disk_full::run),
        Storm::SyncFails { runs, common } => storm("sync-fails", "--runs", runs, &common, sync_fails::run),
        Storm::Worker(args) => inside(worker::run(args)),
        Storm::Dump { dir, at } => inside(print_dump(dir, at)),
    };
    match done {
        Ok(code) => code,
        Err(why) => {
            eprintln!("{why:#}");
            ExitCode::from(2)
        }
    }
}

fn storm(name: &str, unit: &str, size: u32, common: &Common, scenario: Scenario) -> anyhow::Result<ExitCode> {
    let seed = common.seed.unwrap_or_else(rand::random);
    let mut report = Report::new(name, seed, &format!("{unit} {size}"));
    let kept = match scenario(seed, size, &mut report) {
        Ok(kept) => kept,
        Err(why) => {
            report.troubles.push(format!("{why:#}"));
            Vec::new()
        }
    };
    let verdict = report.finish(common.report.as_deref(), &kept)?;
    Ok(match verdict {
        Verdict::Valid | Verdict::NotCovered => ExitCode::SUCCESS,
        Verdict::Invalid | Verdict::Unknown => ExitCode::FAILURE,
    })
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
