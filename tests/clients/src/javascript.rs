//! JavaScript's SDK and all that it needs, in a folder made once and kept beside what cargo builds.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

use crate::installed::{checked, installed, said};

const PACKAGE: &str = include_str!("../javascript/package.json");
/// Every package at its version.
const LOCK: &str = include_str!("../javascript/package-lock.json");

/// Where the packages are; why not, where they cannot be had.
pub fn environment() -> Result<&'static Path, String> {
    static ENVIRONMENT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| made().map_err(|error| format!("{error:#}"))).as_deref().map_err(Clone::clone)
}

fn made() -> Result<PathBuf> {
    installed("javascript", LOCK, |folder| {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("package.json"), PACKAGE)?;
        std::fs::write(folder.join("package-lock.json"), LOCK)?;
        let mut install = Command::new("npm");
        install.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(folder);
        checked(&mut install)
    })
}

/// Runs one script of `javascript/`.
pub fn run(packages: &Path, script: &str, run: &str, url: &str, key: &str) -> Result<()> {
    let scripts = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("javascript");
    // Modules look for packages above where they lie: each run has its scripts beside them.
    let folder = packages.join("runs").join(format!("{}-{run}-{script}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    for name in ["reading.mjs", script] {
        std::fs::copy(scripts.join(name), folder.join(name)).with_context(|| format!("copying {name}"))?;
    }
    let mut command = Command::new("node");
    command.current_dir(&folder).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", &folder).env("BRAINTRUST_APP_URL", url).env("BRAINTRUST_API_KEY", key);
    let output = command.args([script, run]).output().context("node does not run")?;
    std::fs::remove_dir_all(&folder)?;
    if !output.status.success() {
        bail!("{script}: {}\n{}", output.status, said(&output));
    }
    Ok(())
}
