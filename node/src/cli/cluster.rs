//! `assay cluster`: makes nodes into one cluster and operates it, for the owner of the data directory.
//!
//! `init`, `join` and `prepare` prepare a directory while no node runs on it, and `recover` changes one. Everything else is a
//! request to a running node, through the socket in its directory or its administrators' listener; any node of the cluster
//! will do.
//!
//! Commands are idempotent: `init` and `join` also where a node runs on the directory by now, and without a request to it.
//! A printed token is a new one every time; a token in a file (`--output`) stays, without a request. A script that prepares
//! a cluster can therefore run before every start, when there is no majority yet.

mod init;
mod prepare;
mod status_text;
mod token_file;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::Context;
use assay_cluster::{ClusterConfig, ClusterStatus, PeerConfig, Recovery};
use assay_storage_disk::RealDisk;
use assay_storage_model::ShardId;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::listener_client::{ListenerArgs, ListenerClient};
use super::output;
use crate::admin_api::requests::{
    ClusterRequest, PROGRESS_INTERVAL, SETTLE_MAX, STATUS_POLL_INTERVAL, SocketReply, SocketRequest,
    TOKEN_VALID_MINUTES, not_settled,
};
use crate::admin_api::socket::ask;
pub use init::{InitRequest, init};
use prepare::{PrepareRequest, WAIT_SECONDS, prepare};
use status_text::status_text;

/// Shortest time between two progress lines of a drain, which is short unless it hangs.
const DRAIN_PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// Arguments of `assay cluster`.
#[derive(Debug, Args)]
pub struct ClusterArgs {
    /// The data directory of a node
    #[arg(long, value_name = "DIR", default_value = "./assay-data", global = true)]
    data_dir: PathBuf,
    /// Print the result as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    remote: ListenerArgs,
    #[command(subcommand)]
    command: ClusterCommand,
}

/// Commands of `assay cluster`.
#[derive(Clone, Debug, Subcommand)]
pub enum ClusterCommand {
    /// Found a cluster in an empty directory; start its first node with `assay serve` afterwards
    Init {
        /// Address at which other nodes reach this one: host:port
        #[arg(long, value_name = "HOST:PORT")]
        peer_address: String,
        /// Number of shards, which cannot change later (4 to 256) [default: 16]
        #[arg(long)]
        shards: Option<u16>,
        /// Replicas of each shard, if there are enough nodes; cannot change later [default: 3]
        #[arg(long)]
        replicas: Option<u16>,
    },
    /// Create a token that lets one node join
    Token {
        /// Validity of the token, in minutes
        #[arg(long, value_name = "MINUTES", default_value_t = TOKEN_VALID_MINUTES)]
        minutes: u64,
        /// Write the token to a file that only its owner can read, instead of printing it. A token in an existing file
        /// is not replaced
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Replace a token in the file, after it was used or has expired
        #[arg(long, requires = "output")]
        anew: bool,
    },
    /// Join a cluster with a token and an empty directory; start the node with `assay serve` afterwards
    Join {
        /// Token that `assay cluster token` printed
        #[arg(required_unless_present = "token_file")]
        token: Option<String>,
        /// File that contains the token
        #[arg(long, value_name = "FILE", conflicts_with = "token")]
        token_file: Option<PathBuf>,
        /// Address at which other nodes reach this one: host:port
        #[arg(long, value_name = "HOST:PORT")]
        peer_address: String,
    },
    /// Prepare a data directory without an operator: join the cluster at --admin, or found one if none of its nodes runs.
    /// A directory that was prepared before is left alone
    Prepare {
        /// Address at which other nodes reach this one: host:port
        #[arg(long, value_name = "HOST:PORT")]
        peer_address: String,
        /// Peer address of the one node that may found the cluster; empty or left out, no node may
        #[arg(long, value_name = "HOST:PORT", default_value = "", hide_default_value = true)]
        founder: String,
        /// Number of shards if it founds the cluster, which cannot change later (4 to 256) [default: 16]
        #[arg(long)]
        shards: Option<u16>,
        /// Time to wait for the cluster
        #[arg(long, value_name = "SECONDS", default_value_t = WAIT_SECONDS)]
        wait_seconds: u64,
    },
    /// Show nodes and groups
    Status {
        /// Wait until every group has all its replicas and a leader
        #[arg(long)]
        wait: bool,
    },
    /// Move all leads from a node to others before you stop it; `undrain` ends this
    Drain { node: u64 },
    /// Let a drained node lead again
    Undrain { node: u64 },
    /// Remove a node for good: its replicas are rebuilt on other nodes, and its number is not used again. Refused while
    /// a group would lose its majority
    Remove { node: u64 },
    /// Replace a node by one that has joined and runs; refused while a group would lose its majority
    Replace { old: u64, new: u64 },
    /// Confirm an upgrade after all nodes have the new version. Until then you can go back to the previous version, and
    /// features that it cannot read are refused
    Finalize,
    /// Wait until all replicas are in their places; nodes move them automatically
    Rebalance,
    /// Continue with the data of this node alone, after a majority was lost for good
    Recover {
        /// Do it; without this flag, only the loss is printed
        #[arg(long)]
        force: bool,
        /// Do not ask for confirmation
        #[arg(long, requires = "force")]
        yes: bool,
    },
}

