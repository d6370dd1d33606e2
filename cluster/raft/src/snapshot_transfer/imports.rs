//! Import of a snapshot, which is fetched file by file from the offering replica, synced, and passed to consensus.
//!
//! Fetched files stay while the process lives. If the sender or the connection fails, the next offer of the same
//! replica resumes. This is safe because a replica never reuses a file name for another content. Files of an earlier
//! process are deleted, because they were never synced.
//!
//! The machine verifies every byte of the files before consensus receives the snapshot. A refused snapshot is deleted
//! and reported to the sender, and the replica continues with its state.
//!
//! A fetch may be cancelled while its disk work continues. The disk work is therefore serialized: the next piece begins
//! when the previous one has ended, with or without a waiting caller.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use assay_storage_disk::{DiskFile, SharedDisk};
use assay_storage_model::ReplicaId;
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use thiserror::Error;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::apply::machine::{BadSnapshot, Machine};
use crate::network::peers::{FileWanted, PeerError, Peers, Way};
use crate::network::wire::{Offer, OfferedFile};
use crate::snapshot_transfer::throttle::Throttle;
use crate::work::Work;

/// Upper bound of the kept state of a group, which is in memory while it is fetched.
const KEPT_BYTES_MAX: u64 = assay_storage_catalog::EXPORT_BYTES_MAX as u64;
/// Bytes between two syncs of a growing file, so that the log's sync on the same disk does not wait for a large one.
const SYNC_EVERY_BYTES: u64 = 4 << 20;
/// Pause after an unusable snapshot. Another one of the same replica is likely to be unusable too, and costs as much to
/// fetch.
const REFUSED_FOR: Duration = Duration::from_secs(3);
/// Maximum number of consecutive attempts at a file without progress.
const TRIES_WITHOUT_PROGRESS_MAX: u32 = 3;

