//! assay-escapes: tries to leave the sandbox of code functions and to disturb others, on real servers.

mod act;
mod attempt;
mod canaries;
mod guide;
mod neighbour;
mod report;
mod run;
mod verdict;
mod world;

use std::process::ExitCode;

use clap::Parser;

use crate::attempt::AttemptList;
use crate::world::{Identity, Setup};

/// Exit code of a machine that cannot do it, as `.ci/run` expects it.
const CANNOT: u8 = 3;
/// Programs without which nothing is tried.
const PROGRAMS: [&str; 3] = ["bwrap", "node", "setpriv"];
const RUNS: [(&str, Setup); 4] = [
    ("root", Setup { identity: Identity::Root, is_reduced: false }),
    ("nobody", Setup { identity: Identity::Nobody, is_reduced: false }),
    ("reduced-root", Setup { identity: Identity::Root, is_reduced: true }),
    ("reduced-nobody", Setup { identity: Identity::Nobody, is_reduced: true }),
];

/// Tries to leave the sandbox of code functions and to disturb others, on real servers.
///
/// Fails if an attempt succeeds, if its answer does not name the limit or rule that held it, or if a reduced sandbox
/// holds more or less than the guide says. Needs root, because servers run as several users.
#[derive(Debug, Parser)]
#[command(name = "assay-escapes")]
struct Cli {
    /// Runs: root, nobody, reduced-root and reduced-nobody; all by default
    #[arg(long = "run", value_name = "NAME", value_parser = RUNS.map(|(name, _)| name))]
    runs: Vec<String>,
    /// Only attempts whose name has this text
    #[arg(long, default_value = "")]
    only: String,
}

fn main() -> ExitCode {
    tried(&Cli::parse()).unwrap_or_else(|why| {
        eprintln!("{why:#}");
        ExitCode::FAILURE
    })
}

/// Performs the runs, and returns the exit code.
fn tried(cli: &Cli) -> anyhow::Result<ExitCode> {
    let mut list = AttemptList::read()?;
    guide::check(&list.attempts)?;
    if let Some(missing) = missing() {
        println!("not possible on this machine: {missing}");
        return Ok(ExitCode::from(CANNOT));
    }
    list.attempts.retain(|attempt| attempt.name.contains(&cli.only));
    let mut faults = 0;
    for (name, setup) in RUNS {
        if cli.runs.is_empty() || cli.runs.iter().any(|wanted| wanted == name) {
            faults += report::print(&run::run(setup, &list)?);
        }
    }
    println!("\n{}", if faults == 0 { "everything held".to_owned() } else { format!("{faults} faults") });
    Ok(if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns what this machine lacks.
fn missing() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_ascii_whitespace().next()?.to_owned();
    if user != "0" {
        return Some("the servers of several users need root".to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has = |program: &&str| std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    let program = PROGRAMS.iter().find(|program| !has(program)).map(|program| format!("there is no {program}"));
    program.or_else(|| world::python().err().map(|why| why.to_string()))
}
