//! `assay-bench`: cost and speed of the store and the server. Progress on stderr, figures as a table on stdout.

mod client_threads;
mod cluster;
mod functions;
mod gateway;
mod http;
mod process;
mod python;
mod query;
mod release_comparison;
mod report;
mod store;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use assay_bench::generate::Profile;
use clap::{Args, Parser, Subcommand};
use serde::de::DeserializeOwned;

#[derive(Debug, Parser)]
#[command(about = "Measures Assay with a seeded stream of AI traces")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Rows a second made durable, against raft-engine alone fed the same bytes in the same run
    Store(StoreArgs),
    /// Check that sealing and compacting keep up with writing
    StoreSoak(SoakArgs),
    /// Many rows: memory, throughput at the end, restart after a kill, lookups
    Scale(ScaleArgs),
    /// The physical limit: 1 MiB appends to a bare file, each synced
    Disk(DiskArgs),
    /// Rows a second acknowledged over HTTP by `assay serve`, against `bare` fed the same bytes in the same run
    Ingest(IngestArgs),
    /// Pages of traces and single traces fetched over HTTP
    Fetch(ServerArgs),
    /// Time until `assay serve` is ready after a kill
    Restart(ServerArgs),
    /// Lists, lookups and creates among many records
    Catalog(CatalogArgs),
    /// Attachments sent and read back, against a bare file
    Files(FilesArgs),
    /// Spans of OpenTelemetry, as its exporters send them
    Exports(ExportsArgs),
    /// `assay serve` under four times the load it takes from SDKs, and the effect on light clients
    Overload(OverloadArgs),
    /// Questions about traces, against DuckDB and chDB with the same rows in the same run
    Query(QueryArgs),
    /// Inserts and questions, against an earlier program in turns
    Releases(release_comparison::ReleasesArgs),
    #[command(flatten)]
    Cluster(cluster::command::ClusterCommand),
    #[command(flatten)]
    Gateway(gateway::command::GatewayCommand),
    #[command(flatten)]
    Functions(functions::command::FunctionsCommand),
    /// The bare pipeline: reads, parses, appends to one file, syncs it once for all who wait. Serves until interrupted
    Bare(BareArgs),
    #[command(hide = true)]
    SideRaftEngine { task: String },
    #[command(hide = true)]
    SideStore { task: String },
    #[command(hide = true)]
    ScaleLoad { task: String },
    #[command(hide = true)]
    ScaleRead { task: String },
}

#[derive(Debug, Args)]
struct Common {
    /// Also write the figures and all their data to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Directory to write to; a new directory in it is used and removed afterwards
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// The same seed gives the same rows
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Args)]
struct StoreArgs {
    #[command(flatten)]
    common: Common,
    /// Bytes of log entries per run, as 1GiB, 512MiB or a number
    #[arg(long, default_value = "2GiB", value_parser = bytes_of)]
    bytes: u64,
    #[arg(long, default_value_t = 4)]
    threads: usize,
    /// Share of the spans that are written in two steps
    #[arg(long, default_value_t = 0.0, value_parser = share_of)]
    merges: f64,
    /// even: rows of 2 KB; mixed: log-normal with that mean, up to 1 MB
    #[arg(long, default_value = "even")]
    profile: Profile,
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

#[derive(Debug, Args)]
struct SoakArgs {
    #[command(flatten)]
    common: Common,
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// MB a second to write; as fast as it goes if not given
    #[arg(long, value_name = "MBPS")]
    rate: Option<f64>,
    #[arg(long, default_value_t = 4)]
    threads: usize,
    #[arg(long, default_value_t = 0.5, value_parser = share_of)]
    merges: f64,
    #[arg(long, default_value = "even")]
    profile: Profile,
}

#[derive(Debug, Args)]
struct ScaleArgs {
    #[command(flatten)]
    common: Common,
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    #[arg(long, default_value_t = 0.0, value_parser = share_of)]
    merges: f64,
    #[arg(long, default_value_t = 4)]
    threads: usize,
}

#[derive(Debug, Args)]
struct DiskArgs {
    #[command(flatten)]
    common: Common,
    #[arg(long, default_value = "512MiB", value_parser = bytes_of)]
    bytes: u64,
}

#[derive(Debug, Args)]
struct IngestArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    program: ProgramArg,
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    connections: u16,
    /// New projects that the connections write to in turn
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    projects: u16,
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..))]
    rows_per_request: u16,
    /// Requests of each run; 3000 if neither this nor --seconds is given
    #[arg(long)]
    requests: Option<u64>,
    /// Ends each run after this time, or when its bodies (2 GiB without --requests) are sent
    #[arg(long)]
    seconds: Option<u64>,
    /// Share of the spans that are written in two steps
    #[arg(long, default_value_t = 0.0, value_parser = share_of)]
    merges: f64,
    /// even: rows of 2 KB; mixed: log-normal with that mean, up to 1 MB
    #[arg(long, default_value = "even")]
    profile: Profile,
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// More than one: a cluster on this machine, against one node
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=9))]
    nodes: u8,
}

