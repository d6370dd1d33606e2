//! Python in environments of its own, made once and kept beside what cargo builds: the SDK is in one of them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

use crate::installed::{checked, installed, said};

/// Every package at its version. Part of the program: one that is started alone finds the environment too.
const REQUIREMENTS: &str = include_str!("../python/requirements.lock");
/// What the SDK says when it gives rows up: it raises nothing then.
const DROPPED: [&str; 2] = ["log request failed", "Dropping batch"];

/// What a script was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Only where to log in; all else follows from the login's answer.
    AppUrl,
    /// Both origins.
    BothUrls,
}

/// Python with the SDK; why not, where it cannot be had.
pub fn environment() -> Result<&'static Path, String> {
    static ENVIRONMENT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    ENVIRONMENT
        .get_or_init(|| environment_of("python", REQUIREMENTS).map_err(|error| format!("{error:#}")))
        .as_deref()
        .map_err(Clone::clone)
}

/// Runs one script of `python/`; an error where it fails, or where the SDK gave rows up.
pub fn run(python: &Path, script: &str, run: &str, url: &str, key: &str, told: Told) -> Result<()> {
    let api_url = ("BRAINTRUST_API_URL", url);
    let more = if told == Told::BothUrls { vec![api_url] } else { Vec::new() };
    run_with(python, script, run, (url, key), &more).with_context(|| format!("{told:?}"))
}

/// The same, with more variables in its environment.
pub fn run_with(
    python: &Path,
    script: &str,
    run: &str,
    (url, key): (&str, &str),
    environment: &[(&str, &str)],
) -> Result<()> {
    let home = tempfile::tempdir()?;
    let mut command = command(python, home.path(), url, key);
    command.arg(folder().join(script)).arg(run).envs(environment.iter().copied());
    let output = command.output().with_context(|| format!("{} does not run", python.display()))?;
    let said = said(&output);
    if !output.status.success() || DROPPED.iter().any(|words| said.contains(words)) {
        bail!("{script}: {}\n{said}", output.status);
    }
    Ok(())
}

/// Python that is told its home, where to log in and as whom, and inherits nothing else.
pub fn command(python: &Path, home: &Path, app_url: &str, key: &str) -> Command {
    let mut command = Command::new(python);
    // The SDK looks for keys in files above where it runs.
    command.current_dir(home).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", home).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("BRAINTRUST_APP_URL", app_url).env("BRAINTRUST_API_KEY", key);
    command
}

/// Where the scripts are.
pub fn folder() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("python")
}

/// Python with these packages; environments of several names are kept.
pub fn environment_of(name: &str, requirements: &str) -> Result<PathBuf> {
    let environment = installed(name, requirements, |environment| {
        checked(Command::new("python3").args(["-m", "venv"]).arg(environment))?;
        let list = environment.join("requirements.lock");
        std::fs::write(&list, requirements)?;
        let mut install = Command::new(environment.join("bin/python"));
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement"]);
        checked(install.arg(&list))
    })?;
    Ok(environment.join("bin/python"))
}
