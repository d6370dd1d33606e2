//! Keys of secrets: one data key an organization, made when its first secret comes, kept wrapped by the cluster's master
//! key. Which master key that is stands in the catalog, by its id alone; the key itself a node has from its operator.
//!
//! A rotation writes down the new master key first, so that data keys which are made meanwhile are wrapped with it, and
//! then wraps again what is under another one. It can be cut short anywhere and asked for again.

use std::sync::Arc;

use assay_node_auth::{Belonging, KeyId, Keyring, Sealed, VaultKey};
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, Record, RecordKind, UniqueKey};
use assay_storage_model::{GroupId, OrgId};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::audit::By;
use crate::commit::unexpected;
use crate::draft::{self, Body};
use crate::error::RecordsError;
use crate::{Records, edge};

/// Each loses only to another writer that won.
const ATTEMPTS_MAX: usize = 8;
const WRAPPED: &str = "wrapped";
const VERSION: &str = "wrapped_version";

/// What a node that starts finds of the master key.
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
    /// There is none yet, and others are there who would not have it.
    None,
}

impl Records {
    /// The master keys that this node was given; once, what comes later is not taken.
    pub fn give_keys(&self, ring: Keyring) {
        // Who gives them twice gives the same: a node reads them once, or makes one where it has none.
        drop(self.ring.set(ring));
    }