/// Runs a command and prints its result.
pub fn run(args: ClusterArgs) -> anyhow::Result<()> {
    let ClusterArgs { data_dir, json: as_json, remote, command } = args;
    let (data_dir, remote) = (&data_dir, remote.or_environment()?);
    if let Some(url) = &remote.admin
        && let Some(name) = on_a_directory(&command)
    {
        anyhow::bail!(
            "`{name}` works on the data directory of a stopped node: run it on that machine, without --admin {url}"
        );
    }
    match command {
        ClusterCommand::Init { peer_address, shards, replicas } => {
            let node = init(data_dir, InitRequest { peer_address: &peer_address, shards, replicas })?;
            print_prepared(data_dir, &peer_address, as_json, &node)
        }
        ClusterCommand::Join { token, token_file, peer_address } => {
            let node = join(data_dir, &token_from(token, token_file)?, &peer_address)?;
            print_prepared(data_dir, &peer_address, as_json, &node)
        }
        ClusterCommand::Recover { force, yes } => recover(data_dir, force, yes, as_json),
        ClusterCommand::Prepare { peer_address, founder, shards, wait_seconds } => {
            let cluster = ListenerClient::new(&remote, data_dir)?;
            let cluster = cluster.context("`prepare` asks the cluster: name its listener with --admin URL")?;
            let wait = Duration::from_secs(wait_seconds);
            let wanted = PrepareRequest { peer_address: &peer_address, founder: &founder, shards, wait };
            print_prepared(data_dir, &peer_address, as_json, &prepare(data_dir, &cluster, wanted)?)
        }
        command => ask_node(&reached(data_dir, &remote)?, command, as_json),
    }
}

/// Returns the running node that flags or the environment name.
pub fn running_node(data_dir: &Path, remote: ListenerArgs) -> anyhow::Result<RunningNode> {
    reached(data_dir, &remote.or_environment()?)
}

fn reached(data_dir: &Path, remote: &ListenerArgs) -> anyhow::Result<RunningNode> {
    Ok(match ListenerClient::new(remote, data_dir)? {
        Some(remote) => RunningNode::Listener(remote),
        None => RunningNode::Directory(data_dir.to_owned()),
    })
}

/// Returns the name of a command that needs no running node.
fn on_a_directory(command: &ClusterCommand) -> Option<&'static str> {
    match command {
        ClusterCommand::Init { .. } => Some("init"),
        ClusterCommand::Join { .. } => Some("join"),
        ClusterCommand::Recover { .. } => Some("recover"),
        _ => None,
    }
}

fn ask_node(node: &RunningNode, command: ClusterCommand, as_json: bool) -> anyhow::Result<()> {
    match command {
        ClusterCommand::Token { minutes, output, anew } => {
            let ask = || node.ask(ClusterRequest::Token { minutes });
            match output {
                Some(file) => {
                    let make = || Ok(text(&ask()?["token"]).to_owned());
                    print(as_json, &token_file::keep(&file, anew, make)?, token_file::in_words)
                }
                None => print(as_json, &ask()?, |answer| text(&answer["token"]).to_owned()),
            }
        }
        ClusterCommand::Status { wait } => show(node, wait, as_json),
        ClusterCommand::Rebalance => show(node, true, as_json),
        ClusterCommand::Drain { node: drained } => drain(node, drained, as_json),
        ClusterCommand::Undrain { node: drained } => done(node, as_json, ClusterRequest::Undrain { node: drained }),
        ClusterCommand::Remove { node: removed } => done(node, as_json, ClusterRequest::Remove { node: removed }),
        ClusterCommand::Replace { old, new } => done(node, as_json, ClusterRequest::Replace { old, new }),
        ClusterCommand::Finalize => done(node, as_json, ClusterRequest::Finalize),
        ClusterCommand::Init { .. }
        | ClusterCommand::Join { .. }
        | ClusterCommand::Prepare { .. }
        | ClusterCommand::Recover { .. } => {
            anyhow::bail!("the command works on a data directory, not through a running node")
        }
    }
}

