//! Small interface to raft-engine: write, read and free space. Panics of the engine become errors.
//!
//! The engine panics when a sync fails (`LogFileWriter::sync` unwraps) and when it finds its index inconsistent. The
//! writer ensures that a panicked engine is not used for writing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use assay_storage_model::GroupId;
use assay_storage_model::sabotage::{self, Sabotage};
use raft_engine::env::FileSystem;
use raft_engine::internals::{EventListener, FileId, FileSeq, LogQueue};
use raft_engine::{Config, Engine, LogBatch, ReadableSize, RecoveryMode};

use crate::frame::{Frame, engine_index};
use crate::{GIVEN_BACK_BYTES_MAX, LogConfig};

/// Operations of an engine that readers need. A simulation has its own implementation.
pub(crate) trait Records: Send + Sync {
    /// Reads frames of `[from, to)`, at least one.
    fn fetch(&self, group: GroupId, from: u64, to: u64, bytes_max: usize) -> Result<Vec<Frame>, String>;
    /// Rewrites the few live records of old files, deletes some files, and returns the groups with many records there.
    fn give_back(&self) -> Result<Vec<u64>, String>;
    /// Copies live records to new files and deletes all others, so that no purged record is left.
    ///
    /// It must not run concurrently with `give_back`.
    fn renew(&self) -> Result<(), String>;
    fn bytes(&self) -> u64;
}

/// Operations of an engine that the writer needs in addition, independent of the file system.
pub(crate) trait Store: Records {
    /// Writes a batch. With `sync`, everything written before it becomes durable too.
    fn write(&self, batch: &mut LogBatch, sync: bool) -> Result<(), String>;
    fn note(&self, group: GroupId, key: &[u8]) -> Option<Vec<u8>>;
    /// Returns the engine's own first and last index of a group, in this crate's counting.
    fn span(&self, group: GroupId) -> Option<(u64, u64)>;
}

/// Opens the engine, which must find nothing to repair. Torn tails were cut before, and anything else is an error.
pub(crate) fn open<F: FileSystem + 'static>(
    dir: &Path,
    config: &LogConfig,
    files: Arc<F>,
) -> Result<Arc<dyn Store>, String> {
    let dir = dir.to_str().ok_or_else(|| format!("{} is not UTF-8", dir.display()))?;
    let trickle =
        Trickle { first: AtomicU64::new(FileSeq::MAX), files: (GIVEN_BACK_BYTES_MAX / config.file_bytes).max(1) };
    let config = Config {
        dir: dir.to_string(),
        recovery_mode: RecoveryMode::AbsoluteConsistency,
        batch_compression_threshold: ReadableSize(0),
        target_file_size: ReadableSize(config.file_bytes),
        purge_threshold: ReadableSize(config.budget_bytes),
        enable_log_recycle: false,
        prefill_for_recycle: false,
        ..Config::default()
    };
    let engine = guarded(|| Engine::open_with(config, files, vec![Arc::new(trickle)]))?;
    Ok(Arc::new(Opened { engine: Some(engine), failed: AtomicBool::new(false) }))
}

/// Listener that limits how many files are deleted at a time.
///
/// The file system holds its journal while it frees the blocks of many files, which blocks every sync of the node.
struct Trickle {
    /// Number of the oldest existing file.
    first: AtomicU64,
    files: u64,
}

impl EventListener for Trickle {
    fn post_new_log_file(&self, file: FileId) {
        if file.queue == LogQueue::Append {
            self.first.fetch_min(file.seq, Ordering::Relaxed);
        }
    }

    fn first_file_not_ready_for_purge(&self, queue: LogQueue) -> Option<FileSeq> {
        (queue == LogQueue::Append).then(|| self.first.load(Ordering::Relaxed).saturating_add(self.files))
    }

    fn post_purge(&self, file: FileId) {
        if file.queue == LogQueue::Append {
            self.first.store(file.seq + 1, Ordering::Relaxed);
        }
    }
}

struct Opened<F: FileSystem> {
    /// Engine, or `None` during the drop.
    engine: Option<Engine<F>>,
    failed: AtomicBool,
}

impl<F: FileSystem> Opened<F> {
    fn engine(&self) -> Result<&Engine<F>, String> {
        self.engine.as_ref().ok_or_else(|| "the engine is closed".to_string())
    }

    fn changing<T>(&self, call: impl FnOnce(&Engine<F>) -> raft_engine::Result<T>) -> Result<T, String> {
        let engine = self.engine()?;
        let result = guarded(|| call(engine));
        if result.is_err() {
            self.failed.store(true, Ordering::Release);
        }
        result
    }
}

impl<F: FileSystem> Drop for Opened<F> {
    fn drop(&mut self) {
        let engine = self.engine.take();
        if self.failed.load(Ordering::Acquire) {
            // Closing would sync again. After a failure that proves nothing, and a second failure panics twice. The
            // process is about to end, which releases the lock and the files.
            std::mem::forget(engine);
            return;
        }
        let closed = guarded(|| {
            drop(engine);
            Ok(())
        });
        if let Err(what) = closed {
            tracing::error!(what, "closing the log failed; everything acknowledged had been synced before");
        }
    }
}

impl<F: FileSystem> Records for Opened<F> {
    fn fetch(&self, group: GroupId, from: u64, to: u64, bytes_max: usize) -> Result<Vec<Frame>, String> {
        let engine = self.engine()?;
        let mut frames = Vec::new();
        guarded(|| {
            let (from, to) = (engine_index(from), engine_index(to));
            engine.fetch_entries_to::<Frame>(group.0, from, to, Some(bytes_max), &mut frames)
        })?;
        Ok(frames)
    }

    fn give_back(&self) -> Result<Vec<u64>, String> {
        self.changing(|engine| engine.purge_expired_files())
    }

    fn renew(&self) -> Result<(), String> {
        self.changing(|engine| {
            let purge = engine.purge_manager();
            purge.must_rewrite_append_queue(None, None);
            purge.must_rewrite_rewrite_queue();
            Ok(())
        })
    }

    fn bytes(&self) -> u64 {
        self.engine().map_or(0, |engine| engine.get_used_size() as u64)
    }
}

impl<F: FileSystem> Store for Opened<F> {
    fn write(&self, batch: &mut LogBatch, sync: bool) -> Result<(), String> {
        let sync = sync && !sabotage::is(Sabotage::SkipFsync);
        self.changing(|engine| engine.write(batch, sync)).map(|_| ())
    }

    fn note(&self, group: GroupId, key: &[u8]) -> Option<Vec<u8>> {
        self.engine().ok()?.get(group.0, key)
    }

    fn span(&self, group: GroupId) -> Option<(u64, u64)> {
        let engine = self.engine().ok()?;
        Some((engine.first_index(group.0)?.checked_sub(1)?, engine.last_index(group.0)?.checked_sub(1)?))
    }
}

fn guarded<T>(call: impl FnOnce() -> raft_engine::Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Err(format!("raft-engine panicked: {text}"))
        }
    }
}
