//! Upkeep of the replicas: seals, compaction, disk space, and unused blobs.
//!
//! One thread examines the node several times a second and decides on seals with `seal_choice`, which is pure. Seals
//! run on their own threads, through consensus, which then purges the log. Compaction has its own thread, with low
//! priority on few processors. It rests while memory is short, unless a shard has too many segments. The examining
//! thread also admits or blocks writes: they wait while memory is at twice its budget, and are refused while the disk
//! is nearly full.

mod erasure;
mod seal_choice;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use assay_cluster_directory::Lock;
use assay_cluster_raft::fatal::{COMPACTION_THREAD, UPKEEP_THREAD};
use assay_cluster_raft::machine::{disk_was_full, files_ran_out};
use assay_cluster_raft::{Admission, AdmissionState, LogRetention, OnFatal, SealError};
use assay_storage_disk::{REFUSE_WRITES_BELOW_PERCENT, SharedDisk, SpaceLevel, admit};
use assay_storage_log::Log;
use assay_storage_model::sabotage::{self, Sabotage};
use assay_storage_model::{GroupId, ShardId};
use assay_storage_shard::{SEGMENTS_PER_TIER, Shard, ShardError};
use assay_storage_threads::{BackgroundWork, lower_thread_priority};
use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::held_blobs::BlobWrites;
use crate::registry::Replicas;
use crate::suspects::Suspects;
use erasure::Erasing;
use seal_choice::{Budget, SealCandidate, decide};

/// Interval at which the node is examined.
const LOOK: Duration = Duration::from_millis(25);
/// Multiple of its budget above which the log keeps no entries for other members, which then receive a snapshot.
const LOG_STRETCH: u64 = 4;
/// Interval of disk measurements and of attempts to release log files.
const LOOK_AT_DISK: Duration = Duration::from_millis(250);
/// Share of the memory budget above which compaction rests, because seals and applies are more urgent.
const PRESSED_PERCENT: u64 = 125;
/// Multiple of its working time for which compaction then rests.
const RESTS_PER_WORK: u32 = 12;
/// Upper bound of one rest.
const REST_MAX: Duration = Duration::from_millis(250);
/// Number of segments above which a shard is compacted without rest, because its reads search all of them.
const SEGMENTS_URGENT: usize = 2 * SEGMENTS_PER_TIER;
/// Interval at which the compaction thread looks for work if nothing wakes it.
const COMPACTION_REST: Duration = Duration::from_millis(500);
/// Time without seals after which segments are settled into columnar form. This waits while there are many writes.
const SETTLED_AFTER: Duration = Duration::from_secs(20);
/// Pause after a compaction that failed for lack of space.
const COMPACTION_NO_SPACE_REST: Duration = Duration::from_secs(5);
/// Pause after damage in a shard, which is discarded meanwhile or was recently replaced.
const DAMAGED_REST: Duration = Duration::from_secs(60);
/// Upper bound of the cached documents of recently sealed generations, over all shards. They save reads during merges
/// after a seal.
const CACHED_BYTES_MAX: usize = 64 << 20;

/// Counters of finished and pending work of the upkeep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpkeepCounts {
    pub seals: u64,
    pub seals_without_space: u64,
    pub compactions: u64,
    /// Seals that were requested and are not finished.
    pub sealing: u64,
}

#[derive(Debug, Default)]
struct Counts {
    seals: AtomicU64,
    seals_without_space: AtomicU64,
    compactions: AtomicU64,
}

/// Limits of the upkeep, and the directory whose disk it watches.
#[derive(Clone, Debug)]
pub struct UpkeepConfig {
    pub disk: SharedDisk,
    pub data_dir: PathBuf,
    /// Memory budget of all memory tables together. Writes wait at twice this size.
    pub memory_budget_bytes: u64,
    pub log_budget_bytes: u64,
    /// Maximum age of the oldest row in a memory table before the table is sealed.
    pub seal_age: Duration,
    /// Delay after which the remaining data of a deleted object is removed from files.
    pub erase_after: Duration,
    pub on_fatal: OnFatal,
}

/// Parts of the node that the upkeep uses.
#[derive(Debug)]
pub struct UpkeepParts {
    pub config: UpkeepConfig,
    pub replicas: Replicas,
    pub log: Log,
    pub writes: Arc<BlobWrites>,
    pub admission: Arc<Admission>,
    pub runtime: Handle,
    pub lock: Arc<Lock>,
    /// Queue for replicas in which compaction finds damage.
    pub suspects: Arc<Suspects>,
}

/// Handle on the threads.
#[derive(Clone, Debug)]
pub struct Upkeep {
    shared: Arc<UpkeepState>,
}