/// A running node and the entrance by which it is asked.
pub enum RunningNode {
    /// Through the socket in its data directory.
    Directory(PathBuf),
    Listener(ListenerClient),
}

impl RunningNode {
    fn ask(&self, request: ClusterRequest) -> anyhow::Result<Value> {
        match self {
            RunningNode::Directory(data_dir) => asked(data_dir, request),
            RunningNode::Listener(remote) => remote.ask(&request),
        }
    }

    /// Returns the status of the cluster.
    pub fn status(&self) -> anyhow::Result<ClusterStatus> {
        Ok(serde_json::from_value(self.ask(ClusterRequest::Status)?)?)
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn print(as_json: bool, value: &Value, in_words: impl Fn(&Value) -> String) -> anyhow::Result<()> {
    match as_json {
        true => output::json(value),
        false => output::line(in_words(value)),
    }
}

fn done(node: &RunningNode, as_json: bool, request: ClusterRequest) -> anyhow::Result<()> {
    print(as_json, &node.ask(request)?, |answer| match answer["warning"].as_str() {
        Some(warning) => format!("{}; {warning}", text(&answer["done"])),
        None => text(&answer["done"]).to_owned(),
    })
}

/// Drains a node and reports on stderr what it still leads.
fn drain(node: &RunningNode, drained: u64, as_json: bool) -> anyhow::Result<()> {
    let (ended, end) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(DRAIN_PROGRESS_INTERVAL) {
                // The drain itself says what went wrong.
                let status = node.status().ok();
                let led = status.and_then(|status| status.nodes.into_iter().find(|found| found.id.0 == drained));
                if let Some(led) = led.filter(|led| led.leads > 0) {
                    output::note(format_args!("waiting: node {drained} still leads {} groups", led.leads));
                }
            }
        });
        let result = done(node, as_json, ClusterRequest::Drain { node: drained });
        drop(ended);
        result
    })
}

/// Sends a request to the node that runs on this directory.
fn asked(data_dir: &Path, request: ClusterRequest) -> anyhow::Result<Value> {
    match ask(data_dir, &SocketRequest::Cluster(request))? {
        Some(SocketReply::Done(value)) => Ok(value),
        Some(SocketReply::Refused(why)) => anyhow::bail!(why),
        None => anyhow::bail!(
            "no node runs on {}: start it with `assay serve --data-dir {}`, or name another with --data-dir",
            data_dir.display(),
            data_dir.display()
        ),
    }
}

/// Prepares an empty directory as a node of the cluster of a token.
pub fn join(data_dir: &Path, token: &str, peer_address: &str) -> anyhow::Result<Value> {
    PeerConfig::new(peer_address, None).map_err(anyhow::Error::msg)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let joined = runtime.block_on(assay_cluster::join(Arc::new(RealDisk), data_dir, token, peer_address))?;
    Ok(serde_json::to_value(joined)?)
}

fn print_prepared(data_dir: &Path, peer_address: &str, as_json: bool, node: &Value) -> anyhow::Result<()> {
    print(as_json, node, |node| {
        let (number, cluster, dir) = (&node["node"], text(&node["cluster"]), data_dir.display());
        format!(
            "{dir} is node {number} of cluster {cluster}; start it with `assay serve --data-dir {dir} --peer-address \
             {peer_address}`, and `--listen ADDRESS:PORT` for clients on other machines"
        )
    })
}

fn token_from(token: Option<String>, file: Option<PathBuf>) -> anyhow::Result<String> {
    match (token, file) {
        (Some(token), _) => Ok(token),
        (None, Some(file)) => std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display())),
        (None, None) => anyhow::bail!("pass a token, or a file that contains one with --token-file"),
    }
}

