//! `assay cluster`: making nodes into one cluster and running it, for whoever owns the data directory.
//!
//! `init` and `join` prepare a directory while no node runs on it, and `recover` changes one. Everything else is asked of
//! a running node, through the socket in its directory or its administrators' listener (`remote`, `desk`); any node of the
//! cluster will do.
//!
//! Asked again, each finds its work done: `init` and `join` also where a node runs on the directory by now, and without
//! asking it. Only a token that is printed is another one every time; one that is in a file (`--output`) stays, and nobody
//! is asked for it. So whatever prepares a cluster may run before every start of it, when no majority is there yet.

mod founded;
mod stopping;
mod ticket;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::Context;
use assay_cluster::{Cluster, ClusterConfig, ClusterStatus, NodeState, OperateError, PeerConfig, Recovery};
use assay_storage_disk::RealDisk;
use assay_storage_model::{NodeId, ShardId};
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::admin::{Answer, Request, ask};
use crate::out;
use crate::remote::{Remote, RemoteArgs};
pub use founded::{Wanted, init};

/// How long `status --wait` waits.
pub const SETTLE_MAX: Duration = Duration::from_secs(600);
pub const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Progress of what takes long is said at most this often.
pub const SAID_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// A drain is short or hangs: who waits for one wants to know sooner.
const DRAIN_SAID_AFTER: Duration = Duration::from_secs(1);
const TOKEN_VALID_MINUTES: u64 = 60;

/// `assay cluster`: which node is asked, how the answer is to look, and what is asked.
#[derive(Debug, Args)]
pub struct ClusterArgs {
    /// The data directory of a node
    #[arg(long, value_name = "DIR", default_value = "./assay-data", global = true)]
    data_dir: PathBuf,
    /// Answer as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(subcommand)]
    command: ClusterCommand,
}

/// What `assay cluster` does.
#[derive(Clone, Debug, Subcommand)]
pub enum ClusterCommand {
    /// Found a cluster in an empty directory; its first node is then started with `assay serve`
    Init {
        /// Where other nodes reach this one: host:port
        #[arg(long, value_name = "HOST:PORT")]
        peer_address: String,
        /// Shards, fixed from then on (4 to 256) [default: 16]
        #[arg(long)]
        shards: Option<u16>,
        /// Replicas of each shard, once there are nodes enough; fixed from then on [default: 3]
        #[arg(long)]
        replicas: Option<u16>,
    },
    /// Print a token with which one node may join
    Token {
        /// How long it is valid
        #[arg(long, value_name = "MINUTES", default_value_t = TOKEN_VALID_MINUTES)]
        minutes: u64,
        /// Write it to a file that only its owner can read, instead of printing it; where that holds a token already, it
        /// stays, and no node is asked
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Write another one over the token that is in the file: that one was used, or ran out
        #[arg(long, requires = "output")]
        anew: bool,
    },
    /// Let an empty directory join the cluster of a token; the node is then started with `assay serve`
    Join {
        /// As `assay cluster token` printed it
        #[arg(required_unless_present = "token_file")]
        token: Option<String>,
        /// A file that holds the token
        #[arg(long, value_name = "FILE", conflicts_with = "token")]
        token_file: Option<PathBuf>,
        /// Where other nodes reach this one: host:port
        #[arg(long, value_name = "HOST:PORT")]
        peer_address: String,
    },
    /// Show nodes and groups
    Status {
        /// Wait until every group has the replicas it is to have, and a leader
        #[arg(long)]
        wait: bool,
    },
    /// Take the lead of everything away from a node, before it is stopped; `undrain` ends it
    Drain { node: u64 },
    /// Let a drained node lead again
    Undrain { node: u64 },
    /// Give up a node that never comes back: what it had is rebuilt on others, its number is not used again. Refused while
    /// a group would lose its majority by it
    Remove { node: u64 },
    /// Give up a node for one that has joined and runs; refused as remove is
    Replace { old: u64, new: u64 },
    /// Wait until replicas are where they are to be; nodes move them by themselves
    Rebalance,
    /// Go on with what this node has, after a majority was lost for good
    Recover {
        /// Do it; without this only what would be lost is printed
        #[arg(long)]
        force: bool,
        /// Do not ask
        #[arg(long, requires = "force")]
        yes: bool,
    },
}

/// What a running node is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ClusterRequest {
    Token {
        #[serde(default = "token_valid_minutes")]
        minutes: u64,
    },
    Status,
    Drain {
        node: u64,
    },
    Undrain {
        node: u64,
    },
    Remove {
        node: u64,
    },
    Replace {
        old: u64,
        new: u64,
    },
}

fn token_valid_minutes() -> u64 {
    TOKEN_VALID_MINUTES
}

