//! The door to the disk: every file of ours is made, synced and listed through [`Disk`], so that a test can stand in its place.
//!
//! Three implementations: [`RealDisk`] (what a node runs on), [`SimulatedDisk`] (in memory, knows what a power cut may
//! take) and [`FaultyDisk`] (fails the n-th call of any other). What the trait promises, and [`suite`] checks for each:
//!
//! - bytes are durable when `DiskFile::sync` has returned, names when `sync_dir` of their directory has; not before;
//! - a rename is whole or has not happened, also across a power cut;
//! - a failed sync is passed up once and never retried in here: the kernel may have dropped the pages it could not
//!   write, so a second sync that succeeds proves nothing. Whoever gets that error gives the file up;
//! - a failed write may have left part of its bytes.
//!
//! One writer to a file at a time; readers as many as like. Knows nothing of what the files hold.

mod causes;
pub mod faulty;
pub mod pages;
pub mod real;
pub mod simulated;
pub mod space;
pub mod suite;

use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use causes::{disk_was_full, files_ran_out};
pub use faulty::{Fault, FaultPlan, FaultyDisk, Operation};
pub use pages::{DirectFile, PageBuffer};
pub use real::{RealDisk, when_files_are_left};
pub use simulated::{SEED_KEEPS_ALL, SEED_LOSES_ALL, SimulatedDisk};
pub use space::{BALLAST_BYTES, Ballast, REFUSE_WRITES_BELOW_PERCENT, Space, SpaceLevel, admit};

/// What `replace_whole` adds to a file's name while the new content is not yet complete.
pub const TEMPORARY_SUFFIX: &str = ".tmp";

/// Any implementation, shared by all who keep files on it.
pub type SharedDisk = Arc<dyn Disk>;

/// One directory tree with the calls that decide what survives.
pub trait Disk: Send + Sync + Debug + 'static {
    /// A new, empty file for reading and writing; `AlreadyExists` if the name is taken.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// As `create`, for a large file that is written once from front to back and read much later: appends whose
    /// bytes come from a [`PageBuffer`] may go around the system's page cache, which saves a copy and leaves the cache
    /// to what is read.
    fn create_bulk(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.create(path)
    }

    /// An existing file for reading and writing; `NotFound` if there is none.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Whether a file or directory has this name.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Gives a file or directory a new name, replacing a file that has it. Durable after `sync_dir` of both parents.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Takes a file away. Durable after `sync_dir` of its directory.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Takes a directory and all below it away; `NotFound` if there is none. Durable after `sync_dir` of its parent;
    /// a power cut before that may leave any part.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Makes a directory and the parents it lacks; no error if it is there. Durable when it returns.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// What is in a directory, sorted by name.
    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>>;

    /// Makes names created, renamed or removed in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Room on the file system that holds `path`.
    fn space(&self, path: &Path) -> io::Result<Space>;
}

/// An open file. It stays readable through this handle after its name is gone.
pub trait DiskFile: Send + Sync + Debug {
    /// Writes behind the last byte and says where that was.
    fn append(&self, bytes: &[u8]) -> io::Result<u64>;

    /// Overwrites at `offset`; a gap before it reads as zeros.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Fills `buffer`, or fails with `UnexpectedEof`.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Cuts the file, or extends it with zeros.
    fn set_len(&self, length: u64) -> io::Result<()>;

    /// Returned without error: all bytes and the length are on stable storage. On an error, give the file up.
    fn sync(&self) -> io::Result<()>;

    fn len(&self) -> io::Result<u64>;

    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// Names of ours are ASCII; one that is not UTF-8 is shown with replacement characters and so matches none of them.
    pub name: String,
    pub is_dir: bool,
    /// Bytes of the file; 0 for a directory.
    pub length: u64,
}

/// The content of a file of at most `limit_bytes`; `InvalidData` if it is longer, before anything is allocated.
pub fn read_whole(disk: &dyn Disk, path: &Path, limit_bytes: u64) -> io::Result<Vec<u8>> {
    let file = disk.open(path)?;
    let length = file.len()?;
    if length > limit_bytes {
        let text = format!("{} has {length} bytes, at most {limit_bytes} are expected", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let length = usize::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    let mut content = vec![0; length];
    file.read_at(0, &mut content)?;
    Ok(content)
}

/// Replaces a file's content durably: after a crash at any point it is the old or the new one, whole.
pub fn replace_whole(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = temporary_name(path);
    let file = match disk.create(&temporary) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // Left by a crash before the rename; nobody has been told of its content.
            disk.remove(&temporary)?;
            disk.create(&temporary)?
        }
        other => other?,
    };
    file.append(bytes)?;
    file.sync()?;
    drop(file);
    disk.rename(&temporary, path)?;
    disk.sync_dir(parent_of(path))
}

/// The name `replace_whole` writes to before it renames.
pub fn temporary_name(path: &Path) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(TEMPORARY_SUFFIX);
    PathBuf::from(name)
}

/// The directory that holds `path`'s name; "." for a bare name and "/" for the root itself.
pub fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}