#[derive(Debug, Args)]
struct ProgramArg {
    /// The program `assay`; by default the one beside this program
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct ServerArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    program: ProgramArg,
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Connections that load the rows; one reads
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    connections: u16,
}

#[derive(Debug, Args)]
struct CatalogArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    program: ProgramArg,
    /// And twice as many records of other kinds
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    experiments: u32,
    /// Connections that make the records; one reads
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    connections: u16,
}

#[derive(Debug, Args)]
struct FilesArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    program: ProgramArg,
    /// Size of a large file
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=256))]
    mib: u16,
}

#[derive(Debug, Args)]
struct ExportsArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    program: ProgramArg,
    #[arg(long, default_value_t = 400_000, value_parser = clap::value_parser!(u32).range(1..))]
    spans: u32,
    /// Exporters that send at the same time
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    connections: u16,
}

#[derive(Debug, Args)]
struct OverloadArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    program: ProgramArg,
    /// SDK processes that offer more than it takes
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    processes: u16,
    /// Their common buffer, as 2GiB, 512MiB or a number
    #[arg(long, default_value = "2GiB", value_parser = bytes_of)]
    buffer: u64,
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..))]
    rows_per_request: u16,
    /// Seconds of the offered load
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

#[derive(Debug, Args)]
struct QueryArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    program: ProgramArg,
    /// Spans
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1000..))]
    rows: u64,
    /// Documents of JSONBench's shape; as many as spans if not given
    #[arg(long)]
    documents: Option<u64>,
    /// Then ours alone with so many spans, and no documents
    #[arg(long, value_name = "ROWS")]
    grown: Option<u64>,
    /// Folder in which our rows stay loaded; an existing one is queried again
    #[arg(long, value_name = "FOLDER")]
    kept: Option<PathBuf>,
    /// Queries ours once more while rows come in at half of the loading rate; a kept folder then has those rows too
    #[arg(long)]
    beside: bool,
    /// Measured sides
    #[arg(long, value_delimiter = ',', default_value = "assay,duckdb,chdb")]
    sides: Vec<query::Side>,
    /// Python environment of the others, made if missing; by default beside this program
    #[arg(long, value_name = "FOLDER")]
    environment: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct BareArgs {
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Directory of the file, which stays there
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Threads that serve; as many as processors if not given
    #[arg(long)]
    workers: Option<usize>,
}

/// A directory of this process alone, removed when it goes, unless it is to be kept.
#[derive(Debug)]
struct Scratch {
    path: PathBuf,
    keep: bool,
}

impl Scratch {
    fn within(dir: &Path) -> anyhow::Result<Scratch> {
        if cfg!(debug_assertions) {
            eprintln!("this is a debug build: its figures say nothing");
        }
        let path = dir.join(format!("assay-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
        Ok(Scratch { path: path.canonicalize()?, keep: false })
    }

    fn keep(&mut self) {
        eprintln!("{} is left behind in the end, as it was asked", self.path.display());
        self.keep = true;
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            eprintln!("{} is left behind: {error}", self.path.display());
        }
    }
}

fn bytes_of(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 7] = [
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("KB", 1000),
        ("", 1),
    ];
    let (digits, unit) = UNITS
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))
        .ok_or_else(|| format!("`{text}` is no size"))?;
    let number: u64 =
        digits.trim().parse().map_err(|_| format!("`{text}` is no size: use 1GiB, 512MiB or a number"))?;
    number.checked_mul(unit).ok_or_else(|| format!("`{text}` is too large"))
}