pub fn run(args: ClusterArgs) -> anyhow::Result<()> {
    let ClusterArgs { data_dir, json: as_json, remote, command } = args;
    let (data_dir, remote) = (&data_dir, remote.or_environment()?);
    if let Some(url) = &remote.admin
        && let Some(name) = on_a_directory(&command)
    {
        anyhow::bail!(
            "`{name}` works on a data directory that no node runs on: do it on that machine, without --admin {url}"
        );
    }
    match command {
        ClusterCommand::Init { peer_address, shards, replicas } => {
            let node = init(data_dir, Wanted { peer_address: &peer_address, shards, replicas })?;
            made(data_dir, &peer_address, as_json, &node)
        }
        ClusterCommand::Join { token, token_file, peer_address } => {
            let node = join(data_dir, &given(token, token_file)?, &peer_address)?;
            made(data_dir, &peer_address, as_json, &node)
        }
        ClusterCommand::Recover { force, yes } => recover(data_dir, force, yes, as_json),
        command => {
            let node = match Remote::of(&remote, data_dir)? {
                Some(remote) => Node::Listener(remote),
                None => Node::Directory(data_dir.to_owned()),
            };
            ask_node(&node, command, as_json)
        }
    }
}

/// What is done without a running node.
fn on_a_directory(command: &ClusterCommand) -> Option<&'static str> {
    match command {
        ClusterCommand::Init { .. } => Some("init"),
        ClusterCommand::Join { .. } => Some("join"),
        ClusterCommand::Recover { .. } => Some("recover"),
        _ => None,
    }
}

fn ask_node(node: &Node, command: ClusterCommand, as_json: bool) -> anyhow::Result<()> {
    match command {
        ClusterCommand::Token { minutes, output, anew } => {
            let ask = || node.ask(ClusterRequest::Token { minutes });
            match output {
                Some(file) => {
                    let make = || Ok(text(&ask()?["token"]).to_owned());
                    said(as_json, &ticket::keep(&file, anew, make)?, ticket::in_words)
                }
                None => said(as_json, &ask()?, |answer| text(&answer["token"]).to_owned()),
            }
        }
        ClusterCommand::Status { wait } => show(node, wait, as_json),
        ClusterCommand::Rebalance => show(node, true, as_json),
        ClusterCommand::Drain { node: drained } => drain(node, drained, as_json),
        ClusterCommand::Undrain { node: drained } => done(node, as_json, ClusterRequest::Undrain { node: drained }),
        ClusterCommand::Remove { node: removed } => done(node, as_json, ClusterRequest::Remove { node: removed }),
        ClusterCommand::Replace { old, new } => done(node, as_json, ClusterRequest::Replace { old, new }),
        ClusterCommand::Init { .. } | ClusterCommand::Join { .. } | ClusterCommand::Recover { .. } => {
            anyhow::bail!("it is done on a data directory, not by a node that runs")
        }
    }
}

/// A running node, and the way to it.
enum Node {
    /// Through the socket in its data directory.
    Directory(PathBuf),
    Listener(Remote),
}

impl Node {
    fn ask(&self, request: ClusterRequest) -> anyhow::Result<Value> {
        match self {
            Node::Directory(data_dir) => asked(data_dir, request),
            Node::Listener(remote) => remote.ask(&request),
        }
    }

    fn status(&self) -> anyhow::Result<ClusterStatus> {
        Ok(serde_json::from_value(self.ask(ClusterRequest::Status)?)?)
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn said(as_json: bool, value: &Value, in_words: impl Fn(&Value) -> String) -> anyhow::Result<()> {
    match as_json {
        true => out::json(value),
        false => out::line(in_words(value)),
    }
}

fn done(node: &Node, as_json: bool, request: ClusterRequest) -> anyhow::Result<()> {
    said(as_json, &node.ask(request)?, |answer| match answer["warning"].as_str() {
        Some(warning) => format!("{}; {warning}", text(&answer["done"])),
        None => text(&answer["done"]).to_owned(),
    })
}

/// Says on stderr what the node still leads, while it is waited for.
fn drain(node: &Node, drained: u64, as_json: bool) -> anyhow::Result<()> {
    let (ended, end) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(DRAIN_SAID_AFTER) {
                // The drain itself says what went wrong.
                let status = node.status().ok();
                let led = status.and_then(|status| status.nodes.into_iter().find(|found| found.id.0 == drained));
                if let Some(led) = led.filter(|led| led.leads > 0) {
                    out::note(format_args!("waiting: node {drained} still leads {} groups", led.leads));
                }
            }
        });
        let result = done(node, as_json, ClusterRequest::Drain { node: drained });
        drop(ended);
        result
    })
}

