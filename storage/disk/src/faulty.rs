//! Any disk, made to fail where a test says: the n-th call of a kind, on a path or anywhere, once or from then on.
//!
//! Calls are counted by kind also when nothing fails, so that a test can run once, read the counts, and then run again
//! for every n. A failed sync does not reach the disk below: what was unsynced stays so.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::{DirEntry, Disk, DiskFile, SharedDisk, Space};

/// A kind of call, of a disk or of a file on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Open,
    Exists,
    Rename,
    Remove,
    RemoveDirAll,
    CreateDirAll,
    List,
    SyncDir,
    Space,
    Append,
    WriteAt,
    ReadAt,
    SetLen,
    Sync,
    Len,
}

impl Operation {
    pub const ALL: [Operation; 16] = [
        Operation::Create,
        Operation::Open,
        Operation::Exists,
        Operation::Rename,
        Operation::Remove,
        Operation::RemoveDirAll,
        Operation::CreateDirAll,
        Operation::List,
        Operation::SyncDir,
        Operation::Space,
        Operation::Append,
        Operation::WriteAt,
        Operation::ReadAt,
        Operation::SetLen,
        Operation::Sync,
        Operation::Len,
    ];
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// EIO; nothing was done.
    InputOutput,
    /// ENOSPC; nothing was done.
    NoSpace,
    /// Half of the bytes are written, then ENOSPC. EIO with nothing done for calls that write none.
    ShortWrite,
    /// The call is carried out, and then reported as failed: the caller cannot know.
    DoneButReported,
    /// A read succeeds with one bit flipped. EIO with nothing done for calls that read no bytes.
    FlippedBit,
}

/// Which calls fail, and how. A call must match every condition that is set; the n-th that does fails.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    operation: Option<Operation>,
    path_contains: Option<String>,
    nth: u64,
    lasting: bool,
    fault: Fault,
    seen: u64,
}

impl FaultPlan {
    /// Nothing fails.
    pub fn none() -> FaultPlan {
        FaultPlan { rules: Vec::new() }
    }

    /// The `nth` call (1 is the first) of a kind fails, once.
    pub fn fail(operation: Operation, nth: u64, fault: Fault) -> FaultPlan {
        FaultPlan::none().and(Some(operation), nth, fault)
    }

    /// The `nth` call of any kind fails, once.
    pub fn fail_any(nth: u64, fault: Fault) -> FaultPlan {
        FaultPlan::none().and(None, nth, fault)
    }

    /// Adds a rule; a call takes the first fault whose rule it completes.
    pub fn and(mut self, operation: Option<Operation>, nth: u64, fault: Fault) -> FaultPlan {
        assert!(nth > 0, "calls are counted from 1");
        self.rules.push(Rule { operation, path_contains: None, nth, lasting: false, fault, seen: 0 });
        self
    }

    /// The last rule counts only calls whose path contains `text` (a rename's from or to).
    pub fn on_path(mut self, text: &str) -> FaultPlan {
        if let Some(rule) = self.rules.last_mut() {
            rule.path_contains = Some(text.to_owned());
        }
        self
    }

    /// The last rule goes on failing after its first time.
    pub fn lasting(mut self) -> FaultPlan {
        if let Some(rule) = self.rules.last_mut() {
            rule.lasting = true;
        }
        self
    }

    fn next_fault(&mut self, operation: Operation, paths: &[&Path]) -> Option<Fault> {
        let mut found = None;
        for rule in &mut self.rules {
            let right_kind = rule.operation.is_none_or(|wanted| wanted == operation);
            let right_path = rule
                .path_contains
                .as_ref()
                .is_none_or(|text| paths.iter().any(|path| path.to_string_lossy().contains(text.as_str())));
            if !(right_kind && right_path) {
                continue;
            }
            rule.seen += 1;
            if rule.seen == rule.nth || (rule.lasting && rule.seen > rule.nth) {
                found = found.or(Some(rule.fault));
            }
        }
        found
    }
}

/// Wraps any disk; clones share counts and plan.
#[derive(Clone)]
pub struct FaultyDisk {
    inner: SharedDisk,
    faults: Arc<Faults>,
}

#[derive(Debug)]
struct Faults {
    plan: Mutex<FaultPlan>,
    calls: [AtomicU64; Operation::ALL.len()],
    injected: AtomicU64,
}

#[derive(Debug)]
struct FaultyFile {
    inner: Arc<dyn DiskFile>,
    faults: Arc<Faults>,
    path: PathBuf,
}

impl fmt::Debug for FaultyDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyDisk").field("inner", &self.inner).field("faults", &self.faults).finish()
    }
}

impl FaultyDisk {
    pub fn new(inner: SharedDisk, plan: FaultPlan) -> FaultyDisk {
        let calls = std::array::from_fn(|_| AtomicU64::new(0));
        let faults = Faults { plan: Mutex::new(plan), calls, injected: AtomicU64::new(0) };
        FaultyDisk { inner, faults: Arc::new(faults) }
    }

