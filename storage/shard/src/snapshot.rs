//! Snapshot of the sealed state: the files of its segments and an export of the key-value store.
//!
//! An export copies nothing. It lists the files and holds their segments, so that a compaction cannot remove them
//! during the transfer. An incoming snapshot is first verified byte by byte. If it is inconsistent, it is refused and
//! the replica continues with its state. An install never changes the state in use. Files and stored state go into a
//! new generation directory, and then `CURRENT` is switched to it. A crash before the switch leaves a directory that
//! the next open removes. After the switch, the old directory is removed; the last readers of its segments remove their
//! files.
//!
//! ```text
//! stored state:  1, count u32, (length u32, key, length u32, value)*, CRC32C of all before
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use assay_storage_kv::{Batch, Entries, Kv, MemoryKv};
use assay_storage_model::Applied;
use assay_storage_segments::{Segment, SegmentError, file_name, verify};
use thiserror::Error;

use crate::error::ShardError;
use crate::live_segment::LiveSegment;
use crate::manifest::Manifest;
use crate::open::{current_generation, generation_dir, load, make_dir, open_kv, write_current};
use crate::{KvKind, Shard};

const KEPT_EXPORT_VERSION: u8 = 1;
/// Upper bound of the exported stored state of one shard.
pub const KEPT_EXPORT_BYTES_MAX: usize = 256 << 20;

/// Error for a snapshot that cannot be installed. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SnapshotError {
    /// Content that differs from what was written, because of the disk of the sender or of the receiver.
    #[error("{0}")]
    Damaged(String),
    /// Snapshot without visible damage, but in a newer format.
    #[error("{0}")]
    Newer(String),
}

impl From<ShardError> for SnapshotError {
    fn from(error: ShardError) -> Self {
        match error {
            ShardError::Newer(what) => SnapshotError::Newer(what),
            ShardError::Damaged(what) => SnapshotError::Damaged(what),
            other => SnapshotError::Damaged(other.to_string()),
        }
    }
}

/// File of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportFile {
    pub name: String,
    pub path: PathBuf,
    pub length: u64,
}

/// Snapshot that can be read while this value exists.
#[derive(Clone, Debug)]
pub struct Export {
    pub applied: Applied,
    pub files: Vec<ExportFile>,
    pub kept: Vec<u8>,
    _held: Vec<Arc<LiveSegment>>,
}

impl Shard {
    /// Exports the sealed state as a snapshot.
    pub fn export(&self) -> Result<Export, ShardError> {
        let upkeep = self.upkeep.lock();
        let held = self.core.lock().segments.to_vec();
        let pairs = upkeep.kv.scan(b"")?;
        let mut files = Vec::new();
        for live in &held {
            for file in &live.meta().files {
                let name = file_name(live.meta().seq, file.kind);
                files.push(ExportFile { path: upkeep.segments_dir.join(&name), name, length: file.length });
            }
        }
        Ok(Export { applied: upkeep.sealed.applied.clone(), files, kept: encode_kept(&pairs), _held: held })
    }

    /// Verifies every byte of a snapshot whose files are in `incoming`, and changes nothing.
    ///
    /// This blocks, without a lock that others wait for.
    pub fn check_snapshot(&self, kept: &[u8], incoming: &Path) -> Result<(), SnapshotError> {
        let disk = &self.config.disk;
        for meta in read_kept(kept)?.segments {
            if let Err(newer @ SegmentError::Newer { .. }) = Segment::open(Arc::clone(disk), incoming, &meta) {
                return Err(SnapshotError::Newer(newer.to_string()));
            }
            if let Some(finding) = verify(disk, incoming, &meta).into_iter().next() {
                return Err(SnapshotError::Damaged(finding));
            }
        }
        Ok(())
    }

    /// Replaces this replica's state with a snapshot whose files are in `incoming`, on the same disk. The files are
    /// moved.
    ///
    /// [`Shard::check_snapshot`] must have accepted the snapshot. The rows are not read again, because only this
    /// process has access to the files between check and install. Readers and the scrub find a later change by the
    /// disk.
    pub fn install(&self, kept: &[u8], incoming: &Path) -> Result<(), ShardError> {
        let _one = self.compacting.lock();
        let mut upkeep = self.upkeep.lock();
        let disk = &self.config.disk;
        let pairs = decode_kept(kept)?;
        let before = current_generation(disk, &self.config.dir)?;
        let number = before + 1;
        let home = generation_dir(&self.config.dir, number);
        if disk.exists(&home).map_err(ShardError::io("cannot search for leftovers"))? {
            disk.remove_dir_all(&home).map_err(ShardError::io("removing a leftover"))?;
        }
        let segments_dir = home.join("segments");
        make_dir(disk, &segments_dir)?;
        {
            let kv = open_kv(&self.config, &home)?;
            let mut batch = Batch::default();
            for (key, _) in kv.scan(b"")? {
                batch.delete(key);
            }
            pairs.into_iter().for_each(|(key, value)| batch.put(key, value));
            kv.commit(&batch)?;
            let kept = Manifest::load(kv.as_ref())?;
            for meta in &kept.segments {
                for file in &meta.files {
                    let name = file_name(meta.seq, file.kind);
                    disk.rename(&incoming.join(&name), &segments_dir.join(&name))
                        .map_err(ShardError::io(format!("taking over {name}")))?;
                }
            }
            disk.sync_dir(&segments_dir).map_err(ShardError::io("syncing the new segments' directory"))?;
        }
        write_current(disk, &self.config.dir, number)?;

        let (core, mut next) = load(&self.config, number)?;
        let largest = self.next_segment.load(Ordering::Acquire).max(next.sealed.next_segment);
        next.sealed.next_segment = largest;
        self.next_segment.store(largest, Ordering::Release);
        let replaced = {
            let mut current = self.core.lock();
            let replaced = std::mem::replace(&mut *current, core);
            *self.published.write() = current.view();
            replaced
        };
        self.sealed.lock().clone_from(&next.sealed.applied);
        *upkeep = next;
        // Readers of the old segments finish their reads, and the last of them removes the files.
        replaced.segments.iter().for_each(|live| live.supersede());
        drop(replaced);
        if let KvKind::Sled { .. } = self.config.kv {
            // The next open sweeps the directory itself.
            let old = generation_dir(&self.config.dir, before).join("kv");
            disk.remove_dir_all(&old).map_err(ShardError::io(format!("removing {}", old.display())))?;
        }
        Ok(())
    }
}

