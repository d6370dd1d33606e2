//! Environments that are installed once and cached in Cargo's target directory, and programs that run in them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

/// Messages of SDKs that drop rows, which is not reported as an error.
const DROPPED: [&str; 2] = ["log request failed", "Dropping batch"];

/// Locked folder with an installed environment.
#[derive(Debug)]
pub struct CachedEnvironment {
    folder: PathBuf,
    wanted: String,
    is_made: bool,
    /// Lock against other processes that need the same environment, held for the lifetime of this value.
    _lock: File,
}

impl CachedEnvironment {
    /// Opens the folder of an environment, which is empty unless the wanted versions are installed in it.
    pub fn open(name: &str, wanted: &str) -> Result<CachedEnvironment> {
        let above = beside_what_is_built()?;
        let lock = File::create(above.join("lock"))?;
        lock.lock()?;
        let folder = above.join(name);
        let is_made = std::fs::read_to_string(folder.join(MARKER)).is_ok_and(|installed| installed == wanted);
        if !is_made && folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        Ok(CachedEnvironment { folder, wanted: wanted.to_owned(), is_made, _lock: lock })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn is_made(&self) -> bool {
        self.is_made
    }

    /// Marks the environment as complete.
    pub fn made(self) -> Result<()> {
        Ok(std::fs::write(self.folder.join(MARKER), &self.wanted)?)
    }
}

/// Name of the file that lists the installed versions.
///
/// It is written last, so an incomplete or outdated environment is installed again.
const MARKER: &str = "installed";

/// Returns a folder in Cargo's target directory, for a test or a program.
fn beside_what_is_built() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().context("a folder of this program's file")?;
    let profile = if folder.ends_with("deps") { folder.parent() } else { Some(folder) };
    let target = profile.and_then(Path::parent).context("a target directory above this program")?;
    let folder = target.join("clients");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Runs a script. Returns an error if the script fails or its SDK drops rows.
pub fn ends_well(script: &str, command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{:?} does not run", command.get_program()))?;
    let said = said(&output);
    if !output.status.success() || DROPPED.iter().any(|words| said.contains(words)) {
        bail!("{script}: {}\n{said}", output.status);
    }
    Ok(())
}

pub fn checked(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{:?} does not run", command.get_program()))?;
    if !output.status.success() {
        bail!("{command:?}: {}\n{}", output.status, said(&output));
    }
    Ok(())
}

/// Returns the standard output and the standard error of a process.
pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
