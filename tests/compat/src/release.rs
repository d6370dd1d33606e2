//! One directory of `releases/`: its files, and its data restored on a disk.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use assay_test_api::case::Case;

/// First key of every release: the data contains only its fingerprint. It can never change.
pub const KEY: &str = "sk-compat000000000000000000000000000000000000000";

const DATA: &str = "data.tar.gz";
const READS: &str = "reads.json";
const FORMATS: &str = "formats.txt";
/// The data directory's name in the archive.
const INSIDE: &str = "data";

#[derive(Clone, Debug)]
pub struct Release {
    pub dir: PathBuf,
}

/// `releases/` of the repository whose tests run.
pub fn folder() -> Result<PathBuf> {
    let own = std::env::var("CARGO_MANIFEST_DIR").context("cargo says where this crate is")?;
    Ok(Path::new(&own).join("releases"))
}

/// All of them, by name.
pub fn all() -> Result<Vec<Release>> {
    let folder = folder()?;
    let entries = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut releases = entries.map(|entry| Ok(Release { dir: entry?.path() })).collect::<Result<Vec<Release>>>()?;
    releases.sort_by(|a, b| a.dir.cmp(&b.dir));
    Ok(releases)
}

impl Release {
    /// Its data directory, below `place`.
    pub fn unpack(&self, place: &Path) -> Result<PathBuf> {
        tar(Command::new("tar").arg("--extract").arg("--file").arg(self.dir.join(DATA)).arg("--directory").arg(place))?;
        let data = place.join(INSIDE);
        anyhow::ensure!(data.is_dir(), "{} holds no `{INSIDE}`", self.dir.join(DATA).display());
        Ok(data)
    }

    pub fn reads(&self) -> Result<Case> {
        let reads = Case::read(&self.dir.join(READS))?;
        anyhow::ensure!(!reads.steps.is_empty(), "{}: asks nothing", self.dir.join(READS).display());
        Ok(reads)
    }

    /// Makes one; `data` is `<place>/data`, and no process uses it.
    pub fn pack(dir: &Path, place: &Path, reads: &str, formats: &str) -> Result<Release> {
        std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
        let mut command = Command::new("tar");
        command.args(["--create", "--use-compress-program", "gzip -9n", "--sort=name", "--owner=0", "--group=0"]);
        // Room that a start makes anew, and the door of a process that is gone.
        command.args(["--numeric-owner", "--exclude=BALLAST", "--exclude=*.sock", "--file"]);
        tar(command.arg(dir.join(DATA)).arg("--directory").arg(place).arg(INSIDE))?;
        std::fs::write(dir.join(READS), reads)?;
        std::fs::write(dir.join(FORMATS), formats)?;
        Ok(Release { dir: dir.to_owned() })
    }
}

fn tar(command: &mut Command) -> Result<()> {
    let output = command.output().context("`tar` does not run")?;
    if !output.status.success() {
        bail!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
