//! Temporary copy of a group's directory: its keyed store is copied, since sled writes on opening; its segments, which
//! may be large and are only read, are links.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A store above this is no longer small; copying it needs a thought of its own.
const COPIED_BYTES_MAX: u64 = 16 << 30;

#[derive(Debug)]
pub struct DirectoryCopy {
    place: TempDir,
    original: PathBuf,
}

impl DirectoryCopy {
    /// Copies `CURRENT` and every generation's `kv`; links `segments`.
    pub fn new(original: &Path) -> io::Result<DirectoryCopy> {
        let place = tempfile::Builder::new().prefix("assay-doctor-").tempdir()?;
        let mut bytes_left = COPIED_BYTES_MAX;
        let absolute = fs::canonicalize(original)?;
        for entry in fs::read_dir(&absolute)? {
            let entry = entry?;
            let target = place.path().join(entry.file_name());
            if !entry.file_type()?.is_dir() {
                copy_file(&entry.path(), &target, &mut bytes_left)?;
                continue;
            }
            fs::create_dir(&target)?;
            for part in fs::read_dir(entry.path())? {
                let part = part?;
                let part_target = target.join(part.file_name());
                if part.file_name() == "kv" {
                    copy_dir(&part.path(), &part_target, &mut bytes_left)?;
                } else {
                    std::os::unix::fs::symlink(part.path(), part_target)?;
                }
            }
        }
        Ok(DirectoryCopy { place, original: original.to_path_buf() })
    }

    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// Replaces the path of the copy by that of the original in a text.
    pub fn about_the_original(&self, text: &str) -> String {
        text.replace(&*self.place.path().to_string_lossy(), &self.original.to_string_lossy())
    }
}

fn copy_dir(from: &Path, to: &Path, bytes_left: &mut u64) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_dir(&entry.path(), &target, bytes_left)?;
        } else {
            copy_file(&entry.path(), &target, bytes_left)?;
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path, bytes_left: &mut u64) -> io::Result<()> {
    let length = fs::metadata(from)?.len();
    *bytes_left = bytes_left.checked_sub(length).ok_or_else(|| {
        let text = format!("{}: more than {COPIED_BYTES_MAX} bytes to copy", from.display());
        io::Error::new(io::ErrorKind::FileTooLarge, text)
    })?;
    fs::copy(from, to)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keyed_store_is_a_copy_and_the_segments_are_the_same() {
        let dir = tempfile::tempdir().expect("makes");
        let home = dir.path().join("g0001");
        fs::create_dir_all(home.join("kv")).expect("makes");
        fs::create_dir_all(home.join("segments")).expect("makes");
        fs::write(dir.path().join("CURRENT"), b"g0001").expect("writes");
        fs::write(home.join("kv/db"), b"before").expect("writes");
        fs::write(home.join("segments/1"), b"rows").expect("writes");
        let copy = DirectoryCopy::new(dir.path()).expect("copies");
        fs::write(copy.path().join("g0001/kv/db"), b"after").expect("writes");
        assert_eq!(fs::read(home.join("kv/db")).expect("reads"), b"before");
        assert_eq!(fs::read(copy.path().join("g0001/segments/1")).expect("reads"), b"rows");
        let text = format!("{}: bad", copy.path().join("CURRENT").display());
        assert_eq!(copy.about_the_original(&text), format!("{}: bad", dir.path().join("CURRENT").display()));
    }
}
