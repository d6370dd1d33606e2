//! INTERIM
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use assay_storage_blobs::Blobs;
use assay_storage_catalog::{Catalog, CatalogConfig};
use assay_storage_disk::{RealDisk, SharedDisk};
use assay_storage_log::{Log, LogConfig, LogRecord};
use assay_storage_model::command::Outcome;
use assay_storage_model::entry::{Entry, EntryBuilder};
use assay_storage_model::{GroupId, LogPosition, ObjectKey, ObjectKind, OrgId, ShardId, Xact};
use assay_storage_shard::{KvKind, Shard, ShardConfig, View};
use bytes::Bytes;
use tokio::sync::Mutex;

/// Objects the workload writes to; few, so that clients collide.
pub const OBJECTS: u8 = 6;
const SHARDS: u16 = 4;

#[derive(Clone, Copy, Debug, Default)]
pub struct Options {}

#[derive(Debug)]
pub enum Said {
    Written { xact: Xact, again: bool },
    Reused { xact: Xact },
    Refused { why: String },
    Unknown { why: String },
}

#[derive(Debug)]
struct One {
    shard: Arc<Shard>,
    next: Mutex<u64>,
    group: GroupId,
    bytes: AtomicU64,
}

#[derive(Debug)]
pub struct Store {
    log: Log,
    shards: Vec<One>,
    blobs: Arc<Blobs>,
    _lock: std::fs::File,
}

impl Store {
    pub async fn open(dir: &Path, _: Options) -> anyhow::Result<Store> {
        let disk: SharedDisk = Arc::new(RealDisk);
        disk.create_dir_all(dir)?;
        let lock = std::fs::OpenOptions::new().create(true).append(true).open(dir.join("LOCK"))?;
        lock.try_lock()?;
        let format = dir.join("FORMAT");
        if !format.exists() {
            assay_storage_disk::replace_whole(disk.as_ref(), &format, b"assay 1\n7b0c3a0e-2b6f-4c53-9a55-08e0b5b7b001\n")?;
        }
        anyhow::ensure!(std::fs::read(&format)? == b"assay 1\n7b0c3a0e-2b6f-4c53-9a55-08e0b5b7b001\n", "FORMAT damaged");
        let log = Log::open(disk.clone(), &dir.join("log"), LogConfig { budget_bytes: 4 << 20, file_bytes: 1 << 20, ..LogConfig::default() })?;
        let blobs = Arc::new(Blobs::open(disk.clone(), &dir.join("blobs"))?);
        Catalog::open(CatalogConfig { disk: disk.clone(), dir: dir.join("catalog"), kv_cache_bytes: 1 << 20 })?;
        let mut shards = Vec::new();
        for number in 0..SHARDS {
            let group = GroupId::of_shard(ShardId(number));
            let shard = Shard::open(ShardConfig {
                disk: disk.clone(),
                dir: PathBuf::from(dir.join(format!("shards/{number:03}"))),
                blobs: blobs.clone(),
                kv: KvKind::Sled { cache_bytes: 1 << 20 },
            })?;
            let from = shard.applied().position.map_or(0, |p| p.index + 1);
            let state = log.group(group).state();
            let mut next = from;
            if let Some((last, _)) = state.last {
                anyhow::ensure!(state.first <= from, "log begins at {} kept ends {from}", state.first);
                while next <= last {
                    for record in log.group(group).read(next, last + 1, 4 << 20)? {
                        shard.apply(LogPosition { term: 1, replica: 1, index: record.index }, &record.payload)?;
                        next = record.index + 1;
                    }
                }
            }
            shards.push(One { shard, next: Mutex::new(next), group, bytes: AtomicU64::new(0) });
        }
        Ok(Store { log, shards, blobs, _lock: lock })
    }

    pub fn key(&self, object: u8) -> ObjectKey {
        let id = |n: u8| format!("00000000-0000-4000-8000-0000000000{n:02x}").parse::<OrgId>().expect("uuid");
        ObjectKey::new(id(1), ObjectKind::ProjectLogs, id(object + 16).0)
    }

    fn one(&self, object: u8) -> &One {
        &self.shards[usize::from(object) % self.shards.len()]
    }

    pub fn view(&self, object: u8) -> anyhow::Result<View> {
        Ok(self.one(object).shard.view())
    }

    pub async fn fence(&self, _: u8) -> anyhow::Result<()> {
        Ok(())
    }

    pub async fn write(&self, object: u8, command: Bytes) -> Said {
        match self.try_write(object, command).await {
            Ok(Outcome::Written { xact }) => Said::Written { xact, again: false },
            Ok(Outcome::Duplicate { xact }) => Said::Written { xact, again: true },
            Ok(Outcome::KeyReused { xact }) => Said::Reused { xact },
            Ok(other) => Said::Refused { why: format!("{other:?}") },
            Err(why) => {
                eprintln!("the log or a shard failed: {why:#}");
                std::process::exit(3)
            }
        }
    }

    async fn try_write(&self, object: u8, command: Bytes) -> anyhow::Result<Outcome> {
        let one = self.one(object);
        let mut builder = EntryBuilder::default();
        builder.push(&command);
        let mut entry = builder.finish();
        if entry.len() > 512 << 10 {
            let name = self.blobs.put(&entry)?;
            entry = assay_storage_model::entry::blob_entry(name.0, entry.len() as u64);
            let _ = Entry::decode(&entry)?;
        }
        let mut next = one.next.lock().await;
        let (send, done) = tokio::sync::oneshot::channel();
        let record = LogRecord { index: *next, term: 1, payload: entry.clone() };
        self.log.group(one.group).append(vec![record], Box::new(move |result| drop(send.send(result))));
        done.await??;
        let mut outcomes = one.shard.apply(LogPosition { term: 1, replica: 1, index: *next }, &entry)?;
        *next += 1;
        let bytes = one.bytes.fetch_add(entry.len() as u64, Ordering::Relaxed);
        if bytes > 100 << 10 {
            one.bytes.store(0, Ordering::Relaxed);
            drop(next);
            self.seal(object).await?;
            self.compact(object).await?;
        }
        outcomes.pop().context("an outcome")
    }

    pub async fn seal(&self, object: u8) -> anyhow::Result<()> {
        let one = self.one(object);
        let shard = one.shard.clone();
        let sealed = tokio::task::spawn_blocking(move || shard.seal()).await??;
        if let Some(position) = sealed.position {
            let (send, done) = tokio::sync::oneshot::channel();
            self.log.group(one.group).purge(position.index, b"note".to_vec(), Box::new(move |r| drop(send.send(r))));
            done.await??;
        }
        let log = self.log.clone();
        tokio::task::spawn_blocking(move || log.pinned()).await?;
        Ok(())
    }

    pub async fn compact(&self, object: u8) -> anyhow::Result<()> {
        let shard = self.one(object).shard.clone();
        tokio::task::spawn_blocking(move || shard.compact()).await??;
        Ok(())
    }

    pub async fn close(self) -> anyhow::Result<()> {
        Ok(())
    }
}
