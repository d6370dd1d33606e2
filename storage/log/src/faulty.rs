//! File system with fault injection for tests. It fails the n-th write or the n-th sync, once or from then on.
//!
//! It counts all writes and syncs. A failed sync does not reach the file. A torn write leaves half of its bytes there.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use raft_engine::env::{FileSystem, Handle, Permission, WriteExt};

use crate::direct::DirectFileSystem;

type UnderlyingFileSystem = DirectFileSystem;

/// Kind of an injected failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFault {
    /// Failure of the device without any write.
    Broken,
    /// Failure of the device in the middle of a write.
    Torn,
    /// Full disk.
    Full,
}

impl FileFault {
    fn error(self) -> io::Error {
        match self {
            FileFault::Broken | FileFault::Torn => io::Error::other("injected EIO"),
            // raft-engine recognizes a full disk by this word.
            FileFault::Full => io::Error::new(io::ErrorKind::StorageFull, "injected ENOSPC: nospace"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Planned {
    fault: FileFault,
    from: u64,
    times: u64,
}

#[derive(Debug, Default)]
struct Calls {
    count: AtomicU64,
    planned: Mutex<Option<Planned>>,
}

impl Calls {
    fn next(&self) -> Option<FileFault> {
        let call = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        let planned = (*self.planned.lock())?;
        (planned.from..planned.from.saturating_add(planned.times)).contains(&call).then_some(planned.fault)
    }

    fn plan(&self, nth: u64, times: u64, fault: FileFault) {
        let from = self.count.load(Ordering::SeqCst) + nth;
        *self.planned.lock() = Some(Planned { fault, from, times });
    }
}

/// Wrapper of the log's file system.
#[derive(Debug, Default)]
pub struct FaultFileSystem {
    calls: Arc<FileCalls>,
}

#[derive(Debug, Default)]
struct FileCalls {
    writes: Calls,
    syncs: Calls,
}

impl FaultFileSystem {
    pub fn new() -> Arc<FaultFileSystem> {
        Arc::default()
    }

    /// Fails the `nth` write from now and the following ones, `times` in all. The next write has the number 1.
    pub fn fail_writes(&self, nth: u64, times: u64, fault: FileFault) {
        self.calls.writes.plan(nth, times, fault);
    }

    /// Fails the `nth` sync from now and the following ones, `times` in all.
    pub fn fail_syncs(&self, nth: u64, times: u64) {
        self.calls.syncs.plan(nth, times, FileFault::Broken);
    }

    pub fn writes(&self) -> u64 {
        self.calls.writes.count.load(Ordering::SeqCst)
    }

    pub fn syncs(&self) -> u64 {
        self.calls.syncs.count.load(Ordering::SeqCst)
    }
}

/// Open file.
pub struct FaultHandle {
    inner: Arc<<UnderlyingFileSystem as FileSystem>::Handle>,
    calls: Arc<FileCalls>,
}

/// Writer of a file.
pub struct FaultWriter {
    inner: <UnderlyingFileSystem as FileSystem>::Writer,
    calls: Arc<FileCalls>,
}

impl std::fmt::Debug for FaultHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultHandle").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for FaultWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultWriter").finish_non_exhaustive()
    }
}

impl FileSystem for FaultFileSystem {
    type Handle = FaultHandle;
    type Reader = <UnderlyingFileSystem as FileSystem>::Reader;
    type Writer = FaultWriter;

    fn create<P: AsRef<Path>>(&self, path: P) -> io::Result<FaultHandle> {
        Ok(FaultHandle { inner: Arc::new(DirectFileSystem.create(path)?), calls: self.calls.clone() })
    }

    fn open<P: AsRef<Path>>(&self, path: P, permission: Permission) -> io::Result<FaultHandle> {
        Ok(FaultHandle { inner: Arc::new(DirectFileSystem.open(path, permission)?), calls: self.calls.clone() })
    }

    fn delete<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        DirectFileSystem.delete(path)
    }

    fn rename<P: AsRef<Path>>(&self, from: P, to: P) -> io::Result<()> {
        DirectFileSystem.rename(from, to)
    }

    fn new_reader(&self, handle: Arc<FaultHandle>) -> io::Result<Self::Reader> {
        DirectFileSystem.new_reader(handle.inner.clone())
    }

    fn new_writer(&self, handle: Arc<FaultHandle>) -> io::Result<FaultWriter> {
        Ok(FaultWriter { inner: DirectFileSystem.new_writer(handle.inner.clone())?, calls: self.calls.clone() })
    }
}

impl Handle for FaultHandle {
    fn truncate(&self, offset: usize) -> io::Result<()> {
        Handle::truncate(&*self.inner, offset)
    }

    fn file_size(&self) -> io::Result<usize> {
        self.inner.file_size()
    }

    fn sync(&self) -> io::Result<()> {
        match self.calls.syncs.next() {
            Some(fault) => Err(fault.error()),
            None => self.inner.sync(),
        }
    }
}

impl Write for FaultWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.calls.writes.next() {
            Some(FileFault::Torn) => {
                self.inner.write_all(&bytes[..bytes.len() / 2])?;
                Err(FileFault::Torn.error())
            }
            Some(fault) => Err(fault.error()),
            None => self.inner.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Seek for FaultWriter {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

impl WriteExt for FaultWriter {
    fn truncate(&mut self, offset: usize) -> io::Result<()> {
        WriteExt::truncate(&mut self.inner, offset)
    }

    fn allocate(&mut self, offset: usize, bytes: usize) -> io::Result<()> {
        self.inner.allocate(offset, bytes)
    }
}
