//! Verification of every blob against its name, and of every file against the layout.

use std::io;
use std::path::{Path, PathBuf};

use assay_storage_disk::Disk;

use crate::{BlobName, TEMPORARY_DIR, fan_out_of};

/// Bytes read at a time while hashing.
const PIECE_BYTES: usize = 1024 * 1024;

/// Progress of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub files_checked: u64,
    pub files_total: u64,
    pub bytes_checked: u64,
}

/// A file that does not match its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub path: PathBuf,
    /// `None` if the file's name is no blob's at all.
    pub name: Option<BlobName>,
    pub what: String,
}

/// Calls `visit` with every file, its blob name if it has one where it lies, and its length; in the order of names.
pub(crate) fn walk(
    disk: &dyn Disk,
    dir: &Path,
    mut visit: impl FnMut(PathBuf, Option<BlobName>, u64),
) -> io::Result<()> {
    for outer in disk.list(dir)? {
        let path = dir.join(&outer.name);
        match fan_out_of(&outer.name) {
            _ if outer.is_dir && outer.name == TEMPORARY_DIR => {} // writes under way
            Some(first) if outer.is_dir => {
                for entry in disk.list(&path)? {
                    let name = BlobName::parse(&entry.name).filter(|name| name.0[0] == first && !entry.is_dir);
                    visit(path.join(&entry.name), name, entry.length);
                }
            }
            _ => visit(path, None, outer.length),
        }
    }
    Ok(())
}

pub(crate) fn verify_all(disk: &dyn Disk, dir: &Path, mut progress: impl FnMut(Progress)) -> io::Result<Vec<Damage>> {
    let mut files = Vec::new();
    walk(disk, dir, |path, name, _| files.push((path, name)))?;
    let mut so_far = Progress { files_checked: 0, files_total: files.len() as u64, bytes_checked: 0 };
    let mut damages = Vec::new();
    for (path, name) in files {
        let outcome = match name {
            None => Err("is not a blob: move it to another directory".to_owned()),
            Some(name) => check(disk, &path, name),
        };
        match outcome {
            Ok(bytes) => so_far.bytes_checked += bytes,
            Err(what) => damages.push(Damage { path, name, what }),
        }
        so_far.files_checked += 1;
        progress(so_far);
    }
    Ok(damages)
}

/// Bytes of the blob, or what is wrong with it. One that was removed since it was listed is as it should be.
fn check(disk: &dyn Disk, path: &Path, name: BlobName) -> Result<u64, String> {
    let found = match hash_of(disk, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(format!("cannot be read: {error}")),
        Ok(found) => found,
    };
    if found.0 == name {
        return Ok(found.1);
    }
    Err(format!("{} bytes do not match the hash in the name: fetch it from another replica", found.1))
}

/// The name that the file's content has, and its length; a piece at a time.
pub(crate) fn hash_of(disk: &dyn Disk, path: &Path) -> io::Result<(BlobName, u64)> {
    let file = disk.open(path)?;
    let length = file.len()?;
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; PIECE_BYTES];
    let mut offset = 0;
    while offset < length {
        let size = (length - offset).min(PIECE_BYTES as u64) as usize;
        file.read_at(offset, &mut piece[..size])?;
        hasher.update(&piece[..size]);
        offset += size as u64;
    }
    Ok((BlobName(*hasher.finalize().as_bytes()), length))
}
