//! Bootstrap of a cluster at its first start: an organization, its owner, an API key, and the pepper.

use std::time::{Duration, Instant};

use assay_node_auth::{API_KEY_BYTES, PEPPER_BYTES, Pepper, Secret, new_api_key};
use assay_node_secrets::{MasterKey, NodeKeys};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, RecordKind};
use serde_json::json;
use uuid::Uuid;

use crate::audit::By;
use crate::commit::unexpected;
use crate::credentials::{NewKey, put_key};
use crate::error::RecordsError;
use crate::kinds::api_key::fingerprint_key;
use crate::kinds::{organization, user};
use crate::pepper::pepper_key;
use crate::{Records, edge};

/// Lower bound of the length of a given API key. Shorter keys can be guessed.
const OWN_KEY_LENGTH_MIN: usize = 16;
const OWN_KEY_LENGTH_MAX: usize = 256;

const FOUND_AGAIN_AFTER: Duration = Duration::from_millis(250);
const SAID_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Settings of a first start.
#[derive(Clone, Debug)]
pub struct Founding {
    pub org_name: String,
    pub owner_email: String,
    /// API key to use instead of a generated one.
    pub api_key: Option<Secret>,
}

impl Founding {
    /// Refuses invalid names of the organization and its owner.
    pub fn check_names(&self) -> Result<(), RecordsError> {
        organization::check_name(&self.org_name)?;
        user::check_email(&self.owner_email).map(drop)
    }

    /// Refuses an invalid API key.
    pub fn check_key(&self) -> Result<(), RecordsError> {
        self.api_key.as_ref().map_or(Ok(()), check_own_key)
    }
}

impl Records {
    /// Calls [`Records::found`] as soon as a majority of the catalog responds, which can take a while in a cluster.
    pub async fn found_when_heard(&self, founding: &Founding) -> Result<Option<Secret>, RecordsError> {
        when_heard(async || self.found(founding.clone()).await).await
    }

    /// Returns [`Secrets::master_key`] as soon as a majority responds.
    async fn master_key_when_heard(&self) -> Result<MasterKey, RecordsError> {
        when_heard(async || self.secrets.master_key().await).await
    }

    /// Creates the master key of a cluster without one, once the catalog is reachable. Logs the secrets that this node
    /// cannot decrypt.
    pub async fn settle_master_key(&self, keys: &NodeKeys) -> Result<(), RecordsError> {
        if self.master_key_when_heard().await? == MasterKey::ToMake {
            let made = keys.ring_made().map_err(|error| RecordsError::Internal(format!("{error:#}")))?;
            self.secrets.give_keys(made.clone());
        }
        self.master_key_when_heard().await?.log();
        Ok(())
    }

    /// Creates the first organization, unless the cluster has one. A later call changes nothing.
    ///
    /// Returns the key if one was generated, because it cannot be read later. All records share one log entry, so that
    /// a crash leaves all or nothing. Only one node of a cluster may found it.
    pub async fn found(&self, founding: Founding) -> Result<Option<Secret>, RecordsError> {
        self.catalog.fence().await?;
        if self.catalog.peek(|state| state.find(&pepper_key()).is_some()) {
            self.compare(&founding);
            self.give_groups().await?;
            self.sweep_and_say().await;
            return Ok(None);
        }
        organization::check_name(&founding.org_name)?;
        user::check_email(&founding.owner_email)?;
        let (secret, made) = match founding.api_key {
            Some(own) => {
                check_own_key(&own)?;
                (own, false)
            }
            None => (new_api_key(&edge::random::<API_KEY_BYTES>()?), true),
        };
        let pepper = Pepper::new(edge::random::<PEPPER_BYTES>()?);
        let (org, owner, now) = (OrgId(edge::new_id()), edge::new_id(), edge::now_micros());
        let mut puts = vec![
            put_pepper(edge::new_id(), &pepper, now),
            organization::put(org.0, &founding.org_name, now),
            user::put(owner, &founding.owner_email, now),
            organization::put_member(edge::new_id(), org, owner, now),
            put_key(&NewKey { org, user: owner, name: "owner", every_org: true }, &pepper, &secret, now),
        ];
        puts.extend(organization::put_groups(org, &[owner], now));
        if let Some(ring) = self.secrets.ring() {
            // Nothing was signed before, so no older secret is accepted.
            puts.push(self.secrets.new_signing_key(ring, 0)?);
        }
        let outcomes = self.catalog.propose(By::System, puts.into_iter().map(CatalogCommand::Put).collect()).await?;
        match outcomes.into_iter().find(|outcome| !matches!(outcome, CatalogOutcome::Put { made: true, .. })) {
            Some(other) => Err(unexpected(&other)),
            None => Ok(made.then_some(secret)),
        }
    }

