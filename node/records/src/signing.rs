//! The key that addresses of files and cursors are signed with: random, kept in the catalog, wrapped by the master key.
//!
//! Up to 0.4.0 they were signed with keys derived from the pepper of API keys, which is in the catalog in plain text, so that
//! every copy of a data directory could sign them for good. That derivation is used as long as some node cannot open the
//! signing key, and accepted for a day after the change. The record of the key says which of the two is in use, so that all
//! nodes do the same.

use assay_node_auth::{Keyring, VaultKey};
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, Record, RecordKind, UniqueKey};
use assay_storage_model::{GroupId, OrgId};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::audit::By;
use crate::commit::unexpected;
use crate::draft::{self, Body};
use crate::error::RecordsError;
use crate::masters::{DataKey, busy, changed, without};
use crate::{Records, edge};

/// How long what the old derivation signed is accepted after the change: longer than any address lasts.
const OLD_ACCEPTED_MICROS: i64 = 24 * 3600 * 1_000_000;
/// Each attempt loses only to another writer that won.
const ATTEMPTS_MAX: usize = 8;
/// Whether the key is in use.
const USED: &str = "used";
/// Until when what the old derivation signed is accepted, in microseconds since the epoch.
const OLD_UNTIL: &str = "old_until";
/// What a key of the cluster belongs to.
const NO_ORGANIZATION: OrgId = OrgId(Uuid::nil());

/// What something is signed with, and what signatures are taken.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecrets {
    pub sign: [u8; 32],
    /// Beside what is signed with now.
    also: Option<[u8; 32]>,
}

impl std::fmt::Debug for SigningSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningSecrets(..)")
    }
}

impl SigningSecrets {
    /// Every secret whose signatures are taken.
    pub fn accepted(&self) -> impl Iterator<Item = &[u8; 32]> {
        std::iter::once(&self.sign).chain(&self.also)
    }
}

/// Which derivations are in use at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InUse {
    /// The signing key alone.
    New,
    /// The signing key; what the old derivation signed is accepted.
    NewAndOld,
    /// The old derivation; what the signing key signed is accepted.
    Old,
}

fn in_use(used: bool, old_until: i64, now: i64) -> InUse {
    match used {
        true if now < old_until => InUse::NewAndOld,
        true => InUse::New,
        false => InUse::Old,
    }
}

/// What the record of the signing key says.
struct Kept {
    record: std::sync::Arc<Record>,
    key: DataKey,
    used: bool,
    old_until: i64,
}

impl Kept {
    fn body(key: Body, used: bool, old_until: i64) -> Body {
        let mut body = key;
        body.insert(USED.into(), used.into());
        body.insert(OLD_UNTIL.into(), old_until.into());
        body
    }
}

pub(crate) fn signing_key_key() -> UniqueKey {
    UniqueKey::new("cluster_setting", "signing_key")
}

impl Records {
    /// Secrets for one purpose, the same on every node and after every restart.
    pub fn signing_secrets(&self, context: &str) -> Result<SigningSecrets, RecordsError> {
        let old = || self.derived_secret(context);
        let Some(kept) = self.kept_signing_key()? else { return Ok(SigningSecrets { sign: old()?, also: None }) };
        let new = self.ring.get().and_then(|ring| kept.key.unwrap(ring).ok()).map(|key| key.derive(context));
        let (sign, also) = match (in_use(kept.used, kept.old_until, edge::now_micros()), new) {
            (InUse::New, Some(new)) => (new, None),
            (InUse::NewAndOld, Some(new)) => (new, Some(old()?)),
            (InUse::Old, new) => (old()?, new),
            // This node was started without the key a moment ago, and all change back as soon as that is known.
            (InUse::New | InUse::NewAndOld, None) => (old()?, None),
        };
        Ok(SigningSecrets { sign, also })
    }

