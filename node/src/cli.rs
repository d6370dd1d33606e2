//! The command line of `assay`: arguments, and the module of each command.

mod admin;
mod cluster;
mod dev;
mod doctor;
mod listener_client;
mod output;
mod transfer;

use std::path::PathBuf;
use std::process::ExitCode;

use assay_storage_model::sabotage;
use clap::{Args, Parser, Subcommand};
use cluster::ClusterArgs;
use dev::DevArgs;
use doctor::Report;
use output::ReaderGone;

use crate::admin_api::requests::AdminCommand;
use crate::config::{self, Config, ConfigError, Sources};
use crate::process::hardening;
use crate::serve;

/// Names the configuration file where no flag does.
const FILE_VARIABLE: &str = "ASSAY_CONFIG";

/// Stores traces, experiments, datasets and prompts of AI applications, and answers queries about them.
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
/// When a key is lost, make another: assay admin create-key NAME --organization default --user owner@localhost
/// Settings come from one file, the environment and flags; `assay config` prints what they amount to, and every name.
/// To make more keys: `assay admin`. To look into a directory that a node refuses to open: `assay doctor`.
#[derive(Debug, Parser)]
#[command(name = "assay", version = version(), arg_required_else_help = true, verbatim_doc_comment)]
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
    /// The first start also makes the key that secrets are kept under, `master.key` in the data directory: keep a copy of it
    /// elsewhere. secrets.master_key_file names another.
    ///
    /// There are more settings than flags: `assay config` prints them all, and --set takes any of them. To have another
    /// port: --port 9000. To serve other machines: --listen 0.0.0.0:8000.
    ///
    /// Environment: ASSAY_API_KEY is taken as the first key instead of making one, ASSAY_ADMIN_TOKEN as the token of
    /// administrators, ASSAY_MASTER_KEY as the key that secrets are kept under; every setting as ASSAY_<TABLE>_<NAME>. A variable that is empty counts as not set.
    #[command(verbatim_doc_comment)]
    Serve(SettingsArgs),
    /// Print the settings that `serve` would run with, as a configuration file
    ///
    /// The later word wins: defaults, then the file, then the environment, then flags. A variable of the environment that
    /// is empty counts as not set.
    #[command(verbatim_doc_comment)]
    Config(SettingsArgs),
    /// Make several nodes into one cluster, and run it
    ///
    /// The first machine founds it, the others join with a token each, and every one is then started as any node is:
    ///
    ///     first machine    assay cluster init --peer-address 10.0.0.1:7400
    ///                      assay serve --peer-address 10.0.0.1:7400 --listen 10.0.0.1:8000
    ///                      assay cluster token                  (one line for each node that is to join)
    ///     other machines   assay cluster join TOKEN --peer-address 10.0.0.2:7400
    ///                      assay serve --peer-address 10.0.0.2:7400 --listen 10.0.0.2:8000
    ///     any machine      assay cluster status --wait
    ///
    /// With --peer-address a start on a directory without data is an error and founds no second cluster: a disk that is
    /// not mounted is noticed.
    ///
    /// From three nodes on every shard has three replicas, and any one node may fail. Any node answers any request. Nodes
    /// speak to each other over TLS with certificates that the cluster makes itself.
    ///
    ///     planned stop     assay cluster drain 2, stop and start it, assay cluster undrain 2
    ///     lost machine     join a new one, assay cluster replace 2 4
    ///     one too many     assay cluster remove 4, assay cluster status --wait, stop it
    ///     majority gone    assay cluster recover on a node that is left, and what it says
    ///
    /// A running node is asked through a socket in its data directory. From elsewhere it is asked through its
    /// administrators' listener, which it has when it is started with `--set admin.listen=127.0.0.1:8001`; on another
    /// address than this machine's own that needs certificates (admin.tls). Callers show the token that the node keeps in
    /// the file admin.token in its data directory, or was given (ASSAY_ADMIN_TOKEN, admin.token_file):
    ///
    ///     assay cluster status --admin http://127.0.0.1:8001 --admin-token-file FILE
    ///     curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8001/cluster/status
    ///     curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8001/cluster/drain -d '{"node": 2}'
    ///
    /// There all but init, join and recover is asked for by POST /cluster/<operation>; rebalance says a line whenever
    /// there is something to say, and its last line is the status.
    #[command(verbatim_doc_comment)]
    Cluster(ClusterArgs),
    /// Run a cluster of several nodes on this machine, to try it out
    ///
    /// Each node is a process of its own on a directory of its own; what they say comes out here. Ctrl-C stops them.
    #[command(verbatim_doc_comment)]
    Dev(DevArgs),
    /// Make and list organizations, users, service accounts, API keys and service tokens; move an organization; change the master key and the secrets of the cluster
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

