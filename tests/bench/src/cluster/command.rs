//! The command lines of what is measured on clusters.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::{failover, founding, idle, peers, replace, rolling};
use crate::http::program;
use crate::{Common, ProgramArg, Scratch, bytes_of};

#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// What three nodes take that have nothing to do
    Idle(IdleArgs),
    /// How long three nodes take until they have founded a cluster and serve
    Found(FoundArgs),
    /// How long a shard takes no writes when its leader is killed, and when it is stopped as planned
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
    /// How long it is measured
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// How long nothing is done before that; as long as all of it needs to come to rest if not given
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
    /// How often a node that leads is killed
    #[arg(long, default_value_t = 30)]
    kills: usize,
    /// How often a node is drained, stopped and started
    #[arg(long, default_value_t = 30)]
    drains: usize,
}

#[derive(Debug, Args)]
pub struct PeersArgs {
    #[command(flatten)]
    shared: Shared,
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    clients: u16,
    /// How long each is measured
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
    /// How often all nodes are restarted
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

#[derive(Debug, Args)]
pub struct ReplaceArgs {
    #[command(flatten)]
    shared: Shared,
    /// What is inserted before the node is lost
    #[arg(long, default_value = "5GB", value_parser = bytes_of)]
    bytes: u64,
    /// That insert, each into a project of its own
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    connections: u16,
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..))]
    rows_per_request: u16,
}

/// What every command on a cluster is told.
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
            let options = idle::Options { program, objects: args.objects, rest, seconds: args.seconds };
            idle::run(&options, scratch.path(), json.as_deref())
        }
        ClusterCommand::Failover(args) => {
            let (program, scratch, json, _) = args.shared.open()?;
            let options = failover::Options { program, kills: args.kills, drains: args.drains };
            failover::run(&options, scratch.path(), json.as_deref())
        }
        ClusterCommand::Peers(args) => {
            let (program, scratch, json, seed) = args.shared.open()?;
            let options = peers::Options {
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
            let options = rolling::Options { program, rounds: args.rounds };
            rolling::run(&options, scratch.path(), json.as_deref())
        }
        ClusterCommand::Replace(args) => {
            let (program, scratch, json, seed) = args.shared.open()?;
            let options = replace::Options {
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
