//! The master key of a cluster. The catalog has only its id; the operator gives the key itself to each node.

use std::sync::Arc;

use assay_storage_model::catalog::{Expect, PutRecord, Record, RecordKind, UniqueKey};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::data_keys::{DataKey, changed, read_body};
use crate::{Author, KeyCatalog, KeyId, Keyring, PutOutcome, Secrets, SecretsError};

/// State of the cluster's master key at the start of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MasterKey {
    /// The node has the key that the cluster's data keys are wrapped with.
    Known(KeyId),
    /// The node has another one as its own, and this one as an old one: a rotation was prepared and is not done.
    ToRotate { from: KeyId, to: KeyId },
    /// The node does not have this one.
    Missing(KeyId),
    /// There is none yet, and this node may make it.
    ToMake,
    /// There is none yet, and other nodes would lack a new one.
    None,
}

impl MasterKey {
    /// Logs whether this node has the key.
    pub fn log(self) {
        match self {
            MasterKey::Known(id) => tracing::info!(master_key = %id, "this node can decrypt secrets"),
            MasterKey::ToRotate { from, to } => tracing::warn!(
                %from, %to,
                "secrets are encrypted with an old master key. Once every node has the new key, run `assay admin \
                 rotate-master-key`"
            ),
            MasterKey::Missing(id) => tracing::warn!(
                master_key = %id,
                "this node does not have the master key of secrets, and answers 503 where it is needed. While it \
                 runs, the whole cluster signs file URLs and cursors with a key that every copy of a data directory \
                 has. Set secrets.master_key_file"
            ),
            MasterKey::ToMake | MasterKey::None => tracing::warn!(
                "there is no master key for secrets, and requests that need it are answered 503: set \
                 secrets.master_key_file to the same key on every node"
            ),
        }
    }
}

impl<C: KeyCatalog> Secrets<C> {
    /// Returns which master key the cluster has. A node that has a key records it where the cluster has none.
    pub async fn master_key(&self) -> Result<MasterKey, C::Error> {
        self.catalog.fence().await?;
        let is_first = || self.cluster.is_alone() && self.catalog.all(RecordKind::DATA_KEY).is_empty();
        match (self.ring.get(), self.recorded()?) {
            (Some(ring), None) => {
                self.record(ring.current().id(), None).await?;
                Ok(self.recorded()?.map_or(MasterKey::None, |recorded| self.compared(ring, recorded.id)))
            }
            (Some(ring), Some(recorded)) => Ok(self.compared(ring, recorded.id)),
            (None, Some(recorded)) => Ok(MasterKey::Missing(recorded.id)),
            (None, None) if is_first() => Ok(MasterKey::ToMake),
            (None, None) => Ok(MasterKey::None),
        }
    }

    /// Returns the id of the cluster's master key from the catalog.
    pub fn recorded_master(&self) -> Result<Option<KeyId>, C::Error> {
        Ok(self.recorded()?.map(|recorded| recorded.id))
    }

    /// Returns the same with its record.
    pub(crate) fn recorded(&self) -> Result<Option<Recorded>, C::Error> {
        let Some(record) = self.catalog.find(&master_key_key()) else { return Ok(None) };
        let body = read_body(&record)?;
        let id = body.get("id").and_then(Value::as_str).and_then(KeyId::parse);
        let id = id.ok_or_else(|| SecretsError::Internal("the id of the master key cannot be decoded".into()))?;
        Ok(Some(Recorded { id, record }))
    }

    /// Compares the keys of this node with those that are needed, also for data keys that a rotation left under another key.
    /// A data key that cannot be decoded is reported where it is used.
    fn compared(&self, ring: &Keyring, recorded: KeyId) -> MasterKey {
        let keys = self.data_keys().into_iter().filter_map(|record| DataKey::read(&record).ok());
        let mut needed = std::iter::once(recorded).chain(keys.map(|key| key.wrapped.key));
        match needed.find(|id| ring.find(*id).is_none()) {
            Some(missing) => MasterKey::Missing(missing),
            None if ring.current().id() == recorded => MasterKey::Known(recorded),
            None => MasterKey::ToRotate { from: recorded, to: ring.current().id() },
        }
    }

    /// Stores the id of a master key as the cluster's. If another node was faster, its id stays.
    pub(crate) async fn record(&self, id: KeyId, before: Option<&Record>) -> Result<(), C::Error> {
        let body = Map::from_iter([("id".to_owned(), Value::from(id.to_string()))]);
        let put = match before {
            Some(record) => changed(record, &body, self.catalog.now_micros()),
            None => PutRecord {
                kind: RecordKind::CLUSTER_SETTING,
                id: Uuid::new_v4(),
                org: None,
                expect: Expect::Absent,
                keys: vec![master_key_key()],
                body: Value::Object(body).to_string().into_bytes(),
                at: self.catalog.now_micros(),
            },
        };
        match self.catalog.put(Author::System, put).await? {
            PutOutcome::Written => Ok(()),
            PutOutcome::Lost => self.catalog.fence().await,
        }
    }
}

/// The recorded master key.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub id: KeyId,
    pub record: Arc<Record>,
}

fn master_key_key() -> UniqueKey {
    UniqueKey::new("cluster_setting", "master_key")
}

/// Returns the error of an operation that needs a missing key, with the remedy.
pub fn without_key(id: Option<KeyId>) -> SecretsError {
    SecretsError::Unavailable(match id {
        Some(id) => format!(
            "secrets are encrypted with the master key {id}, which this node does not have. Name its file in \
             `secrets.master_key_file`, or in `secrets.old_master_key_files` after a rotation, and restart the node. \
             The node that created the key has it as `master.key` in its data directory"
        ),
        None => "this node has no master key for secrets. Create one with `openssl rand -hex 32`, set \
                 `secrets.master_key_file` to it on every node of the cluster, and restart them"
            .to_owned(),
    })
}
