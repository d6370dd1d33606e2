//! The command line of `assay`: arguments, and the module of each command.

mod admin;
mod backup;
mod cluster;
mod demo;
mod dev;
mod doctor;
mod drill;
pub mod import;
mod listener_client;
mod output;
mod transfer;
mod upgrade;

use std::path::PathBuf;
use std::process::ExitCode;

use assay_storage_model::sabotage;
use backup::BackupArgs;
use clap::{Args, Parser, Subcommand};
use cluster::ClusterArgs;
use demo::DemoArgs;
use dev::DevArgs;
use doctor::Report;
use drill::DrillArgs;
use import::ImportArgs;
use output::ReaderGone;
use upgrade::UpgradeArgs;

use crate::admin_api::requests::AdminCommand;
use crate::config::{self, Config, ConfigError, Sources};
use crate::process::hardening;
use crate::serve;

/// Names the configuration file where no flag does.
const FILE_VARIABLE: &str = "ASSAY_CONFIG";

/// Stores traces, experiments, datasets and prompts of AI applications, and answers queries about them.
///
/// One command starts a complete node, which stores everything in one directory:
///
///     assay serve
///
/// The first start creates an organization and prints an API key, once. Point an SDK at the node:
///
///     export BRAINTRUST_APP_URL=http://127.0.0.1:8000 BRAINTRUST_API_URL=http://127.0.0.1:8000
///     export BRAINTRUST_API_KEY=sk-...
///
/// If a key is lost, create another one: assay admin create-key NAME --organization default --user owner@localhost
/// Settings come from one file, the environment and flags. `assay config` prints the names and values of all of them.
/// `assay admin` creates more keys. `assay doctor` checks a directory that a node refuses to open.
#[derive(Debug, Parser)]
#[command(name = "assay", version = version(), arg_required_else_help = true, verbatim_doc_comment)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a node until a signal stops it
    ///
    /// Prints its address to stdout when it is ready, and an API key on the first start. Everything else goes to stderr.
    /// SIGTERM or SIGINT stops it: it finishes requests in progress, then closes the store. A second signal, a crash or
    /// a power cut loses no acknowledged write.
    ///
    /// The first start also creates `master.key` in the data directory, the key that encrypts secrets. Keep a copy of it
    /// elsewhere. The setting secrets.master_key_file names another file.
    ///
    /// There are more settings than flags: `assay config` prints them all, and --set accepts any of them. --port 9000
    /// changes the port. --listen 0.0.0.0:8000 serves other machines.
    ///
    /// Environment: ASSAY_API_KEY is used as the first key, ASSAY_ADMIN_TOKEN as the token of administrators, and
    /// ASSAY_MASTER_KEY as the key that encrypts secrets. Every setting is also a variable ASSAY_<TABLE>_<NAME>. An
    /// empty variable counts as not set.
    #[command(verbatim_doc_comment)]
    Serve(SettingsArgs),
    /// Print the settings that `serve` would run with, as a configuration file
    ///
    /// The last source wins: defaults, then the file, then the environment, then flags. An empty variable of the
    /// environment counts as not set.
    #[command(verbatim_doc_comment)]
    Config(SettingsArgs),
    /// Create a cluster of several nodes, and operate it
    ///
    /// The first machine founds the cluster. Each of the others joins with its own token. Then each node is started:
    ///
    ///     first machine    assay cluster init --peer-address 10.0.0.1:7400
    ///                      assay serve --peer-address 10.0.0.1:7400 --listen 10.0.0.1:8000
    ///                      assay cluster token                  (prints a token, once for each joining node)
    ///     other machines   assay cluster join TOKEN --peer-address 10.0.0.2:7400
    ///                      assay serve --peer-address 10.0.0.2:7400 --listen 10.0.0.2:8000
    ///     any machine      assay cluster status --wait
    ///
    /// With --peer-address, a start on a directory without data is an error, and does not found a second cluster. So a
    /// disk that is not mounted is noticed.
    ///
    /// With three nodes or more, every shard has three replicas, and any one node may fail. Any node answers any request.
    /// Nodes communicate over TLS with certificates that the cluster creates.
    ///
    ///     planned stop     assay cluster drain 2, stop and start it, assay cluster undrain 2
    ///     lost machine     join a new one, assay cluster replace 2 4
    ///     one too many     assay cluster remove 4, assay cluster status --wait, stop it
    ///     majority lost    assay cluster recover on a remaining node, then follow its output
    ///
    /// Commands reach a running node through a socket in its data directory. From another machine, they need the
    /// administrators' listener of the node: `assay serve --set admin.listen=127.0.0.1:8001`. An address that other
    /// machines can reach needs certificates (admin.tls). Callers send a token. The node reads it from ASSAY_ADMIN_TOKEN
    /// or admin.token_file, or else creates it in the file admin.token in its data directory:
    ///
    ///     assay cluster status --admin http://127.0.0.1:8001 --admin-token-file FILE
    ///     curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8001/cluster/status
    ///     curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8001/cluster/drain -d '{"node": 2}'
    ///
    /// The listener serves all commands but init, join, prepare and recover as POST /cluster/<operation>. The response
    /// to rebalance has a line for each step, and its last line is the status.
    ///
    /// A scheduler that starts nodes without an operator runs `assay cluster prepare` before each start of a node. It
    /// joins the cluster by its listener, or founds one if no node runs.
    #[command(verbatim_doc_comment)]
    Cluster(ClusterArgs),
    /// Run a cluster of several nodes on this machine, to try it out
    ///
    /// Each node is a process with its own directory. This command prints the output of all nodes. Ctrl-C stops them.
    #[command(verbatim_doc_comment)]
    Dev(DevArgs),
    /// Create and list organizations, users and keys, move an organization, rotate the keys of the cluster
    ///
    /// Talks to the node that runs on the data directory, through a socket that only the owner of the directory can open.
    /// If no node runs, the command opens the directory itself.
    #[command(verbatim_doc_comment)]
    Admin {
        /// The data directory
        #[arg(long, value_name = "DIR", default_value = "./assay-data", global = true)]
        data_dir: PathBuf,
        #[command(subcommand)]
        command: AdminCommand,
    },
    /// Back up a cluster, and restore it
    ///
    /// A node with the settings backup.location and backup.key_file stores everything it has, all the time:
    ///
    ///     assay backup key /etc/assay/backup.key
    ///     assay serve --set backup.location=s3://bucket/assay --set backup.key_file=/etc/assay/backup.key
    ///
    /// All nodes of a cluster need the same settings and the same key. Any second since the first backup can be
    /// restored, on one machine or on several. These commands work without a node:
    ///
    ///     assay backup list --location s3://bucket/assay --key-file FILE
    ///     assay backup verify --location s3://bucket/assay --key-file FILE
    ///     assay backup restore --location s3://bucket/assay --key-file FILE --data-dir NEW --at 2026-11-30T12:00:00Z
    ///
    /// Credentials of buckets come from the usual variables, such as AWS_ACCESS_KEY_ID and AWS_ENDPOINT.
    #[command(verbatim_doc_comment)]
    Backup(BackupArgs),
    /// Check whether a running cluster can be upgraded to this program
    ///
    /// Run the new program against a running node of the old version. It changes nothing:
    ///
    ///     ./assay-new upgrade check --data-dir /var/lib/assay
    ///
    /// Then replace the program of one node after the other, and confirm with `assay cluster finalize`.
    #[command(verbatim_doc_comment)]
    Upgrade(UpgradeArgs),
    /// Rehearse a restore of the newest backup
    ///
    /// Restores into scratch space, compares with the living server, and writes a report:
    ///
    ///     assay drill restore --location s3://bucket/assay --key-file FILE --url https://assay.example --api-key-file FILE
    #[command(verbatim_doc_comment)]
    Drill(DrillArgs),
    /// Import from another product into a running server
    ///
    /// Sources are Langfuse, Phoenix, MLflow, LangSmith, Braintrust, files of OpenTelemetry, and tables. A source is only
    /// read. Keys come from the environment: ASSAY_API_KEY for the server, and LANGFUSE_SECRET_KEY and others for sources:
    ///
    ///     assay import langfuse --url https://cloud.langfuse.com --public-key pk-lf-... \
    ///         --to http://127.0.0.1:8000 --project NAME
    ///     assay import table questions.csv --map input=question --map expected=answer --into dataset:questions \
    ///         --to http://127.0.0.1:8000 --project NAME
    ///
    /// Run the same command again after an interruption: it goes on behind the last acknowledged page. At the end, all
    /// rows are read back and compared. A report in the directory of the state lists what has no equivalent.
    ///
    /// Exit code: 0 all is there and equal, 1 it failed, 2 something differs.
    #[command(verbatim_doc_comment)]
    Import(ImportArgs),
    /// Fill a project of a running server with example data, or remove it again
    ///
    /// Needs an API key in ASSAY_API_KEY or BRAINTRUST_API_KEY, and no network or model:
    ///
    ///     assay demo               2,000 traces of a travel assistant, a dataset, a prompt and two experiments
    ///     assay demo --remove      removes the project with all of it
    ///
    /// One experiment has a planted regression: compare `short prompt` with `long prompt` by category.
    #[command(verbatim_doc_comment)]
    Demo(DemoArgs),
    /// Check the data directory of a stopped node, without changes
    ///
    /// Reads every byte of the log up to its watermark, of the stored state of all shards and the catalog, of segments
    /// and blobs. Checks that the log continues where the stored state ends. Prints one line per finding:
    ///
    ///   ok              as it was written
    ///   ambiguous tail  the last write before the stop is torn; it was not acknowledged, and the next start
    ///                   truncates it
    ///   damaged         durable data is wrong or missing; the line says what to do
    ///   not checked     it could not be read; the line says why
    ///
    /// Exit code: 0 no problems, 1 damage, 2 something could not be checked.
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
    /// Configuration file, in the form that `assay config` prints; also ASSAY_CONFIG
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address and port for clients; port 0 lets the system choose [default: 127.0.0.1:8000]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// Port for clients; the address stays unchanged. --listen sets both
    #[arg(long, value_name = "PORT", conflicts_with = "listen")]
    port: Option<u16>,
    /// Data directory, which contains everything that the node stores [default: ./assay-data]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// Address at which other nodes reach this one. The node stores it. With the flag, a directory without data is an error
    #[arg(long, value_name = "HOST:PORT")]
    peer_address: Option<String>,
    /// Any setting, such as http.public_url=https://assay.example; may be repeated. `assay config` prints all of them
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
        Command::Backup(args) => exit_code(backup::run(args)),
        Command::Drill(args) => exit_code(drill::run(args)),
        Command::Cluster(args) => exit_code(cluster::run(args)),
        Command::Upgrade(args) => match upgrade::run(args) {
            Ok(false) => ExitCode::FAILURE,
            checked => exit_code(checked.map(drop)),
        },
        Command::Import(args) => import::run(args),
        Command::Demo(args) => exit_code(demo::run(&args)),
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
