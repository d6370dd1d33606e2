//! `assay backup`: the backup of a cluster, from its creation to a restore.
//!
//! `create` asks the running node through its socket. Everything else works on the store itself, also where no node is
//! left.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, ensure};
use assay_cluster::ClusterConfig;
use assay_node_backups::{
    BackupConfig, BackupKey, BackupSettings, Inventory, Millis, Repository, RestoreTarget, now, prune, restorable,
    restore, time_text, verify,
};
use assay_node_secrets::MASTER_KEY_VARIABLE;
use assay_node_transfer::TransferRequest;
use clap::{Args, Subcommand};
use serde_json::json;

use super::{SettingsArgs, output, transfer};
use crate::admin_api::requests::{AdminCommand, BackupReply, PROGRESS_INTERVAL, SocketRequest};
use crate::admin_api::socket;
use crate::config::Config;

const NODE_GONE: &str = "the node closed the connection before the backup was complete; run the command again";
const DAY_MILLIS: u64 = 24 * 3600 * 1000;

/// Arguments of `assay backup`.
#[derive(Debug, Args)]
pub struct BackupArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(subcommand)]
    command: BackupCommand,
}

/// Location and key of a backup. Settings and the environment name them as well.
#[derive(Debug, Default, Args)]
pub(super) struct StoreArgs {
    /// Directory or bucket of the backup, such as /backups or s3://bucket/prefix; also backup.location
    #[arg(long, value_name = "LOCATION", global = true)]
    location: Option<String>,
    /// File with the key of the backup; also backup.key_file
    #[arg(long, value_name = "FILE", global = true)]
    key_file: Option<PathBuf>,
    /// Configuration file, in the form that `assay config` prints; also ASSAY_CONFIG
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Data directory of the node, or the empty one to restore into [default: ./assay-data]
    #[arg(long, value_name = "DIR", global = true)]
    data_dir: Option<String>,
    /// Any setting, such as backup.keep_days=90; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", global = true)]
    settings: Vec<String>,
}

#[derive(Clone, Debug, Subcommand)]
pub enum BackupCommand {
    /// Create a key for backups in a new file; keep a copy of it away from the backup
    Key {
        /// New file, readable by its owner alone
        file: PathBuf,
    },
    /// Store the state of all groups now, and wait until it is complete
    Create,
    /// List the requested backups, and the time from which every second can be restored
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Read and verify every object of the backup
    Verify {
        /// Look for the content of segments without reading it
        #[arg(long)]
        quick: bool,
    },
    /// Delete what no time within the last days needs; a running node does this every hour
    Prune {
        /// Days that stay restorable [default: backup.keep_days]
        #[arg(long, value_name = "DAYS")]
        keep_days: Option<u64>,
    },
    /// Restore a cluster into an empty data directory, as one node of a new cluster
    ///
    /// The data directory is that of the settings: --data-dir names it. Afterwards, start the node with `assay serve`.
    /// Other nodes join it like any first node. The nodes of the old cluster and the new one refuse each other.
    #[command(verbatim_doc_comment)]
    Restore {
        /// Time to restore, such as 2026-11-30T12:00:00Z [default: the newest one]
        #[arg(long, value_name = "TIME")]
        at: Option<String>,
        /// Restore one organization alone, as a file for `assay admin import-organization`
        #[arg(long, value_name = "NAME", requires = "to")]
        organization: Option<String>,
        /// New file for --organization. Everything is restored beside it meanwhile, and removed afterwards
        #[arg(long, value_name = "FILE", requires = "organization")]
        to: Option<PathBuf>,
    },
}

/// Runs a command.
pub fn run(args: BackupArgs) -> anyhow::Result<()> {
    let BackupArgs { store, command } = args;
    if let BackupCommand::Key { file } = &command {
        return create_key(file);
    }
    let config = store.config()?;
    if let BackupCommand::Create = command {
        return create(&config.store.data_dir);
    }
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::WARN).init();
    let settings = store.settings(&config)?;
    let repository = settings.open()?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    if let BackupCommand::Restore { at, organization: Some(name), to: Some(to) } = command {
        return restore_organization(&repository, runtime, at.as_deref(), (name, to));
    }
    runtime.block_on(async {
        match command {
            BackupCommand::Key { .. } | BackupCommand::Create => Ok(()),
            BackupCommand::List { json } => list(&repository, json).await,
            BackupCommand::Verify { quick } => verify_all(&repository, !quick).await,
            BackupCommand::Prune { keep_days } => prune_now(&repository, &settings, keep_days).await,
            BackupCommand::Restore { at, .. } => restore_to(&repository, &config, at.as_deref()).await,
        }
    })
}