fn share_of(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(format!("{share} is no share: use 0 to 1")) }
}

fn task_of<T: DeserializeOwned>(text: &str) -> anyhow::Result<T> {
    serde_json::from_str(text).context("a part's task")
}

fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into()))
        .with_writer(std::io::stderr)
        .init();
    // As in the product: a panic on a thread of the store ends the process and does not leave a half-living one.
    assay_cluster::install_abort_hook();
    match Cli::parse().command {
        Command::Store(args) => run_store(&args),
        Command::StoreSoak(args) => run_soak(&args),
        Command::Scale(args) => run_scale(&args),
        Command::Disk(args) => run_disk(&args),
        Command::Ingest(args) => run_ingest(args),
        Command::Fetch(args) => run_on_server(args, http::fetch::run),
        Command::Restart(args) => run_on_server(args, http::restart::run),
        Command::Catalog(args) => run_catalog(args),
        Command::Files(args) => run_files(args),
        Command::Exports(args) => run_exports(args),
        Command::Overload(args) => run_overload(args),
        Command::Query(args) => run_query(args),
        Command::Releases(args) => release_comparison::run(args),
        Command::Cluster(command) => cluster::command::run(command),
        Command::Gateway(command) => gateway::command::run(command),
        Command::Functions(command) => functions::command::run(command),
        Command::Bare(args) => http::bare_server::run(&http::bare_server::BareServerOptions {
            listen: args.listen,
            dir: args.dir,
            workers: args.workers,
        }),
        Command::SideRaftEngine { task } => process::say(&store::peer::run(&task_of(&task)?)?),
        Command::SideStore { task } => process::say(&store::assay::run(&task_of(&task)?)?),
        Command::ScaleLoad { task } => store::scale::load::run(&task_of(&task)?),
        Command::ScaleRead { task } => process::say(&store::scale::read::run(&task_of(&task)?)?),
    }
}

fn run_store(args: &StoreArgs) -> anyhow::Result<()> {
    let scratch = Scratch::within(&args.common.dir)?;
    let options = store::StoreOptions {
        bytes: args.bytes,
        threads: args.threads,
        merges: args.merges,
        profile: args.profile,
        runs: args.runs,
        seed: args.common.seed,
    };
    store::run(&options, scratch.path(), args.common.json.as_deref())
}

fn run_soak(args: &SoakArgs) -> anyhow::Result<()> {
    if args.rate.is_some_and(|rate| rate <= 0.0 || !rate.is_finite()) {
        bail!("--rate is MB a second, above 0");
    }
    let scratch = Scratch::within(&args.common.dir)?;
    let options = store::soak::SoakOptions {
        seconds: args.seconds,
        rate_bytes_per_second: args.rate.map(|rate| rate * 1e6),
        threads: args.threads,
        merges: args.merges,
        profile: args.profile,
        seed: args.common.seed,
    };
    store::soak::run(&options, scratch.path(), args.common.json.as_deref())
}

fn run_scale(args: &ScaleArgs) -> anyhow::Result<()> {
    let scratch = Scratch::within(&args.common.dir)?;
    let task = store::scale::ScaleTask {
        dir: scratch.path().to_owned(),
        rows: args.rows,
        merges: args.merges,
        seed: args.common.seed,
        lanes: client_threads::lanes(args.threads),
        objects: Vec::new(),
    };
    store::scale::run(task, args.common.json.as_deref())
}

fn run_disk(args: &DiskArgs) -> anyhow::Result<()> {
    let scratch = Scratch::within(&args.common.dir)?;
    let limit = store::disk_limits::measure(scratch.path(), args.bytes)?;
    let mut report = report::Report::new("disk");
    report.figure("1 MiB appends + fdatasync", limit.mb_per_second, "MB/s");
    report.figure("an append, p50", limit.append_ms_p50, "ms");
    report.figure("an append, p99", limit.append_ms_p99, "ms");
    report.finish(args.common.json.as_deref())
}

