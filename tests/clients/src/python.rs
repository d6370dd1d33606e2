//! The Python SDK in an environment of its own, made once and cached in cargo's target directory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result};

use crate::kept::{CachedEnvironment, checked, ends_well};

/// Every package at its version. Part of the program: one that is started alone finds the environment too.
const REQUIREMENTS: &str = include_str!("../python/requirements.lock");
const EARLIER: &str = include_str!("../python/earlier.lock");
const INSTRUMENTS: &str = include_str!("../python/instruments.lock");
const AUTOEVALS: &str = include_str!("../python/autoevals.lock");
const MODEL_SDKS: &str = include_str!("../python/models.lock");

/// Addresses given to a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlsGiven {
    /// Only the login address; everything else follows from the login's response.
    AppUrl,
    /// Both origins.
    BothUrls,
}

/// Python with the SDK; why not, where it cannot be had.
pub fn environment() -> Result<&'static Path, String> {
    static ENVIRONMENT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let make = || made("python", REQUIREMENTS).map_err(|error| format!("{error:#}"));
    ENVIRONMENT.get_or_init(make).as_deref().map_err(Clone::clone)
}

/// Python with an SDK of before, which registers what it logs to in another way.
pub fn earlier() -> Result<PathBuf, String> {
    made("earlier", EARLIER).map_err(|error| format!("{error:#}"))
}

/// Python with what instruments applications, and what the SDK wraps.
pub fn instruments() -> Result<PathBuf, String> {
    made("instruments", INSTRUMENTS).map_err(|error| format!("{error:#}"))
}

/// Python with the scorers of autoevals.
pub fn autoevals() -> Result<PathBuf, String> {
    made("autoevals", AUTOEVALS).map_err(|error| format!("{error:#}"))
}

/// Python with the scorers of autoevals and an SDK for their models.
pub fn judges() -> Result<PathBuf, String> {
    made("judges", &joined(MODEL_SDKS, AUTOEVALS)).map_err(|error| format!("{error:#}"))
}

/// Python with the SDK and those of model providers, for the pages of the guide.
pub fn guide() -> Result<PathBuf, String> {
    made("guide", &joined(MODEL_SDKS, REQUIREMENTS)).map_err(|error| format!("{error:#}"))
}

/// Returns all packages of two lists. Packages of both have the version of the first.
fn joined(first: &str, second: &str) -> String {
    let name = |line: &str| line.split("==").next().unwrap_or_default().to_owned();
    let packages =
        |list: &str| -> Vec<String> { list.lines().filter(|line| line.contains("==")).map(str::to_owned).collect() };
    let mut all = packages(first);
    let known: BTreeSet<String> = all.iter().map(|line| name(line)).collect();
    all.extend(packages(second).into_iter().filter(|line| !known.contains(&name(line))));
    all.join("\n") + "\n"
}

/// Runs one script of `python/`; an error where it fails, or where the SDK gave rows up.
pub fn run(python: &Path, script: &str, run: &str, url: &str, key: &str, told: UrlsGiven) -> Result<()> {
    let api_url = ("BRAINTRUST_API_URL", url);
    let more = if told == UrlsGiven::BothUrls { vec![api_url] } else { Vec::new() };
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
    ends_well(script, &mut command)
}

/// Returns a Python command with only its home, the login address and the credential in its environment.
pub fn command(python: &Path, home: &Path, app_url: &str, key: &str) -> Command {
    let mut command = Command::new(python);
    // The SDK looks for keys in files above where it runs.
    command.current_dir(home).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", home).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("BRAINTRUST_APP_URL", app_url).env("BRAINTRUST_API_KEY", key);
    command
}

/// Returns the folder of the scripts.
pub fn folder() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("python")
}

/// Python with these packages; environments of several names are kept.
pub fn made(name: &str, wanted: &str) -> Result<PathBuf> {
    let kept = CachedEnvironment::open(name, wanted)?;
    let python = kept.folder().join("bin/python");
    if kept.is_made() {
        return Ok(python);
    }
    checked(Command::new("python3").args(["-m", "venv"]).arg(kept.folder()))?;
    let requirements = kept.folder().join("requirements.lock");
    std::fs::write(&requirements, wanted)?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement"]);
    checked(install.arg(&requirements))?;
    kept.made()?;
    Ok(python)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_of_two_lists_has_the_version_of_the_first() {
        assert_eq!(joined("# SDKs\na==2\nb==1\n", "b==3\nc==1\n"), "a==2\nb==1\nc==1\n");
    }
}
