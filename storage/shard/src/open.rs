//! Opening of a shard: its generation directory, the stored manifest, and the segments that the manifest names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use assay_storage_disk::{SharedDisk, read_whole, replace_whole};
use assay_storage_kv::{Kv, SledKv};
use assay_storage_model::Xact;
use assay_storage_segments::{Segment, sweep};
use parking_lot::{Mutex, RwLock};

use crate::bases::Bases;
use crate::core::Core;
use crate::error::ShardError;
use crate::live_segment::LiveSegment;
use crate::manifest::Manifest;
use crate::seal::Upkeep;
use crate::{KvKind, Shard, ShardConfig};

const CURRENT: &str = "CURRENT";
const CURRENT_BYTES_MAX: u64 = 64;
const FIRST_GENERATION: u32 = 1;

impl Shard {
    /// Opens the durable state. The log from `sealed()` on must be applied before the first read.
    pub fn open(config: ShardConfig) -> Result<Arc<Shard>, ShardError> {
        let number = current_generation(&config.disk, &config.dir)?;
        sweep_generations(&config.disk, &config.dir, number)?;
        let (core, upkeep) = load(&config, number)?;
        let view = core.view();
        let next = upkeep.sealed.next_segment;
        let sealed = upkeep.sealed.applied.clone();
        Ok(Arc::new(Shard {
            config,
            core: Mutex::new(core),
            published: RwLock::new(view),
            upkeep: Mutex::new(upkeep),
            compacting: Mutex::new(()),
            next_segment: AtomicU64::new(next),
            sealed: Mutex::new(sealed),
        }))
    }
}

/// Loads the state of one generation directory.
pub(crate) fn load(config: &ShardConfig, number: u32) -> Result<(Core, Upkeep), ShardError> {
    let home = generation_dir(&config.dir, number);
    let segments_dir = home.join("segments");
    make_dir(&config.disk, &segments_dir)?;
    let kv = open_kv(config, &home)?;
    let kept = Manifest::load(kv.as_ref())?;
    sweep(&config.disk, &segments_dir, &kept.segments)?;
    let segments = open_segments(&config.disk, &segments_dir, &kept)?;
    let mut sealed = kept.counters;
    // Segment numbers are never reused, because a mark must not refer to another segment with an old number.
    let listed = kept.segments.iter().map(|meta| meta.seq + 1).max().unwrap_or(1);
    sealed.next_segment = sealed.next_segment.max(listed);
    // The stored state does not tell whether such rows were erased, and another check is cheap.
    let has_remains = kept.objects.values().any(|record| record.dropped || record.floor > Xact::ZERO);
    let core = Core {
        applied: sealed.applied.clone(),
        last: sealed.last,
        objects: Arc::new(RwLock::new(kept.objects)),
        dirty: BTreeSet::new(),
        requests: kept.requests,
        active: Arc::default(),
        sealing: None,
        cached: None,
        segments,
        bases: Bases::default(),
        has_remains,
    };
    Ok((core, Upkeep::new(kv, segments_dir, sealed)))
}

pub(crate) fn open_kv(config: &ShardConfig, home: &Path) -> Result<Arc<dyn Kv>, ShardError> {
    match &config.kv {
        KvKind::Sled { cache_bytes } => {
            let dir = home.join("kv");
            make_dir(&config.disk, &dir)?;
            Ok(Arc::new(SledKv::open(&dir, *cache_bytes)?))
        }
        KvKind::Given(kv) => Ok(Arc::clone(kv)),
        KvKind::GivenByDir(kvs) => Ok(kvs.open(&home.join("kv"))?),
    }
}

fn open_segments(disk: &SharedDisk, dir: &Path, kept: &Manifest) -> Result<Arc<[Arc<LiveSegment>]>, ShardError> {
    let mut segments = Vec::with_capacity(kept.segments.len());
    for meta in &kept.segments {
        let segment = Segment::open(disk.clone(), dir, meta)?;
        segments.push(Arc::new(LiveSegment::new(segment, disk.clone(), dir.to_owned())));
    }
    for live in &segments {
        for mark in live.segment.marks()? {
            // The marks of a compacted segment were folded in or carried over by the compaction.
            if let Some(target) = segments.iter().find(|target| target.meta().seq == mark.segment) {
                target.load_mark(mark.row, mark.end);
            }
        }
    }
    Ok(segments.into())
}

