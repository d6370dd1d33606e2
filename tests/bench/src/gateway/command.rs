//! Command lines of `gateway` and of the servers that it starts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::{GatewayOptions, bare_proxy, model_server};
use crate::http::program;
use crate::{Common, ProgramArg, Scratch};

#[derive(Debug, Subcommand)]
pub enum GatewayCommand {
    /// Model calls through `assay serve`, beside a bare proxy and LiteLLM's proxy with the same scripted model server
    Gateway(GatewayArgs),
    #[command(hide = true)]
    ModelServer,
    #[command(hide = true)]
    BareProxy { upstream: SocketAddr },
}

#[derive(Debug, Args)]
pub struct GatewayArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    program: ProgramArg,
    /// Clients that call at the same time
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    connections: u16,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Measurements of each side, taken in turns
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Open streams whose memory is measured
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u16).range(1..=4000))]
    streams: u16,
    /// Leave LiteLLM's proxy out
    #[arg(long)]
    without_litellm: bool,
    /// Python environment of LiteLLM's proxy, made if missing; by default beside this program
    #[arg(long, value_name = "FOLDER")]
    environment: Option<PathBuf>,
}

pub fn run(command: GatewayCommand) -> anyhow::Result<()> {
    match command {
        GatewayCommand::ModelServer => model_server::run(),
        GatewayCommand::BareProxy { upstream } => bare_proxy::run(upstream),
        GatewayCommand::Gateway(args) => {
            let options = GatewayOptions {
                program: program(args.program.program)?,
                connections: args.connections.into(),
                time: Duration::from_secs(args.seconds),
                rounds: args.rounds.into(),
                streams: args.streams.into(),
                litellm: (!args.without_litellm).then_some(args.environment),
            };
            let scratch = Scratch::within(&args.common.dir)?;
            super::run(&options, scratch.path(), args.common.json.as_deref())
        }
    }
}