/// Of the node that runs on this directory.
fn asked(data_dir: &Path, request: ClusterRequest) -> anyhow::Result<Value> {
    match ask(data_dir, &Request::Cluster(request))? {
        Some(Answer::Done(value)) => Ok(value),
        Some(Answer::Refused(why)) => anyhow::bail!(why),
        None => anyhow::bail!(
            "no node runs on {}: start it with `assay serve --data-dir {}`, or name another with --data-dir",
            data_dir.display(),
            data_dir.display()
        ),
    }
}

pub fn join(data_dir: &Path, token: &str, peer_address: &str) -> anyhow::Result<Value> {
    PeerConfig::new(peer_address, None).map_err(anyhow::Error::msg)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let joined = runtime.block_on(assay_cluster::join(Arc::new(RealDisk), data_dir, token, peer_address))?;
    Ok(serde_json::to_value(joined)?)
}

fn made(data_dir: &Path, peer_address: &str, as_json: bool, node: &Value) -> anyhow::Result<()> {
    said(as_json, node, |node| {
        let (number, cluster, dir) = (&node["node"], text(&node["cluster"]), data_dir.display());
        format!(
            "{dir} is node {number} of cluster {cluster}; start it with `assay serve --data-dir {dir} --peer-address \
             {peer_address}`, and `--listen ADDRESS:PORT` for clients on other machines"
        )
    })
}

fn given(token: Option<String>, file: Option<PathBuf>) -> anyhow::Result<String> {
    match (token, file) {
        (Some(token), _) => Ok(token),
        (None, Some(file)) => std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display())),
        (None, None) => anyhow::bail!("name a token, or a file that holds one with --token-file"),
    }
}

/// What is asked before a recovery.
fn would_be_lost(found: &Recovery) -> String {
    let list = |items: Vec<String>| items.join(", ");
    let shards = |shards: &[ShardId]| list(shards.iter().map(ToString::to_string).collect());
    let mut said = format!(
        "Node {} would go on alone, with what it has of {} shards. Given up for good: nodes {}. Acknowledged writes that only \
         they had are lost. ",
        found.node,
        found.kept,
        list(found.given_up.iter().map(ToString::to_string).collect()),
    );
    said += &match found.lost.is_empty() {
        true => "No shard is lost whole: this node has a replica of each.".to_owned(),
        false => format!("Of shards {} nothing is here.", shards(&found.lost)),
    };
    if !found.not_voting.is_empty() {
        said += &format!(
            " Its replicas of shards {} had no vote: they may lack acknowledged writes from long ago.",
            shards(&found.not_voting)
        );
    }
    if found.catalog_not_voting {
        said += " Its replica of the catalog had no vote, and may be behind.";
    }
    said + " The directories of nodes that are given up must never be started again: together they may still answer for the \
            old cluster."
}

fn recover(data_dir: &Path, force: bool, yes: bool, as_json: bool) -> anyhow::Result<()> {
    let config = ClusterConfig { data_dir: data_dir.to_owned(), ..ClusterConfig::default() };
    let found = assay_cluster::recovery(&config)?;
    if !force {
        let nothing_done = " Nothing was changed: --force does it.";
        return said(as_json, &serde_json::to_value(&found)?, |_| would_be_lost(&found) + nothing_done);
    }
    if !as_json {
        out::line(would_be_lost(&found))?;
    } else if !yes {
        out::note(would_be_lost(&found)); // what is asked about; the output is one document
    }
    anyhow::ensure!(yes || agreed()?, "nothing was changed");
    let runtime = tokio::runtime::Runtime::new()?;
    let done = runtime.block_on(assay_cluster::recover(&config))?;
    said(as_json, &serde_json::to_value(&done)?, |_| {
        format!("Done; start the node with `assay serve --data-dir {}`, then let others join.", data_dir.display())
    })
}

fn agreed() -> anyhow::Result<bool> {
    out::note("Type the word yes to go on:");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(line.trim() == "yes")
}

fn show(node: &Node, wait: bool, as_json: bool) -> anyhow::Result<()> {
    let status = match wait {
        true => settled_of(node, &|| false)?.context("waiting for the cluster was ended")?,
        false => node.status()?,
    };
    said(as_json, &serde_json::to_value(&status)?, |_| in_words(&status))
}

/// Waits until the cluster of the node that runs on this directory has settled; none where `ends` said so before.
pub fn settled(data_dir: &Path, ends: &dyn Fn() -> bool) -> anyhow::Result<Option<ClusterStatus>> {
    settled_of(&Node::Directory(data_dir.to_owned()), ends)
}

pub fn not_settled(left: &str) -> String {
    format!("not settled after {} s: {left}", SETTLE_MAX.as_secs())
}

