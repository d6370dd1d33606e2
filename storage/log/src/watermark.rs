//! Watermark: the position up to which each group's log and vote were acknowledged as durable.
//!
//! It is stored in `<log directory>.watermark`. Without it, a log that lost its tail looks like a log that never had
//! one. With it, damage or loss at or below the watermark is corruption, and damage above it is a write that was never
//! acknowledged.
//!
//! # Layout
//!
//! The file is a header of 4 KiB, and then a pair of halves for each group. A half takes 512 bytes (a sector), of which
//! 64 are used. Its little-endian fields are `version u8, flags u8, sequence u64, group u64, last index u64, last
//! record's CRC32C u32, purged index u64, vote's number u64, vote's CRC32C u32, zeros, CRC32C u32`. The valid half with
//! the higher sequence counts.
//!
//! # State after a crash
//!
//! Halves are overwritten without a sync after each sync of the log, so a power cut may lose or tear them. Therefore
//! one half of each pair is always an *anchor*: synced, and not overwritten until the other half has been synced. A
//! torn or lost half leaves the anchor, which is older and so lower. Then less is checked, but nothing missing is
//! required. Before a level falls in the log (a truncation or a removed group), both halves are written, each with its
//! own sync. So no half is ever above the truth. The first pair of a group is made in the same way. If its first half
//! is torn, its second is still empty, and such a pair counts as none.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_storage_disk::{Disk, DiskFile};
use assay_storage_model::GroupId;

use crate::error::{Corruption, LogError};
use crate::group::Group;
use crate::{GROUPS_MAX, group_metadata};

const MAGIC: &[u8] = b"assay log watermark 1\n";
const HEADER_BYTES: usize = 4096;
const HALF_BYTES: usize = 512;
const PAIR_BYTES: usize = 2 * HALF_BYTES;
const USED_BYTES: usize = 64;
const CHECKED_BYTES: usize = 60;
const FILE_BYTES_MAX: usize = HEADER_BYTES + (GROUPS_MAX + 1) * PAIR_BYTES;

const VERSION: u8 = 1;
const HAS_LAST: u8 = 1;
const HAS_PURGED: u8 = 2;
const HAS_VOTE: u8 = 4;
const REMOVED: u8 = 8;

/// Acknowledged level of one group's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Level {
    /// Index and checksum of the last record.
    pub last: Option<(u64, u32)>,
    pub purged: Option<u64>,
    /// Number and checksum of the vote.
    pub vote: Option<(u64, u32)>,
    /// Flag of a group that has left this node, so that its log is no longer checked.
    pub removed: bool,
}

impl Level {
    pub fn of(group: &Group) -> Level {
        Level {
            last: group.last.map(|mark| (mark.index, mark.checksum)),
            purged: group.head.purged.as_ref().map(|purged| purged.index),
            vote: group.vote.as_ref().map(|vote| (vote.number, group_metadata::Vote::checksum(vote))),
            removed: false,
        }
    }

    const GONE: Level = Level { last: None, purged: None, vote: None, removed: true };
}

/// Position of a group's pair in the file, and its newest half.
#[derive(Clone, Copy, Debug)]
struct Pair {
    place: usize,
    sequence: u64,
    /// Index of the half written last, 0 or 1.
    newest: usize,
    /// Whether the newest half is synced, so that the other may be overwritten.
    anchored: bool,
}

/// Watermark file, open for the writer.
#[derive(Debug)]
pub(crate) struct Watermark {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    pairs: BTreeMap<GroupId, Pair>,
    free: Vec<Pair>,
    places: usize,
}

/// Content of the watermark file.
#[derive(Debug, Default)]
pub(crate) struct Levels {
    pub of: BTreeMap<GroupId, Level>,
    /// Messages about torn halves, which are harmless.
    pub torn: Vec<String>,
    pairs: BTreeMap<GroupId, Pair>,
    free: Vec<Pair>,
    places: usize,
}

