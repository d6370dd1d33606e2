//! Command lines of the cluster benchmarks.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::{failover, founding, idle, peers, replace, rolling};
use crate::http::program;
use crate::{Common, ProgramArg, Scratch, bytes_of};

#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Resources that three idle nodes use
    Idle(IdleArgs),
    /// Time until three nodes have founded a cluster and serve
    Found(FoundArgs),
    /// Time in which a shard takes no writes when its leader is killed, and when it is stopped as planned
    Failover(FailoverArgs),
    /// Values of 1 KB made durable by three nodes, against etcd and NATS with three servers each
    Peers(PeersArgs),
    /// All nodes restarted one after the other while clients write and read
    Rolling(RollingArgs),
    /// One of three nodes lost and replaced by an empty one while clients insert
    Replace(ReplaceArgs),
}

#[derive(Debug, Args)]
pub struct IdleArgs {
    #[command(flatten)]
    shared: Shared,
    /// New projects with a row in each
    #[arg(long, default_value_t = 256)]
    objects: usize,
    /// Seconds of the measurement
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Seconds of rest before the measurement; by default as long as everything needs to come to rest
    #[arg(long)]
    rest: Option<u64>,
}

#[derive(Debug, Args)]
pub struct FoundArgs {
    #[command(flatten)]
    shared: Shared,
    /// How often a cluster is founded
    #[arg(long, default_value_t = 20)]
    runs: usize,
}

#[derive(Debug, Args)]
pub struct FailoverArgs {
    #[command(flatten)]
    shared: Shared,
    /// Number of kills of a leading node
    #[arg(long, default_value_t = 30)]
    kills: usize,
    /// Number of drains, each with a stop and a start
    #[arg(long, default_value_t = 30)]
    drains: usize,
}

#[derive(Debug, Args)]
pub struct PeersArgs {
    #[command(flatten)]
    shared: Shared,
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    clients: u16,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Rows of a request, for each run of Assay
    #[arg(long, value_delimiter = ',', default_value = "1,10,100", value_parser = clap::value_parser!(u16).range(1..=1000))]
    batches: Vec<u16>,
    /// New projects that Assay's clients write to in turn
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    projects: u16,
}

#[derive(Debug, Args)]
pub struct RollingArgs {
    #[command(flatten)]
    shared: Shared,
    /// Number of restarts of all nodes
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

#[derive(Debug, Args)]
pub struct ReplaceArgs {
    #[command(flatten)]
    shared: Shared,
    /// Bytes inserted before the node is lost
    #[arg(long, default_value = "5GB", value_parser = bytes_of)]
    bytes: u64,
    /// Inserting connections, each into a project of its own
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    connections: u16,
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..))]
    rows_per_request: u16,
}

/// Options of every command on a cluster.
#[derive(Debug, Args)]
struct Shared {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    program: ProgramArg,
    /// Leave the nodes' directories and logs behind
    #[arg(long)]
    keep: bool,
}

impl Shared {
    fn open(self) -> anyhow::Result<(PathBuf, Scratch, Option<PathBuf>, u64)> {
        let program = program(self.program.program)?;
        let mut scratch = Scratch::within(&self.common.dir)?;
        if self.keep {
            scratch.keep();
        }
        Ok((program, scratch, self.common.json, self.common.seed))
    }
}

pub fn run(command: ClusterCommand) -> anyhow::Result<()> {
    match command {
        ClusterCommand::Found(args) => {
            let (program, scratch, json, _) = args.shared.open()?;
            founding::run(&program, args.runs, scratch.path(), json.as_deref())
        }
        ClusterCommand::Idle(args) => {
            let (program, scratch, json, _) = args.shared.open()?;
            let rest = args.rest.map(Duration::from_secs);
            let options = idle::IdleOptions { program, objects: args.objects, rest, seconds: args.seconds };
            idle::run(&options, scratch.path(), json.as_deref())
        }
        ClusterCommand::Failover(args) => {
            let (program, scratch, json, _) = args.shared.open()?;
            let options = failover::FailoverOptions { program, kills: args.kills, drains: args.drains };
            failover::run(&options, scratch.path(), json.as_deref())
        }
        ClusterCommand::Peers(args) => {
            let (program, scratch, json, seed) = args.shared.open()?;
            let options = peers::PeerOptions {
                program,
                clients: args.clients.into(),
                seconds: args.seconds,
                batches: args.batches.into_iter().map(usize::from).collect(),
                projects: args.projects.into(),
                seed,
            };
            peers::run(&options, scratch.path(), json.as_deref())
        }
        ClusterCommand::Rolling(args) => {
            let (program, scratch, json, _) = args.shared.open()?;
            let options = rolling::RollingOptions { program, rounds: args.rounds };
            rolling::run(&options, scratch.path(), json.as_deref())
        }
        ClusterCommand::Replace(args) => {
            let (program, scratch, json, seed) = args.shared.open()?;
            let options = replace::ReplaceOptions {
                program,
                bytes: args.bytes,
                clients: args.connections.into(),
                rows_per_request: args.rows_per_request.into(),
                seed,
            };
            replace::run(&options, scratch.path(), json.as_deref())
        }
    }
}
