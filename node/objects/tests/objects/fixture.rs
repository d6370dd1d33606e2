//! Node for tests, with helpers for requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use assay_cluster::{Cluster, ClusterConfig, OnFatal};
use assay_node_objects::{
    Clock, FetchPage, FetchRequest, OBJECTS_THREAD, ObjectLimits, ObjectWrite, Objects, Patience, ReadError, RowHome,
    WriteError, Written, node_clock,
};
use assay_storage_log::LogConfig;
use assay_storage_model::command::{Command, RequestId};
use assay_storage_model::event::SentItem;
use assay_storage_model::{GroupId, ObjectKey, ObjectKind, OrgId, ShardId};
use bytes::Bytes;
use serde_json::Value;
use uuid::Uuid;

pub struct Fixture {
    pub objects: Objects,
    pub cluster: Arc<Cluster>,
    _dir: tempfile::TempDir,
}

pub async fn fixture() -> Fixture {
    fixture_with(ObjectLimits::default()).await
}

pub async fn fixture_with(limits: ObjectLimits) -> Fixture {
    fixture_at(limits, node_clock).await
}

/// Guard during which no actor takes a write. Writes with a reservation keep it.
pub struct Hold(Arc<AtomicBool>);

impl Hold {
    pub fn end(self) {}
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

pub async fn held_fixture(limits: ObjectLimits) -> (Fixture, Hold) {
    let holds = Arc::new(AtomicBool::new(true));
    let hold = Hold(Arc::clone(&holds));
    let fixture = fixture_at(limits, |cluster| {
        let clock = node_clock(cluster);
        // An actor reads the clock before it takes a write.
        Arc::new(move || {
            let is_actor = thread::current().name().is_some_and(|name| name.starts_with(OBJECTS_THREAD));
            while is_actor && holds.load(Ordering::Acquire) {
                thread::sleep(Duration::from_millis(1));
            }
            clock()
        })
    });
    (fixture.await, hold)
}

async fn fixture_at(limits: ObjectLimits, clock: impl FnOnce(&Arc<Cluster>) -> Clock) -> Fixture {
    let dir = tempfile::tempdir().expect("a directory");
    let config = ClusterConfig {
        data_dir: dir.path().to_owned(),
        shards: 4,
        log: LogConfig { file_bytes: 1 << 20, budget_bytes: 8 << 20, ..LogConfig::default() },
        on_fatal: OnFatal::call(|why| panic!("{why}")),
        ..ClusterConfig::default()
    };
    let cluster = Arc::new(Cluster::open(config).await.expect("opens"));
    Fixture { objects: Objects::start(Arc::clone(&cluster), limits, clock(&cluster)), cluster, _dir: dir }
}

pub fn key(kind: ObjectKind, n: u128) -> ObjectKey {
    ObjectKey::new(OrgId(Uuid::from_u128(1)), kind, Uuid::from_u128(n))
}

pub fn log(n: u128) -> ObjectKey {
    key(ObjectKind::ProjectLogs, n)
}

pub fn home(object: ObjectKey) -> RowHome {
    RowHome { object, org: object.org, project_id: object.id }
}

pub fn request(n: u8, content: u8) -> Option<RequestId> {
    Some(RequestId { key: [n; 16], content: [content; 16] })
}

/// Converts rows as if they were sent in a request body.
pub fn sent(rows: Vec<Value>) -> Vec<SentItem> {
    rows.into_iter().map(SentItem::from).collect()
}

/// Result of a fetch.
pub struct FetchedPage {
    pub page: FetchPage,
    pub events: Vec<Value>,
}

impl FetchedPage {
    pub fn ids(&self) -> Vec<&str> {
        self.events.iter().map(|event| event["id"].as_str().expect("an id")).collect()
    }

    #[track_caller]
    pub fn event(&self, id: &str) -> &Value {
        self.events.iter().find(|event| event["id"] == id).unwrap_or_else(|| panic!("no row {id} in {:?}", self.ids()))
    }
}

impl Fixture {
    pub async fn try_write(&self, object: ObjectKey, rows: Vec<Value>) -> Result<Written, WriteError> {
        let mut written = self
            .objects
            .write(vec![ObjectWrite { object, rows: sent(rows), request: None }], Patience::usual())
            .await?;
        Ok(written.pop().expect("one"))
    }

    pub async fn write(&self, object: ObjectKey, rows: Vec<Value>) -> Written {
        self.try_write(object, rows).await.expect("writes")
    }

    pub async fn try_fetch(&self, object: ObjectKey, request: FetchRequest) -> Result<FetchedPage, ReadError> {
        let page = self.objects.fetch(&home(object), request).await?;
        let events = page.events.iter().map(|event| serde_json::from_slice(event).expect("JSON")).collect();
        Ok(FetchedPage { page, events })
    }

    pub async fn fetch(&self, object: ObjectKey, request: FetchRequest) -> FetchedPage {
        self.try_fetch(object, request).await.expect("reads")
    }

    pub async fn all(&self, object: ObjectKey) -> FetchedPage {
        self.fetch(object, FetchRequest::default()).await
    }

    pub async fn seal(&self) {
        for shard in 0..self.cluster.shards() {
            self.cluster.seal(GroupId::of_shard(ShardId(shard))).await.expect("seals");
        }
    }

    pub async fn drop_object(&self, object: ObjectKey) {
        let command = Bytes::from(Command::DropObject { object }.encode());
        self.cluster.write(self.cluster.locate(&object), command).await.expect("drops");
    }

    pub async fn close(self) {
        tokio::time::timeout(Duration::from_secs(20), self.objects.shutdown()).await.expect("ends in time");
        self.cluster.shutdown().await.expect("shuts down");
    }
}
