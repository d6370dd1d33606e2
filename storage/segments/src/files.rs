//! Names and removal of a segment's files.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use assay_storage_disk::{Disk, SharedDisk, temporary_name};
use assay_storage_model::segment::{FileKind, SegmentMeta};

use crate::error::SegmentError;

/// Returns the name of a file, such as `00000007.parquet`.
pub fn file_name(seq: u64, kind: FileKind) -> String {
    format!("{seq:08}.{}", kind.suffix())
}

pub(crate) fn path_of(dir: &Path, seq: u64, kind: FileKind) -> PathBuf {
    dir.join(file_name(seq, kind))
}

/// Removes the files of a segment that no manifest names and nobody reads. Missing files are not an error.
pub fn remove(disk: &SharedDisk, dir: &Path, meta: &SegmentMeta) -> Result<(), SegmentError> {
    for file in &meta.files {
        remove_if_there(&**disk, &path_of(dir, meta.seq, file.kind))?;
    }
    disk.sync_dir(dir).map_err(SegmentError::io(dir))
}

/// Removes files that no manifest names, and returns their names.
///
/// These are incomplete files, and complete ones that a crash kept from being listed. This must run at the start,
/// before any write to the directory. Files with other names are kept.
pub fn sweep(disk: &SharedDisk, dir: &Path, live: &[SegmentMeta]) -> Result<Vec<String>, SegmentError> {
    let keep: HashSet<String> =
        live.iter().flat_map(|meta| meta.files.iter().map(|file| file_name(meta.seq, file.kind))).collect();
    let mut removed = Vec::new();
    for entry in disk.list(dir).map_err(SegmentError::io(dir))? {
        if !entry.is_dir && is_ours(&entry.name) && !keep.contains(&entry.name) {
            remove_if_there(&**disk, &dir.join(&entry.name))?;
            removed.push(entry.name);
        }
    }
    if !removed.is_empty() {
        disk.sync_dir(dir).map_err(SegmentError::io(dir))?;
    }
    Ok(removed)
}

/// Returns whether a segment's file could have this name, complete or not.
fn is_ours(name: &str) -> bool {
    let name = name.strip_suffix(assay_storage_disk::TEMPORARY_SUFFIX).unwrap_or(name);
    let Some((seq, suffix)) = name.split_once('.') else { return false };
    let number = seq.len() >= 8 && seq.bytes().all(|byte| byte.is_ascii_digit());
    number && FileKind::ALL.iter().any(|kind| kind.suffix() == suffix)
}

pub(crate) fn remove_if_there(disk: &dyn Disk, path: &Path) -> Result<(), SegmentError> {
    match disk.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(SegmentError::io(path)),
    }
}

/// Returns the temporary path of a file before its rename.
pub(crate) fn unfinished(path: &Path) -> PathBuf {
    temporary_name(path)
}
