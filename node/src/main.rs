//! The program `assay`: allocator, hardening, and the command line.

mod admin_api;
mod cli;
mod code_functions;
mod config;
mod https_client;
mod metrics;
mod model_calls;
mod outbound;
mod process;
mod serve;

use std::ffi::OsString;
use std::process::ExitCode;

use assay_node_runner::runtimes::WORKER_COMMAND;
use assay_node_runner::{STAGE_COMMAND, run_stage};
use tikv_jemallocator::Jemalloc;

/// Returns freed memory to the system soon, also from other threads than those that freed it: node/decisions/0008.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match arguments.split_first() {
        // A sandbox executes this program again, to restrict itself before any thread starts.
        Some((command, rest)) if command == STAGE_COMMAND => enter_sandbox(rest),
        Some((command, rest)) if command == WORKER_COMMAND => serve_functions(rest),
        _ => cli::main(),
    }
}

/// Becomes the interpreter of a code function. Returns only on failure.
fn enter_sandbox(arguments: &[OsString]) -> ExitCode {
    match run_stage(arguments) {
        Ok(never) => match never {},
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Serves code functions of one worker inside of its sandbox.
fn serve_functions(arguments: &[OsString]) -> ExitCode {
    match code_functions::serve_worker(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why:#}");
            ExitCode::FAILURE
        }
    }
}