pub(crate) fn generation_dir(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("g{number:04}"))
}

/// Returns the number of the generation in use. A directory without one is new and gets its first generation.
pub(crate) fn current_generation(disk: &SharedDisk, dir: &Path) -> Result<u32, ShardError> {
    let path = dir.join(CURRENT);
    let describe = |doing: &str| format!("{doing} {}", path.display());
    if !disk.exists(&path).map_err(ShardError::io(describe("looking for")))? {
        make_dir(disk, dir)?;
        let made = disk.list(dir).map_err(ShardError::io(describe("looking beside")))?;
        if let Some(orphan) = made.iter().find(|entry| entry.is_dir && entry.name != generation_name(FIRST_GENERATION))
        {
            return Err(ShardError::Damaged(format!(
                "{} is missing although {:?} is there",
                path.display(),
                orphan.name
            )));
        }
        make_dir(disk, &generation_dir(dir, FIRST_GENERATION))?;
        write_current(disk, dir, FIRST_GENERATION)?;
        return Ok(FIRST_GENERATION);
    }
    let text = read_whole(disk.as_ref(), &path, CURRENT_BYTES_MAX).map_err(ShardError::io(describe("reading")))?;
    parse_current(&text)
        .ok_or_else(|| ShardError::Damaged(format!("{} does not name a generation with its checksum", path.display())))
}

pub(crate) fn write_current(disk: &SharedDisk, dir: &Path, number: u32) -> Result<(), ShardError> {
    let name = generation_name(number);
    let text = format!("{name} {:08x}\n", crc32c::crc32c(name.as_bytes()));
    replace_whole(disk.as_ref(), &dir.join(CURRENT), text.as_bytes())
        .map_err(ShardError::io(format!("switching {} to {name}", dir.display())))
}

fn generation_name(number: u32) -> String {
    format!("g{number:04}")
}

fn parse_current(text: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('\n')?;
    let (name, sum) = text.split_once(' ')?;
    if sum != format!("{:08x}", crc32c::crc32c(name.as_bytes())) {
        return None;
    }
    name.strip_prefix('g')?.parse().ok()
}

/// Removes generations that a crash left behind or unfinished.
fn sweep_generations(disk: &SharedDisk, dir: &Path, current: u32) -> Result<(), ShardError> {
    for entry in disk.list(dir).map_err(ShardError::io(format!("listing {}", dir.display())))? {
        if entry.is_dir && entry.name != generation_name(current) {
            disk.remove_dir_all(&dir.join(&entry.name))
                .map_err(ShardError::io(format!("removing {:?}", entry.name)))?;
        }
    }
    Ok(())
}

pub(crate) fn make_dir(disk: &SharedDisk, dir: &Path) -> Result<(), ShardError> {
    disk.create_dir_all(dir).map_err(ShardError::io(format!("making {}", dir.display())))
}

/// Checks a shard's directory for the offline doctor without changing it: the stored state, every segment and every
/// mark.
pub fn check_dir(disk: &SharedDisk, dir: &Path) -> Result<CheckedShard, ShardError> {
    let path = dir.join(CURRENT);
    let text = read_whole(disk.as_ref(), &path, CURRENT_BYTES_MAX)
        .map_err(ShardError::io(format!("reading {}", path.display())))?;
    let number = parse_current(&text).ok_or_else(|| {
        ShardError::Damaged(format!("{} does not name a generation with its checksum", path.display()))
    })?;
    let home = generation_dir(dir, number);
    let kv = SledKv::open(&home.join("kv"), CHECK_CACHE_BYTES)?;
    let kept = Manifest::load(&kv)?;
    let segments_dir = home.join("segments");
    let mut findings = Vec::new();
    for meta in &kept.segments {
        findings.extend(assay_storage_segments::verify(disk, &segments_dir, meta));
    }
    Ok(CheckedShard {
        applied: kept.counters.applied,
        segments: kept.segments.len(),
        objects: kept.objects.len(),
        findings,
    })
}

const CHECK_CACHE_BYTES: u64 = 8 << 20;

/// Result of a check of a shard's directory.
#[derive(Debug)]
pub struct CheckedShard {
    /// Durable position, from which the log must continue.
    pub applied: assay_storage_model::Applied,
    pub segments: usize,
    pub objects: usize,
    pub findings: Vec<String>,
}
