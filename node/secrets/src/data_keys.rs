//! Data keys: one for each organization, created with its first secret and stored wrapped by the master key.

use std::collections::HashMap;
use std::sync::Arc;

use assay_storage_model::OrgId;
use assay_storage_model::catalog::{Expect, PutRecord, Record, RecordKind, UniqueKey};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::master_keys::without_key;
use crate::{
    ATTEMPTS_MAX, Author, Belonging, KeyCatalog, Keyring, PutOutcome, Sealed, Secrets, SecretsError, VaultKey, random,
};

/// Organizations whose data keys are kept unwrapped. Beyond that, all are unwrapped again.
const UNWRAPPED_MAX: usize = 10_000;

const WRAPPED: &str = "wrapped";
const VERSION: &str = "wrapped_version";

impl<C: KeyCatalog> Secrets<C> {
    /// Returns the data key of an organization, made where it has none.
    pub async fn data_key(&self, org: OrgId) -> Result<VaultKey, C::Error> {
        for _ in 0..ATTEMPTS_MAX {
            if self.catalog.find(&data_key_key(org)).is_some() {
                return self.existing_data_key(org);
            }
            let recorded = self.recorded()?.map(|recorded| recorded.id);
            let ring = self.ring.get().ok_or_else(|| without_key(recorded))?;
            let Some(recorded) = recorded else {
                self.record(ring.current().id(), None).await?;
                continue;
            };
            let master = ring.find(recorded).ok_or_else(|| without_key(Some(recorded)))?;
            let (id, key) = (Uuid::new_v4(), VaultKey::new(random()?));
            let put = PutRecord {
                kind: RecordKind::DATA_KEY,
                id,
                org: Some(org),
                expect: Expect::Absent,
                keys: vec![data_key_key(org)],
                body: Value::Object(DataKey::body(master, &DataKey::place(org, RecordKind::DATA_KEY, id), &key)?)
                    .to_string()
                    .into_bytes(),
                at: self.catalog.now_micros(),
            };
            match self.catalog.put(Author::System, put).await? {
                PutOutcome::Written => return Ok(key),
                PutOutcome::Lost => self.catalog.fence().await?,
            }
        }
        Err(busy().into())
    }

    /// Returns the data key of an organization that has one.
    pub fn existing_data_key(&self, org: OrgId) -> Result<VaultKey, C::Error> {
        let missing = || SecretsError::Internal(format!("organization {org} has secrets, but no key for them"));
        let record = self.catalog.find(&data_key_key(org)).ok_or_else(missing)?;
        if let Some(key) = self.unwrapped.get(org, &record) {
            return Ok(key);
        }
        let wrapped = DataKey::read(&record)?;
        let ring = self.ring.get().ok_or_else(|| without_key(Some(wrapped.wrapped.key)))?;
        let key = wrapped.unwrap(ring)?;
        self.unwrapped.keep(org, record, key.clone());
        Ok(key)
    }

    pub(crate) fn data_keys(&self) -> Vec<Arc<Record>> {
        self.catalog.all(RecordKind::DATA_KEY)
    }
}

/// Data keys of organizations that were unwrapped, each valid while its record is the same.
#[derive(Debug, Default)]
pub(crate) struct UnwrappedKeys(Mutex<HashMap<OrgId, (Arc<Record>, VaultKey)>>);

impl UnwrappedKeys {
    fn get(&self, org: OrgId, record: &Arc<Record>) -> Option<VaultKey> {
        let keys = self.0.lock();
        keys.get(&org).filter(|(known, _)| Arc::ptr_eq(known, record)).map(|(_, key)| key.clone())
    }

    fn keep(&self, org: OrgId, record: Arc<Record>, key: VaultKey) {
        let mut keys = self.0.lock();
        if keys.len() >= UNWRAPPED_MAX {
            keys.clear();
        }
        keys.insert(org, (record, key));
    }
}

/// A data key as it is kept.
#[derive(Debug)]
pub(crate) struct DataKey {
    pub to: Belonging,
    pub wrapped: Sealed,
}

impl DataKey {
    pub fn read(record: &Record) -> Result<DataKey, SecretsError> {
        let damaged = || SecretsError::Internal(format!("{} {} has no organization", record.kind, record.id));
        DataKey::read_in(record, record.org.ok_or_else(damaged)?)
    }

    /// Reads the key of a record that belongs to no organization itself.
    pub fn read_in(record: &Record, org: OrgId) -> Result<DataKey, SecretsError> {
        let damaged = || SecretsError::Internal(format!("{} {} cannot be decoded", record.kind, record.id));
        let body = read_body(record)?;
        let wrapped = body.get(WRAPPED).and_then(Value::as_str).and_then(Sealed::parse).ok_or_else(damaged)?;
        let version = body.get(VERSION).and_then(Value::as_u64).ok_or_else(damaged)?;
        Ok(DataKey { to: Belonging { org, kind: record.kind, record: record.id, version }, wrapped })
    }

    /// Returns the owner of a new key.
    pub fn place(org: OrgId, kind: RecordKind, record: Uuid) -> Belonging {
        Belonging { org, kind, record, version: 1 }
    }

    pub fn unwrap(&self, ring: &Keyring) -> Result<VaultKey, SecretsError> {
        let id = self.wrapped.key;
        let master = ring.find(id).ok_or_else(|| without_key(Some(id)))?;
        let damaged =
            |why| SecretsError::Internal(format!("{} {} cannot be decrypted: {why}", self.to.kind, self.to.record));
        master.unwrap(&self.to, &self.wrapped).map_err(damaged)
    }

    pub fn wrapped_again(&self, ring: &Keyring) -> Result<Map<String, Value>, SecretsError> {
        let key = self.unwrap(ring)?;
        DataKey::body(ring.current(), &self.to.next(), &key)
    }

    pub fn body(master: &VaultKey, to: &Belonging, key: &VaultKey) -> Result<Map<String, Value>, SecretsError> {
        let wrapped = master.wrap(to, key, random()?);
        let wrapped = wrapped.map_err(|why| SecretsError::Internal(format!("a data key is not wrapped: {why}")))?;
        Ok(Map::from_iter([
            ("id".to_owned(), Value::from(key.id().to_string())),
            (WRAPPED.to_owned(), wrapped.to_string().into()),
            (VERSION.to_owned(), to.version.into()),
        ]))
    }
}

/// Returns the write that replaces the body of a record.
pub(crate) fn changed(record: &Record, body: &Map<String, Value>, at: i64) -> PutRecord {
    PutRecord {
        kind: record.kind,
        id: record.id,
        org: record.org,
        expect: Expect::Revision(record.revision),
        keys: record.keys.clone(),
        body: Value::Object(body.clone()).to_string().into_bytes(),
        at,
    }
}

fn data_key_key(org: OrgId) -> UniqueKey {
    UniqueKey::new("data_key", org.to_string())
}

/// Returns the body of a record.
pub(crate) fn read_body(record: &Record) -> Result<Map<String, Value>, SecretsError> {
    let damaged = |error| SecretsError::Internal(format!("{} {} cannot be decoded: {error}", record.kind, record.id));
    serde_json::from_slice(&record.body).map_err(damaged)
}

pub(crate) fn busy() -> SecretsError {
    SecretsError::Busy("concurrent changes to the keys of secrets prevented the request: try again".into())
}
