//! Plan to unpack a zip: the checked facts of its entries, before any content is read.

use crate::error::{BundleRefusal, EntryProblem};
use crate::limits::BundleLimits;
use crate::unpack::entry_path::EntryPath;
use crate::unpack::tree::NameTree;

/// Bits of a Unix mode that tell the type of a file.
const TYPE_BITS: u32 = 0o170_000;
const TYPE_FILE: u32 = 0o100_000;
const TYPE_DIRECTORY: u32 = 0o040_000;
const EXECUTE_BITS: u32 = 0o111;

/// Facts about an entry, as the directory of the zip claims them.
#[derive(Clone, Debug)]
pub(super) struct EntryFacts<'z> {
    /// Position in the directory of the zip.
    pub index: usize,
    pub name: &'z str,
    /// Unix mode, or 0.
    pub mode: u32,
    pub is_encrypted: bool,
    /// Name of the compression, if it is another one than `stored` or `deflate`.
    pub foreign_method: Option<String>,
    /// Bytes of the content.
    pub bytes: u64,
    /// Offset of the local header.
    pub header_start: u64,
}

/// File to unpack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedFile {
    pub index: usize,
    pub path: String,
    pub is_executable: bool,
    pub header_start: u64,
}

/// Directories and files of a zip. Paths are relative and unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ZipPlan {
    /// Directories, parents before children.
    pub directories: Vec<String>,
    /// Files in the order of their contents.
    pub files: Vec<PlannedFile>,
}

impl ZipPlan {
    /// Checks the entries. The sizes are claims: they may refuse a zip, and the limits hold again for its content.
    pub fn new<'z>(
        entries: impl IntoIterator<Item = EntryFacts<'z>>,
        limits: &BundleLimits,
    ) -> Result<ZipPlan, BundleRefusal> {
        let mut tree = NameTree::new(limits);
        let mut files = Vec::new();
        let mut bytes = 0_u64;
        for entry in entries {
            let path = entry.check().map_err(|problem| BundleRefusal::entry(entry.name, problem))?;
            tree.add(&path)?;
            bytes = bytes.saturating_add(entry.bytes);
            if bytes > limits.unpacked_bytes {
                return Err(BundleRefusal::UnpackedBytes { max: limits.unpacked_bytes });
            }
            if !path.is_directory() {
                files.push(PlannedFile {
                    index: entry.index,
                    path: path.as_str().to_owned(),
                    is_executable: entry.mode & EXECUTE_BITS != 0,
                    header_start: entry.header_start,
                });
            }
        }
        files.sort_by_key(|file| file.header_start);
        Ok(ZipPlan { directories: tree.into_directories(), files })
    }
}

impl EntryFacts<'_> {
    fn check(&self) -> Result<EntryPath, EntryProblem> {
        let path = EntryPath::parse(self.name)?;
        if self.is_encrypted {
            return Err(EntryProblem::Encrypted);
        }
        if let Some(method) = &self.foreign_method {
            return Err(EntryProblem::Method(method.clone()));
        }
        match self.mode & TYPE_BITS {
            TYPE_DIRECTORY if !path.is_directory() => return Err(EntryProblem::DirectoryWithoutSlash),
            0 | TYPE_FILE | TYPE_DIRECTORY => {}
            _ => return Err(EntryProblem::Special { mode: self.mode }),
        }
        if path.is_directory() && self.bytes > 0 {
            return Err(EntryProblem::DirectoryWithContent);
        }
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> EntryFacts<'_> {
        EntryFacts { index: 0, name, mode: 0, is_encrypted: false, foreign_method: None, bytes: 0, header_start: 0 }
    }

    fn problem(entry: EntryFacts<'_>) -> EntryProblem {
        let name = entry.name.to_owned();
        match ZipPlan::new([entry], &BundleLimits::default()).unwrap_err() {
            BundleRefusal::Entry { name: named, problem } if named == name => problem,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn links_devices_and_other_special_files_are_refused() {
        for mode in [0o120_777, 0o020_644, 0o060_644, 0o010_644, 0o140_644, 0o170_644] {
            assert_eq!(problem(EntryFacts { mode, ..entry("a") }), EntryProblem::Special { mode });
            assert_eq!(problem(EntryFacts { mode, ..entry("a/") }), EntryProblem::Special { mode });
        }
    }

    #[test]
    fn mode_and_name_of_a_directory_agree_and_it_has_no_content() {
        assert_eq!(problem(EntryFacts { mode: 0o040_755, ..entry("a") }), EntryProblem::DirectoryWithoutSlash);
        assert_eq!(problem(EntryFacts { bytes: 1, ..entry("a/") }), EntryProblem::DirectoryWithContent);
    }

    #[test]
    fn encryption_and_foreign_compression_are_refused() {
        assert_eq!(problem(EntryFacts { is_encrypted: true, ..entry("a") }), EntryProblem::Encrypted);
        let foreign = EntryFacts { foreign_method: Some("Zstd".into()), ..entry("a") };
        assert_eq!(problem(foreign), EntryProblem::Method("Zstd".into()));
    }

    #[test]
    fn claimed_sizes_are_added_without_overflow() {
        let claims = |sizes: [u64; 2]| {
            let entries = ["a", "b"].into_iter().zip(sizes).map(|(name, bytes)| EntryFacts { bytes, ..entry(name) });
            ZipPlan::new(entries, &BundleLimits { unpacked_bytes: 10, ..BundleLimits::default() })
        };
        assert!(claims([5, 5]).is_ok());
        for sizes in [[5, 6], [u64::MAX, 1], [11, 0]] {
            assert_eq!(claims(sizes), Err(BundleRefusal::UnpackedBytes { max: 10 }), "{sizes:?}");
        }
    }

    #[test]
    fn files_are_in_the_order_of_their_contents_with_their_execute_bit() {
        let second = EntryFacts { index: 0, mode: 0o100_744, header_start: 9, ..entry("bin/./x") };
        let first = EntryFacts { index: 1, mode: 0o600, header_start: 3, ..entry("a") };
        let plan = ZipPlan::new([second, first], &BundleLimits::default()).unwrap();
        assert_eq!(plan.directories, ["bin"]);
        let files: Vec<_> = plan.files.iter().map(|file| (file.index, &*file.path, file.is_executable)).collect();
        assert_eq!(files, [(1, "a", false), (0, "bin/x", true)]);
    }
}