/// Describes what a recovery would give up, for the confirmation.
fn would_be_lost(found: &Recovery) -> String {
    let list = |items: Vec<String>| items.join(", ");
    let shards = |shards: &[ShardId]| list(shards.iter().map(ToString::to_string).collect());
    let mut said = format!(
        "Node {} would continue alone, with its data of {} shards. It would give up the nodes {} for good. \
         Acknowledged writes that only they had are lost. ",
        found.node,
        found.kept,
        list(found.given_up.iter().map(ToString::to_string).collect()),
    );
    said += &match found.lost.is_empty() {
        true => "No shard is lost completely: this node has a replica of each.".to_owned(),
        false => format!("This node has no replica of the shards {}: they are lost.", shards(&found.lost)),
    };
    if !found.not_voting.is_empty() {
        said += &format!(
            " Its replicas of the shards {} had no vote: they may lack acknowledged writes, even old ones.",
            shards(&found.not_voting)
        );
    }
    if found.catalog_not_voting {
        said += " Its replica of the catalog had no vote and may be out of date.";
    }
    said + " Never start a node on the directories of the given-up nodes again: together they could still act as the \
            old cluster."
}

fn recover(data_dir: &Path, force: bool, yes: bool, as_json: bool) -> anyhow::Result<()> {
    let config = ClusterConfig { data_dir: data_dir.to_owned(), ..ClusterConfig::default() };
    let found = assay_cluster::recovery(&config)?;
    if !force {
        let nothing_done = " Nothing was changed: pass --force to do it.";
        return print(as_json, &serde_json::to_value(&found)?, |_| would_be_lost(&found) + nothing_done);
    }
    if !as_json {
        output::line(would_be_lost(&found))?;
    } else if !yes {
        output::note(would_be_lost(&found)); // what is asked about; the output is one document
    }
    anyhow::ensure!(yes || agreed()?, "nothing was changed");
    let runtime = tokio::runtime::Runtime::new()?;
    let done = runtime.block_on(assay_cluster::recover(&config))?;
    print(as_json, &serde_json::to_value(&done)?, |_| {
        format!("Done; start the node with `assay serve --data-dir {}`, then let other nodes join.", data_dir.display())
    })
}

fn agreed() -> anyhow::Result<bool> {
    output::note("Type the word yes to continue:");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(line.trim() == "yes")
}

fn show(node: &RunningNode, wait: bool, as_json: bool) -> anyhow::Result<()> {
    let status = match wait {
        true => settled_of(node, &|| false)?.context("the wait for the cluster was interrupted")?,
        false => node.status()?,
    };
    print(as_json, &serde_json::to_value(&status)?, |_| status_text(&status))
}

/// Waits until the cluster of the node that runs on this directory has settled. Returns `None` where `ends` became true first.
pub fn settled(data_dir: &Path, ends: &dyn Fn() -> bool) -> anyhow::Result<Option<ClusterStatus>> {
    settled_of(&RunningNode::Directory(data_dir.to_owned()), ends)
}

/// Waits until the cluster has settled, and reports on stderr what is left.
fn settled_of(node: &RunningNode, ends: &dyn Fn() -> bool) -> anyhow::Result<Option<ClusterStatus>> {
    let until = Instant::now() + SETTLE_MAX;
    let (mut last, mut said_at) = (String::new(), None::<Instant>);
    while !ends() {
        let status = match node.status() {
            Ok(status) => status,
            Err(error) => {
                // A node that stops answers nobody; what it stops for may be heard here a moment later.
                std::thread::sleep(STATUS_POLL_INTERVAL);
                if ends() {
                    break;
                }
                return Err(error);
            }
        };
        if status.settled {
            return Ok(Some(status));
        }
        let left = status.unsettled.join("; ");
        anyhow::ensure!(Instant::now() < until, not_settled(&left));
        if left != last && said_at.is_none_or(|at| at.elapsed() >= PROGRESS_INTERVAL) {
            output::note(format_args!("waiting: {left}"));
            (last, said_at) = (left, Some(Instant::now()));
        }
        std::thread::sleep(STATUS_POLL_INTERVAL);
    }
    Ok(None)
}

/// Returns a token of the node that runs on this directory.
pub fn token(data_dir: &Path) -> anyhow::Result<String> {
    let answer = asked(data_dir, ClusterRequest::Token { minutes: TOKEN_VALID_MINUTES })?;
    Ok(text(&answer["token"]).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_the_defaults_that_init_takes() {
        let mut command = ClusterCommand::augment_subcommands(clap::Command::new("cluster"));
        let help = command.find_subcommand_mut("init").expect("a subcommand").render_long_help().to_string();
        for default in [assay_cluster::SHARDS_DEFAULT, assay_cluster::REPLICAS_DEFAULT] {
            assert!(help.contains(&format!("[default: {default}]")), "{help}");
        }
    }
}