#[derive(Debug, Error)]
pub(crate) enum FetchError {
    #[error(transparent)]
    Peer(#[from] PeerError),
    #[error("cannot store a snapshot: {0}")]
    Disk(#[from] io::Error),
    #[error("{0}")]
    Wrong(String),
    #[error(transparent)]
    Bad(#[from] BadSnapshot),
}

/// Directory for the files of snapshots, on the same disk as the group's own files.
#[derive(Clone, Debug)]
pub struct IncomingDir {
    pub disk: SharedDisk,
    pub dir: PathBuf,
}

#[derive(Debug)]
pub(crate) struct Incoming {
    place: IncomingDir,
    throttle: Arc<Throttle>,
    work: Work,
    turn: Arc<Mutex<()>>,
    /// Sender of the last unusable snapshot, and the time of its refusal.
    refused: Option<(ReplicaId, Instant)>,
    /// Sender of the files in the directory.
    from: Option<ReplicaId>,
    files: BTreeMap<String, (Arc<dyn DiskFile>, u64)>,
}

/// Fetched snapshot: the kept state, and the directory of its files, if there are any.
#[derive(Clone, Debug)]
pub(crate) struct Fetched {
    pub kept: Bytes,
    pub dir: Option<PathBuf>,
}

impl Incoming {
    pub async fn new(place: IncomingDir, throttle: Arc<Throttle>, work: Work) -> io::Result<Incoming> {
        let (turn, files) = (Arc::default(), BTreeMap::new());
        let mut incoming = Incoming { place, throttle, work, turn, refused: None, from: None, files };
        incoming.sweep().await?;
        Ok(incoming)
    }

    /// Deletes the fetched files.
    pub async fn sweep(&mut self) -> io::Result<()> {
        self.files.clear();
        self.from = None;
        let removing =
            |disk: &SharedDisk, dir: &Path| if disk.exists(dir)? { disk.remove_dir_all(dir) } else { Ok(()) };
        self.in_turn(removing).await
    }

    async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SharedDisk, &Path) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let IncomingDir { disk, dir } = self.place.clone();
        let done = self.work.run(move || {
            let _turn = turn; // held until the work ends, even if the caller stops waiting
            work(&disk, &dir)
        });
        done.await?
    }

    /// Returns whether a snapshot of this replica was refused recently.
    pub fn refused_lately(&self, from: ReplicaId) -> bool {
        self.refused.is_some_and(|(refused, at)| refused == from && at.elapsed() < REFUSED_FOR)
    }

    /// Checks that the machine can install the fetched snapshot. Otherwise deletes it and returns an error.
    pub async fn check(&mut self, machine: Arc<dyn Machine>, way: Way, fetched: &Fetched) -> Result<(), FetchError> {
        let Fetched { kept, dir } = fetched.clone();
        let Err(bad) = self.work.run(move || machine.check(&kept, dir.as_deref())).await? else { return Ok(()) };
        tracing::error!(group = %way.group, from = %way.to, node = %way.node, %bad, "a snapshot is unusable and was not installed");
        self.sweep().await?;
        self.refused = Some((way.to, Instant::now()));
        Err(bad.into())
    }

    /// Fetches the kept state and all files of an offer. `way` leads to its sender.
    pub async fn fetch(&mut self, peers: &dyn Peers, way: Way, offer: &Offer) -> Result<Fetched, FetchError> {
        if self.from != Some(way.to) {
            self.sweep().await?;
            self.from = Some(way.to);
        }
        let kept = self.fetch_kept(peers, way, offer).await?;
        if offer.files.is_empty() {
            return Ok(Fetched { kept, dir: None });
        }
        self.in_turn(|disk, dir| disk.create_dir_all(dir)).await?;
        self.forget_others(offer).await?;
        for (number, file) in (0..).zip(&offer.files) {
            self.fetch_file(peers, way, FileWanted { export: offer.export, file: number, offset: 0 }, file).await?;
        }
        let dir = self.in_turn(|disk, dir| disk.sync_dir(dir).map(|()| dir.to_owned())).await?;
        Ok(Fetched { kept, dir: Some(dir) })
    }

    /// Deletes files of an earlier offer that this offer does not contain.
    async fn forget_others(&mut self, offer: &Offer) -> io::Result<()> {
        let wanted = |name: &str| offer.files.iter().any(|file| file.name == name);
        let others: Vec<String> = self.files.keys().filter(|name| !wanted(name)).cloned().collect();
        if others.is_empty() {
            return Ok(());
        }
        others.iter().for_each(|name| drop(self.files.remove(name)));
        self.in_turn(move |disk, dir| others.iter().try_for_each(|name| remove_if_there(disk, &dir.join(name)))).await
    }

    async fn fetch_kept(&self, peers: &dyn Peers, way: Way, offer: &Offer) -> Result<Bytes, FetchError> {
        if offer.kept_bytes > KEPT_BYTES_MAX {
            return Err(FetchError::Wrong(format!(
                "the snapshot's state has {} bytes, which is too large",
                offer.kept_bytes
            )));
        }
        let file = u32::try_from(offer.files.len()).map_err(|_| FetchError::Wrong("too many files".into()))?;
        let mut chunks = peers.fetch(way, FileWanted { export: offer.export, file, offset: 0 }).await?;
        let mut kept = BytesMut::new();
        while let Some(chunk) = chunks.next().await {
            kept.extend_from_slice(&chunk?);
            if kept.len() as u64 > offer.kept_bytes {
                break;
            }
        }
        if kept.len() as u64 != offer.kept_bytes {
            return Err(FetchError::Wrong(format!(
                "only {} of {} bytes of the snapshot's state arrived",
                kept.len(),
                offer.kept_bytes
            )));
        }
        Ok(kept.freeze())
    }

    async fn fetch_file(
        &mut self,
        peers: &dyn Peers,
        way: Way,
        wanted: FileWanted,
        file: &OfferedFile,
    ) -> Result<(), FetchError> {
        if !self.files.contains_key(&file.name) {
            let name = file.name.clone();
            let making = self.in_turn(move |disk, dir| {
                let path = dir.join(name);
                remove_if_there(disk, &path)?; // a cancelled fetch may have created it
                disk.create(&path)
            });
            let made = making.await?;
            self.files.insert(file.name.clone(), (made, 0));
        }
        let mut without_progress = 0;
        loop {
            let (_, have) = &self.files[&file.name];
            let have = *have;
            if have == file.length {
                break;
            }
            let more = self.fetch_rest(peers, way, FileWanted { offset: have, ..wanted.clone() }, file).await;
            let got = self.files[&file.name].1;
            without_progress = if got > have { 0 } else { without_progress + 1 };
            match more {
                Ok(()) if got == file.length => break,
                Ok(()) if without_progress < TRIES_WITHOUT_PROGRESS_MAX => {}
                Ok(()) => return Err(FetchError::Wrong(format!("{} ends after {got} bytes", file.name))),
                Err(FetchError::Peer(PeerError::Lost(_))) if without_progress < TRIES_WITHOUT_PROGRESS_MAX => {}
                Err(error) => return Err(error),
            }
        }
        let done = Arc::clone(&self.files[&file.name].0);
        Ok(self.in_turn(move |_, _| done.sync()).await?)
    }

    async fn fetch_rest(
        &mut self,
        peers: &dyn Peers,
        way: Way,
        wanted: FileWanted,
        file: &OfferedFile,
    ) -> Result<(), FetchError> {
        let mut chunks = peers.fetch(way, wanted).await?;
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk?;
            self.throttle.take(chunk.len()).await;
            let (handle, have) = self.files.get_mut(&file.name).expect("made before its bytes are asked for");
            let after = *have + chunk.len() as u64;
            if after > file.length {
                return Err(FetchError::Wrong(format!("{} is longer than announced", file.name)));
            }
            let handle = Arc::clone(handle);
            let at = *have;
            let sync = at / SYNC_EVERY_BYTES != after / SYNC_EVERY_BYTES;
            let written = self.in_turn(move |_, _| {
                handle.write_at(at, &chunk)?;
                if sync { handle.sync() } else { Ok(()) }
            });
            written.await?;
            self.files.get_mut(&file.name).expect("still there").1 = after;
        }
        Ok(())
    }
}

fn remove_if_there(disk: &SharedDisk, path: &Path) -> io::Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
