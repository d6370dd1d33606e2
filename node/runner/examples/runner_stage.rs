//! Program with nothing but the stage of sandboxes, for tests that run functions.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Some((command, rest)) = arguments.split_first() else { return ExitCode::from(2) };
    if command != assay_node_runner::STAGE_COMMAND {
        return ExitCode::from(2);
    }
    match assay_node_runner::run_stage(rest) {
        Ok(never) => match never {},
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