/// Returns the path of the watermark of a log directory: `log.watermark` for `log`.
pub(crate) fn path_beside(dir: &Path) -> Result<PathBuf, LogError> {
    let Some(name) = dir.file_name() else {
        return Err(LogError::Refused(format!("{} cannot be a log directory: it has no name", dir.display())));
    };
    let mut name = name.to_os_string();
    name.push(".watermark");
    Ok(dir.with_file_name(name))
}

/// Creates an empty file that is durable with its name. This must happen before the log's first file exists.
pub(crate) fn create(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    let mut header = vec![0; HEADER_BYTES];
    header[..MAGIC.len()].copy_from_slice(MAGIC);
    assay_storage_disk::replace_whole(disk, path, &header)
}

/// Reads and checks the whole file without changing it.
pub(crate) fn load(disk: &dyn Disk, path: &Path) -> Result<Levels, LogError> {
    let damaged = |what: String| Corruption { group: None, file: path.to_path_buf(), index: None, what };
    let mut bytes = match assay_storage_disk::read_whole(disk, path, FILE_BYTES_MAX as u64) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(damaged(error.to_string()).into()),
        Err(error) => return Err(LogError::io(path.display(), error)),
    };
    let Some(pairs) = bytes.get(HEADER_BYTES..).filter(|_| bytes.starts_with(MAGIC)) else {
        return Err(damaged("this is not the header of a watermark file of version 1".to_string()).into());
    };
    let places = pairs.len().div_ceil(PAIR_BYTES);
    bytes.resize(HEADER_BYTES + places * PAIR_BYTES, 0);
    let mut levels = Levels { places, ..Levels::default() };
    for place in 0..places {
        let at = HEADER_BYTES + place * PAIR_BYTES;
        let halves = [&bytes[at..at + HALF_BYTES], &bytes[at + HALF_BYTES..at + PAIR_BYTES]];
        levels.take_pair(place, halves).map_err(|what| damaged(format!("pair {place}: {what}")))?;
    }
    Ok(levels)
}

impl Levels {
    fn take_pair(&mut self, place: usize, halves: [&[u8]; 2]) -> Result<(), String> {
        let decoded = halves.map(decode);
        let empty = halves.map(|half| half[..USED_BYTES].iter().all(|byte| *byte == 0));
        for half in 0..2 {
            if decoded[half].is_none() && !empty[half] {
                self.torn.push(format!("watermark pair {place}: one half is torn, the other counts"));
            }
        }
        let newest = match (&decoded[0], &decoded[1]) {
            (Some(first), Some(second)) => usize::from(second.0 > first.0),
            (Some(_), None) => 0,
            (None, Some(_)) => 1,
            (None, None) if empty[1] => {
                self.free.push(Pair { place, sequence: 0, newest: 1, anchored: true });
                return Ok(());
            }
            (None, None) => return Err("both halves are damaged".to_string()),
        };
        let Some((sequence, group, level)) = decoded[newest] else { return Ok(()) };
        let pair = Pair { place, sequence, newest, anchored: false };
        if level.removed {
            self.free.push(pair);
        } else if self.pairs.insert(group, pair).is_some() {
            return Err(format!("group {group} has another pair"));
        } else {
            self.of.insert(group, level);
        }
        Ok(())
    }
}

impl Watermark {
    /// Opens the file for writing, with the content that `load` found.
    pub fn open(disk: &dyn Disk, path: &Path, levels: Levels) -> Result<Watermark, LogError> {
        let file = disk.open(path).map_err(|error| LogError::io(path.display(), error))?;
        let Levels { pairs, free, places, .. } = levels;
        let mut watermark = Watermark { path: path.to_path_buf(), file, pairs, free, places };
        // The content read may be in memory only. The sync turns the newest half into an anchor.
        watermark.sync().map_err(|error| LogError::io(path.display(), error))?;
        Ok(watermark)
    }

    /// Raises a group's level, unsynced. The log must already be synced up to that level.
    pub fn raise(&mut self, group: GroupId, level: Level) -> io::Result<()> {
        let Some(pair) = self.pairs.get(&group).copied() else {
            return self.set([(group, level)]); // the first pair of a group is made durable
        };
        let half = if pair.anchored { 1 - pair.newest } else { pair.newest };
        let sequence = pair.sequence + 1;
        self.write_half(pair.place, half, &encode(sequence, group, level))?;
        self.pairs.insert(group, Pair { sequence, newest: half, anchored: false, ..pair });
        Ok(())
    }