    /// Replaces the plan; its counting starts now.
    pub fn set_plan(&self, plan: FaultPlan) {
        *self.faults.plan.lock() = plan;
    }

    /// Calls of one kind so far, failed ones included.
    pub fn calls(&self, operation: Operation) -> u64 {
        self.faults.calls[operation as usize].load(Ordering::Relaxed)
    }

    /// Calls of all kinds so far.
    pub fn calls_total(&self) -> u64 {
        Operation::ALL.iter().map(|operation| self.calls(*operation)).sum()
    }

    /// Calls that were made to fail so far.
    pub fn injected(&self) -> u64 {
        self.faults.injected.load(Ordering::Relaxed)
    }

    fn wrap(&self, inner: Arc<dyn DiskFile>, path: &Path) -> Arc<dyn DiskFile> {
        Arc::new(FaultyFile { inner, faults: Arc::clone(&self.faults), path: path.to_path_buf() })
    }
}

impl Faults {
    fn call<T>(
        &self,
        operation: Operation,
        paths: &[&Path],
        act: impl FnOnce() -> io::Result<T>,
        act_by_half: impl FnOnce(),
    ) -> io::Result<T> {
        let writes = matches!(operation, Operation::Append | Operation::WriteAt);
        carry_out(self.next_fault(operation, paths), writes, act, act_by_half)
    }

    /// Counts a call, and returns how it is to fail.
    fn next_fault(&self, operation: Operation, paths: &[&Path]) -> Option<Fault> {
        self.calls[operation as usize].fetch_add(1, Ordering::Relaxed);
        let fault = self.plan.lock().next_fault(operation, paths)?;
        self.injected.fetch_add(1, Ordering::Relaxed);
        Some(fault)
    }

    fn plain<T>(&self, operation: Operation, path: &Path, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.call(operation, &[path], act, || {})
    }
}

fn carry_out<T>(
    fault: Option<Fault>,
    writes: bool,
    act: impl FnOnce() -> io::Result<T>,
    act_by_half: impl FnOnce(),
) -> io::Result<T> {
    let errno = match fault {
        None => return act(),
        Some(Fault::DoneButReported) => {
            act()?;
            rustix::io::Errno::IO
        }
        Some(Fault::ShortWrite) if writes => {
            act_by_half();
            rustix::io::Errno::NOSPC
        }
        Some(Fault::NoSpace) => rustix::io::Errno::NOSPC,
        Some(Fault::InputOutput | Fault::ShortWrite | Fault::FlippedBit) => rustix::io::Errno::IO,
    };
    Err(errno.into())
}

impl Disk for FaultyDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.faults.plain(Operation::Create, path, || self.inner.create(path))?;
        Ok(self.wrap(file, path))
    }

    fn create_bulk(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.faults.plain(Operation::Create, path, || self.inner.create_bulk(path))?;
        Ok(self.wrap(file, path))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.faults.plain(Operation::Open, path, || self.inner.open(path))?;
        Ok(self.wrap(file, path))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.faults.plain(Operation::Exists, path, || self.inner.exists(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.faults.call(Operation::Rename, &[from, to], || self.inner.rename(from, to), || {})
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.faults.plain(Operation::Remove, path, || self.inner.remove(path))
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.faults.plain(Operation::RemoveDirAll, path, || self.inner.remove_dir_all(path))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.faults.plain(Operation::CreateDirAll, path, || self.inner.create_dir_all(path))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        self.faults.plain(Operation::List, dir, || self.inner.list(dir))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.faults.plain(Operation::SyncDir, dir, || self.inner.sync_dir(dir))
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        self.faults.plain(Operation::Space, path, || self.inner.space(path))
    }
}

impl DiskFile for FaultyFile {
    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        // Half of the bytes go as far as the disk below takes them; the call has failed already.
        let half = || drop(self.inner.append(&bytes[..bytes.len() / 2]));
        self.faults.call(Operation::Append, &[&self.path], || self.inner.append(bytes), half)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let half = || drop(self.inner.write_at(offset, &bytes[..bytes.len() / 2]));
        self.faults.call(Operation::WriteAt, &[&self.path], || self.inner.write_at(offset, bytes), half)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let fault = self.faults.next_fault(Operation::ReadAt, &[&self.path]);
        let flips = fault == Some(Fault::FlippedBit);
        carry_out(fault.filter(|_| !flips), false, || self.inner.read_at(offset, buffer), || {})?;
        if let Some(byte) = buffer.first_mut().filter(|_| flips) {
            *byte ^= 1;
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.faults.plain(Operation::SetLen, &self.path, || self.inner.set_len(length))
    }

    fn sync(&self) -> io::Result<()> {
        self.faults.plain(Operation::Sync, &self.path, || self.inner.sync())
    }

    fn len(&self) -> io::Result<u64> {
        self.faults.plain(Operation::Len, &self.path, || self.inner.len())
    }
}

#[cfg(test)]
mod tests;
