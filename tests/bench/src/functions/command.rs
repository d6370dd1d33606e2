//! Command line of `functions`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::FunctionsOptions;
use crate::http::program;
use crate::{Common, ProgramArg, Scratch};

#[derive(Debug, Subcommand)]
pub enum FunctionsCommand {
    /// Code functions in `assay serve`, beside the bare interpreters that run them
    Functions(FunctionsArgs),
}

#[derive(Debug, Args)]
pub struct FunctionsArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    program: ProgramArg,
    /// Program of Node.js
    #[arg(long, value_name = "FILE", default_value = "node")]
    node: PathBuf,
    /// Program of Python
    #[arg(long, value_name = "FILE", default_value = "python3")]
    python: PathBuf,
    /// Clients that call at the same time
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    connections: u16,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Measurements of each language, taken in turns
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Cold starts of each language
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..))]
    starts: u16,
    /// Calls at the same time, each with memory; 0 leaves them out
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(..=1000))]
    crowd: u16,
    /// Seconds that these calls last, with the starts of their workers
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(10..=50))]
    crowd_seconds: u64,
    /// Rows of the evaluation; 0 leaves it out
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(..=100_000))]
    rows: u32,
    /// Python environment of the SDK, made if missing; by default beside this program
    #[arg(long, value_name = "FOLDER")]
    environment: Option<PathBuf>,
}

pub fn run(command: FunctionsCommand) -> anyhow::Result<()> {
    let FunctionsCommand::Functions(args) = command;
    let options = FunctionsOptions {
        program: program(args.program.program)?,
        node: args.node,
        python: args.python,
        connections: args.connections.into(),
        time: Duration::from_secs(args.seconds),
        rounds: args.rounds.into(),
        starts: args.starts.into(),
        crowd: args.crowd.into(),
        crowd_time: Duration::from_secs(args.crowd_seconds),
        rows: args.rows as usize,
        environment: args.environment,
    };
    let scratch = Scratch::within(&args.common.dir)?;
    super::run(&options, scratch.path(), args.common.json.as_deref())
}
