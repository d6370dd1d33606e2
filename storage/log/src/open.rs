//! Opening and closing of the log.
//!
//! Open first takes the lock against other processes. It loads the watermark, which was created before the first log
//! file, so a missing one was lost. It then surveys every byte and judges the result. Nothing is changed up to this
//! point.
//!
//! Then torn tails are cut. The engine opens and must find exactly what the survey found. The tail of each group is
//! read back. Everything is synced once more, because a page written before a crash may still be in memory only.
//! Finally the watermark is raised to the surveyed position, and the log accepts operations.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use assay_storage_disk::{Disk, SharedDisk};
use assay_storage_model::GroupId;
use assay_storage_model::sabotage::{self, Sabotage};
use parking_lot::{Mutex, RwLock};
use raft_engine::env::{FileSystem, Handle, Permission};
use raft_engine::{Command, LogBatch};

use crate::direct::DirectFileSystem;
use crate::engine::{self, Records, Store};
use crate::error::{Corruption, LogError};
use crate::files;
use crate::frame::engine_index;
use crate::group::{Group, GroupLog};
use crate::group_metadata::{COMMITTED_KEY, HEAD_KEY, OPENED_KEY, OWN_GROUP, VOTE_KEY, Vote, encode_committed};
use crate::integrity::{self, Cut};
use crate::recovery_scan::survey;
use crate::round::Round;
use crate::watermark::{self, Level, Watermark};
use crate::writer::{Shared, Work, Writer};
use crate::{Arrived, LogConfig, QUEUED_BYTES_MAX};

/// Log of all groups of a node. It is a cheap handle; dropping the last one ends the thread.
#[derive(Clone, Debug)]
pub struct Log(pub(crate) Arc<OpenLog>);

pub(crate) struct OpenLog {
    pub shared: Arc<Shared>,
    /// Engine, or `None` once the log is closed.
    pub store: RwLock<Option<Arc<dyn Records>>>,
    pub inbox: Sender<Work>,
    /// Callback of a simulated log for new work in the inbox, because no thread waits there.
    pub arrived: Option<Arrived>,
    /// Writer thread, or `None` in a simulated log and after the stop.
    pub thread: Mutex<Option<JoinHandle<()>>>,
    pub disk: SharedDisk,
    pub dir: PathBuf,
}

impl std::fmt::Debug for OpenLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl Log {
    /// Opens the log in `dir`, or creates it, with its watermark beside it.
    pub fn open(disk: SharedDisk, dir: &Path, config: LogConfig) -> Result<Log, LogError> {
        Log::open_with(disk, dir, config, Arc::new(DirectFileSystem))
    }

    /// Opens the log over another file system of raft-engine. The watermark still uses `disk`.
    pub fn open_with<F>(disk: SharedDisk, dir: &Path, config: LogConfig, files: Arc<F>) -> Result<Log, LogError>
    where
        F: FileSystem + 'static,
    {
        let config = sound(config)?;
        let lock = files::refuse_if_locked(dir)?;
        let path = watermark::path_beside(dir)?;
        let levels = load_or_create(&*disk, dir, &path)?;
        let survey = survey(&*files, dir)?;
        let judgement = integrity::judge(dir, &survey, &levels);
        if let Some(corruption) = integrity::worst(&judgement.corruptions) {
            return Err(corruption.into());
        }
        levels.torn.iter().for_each(|what| tracing::warn!(what, "after a power cut this is normal"));
        judgement.cuts.iter().try_for_each(|cut| make_cut(&*files, cut))?;
        let groups: BTreeMap<GroupId, Group> = survey.groups.into_iter().map(|(id, found)| (id, found.group)).collect();
        drop(lock); // the engine takes it itself
        disk.create_dir_all(dir).map_err(|error| LogError::io(dir.display(), error))?;
        let store = engine::open(dir, &config, files).map_err(|what| LogError::io(dir.display(), what))?;
        agree(&*store, dir, &groups)?;
        settle(&*store, &groups).map_err(|what| LogError::io(dir.display(), what))?;
        disk.sync_dir(dir).map_err(|error| LogError::io(dir.display(), error))?;
        let mut watermark = Watermark::open(&*disk, &path, levels)?;
        let now = groups.iter().map(|(id, group)| (*id, Level::of(group)));
        watermark.set(now).map_err(|error| LogError::io(path.display(), error))?;
        start(disk, dir, config, store, watermark, groups)
    }

    /// Returns a handle to a group, which need not exist yet.
    pub fn group(&self, group: GroupId) -> GroupLog {
        GroupLog { log: self.clone(), group }
    }

    /// Returns the groups that have a log or a vote.
    pub fn groups(&self) -> Vec<GroupId> {
        self.0.shared.groups.read().keys().copied().collect()
    }