    /// What keeps the signing key from being used, in words; nothing where it is.
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
            let why = "addresses of files and cursors are signed with a key that every copy of a data directory has";
            notes.insert(0, why.to_owned());
        }
        notes
    }

    /// Makes the signing key, begins to use it once every node can open it, and stops where one cannot.
    pub async fn tend_signing_key(&self) -> Result<(), RecordsError> {
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
                let old_until = edge::now_micros().saturating_add(OLD_ACCEPTED_MICROS);
                let put = self.new_signing_key(ring, old_until)?;
                self.put_signing_key(put).await
            }
            Some(kept) if kept.used != can_all => {
                let old_until = edge::now_micros().saturating_add(OLD_ACCEPTED_MICROS);
                let mut body = draft::read(&kept.record)?;
                body.insert(USED.into(), can_all.into());
                body.insert(OLD_UNTIL.into(), old_until.into());
                match can_all {
                    true => tracing::info!("addresses of files and cursors are signed with the cluster's signing key"),
                    false => tracing::warn!(
                        lacking = ?self.signing_shortfalls(),
                        "a node cannot open the cluster's signing key: addresses of files and cursors are signed as up to 0.4.0"
                    ),
                }
                self.put_signing_key(changed(&kept.record, &body)).await
            }
            _ => Ok(()),
        }
    }

    /// Makes the signing key and the certificate authority anew: what older ones signed is refused.
    pub async fn admin_rotate_secrets(&self) -> Result<Value, RecordsError> {
        self.cluster.fence(GroupId::CATALOG).await?;
        let recorded = self.recorded_master()?;
        let ring = self.ring.get().ok_or_else(|| without(recorded))?;
        let shortfalls = self.signing_shortfalls();
        if !shortfalls.is_empty() {
            return Err(RecordsError::Unavailable(format!(
                "not every node can take up new secrets, and nothing was changed: {}",
                shortfalls.join("; ")
            )));
        }
        for _ in 0..ATTEMPTS_MAX {
            let kept = self.kept_signing_key()?;
            let new = self.new_signing_key(ring, 0)?;
            let put = match &kept {
                None => new,
                // The key is bound to its record, which stays.
                Some(kept) => {
                    let (key, to) = (VaultKey::new(edge::random()?), kept.key.to);
                    let wrapped = DataKey::body(ring.current(), &to.next(), &key)?;
                    changed(&kept.record, &Kept::body(wrapped, true, 0))
                }
            };
            match self.propose_one(By::Operator, CatalogCommand::Put(put)).await? {
                CatalogOutcome::Put { .. } => return self.rotate_authority().await,
                CatalogOutcome::Stale { .. } | CatalogOutcome::Taken { .. } => {
                    self.cluster.fence(GroupId::CATALOG).await?;
                }
                other => return Err(unexpected(&other)),
            }
        }
        Err(busy())
    }

    async fn rotate_authority(&self) -> Result<Value, RecordsError> {
        self.cluster.rotate_authority().await.map_err(|error| {
            RecordsError::Unavailable(format!(
                "the signing key is new; the certificate authority is not, ask again: {error}"
            ))
        })?;
        tracing::info!("the signing key was made anew, and another certificate authority is being taken up");
        Ok(json!({
            "signing_key": "rotated",
            "authority": "rotating",
            "see": "nodes take the new certificate authority up within seconds; /readyz says for which nodes it waits",
        }))
    }

    /// Wraps the signing key with the master key in use; whether there was anything to do.
    pub(crate) async fn wrap_signing_key_again(&self, ring: &Keyring) -> Result<bool, RecordsError> {
        let Some(kept) = self.kept_signing_key()? else { return Ok(false) };
        if kept.key.wrapped.key == ring.current().id() {
            return Ok(false);
        }
        let wrapped = kept.key.wrapped_again(ring)?;
        self.put_signing_key(changed(&kept.record, &Kept::body(wrapped, kept.used, kept.old_until))).await?;
        Ok(true)
    }

    /// The record of a new signing key, in use at once.
    pub(crate) fn new_signing_key(&self, ring: &Keyring, old_until: i64) -> Result<PutRecord, RecordsError> {
        let (id, key) = (edge::new_id(), VaultKey::new(edge::random()?));
        let to = DataKey::place(NO_ORGANIZATION, RecordKind::CLUSTER_SETTING, id);
        let body = Kept::body(DataKey::body(ring.current(), &to, &key)?, true, old_until);
        Ok(PutRecord {
            kind: RecordKind::CLUSTER_SETTING,
            id,
            org: None,
            expect: Expect::Absent,
            keys: vec![signing_key_key()],
            body: Value::Object(body).to_string().into_bytes(),
            at: edge::now_micros(),
        })
    }

    async fn put_signing_key(&self, put: PutRecord) -> Result<(), RecordsError> {
        match self.propose_one(By::System, CatalogCommand::Put(put)).await? {
            // Where another node was faster, the next look finds what it did.
            CatalogOutcome::Put { .. } | CatalogOutcome::Stale { .. } | CatalogOutcome::Taken { .. } => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    fn kept_signing_key(&self) -> Result<Option<Kept>, RecordsError> {
        let Some(record) = self.peek(|view| view.find(&signing_key_key()).cloned()) else { return Ok(None) };
        let key = DataKey::read_in(&record, NO_ORGANIZATION)?;
        let body = draft::read(&record)?;
        let used = body.get(USED).and_then(Value::as_bool).unwrap_or(false);
        let old_until = body.get(OLD_UNTIL).and_then(Value::as_i64).unwrap_or(0);
        Ok(Some(Kept { record, key, used, old_until }))
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
