//! `assay admin`: organizations, users, keys, tokens and the master key, for the owner of the data directory.
//!
//! Asks the running node through its socket. Where no node runs, the command opens the directory itself, under its lock.

use std::path::Path;
use std::sync::Arc;

use assay_cluster::{Cluster, ClusterConfig};
use assay_node_identity::Identity;
use assay_node_objects::{AuditLog, ObjectLimits, Objects, node_clock};
use assay_node_records::Records;

use super::{output, transfer};
use crate::admin_api::handlers::execute_admin_command;
use crate::admin_api::requests::{AdminCommand, SocketReply, SocketRequest};
use crate::admin_api::socket::{self, transfer_request};

/// Runs a command and prints the reply as JSON.
pub fn run(data_dir: &Path, command: AdminCommand) -> anyhow::Result<()> {
    if let Some(request) = transfer_request(&command) {
        return transfer::run(data_dir, command, request);
    }
    let answer = match socket::ask(data_dir, &SocketRequest::Admin(command.clone()))? {
        Some(answer) => answer,
        None if matches!(command, AdminCommand::RotateMasterKey | AdminCommand::RotateSecrets) => anyhow::bail!(
            "no node runs on {}, and only a running node has the master keys: start it with its master key first",
            data_dir.display()
        ),
        None => directly(data_dir, command)?,
    };
    match answer {
        SocketReply::Done(value) => output::json(&value),
        SocketReply::Refused(why) => anyhow::bail!(why),
    }
}

fn directly(data_dir: &Path, command: AdminCommand) -> anyhow::Result<SocketReply> {
    on_directory(data_dir, async |records, _| Ok(execute_admin_command(&Identity::new(records), command).await))
}

/// Opens the directory of a stopped node for the duration of `work`.
pub fn on_directory<T>(
    data_dir: &Path,
    work: impl AsyncFnOnce(Records, Objects) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let there = data_dir.join("FORMAT").exists();
    anyhow::ensure!(there, "{} is not a data directory: name it with --data-dir", data_dir.display());
    // A command that has restored the directory logs already.
    let _ = tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::WARN).try_init();
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let config = ClusterConfig { data_dir: data_dir.to_owned(), ..ClusterConfig::default() };
        let cluster = Arc::new(Cluster::open(config).await?);
        let objects = Objects::start(Arc::clone(&cluster), ObjectLimits::default(), node_clock(&cluster));
        let records = Records::new(Arc::clone(&cluster), Arc::new(AuditLog::new(objects.clone())));
        let done = work(records, objects.clone()).await;
        objects.shutdown().await;
        cluster.shutdown().await?;
        done
    })
}
