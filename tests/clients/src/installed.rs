//! What clients need, installed once and kept beside what cargo builds, and what is said where it cannot be had.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

/// A folder that `make` filled with what `wanted` lists, in this process or in one before.
pub(crate) fn installed(name: &str, wanted: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let folder = beside_what_is_built()?;
    // Held until it is there: another process may want it at the same time.
    let lock = File::create(folder.join("lock"))?;
    lock.lock()?;
    let environment = folder.join(name);
    // Written last, with what was installed: an environment that was half made, or of other versions, is made again.
    let marker = environment.join("installed");
    if std::fs::read_to_string(&marker).is_ok_and(|installed| installed == wanted) {
        return Ok(environment);
    }
    if environment.exists() {
        std::fs::remove_dir_all(&environment)?;
    }
    make(&environment)?;
    std::fs::write(&marker, wanted)?;
    Ok(environment)
}

/// Says that something was left out, which is a failure where everything is required.
pub fn not_covered(what: &str, problem: &str) {
    assert_ne!(std::env::var("ASSAY_REQUIRE").as_deref(), Ok("all"), "{problem}");
    // To the stream itself: what a passing test prints is not shown.
    let _ = writeln!(std::io::stderr(), "NOT COVERED: {what}: {problem}");
}

/// A folder in cargo's target directory, whether a test asks or a program.
fn beside_what_is_built() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().context("a folder of this program's file")?;
    let profile = if folder.ends_with("deps") { folder.parent() } else { Some(folder) };
    let target = profile.and_then(Path::parent).context("a target directory above this program")?;
    let folder = target.join("clients");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

pub(crate) fn checked(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{:?} does not run", command.get_program()))?;
    if !output.status.success() {
        bail!("{command:?}: {}\n{}", output.status, said(&output));
    }
    Ok(())
}

/// All that it wrote.
pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
