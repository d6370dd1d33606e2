//! Copies of data directories.

use std::fs;
use std::path::Path;

/// Reserves disk space only, and much of it; not copied.
const BALLAST: &str = "BALLAST";

/// Copies a directory with all below it. The ballast is shared, not copied; a socket that a dead process left is neither.
pub fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if !kind.is_file() {
            continue;
        } else if entry.file_name() != BALLAST {
            fs::copy(entry.path(), target)?;
        } else if fs::hard_link(entry.path(), &target).is_err() {
            // Another file system: the next start makes a new one.
            eprintln!("{} is left out of the copy", entry.path().display());
        }
    }
    Ok(())
}
