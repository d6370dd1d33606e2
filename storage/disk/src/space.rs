//! Free space on the disk: what is admitted at which level, and the ballast that an operator can delete when nothing fits.

use std::io;
use std::path::{Path, PathBuf};

use crate::{Disk, parent_of, temporary_name};

/// Client writes are refused (507) when less than this share is free.
pub const REFUSE_WRITES_BELOW_PERCENT: u64 = 10;

/// Below this share a node gives its leaderships away.
pub const STEP_DOWN_BELOW_PERCENT: u64 = 2;

/// The ballast's size: 64 MiB, enough for a start, a seal's metadata and a clean stop on a disk that was full.
pub const BALLAST_BYTES: u64 = 64 * 1024 * 1024;

/// One write of the ballast, in bytes.
const BALLAST_CHUNK_BYTES: u64 = 1024 * 1024;

/// Free and total space of a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    pub free: u64,
    pub total: u64,
}

/// What a node may do at some fill of its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpaceLevel {
    Plenty,
    /// Client writes get 507; consensus, reads and deletes go on.
    RefuseWrites,
    /// As before, and leaderships move to other nodes.
    StepDown,
}

/// What `space` allows when `reserved` bytes of the free ones are promised already (a merge under way, a snapshot
/// being fetched). A disk whose size is unknown (0) allows nothing.
pub fn admit(space: Space, reserved: u64) -> SpaceLevel {
    let free = u128::from(space.free.saturating_sub(reserved)) * 100;
    let total = u128::from(space.total);
    if total == 0 || free < total * u128::from(STEP_DOWN_BELOW_PERCENT) {
        SpaceLevel::StepDown
    } else if free < total * u128::from(REFUSE_WRITES_BELOW_PERCENT) {
        SpaceLevel::RefuseWrites
    } else {
        SpaceLevel::Plenty
    }
}

/// A file that only reserves space.
#[derive(Clone, Debug)]
pub struct Ballast {
    path: PathBuf,
}

impl Ballast {
    /// Makes sure that `path` holds `BALLAST_BYTES` of blocks really allocated. An error means that there is no room
    /// for it; what was written of it is taken away again.
    pub fn reserve(disk: &dyn Disk, path: &Path) -> io::Result<Ballast> {
        Self::reserve_bytes(disk, path, BALLAST_BYTES)
    }

    fn reserve_bytes(disk: &dyn Disk, path: &Path, bytes: u64) -> io::Result<Ballast> {
        let ballast = Ballast { path: path.to_path_buf() };
        // It gets its name only when whole, so a name with the right length needs no second look.
        if disk.exists(path)? && disk.open(path)?.len()? == bytes {
            return Ok(ballast);
        }
        let temporary = temporary_name(path);
        if disk.exists(&temporary)? {
            disk.remove(&temporary)?;
        }
        if let Err(error) = fill(disk, &temporary, bytes) {
            // The first error is the one to report, and the space is given back as far as the disk still lets us.
            let _ = disk.remove(&temporary);
            return Err(error);
        }
        disk.rename(&temporary, path)?;
        disk.sync_dir(parent_of(path))?;
        Ok(ballast)
    }

    /// Gives the space back.
    pub fn release(self, disk: &dyn Disk) -> io::Result<()> {
        disk.remove(&self.path)?;
        disk.sync_dir(parent_of(&self.path))
    }
}

/// Writes bytes that no file system can compress or leave out as holes.
fn fill(disk: &dyn Disk, path: &Path, bytes: u64) -> io::Result<()> {
    let file = disk.create(path)?;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut written = 0;
    while written < bytes {
        let length = BALLAST_CHUNK_BYTES.min(bytes - written);
        let mut chunk = Vec::with_capacity(length as usize + 8);
        while (chunk.len() as u64) < length {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            chunk.extend_from_slice(&state.to_le_bytes());
        }
        chunk.truncate(length as usize);
        file.append(&chunk)?;
        written += length;
    }
    file.sync()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimulatedDisk;

    fn check(free: u64, total: u64, reserved: u64, expected: SpaceLevel) {
        assert_eq!(admit(Space { free, total }, reserved), expected, "{free} of {total}, {reserved} reserved");
    }

    #[test]
    fn writes_stop_below_ten_percent_and_leadership_below_two() {
        check(100, 1_000, 0, SpaceLevel::Plenty);
        check(99, 1_000, 0, SpaceLevel::RefuseWrites);
        check(20, 1_000, 0, SpaceLevel::RefuseWrites);
        check(19, 1_000, 0, SpaceLevel::StepDown);
        check(u64::MAX, u64::MAX, 0, SpaceLevel::Plenty);
    }

    #[test]
    fn promised_bytes_count_as_taken() {
        check(500, 1_000, 401, SpaceLevel::RefuseWrites);
        check(500, 1_000, 600, SpaceLevel::StepDown);
    }

    #[test]
    fn a_disk_of_unknown_size_is_full() {
        check(0, 0, 0, SpaceLevel::StepDown);
    }

    #[test]
    fn the_ballast_takes_space_once_and_gives_it_back() {
        let disk = SimulatedDisk::with_total(10_000_000);
        disk.create_dir_all(Path::new("/data")).unwrap();
        let path = Path::new("/data/ballast");
        Ballast::reserve_bytes(&disk, path, 3_000_001).unwrap();
        let ballast = Ballast::reserve_bytes(&disk, path, 3_000_001).unwrap();
        assert_eq!(disk.space(path).unwrap().free, 10_000_000 - 3_000_001);
        ballast.release(&disk).unwrap();
        assert_eq!(disk.space(Path::new("/data")).unwrap().free, 10_000_000);
    }

    #[test]
    fn a_ballast_that_does_not_fit_leaves_nothing() {
        let disk = SimulatedDisk::with_total(1_500_000);
        disk.create_dir_all(Path::new("/data")).unwrap();
        let error = Ballast::reserve_bytes(&disk, Path::new("/data/ballast"), 3_000_000).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(disk.list(Path::new("/data")).unwrap(), vec![]);
    }
}
