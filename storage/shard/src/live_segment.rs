//! Segment that is being served: its immutable files, and in memory the ends set after they were written.
//!
//! A mark is the end of a row version in a segment: the id of the write that superseded it. A mark is durable once the
//! marks file of a later seal contains it. Until then, a replay of the log recreates it.
//!
//! Once the manifest no longer names a segment, the last view of the segment removes its files. A crash in between
//! leaves files that no manifest names, and the next open sweeps them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use assay_storage_disk::SharedDisk;
use assay_storage_model::Xact;
use assay_storage_model::segment::SegmentMeta;
use assay_storage_segments::Segment;
use parking_lot::RwLock;

use crate::error::ShardError;
use crate::scan::{Newest, next_source};

#[derive(Debug, Default)]
struct Ends {
    all: BTreeMap<u32, Xact>,
    /// Marks that are not in a marks file yet.
    fresh: Vec<(u32, Xact)>,
}

#[derive(Debug)]
pub struct LiveSegment {
    pub segment: Arc<Segment>,
    ends: RwLock<Ends>,
    disk: SharedDisk,
    dir: PathBuf,
    superseded: AtomicBool,
    source: u64,
    /// Newest versions by row group; computed on first use.
    newest: Vec<OnceLock<Newest>>,
}

impl LiveSegment {
    pub fn new(segment: Arc<Segment>, disk: SharedDisk, dir: PathBuf) -> LiveSegment {
        let newest = (0..segment.groups()).map(|_| OnceLock::new()).collect();
        LiveSegment {
            segment,
            ends: RwLock::default(),
            disk,
            dir,
            superseded: AtomicBool::new(false),
            source: next_source(),
            newest,
        }
    }

    pub fn meta(&self) -> &SegmentMeta {
        self.segment.meta()
    }

    /// Returns the id of this segment in the column cache.
    pub fn source(&self) -> u64 {
        self.source
    }

    pub fn newest(
        &self,
        group: usize,
        make: impl FnOnce() -> Result<Newest, ShardError>,
    ) -> Result<&Newest, ShardError> {
        match self.newest[group].get() {
            Some(newest) => Ok(newest),
            None => {
                let made = make()?;
                Ok(self.newest[group].get_or_init(|| made))
            }
        }
    }

    /// Visits the marks on a range of rows.
    pub fn each_end(&self, rows: Range<u32>, mut each: impl FnMut(u32, Xact)) {
        self.ends.read().all.range(rows).for_each(|(row, end)| each(*row, *end));
    }

    /// Adds a mark that is already durable.
    pub fn load_mark(&self, row: u32, end: Xact) {
        self.ends.write().all.insert(row, end);
    }

    /// Adds a mark that the next seal must write.
    pub fn mark(&self, row: u32, end: Xact) {
        let mut ends = self.ends.write();
        ends.all.insert(row, end);
        ends.fresh.push((row, end));
    }

    pub fn end(&self, row: u32, written: Option<Xact>) -> Xact {
        written.or_else(|| self.ends.read().all.get(&row).copied()).unwrap_or(Xact::MAX)
    }

    /// Returns the marks up to `limit`, by row.
    pub fn ends_until(&self, limit: Xact) -> Vec<(u32, Xact)> {
        self.ends.read().all.iter().filter(|(_, end)| **end <= limit).map(|(row, end)| (*row, *end)).collect()
    }

    pub fn ends_after(&self, limit: Xact) -> Vec<(u32, Xact)> {
        self.ends.read().all.iter().filter(|(_, end)| **end > limit).map(|(row, end)| (*row, *end)).collect()
    }

    /// Returns the marks that no marks file has. They stay until `durable_until` reports them as durable.
    pub fn fresh(&self) -> Vec<(u32, Xact)> {
        self.ends.read().fresh.clone()
    }

    pub fn durable_until(&self, limit: Xact) {
        self.ends.write().fresh.retain(|(_, end)| *end > limit);
    }

    pub fn marks(&self) -> usize {
        self.ends.read().all.len()
    }

    /// Records that the manifest no longer names this segment, so that its last reader removes the files.
    pub fn supersede(&self) {
        self.superseded.store(true, Ordering::Release);
    }
}

impl Drop for LiveSegment {
    fn drop(&mut self) {
        if self.superseded.load(Ordering::Acquire)
            && let Err(why) = assay_storage_segments::remove(&self.disk, &self.dir, self.segment.meta())
        {
            // The next open sweeps remaining files.
            tracing::warn!(segment = self.segment.meta().seq, %why, "could not remove the files of a compacted segment");
        }
    }
}