impl StoreArgs {
    pub(super) fn of_drill(
        location: Option<String>,
        key_file: Option<PathBuf>,
        config: Option<PathBuf>,
        settings: Vec<String>,
    ) -> StoreArgs {
        StoreArgs { location, key_file, config, data_dir: None, settings }
    }

    pub(super) fn config(&self) -> anyhow::Result<Config> {
        let (config, data_dir, settings) = (self.config.clone(), self.data_dir.clone(), self.settings.clone());
        Ok(SettingsArgs { config, data_dir, settings, ..SettingsArgs::default() }.load()?)
    }

    pub(super) fn settings(self, config: &Config) -> anyhow::Result<BackupSettings> {
        let named = BackupConfig {
            location: self.location.or_else(|| config.backup.location.clone()),
            key_file: self.key_file.or_else(|| config.backup.key_file.clone()),
            ..config.backup.clone()
        };
        let checked = named.checked().map_err(anyhow::Error::msg)?;
        checked.context("name the backup with --location and --key-file, or in the settings")
    }
}

fn create_key(file: &Path) -> anyhow::Result<()> {
    ensure!(!file.exists(), "{} exists; a key is never replaced", file.display());
    let key = BackupKey::from_file(file, true)?;
    output::line(format_args!("{} has the key {}. Keep a copy of it away from the backup.", file.display(), key.id()))
}

/// Asks the running node, and prints its progress.
fn create(data_dir: &Path) -> anyhow::Result<()> {
    let stream = socket::connect(data_dir)?;
    let stream =
        stream.with_context(|| format!("no node runs on {}: start it with `assay serve`", data_dir.display()))?;
    writeln!(&stream, "{}", serde_json::to_string(&SocketRequest::Backup)?).context(NODE_GONE)?;
    for line in BufReader::new(stream).lines() {
        match serde_json::from_str(&line.context(NODE_GONE)?).context("the node answered with something else")? {
            BackupReply::Progress(text) => output::note(format_args!("{text}")),
            BackupReply::Done(value) => return output::json(&value),
            BackupReply::Refused(why) => anyhow::bail!(why),
        }
    }
    anyhow::bail!(NODE_GONE)
}

/// Reads everything that lists and plans need.
async fn overview(repository: &Repository) -> anyhow::Result<(Inventory, Vec<assay_node_backups::PointManifest>)> {
    let descriptor = repository.opened().await?;
    let inventory = repository.inventory(descriptor.shards).await?;
    let mut points = Vec::with_capacity(inventory.points.len());
    for at in &inventory.points {
        points.push(repository.point(*at).await?);
    }
    Ok((inventory, points))
}

async fn list(repository: &Repository, as_json: bool) -> anyhow::Result<()> {
    let (inventory, points) = overview(repository).await?;
    let indices: Vec<_> = points.iter().map(|point| (point.at, point.groups.clone())).collect();
    let range = restorable(&indices, &inventory.groups);
    let requested: Vec<_> = points.iter().filter(|point| point.is_requested).map(|point| time_text(point.at)).collect();
    if as_json {
        let range = range.map(|(first, last)| json!({"from": time_text(first), "to": time_text(last)}));
        return output::json(&json!({
            "location": repository.store().location(),
            "backups": requested,
            "every_second": range,
            "bytes": inventory.bytes,
        }));
    }
    for at in requested {
        output::line(format_args!("backup      {at}"))?;
    }
    match range {
        Some((first, last)) => output::line(format_args!("any second  {} to {}", time_text(first), time_text(last))),
        None => output::line("nothing can be restored yet: `assay backup verify` says what is missing"),
    }
}

/// Printer of progress, at most one line in some seconds.
pub(super) struct ProgressLines {
    last: Instant,
}

impl ProgressLines {
    pub(super) fn start() -> ProgressLines {
        ProgressLines { last: Instant::now() }
    }

    pub(super) fn say(&mut self, text: impl FnOnce() -> String) {
        if self.last.elapsed() >= PROGRESS_INTERVAL {
            self.last = Instant::now();
            output::note(format_args!("{}", text()));
        }
    }
}