    /// What there is. A node that has a key writes down that it is the cluster's, where the cluster has none.
    pub async fn master_key(&self) -> Result<MasterKey, RecordsError> {
        self.cluster.fence(GroupId::CATALOG).await?;
        let is_first = || self.cluster.is_alone() && self.peek(|view| view.all(RecordKind::DATA_KEY).next().is_none());
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

    /// Wraps the data key of every organization with this node's master key, which is the cluster's from then on.
    pub async fn admin_rotate_master_key(&self) -> Result<Value, RecordsError> {
        self.cluster.fence(GroupId::CATALOG).await?;
        let before = self.recorded()?.map(|recorded| recorded.id);
        let ring = self.ring.get().ok_or_else(|| without(before))?;
        let new = ring.current().id();
        // What cannot be opened is found before anything is changed.
        for record in self.data_keys() {
            DataKey::read(&record)?.unwrap(ring)?;
        }
        self.make_current(new).await?;
        let mut again = 0;
        let mut cluster_keys = 0;
        for _ in 0..ATTEMPTS_MAX {
            self.cluster.fence(GroupId::CATALOG).await?;
            cluster_keys += u64::from(self.wrap_signing_key_again(ring).await?);
            let authority = self.cluster.wrap_authority_again().await;
            cluster_keys += u64::from(authority.map_err(|error| RecordsError::Unavailable(error.to_string()))?);
            let mut left = Vec::new();
            for record in self.data_keys() {
                let key = DataKey::read(&record)?;
                if key.wrapped.key != new {
                    left.push((record, key));
                }
            }
            if left.is_empty() {
                let total = self.data_keys().len();
                tracing::info!(master_key = %new, wrapped_again = again, data_keys = total, "the master key was rotated");
                return Ok(json!({
                    "master_key": new.to_string(),
                    "before": before.map(|id| id.to_string()),
                    "data_keys": total,
                    "wrapped_again": again,
                    "cluster_keys_wrapped_again": cluster_keys,
                }));
            }
            for (record, key) in left {
                let body = key.wrapped_again(ring)?;
                match self.propose_one(By::Operator, CatalogCommand::Put(changed(&record, &body))).await? {
                    CatalogOutcome::Put { .. } => again += 1,
                    // Whether it is done is for the next look to say.
                    CatalogOutcome::Stale { .. } => {}
                    other => return Err(unexpected(&other)),
                }
            }
        }
        Err(busy())
    }

    /// The data key of an organization, made where it has none.
    pub(crate) async fn data_key(&self, org: OrgId) -> Result<VaultKey, RecordsError> {
        for _ in 0..ATTEMPTS_MAX {
            if self.peek(|view| view.find(&data_key_key(org)).is_some()) {
                return self.kept_data_key(org);
            }
            let recorded = self.recorded()?.map(|recorded| recorded.id);
            let ring = self.ring.get().ok_or_else(|| without(recorded))?;
            let Some(recorded) = recorded else {
                self.record(ring.current().id(), None).await?;
                continue;
            };
            let master = ring.find(recorded).ok_or_else(|| without(Some(recorded)))?;
            let (id, key) = (edge::new_id(), VaultKey::new(edge::random()?));
            let put = PutRecord {
                kind: RecordKind::DATA_KEY,
                id,
                org: Some(org),
                expect: Expect::Absent,
                keys: vec![data_key_key(org)],
                body: Value::Object(DataKey::body(master, &DataKey::place(org, RecordKind::DATA_KEY, id), &key)?)
                    .to_string()
                    .into_bytes(),
                at: edge::now_micros(),
            };
            match self.propose_one(By::System, CatalogCommand::Put(put)).await? {
                CatalogOutcome::Put { .. } => return Ok(key),
                CatalogOutcome::Taken { .. } | CatalogOutcome::Stale { .. } => {
                    self.cluster.fence(GroupId::CATALOG).await?;
                }
                other => return Err(unexpected(&other)),
            }
        }
        Err(busy())
    }

    /// The same of one that has one.
    pub(crate) fn kept_data_key(&self, org: OrgId) -> Result<VaultKey, RecordsError> {
        let missing = || RecordsError::Internal(format!("organization {org} has secrets and no key for them"));
        let record = self.peek(|view| view.find(&data_key_key(org)).cloned()).ok_or_else(missing)?;
        let key = DataKey::read(&record)?;
        let ring = self.ring.get().ok_or_else(|| without(Some(key.wrapped.key)))?;
        key.unwrap(ring)
    }

    /// Also a data key that a rotation left under another key counts; one that does not read is told of where it is used.
    fn compared(&self, ring: &Keyring, recorded: KeyId) -> MasterKey {
        let keys = self.data_keys().into_iter().filter_map(|record| DataKey::read(&record).ok());
        let mut needed = std::iter::once(recorded).chain(keys.map(|key| key.wrapped.key));
        match needed.find(|id| ring.find(*id).is_none()) {
            Some(missing) => MasterKey::Missing(missing),
            None if ring.current().id() == recorded => MasterKey::Known(recorded),
            None => MasterKey::ToRotate { from: recorded, to: ring.current().id() },
        }
    }

    fn data_keys(&self) -> Vec<Arc<Record>> {
        self.peek(|view| view.all(RecordKind::DATA_KEY).cloned().collect())
    }

    /// The id of the master key that the catalog says is the cluster's.
    pub(crate) fn recorded_master(&self) -> Result<Option<KeyId>, RecordsError> {
        Ok(self.recorded()?.map(|recorded| recorded.id))
    }

    /// The same, with its record.
    fn recorded(&self) -> Result<Option<Recorded>, RecordsError> {
        let Some(record) = self.peek(|view| view.find(&master_key_key()).cloned()) else { return Ok(None) };
        let body = draft::read(&record)?;
        let id = body.get("id").and_then(Value::as_str).and_then(KeyId::parse);
        let id = id.ok_or_else(|| RecordsError::Internal("the id of the master key does not read".into()))?;
        Ok(Some(Recorded { id, record }))
    }

    async fn make_current(&self, id: KeyId) -> Result<(), RecordsError> {
        for _ in 0..ATTEMPTS_MAX {
            let recorded = self.recorded()?;
            if recorded.as_ref().is_some_and(|recorded| recorded.id == id) {
                return Ok(());
            }
            self.record(id, recorded.as_ref().map(|recorded| &*recorded.record)).await?;
            self.cluster.fence(GroupId::CATALOG).await?;
        }
        Err(busy())
    }

    /// Where another node was faster, what it wrote down holds.
    async fn record(&self, id: KeyId, before: Option<&Record>) -> Result<(), RecordsError> {
        let body = Body::from_iter([("id".to_owned(), Value::from(id.to_string()))]);
        let put = match before {
            Some(record) => changed(record, &body),
            None => PutRecord {
                kind: RecordKind::CLUSTER_SETTING,
                id: edge::new_id(),
                org: None,
                expect: Expect::Absent,
                keys: vec![master_key_key()],
                body: Value::Object(body).to_string().into_bytes(),
                at: edge::now_micros(),
            },
        };
        match self.propose_one(By::System, CatalogCommand::Put(put)).await? {
            CatalogOutcome::Put { .. } => Ok(()),
            CatalogOutcome::Taken { .. } | CatalogOutcome::Stale { .. } => {
                self.cluster.fence(GroupId::CATALOG).await?;
                Ok(())
            }
            other => Err(unexpected(&other)),
        }
    }
}

#[derive(Debug)]
struct Recorded {
    id: KeyId,
    record: Arc<Record>,
}

/// A data key as it is kept.
#[derive(Debug)]
pub(crate) struct DataKey {
    pub to: Belonging,
    pub wrapped: Sealed,
}

impl DataKey {
    fn read(record: &Record) -> Result<DataKey, RecordsError> {
        let damaged = || RecordsError::Internal(format!("{} {} is of no organization", record.kind, record.id));
        DataKey::read_in(record, record.org.ok_or_else(damaged)?)
    }

