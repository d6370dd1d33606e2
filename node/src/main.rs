//! The program `assay`. Thin: reads the command line and hands over.

mod doctor;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::doctor::Report;

/// Assay keeps and questions what AI applications do: traces, experiments, datasets, prompts.
///
/// Everything a node keeps is in one data directory. To look into one that no node is using, or that a node
/// refuses to open:
///
///     assay doctor --data-dir ./assay-data
#[derive(Debug, Parser)]
#[command(name = "assay", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check a data directory while no node runs on it; changes nothing
    ///
    /// Reads every byte: the log against its watermark, each shard's and the catalog's kept state, every segment with
    /// its sidecars, every blob, and whether the log goes on where the kept state ends. One line per finding:
    ///
    ///   ok              as it was written
    ///   ambiguous tail  a write that was under way when the node stopped is torn; nobody was told that it is durable,
    ///                   and the next start cuts it
    ///   damaged         something durable is wrong or missing, and what to do about it
    ///   not checked     it could not be read, and why
    ///
    /// Exit code: 0 all is well, 1 damage, 2 something could not be checked.
    #[command(verbatim_doc_comment)]
    Doctor {
        /// The data directory
        #[arg(long, value_name = "DIR", default_value = "./assay-data")]
        data_dir: PathBuf,
        /// Print the findings as one JSON object
        #[arg(long)]
        json: bool,
    },
}

fn main() -> ExitCode {
    let Command::Doctor { data_dir, json } = Cli::parse().command;
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::WARN).init();
    let report = doctor::examine(&data_dir);
    match print(&report, json) {
        Ok(()) => ExitCode::from(report.exit_code()),
        Err(error) => {
            eprintln!("the findings could not be printed: {error}");
            ExitCode::from(doctor::EXIT_NOT_CHECKED)
        }
    }
}

fn print(report: &Report, json: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, report)?;
        return writeln!(out);
    }
    for finding in &report.findings {
        writeln!(out, "{finding}")?;
    }
    writeln!(out, "{}", report.summary())
}
