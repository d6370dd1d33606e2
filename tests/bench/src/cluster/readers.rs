//! Readers during another activity: each repeatedly reads the newest row of an object that is being written, and
//! compares it with the acknowledged rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::roamer::{Roamer, Troubles};
use super::writers::{Object, WriteLoad};
use crate::http::client::Target;

/// Between an answer and the next question.
const EVERY: Duration = Duration::from_millis(50);
/// Duration above which a read is reported individually.
const SLOW: Duration = Duration::from_millis(500);

#[derive(Debug, Default, Serialize)]
pub struct Read {
    pub reads: u64,
    pub troubles: Troubles,
    /// Reads that were refused more than once.
    pub refused_again: u64,
    /// Reads that did not show a row that was acknowledged before they were sent.
    pub stale: u64,
    #[serde(skip)]
    pub answer_ms: Vec<f64>,
    pub slow: Vec<SlowRead>,
    pub told: Vec<String>,
}

/// A slow read.
#[derive(Debug, Serialize)]
pub struct SlowRead {
    /// Time of its start, in seconds since the load began.
    pub sent: f64,
    pub seconds: f64,
    pub shard: u16,
    /// Node that finally responded, by its place.
    pub node: usize,
}

impl Read {
    pub fn join(&mut self, other: Read) {
        self.reads += other.reads;
        self.troubles.join(other.troubles);
        self.refused_again += other.refused_again;
        self.stale += other.stale;
        self.answer_ms.extend(other.answer_ms);
        self.slow.extend(other.slow);
        self.told.extend(other.told);
    }
}

#[derive(Deserialize)]
struct ReaderPage {
    events: Vec<ReaderEvent>,
}

#[derive(Deserialize)]
struct ReaderEvent {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    row: u64,
}

/// Readers that run until they are stopped, with the writers' clients.
#[derive(Debug)]
pub struct Readers {
    stop: Arc<AtomicBool>,
    readers: Vec<JoinHandle<anyhow::Result<Read>>>,
}

impl Readers {
    /// One for each of the writers' objects.
    pub fn start(load: &WriteLoad, targets: &Arc<Vec<Target>>, objects: &[Object]) -> Readers {
        let stop = Arc::new(AtomicBool::new(false));
        let mut readers = Vec::new();
        for (place, object) in objects.iter().enumerate() {
            let (stop, progress, object) = (Arc::clone(&stop), Arc::clone(&load.progress), object.clone());
            // Not the node that the object's writer asks.
            let mut roamer = Roamer::new(targets, place + 1, load.began);
            readers.push(load.runtime().spawn(async move {
                let mut read = Read::default();
                while !stop.load(Ordering::Relaxed) {
                    let acknowledged = progress[place].rows.load(Ordering::Acquire);
                    one(&mut roamer, &object, acknowledged, &mut read).await?;
                    sleep(EVERY).await;
                }
                read.told.extend(roamer.told());
                anyhow::Ok(read)
            }));
        }
        Readers { stop, readers }
    }

    pub fn end(self, load: &WriteLoad) -> anyhow::Result<Read> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Read::default();
        for reader in self.readers {
            all.join(load.runtime().block_on(reader).context("a reader panicked")??);
        }
        Ok(all)
    }
}

/// `acknowledged` is how many rows there must be at least.
async fn one(roamer: &mut Roamer, object: &Object, acknowledged: u64, read: &mut Read) -> anyhow::Result<()> {
    let (path, from) = (object.path("fetch"), Instant::now());
    let (answer, troubles) = roamer.deliver(&path, &Bytes::from_static(b"{\"limit\":1}")).await?;
    let took = from.elapsed();
    read.answer_ms.push(took.as_secs_f64() * 1e3);
    if took >= SLOW {
        let sent = from.duration_since(roamer.began()).as_secs_f64();
        read.slow.push(SlowRead { sent, seconds: took.as_secs_f64(), shard: object.shard, node: roamer.at() });
    }
    read.reads += 1;
    read.troubles.join(troubles);
    read.refused_again += u64::from(troubles.refused > 1);
    let page: ReaderPage = serde_json::from_slice(&answer).context("a page")?;
    let rows = page.events.first().map_or(0, |event| event.metadata.row + 1);
    if rows < acknowledged {
        read.stale += 1;
        read.told.push(format!("shard {}: {rows} rows, and {acknowledged} were acknowledged before", object.shard));
    }
    Ok(())
}
