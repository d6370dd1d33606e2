//! Directories of unpacked bundles: their writing, removal and measurement.

use std::fs::{self, DirEntry, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::BundleError;
use crate::unpack::{BundleSink, UnpackedSize};

/// Mode of files, which another user of the system may read.
const FILE_MODE: u32 = 0o444;
/// Mode of programs and of directories, which another user of the system may execute or search.
const EXECUTABLE_MODE: u32 = 0o555;
/// Mode of directories while their contents change.
const WRITABLE_MODE: u32 = 0o755;

/// Sink that writes the files of a bundle below a new directory.
#[derive(Debug)]
pub(crate) struct DirectorySink {
    root: PathBuf,
    directories: Vec<PathBuf>,
    file: Option<CurrentFile>,
}

#[derive(Debug)]
struct CurrentFile {
    file: File,
    path: PathBuf,
    mode: u32,
}

impl DirectorySink {
    /// Creates the root, which must not exist.
    pub fn create(root: PathBuf) -> Result<DirectorySink, BundleError> {
        create_directory(&root)?;
        Ok(DirectorySink { root, directories: Vec::new(), file: None })
    }

    /// Makes the directories read-only.
    pub fn finish(self) -> Result<(), BundleError> {
        self.directories.iter().chain([&self.root]).try_for_each(|path| {
            fs::set_permissions(path, Permissions::from_mode(EXECUTABLE_MODE))
                .map_err(|error| BundleError::disk("change the mode of the directory", path, error))
        })
    }
}

impl BundleSink for DirectorySink {
    type Error = BundleError;

    fn directory(&mut self, path: &str) -> Result<(), BundleError> {
        let path = self.root.join(path);
        create_directory(&path)?;
        self.directories.push(path);
        Ok(())
    }

    fn begin_file(&mut self, path: &str, is_executable: bool) -> Result<(), BundleError> {
        let path = self.root.join(path);
        let file = create_file(&path)?;
        let mode = if is_executable { EXECUTABLE_MODE } else { FILE_MODE };
        self.file = Some(CurrentFile { file, path, mode });
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), BundleError> {
        let current = self.file.as_mut().expect("writes follow the beginning of a file");
        current.file.write_all(bytes).map_err(|error| BundleError::disk("write the file", &current.path, error))
    }

    fn end_file(&mut self) -> Result<(), BundleError> {
        let CurrentFile { file, path, mode } = self.file.take().expect("the end of a file follows its beginning");
        set_mode(&file, &path, mode)
    }
}

/// Writes a new read-only file.
pub(crate) fn write_file(path: &Path, content: &[u8]) -> Result<(), BundleError> {
    let mut file = create_file(path)?;
    file.write_all(content).map_err(|error| BundleError::disk("write the file", path, error))?;
    set_mode(&file, path, FILE_MODE)
}

pub(crate) fn create_directory(path: &Path) -> Result<(), BundleError> {
    let failed = |error| BundleError::disk("create the directory", path, error);
    fs::create_dir(path).map_err(failed)?;
    // The umask may have removed bits.
    fs::set_permissions(path, Permissions::from_mode(WRITABLE_MODE)).map_err(failed)
}

fn create_file(path: &Path) -> Result<File, BundleError> {
    let created = OpenOptions::new().write(true).create_new(true).open(path);
    created.map_err(|error| BundleError::disk("create the file", path, error))
}

fn set_mode(file: &File, path: &Path, mode: u32) -> Result<(), BundleError> {
    let changed = file.set_permissions(Permissions::from_mode(mode));
    changed.map_err(|error| BundleError::disk("change the mode of the file", path, error))
}

/// Removes a directory with its contents, also if they are read-only. Links are removed and not followed.
pub(crate) fn remove_tree(root: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(root)?.is_dir() {
        return fs::remove_file(root);
    }
    let mut found = vec![root.to_path_buf()];
    while let Some(directory) = found.pop() {
        fs::set_permissions(&directory, Permissions::from_mode(WRITABLE_MODE))?;
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                found.push(entry.path());
            }
        }
    }
    fs::remove_dir_all(root)
}

/// Counts the files and directories below a root. Returns `None` if there is anything else.
pub(crate) fn measure_tree(root: &Path) -> io::Result<Option<UnpackedSize>> {
    let mut size = UnpackedSize::default();
    let mut found = vec![root.to_path_buf()];
    while let Some(directory) = found.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry: DirEntry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                size.add_directory();
                found.push(entry.path());
            } else if metadata.is_file() {
                size.add_file(metadata.len());
            } else {
                return Ok(None);
            }
        }
    }
    Ok(Some(size))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_removed_tree_with_a_link_leaves_the_target() {
        let folder = tempfile::tempdir().unwrap();
        let (tree, target) = (folder.path().join("tree"), folder.path().join("target"));
        fs::create_dir_all(tree.join("a")).unwrap();
        fs::create_dir(&target).unwrap();
        fs::write(target.join("file"), "kept").unwrap();
        symlink(&target, tree.join("a/link")).unwrap();
        fs::set_permissions(&target, Permissions::from_mode(0o500)).unwrap();
        fs::set_permissions(tree.join("a"), Permissions::from_mode(0o555)).unwrap();
        assert_eq!(measure_tree(&tree).unwrap(), None);
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
        symlink(&target, &tree).unwrap();
        remove_tree(&tree).unwrap();
        assert!(fs::symlink_metadata(&tree).is_err());
        assert_eq!(fs::read_to_string(target.join("file")).unwrap(), "kept");
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o500);
    }
}
