//! `releases`: cost of a program compared with an earlier one, for inserts and queries, both in turns in the same run.

use std::path::{Path, PathBuf};

use assay_bench::generate::Profile;
use clap::Args;

use crate::http::{self, ingest};
use crate::query::{self, Turns, geometric_mean};
use crate::report::{Report, Threshold, median};
use crate::{Common, ProgramArg, Scratch};

/// Upper bound of its slowdown against the earlier program.
const SLOWER_MAX: f64 = 1.03;
const CONNECTIONS: usize = 16;
const ROWS_PER_REQUEST: usize = 100;

#[derive(Debug, Args)]
pub struct ReleasesArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    program: ProgramArg,
    /// The program to compare with, as that of the last release
    #[arg(long, value_name = "FILE")]
    earlier: PathBuf,
    /// Queried spans, and as many documents of JSONBench's shape
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1000..))]
    rows: u64,
    /// Requests of each run of inserts
    #[arg(long, default_value_t = ingest::REQUESTS, value_parser = clap::value_parser!(u64).range(1..))]
    requests: u64,
    /// Runs of inserts, and turns at each question, of each program
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    pairs: u16,
}

pub fn run(args: ReleasesArgs) -> anyhow::Result<()> {
    let ReleasesArgs { common, program, earlier, rows, requests, pairs } = args;
    let (program, pairs, seed) = (http::program(program.program)?, usize::from(pairs), common.seed);
    let inserted = ingest::IngestOptions {
        program: program.clone(),
        connections: CONNECTIONS,
        projects: 1,
        rows_per_request: ROWS_PER_REQUEST,
        requests: Some(requests),
        seconds: None,
        merges: 0.0,
        profile: Profile::Even,
        pairs,
        seed,
    };
    let asked = query::QueryOptions {
        program: Some(program),
        rows,
        documents: rows,
        grown: None,
        sides: vec![query::Side::Assay],
        environment: None,
        kept: None,
        beside: false,
        seed,
    };
    let scratch = Scratch::within(&common.dir)?;
    let mut report = Report::new("releases");
    inserts(&mut report, &earlier, &inserted, scratch.path())?;
    let turns = query::in_turns(&earlier, &asked, pairs, scratch.path())?;
    for (question, turns) in &turns {
        report.figure(format!("{question}: later / earlier"), turns.ratio(), "");
    }
    let ratios: Vec<f64> = turns.values().map(Turns::ratio).collect();
    report.promised("time of a question, geometric mean", geometric_mean(&ratios), "", Threshold::AtMost(SLOWER_MAX));
    report.detail("questions", &turns)?;
    report.finish(common.json.as_deref())
}

fn inserts(report: &mut Report, earlier: &Path, later: &ingest::IngestOptions, dir: &Path) -> anyhow::Result<()> {
    let earlier = ingest::IngestOptions { program: earlier.to_owned(), ..later.clone() };
    let bodies = ingest::rendered(later);
    let (mut times, mut processors, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..later.pairs {
        let dir = dir.join(format!("inserts-{pair}"));
        let side = |options| ingest::alone(options, &bodies, &dir);
        let (earlier, later) = match pair % 2 {
            0 => {
                let earlier = side(&earlier)?;
                (earlier, side(later)?)
            }
            _ => {
                let later = side(later)?;
                (side(&earlier)?, later)
            }
        };
        let [before, after] = [&earlier, &later].map(ingest::HttpIngestRun::operations_per_second);
        eprintln!("inserts, pair {}: {before:.0} and {after:.0} rows/s, {:.3} times", pair + 1, after / before);
        times.push(before / after);
        processors.push(later.cpu_per_gb() / earlier.cpu_per_gb());
        runs.push([earlier, later]);
    }
    report.promised("time of an insert, median", median(times), "", Threshold::AtMost(SLOWER_MAX));
    report.figure("processor time of an insert, median", median(processors), "");
    report.detail("inserts", &runs)
}
