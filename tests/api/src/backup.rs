//! Backups of nodes under test: their location and key, and the commands on them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::process::{Ran, run};

/// Location and key of a backup.
#[derive(Clone, Debug)]
pub struct Backup {
    /// Directory or bucket.
    pub location: String,
    pub key: PathBuf,
    /// Further variables that every program needs, such as the credentials of a bucket.
    pub variables: Vec<(String, String)>,
}

impl Backup {
    /// Creates a key in a directory, for a backup in the same directory.
    pub fn in_directory(dir: &Path) -> Result<Backup> {
        Backup::at(text(&dir.join("store"))?, dir, Vec::new())
    }

    /// Creates a key in a directory, for a backup at a location.
    pub fn at(location: &str, dir: &Path, variables: Vec<(String, String)>) -> Result<Backup> {
        let backup = Backup { location: location.to_owned(), key: dir.join("backup.key"), variables };
        let made = run(&["backup", "key", text(&backup.key)?], &[], "")?;
        ensure!(made.success, "{}", made.errors);
        Ok(backup)
    }

    /// Returns the environment of a node with this backup.
    pub fn environment(&self) -> Result<Vec<(String, String)>> {
        let own = [("ASSAY_BACKUP_LOCATION", self.location.as_str()), ("ASSAY_BACKUP_KEY_FILE", text(&self.key)?)];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(own.into_iter().chain(self.variables.iter().cloned()).collect())
    }

    /// Returns the arguments of a command on the store.
    pub fn words<'w>(&'w self, words: &[&'w str]) -> Result<Vec<&'w str>> {
        let store = ["--location", &self.location, "--key-file", text(&self.key)?];
        Ok([&["backup"], words, &store].concat())
    }

    /// Runs a command on the store.
    pub fn run(&self, words: &[&str]) -> Result<Ran> {
        let variables: Vec<_> = self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        run(&self.words(words)?, &variables, "")
    }

    /// Restores a time, or the newest state. Returns what the command printed.
    pub fn restore(&self, dir: &Path, at: Option<&str>) -> Result<Value> {
        let mut words = vec!["restore", "--data-dir", text(dir)?];
        words.extend(at.into_iter().flat_map(|at| ["--at", at]));
        let done = self.run(&words)?;
        ensure!(done.success, "{}", done.errors);
        done.json()
    }
}

/// Asks the node on a directory for a backup, and waits until it is complete.
pub fn create(data_dir: &Path) -> Result<Value> {
    let made = run(&["backup", "create", "--data-dir", text(data_dir)?], &[], "")?;
    ensure!(made.success, "{}", made.errors);
    made.json()
}

pub fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is text")
}

/// Waits for the beginning of the next second, and returns it in UTC.
pub fn next_second() -> Result<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let second = now.as_secs() + 1;
    std::thread::sleep(Duration::from_secs(second).saturating_sub(now) + Duration::from_millis(5));
    let said = Command::new("date").args(["--utc", "--date", &format!("@{second}"), "+%FT%T.000Z"]).output()?;
    Ok(String::from_utf8(said.stdout)?.trim().to_owned())
}