#[derive(Debug)]
struct UpkeepState {
    stop: AtomicBool,
    /// Whether memory is short.
    pressed: AtomicBool,
    counts: Counts,
    /// Groups with a requested and unfinished seal.
    sealing: Mutex<BTreeSet<GroupId>>,
    /// Whether a seal ended, so that there may be something to compact.
    sealed: (Mutex<bool>, Condvar),
    erasing: Arc<Erasing>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Upkeep {
    pub fn start(parts: UpkeepParts) -> io::Result<Upkeep> {
        let shared = Arc::new(UpkeepState {
            stop: AtomicBool::new(false),
            pressed: AtomicBool::new(false),
            counts: Counts::default(),
            sealing: Mutex::default(),
            sealed: (Mutex::new(true), Condvar::new()),
            erasing: Arc::default(),
            threads: Mutex::default(),
        });
        let compacting = Compacting {
            shared: Arc::clone(&shared),
            replicas: parts.replicas.clone(),
            config: parts.config.clone(),
            suspects: Arc::clone(&parts.suspects),
            not_before: RefCell::default(),
        };
        let held = Arc::clone(&parts.lock);
        let compaction = thread::Builder::new().name(COMPACTION_THREAD.into()).spawn(move || {
            lower_thread_priority(BackgroundWork::Maintenance);
            compacting.run();
            drop(held);
        })?;
        let UpkeepParts { config, replicas, log, writes, admission, runtime, lock, suspects: _ } = parts;
        let looking = Looking {
            shared: Arc::clone(&shared),
            config,
            replicas,
            log,
            writes,
            admission,
            runtime,
            dirty_since: BTreeMap::new(),
        };
        let looking = thread::Builder::new().name(UPKEEP_THREAD.into()).spawn(move || {
            looking.run();
            drop(lock);
        })?;
        *shared.threads.lock() = vec![compaction, looking];
        Ok(Upkeep { shared })
    }

    pub fn counts(&self) -> UpkeepCounts {
        let Counts { seals, seals_without_space, compactions } = &self.shared.counts;
        UpkeepCounts {
            seals: seals.load(Ordering::Relaxed),
            seals_without_space: seals_without_space.load(Ordering::Relaxed),
            compactions: compactions.load(Ordering::Relaxed),
            sealing: self.shared.sealing.lock().len() as u64,
        }
    }

    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        *self.shared.sealed.0.lock() = true;
        self.shared.sealed.1.notify_all();
    }

    /// Waits after `stop` until a running compaction has ended. Blocking.
    pub fn join(&self) {
        let threads: Vec<_> = self.shared.threads.lock().drain(..).collect();
        for handle in threads {
            // A panic of the thread has already ended the process.
            let _ = handle.join();
        }
    }
}

impl UpkeepState {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

struct Looking {
    shared: Arc<UpkeepState>,
    config: UpkeepConfig,
    replicas: Replicas,
    log: Log,
    writes: Arc<BlobWrites>,
    admission: Arc<Admission>,
    runtime: Handle,
    /// Time since which each group has had unsealed entries.
    dirty_since: BTreeMap<GroupId, Instant>,
}

impl Looking {
    fn run(mut self) {
        let mut disk_due = Instant::now();
        let mut pinned = BTreeSet::new();
        let mut no_space = None;
        let mut keep = LogRetention::Needed;
        while !self.shared.stopped() {
            let now = Instant::now();
            if now >= disk_due {
                disk_due = now + LOOK_AT_DISK;
                pinned = self.log.pinned().into_iter().collect();
                no_space = self.look_at_disk();
                if let Err(error) = self.writes.collect() {
                    tracing::warn!(%error, "a large write that nothing needs could not be removed");
                }
                self.release_cached();
                let log_max = self.config.log_budget_bytes.saturating_mul(LOG_STRETCH);
                keep = if !pinned.is_empty() && self.log.bytes() > log_max {
                    LogRetention::Nothing
                } else {
                    LogRetention::Needed
                };
                self.purge(&pinned, keep);
                self.erase(now, no_space.is_none());
            }
            let reports = self.reports(now, &pinned, keep);
            self.update_admission(&reports, no_space.clone());
            let budget = Budget { memory_bytes: self.config.memory_budget_bytes, age: self.config.seal_age };
            for group in decide(&reports, &budget) {
                self.seal(group, pinned.contains(&group).then_some(keep));
            }
            thread::sleep(LOOK);
        }
    }