    /// Returns the number of syncs so far and their duration in seconds, including the writes that they made durable.
    pub fn syncs(&self) -> (u64, f64) {
        let shared = &self.0.shared;
        let micros = shared.sync_micros.load(Ordering::Relaxed);
        (shared.syncs.load(Ordering::Relaxed), micros as f64 / 1e6)
    }

    /// Returns whether the disk under the log is slow, by the rules of `pace`.
    pub fn is_slow(&self) -> bool {
        !sabotage::is(Sabotage::KeepLeadsOnSlowDisk) && self.0.shared.pace.lock().is_slow(Instant::now())
    }

    /// Returns the size on disk in bytes, including reserved space.
    pub fn bytes(&self) -> u64 {
        match self.0.disk.list(&self.0.dir) {
            Ok(entries) => entries.iter().map(|entry| entry.length).sum(),
            // The engine counts whole files, so its result is never too low.
            Err(_) => self.engine().map_or(0, |store| store.bytes()),
        }
    }

    /// Frees files without live records once the log exceeds its budget, and returns the groups that hold old files.
    ///
    /// The caller seals and purges those groups. One call frees at most
    /// [`GIVEN_BACK_BYTES_MAX`](crate::GIVEN_BACK_BYTES_MAX). It blocks the caller's thread on the disk. The engine
    /// copies a group to newer files once the group was named ten times without a purge.
    pub fn pinned(&self) -> Vec<GroupId> {
        let Ok(store) = self.engine() else { return Vec::new() };
        if self.0.shared.failure().is_some() {
            return Vec::new();
        }
        match store.give_back() {
            Ok(groups) => groups.into_iter().filter(|group| *group != OWN_GROUP).map(GroupId).collect(),
            Err(what) => {
                self.0.shared.fail(&what);
                Vec::new()
            }
        }
    }

    /// Erases purged records from the disk by copying all live records.
    ///
    /// This blocks the caller's thread on the disk. It must run on the thread that calls [`pinned`](Self::pinned).
    pub fn renew(&self) {
        let Ok(store) = self.engine() else { return };
        if self.0.shared.failure().is_some() {
            return;
        }
        if let Err(what) = store.renew() {
            self.0.shared.fail(&what);
        }
    }

    /// Returns why the log accepts nothing more, or `None`. On a failure the owner ends the process.
    pub fn failed(&self) -> Option<String> {
        self.0.shared.failed.read().clone()
    }

    /// Completes waiting work, writes deferred values and closes the files. Remaining handles get `Closed`.
    pub fn shutdown(&self) -> Result<(), LogError> {
        self.0.stop(true);
        self.0.shared.failure().map_or(Ok(()), Err)
    }

    pub(crate) fn submit(&self, work: Work) {
        let shared = &self.0.shared;
        let bytes = work.bytes();
        if let Some(failure) = shared.failure() {
            return work.refuse(failure);
        }
        if shared.queued_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > QUEUED_BYTES_MAX {
            shared.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            return work.refuse(LogError::Refused(format!("{QUEUED_BYTES_MAX} bytes wait to be written")));
        }
        if let Err(unsent) = self.0.inbox.send(work) {
            return unsent.0.refuse(shared.failure().unwrap_or(LogError::Closed));
        }
        if let Some(arrived) = &self.0.arrived {
            arrived();
        }
    }

    pub(crate) fn published(&self, group: GroupId) -> Group {
        self.0.shared.groups.read().get(&group).cloned().unwrap_or_default()
    }

    pub(crate) fn engine(&self) -> Result<Arc<dyn Records>, LogError> {
        self.0.store.read().clone().ok_or(LogError::Closed)
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.0.dir.clone()
    }
}

impl OpenLog {
    fn stop(&self, tidy: bool) {
        let Some(thread) = self.thread.lock().take() else { return };
        // A failed send means that the thread has already ended.
        let _ = self.inbox.send(Work::Stop { tidy });
        // A completion that held the last handle runs on the thread itself, which ends after that completion.
        if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
            self.shared.fail("the thread assay-log panicked");
        }
        self.store.write().take();
    }
}

impl Drop for OpenLog {
    fn drop(&mut self) {
        self.stop(false);
    }
}

fn sound(config: LogConfig) -> Result<LogConfig, LogError> {
    if config.file_bytes == 0 || config.batch_bytes_max == 0 || config.budget_bytes < config.file_bytes {
        return Err(LogError::Refused(format!("{config:?}: sizes must be positive and a file within the budget")));
    }
    Ok(config)
}