fn encode_kept(pairs: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = vec![KEPT_EXPORT_VERSION];
    let length =
        |length: usize| u32::try_from(length).expect("keys, values and their number are bounded").to_le_bytes();
    bytes.extend(length(pairs.len()));
    for part in pairs.iter().flat_map(|(key, value)| [key, value]) {
        bytes.extend(length(part.len()));
        bytes.extend_from_slice(part);
    }
    let sum = crc32c::crc32c(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// Loads the stored state in memory.
fn read_kept(bytes: &[u8]) -> Result<Manifest, SnapshotError> {
    let kv = MemoryKv::new();
    let mut batch = Batch::default();
    decode_kept(bytes)?.into_iter().for_each(|(key, value)| batch.put(key, value));
    kv.commit(&batch).map_err(ShardError::from)?;
    drop(batch); // it may be large
    Ok(Manifest::load(&kv)?)
}

fn decode_kept(bytes: &[u8]) -> Result<Entries, SnapshotError> {
    let refuse = |what: &str| SnapshotError::Damaged(format!("the kept state of a snapshot {what}"));
    if bytes.len() > KEPT_EXPORT_BYTES_MAX {
        return Err(refuse("is too large"));
    }
    let (body, sum) = bytes.split_last_chunk::<4>().ok_or_else(|| refuse("is cut short"))?;
    if crc32c::crc32c(body) != u32::from_le_bytes(*sum) {
        return Err(refuse("does not match its checksum"));
    }
    let (&version, mut rest) = body.split_first().ok_or_else(|| refuse("is empty"))?;
    if version != KEPT_EXPORT_VERSION {
        let what = format!(
            "the kept state of a snapshot has version {version}, which this program does not support: upgrade the program"
        );
        return Err(SnapshotError::Newer(what));
    }
    let (count, tail) = rest.split_first_chunk::<4>().ok_or_else(|| refuse("lacks its count"))?;
    let count = u32::from_le_bytes(*count);
    rest = tail;
    let mut pairs = Vec::new();
    for _ in 0..count {
        let mut part = || -> Result<Vec<u8>, SnapshotError> {
            let (number, tail) = rest.split_first_chunk::<4>().ok_or_else(|| refuse("lacks a length"))?;
            let length = u32::from_le_bytes(*number) as usize;
            let part = tail.get(..length).ok_or_else(|| refuse("is cut short"))?;
            rest = &tail[length..];
            Ok(part.to_vec())
        };
        pairs.push((part()?, part()?));
    }
    if rest.is_empty() { Ok(pairs) } else { Err(refuse("has bytes after its end")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_reads_back_and_every_flipped_bit_is_seen() {
        let pairs = vec![(b"a".to_vec(), vec![]), (b"b".to_vec(), vec![1, 2, 3])];
        let bytes = encode_kept(&pairs);
        assert_eq!(decode_kept(&bytes).expect("reads back"), pairs);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_kept(&flipped).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn what_a_newer_program_kept_is_told_from_damage() {
        let counters = |version| vec![(b"c".to_vec(), format!(r#"{{"version": {version}}}"#).into_bytes())];
        assert!(matches!(read_kept(&encode_kept(&counters(2))), Err(SnapshotError::Newer(_))));
        assert!(matches!(read_kept(&encode_kept(&counters(1))), Err(SnapshotError::Damaged(_))), "it lacks the rest");
        let mut newer = encode_kept(&[]);
        newer[0] += 1;
        let body = newer.len() - 4;
        let sum = crc32c::crc32c(&newer[..body]).to_le_bytes();
        newer[body..].copy_from_slice(&sum);
        let Err(SnapshotError::Newer(why)) = read_kept(&newer) else { panic!("it reads") };
        assert!(why.contains("upgrade"), "{why}");
    }
}
