//! Read-only view of the real disk: a check that tried to write would fail.

use std::io;
use std::path::Path;
use std::sync::Arc;

use assay_storage_disk::{DirEntry, Disk, DiskFile, RealDisk, Space};

#[derive(Debug)]
pub struct ReadOnlyDisk;

fn refused() -> io::Error {
    io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "the doctor does not write")
}

impl Disk for ReadOnlyDisk {
    fn create(&self, _: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Err(refused())
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(ReadOnlyFile(RealDisk.open(path)?)))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        RealDisk.exists(path)
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(refused())
    }

    /// Does nothing: leftovers of a crash stay, and are not read.
    fn remove(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn remove_dir_all(&self, _: &Path) -> io::Result<()> {
        Err(refused())
    }

    /// Opening a store makes the directories it lacks; a missing one reads as empty here.
    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        match RealDisk.list(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            other => other,
        }
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        RealDisk.space(path)
    }
}

#[derive(Debug)]
struct ReadOnlyFile(Arc<dyn DiskFile>);

impl DiskFile for ReadOnlyFile {
    fn append(&self, _: &[u8]) -> io::Result<u64> {
        Err(refused())
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(refused())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, buffer)
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(refused())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_reads_and_nothing_can_be_written() {
        let dir = tempfile::tempdir().expect("makes");
        let path = dir.path().join("file");
        std::fs::write(&path, b"as it was").expect("writes");
        let file = ReadOnlyDisk.open(&path).expect("opens");
        assert!(file.append(b"x").is_err() && file.set_len(0).is_err() && file.write_at(0, b"x").is_err());
        assert!(ReadOnlyDisk.rename(&path, &dir.path().join("other")).is_err());
        ReadOnlyDisk.remove(&path).expect("pretends");
        assert_eq!(std::fs::read(&path).expect("reads"), b"as it was");
    }
}
