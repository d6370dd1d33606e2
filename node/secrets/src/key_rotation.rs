//! Rotation of the master key and of the cluster's signing keys.
//!
//! A rotation of the master key records the new one first, so that data keys made meanwhile are wrapped with it, and then wraps
//! again what is under another key. It can be interrupted anywhere and asked for again.

use serde_json::{Value, json};

use crate::data_keys::{DataKey, busy, changed};
use crate::master_keys::without_key;
use crate::signing_key::StoredSigningKey;
use crate::{ATTEMPTS_MAX, Author, KeyCatalog, KeyId, PutOutcome, Secrets, SecretsError, VaultKey, random};

impl<C: KeyCatalog> Secrets<C> {
    /// Wraps the data key of every organization with this node's master key, which is the cluster's from then on.
    pub async fn rotate_master_key(&self) -> Result<Value, C::Error> {
        self.catalog.fence().await?;
        let before = self.recorded()?.map(|recorded| recorded.id);
        let ring = self.ring.get().ok_or_else(|| without_key(before))?;
        let new = ring.current().id();
        // What cannot be opened is found before anything is changed.
        for record in self.data_keys() {
            DataKey::read(&record)?.unwrap(ring)?;
        }
        self.make_current(new).await?;
        let mut again = 0;
        let mut cluster_keys = 0;
        for _ in 0..ATTEMPTS_MAX {
            self.catalog.fence().await?;
            cluster_keys += u64::from(self.wrap_signing_key_again(ring).await?);
            let authority = self.cluster.wrap_authority_again().await;
            cluster_keys += u64::from(authority.map_err(|error| SecretsError::Unavailable(error.to_string()))?);
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
                let put = changed(&record, &key.wrapped_again(ring)?, self.catalog.now_micros());
                match self.catalog.put(Author::Operator, put).await? {
                    PutOutcome::Written => again += 1,
                    // Whether it is done is for the next look to say.
                    PutOutcome::Lost => {}
                }
            }
        }
        Err(busy().into())
    }

    async fn make_current(&self, id: KeyId) -> Result<(), C::Error> {
        for _ in 0..ATTEMPTS_MAX {
            let recorded = self.recorded()?;
            if recorded.as_ref().is_some_and(|recorded| recorded.id == id) {
                return Ok(());
            }
            self.record(id, recorded.as_ref().map(|recorded| &*recorded.record)).await?;
            self.catalog.fence().await?;
        }
        Err(busy().into())
    }

    /// Replaces the signing key and the certificate authority. Earlier signatures become invalid.
    pub async fn rotate_secrets(&self) -> Result<Value, C::Error> {
        self.catalog.fence().await?;
        let recorded = self.recorded_master()?;
        let ring = self.ring.get().ok_or_else(|| without_key(recorded))?;
        let shortfalls = self.signing_shortfalls();
        if !shortfalls.is_empty() {
            let why = shortfalls.join("; ");
            let said = format!("nothing was changed, because not every node can use new secrets: {why}");
            return Err(SecretsError::Unavailable(said).into());
        }
        for _ in 0..ATTEMPTS_MAX {
            let kept = self.kept_signing_key()?;
            let new = self.new_signing_key(ring, 0)?;
            let put = match &kept {
                None => new,
                // The key is bound to its record, which stays.
                Some(kept) => {
                    let (key, to) = (VaultKey::new(random()?), kept.key.to);
                    let wrapped = DataKey::body(ring.current(), &to.next(), &key)?;
                    changed(&kept.record, &StoredSigningKey::body(wrapped, true, 0), self.catalog.now_micros())
                }
            };
            match self.catalog.put(Author::Operator, put).await? {
                PutOutcome::Written => return self.rotate_authority().await,
                PutOutcome::Lost => self.catalog.fence().await?,
            }
        }
        Err(busy().into())
    }

    async fn rotate_authority(&self) -> Result<Value, C::Error> {
        self.cluster.rotate_authority().await.map_err(|error| {
            let said = format!("the signing key was rotated, but the certificate authority was not; retry: {error}");
            SecretsError::Unavailable(said)
        })?;
        tracing::info!("the signing key was rotated, and the rotation of the certificate authority began");
        Ok(json!({
            "signing_key": "rotated",
            "authority": "rotating",
            "see": "nodes adopt the new certificate authority within seconds; /readyz names the nodes that have not",
        }))
    }
}
