//! `assay drill`: rehearsals of what an operator hopes never to need.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, ensure};
use assay_cluster::{Cluster, ClusterConfig};
use assay_node_backups::{Repository, RestoreTarget, Restored, now, restore, time_text};
use assay_node_restore_drill::{DrillReport, DrillVerdict, LivingServer, RestoreFigures, compare, restored_objects};
use assay_node_secrets::read_secret_file;
use assay_storage_model::Xact;
use clap::{Args, Subcommand};
use serde_json::json;
use tempfile::TempDir;

use super::backup::{ProgressLines, StoreArgs};
use super::output;
use crate::process::secret_variable;
use crate::serve::API_KEY_VARIABLE;

const KEY_DESCRIPTION: &str = "an API key of the living server";
const MICROS_PER_MILLI: u64 = 1_000;

/// Arguments of `assay drill`.
#[derive(Debug, Args)]
pub struct DrillArgs {
    #[command(subcommand)]
    command: DrillCommand,
}

/// Rehearsals.
#[derive(Debug, Subcommand)]
pub enum DrillCommand {
    /// Restore the newest backup into scratch space, and compare it with the living server
    ///
    /// Nothing is started in the network, and the living server is only read. The scratch space is removed afterwards.
    /// The report has the objects that the key sees, with their numbers of rows and newest writes up to the restored
    /// time. Exit code: 0 if the backup has everything of that time, 1 if it does not or something failed.
    #[command(verbatim_doc_comment)]
    Restore(RestoreDrillArgs),
}

/// Arguments of a restore drill.
#[derive(Debug, Args)]
pub struct RestoreDrillArgs {
    /// Directory or bucket of the backup, such as /backups or s3://bucket/prefix; also backup.location
    #[arg(long, value_name = "LOCATION")]
    location: Option<String>,
    /// File with the key of the backup; also backup.key_file
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Configuration file, in the form that `assay config` prints; also ASSAY_CONFIG
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Any setting, such as backup.location=/backups; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Address of the living server
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8000")]
    url: String,
    /// File with an API key of the living server; also the variable ASSAY_API_KEY
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    /// Existing directory with enough space for everything, in which the scratch space is made
    /// [default: the temporary directory of the system]
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Path of the report without its extension: .md and .json are written
    #[arg(long, value_name = "PATH", default_value = "./restore-drill")]
    report: PathBuf,
}

/// Runs a drill.
pub fn run(args: DrillArgs) -> anyhow::Result<()> {
    let DrillCommand::Restore(args) = args.command;
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::WARN).init();
    let key = match (&args.api_key_file, secret_variable(API_KEY_VARIABLE)?) {
        (Some(file), _) => read_secret_file(file, KEY_DESCRIPTION)?,
        (None, Some(key)) => key,
        (None, None) => anyhow::bail!("name {KEY_DESCRIPTION} with --api-key-file, or set {API_KEY_VARIABLE}"),
    };
    let living = LivingServer::new(&args.url, &key)?;
    let store = StoreArgs::of_drill(args.location, args.key_file, args.config, args.settings);
    let config = store.config()?;
    let repository = store.settings(&config)?.open()?;
    let scratch = scratch(args.into.as_deref())?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    let report = runtime.block_on(async {
        tokio::select! {
            report = rehearse(&repository, &living, scratch.path(), args.url.clone()) => report,
            interrupted = tokio::signal::ctrl_c() => {
                interrupted?;
                anyhow::bail!("the drill was interrupted")
            }
        }
    });
    drop(runtime);
    scratch.close().context("the scratch space stays")?;
    let report = report?;
    let files =
        [("md", report.markdown()), ("json", serde_json::to_string_pretty(&report)?)].map(|(extension, text)| {
            let mut file = args.report.clone().into_os_string();
            file.push(format!(".{extension}"));
            let file = PathBuf::from(file);
            let written = std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()));
            written.map(|()| file)
        });
    let files = files.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    output::json(&json!({
        "holds": report.holds,
        "restored": report.figures.restored,
        "equal": report.comparison.count(DrillVerdict::Equal),
        "changed_since": report.comparison.count(DrillVerdict::ChangedSince),
        "lack_rows": report.comparison.count(DrillVerdict::Lacks),
        "reports": files,
    }))?;
    ensure!(report.holds, "the backup does not hold: the report names the objects that lack rows");
    Ok(())
}

fn scratch(into: Option<&Path>) -> anyhow::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix("assay-drill-");
    match into {
        None => builder.tempdir().context("no scratch space in the temporary directory: name another with --into"),
        Some(dir) => builder.tempdir_in(dir).with_context(|| format!("no scratch space in {}", dir.display())),
    }
}

/// Restores into the scratch space, and compares.
async fn rehearse(
    repository: &Repository,
    living: &LivingServer,
    scratch: &Path,
    compared_with: String,
) -> anyhow::Result<DrillReport> {
    let (began, timer) = (now(), Instant::now());
    let mut lines = ProgressLines::start();
    let node = ClusterConfig { data_dir: scratch.join("restored"), ..ClusterConfig::default() };
    let target = RestoreTarget { node: &node, keeps_master_keys: false, at: None };
    let Restored { at, bytes, entries, .. } = restore(repository, target, |progress| {
        let (done, all, megabytes) = (progress.groups_done, progress.groups, progress.bytes / 1_000_000);
        lines.say(|| format!("{done} of {all} groups, {megabytes} MB"));
    })
    .await?;
    // Without an address for other nodes, a node opens no connection.
    let cluster = Cluster::open(node).await.context("the restored state cannot be opened")?;
    let restored = restored_objects(&cluster);
    cluster.shutdown().await?;
    let restore_seconds = timer.elapsed().as_secs_f64();
    let before = Xact::at_micros(at.0.saturating_mul(MICROS_PER_MILLI));
    let comparison = compare(&restored, living.objects(before).await?);
    let figures = RestoreFigures {
        location: repository.store().location(),
        restored: time_text(at),
        age_seconds: began.0.saturating_sub(at.0) as f64 / 1_000.0,
        bytes,
        log_entries: entries,
        restore_seconds,
    };
    let program = env!("CARGO_PKG_VERSION").to_owned();
    let holds = comparison.holds();
    Ok(DrillReport { holds, began: time_text(began), program, compared_with, figures, comparison })
}