    fn reports(&mut self, now: Instant, pinned: &BTreeSet<GroupId>, keep: LogRetention) -> Vec<SealCandidate> {
        let sealing = self.shared.sealing.lock().clone();
        let groups = self.replicas.groups();
        self.dirty_since.retain(|id, _| groups.iter().any(|group| group.id() == *id));
        let mut reports = Vec::with_capacity(groups.len());
        for group in &groups {
            let id = group.id();
            let dirty = group.unsealed_entries() > 0;
            let age = match dirty {
                true => now - *self.dirty_since.entry(id).or_insert(now),
                false => {
                    self.dirty_since.remove(&id);
                    Duration::ZERO
                }
            };
            let memory_bytes = group.machine().memory_bytes() as u64;
            reports.push(SealCandidate {
                group: id,
                memory_bytes,
                dirty,
                age,
                // A seal would not help if other members need entries that are already sealed.
                pinned: pinned.contains(&id) && (keep == LogRetention::Nothing || !group.keeps_needed()),
                sealing: sealing.contains(&id),
            });
        }
        reports
    }

    fn update_admission(&self, reports: &[SealCandidate], no_space: Option<String>) {
        let memory: u64 = reports.iter().map(|report| report.memory_bytes).sum();
        let pressed = memory >= self.config.memory_budget_bytes / 100 * PRESSED_PERCENT;
        self.shared.pressed.store(pressed, Ordering::Relaxed);
        self.admission.set_state(match no_space {
            Some(why) => AdmissionState::NoSpace(why),
            None if memory >= self.config.memory_budget_bytes * 2 => AdmissionState::Wait,
            None => AdmissionState::Open,
        });
    }

    /// Returns the reason for refusing writes, if there is one. Admission counts down the free bytes until the next
    /// measurement.
    fn look_at_disk(&self) -> Option<String> {
        let space = match self.config.disk.space(&self.config.data_dir) {
            Ok(space) => space,
            Err(error) => {
                tracing::warn!(%error, "the free space of the disk is not known");
                return None;
            }
        };
        let free = space.free.saturating_sub(space.total / 100 * REFUSE_WRITES_BELOW_PERCENT);
        self.admission.set_free_bytes(free);
        match admit(space, 0) {
            SpaceLevel::Plenty => None,
            SpaceLevel::RefuseWrites | SpaceLevel::StepDown => {
                let (free, total) = (space.free >> 20, space.total >> 20);
                Some(format!("{free} MiB of {total} MiB are free; writes go on above {REFUSE_WRITES_BELOW_PERCENT} %"))
            }
        }
    }

    /// Purges the logs of groups that have sealed everything but keep old log files for members that lag.
    fn purge(&self, pinned: &BTreeSet<GroupId>, keep: LogRetention) {
        for group in pinned.iter().filter_map(|id| self.replicas.group(*id)) {
            if group.unsealed_entries() == 0 && group.sealed_in_log() > 0 {
                self.runtime.spawn(async move {
                    if let Err(why) = group.purge(keep).await {
                        tracing::debug!(group = %group.id(), %why, "not purged");
                    }
                });
            }
        }
    }

    /// Runs the erasure. Only this thread releases log files, and it copies the log only if there is space.
    fn erase(&self, now: Instant, has_space: bool) {
        let erasing = &self.shared.erasing;
        if let Some(shards) = erasing.look(&self.replicas, self.config.erase_after, now) {
            self.runtime.spawn(Arc::clone(erasing).purge(self.replicas.clone(), shards));
        }
        if has_space {
            erasing.take_purged(|| self.log.renew());
        }
    }

    /// Releases cached generations, the largest first, until they are within the limit together.
    fn release_cached(&self) {
        let shards = self.replicas.shards();
        let mut cached: Vec<_> = shards.iter().map(|shard| (shard.cached_bytes(), shard)).collect();
        let mut total: usize = cached.iter().map(|(bytes, _)| bytes).sum();
        cached.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        for (bytes, shard) in cached {
            if total <= CACHED_BYTES_MAX {
                break;
            }
            shard.release_cached();
            total -= bytes;
        }
    }

    /// Starts a seal. `pinning` is the retention of the log, if this group pins old log files.
    fn seal(&mut self, id: GroupId, pinning: Option<LogRetention>) {
        let Some(group) = self.replicas.group(id) else { return };
        self.shared.sealing.lock().insert(id);
        self.dirty_since.remove(&id);
        let shared = Arc::clone(&self.shared);
        self.runtime.spawn(async move {
            match group.seal().await {
                Ok(_) => {
                    if let Some(keep) = pinning {
                        // The entries kept for members that lag pin the old log files.
                        let _ = group.purge(keep).await; // fails only if the group stops
                    }
                    shared.counts.seals.fetch_add(1, Ordering::Relaxed);
                }
                Err(SealError::NoSpace(why)) => {
                    shared.counts.seals_without_space.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(group = %group.id(), %why, "a seal found no space and will be retried");
                    tokio::time::sleep(LOOK_AT_DISK).await;
                }
                Err(SealError::Stopped(why)) => tracing::debug!(group = %group.id(), %why, "not sealed"),
            }
            shared.sealing.lock().remove(&group.id());
            *shared.sealed.0.lock() = true;
            shared.sealed.1.notify_one();
        });
    }
}

struct Compacting {
    shared: Arc<UpkeepState>,
    replicas: Replicas,
    config: UpkeepConfig,
    suspects: Arc<Suspects>,
    /// Shards with damage. Reads and seals continue until the replica is discarded.
    not_before: RefCell<BTreeMap<ShardId, Instant>>,
}

impl Compacting {
    fn run(self) {
        let mut sealed_at = Instant::now();
        while !self.shared.stopped() {
            {
                let mut sealed = self.shared.sealed.0.lock();
                if !*sealed {
                    self.shared.sealed.1.wait_for(&mut sealed, COMPACTION_REST);
                }
                if *sealed {
                    sealed_at = Instant::now();
                }
                *sealed = false;
            }
            self.each_shard(&|id, shard| self.compact(id, shard));
            self.erase();
            if sealed_at.elapsed() >= SETTLED_AFTER {
                self.each_shard(&|id, shard| self.settle(id, shard));
            }
        }
    }