    /// The same of a record that belongs to no organization itself.
    pub fn read_in(record: &Record, org: OrgId) -> Result<DataKey, RecordsError> {
        let damaged = || RecordsError::Internal(format!("{} {} does not read", record.kind, record.id));
        let body = draft::read(record)?;
        let wrapped = body.get(WRAPPED).and_then(Value::as_str).and_then(Sealed::parse).ok_or_else(damaged)?;
        let version = body.get(VERSION).and_then(Value::as_u64).ok_or_else(damaged)?;
        Ok(DataKey { to: Belonging { org, kind: record.kind, record: record.id, version }, wrapped })
    }

    /// The place of a new key.
    pub fn place(org: OrgId, kind: RecordKind, record: Uuid) -> Belonging {
        Belonging { org, kind, record, version: 1 }
    }

    pub fn unwrap(&self, ring: &Keyring) -> Result<VaultKey, RecordsError> {
        let id = self.wrapped.key;
        let master = ring.find(id).ok_or_else(|| without(Some(id)))?;
        let damaged = |why| RecordsError::Internal(format!("{} {} does not open: {why}", self.to.kind, self.to.record));
        master.unwrap(&self.to, &self.wrapped).map_err(damaged)
    }

    pub fn wrapped_again(&self, ring: &Keyring) -> Result<Body, RecordsError> {
        let key = self.unwrap(ring)?;
        DataKey::body(ring.current(), &self.to.next(), &key)
    }

    pub fn body(master: &VaultKey, to: &Belonging, key: &VaultKey) -> Result<Body, RecordsError> {
        let wrapped = master.wrap(to, key, edge::random()?);
        let wrapped = wrapped.map_err(|why| RecordsError::Internal(format!("a data key is not wrapped: {why}")))?;
        Ok(Body::from_iter([
            ("id".to_owned(), Value::from(key.id().to_string())),
            (WRAPPED.to_owned(), wrapped.to_string().into()),
            (VERSION.to_owned(), to.version.into()),
        ]))
    }
}

pub(crate) fn changed(record: &Record, body: &Body) -> PutRecord {
    PutRecord {
        kind: record.kind,
        id: record.id,
        org: record.org,
        expect: Expect::Revision(record.revision),
        keys: record.keys.clone(),
        body: Value::Object(body.clone()).to_string().into_bytes(),
        at: edge::now_micros(),
    }
}

fn data_key_key(org: OrgId) -> UniqueKey {
    UniqueKey::new("data_key", org.to_string())
}

fn master_key_key() -> UniqueKey {
    UniqueKey::new("cluster_setting", "master_key")
}

/// What takes a key that this node does not have, and what to do about it.
pub(crate) fn without(id: Option<KeyId>) -> RecordsError {
    RecordsError::Unavailable(match id {
        Some(id) => format!(
            "secrets are kept under the master key {id}, which this node does not have: name its file in \
             `secrets.master_key_file`, or in `secrets.old_master_key_files` once it was rotated, and start the node again. \
             A node that made it has it as `master.key` in its data directory"
        ),
        None => "this node has no master key to keep secrets under: give every node of the cluster the same one in \
                 `secrets.master_key_file`, which `openssl rand -hex 32` makes, and start them again"
            .to_owned(),
    })
}

pub(crate) fn busy() -> RecordsError {
    RecordsError::Busy("others keep changing the keys of secrets: try again".into())
}
