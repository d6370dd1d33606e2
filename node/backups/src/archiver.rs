//! Continuous archive: stores the states and the log of the groups that this node leads.
//!
//! The decisions are those of `archive_line`. This module reads from the cluster and writes to the store.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use assay_cluster::{AppliedContent, AppliedEntries, Cluster, ExportFile};
use assay_storage_model::GroupId;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::{self, JoinSet, spawn_blocking};
use tokio::time::sleep;

use crate::archive_line::{self, ArchiveLine, ArchiveOutcome, ArchiveStep, GroupView};
use crate::error::BackupError;
use crate::key::ContentHash;
use crate::layout::{self, BaseName, LogPartName, Millis, group_name};
use crate::log_part::{self, ArchivedContent, ArchivedEntry, PART_BYTES_MAX};
use crate::manifest::{BaseManifest, StoredFile};
use crate::repository::{Repository, now};

/// Interval between two looks at the groups.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Upper bound of the groups that are stored at the same time.
const STEPS_AT_ONCE: usize = 4;
/// Bytes of one read of a file.
const FILE_READ_BYTES: usize = 4 << 20;
/// Level of compression of stored states.
const KEPT_LEVEL: i32 = 3;
/// Name of the stored state in a manifest.
pub const KEPT_NAME: &str = "kept.zst";
/// Upper bound of the remembered hashes of files. A file of a segment has at least some kilobytes.
const HASHES_MAX: usize = 1 << 18;

/// Archive of the groups that this node leads. Clones share everything.
#[derive(Clone, Debug)]
pub struct Archiver {
    shared: Arc<ArchiverState>,
}

#[derive(Debug)]
struct ArchiverState {
    cluster: Arc<Cluster>,
    repository: Repository,
    base_every: Duration,
    lines: Mutex<BTreeMap<GroupId, ArchiveLine>>,
    /// Notified after each step.
    progress: watch::Sender<u64>,
    /// Hashes of files that this process has read. The file of a segment never changes.
    hashes: Mutex<HashMap<PathBuf, (u64, ContentHash)>>,
    counts: ArchiveCounters,
    last_error: Mutex<Option<String>>,
}

#[derive(Debug, Default)]
struct ArchiveCounters {
    bases: AtomicU64,
    parts: AtomicU64,
    stored_bytes: AtomicU64,
    found_bytes: AtomicU64,
    failures: AtomicU64,
}

/// Counts of an archiver since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveCounts {
    pub bases: u64,
    pub parts: u64,
    /// Plain bytes that were written to the store.
    pub stored_bytes: u64,
    /// Plain bytes of files that the store already had.
    pub found_bytes: u64,
    pub failures: u64,
}

impl Archiver {
    pub fn new(cluster: Arc<Cluster>, repository: Repository, base_every: Duration) -> Archiver {
        // Until the store was read, nobody knows which entries it lacks.
        cluster.own_groups().into_iter().for_each(|group| cluster.keep_log_behind(group, Some(0)));
        let (lines, hashes, counts) = (Mutex::default(), Mutex::default(), ArchiveCounters::default());
        let (progress, last_error) = (watch::Sender::new(0), Mutex::default());
        let shared = ArchiverState { cluster, repository, base_every, lines, progress, hashes, counts, last_error };
        Archiver { shared: Arc::new(shared) }
    }