    /// Sets levels in both halves, each synced. A level that falls must be set here before the log changes.
    pub fn set(&mut self, levels: impl IntoIterator<Item = (GroupId, Level)>) -> io::Result<()> {
        let levels: Vec<_> = levels.into_iter().collect();
        for _ in 0..2 {
            for (group, level) in &levels {
                let pair = self.pair_of(*group)?;
                let half = if pair.anchored { 1 - pair.newest } else { pair.newest };
                let sequence = pair.sequence + 1;
                self.write_half(pair.place, half, &encode(sequence, *group, *level))?;
                self.pairs.insert(*group, Pair { sequence, newest: half, anchored: false, ..pair });
            }
            self.sync()?;
        }
        Ok(())
    }

    /// Stops checks of the group's log and frees its pair for another group.
    pub fn remove(&mut self, group: GroupId) -> io::Result<()> {
        if !self.pairs.contains_key(&group) {
            return Ok(());
        }
        self.set([(group, Level::GONE)])?;
        self.free.extend(self.pairs.remove(&group));
        Ok(())
    }

    /// Makes all written halves durable.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.sync().map_err(|error| self.named(error))?;
        for pair in self.pairs.values_mut() {
            pair.anchored = true;
        }
        Ok(())
    }

    fn pair_of(&mut self, group: GroupId) -> io::Result<Pair> {
        if let Some(pair) = self.pairs.get(&group) {
            return Ok(*pair);
        }
        if let Some(pair) = self.free.pop() {
            // Neither half requires anything, so either may be overwritten first.
            return Ok(Pair { anchored: true, ..pair });
        }
        if self.places > GROUPS_MAX {
            return Err(io::Error::other(format!("a log holds at most {GROUPS_MAX} groups")));
        }
        self.places += 1;
        Ok(Pair { place: self.places - 1, sequence: 0, newest: 1, anchored: true })
    }

    fn write_half(&self, place: usize, half: usize, bytes: &[u8]) -> io::Result<()> {
        let offset = HEADER_BYTES + place * PAIR_BYTES + half * HALF_BYTES;
        self.file.write_at(offset as u64, bytes).map_err(|error| self.named(error))
    }

    fn named(&self, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
    }
}

fn encode(sequence: u64, group: GroupId, level: Level) -> [u8; USED_BYTES] {
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };
    let (last_index, last_checksum) = level.last.unwrap_or_default();
    let (vote_number, vote_checksum) = level.vote.unwrap_or_default();
    let mut bytes = [0; USED_BYTES];
    bytes[0] = VERSION;
    bytes[1] = flag(level.last.is_some(), HAS_LAST)
        | flag(level.purged.is_some(), HAS_PURGED)
        | flag(level.vote.is_some(), HAS_VOTE)
        | flag(level.removed, REMOVED);
    bytes[2..10].copy_from_slice(&sequence.to_le_bytes());
    bytes[10..18].copy_from_slice(&group.0.to_le_bytes());
    bytes[18..26].copy_from_slice(&last_index.to_le_bytes());
    bytes[26..30].copy_from_slice(&last_checksum.to_le_bytes());
    bytes[30..38].copy_from_slice(&level.purged.unwrap_or_default().to_le_bytes());
    bytes[38..46].copy_from_slice(&vote_number.to_le_bytes());
    bytes[46..50].copy_from_slice(&vote_checksum.to_le_bytes());
    let checksum = crc32c::crc32c(&bytes[..CHECKED_BYTES]);
    bytes[CHECKED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn decode(half: &[u8]) -> Option<(u64, GroupId, Level)> {
    let bytes = half.first_chunk::<USED_BYTES>()?;
    let number = |at: usize, length: usize| {
        bytes[at..at + length].iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte))
    };
    if bytes[0] != VERSION || u64::from(crc32c::crc32c(&bytes[..CHECKED_BYTES])) != number(CHECKED_BYTES, 4) {
        return None;
    }
    let has = |bit: u8| bytes[1] & bit != 0;
    let level = Level {
        last: has(HAS_LAST).then(|| (number(18, 8), number(26, 4) as u32)),
        purged: has(HAS_PURGED).then(|| number(30, 8)),
        vote: has(HAS_VOTE).then(|| (number(38, 8), number(46, 4) as u32)),
        removed: has(REMOVED),
    };
    Some((number(2, 8), GroupId(number(10, 8)), level))
}

