//! The program `assay`. Thin: reads the command line and hands over.

mod admin;
mod config;
mod doctor;
mod metrics;
mod serve;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::admin::AdminCommand;
use crate::config::{Config, ConfigError, Sources};
use crate::doctor::Report;

/// Assay keeps and questions what AI applications do: traces, experiments, datasets, prompts.
///
/// One command starts a node that is a whole product, with everything it keeps in one directory:
///
///     assay serve
///
/// The first start makes an organization and prints an API key, once. Point an SDK at the node:
///
///     export BRAINTRUST_APP_URL=http://127.0.0.1:8000 BRAINTRUST_API_URL=http://127.0.0.1:8000
///     export BRAINTRUST_API_KEY=sk-...
///
/// Settings come from one file, the environment and flags; `assay config` prints what they amount to, and every name.
/// To make more keys: `assay admin`. To look into a directory that a node refuses to open: `assay doctor`.
#[derive(Debug, Parser)]
#[command(name = "assay", version, arg_required_else_help = true, verbatim_doc_comment)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a node until it is told to stop
    ///
    /// Prints the address when it is ready, and on the first start an API key, on stdout; everything else goes to stderr.
    /// SIGTERM or SIGINT stops it: requests under way are finished, then the store is closed. A second signal, a crash
    /// or a power cut loses nothing that was acknowledged.
    ///
    /// Environment: ASSAY_API_KEY is taken as the first key instead of making one; every setting as ASSAY_<TABLE>_<NAME>.
    #[command(verbatim_doc_comment)]
    Serve(SettingsArgs),
    /// Print the settings that `serve` would run with, as a configuration file
    ///
    /// The later word wins: defaults, then the file, then the environment, then flags.
    #[command(verbatim_doc_comment)]
    Config(SettingsArgs),
    /// Make and list organizations, users and API keys
    ///
    /// Talks to the node that runs on the data directory, through a socket in it that only its owner may open; where none
    /// runs it opens the directory itself.
    #[command(verbatim_doc_comment)]
    Admin {
        /// The data directory
        #[arg(long, value_name = "DIR", default_value = "./assay-data", global = true)]
        data_dir: PathBuf,
        #[command(subcommand)]
        command: AdminCommand,
    },
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

#[derive(Debug, Args)]
struct SettingsArgs {
    /// A configuration file, as `assay config` prints it; also ASSAY_CONFIG
    #[arg(long, value_name = "FILE", env = "ASSAY_CONFIG")]
    config: Option<PathBuf>,
    /// Where to listen; port 0 lets the system choose [default: 127.0.0.1:8000]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// Where everything is kept [default: ./assay-data]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// Any setting, as http.public_url=https://assay.example; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
}

impl SettingsArgs {
    fn load(self) -> Result<Config, ConfigError> {
        let named = |name: &str, value: Option<String>| value.map(|value| format!("{name}={value}"));
        let listen = named("http.listen", self.listen);
        let data_dir = named("store.data_dir", self.data_dir);
        let flags = self.settings.into_iter().chain(listen).chain(data_dir).collect();
        config::load(&Sources { file: self.config, environment: Sources::environment(), flags })
    }
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Doctor { data_dir, json } => look(&data_dir, json),
        Command::Serve(settings) => told(settings.load().map_err(Into::into).and_then(serve::serve)),
        Command::Config(settings) => told(settings.load().map_err(Into::into).and_then(|config| show(&config))),
        Command::Admin { data_dir, command } => told(admin::run(&data_dir, command)),
    }
}

fn told(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("assay: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn show(config: &Config) -> anyhow::Result<()> {
    std::io::stdout().lock().write_all(config::printed(config)?.as_bytes())?;
    Ok(())
}

fn look(data_dir: &std::path::Path, json: bool) -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::WARN).init();
    let report = doctor::examine(data_dir);
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
