//! Light load during another activity: one writer per shard, with one small row per request at a steady rate, the next
//! row only after the previous one was acknowledged. A row without acknowledgement is sent again under the same id, so
//! that every row is there in the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use assay_storage_model::{ObjectKey, ObjectKind, OrgId, ShardId};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::roamer::{DELIVERED_WAIT_MAX, Roamer, Troubles};
use crate::http::client::{Connection, Target};

/// Between two rows of a writer.
pub const EVERY: Duration = Duration::from_millis(50);
const LOOK: Duration = Duration::from_millis(2);

/// A project whose rows are in one known shard.
#[derive(Clone, Debug)]
pub struct Object {
    pub shard: u16,
    pub id: Uuid,
}

impl Object {
    pub fn path(&self, what: &str) -> String {
        format!("/v1/project_logs/{}/{what}", self.id)
    }

    pub fn row_id(&self, row: u64) -> String {
        format!("{}-{row}", self.shard)
    }

    pub fn row_input(&self, row: u64) -> String {
        format!("row {row} for shard {}", self.shard)
    }

    fn body(&self, row: u64) -> Bytes {
        let row = json!({ "id": self.row_id(row), "input": self.row_input(row), "metadata": { "row": row } });
        Bytes::from(json!({ "events": [row] }).to_string())
    }
}

#[derive(Deserialize)]
struct WriterProject {
    id: Uuid,
    org_id: Uuid,
}

/// New projects until every shard has one, in the order of the shards.
pub async fn one_in_each_shard(target: &Target, shards: u16) -> anyhow::Result<Vec<Object>> {
    const TRIES_EACH: usize = 100;
    let mut connection = Connection::new(target);
    let mut found: Vec<Option<Object>> = vec![None; usize::from(shards)];
    for number in 0..usize::from(shards) * TRIES_EACH {
        if found.iter().all(Option::is_some) {
            break;
        }
        let body = Bytes::from(json!({ "name": format!("shard-{number}") }).to_string());
        let project: WriterProject = connection.post("/v1/project", &body).await?.json("POST /v1/project")?;
        let key = ObjectKey::new(OrgId(project.org_id), ObjectKind::ProjectLogs, project.id);
        let ShardId(shard) = assay_cluster_placement::shard_of(&key, shards);
        found[usize::from(shard)].get_or_insert(Object { shard, id: project.id });
    }
    found.into_iter().collect::<Option<Vec<Object>>>().context("no project fell into some shard")
}

/// One acknowledged row; times are seconds since the load began.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Acknowledged {
    /// First sent.
    pub sent: f64,
    pub at: f64,
    pub troubles: Troubles,
}

/// Result of one writer: row `n` is entry `n`.
#[derive(Debug, Serialize)]
pub struct Written {
    #[serde(skip)]
    pub object: Object,
    #[serde(skip)]
    pub rows: Vec<Acknowledged>,
    /// The first few things that went wrong, in words.
    pub told: Vec<String>,
}

/// Progress of a writer, for observers.
#[derive(Debug, Default)]
pub struct WriteProgress {
    /// Rows acknowledged.
    pub rows: AtomicU64,
    /// Time when the last of them was sent, in microseconds since the load began.
    sent_micros: AtomicU64,
}

/// Writers that run until they are stopped.
#[derive(Debug)]
pub struct WriteLoad {
    runtime: Runtime,
    pub began: Instant,
    stop: Arc<AtomicBool>,
    /// Progress of each writer.
    pub progress: Arc<Vec<WriteProgress>>,
    writers: Vec<JoinHandle<anyhow::Result<Written>>>,
}

impl WriteLoad {
    pub fn start(runtime: Runtime, targets: &Arc<Vec<Target>>, objects: Vec<Object>, every: Duration) -> WriteLoad {
        let stop = Arc::new(AtomicBool::new(false));
        let progress: Arc<Vec<WriteProgress>> = Arc::new(objects.iter().map(|_| WriteProgress::default()).collect());
        let count = u32::try_from(objects.len()).unwrap_or(1);
        let began = Instant::now();
        let mut writers = Vec::new();
        for (place, object) in objects.into_iter().enumerate() {
            let (stop, progress) = (Arc::clone(&stop), Arc::clone(&progress));
            let mut writer = Writer { roamer: Roamer::new(targets, place, began), object, began, rows: Vec::new() };
            // Not all at the same moment.
            let first = began + every * u32::try_from(place).unwrap_or(0) / count;
            writers.push(runtime.spawn(async move {
                let mut due = first;
                while !stop.load(Ordering::Relaxed) {
                    sleep_until(due).await;
                    due = (due + every).max(Instant::now());
                    let last = writer.write().await?;
                    progress[place].sent_micros.store((last.sent * 1e6) as u64, Ordering::Relaxed);
                    progress[place].rows.store(writer.rows.len() as u64, Ordering::Release);
                }
                anyhow::Ok(Written { object: writer.object, rows: writer.rows, told: writer.roamer.told() })
            }));
        }
        WriteLoad { runtime, began, stop, progress, writers }
    }

    /// Seconds since the load began.
    pub fn now(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Returns when every writer had a row acknowledged that it sent after `since`.
    pub fn all_write_since(&self, since: f64) -> anyhow::Result<()> {
        let since_micros = (since * 1e6) as u64;
        while self.progress.iter().any(|of| of.sent_micros.load(Ordering::Relaxed) <= since_micros) {
            ensure!(self.now() - since < DELIVERED_WAIT_MAX.as_secs_f64(), "writes do not succeed again");
            ensure!(!self.writers.iter().any(JoinHandle::is_finished), "a writer gave up");
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Returns the runtime of the clients, for other clients that run concurrently with the writers.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Ends when each has its last row acknowledged.
    pub fn end(self) -> anyhow::Result<(Runtime, Vec<Written>)> {
        self.stop.store(true, Ordering::Relaxed);
        let mut written = Vec::new();
        for writer in self.writers {
            written.push(self.runtime.block_on(writer).context("a writer panicked")??);
        }
        Ok((self.runtime, written))
    }
}

struct Writer {
    roamer: Roamer,
    object: Object,
    began: Instant,
    rows: Vec<Acknowledged>,
}

impl Writer {
    /// The next row, until it is acknowledged.
    async fn write(&mut self) -> anyhow::Result<Acknowledged> {
        let row = self.rows.len() as u64;
        let (path, body) = (self.object.path("insert"), self.object.body(row));
        let sent = self.began.elapsed().as_secs_f64();
        let (_, troubles) = self.roamer.deliver(&path, &body).await.with_context(|| format!("row {row}"))?;
        let acknowledged = Acknowledged { sent, at: self.began.elapsed().as_secs_f64(), troubles };
        self.rows.push(acknowledged);
        Ok(acknowledged)
    }
}
