//! Disk of a simulated machine, and its state after a crash. A simulated process uses it through [`CrashPoint`], which
//! ends the process at a chosen step.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use assay_storage_disk::{DirEntry, Disk, DiskFile, SimulatedDisk, Space};
use assay_storage_kv::{Batch, Entries, Kv, KvError, Kvs, MemoryKvs};
use assay_storage_log::simulated::SimulatedFiles;

use super::randomness::Dice;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The process ended: all that was written is there.
    Kill,
    /// The machine lost power: a random part of the unsynced changes remains.
    Power,
}

/// The log, the files and the keyed stores of a machine. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct MachineDisk {
    pub log: SimulatedFiles,
    pub disk: SimulatedDisk,
    pub kvs: MemoryKvs,
}

impl MachineDisk {
    /// Returns the state that another process finds if this one ends now. It continues here as if nothing had happened.
    pub fn after(&self, cut: Cut, dice: &Dice) -> MachineDisk {
        match cut {
            Cut::Kill => MachineDisk {
                log: self.log.after_kill(),
                disk: self.disk.power_cut(assay_storage_disk::SEED_KEEPS_ALL),
                kvs: self.kvs.power_cut(),
            },
            Cut::Power => {
                let log = self
                    .log
                    .after_power_cut(|changes| usize::try_from(dice.below(changes as u64 + 1)).unwrap_or(changes));
                let disk = self.disk.power_cut(dice.with(rand::Rng::random));
                MachineDisk { log, disk, kvs: self.kvs.power_cut() }
            }
        }
    }
}

/// Counts the steps that change the disk, and reports when the chosen one is reached.
pub struct CrashPoint {
    /// Steps that are left, plus one; 0 where none was chosen.
    left: AtomicU64,
    reached: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for CrashPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrashPoint").field("left", &self.left).finish_non_exhaustive()
    }
}

impl CrashPoint {
    pub fn new(reached: impl Fn() + Send + Sync + 'static) -> Arc<CrashPoint> {
        Arc::new(CrashPoint { left: AtomicU64::new(0), reached: Box::new(reached) })
    }

    pub fn choose(&self, steps: u64) {
        self.left.store(steps + 1, Ordering::Relaxed);
    }

    pub fn forget(&self) {
        self.left.store(0, Ordering::Relaxed);
    }

    /// Called before a step.
    fn step(&self) {
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if left == Ok(1) {
            (self.reached)();
        }
    }
}

/// A machine's disk, as a process that will crash sees it.
#[derive(Debug)]
pub struct WatchedDisk {
    pub disk: SimulatedDisk,
    pub point: Arc<CrashPoint>,
}

#[derive(Debug)]
struct WatchedFile {
    file: Arc<dyn DiskFile>,
    point: Arc<CrashPoint>,
}

impl WatchedDisk {
    fn watched(&self, file: io::Result<Arc<dyn DiskFile>>) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(WatchedFile { file: file?, point: Arc::clone(&self.point) }))
    }
}

impl Disk for WatchedDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.point.step();
        self.watched(self.disk.create(path))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.watched(self.disk.open(path))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.point.step();
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.point.step();
        self.disk.remove(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.point.step();
        self.disk.remove_dir_all(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.point.step();
        self.disk.create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        self.disk.list(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.point.step();
        self.disk.sync_dir(dir)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        self.disk.space(path)
    }
}

impl DiskFile for WatchedFile {
    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        self.point.step();
        self.file.append(bytes)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.point.step();
        self.file.write_at(offset, bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, buffer)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.point.step();
        self.file.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.point.step();
        self.file.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

/// A machine's keyed stores, as a process that will crash sees them.
#[derive(Debug)]
pub struct WatchedKvs {
    pub kvs: MemoryKvs,
    pub point: Arc<CrashPoint>,
}

#[derive(Debug)]
struct WatchedKv {
    kv: Arc<dyn Kv>,
    point: Arc<CrashPoint>,
}

impl Kvs for WatchedKvs {
    fn open(&self, dir: &Path) -> Result<Arc<dyn Kv>, KvError> {
        Ok(Arc::new(WatchedKv { kv: self.kvs.open(dir)?, point: Arc::clone(&self.point) }))
    }
}

impl Kv for WatchedKv {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, KvError> {
        self.kv.get(key)
    }

    fn scan(&self, prefix: &[u8]) -> Result<Entries, KvError> {
        self.kv.scan(prefix)
    }

    fn commit(&self, batch: &Batch) -> Result<(), KvError> {
        self.point.step();
        self.kv.commit(batch)
    }

    fn entries(&self) -> u64 {
        self.kv.entries()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chosen_step_is_reached_once_and_before_it_is_made() {
        let kept = MachineDisk::default();
        let left = Arc::new(parking_lot::Mutex::new(None));
        let point = CrashPoint::new({
            let (kept, left) = (kept.clone(), Arc::clone(&left));
            move || *left.lock() = Some(kept.after(Cut::Kill, &Dice::new(1)))
        });
        let disk = WatchedDisk { disk: kept.disk.clone(), point: Arc::clone(&point) };
        let file = disk.create(Path::new("/a")).expect("a file");
        point.choose(1);
        file.append(b"before").expect("room");
        assert!(left.lock().is_none());
        file.append(b" and after").expect("room");
        let found = left.lock().take().expect("the second step was chosen");
        assert_eq!(found.disk.files(), [("/a".into(), 6)]);
        file.append(b"!").expect("room");
        assert!(left.lock().is_none(), "it is reached once");
    }
}