async fn verify_all(repository: &Repository, reads_content: bool) -> anyhow::Result<()> {
    let mut lines = ProgressLines::start();
    let found = verify(repository, reads_content, |progress| {
        let (done, all, megabytes) = (progress.objects_done, progress.objects, progress.bytes / 1_000_000);
        lines.say(|| format!("{done} of at least {all} objects, {megabytes} MB"));
    })
    .await?;
    for finding in &found.findings {
        output::line(finding)?;
    }
    let range = found.restorable.map(|(first, last)| format!("{} to {}", time_text(first), time_text(last)));
    output::line(format_args!(
        "{} objects with {} MB were read; any second from {} can be restored",
        found.objects,
        found.bytes / 1_000_000,
        range.as_deref().unwrap_or("no time")
    ))?;
    ensure!(found.findings.is_empty(), "the backup has {} findings", found.findings.len());
    Ok(())
}

async fn prune_now(repository: &Repository, settings: &BackupSettings, keep_days: Option<u64>) -> anyhow::Result<()> {
    ensure!(keep_days != Some(0), "--keep-days is 0; the last day always stays restorable");
    let days = keep_days.map(|days| days.saturating_mul(DAY_MILLIS));
    let keep = days.unwrap_or_else(|| u64::try_from(settings.keep.as_millis()).unwrap_or(u64::MAX));
    let pruned = prune(repository, Millis(now().0.saturating_sub(keep))).await?;
    output::json(&json!({"deleted": pruned.objects, "deleted_in_a_day": pruned.unused}))
}

async fn restore_to(repository: &Repository, config: &Config, at: Option<&str>) -> anyhow::Result<()> {
    let wanted = at.map(parse_time).transpose()?;
    let node = config.node()?;
    let began = Instant::now();
    let mut lines = ProgressLines { last: Instant::now() - PROGRESS_INTERVAL };
    let is_key_given = config.secrets.master_key_file.is_some() || std::env::var_os(MASTER_KEY_VARIABLE).is_some();
    let target = RestoreTarget { node: &node, keeps_master_keys: !is_key_given, at: wanted };
    let restored = restore(repository, target, |progress| {
        let (done, all, megabytes) = (progress.groups_done, progress.groups, progress.bytes / 1_000_000);
        lines.say(|| format!("{done} of {all} groups, {megabytes} MB"));
    })
    .await?;
    let key = match restored.master_key_files.split_first() {
        Some((current, old)) => json!({"file": current, "secrets.old_master_key_files": old}),
        None if is_key_given => {
            json!("not written: the settings name a master key, which has to be that of the old cluster")
        }
        None => json!("none is in the backup"),
    };
    let seconds = (began.elapsed().as_secs_f64() * 10.0).round() / 10.0;
    output::json(&json!({
        "restored": time_text(restored.at),
        "cluster": restored.identity.cluster.to_string(),
        "node": restored.identity.node.to_string(),
        "bytes": restored.bytes,
        "log_entries": restored.entries,
        "seconds": seconds,
        "master_key": key,
        "next": format!("assay serve --data-dir {}", config.store.data_dir.display()),
    }))
}

/// Restores into scratch space beside a file, and exports one organization to the file.
fn restore_organization(
    repository: &Repository,
    runtime: tokio::runtime::Runtime,
    at: Option<&str>,
    (name, to): (String, PathBuf),
) -> anyhow::Result<()> {
    let wanted = at.map(parse_time).transpose()?;
    ensure!(!to.exists(), "{} exists: name a new file", to.display());
    let beside = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let scratch = tempfile::Builder::new().prefix(".assay-restore-").tempdir_in(beside);
    let scratch = scratch.with_context(|| format!("no scratch space in {}", beside.display()))?;
    let node = ClusterConfig { data_dir: scratch.path().join("restored"), ..ClusterConfig::default() };
    let target = RestoreTarget { node: &node, keeps_master_keys: false, at: wanted };
    let mut lines = ProgressLines::start();
    let restored = runtime.block_on(restore(repository, target, |progress| {
        let (done, all, megabytes) = (progress.groups_done, progress.groups, progress.bytes / 1_000_000);
        lines.say(|| format!("{done} of {all} groups, {megabytes} MB"));
    }))?;
    drop(runtime);
    output::note(format_args!("{} is restored; exporting the organization {name}", time_text(restored.at)));
    let request = TransferRequest::Export { organization: name.clone() };
    let exported = transfer::run(&node.data_dir, AdminCommand::ExportOrganization { name, to }, request);
    scratch.close().context("the scratch space stays")?;
    exported
}

/// Parses a time in RFC 3339.
fn parse_time(text: &str) -> anyhow::Result<Millis> {
    let micros = assay_storage_model::event::parse_created(text);
    let micros = micros.with_context(|| format!("`{text}` is no time: write for instance 2026-11-30T12:00:00Z"))?;
    let millis = u64::try_from(micros / 1000).context("the time is before 1970")?;
    Ok(Millis(millis))
}
