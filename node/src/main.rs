//! The program `assay`: allocator, hardening, and the command line.

mod admin_api;
mod cli;
mod config;
mod https_client;
mod metrics;
mod model_calls;
mod outbound;
mod process;
mod serve;

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

/// Returns freed memory to the system soon, also from other threads than those that freed it: node/decisions/0008.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    cli::main()
}