#[derive(Debug, Default, Args)]
struct SettingsArgs {
    /// A configuration file, as `assay config` prints it; also ASSAY_CONFIG
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where to listen; port 0 lets the system choose [default: 127.0.0.1:8000]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// The port to listen on, where the address stays; --listen says both
    #[arg(long, value_name = "PORT", conflicts_with = "listen")]
    port: Option<u16>,
    /// Where everything is kept [default: ./assay-data]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// Where other nodes reach this one. It is kept; said again, it makes a directory without data an error
    #[arg(long, value_name = "HOST:PORT")]
    peer_address: Option<String>,
    /// Any setting, as http.public_url=https://assay.example; may be repeated. `assay config` prints all of them
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
}

impl SettingsArgs {
    fn load(self) -> Result<Config, ConfigError> {
        let named = |name: &str, value: Option<String>| value.map(|value| format!("{name}={value}"));
        let listen = named("http.listen", self.listen);
        let data_dir = named("store.data_dir", self.data_dir);
        let peer = named("cluster.peer_address", self.peer_address);
        let flags = self.settings.into_iter().chain(listen).chain(data_dir).chain(peer).collect();
        let named = self.config.map(|file| (file, "--config".to_owned()));
        let variable =
            || config::variable(FILE_VARIABLE).map(|file| (file.into(), format!("environment {FILE_VARIABLE}")));
        let file = named.or_else(variable);
        config::load(&Sources { file, environment: Sources::environment(), flags, port: self.port })
    }
}

fn version() -> &'static str {
    sabotage::version(env!("CARGO_PKG_VERSION"))
}

/// Parses the command line and runs its command.
pub fn main() -> ExitCode {
    if let Err(error) = hardening::begin() {
        return exit_code(Err(error));
    }
    match Cli::parse().command {
        Command::Doctor { data_dir, json } => look(&data_dir, json),
        Command::Serve(settings) => exit_code(settings.load().map_err(Into::into).and_then(serve::serve)),
        Command::Config(settings) => exit_code(settings.load().map_err(Into::into).and_then(|config| show(&config))),
        Command::Admin { data_dir, command } => exit_code(admin::run(&data_dir, command)),
        Command::Cluster(args) => exit_code(cluster::run(args)),
        Command::Dev(args) => {
            let settings = SettingsArgs { settings: args.settings.clone(), ..SettingsArgs::default() };
            let settings = settings.load().map_err(Into::into);
            exit_code(settings.and_then(|config| dev::run(&args, &config)))
        }
    }
}

fn exit_code(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // A closed pipe is no failure: its reader needs no more.
        Err(error) if error.is::<ReaderGone>() => ExitCode::SUCCESS,
        Err(error) => {
            output::note(format_args!("assay: {}", output::chain(&error)));
            ExitCode::FAILURE
        }
    }
}

fn show(config: &Config) -> anyhow::Result<()> {
    output::write(&config::printed(config)?)
}

fn look(data_dir: &std::path::Path, json: bool) -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::WARN).init();
    let report = doctor::examine(data_dir);
    match print(&report, json) {
        Err(error) if !error.is::<ReaderGone>() => {
            output::note(format_args!("the findings could not be printed: {}", output::chain(&error)));
            ExitCode::from(doctor::EXIT_NOT_CHECKED)
        }
        _ => ExitCode::from(report.exit_code()),
    }
}

fn print(report: &Report, json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(report);
    }
    report.findings.iter().try_for_each(output::line)?;
    output::line(report.summary())
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