    /// Visits one shard after the other. Each is held only for its turn, because a leaving replica waits for all
    /// holders.
    fn each_shard(&self, work: &dyn Fn(ShardId, &Shard)) {
        for id in self.replicas.ids().into_iter().filter_map(GroupId::shard) {
            if self.shared.stopped() {
                return;
            }
            if let Some(shard) = self.replicas.shard(id).filter(|_| self.may_work_on(id)) {
                work(id, &shard);
            }
        }
    }

    fn may_work_on(&self, id: ShardId) -> bool {
        self.not_before.borrow().get(&id).is_none_or(|until| Instant::now() >= *until)
    }

    /// Returns a callback that rests while memory is short.
    fn pace<'a>(&'a self, shard: &'a Shard) -> impl Fn() + 'a {
        let worked_since = Cell::new(Instant::now());
        move || {
            let urgent = shard.size().segments > SEGMENTS_URGENT;
            if self.shared.pressed.load(Ordering::Relaxed) && !urgent && !self.shared.stopped() {
                thread::sleep((worked_since.get().elapsed() * RESTS_PER_WORK).min(REST_MAX));
            }
            worked_since.set(Instant::now());
        }
    }

    fn compact(&self, id: ShardId, shard: &Shard) {
        if self.did(id, shard.compact(&self.pace(shard))) {
            // There may be another step for this shard.
            *self.shared.sealed.0.lock() = true;
        }
    }

    /// Rewrites the segments that contain rows of deleted objects, one after the other.
    fn erase(&self) {
        for id in self.shared.erasing.take_renewed() {
            let Some(shard) = id.shard().and_then(|shard| self.replicas.shard(shard)) else { continue };
            let Some(id) = id.shard().filter(|shard| self.may_work_on(*shard)) else {
                shard.remains();
                continue;
            };
            shard.release_cached();
            let mut looked = BTreeSet::new();
            while !self.shared.stopped() {
                let outcome = shard.erase(&mut looked, &self.pace(&shard));
                if outcome.is_err() {
                    // The next round erases the rest.
                    shard.remains();
                }
                if !self.did(id, outcome) {
                    break;
                }
            }
        }
    }

    /// Settles segments until a seal needs compaction.
    fn settle(&self, id: ShardId, shard: &Shard) {
        let has_time = || !self.shared.stopped() && !*self.shared.sealed.0.lock();
        while has_time() && self.did(id, shard.settle(&self.pace(shard))) {}
    }

    fn did(&self, id: ShardId, outcome: Result<bool, ShardError>) -> bool {
        match outcome {
            Ok(true) => {
                self.shared.counts.compactions.fetch_add(1, Ordering::Relaxed);
                return true;
            }
            Ok(false) => {}
            Err(error @ ShardError::Segment(_)) if disk_was_full(&error) || files_ran_out(&error) => {
                tracing::warn!(shard = %id, %error, "a compaction found no space and will be retried");
                thread::sleep(COMPACTION_NO_SPACE_REST);
            }
            Err(error @ ShardError::Io { .. }) if files_ran_out(&error) => {
                tracing::warn!(shard = %id, %error, "a compaction could open no more files and will be retried");
                thread::sleep(COMPACTION_NO_SPACE_REST);
            }
            // Only this replica is given up, if the others can do without it, as after damage that a reader finds.
            Err(error) if error.is_damage() && !sabotage::is(Sabotage::RotInCompactionIsFatal) => {
                tracing::error!(shard = %id, %error, "compaction found damage; the replica is examined");
                self.not_before.borrow_mut().insert(id, Instant::now() + DAMAGED_REST);
                self.suspects.add(GroupId::of_shard(id));
            }
            Err(error) => self.config.on_fatal.report(format_args!("compacting: {error}")),
        }
        false
    }
}
