//! Exports of snapshots that this replica is sending. They are held until the receiver has fetched them, and read in
//! place.
//!
//! An export retains the entries behind it in the log, also for a moment after its end: see
//! [`crate::log::purge_retention`].
//!
//! The kept state is sent like a file after the others. Its number is the count of files.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use assay_storage_disk::SharedDisk;
use bytes::Bytes;
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::apply::machine::Export;
use crate::network::peers::{Chunks, FileWanted, PeerError};
use crate::network::wire::{Offer, OfferedFile, VoteOf};
use crate::work::Work;

/// Bytes of a file per disk read and per message.
const CHUNK_BYTES: usize = 1 << 20;
/// Time for consensus to notice the arrival of a snapshot and to continue behind it.
const NOTICED_WITHIN: Duration = Duration::from_secs(3);

#[derive(Clone, Debug)]
pub(crate) struct Exports {
    shared: Arc<ExportsState>,
}

#[derive(Debug)]
struct ExportsState {
    disk: SharedDisk,
    work: Work,
    held: Mutex<HashMap<u64, Arc<Export>>>,
    /// Position of the export released last, with the time of its release.
    let_go: Mutex<Option<(u64, Instant)>>,
    next: AtomicU64,
}

/// Guard of an export, which can be fetched while the guard exists.
#[derive(Debug)]
pub(crate) struct HeldExport {
    shared: Arc<ExportsState>,
    number: u64,
    export: Arc<Export>,
}

impl Drop for HeldExport {
    fn drop(&mut self) {
        let position = self.export.applied.position.map_or(0, |position| position.index);
        *self.shared.let_go.lock() = Some((position, Instant::now()));
        self.shared.held.lock().remove(&self.number);
    }
}

impl HeldExport {
    pub fn offer(&self, vote: VoteOf) -> Offer {
        let file =
            |file: &crate::apply::machine::ExportFile| OfferedFile { name: file.name.clone(), length: file.length };
        Offer {
            vote,
            export: self.number,
            applied: self.export.applied.clone(),
            kept_bytes: self.export.kept.len() as u64,
            files: self.export.files.iter().map(file).collect(),
        }
    }
}

impl Exports {
    pub fn new(disk: SharedDisk, work: Work) -> Exports {
        let (held, let_go, next) = (Mutex::default(), Mutex::default(), AtomicU64::new(1));
        Exports { shared: Arc::new(ExportsState { disk, work, held, let_go, next }) }
    }

    /// Returns the position behind which the receivers of exports need entries.
    pub fn needed_behind(&self) -> Option<u64> {
        let held = self.shared.held.lock();
        let sent = held.values().map(|export| export.applied.position.map_or(0, |position| position.index));
        let let_go = self.shared.let_go.lock().filter(|(_, since)| since.elapsed() < NOTICED_WITHIN);
        sent.chain(let_go.map(|(position, _)| position)).min()
    }

    pub fn hold(&self, export: Export) -> HeldExport {
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let export = Arc::new(export);
        self.shared.held.lock().insert(number, Arc::clone(&export));
        HeldExport { shared: Arc::clone(&self.shared), number, export }
    }

    /// Returns the bytes of one file. Each chunk is read when it is taken.
    pub async fn read(&self, wanted: FileWanted) -> Result<Chunks, PeerError> {
        let refuse = |why: &str| PeerError::Refused { why: why.to_owned(), leader: None };
        let gone = || refuse("this snapshot is no longer sent");
        let export = self.shared.held.lock().get(&wanted.export).cloned().ok_or_else(gone)?;
        let number = wanted.file as usize;
        if number == export.files.len() {
            return Ok(of_memory(export.kept.clone(), wanted.offset));
        }
        let file = export.files.get(number).ok_or_else(|| refuse("this snapshot has no such file"))?;
        let (path, length) = (file.path.clone(), file.length);
        let disk = self.shared.disk.clone();
        let work = self.shared.work.clone();
        let opened = blocking(&work, move || disk.open(&path)).await?;
        let chunks = futures::stream::unfold(wanted.offset, move |offset| {
            let (file, work) = (Arc::clone(&opened), work.clone());
            let export = Arc::clone(&export); // the export is held as long as the stream
            async move {
                let left = length.checked_sub(offset).filter(|left| *left > 0)?;
                let bytes = CHUNK_BYTES.min(usize::try_from(left).unwrap_or(CHUNK_BYTES));
                let read = blocking(&work, move || {
                    let mut buffer = vec![0; bytes];
                    file.read_at(offset, &mut buffer).map(|()| Bytes::from(buffer))
                });
                let read = read.await;
                drop(export);
                // After a failure the stream ends, because later chunks would not follow the earlier ones.
                let next = if read.is_ok() { offset + bytes as u64 } else { length };
                Some((read, next))
            }
        });
        Ok(chunks.boxed())
    }
}

fn of_memory(bytes: Bytes, offset: u64) -> Chunks {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let rest = bytes.slice(start..);
    let parts: Vec<_> = (0..rest.len())
        .step_by(CHUNK_BYTES)
        .map(|from| Ok(rest.slice(from..(from + CHUNK_BYTES).min(rest.len()))))
        .collect();
    futures::stream::iter(parts).boxed()
}

async fn blocking<T: Send + 'static>(
    work: &Work,
    read: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, PeerError> {
    let failed =
        |error: io::Error| PeerError::Refused { why: format!("cannot read a snapshot: {error}"), leader: None };
    work.run(read).await.and_then(|read| read).map_err(failed)
}

#[cfg(test)]
mod tests {
    use assay_storage_disk::SimulatedDisk;
    use assay_storage_model::{Applied, LogPosition};

    use super::*;
    use crate::apply::machine::Hold;

    #[tokio::test(start_paused = true)]
    async fn entries_are_needed_behind_what_is_sent_and_a_moment_longer() {
        let exports = Exports::new(Arc::new(SimulatedDisk::new()), Work::Threads);
        let export = |index| {
            let position = Some(LogPosition { term: 1, replica: 1, index });
            let applied = Applied { position, ..Applied::default() };
            Export { applied, kept: Bytes::new(), files: Vec::new(), hold: Hold::of(()) }
        };
        assert_eq!(exports.needed_behind(), None);
        let (old, new) = (exports.hold(export(10)), exports.hold(export(20)));
        assert_eq!(exports.needed_behind(), Some(10));
        drop(old);
        assert_eq!(exports.needed_behind(), Some(10), "it has just arrived");
        tokio::time::sleep(NOTICED_WITHIN).await;
        assert_eq!(exports.needed_behind(), Some(20));
        drop(new);
        tokio::time::sleep(NOTICED_WITHIN).await;
        assert_eq!(exports.needed_behind(), None);
    }
}
