//! Report of `assay doctor` on a data directory.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use assay_test_api::server::program;

/// Its findings, a line each; an error where it finds anything but that all is well.
pub fn examine(data: &Path) -> Result<String> {
    let output =
        Command::new(program()?).args(["doctor", "--data-dir"]).arg(data).output().context("it does not run")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    anyhow::ensure!(
        output.status.success() && said.contains("no problems found"),
        "the doctor: {}\n{said}",
        output.status
    );
    Ok(said)
}
