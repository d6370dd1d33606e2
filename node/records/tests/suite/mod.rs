//! Test setup: a cluster in its own directory, an organization in it, and common helpers.

mod access;
mod access_beside;
mod audit;
mod budgets;
mod creating;
mod deleting;
mod founding;
mod keys;
mod listing;
mod logins;
mod model;
mod model_providers;
mod patching;
mod people;
mod rechecked;
mod secrets;
mod temporary_credentials;
mod tenants;
mod ways_in;

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use assay_cluster::{Cluster, ClusterConfig, HomeError, LogConfig, OnFatal, OpenError};
use assay_node_auth::{Ledger, Principal, Secret};
use assay_node_identity::Identity;
use assay_node_records::kinds::{DATASET, EXPERIMENT, PROJECT};
use assay_node_records::{Founding, Kind, ListRequest, Records, RecordsError};
use assay_node_secrets::{Keyring, VAULT_KEY_BYTES, VaultKey};
use assay_storage_model::OrgId;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use uuid::Uuid;

pub const KEY: &str = "sk-the-owners-very-own-key";

pub struct World {
    pub cluster: Arc<Cluster>,
    pub records: Records,
    pub identity: Identity,
    pub owner: Principal,
    pub kept: Arc<MemoryLedger>,
    dir: TempDir,
}

fn config(dir: &Path) -> ClusterConfig {
    ClusterConfig {
        data_dir: dir.to_owned(),
        shards: 4,
        log: LogConfig { file_bytes: 1 << 20, budget_bytes: 8 << 20, ..LogConfig::default() },
        on_fatal: OnFatal::call(|why| panic!("{why}")),
        ..ClusterConfig::default()
    }
}

/// Opens a cluster in a directory. A previous node may release it only shortly after its shutdown.
pub async fn open(dir: &Path) -> Arc<Cluster> {
    for _ in 0..500 {
        match Cluster::open(config(dir)).await {
            Err(OpenError::Home(HomeError::Locked(_))) => tokio::time::sleep(Duration::from_millis(20)).await,
            opened => return Arc::new(opened.expect("opens")),
        }
    }
    panic!("the directory stays locked");
}

pub fn founding(key: Option<&str>) -> Founding {
    Founding {
        org_name: "acme".into(),
        owner_email: "owner@example.com".into(),
        api_key: key.map(|key| Secret::new(key.to_owned())),
    }
}

/// Ledger in memory, which can be set to fail.
#[derive(Debug, Default)]
pub struct MemoryLedger {
    pub entries: Mutex<Vec<(OrgId, Map<String, Value>)>>,
    pub fails: AtomicBool,
    /// Kind of objects whose entries alone fail.
    pub fails_on: Mutex<Option<&'static str>>,
}

impl Ledger for MemoryLedger {
    fn append<'l>(
        &'l self,
        org: OrgId,
        entry: Map<String, Value>,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'l>> {
        Box::pin(async move {
            let fails_on = self.fails_on.lock().is_some_and(|kind| entry["object_type"] == kind);
            if fails_on || self.fails.load(Ordering::Relaxed) {
                return Err("no room".into());
            }
            self.entries.lock().push((org, entry));
            Ok(())
        })
    }
}

pub async fn world() -> World {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = open(dir.path()).await;
    let kept = Arc::new(MemoryLedger::default());
    let records = Records::new(Arc::clone(&cluster), Arc::clone(&kept) as Arc<dyn Ledger>);
    records.secrets().give_keys(Keyring::new(master(1), Vec::new()));
    assert!(records.found(founding(Some(KEY))).await.expect("founds").is_none(), "the key was brought");
    let identity = Identity::new(records.clone());
    let owner = identity.authenticate(KEY, None).await.expect("the owner");
    World { cluster, records, identity, owner, kept, dir }
}

/// Master key of the tests.
pub fn master(byte: u8) -> VaultKey {
    VaultKey::new([byte; VAULT_KEY_BYTES])
}

pub fn body(value: Value) -> Map<String, Value> {
    value.as_object().cloned().expect("an object")
}

pub fn id_of(object: &Value) -> Uuid {
    object["id"].as_str().and_then(|id| id.parse().ok()).expect("an id")
}

pub fn names(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|object| object["name"].as_str().expect("a name")).collect()
}

#[track_caller]
pub fn bad(result: Result<impl std::fmt::Debug, RecordsError>, names: &str) {
    match result {
        Err(RecordsError::BadRequest(said)) => assert!(said.contains(names), "{said} does not name {names}"),
        other => panic!("{names}: {other:?}"),
    }
}

#[track_caller]
pub fn missing(result: Result<impl std::fmt::Debug, RecordsError>) {
    assert!(matches!(result, Err(RecordsError::NotFound(_))), "{result:?}");
}

impl World {
    pub async fn project(&self, name: &str) -> Uuid {
        let made = self.records.create(&self.owner, &PROJECT, body(json!({ "name": name }))).await.expect("creates");
        id_of(&made.object)
    }

    pub async fn experiment(&self, project: Uuid, more: Value) -> Value {
        self.within(&EXPERIMENT, project, more).await
    }

    pub async fn dataset(&self, project: Uuid, name: &str) -> Value {
        self.within(&DATASET, project, json!({ "name": name })).await
    }

    async fn within(&self, kind: &'static Kind, project: Uuid, more: Value) -> Value {
        let mut sent = body(more);
        sent.insert("project_id".into(), project.to_string().into());
        self.records.create(&self.owner, kind, sent).await.expect("creates").object
    }

    pub async fn list(&self, kind: &'static Kind, query: &[(&str, &str)]) -> Result<Vec<Value>, RecordsError> {
        let pairs = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.records.list(&self.owner, kind, &ListRequest::from_query(pairs)?).await
    }

    pub async fn listed(&self, kind: &'static Kind, query: &[(&str, &str)]) -> Vec<String> {
        let objects = self.list(kind, query).await.expect("lists");
        names(&objects).into_iter().map(str::to_owned).collect()
    }
}
