//! File system of raft-engine with large appends that bypass the page cache.
//!
//! The log is written once, and read only at a start or for a replica that fell behind. Cached pages of the log would
//! evict pages that queries need. Filling them costs more than all other work of the log's thread.
//!
//! Whole pages of a write bypass the cache. Its ends (less than a page each), small writes and reads go through the
//! cache. The kernel separates the two by page, and a sync covers both.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_storage_disk::{DirectFile, files_ran_out, parent_of, when_files_are_left};
use raft_engine::env::{DefaultFileSystem, FileSystem, Handle, Permission, WriteExt};

type BaseFileSystem = DefaultFileSystem;

/// Wrapper of raft-engine's own file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct DirectFileSystem;

/// Open file.
pub struct DirectHandle {
    inner: Arc<<BaseFileSystem as FileSystem>::Handle>,
    path: PathBuf,
}

/// Writer of a file.
pub struct DirectWriter {
    inner: <BaseFileSystem as FileSystem>::Writer,
    /// Direct access, or `None` if the file system of the log does not support it and every write goes through the
    /// cache.
    direct: Option<DirectFile>,
    offset: u64,
}

impl std::fmt::Debug for DirectHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectHandle").field("path", &self.path).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for DirectWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectWriter").field("offset", &self.offset).finish_non_exhaustive()
    }
}

impl FileSystem for DirectFileSystem {
    type Handle = DirectHandle;
    type Reader = <BaseFileSystem as FileSystem>::Reader;
    type Writer = DirectWriter;

    fn create<P: AsRef<Path>>(&self, path: P) -> io::Result<DirectHandle> {
        let path = path.as_ref().to_path_buf();
        Ok(DirectHandle { inner: Arc::new(open_file(&path, || DefaultFileSystem.create(&path))?), path })
    }

    fn open<P: AsRef<Path>>(&self, path: P, permission: Permission) -> io::Result<DirectHandle> {
        let path = path.as_ref().to_path_buf();
        Ok(DirectHandle { inner: Arc::new(open_file(&path, || DefaultFileSystem.open(&path, permission))?), path })
    }

    fn delete<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        DefaultFileSystem.delete(path)
    }

    fn rename<P: AsRef<Path>>(&self, from: P, to: P) -> io::Result<()> {
        DefaultFileSystem.rename(from, to)
    }

    fn new_reader(&self, handle: Arc<DirectHandle>) -> io::Result<Self::Reader> {
        DefaultFileSystem.new_reader(Arc::clone(&handle.inner))
    }

    fn new_writer(&self, handle: Arc<DirectHandle>) -> io::Result<DirectWriter> {
        let inner = DefaultFileSystem.new_writer(Arc::clone(&handle.inner))?;
        Ok(DirectWriter { inner, direct: DirectFile::open(&handle.path), offset: 0 })
    }
}

/// Opens a file of the log. It waits while the process or the machine has no free file descriptor.
fn open_file<T>(path: &Path, open: impl Fn() -> io::Result<T>) -> io::Result<T> {
    when_files_are_left(|| open().map_err(|error| with_cause(path, error)))
}

/// Returns the cause of a raft-engine error if that is a lack of file descriptors.
///
/// raft-engine drops the error number. Opening the file's directory shows whether descriptors are free.
fn with_cause(path: &Path, error: io::Error) -> io::Error {
    match File::open(parent_of(path)) {
        Err(cause) if files_ran_out(&cause) => cause,
        _ => error,
    }
}

impl Handle for DirectHandle {
    fn truncate(&self, offset: usize) -> io::Result<()> {
        Handle::truncate(&*self.inner, offset)
    }

    fn file_size(&self) -> io::Result<usize> {
        self.inner.file_size()
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
}

impl DirectWriter {
    fn write_through_cache(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.seek(SeekFrom::Start(offset))?;
        self.inner.write_all(bytes)
    }
}

impl Write for DirectWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let whole = match &mut self.direct {
            Some(direct) => direct.write_pages(self.offset, bytes).map_err(full_disk)?,
            None => 0..0,
        };
        let behind = self.offset + whole.end as u64;
        self.write_through_cache(self.offset, &bytes[..whole.start])?;
        self.write_through_cache(behind, &bytes[whole.end..])?;
        self.offset += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Seek for DirectWriter {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Current(by) => SeekFrom::Start(self.offset.saturating_add_signed(by)),
            other => other,
        };
        self.offset = self.inner.seek(to)?;
        Ok(self.offset)
    }
}

impl WriteExt for DirectWriter {
    fn truncate(&mut self, offset: usize) -> io::Result<()> {
        WriteExt::truncate(&mut self.inner, offset)?;
        self.offset = offset as u64;
        Ok(())
    }

    fn allocate(&mut self, offset: usize, bytes: usize) -> io::Result<()> {
        self.inner.allocate(offset, bytes)
    }
}

/// Converts a full-disk error to the text by which raft-engine recognizes one.
fn full_disk(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::StorageFull => io::Error::new(io::ErrorKind::StorageFull, "nospace"),
        _ => error,
    }
}