/// Says on stderr what is still to be done.
fn settled_of(node: &Node, ends: &dyn Fn() -> bool) -> anyhow::Result<Option<ClusterStatus>> {
    let until = Instant::now() + SETTLE_MAX;
    let (mut last, mut said_at) = (String::new(), None::<Instant>);
    while !ends() {
        let status = match node.status() {
            Ok(status) => status,
            Err(error) => {
                // A node that stops answers nobody; what it stops for may be heard here a moment later.
                std::thread::sleep(LOOK_AGAIN_AFTER);
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
        if left != last && said_at.is_none_or(|at| at.elapsed() >= SAID_AGAIN_AFTER) {
            out::note(format_args!("waiting: {left}"));
            (last, said_at) = (left, Some(Instant::now()));
        }
        std::thread::sleep(LOOK_AGAIN_AFTER);
    }
    Ok(None)
}

fn in_words(status: &ClusterStatus) -> String {
    let mut lines = vec![format!("cluster {}, asked on node {}", status.cluster, status.node)];
    for node in &status.nodes {
        let state = match (node.state, node.answers) {
            (NodeState::Removed, _) => "removed",
            (NodeState::Draining, _) => "draining",
            (NodeState::Active, true) => "active",
            (NodeState::Active, false) => "silent",
        };
        let address = node.address.as_deref().unwrap_or("no address");
        lines.push(format!("node {:<4} {state:<9} {address:<24} leads {} groups", node.id, node.leads));
    }
    for group in &status.groups {
        let name = group.shard.map_or_else(|| "catalog".to_owned(), |shard| format!("shard {shard}"));
        let leader = group.leader.map_or_else(|| "nobody".to_owned(), |node| format!("node {node}"));
        let voters = group.replicas.iter().filter(|replica| replica.votes()).map(|replica| replica.node);
        let voters: Vec<String> = voters.map(|node| node.to_string()).collect();
        let learners = group.replicas.iter().filter(|replica| !replica.votes()).count();
        let learners = if learners > 0 { format!(", {learners} learning") } else { String::new() };
        lines.push(format!("{name:<10} led by {leader:<8} on nodes {}{learners}", voters.join(", ")));
    }
    lines.push(match status.settled {
        true => "settled".to_owned(),
        false => format!("not settled: {}", status.unsettled.join("; ")),
    });
    lines.join("\n")
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The state of the cluster does not allow it.
    State(String),
    /// The catalog does not answer: it may be asked again, and may have been done.
    Unavailable(String),
}

impl Refused {
    pub fn why(self) -> String {
        match self {
            Refused::State(why) | Refused::Unavailable(why) => why,
        }
    }
}

impl From<OperateError> for Refused {
    fn from(error: OperateError) -> Refused {
        match error {
            OperateError::Write(_) | OperateError::Fence(_) => Refused::Unavailable(error.to_string()),
            _ => Refused::State(error.to_string()),
        }
    }
}

/// What a running node does when it is asked.
pub async fn carry_out(cluster: &Cluster, request: ClusterRequest) -> Result<Value, Refused> {
    if request != ClusterRequest::Status {
        tracing::info!(?request, "an operator asks");
    }
    let what = match request {
        ClusterRequest::Token { minutes } => {
            let token = cluster.make_token(Duration::from_secs(minutes.saturating_mul(60))).await?;
            return Ok(json!({ "token": token }));
        }
        ClusterRequest::Status => {
            let status = serde_json::to_value(cluster.status().await);
            return status.map_err(|error| Refused::State(error.to_string()));
        }
        ClusterRequest::Drain { node } => {
            cluster.drain(NodeId(node)).await?;
            if let Some(warning) = stopping::against(cluster, NodeId(node)).await {
                return Ok(json!({ "done": format!("node {node} leads nothing"), "warning": warning }));
            }
            format!("node {node} leads nothing and may be stopped")
        }
        ClusterRequest::Undrain { node } => {
            cluster.undrain(NodeId(node)).await?;
            format!("node {node} may lead again")
        }
        ClusterRequest::Remove { node } => {
            cluster.remove(NodeId(node)).await?;
            format!("node {node} is removed; `assay cluster status --wait` says when all of it is rebuilt")
        }
        ClusterRequest::Replace { old, new } => {
            cluster.replace(NodeId(old), NodeId(new)).await?;
            format!("node {new} takes the place of node {old}; `assay cluster status --wait` says when")
        }
    };
    Ok(json!({ "done": what }))
}

/// Of the node that runs on this directory.
pub fn token(data_dir: &Path) -> anyhow::Result<String> {
    let answer = asked(data_dir, ClusterRequest::Token { minutes: TOKEN_VALID_MINUTES })?;
    Ok(text(&answer["token"]).to_owned())
}

/// Where the data of a node of `assay dev` is.
pub fn dev_dir(data_dir: &Path, node: usize) -> PathBuf {
    data_dir.join(format!("node-{node}"))
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
