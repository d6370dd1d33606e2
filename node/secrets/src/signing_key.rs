//! The key that signs addresses of files and cursors: random, and stored in the catalog, wrapped by the master key.
//!
//! Up to 0.4.0 they were signed with keys derived from the pepper of API keys, which is in the catalog in plain text, so that
//! every copy of a data directory could sign them for good. That derivation is used as long as some node cannot open the
//! signing key, and accepted for a day after the change. The record of the key says which of the two is in use, so that all
//! nodes do the same.

use std::sync::Arc;
use std::time::Duration;

use assay_storage_model::OrgId;
use assay_storage_model::catalog::{Expect, PutRecord, Record, RecordKind, UniqueKey};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::data_keys::{DataKey, changed, read_body};
use crate::{Author, KeyCatalog, Keyring, Secrets, VaultKey, random};

/// Time for which signatures of the old derivation are accepted after the change: longer than any address lasts.
const OLD_ACCEPTED_MICROS: i64 = 24 * 3600 * 1_000_000;
/// Time between two checks of the signing key. A node publishes its keys within a second of its start.
const TEND_EVERY: Duration = Duration::from_secs(2);

/// Field for whether the key is in use.
const USED: &str = "used";
/// Field with the end of the time for which signatures of the old derivation are accepted, in microseconds since the epoch.
const OLD_UNTIL: &str = "old_until";
/// The organization of keys that belong to the cluster.
const NO_ORGANIZATION: OrgId = OrgId(Uuid::nil());

/// The secret for new signatures, and another one whose signatures are accepted.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecrets {
    pub sign: [u8; 32],
    /// Other accepted secret.
    also: Option<[u8; 32]>,
}

impl std::fmt::Debug for SigningSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningSecrets(..)")
    }
}

impl SigningSecrets {
    /// Returns every secret whose signatures are accepted.
    pub fn accepted(&self) -> impl Iterator<Item = &[u8; 32]> {
        std::iter::once(&self.sign).chain(&self.also)
    }
}

/// Derivations in use at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InUse {
    /// The signing key alone.
    New,
    /// Sign with the signing key, and accept signatures of the old derivation.
    NewAndOld,
    /// Sign with the old derivation, and accept signatures of the signing key.
    Old,
}

fn in_use(used: bool, old_until: i64, now: i64) -> InUse {
    match used {
        true if now < old_until => InUse::NewAndOld,
        true => InUse::New,
        false => InUse::Old,
    }
}

/// The signing key as its record has it.
pub(crate) struct StoredSigningKey {
    pub record: Arc<Record>,
    pub key: DataKey,
    used: bool,
    old_until: i64,
}

impl StoredSigningKey {
    pub fn body(key: Map<String, Value>, used: bool, old_until: i64) -> Map<String, Value> {
        let mut body = key;
        body.insert(USED.into(), used.into());
        body.insert(OLD_UNTIL.into(), old_until.into());
        body
    }
}

fn signing_key_key() -> UniqueKey {
    UniqueKey::new("cluster_setting", "signing_key")
}

impl<C: KeyCatalog> Secrets<C> {
    /// Returns secrets for one purpose, the same on every node and after every restart.
    pub fn signing_secrets(&self, context: &str) -> Result<SigningSecrets, C::Error> {
        let old = || self.catalog.legacy_secret(context);
        let Some(kept) = self.kept_signing_key()? else { return Ok(SigningSecrets { sign: old()?, also: None }) };
        let new = self.ring.get().and_then(|ring| kept.key.unwrap(ring).ok()).map(|key| key.derive(context));
        let (sign, also) = match (in_use(kept.used, kept.old_until, self.catalog.now_micros()), new) {
            (InUse::New, Some(new)) => (new, None),
            (InUse::NewAndOld, Some(new)) => (new, Some(old()?)),
            (InUse::Old, new) => (old()?, new),
            // This node was started without the key a moment ago, and all change back as soon as that is known.
            (InUse::New | InUse::NewAndOld, None) => (old()?, None),
        };
        Ok(SigningSecrets { sign, also })
    }

    /// Returns the reasons for which the signing key is not in use.
    pub fn signing_shortfalls(&self) -> Vec<String> {
        let mut notes = self.cluster.nodes_lacking(assay_cluster::Feature::WrappedKeys);
        let master = match self.kept_signing_key() {
            Ok(Some(kept)) => Some(kept.key.wrapped.key),
            _ => self.recorded_master().ok().flatten(),
        };
        match master {
            Some(id) => {
                let lacking = self.cluster.nodes_without_key(&id.to_string());
                notes.extend(lacking.iter().map(|node| format!("node {node} does not have the master key {id}")));
            }
            None => notes.push("no node has a master key".to_owned()),
        }
        if !notes.is_empty() {
            let why = "file URLs and cursors are signed with a key that every copy of a data directory has";
            notes.insert(0, why.to_owned());
        }
        notes
    }