fn run_ingest(args: IngestArgs) -> anyhow::Result<()> {
    let options = http::ingest::IngestOptions {
        program: http::program(args.program.program)?,
        connections: args.connections.into(),
        projects: args.projects.into(),
        rows_per_request: args.rows_per_request.into(),
        requests: args.requests,
        seconds: args.seconds,
        merges: args.merges,
        profile: args.profile,
        pairs: args.pairs,
        seed: args.common.seed,
    };
    let scratch = Scratch::within(&args.common.dir)?;
    match args.nodes {
        1 => http::ingest::run(&options, scratch.path(), args.common.json.as_deref()),
        nodes => cluster::ingest::run(&options, nodes.into(), scratch.path(), args.common.json.as_deref()),
    }
}

fn run_catalog(args: CatalogArgs) -> anyhow::Result<()> {
    let options = http::catalog::CatalogOptions {
        program: http::program(args.program.program)?,
        experiments: args.experiments as usize,
        connections: args.connections.into(),
        seed: args.common.seed,
    };
    let scratch = Scratch::within(&args.common.dir)?;
    http::catalog::run(&options, scratch.path(), args.common.json.as_deref())
}

fn run_files(args: FilesArgs) -> anyhow::Result<()> {
    let options = http::files::FileOptions {
        program: http::program(args.program.program)?,
        large_bytes: usize::from(args.mib) << 20,
        seed: args.common.seed,
    };
    let scratch = Scratch::within(&args.common.dir)?;
    http::files::run(&options, scratch.path(), args.common.json.as_deref())
}

fn run_exports(args: ExportsArgs) -> anyhow::Result<()> {
    let options = http::exports::ExportOptions {
        program: http::program(args.program.program)?,
        spans: args.spans as usize,
        connections: args.connections.into(),
        seed: args.common.seed,
    };
    let scratch = Scratch::within(&args.common.dir)?;
    http::exports::run(&options, scratch.path(), args.common.json.as_deref())
}

fn run_overload(args: OverloadArgs) -> anyhow::Result<()> {
    let options = http::overload::OverloadOptions {
        program: http::program(args.program.program)?,
        processes: args.processes.into(),
        rows_per_request: args.rows_per_request.into(),
        buffer_bytes: args.buffer,
        seconds: args.seconds,
        seed: args.common.seed,
    };
    let scratch = Scratch::within(&args.common.dir)?;
    http::overload::run(&options, scratch.path(), args.common.json.as_deref())
}

fn run_query(args: QueryArgs) -> anyhow::Result<()> {
    let has_ours = args.sides.contains(&query::Side::Assay);
    let options = query::QueryOptions {
        program: has_ours.then(|| http::program(args.program.program)).transpose()?,
        rows: args.rows,
        documents: args.documents.unwrap_or(args.rows),
        grown: args.grown.filter(|_| has_ours),
        sides: args.sides,
        environment: args.environment,
        kept: args.kept,
        beside: args.beside,
        seed: args.common.seed,
    };
    let scratch = Scratch::within(&args.common.dir)?;
    query::run(&options, scratch.path(), args.common.json.as_deref())
}

type OnServer = fn(&http::row_loader::RowLoaderOptions, &Path, Option<&Path>) -> anyhow::Result<()>;

fn run_on_server(args: ServerArgs, command: OnServer) -> anyhow::Result<()> {
    let options = http::row_loader::RowLoaderOptions {
        program: http::program(args.program.program)?,
        rows: args.rows,
        connections: args.connections.into(),
        seed: args.common.seed,
    };
    let scratch = Scratch::within(&args.common.dir)?;
    command(&options, scratch.path(), args.common.json.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(bytes_of("1GiB"), Ok(1 << 30));
        assert_eq!(bytes_of("20 MB"), Ok(20_000_000));
        assert_eq!(bytes_of("4096"), Ok(4096));
        assert!(bytes_of("much").is_err() && bytes_of("99999999999GiB").is_err());
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
        assert!(Cli::try_parse_from(["assay-bench", "store", "--merges", "1.5"]).is_err());
        assert!(Cli::try_parse_from(["assay-bench", "ingest", "--connections", "0"]).is_err());
        assert!(Cli::try_parse_from(["assay-bench", "bare", "--listen", "nowhere"]).is_err());
    }
}
