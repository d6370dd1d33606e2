//! The JavaScript SDK with its dependencies, installed once and cached in cargo's target directory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result};

use crate::kept::{CachedEnvironment, checked, ends_well};

/// Required packages, each with its version and the hash of its download.
const PACKAGE: &str = include_str!("../javascript/package.json");
const LOCK: &str = include_str!("../javascript/package-lock.json");

/// Node and the packages.
#[derive(Clone, Debug)]
pub struct Environment {
    packages: PathBuf,
}

/// Node with the SDK; why not, where it cannot be had.
pub fn environment() -> Result<&'static Environment, String> {
    static ENVIRONMENT: OnceLock<Result<Environment, String>> = OnceLock::new();
    let make = || made("javascript", PACKAGE, LOCK).map_err(|error| format!("{error:#}"));
    ENVIRONMENT.get_or_init(make).as_ref().map_err(Clone::clone)
}

/// A directory of its own for one script: it finds its packages above it.
#[derive(Debug)]
pub struct Home {
    folder: tempfile::TempDir,
}

impl Environment {
    /// Returns the folder of the packages.
    pub fn packages(&self) -> &Path {
        &self.packages
    }

    pub fn home(&self) -> Result<Home> {
        let folder = tempfile::tempdir()?;
        std::os::unix::fs::symlink(&self.packages, folder.path().join("node_modules"))?;
        let scripts = folder.path().join("scripts");
        std::fs::create_dir(&scripts)?;
        let here = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("javascript");
        let entries = std::fs::read_dir(&here).with_context(|| format!("no scripts in {}", here.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "mjs")
                && let Some(name) = path.file_name()
            {
                std::fs::copy(&path, scripts.join(name))?;
            }
        }
        Ok(Home { folder })
    }
}

impl Home {
    /// The words that start a script, as JSON: a script of another language starts it too.
    pub fn words(&self, script: &str) -> String {
        format!("[\"node\", {:?}]", self.script(script).display().to_string())
    }

    /// Returns the directory of the scripts.
    pub fn scripts(&self) -> PathBuf {
        self.folder.path().join("scripts")
    }

    fn script(&self, name: &str) -> PathBuf {
        self.scripts().join(name)
    }

    /// Adds a script to those in this directory.
    pub fn add(&self, name: &str, text: &str) -> Result<()> {
        Ok(std::fs::write(self.script(name), text)?)
    }

    /// Returns the command of a script, with only its home in its environment.
    pub fn command(&self, script: &str) -> Command {
        let mut command = Command::new("node");
        // The SDK looks for keys in files above where it runs.
        command.current_dir(self.folder.path()).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder.path()).arg(self.script(script));
        command
    }

    /// Runs one script; an error where it fails, or where the SDK gave rows up.
    pub fn run(&self, script: &str, run: &str, (url, key): (&str, &str), environment: &[(&str, &str)]) -> Result<()> {
        let mut command = self.command(script);
        // It says nothing otherwise when it gives rows up.
        command.env("BRAINTRUST_DEBUG_LOG_LEVEL", "warn");
        // Of the scripts in Python that it starts.
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("BRAINTRUST_APP_URL", url).env("BRAINTRUST_API_KEY", key);
        command.arg(run).envs(environment.iter().copied());
        ends_well(script, &mut command)
    }
}

/// Node with these packages; environments of several names are kept.
pub fn made(name: &str, package: &str, lock: &str) -> Result<Environment> {
    let kept = CachedEnvironment::open(name, lock)?;
    let packages = kept.folder().join("node_modules");
    if !kept.is_made() {
        std::fs::write(kept.folder().join("package.json"), package)?;
        std::fs::write(kept.folder().join("package-lock.json"), lock)?;
        let mut install = Command::new("npm");
        // Without scripts of packages and what they would have for some machines: the SDK's own would fetch a program.
        install.args(["ci", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund", "--loglevel=error"]);
        checked(install.current_dir(kept.folder()))?;
        kept.made()?;
    }
    checked(Command::new("node").arg("--version"))?;
    Ok(Environment { packages })
}