/// Loads the watermark. It is created before the log's first file, so a log without one has lost it.
fn load_or_create(disk: &dyn Disk, dir: &Path, path: &Path) -> Result<watermark::Levels, LogError> {
    let io = |error| LogError::io(path.display(), error);
    if !disk.exists(path).map_err(io)? {
        if let Some(file) = files::list(dir)?.first() {
            let what = format!("the watermark is missing although {} exists", file.path.display());
            return Err(Corruption { group: None, file: path.to_path_buf(), index: None, what }.into());
        }
        let parent = path.parent().unwrap_or(Path::new("."));
        disk.create_dir_all(parent).map_err(|error| LogError::io(parent.display(), error))?;
        watermark::create(disk, path).map_err(io)?;
    }
    watermark::load(disk, path)
}

/// Frees reserved space, or cuts a torn tail that was never acknowledged.
fn make_cut<F: FileSystem>(files: &F, cut: &Cut) -> Result<(), LogError> {
    let Cut { file, at, bytes, torn } = cut;
    if let Some(what) = torn {
        tracing::warn!(file = %file.display(), at, bytes, what, "the log's tail is torn above the watermark and is cut");
    }
    let io = |error| LogError::io(file.display(), error);
    if *at == 0 {
        return files.delete(file).map_err(io);
    }
    let handle = files.open(file, Permission::ReadWrite).map_err(io)?;
    let at = usize::try_from(*at).map_err(|error| LogError::io(file.display(), error))?;
    handle.truncate(at).and_then(|()| handle.sync()).map_err(io)
}

/// Checks that the engine and the survey agree on the end of each group, and that its last record is readable.
fn agree(store: &dyn Store, dir: &Path, groups: &BTreeMap<GroupId, Group>) -> Result<(), LogError> {
    for (id, group) in groups {
        let differs = |index, what: &str| {
            let what = format!("{what} than the survey of the files found");
            LogError::from(Corruption { group: Some(*id), file: dir.to_path_buf(), index, what })
        };
        let notes = [
            (VOTE_KEY, group.vote.as_ref().map(Vote::encode)),
            (COMMITTED_KEY, group.committed.as_deref().map(encode_committed)),
        ];
        for (key, value) in notes {
            if store.note(*id, key) != value {
                return Err(differs(None, "the engine has another note"));
            }
        }
        let head = store.note(*id, HEAD_KEY);
        if head.is_some_and(|head| head != group.head.encode()) {
            return Err(differs(None, "the engine has another head"));
        }
        let Some(last) = group.last else { continue };
        if store.span(*id).is_none_or(|(first, to)| first > group.first || to < last.index) {
            return Err(differs(Some(last.index), "the engine has other records"));
        }
        let frame = store.fetch(*id, last.index, last.index + 1, 0).map_err(|what| differs(Some(last.index), &what))?;
        let read = frame.into_iter().next().map(|frame| frame.verify(*id, last.index));
        if !matches!(read, Some(Ok((mark, _))) if mark == last) {
            return Err(differs(Some(last.index), "the engine has another last record"));
        }
    }
    Ok(())
}

/// Repeats each compaction, which the engine may have forgotten with its file, and syncs everything.
///
/// The batch is never empty, because the engine does not sync without a write.
fn settle(store: &dyn Store, groups: &BTreeMap<GroupId, Group>) -> Result<(), String> {
    let mut batch = LogBatch::default();
    let opened = store.note(GroupId(OWN_GROUP), OPENED_KEY).and_then(|value| value.try_into().ok());
    let opened = opened.map_or(0, u64::from_le_bytes).wrapping_add(1);
    batch.put(OWN_GROUP, OPENED_KEY.to_vec(), opened.to_le_bytes().to_vec()).map_err(|error| error.to_string())?;
    for (id, group) in groups {
        if let Some(purged) = &group.head.purged {
            batch.add_command(id.0, Command::Compact { index: engine_index(purged.index.saturating_add(1)) });
        }
    }
    store.write(&mut batch, true)
}

fn start(
    disk: SharedDisk,
    dir: &Path,
    config: LogConfig,
    store: Arc<dyn Store>,
    watermark: Watermark,
    groups: BTreeMap<GroupId, Group>,
) -> Result<Log, LogError> {
    let shared = Arc::new(Shared::default());
    *shared.groups.write() = groups.clone();
    let writer = Writer {
        store: store.clone(),
        watermark,
        groups,
        shared: shared.clone(),
        config,
        dir: dir.to_path_buf(),
        committed: BTreeMap::new(),
        round: Round::default(),
        since_anchor: 0,
    };
    let (inbox, work) = channel();
    let thread = std::thread::Builder::new()
        .name("assay-log".to_string())
        .spawn(move || writer.run(work))
        .map_err(|error| LogError::io("the thread assay-log", error))?;
    Ok(Log(Arc::new(OpenLog {
        shared,
        store: RwLock::new(Some(store)),
        inbox,
        arrived: None,
        thread: Mutex::new(Some(thread)),
        disk,
        dir: dir.to_path_buf(),
    })))
}
