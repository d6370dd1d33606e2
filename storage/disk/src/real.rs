//! The machine's own file system. Files are 0600, directories 0700; syncs are fdatasync for files and fsync for directories.

use std::error::Error;
use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::causes::files_ran_out;
use crate::pages::{on_pages, open_direct};
use crate::{DirEntry, Disk, DiskFile, Space, parent_of};

const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;
/// Upper bound of the wait for a free file descriptor. It is long because the caller may be a write that must not fail.
const FILES_WAIT_MAX: Duration = Duration::from_secs(600);
const FILES_POLL: Duration = Duration::from_millis(20);
/// Time between two warnings of one wait.
const FILES_WARN_EVERY: Duration = Duration::from_secs(10);

/// The file system of this machine; holds no state of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

#[derive(Debug)]
struct RealFile {
    file: File,
    /// The same file, written around the page cache. None if it is not for bulk, or its file system cannot do that.
    direct: Option<File>,
    path: PathBuf,
    /// Held while an append looks up the end and writes there. Not `O_APPEND`: with it Linux ignores the offset of a
    /// positioned write.
    appending: Mutex<()>,
}

/// An I/O error that says which file and what was tried.
#[derive(Debug)]
struct AtPath {
    doing: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl fmt::Display for AtPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.doing, self.path.display(), self.source)
    }
}

impl Error for AtPath {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

/// For `map_err`: keeps the kind, adds the path.
fn at(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    let path = path.to_path_buf();
    move |source| io::Error::new(source.kind(), AtPath { doing, path, source })
}

/// Opens something, and tries again for up to ten minutes while this process, or the machine, has no free file descriptor.
pub fn when_files_are_left<T, E: Error + 'static>(open: impl Fn() -> Result<T, E>) -> Result<T, E> {
    let since = Instant::now();
    let mut warned_at = Duration::ZERO;
    loop {
        match open() {
            Err(error) if files_ran_out(&error) && since.elapsed() < FILES_WAIT_MAX => {
                let waited = since.elapsed();
                if waited >= warned_at + FILES_WARN_EVERY {
                    warned_at = waited;
                    tracing::warn!(seconds = waited.as_secs(), %error, "waiting for a free file descriptor: raise `ulimit -n`");
                }
                thread::sleep(FILES_POLL);
            }
            other => return other,
        }
    }
}

fn handle(file: File, path: &Path) -> Arc<dyn DiskFile> {
    bulk_handle(file, None, path)
}

fn bulk_handle(file: File, direct: Option<File>, path: &Path) -> Arc<dyn DiskFile> {
    Arc::new(RealFile { file, direct, path: path.to_path_buf(), appending: Mutex::new(()) })
}

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(FILE_MODE);
        let file = when_files_are_left(|| options.open(path)).map_err(at("create", path))?;
        Ok(handle(file, path))
    }

    fn create_bulk(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(FILE_MODE);
        let file = when_files_are_left(|| options.open(path)).map_err(at("create", path))?;
        // Some file systems refuse this; everything then goes through the page cache, as any other file does.
        Ok(bulk_handle(file, open_direct(path), path))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let open = || OpenOptions::new().read(true).write(true).open(path);
        let file = when_files_are_left(open).map_err(at("open", path))?;
        Ok(handle(file, path))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists().map_err(at("look up", path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to).map_err(at("rename", from))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path).map_err(at("remove", path))
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path).map_err(at("remove directory", path))
    }

    /// Syncs the parent of each directory it makes, and also that of the deepest one that was there already: an
    /// earlier process may have made it and died before its own sync.
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut missing = Vec::new();
        let mut existing = path;
        while !existing.try_exists().map_err(at("look up", existing))? {
            missing.push(existing);
            let parent = parent_of(existing);
            if parent == existing {
                break;
            }
            existing = parent;
        }
        let metadata = fs::metadata(existing).map_err(at("look up", existing))?;
        if !metadata.is_dir() {
            let text = format!("{} is in the way: not a directory", existing.display());
            return Err(io::Error::new(io::ErrorKind::NotADirectory, text));
        }
        match self.sync_dir(parent_of(existing)) {
            // Not ours to read, hence not one that we made a directory in: making one ends in a sync of it.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            other => other?,
        }
        for dir in missing.into_iter().rev() {
            match DirBuilder::new().mode(DIR_MODE).create(dir) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
                other => other.map_err(at("create directory", dir))?,
            }
            self.sync_dir(parent_of(dir))?;
        }
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in when_files_are_left(|| fs::read_dir(dir)).map_err(at("list", dir))? {
            let entry = entry.map_err(at("list", dir))?;
            let metadata = match entry.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue, // gone since it was listed
                other => other.map_err(at("list", dir))?,
            };
            let name = entry.file_name().to_string_lossy().into_owned();
            let length = if metadata.is_dir() { 0 } else { metadata.len() };
            entries.push(DirEntry { name, is_dir: metadata.is_dir(), length });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let handle = when_files_are_left(|| File::open(dir)).map_err(at("open directory", dir))?;
        rustix::fs::fsync(&handle).map_err(|errno| at("sync directory", dir)(errno.into()))
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let found = rustix::fs::statvfs(path).map_err(|errno| at("look up room at", path)(errno.into()))?;
        // `f_bavail`, not `f_bfree`: what the system keeps for root is not ours.
        Ok(Space {
            free: found.f_bavail.saturating_mul(found.f_frsize),
            total: found.f_blocks.saturating_mul(found.f_frsize),
        })
    }
}

impl DiskFile for RealFile {
    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        let _appending = self.appending.lock();
        let end = self.len()?;
        match &self.direct {
            Some(direct) if on_pages(end, bytes) => {
                direct.write_all_at(bytes, end).map_err(at("write", &self.path))?;
            }
            _ => self.write_at(end, bytes)?,
        }
        Ok(end)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset).map_err(at("write", &self.path))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset).map_err(at("read", &self.path))
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length).map_err(at("set the length of", &self.path))
    }

    fn sync(&self) -> io::Result<()> {
        rustix::fs::fdatasync(&self.file).map_err(|errno| at("sync", &self.path)(errno.into()))
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata().map_err(at("look up", &self.path))?.len())
    }
}
