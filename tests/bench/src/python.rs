//! Python environments of programs that are measured beside ours, made once from a lock file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// Environment in a folder, with every package of a lock file.
#[derive(Clone, Copy, Debug)]
pub struct PythonEnvironment<'a> {
    /// Lock file: every package with its version.
    pub requirements: &'a str,
    /// Name of the programs in messages.
    pub programs: &'a str,
}

impl PythonEnvironment<'_> {
    /// Returns the path of Python in the environment; makes it if it is missing or has other versions.
    pub fn made(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        // Held until it is there: another bench may want it at the same time.
        let lock = File::create(folder.join("lock"))?;
        lock.lock()?;
        let (environment, marker) = (folder.join("python"), folder.join("installed"));
        let python = environment.join("bin/python");
        // Written last: an environment that was half made is made again.
        if std::fs::read_to_string(&marker).is_ok_and(|installed| installed == self.requirements) {
            return Ok(python);
        }
        eprintln!("installing {} into {}", self.programs, folder.display());
        let requirements = folder.join("requirements.lock");
        std::fs::write(&requirements, self.requirements)?;
        succeed(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement"]);
        succeed(install.arg(&requirements))?;
        std::fs::write(&marker, self.requirements)?;
        Ok(python)
    }
}

/// Returns the folder that was named, or one beside this program.
pub fn folder_beside(named: Option<PathBuf>, name: &str) -> anyhow::Result<PathBuf> {
    match named {
        Some(folder) => Ok(folder),
        None => Ok(std::env::current_exe().context("finding this program's own file")?.with_file_name(name)),
    }
}

fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{:?} does not run", command.get_program()))?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(())
}