    /// Makes the signing key, begins to use it once every node can open it, and stops where one cannot.
    pub async fn tend_signing_key(&self) -> Result<(), C::Error> {
        if !self.cluster.hears_catalog() {
            return Ok(());
        }
        let kept = self.kept_signing_key()?;
        let id = match &kept {
            Some(kept) => Some(kept.key.wrapped.key),
            None => self.recorded_master()?,
        };
        let Some(id) = id else { return Ok(()) };
        // What this node states of itself may be from before its start.
        let ring = self.ring.get().filter(|ring| ring.find(id).is_some());
        let can_all = ring.is_some()
            && self.cluster.all_nodes_have(assay_cluster::Feature::WrappedKeys)
            && self.cluster.nodes_without_key(&id.to_string()).is_empty();
        match kept {
            None => {
                let Some(ring) = ring.filter(|_| can_all) else { return Ok(()) };
                let old_until = self.catalog.now_micros().saturating_add(OLD_ACCEPTED_MICROS);
                let put = self.new_signing_key(ring, old_until)?;
                self.put_signing_key(put).await
            }
            Some(kept) if kept.used != can_all => {
                let old_until = self.catalog.now_micros().saturating_add(OLD_ACCEPTED_MICROS);
                let mut body = read_body(&kept.record)?;
                body.insert(USED.into(), can_all.into());
                body.insert(OLD_UNTIL.into(), old_until.into());
                match can_all {
                    true => tracing::info!("file URLs and cursors are signed with the cluster's signing key"),
                    false => tracing::warn!(
                        lacking = ?self.signing_shortfalls(),
                        "a node cannot decrypt the cluster's signing key: file URLs and cursors are signed as in 0.4.0"
                    ),
                }
                self.put_signing_key(changed(&kept.record, &body, self.catalog.now_micros())).await
            }
            _ => Ok(()),
        }
    }

    /// Keeps the signing key as the nodes of the cluster allow it, until this is aborted.
    pub async fn keep_tending(self) {
        let mut said = None;
        loop {
            tokio::time::sleep(TEND_EVERY).await;
            let problem = self.tend_signing_key().await.err().map(|error| error.to_string());
            if problem.is_some() && problem != said {
                tracing::warn!(problem, "the maintenance of the key that signs file URLs and cursors failed");
            }
            said = problem;
        }
    }

    /// Returns the reasons for which the master key does not protect everything. They do not stop the node.
    pub fn shortfalls(&self) -> Vec<String> {
        let mut notes = self.signing_shortfalls();
        if let Some(status) = self.cluster.authority_status() {
            if status.master_key.is_none() {
                notes.push(
                    "the key of the cluster's certificate authority is not wrapped by the master key yet".to_owned(),
                );
            }
            if status.rotating {
                let nodes: Vec<String> = status.waits_for.iter().map(|node| format!("node {node}")).collect();
                let waits =
                    if nodes.is_empty() { String::new() } else { format!("; it waits for {}", nodes.join(", ")) };
                notes.push(format!("nodes are adopting a new certificate authority{waits}"));
            }
        }
        notes
    }

    /// Wraps the signing key with the master key in use. Returns whether there was anything to do.
    pub(crate) async fn wrap_signing_key_again(&self, ring: &Keyring) -> Result<bool, C::Error> {
        let Some(kept) = self.kept_signing_key()? else { return Ok(false) };
        if kept.key.wrapped.key == ring.current().id() {
            return Ok(false);
        }
        let wrapped = kept.key.wrapped_again(ring)?;
        let body = StoredSigningKey::body(wrapped, kept.used, kept.old_until);
        self.put_signing_key(changed(&kept.record, &body, self.catalog.now_micros())).await?;
        Ok(true)
    }

    /// Returns the record of a new signing key, in use at once.
    pub fn new_signing_key(&self, ring: &Keyring, old_until: i64) -> Result<PutRecord, C::Error> {
        let (id, key) = (Uuid::new_v4(), VaultKey::new(random()?));
        let to = DataKey::place(NO_ORGANIZATION, RecordKind::CLUSTER_SETTING, id);
        let body = StoredSigningKey::body(DataKey::body(ring.current(), &to, &key)?, true, old_until);
        Ok(PutRecord {
            kind: RecordKind::CLUSTER_SETTING,
            id,
            org: None,
            expect: Expect::Absent,
            keys: vec![signing_key_key()],
            body: Value::Object(body).to_string().into_bytes(),
            at: self.catalog.now_micros(),
        })
    }

    async fn put_signing_key(&self, put: PutRecord) -> Result<(), C::Error> {
        // Where another node was faster, the next look finds what it did.
        self.catalog.put(Author::System, put).await.map(drop)
    }

    pub(crate) fn kept_signing_key(&self) -> Result<Option<StoredSigningKey>, C::Error> {
        let Some(record) = self.catalog.find(&signing_key_key()) else { return Ok(None) };
        let key = DataKey::read_in(&record, NO_ORGANIZATION)?;
        let body = read_body(&record)?;
        let used = body.get(USED).and_then(Value::as_bool).unwrap_or(false);
        let old_until = body.get(OLD_UNTIL).and_then(Value::as_i64).unwrap_or(0);
        Ok(Some(StoredSigningKey { record, key, used, old_until }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_derivation_is_accepted_for_a_while_after_the_change_and_never_after_a_rotation() {
        assert_eq!(in_use(true, 0, 1), InUse::New);
        assert_eq!(in_use(true, 10, 9), InUse::NewAndOld);
        assert_eq!(in_use(true, 10, 10), InUse::New);
        assert_eq!(in_use(false, 10, 99), InUse::Old);
    }
}