    pub fn repository(&self) -> &Repository {
        &self.shared.repository
    }

    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.shared.cluster
    }

    pub fn counts(&self) -> ArchiveCounts {
        let counts = &self.shared.counts;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ArchiveCounts {
            bases: read(&counts.bases),
            parts: read(&counts.parts),
            stored_bytes: read(&counts.stored_bytes),
            found_bytes: read(&counts.found_bytes),
            failures: read(&counts.failures),
        }
    }

    /// Returns the text of the last failed step, unless a later one succeeded.
    pub fn last_error(&self) -> Option<String> {
        self.shared.last_error.lock().clone()
    }

    /// Returns the groups that this node leads.
    pub fn led_groups(&self) -> BTreeSet<GroupId> {
        let cluster = &self.shared.cluster;
        let leads = |group: &GroupId| cluster.log_status(*group).is_some_and(|status| status.leads);
        cluster.own_groups().into_iter().filter(leads).collect()
    }

    /// Asks for a base of every group that this node leads.
    pub fn want_bases(&self) {
        self.shared.lines.lock().values_mut().for_each(ArchiveLine::want_base);
    }

    /// Returns the index up to which the store has the log of a group, its newest base, and whether another is wanted.
    pub fn reached(&self, group: GroupId) -> Option<(u64, BaseName, bool)> {
        let lines = self.shared.lines.lock();
        let line = lines.get(&group)?;
        Some((line.reached()?, line.base()?, line.is_base_wanted()))
    }

    /// Returns a receiver that is notified after each step.
    pub fn progress(&self) -> watch::Receiver<u64> {
        self.shared.progress.subscribe()
    }

    /// Stores what is new, and never returns.
    pub async fn run(self) {
        let mut steps: JoinSet<(GroupId, Result<ArchiveOutcome, BackupError>)> = JoinSet::new();
        let mut busy: BTreeMap<GroupId, task::Id> = BTreeMap::new();
        loop {
            while let Some(done) = steps.try_join_next() {
                let (group, outcome) = match done {
                    Ok(done) => done,
                    Err(why) => {
                        // A step that panicked has to be repeated, or its group would not be backed up any more.
                        let Some((group, _)) = busy.iter().find(|(_, task)| **task == why.id()) else { continue };
                        (*group, Err(BackupError::Internal(format!("a step of the backup died: {why}"))))
                    }
                };
                busy.remove(&group);
                self.take_outcome(group, outcome);
            }
            for group in self.shared.cluster.own_groups() {
                if busy.contains_key(&group) || steps.len() >= STEPS_AT_ONCE {
                    continue;
                }
                if let Some(step) = self.next_step(group) {
                    let archiver = self.clone();
                    let task = steps.spawn(async move { (group, archiver.perform(group, step).await) });
                    busy.insert(group, task.id());
                }
            }
            sleep(LOOK_EVERY).await;
        }
    }

    fn next_step(&self, group: GroupId) -> Option<ArchiveStep> {
        let status = self.shared.cluster.log_status(group)?;
        let view =
            GroupView { leads: status.leads, applied: status.applied, first_in_log: status.first_in_log, now: now() };
        let mut lines = self.shared.lines.lock();
        lines.entry(group).or_insert_with(|| ArchiveLine::new(self.shared.base_every)).next(view)
    }

    fn take_outcome(&self, group: GroupId, outcome: Result<ArchiveOutcome, BackupError>) {
        let counts = &self.shared.counts;
        let outcome = outcome.unwrap_or_else(|why| {
            counts.failures.fetch_add(1, Ordering::Relaxed);
            let text = format!("group {}: {why}", group_name(group));
            tracing::warn!(error = text, "a part of the backup could not be stored; it is tried again");
            *self.shared.last_error.lock() = Some(text);
            ArchiveOutcome::Failed
        });
        match outcome {
            ArchiveOutcome::BaseTaken { .. } => drop(counts.bases.fetch_add(1, Ordering::Relaxed)),
            ArchiveOutcome::PartStored { .. } => drop(counts.parts.fetch_add(1, Ordering::Relaxed)),
            ArchiveOutcome::EntriesGone => {
                tracing::warn!(
                    group = group_name(group),
                    "the log was purged before it was stored; a base bridges the gap"
                );
            }
            ArchiveOutcome::Resumed { .. } | ArchiveOutcome::Failed => {}
        }
        if outcome != ArchiveOutcome::Failed {
            *self.shared.last_error.lock() = None;
        }
        let reached = {
            let mut lines = self.shared.lines.lock();
            let Some(line) = lines.get_mut(&group) else { return };
            line.done(outcome, now());
            line.reached()
        };
        // Before the first base, all entries may be needed.
        self.shared.cluster.keep_log_behind(group, Some(reached.unwrap_or(0)));
        self.shared.progress.send_modify(|steps| *steps += 1);
    }

    async fn perform(&self, group: GroupId, step: ArchiveStep) -> Result<ArchiveOutcome, BackupError> {
        match step {
            ArchiveStep::Resume => self.resume(group).await,
            ArchiveStep::TakeBase => self.take_base(group).await,
            ArchiveStep::StorePart { from } => self.store_part(group, from).await,
        }
    }

    async fn resume(&self, group: GroupId) -> Result<ArchiveOutcome, BackupError> {
        let repository = &self.shared.repository;
        let mut bases = repository.group_objects(group, Some(u64::MAX)).await?.bases;
        bases.sort();
        let Some(newest) = bases.last().copied() else {
            return Ok(ArchiveOutcome::Resumed { base: None, reached: 0 });
        };
        // A base does not serve for times before it. The log goes on where its parts end, which may be behind an
        // earlier base if a crash came after the newest one.
        let mut reached = newest.index;
        for base in bases.iter().rev() {
            // The part with the first entry behind the base may begin before it.
            let from = base.index.saturating_sub(PART_ENTRIES_LOOK);
            let parts = repository.group_objects(group, Some(from)).await?.parts;
            reached = archive_line::reached_behind(base.index, parts);
            if reached > base.index {
                break;
            }
        }
        Ok(ArchiveOutcome::Resumed { base: Some((newest.index, newest.at)), reached })
    }

    async fn take_base(&self, group: GroupId) -> Result<ArchiveOutcome, BackupError> {
        let node = |why: String| BackupError::Node(format!("group {}: {why}", group_name(group)));
        let known = self.shared.cluster.group(group).ok_or_else(|| node("its replica left this node".into()))?;
        let export = known.sealed_export().await.map_err(|why| node(why.to_string()))?;
        let at = now();
        let position = export.applied.position.ok_or_else(|| node("it has no state yet".into()))?;
        let mut files = Vec::with_capacity(export.files.len());
        for file in &export.files {
            files.push(self.store_file(file).await?);
        }
        let kept = self.store_kept(export.kept.clone()).await?;
        let program = env!("CARGO_PKG_VERSION").to_owned();
        let manifest = BaseManifest { group, position: position.into(), at, program, kept, files };
        let name = BaseName { index: position.index, at };
        self.shared.repository.put_json(&name.of(group), &manifest).await?;
        tracing::debug!(group = group_name(group), index = position.index, "a base is stored");
        Ok(ArchiveOutcome::BaseTaken { index: position.index, at })
    }

    async fn store_kept(&self, kept: Bytes) -> Result<StoredFile, BackupError> {
        let key = self.shared.repository.key().clone();
        let compressing = spawn_blocking(move || {
            let compressed = zstd::bulk::compress(&kept, KEPT_LEVEL)?;
            let mut hasher = key.hasher();
            hasher.update(&compressed);
            Ok::<_, std::io::Error>((Bytes::from(compressed), hasher.finish()))
        });
        let failed = |why: String| BackupError::Internal(format!("compressing a state: {why}"));
        let (compressed, content) =
            compressing.await.map_err(|why| failed(why.to_string()))?.map_err(|why| failed(why.to_string()))?;
        let bytes = compressed.len() as u64;
        if !self.shared.repository.has_content(&content).await? {
            self.shared.repository.put(&layout::content(&content), &compressed).await?;
            self.shared.counts.stored_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(StoredFile { name: KEPT_NAME.to_owned(), bytes, content })
    }

    /// Stores a file of a segment, unless the store has its content.
    async fn store_file(&self, file: &ExportFile) -> Result<StoredFile, BackupError> {
        let content = self.hash_of(file).await?;
        let counts = &self.shared.counts;
        if self.shared.repository.has_content(&content).await? {
            counts.found_bytes.fetch_add(file.length, Ordering::Relaxed);
        } else {
            let opened = File::open(&file.path);
            let mut opened = opened.map_err(|why| BackupError::Node(format!("{}: {why}", file.path.display())))?;
            let read = move || read_some(&mut opened);
            self.shared.repository.put_read(&layout::content(&content), read).await?;
            counts.stored_bytes.fetch_add(file.length, Ordering::Relaxed);
        }
        Ok(StoredFile { name: file.name.clone(), bytes: file.length, content })
    }

    async fn hash_of(&self, file: &ExportFile) -> Result<ContentHash, BackupError> {
        if let Some((length, content)) = self.shared.hashes.lock().get(&file.path)
            && *length == file.length
        {
            return Ok(*content);
        }
        let (path, key) = (file.path.clone(), self.shared.repository.key().clone());
        let hashing = spawn_blocking(move || {
            let (mut opened, mut hasher) = (File::open(path)?, key.hasher());
            loop {
                let bytes = read_some(&mut opened)?;
                if bytes.is_empty() {
                    return Ok::<_, std::io::Error>(hasher.finish());
                }
                hasher.update(&bytes);
            }
        });
        let failed = |why: String| BackupError::Node(format!("{}: {why}", file.path.display()));
        let content = hashing.await.map_err(|why| failed(why.to_string()))?.map_err(|why| failed(why.to_string()))?;
        let mut hashes = self.shared.hashes.lock();
        if hashes.len() >= HASHES_MAX {
            hashes.clear();
        }
        hashes.insert(file.path.clone(), (file.length, content));
        Ok(content)
    }

    async fn store_part(&self, group: GroupId, from: u64) -> Result<ArchiveOutcome, BackupError> {
        let node = |why: String| BackupError::Node(format!("group {}: {why}", group_name(group)));
        let cluster = &self.shared.cluster;
        let before = now();
        let applied = cluster.log_status(group).map_or(0, |status| status.applied);
        let read = cluster.applied_entries(group, from, PART_BYTES_MAX).await.map_err(|why| node(why.to_string()))?;
        let entries = match read {
            AppliedEntries::Purged { .. } => return Ok(ArchiveOutcome::EntriesGone),
            AppliedEntries::Read(entries) => entries,
        };
        let mut archived = Vec::with_capacity(entries.len());
        let mut bytes = 0;
        for entry in entries {
            bytes += entry.len() as u64;
            let content = match &entry.content {
                AppliedContent::Nothing => ArchivedContent::Nothing,
                AppliedContent::Commands(commands) => ArchivedContent::Commands(commands.clone()),
                AppliedContent::Large { entry: named, .. } => {
                    let content = cluster.read_large_write(&entry.content).await;
                    let Some(content) = content.map_err(|why| node(why.to_string()))? else {
                        return Ok(ArchiveOutcome::EntriesGone);
                    };
                    bytes += content.len() as u64;
                    let name = layout::large_write(group, entry.position.index);
                    self.shared.repository.put(&name, &content).await?;
                    ArchivedContent::Large(named.clone())
                }
            };
            archived.push(ArchivedEntry { position: entry.position, content });
        }
        let Some(last) = archived.last().map(|entry| entry.position.index) else {
            return Err(node(format!("entry {from} is not in its log")));
        };
        let at = if last >= applied { before } else { self.complete_at(group) };
        let name = LogPartName { first: from, last, at };
        let encoding = spawn_blocking(move || log_part::encode(&archived)).await;
        let part = encoding.map_err(|why| BackupError::Internal(why.to_string()))?;
        self.shared.repository.put(&name.of(group), &part).await?;
        self.shared.counts.stored_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(ArchiveOutcome::PartStored { last, bytes, at })
    }

    fn complete_at(&self, group: GroupId) -> Millis {
        self.shared.lines.lock().get(&group).map_or(Millis(0), ArchiveLine::complete_at)
    }
}

/// Number of indices before a base at which a part may begin that reaches behind the base.
const PART_ENTRIES_LOOK: u64 = PART_BYTES_MAX as u64;

/// Reads the next bytes of a file, or nothing at its end.
fn read_some(file: &mut File) -> std::io::Result<Bytes> {
    let mut buffer = vec![0; FILE_READ_BYTES];
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..])? {
            0 => break,
            read => length += read,
        }
    }
    buffer.truncate(length);
    Ok(Bytes::from(buffer))
}