    /// Adds default groups to organizations that predate grants.
    ///
    /// Their members become owners, in one log entry for each organization. The operation is deterministic, so that
    /// several nodes may execute it.
    pub async fn give_groups(&self) -> Result<(), RecordsError> {
        let without: Vec<OrgId> = self.catalog.peek(|view| {
            let orgs = view.all(RecordKind::ORGANIZATION).map(|org| OrgId(org.id));
            orgs.filter(|org| !organization::has_groups(view, *org)).collect()
        });
        for org in without {
            let owners = self.catalog.peek(|view| organization::members(view, org))?;
            let puts = organization::put_groups(org, &owners, edge::now_micros());
            for outcome in self.catalog.propose(By::System, puts.into_iter().map(CatalogCommand::Put).collect()).await?
            {
                match outcome {
                    // Stale or taken means that another node was faster.
                    CatalogOutcome::Put { .. } | CatalogOutcome::Stale { .. } | CatalogOutcome::Taken { .. } => {}
                    other => return Err(unexpected(&other)),
                }
            }
            tracing::info!(%org, owners = owners.len(), "members of an organization that predates grants still own it");
        }
        Ok(())
    }

    /// Warns about an API key that is ignored because the cluster already exists.
    fn compare(&self, founding: &Founding) {
        let Some(own) = &founding.api_key else {
            return;
        };
        let known = self.catalog.peek(|state| {
            let fingerprint = self.catalog.pepper(state).map(|pepper| pepper.fingerprint(own.expose()));
            fingerprint.is_ok_and(|fingerprint| state.find(&fingerprint_key(&fingerprint)).is_some())
        });
        if !known {
            tracing::warn!(
                "the API key given at the start is not a key of this cluster, which already exists: create keys with \
                 `assay admin create-key`"
            );
        }
    }

    /// Finishes interrupted deletes and logs the result. Errors are only logged, because leftovers only take space.
    pub async fn sweep_and_say(&self) {
        match self.sweep().await {
            Ok(swept) if swept.records == 0 => {}
            Ok(swept) => tracing::info!(records = swept.records, "finished interrupted deletes"),
            Err(error) => tracing::warn!(%error, "could not finish interrupted deletes"),
        }
    }
}

async fn when_heard<T>(ask: impl AsyncFn() -> Result<T, RecordsError>) -> Result<T, RecordsError> {
    let mut said: Option<Instant> = None;
    loop {
        let why = match ask().await {
            Err(RecordsError::Unavailable(why) | RecordsError::Unknown(why) | RecordsError::Busy(why)) => why,
            done => return done,
        };
        if said.is_none_or(|said| said.elapsed() >= SAID_AGAIN_AFTER) {
            tracing::info!(why, "waiting for a majority of the cluster");
            said = Some(Instant::now());
        }
        tokio::time::sleep(FOUND_AGAIN_AFTER).await;
    }
}

fn check_own_key(own: &Secret) -> Result<(), RecordsError> {
    let text = own.expose();
    let fits = (OWN_KEY_LENGTH_MIN..=OWN_KEY_LENGTH_MAX).contains(&text.len());
    if !fits || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let said = format!(
            "an API key must have {OWN_KEY_LENGTH_MIN} to {OWN_KEY_LENGTH_MAX} letters, digits and punctuation \
             characters, but this one has {} bytes",
            text.len()
        );
        return Err(RecordsError::BadRequest(said));
    }
    Ok(())
}

fn put_pepper(id: Uuid, pepper: &Pepper, at: i64) -> PutRecord {
    PutRecord {
        kind: RecordKind::CLUSTER_SETTING,
        id,
        org: None,
        expect: Expect::Absent,
        keys: vec![pepper_key()],
        body: json!({ "value": pepper.to_hex() }).to_string().into_bytes(),
        at,
    }
}