#[cfg(test)]
mod tests {
    use assay_storage_disk::SimulatedDisk;

    use super::*;

    fn level(index: u64) -> Level {
        Level { last: Some((index, index as u32)), purged: None, vote: Some((index / 3, 5)), removed: false }
    }

    #[test]
    fn a_power_cut_never_leaves_a_level_above_the_last_one_written_nor_below_the_last_one_synced() {
        for seed in 0..60 {
            let disk = SimulatedDisk::new();
            disk.create_dir_all(Path::new("/d")).unwrap();
            let path = path_beside(Path::new("/d/log")).unwrap();
            create(&disk, &path).unwrap();
            let mut watermark = Watermark::open(&disk, &path, load(&disk, &path).unwrap()).unwrap();
            let mut synced = 0;
            for index in 1..=20 {
                watermark.raise(GroupId(1), level(index)).unwrap();
                watermark.raise(GroupId(2), level(index)).unwrap();
                if index == 1 || (index + seed) % 7 == 0 {
                    watermark.sync().unwrap();
                    synced = index;
                }
            }
            let after = disk.power_cut(seed);
            let levels = load(&after, &path).unwrap();
            for group in [GroupId(1), GroupId(2)] {
                let (index, checksum) = levels.of[&group].last.unwrap();
                assert!((synced..=20).contains(&index), "seed {seed}: {index} is not in {synced}..=20");
                assert_eq!(checksum, index as u32);
            }
        }
    }

    #[test]
    fn a_level_that_fell_does_not_rise_again_when_either_half_is_lost() {
        let disk = SimulatedDisk::new();
        disk.create_dir_all(Path::new("/d")).unwrap();
        let path = path_beside(Path::new("/d/log")).unwrap();
        create(&disk, &path).unwrap();
        let mut watermark = Watermark::open(&disk, &path, load(&disk, &path).unwrap()).unwrap();
        watermark.raise(GroupId(1), level(90)).unwrap();
        watermark.raise(GroupId(1), level(91)).unwrap();
        watermark.set([(GroupId(1), level(10))]).unwrap();
        drop(watermark);
        let whole = assay_storage_disk::read_whole(&disk, &path, 1 << 20).unwrap();
        for half in 0..2 {
            let mut bytes = whole.clone();
            bytes[HEADER_BYTES + half * HALF_BYTES + 20] ^= 1;
            assay_storage_disk::replace_whole(&disk, &path, &bytes).unwrap();
            let levels = load(&disk, &path).unwrap();
            assert_eq!(levels.of[&GroupId(1)].last, Some((10, 10)));
            assert_eq!(levels.torn.len(), 1);
        }
    }

    #[test]
    fn a_removed_group_is_asked_nothing_and_its_pair_is_used_again() {
        let disk = SimulatedDisk::new();
        disk.create_dir_all(Path::new("/d")).unwrap();
        let path = path_beside(Path::new("/d/log")).unwrap();
        create(&disk, &path).unwrap();
        let mut watermark = Watermark::open(&disk, &path, load(&disk, &path).unwrap()).unwrap();
        watermark.raise(GroupId(1), level(1)).unwrap();
        watermark.raise(GroupId(2), level(2)).unwrap();
        watermark.remove(GroupId(1)).unwrap();
        assert_eq!(load(&disk, &path).unwrap().of.keys().copied().collect::<Vec<_>>(), [GroupId(2)]);
        watermark.raise(GroupId(3), level(3)).unwrap();
        let levels = load(&disk, &path).unwrap();
        assert_eq!((levels.places, levels.of[&GroupId(3)]), (2, level(3)));
    }
}
