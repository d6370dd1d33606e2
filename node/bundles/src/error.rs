//! Errors: faults of a bundle, and faults of the node that keeps it.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::index::CacheFull;
use crate::limits::{DEPTH_MAX, NAME_BYTES_MAX, PATH_BYTES_MAX};

/// Characters of an entry's name in an error.
const SHOWN_NAME_MAX: usize = 200;

/// Error of the check, the unpacking or the cache of bundles.
#[derive(Debug, Error)]
pub enum BundleError {
    /// The bundle is invalid or too large. The same bytes fail again.
    #[error("the code bundle is refused: {0}")]
    Refused(#[from] BundleRefusal),
    /// The cache has no space for the bundle.
    #[error(transparent)]
    CacheFull(#[from] CacheFull),
    #[error("cannot {action} {}: the disk or the quota is full", path.display())]
    DiskFull { action: &'static str, path: PathBuf },
    #[error("cannot {action} {}: {source}", path.display())]
    Disk { action: &'static str, path: PathBuf, source: io::Error },
}

/// Reason why a bundle is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BundleRefusal {
    #[error("it has no bytes")]
    Empty,
    #[error("it has {bytes} bytes; at most {max} are valid")]
    StoredBytes { bytes: u64, max: u64 },
    #[error("its files have more than {max} bytes")]
    UnpackedBytes { max: u64 },
    #[error("it has more than {max} files")]
    Files { max: u64 },
    #[error("it has more than {max} directories")]
    Directories { max: u64 },
    #[error("it has more than {max} headers of zip entries")]
    Headers { max: usize },
    #[error("a Python bundle is a zip, and this is none or a damaged one: {0}")]
    Zip(String),
    #[error("a Node bundle is one CommonJS text, and this is a zip")]
    ZipForNode,
    #[error("a Node bundle is one gzip member, and this one is damaged: {0}")]
    Gzip(String),
    #[error("a Node bundle is one gzip member, and {bytes} bytes follow it")]
    AfterGzip { bytes: usize },
    #[error("a Node bundle is a text in UTF-8, and the text is invalid after {offset} bytes")]
    NotUtf8 { offset: u64 },
    #[error("the zip entry {name:?} {problem}")]
    Entry { name: String, problem: EntryProblem },
}

/// Problem of one entry of a zip, as the predicate of a sentence about it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EntryProblem {
    #[error("has no name; a relative path is valid")]
    NoName,
    #[error("has a NUL character in its path; other characters are valid")]
    Nul,
    #[error("has an absolute path; only relative ones are valid")]
    Absolute,
    #[error("has a path with a drive letter; only relative ones are valid")]
    Drive,
    #[error("has a backslash in its path; names are separated by `/`")]
    Backslash,
    #[error("has `..` in its path; only paths inside of the bundle are valid")]
    Parent,
    #[error("has a path of {bytes} bytes; at most {PATH_BYTES_MAX} are valid")]
    PathBytes { bytes: usize },
    #[error("has a name of {bytes} bytes in its path; at most {NAME_BYTES_MAX} are valid")]
    NameBytes { bytes: usize },
    #[error("has a path of more than {DEPTH_MAX} names")]
    Depth,
    #[error("is a link, a device or another special file by its mode {mode:o}; files and directories are valid")]
    Special { mode: u32 },
    #[error("is a directory by its mode, and the name of a directory ends with `/`")]
    DirectoryWithoutSlash,
    #[error("is a directory with content; only files have content")]
    DirectoryWithContent,
    #[error("is encrypted; only entries without encryption are valid")]
    Encrypted,
    #[error("is compressed with {0}; `stored` and `deflate` are valid")]
    Method(String),
    #[error("occurs twice; each path is valid once")]
    Duplicate,
    #[error("has a path that is a file and a directory at once; only one of them is valid")]
    FileAndDirectory,
    #[error("overlaps another entry or the directory of the zip; each byte belongs to one of them")]
    Overlap,
    #[error("has {found} bytes, and its header claims {claimed}")]
    Size { claimed: u64, found: u64 },
    #[error("has damaged content: {0}")]
    Content(String),
}

impl BundleError {
    /// Describes a failed operation on the disk.
    pub(crate) fn disk(action: &'static str, path: &Path, source: io::Error) -> BundleError {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => BundleError::DiskFull { action, path },
            _ => BundleError::Disk { action, path, source },
        }
    }
}

impl BundleRefusal {
    pub(crate) fn entry(name: &str, problem: EntryProblem) -> BundleRefusal {
        let mut shown: String = name.chars().take(SHOWN_NAME_MAX).collect();
        if shown.len() < name.len() {
            shown.push_str("...");
        }
        BundleRefusal::Entry { name: shown, problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_from_other_errors() {
        let full = BundleError::disk("write", Path::new("/a"), io::ErrorKind::StorageFull.into());
        assert!(matches!(full, BundleError::DiskFull { .. }));
        let quota = BundleError::disk("write", Path::new("/a"), io::ErrorKind::QuotaExceeded.into());
        assert_eq!(quota.to_string(), "cannot write /a: the disk or the quota is full");
        let other = BundleError::disk("write", Path::new("/a"), io::ErrorKind::PermissionDenied.into());
        assert!(matches!(other, BundleError::Disk { .. }));
    }

    #[test]
    fn a_long_name_is_cut_and_control_characters_are_escaped() {
        let error = BundleRefusal::entry(&format!("\n{}", "\u{e9}".repeat(5000)), EntryProblem::Duplicate).to_string();
        assert!(error.len() < 600 && !error.contains('\n') && error.contains("...\" occurs twice"), "{error}");
    }
}
