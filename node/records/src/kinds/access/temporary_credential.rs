//! Temporary credential of the AI gateway, which a credential of a user issues for one organization (G-24).
//!
//! The record has no secret: a signed token names it. It ends at its expiry, or with the credential that issued it.

use assay_node_auth::{Credential, TemporaryGrant, TemporaryTerms};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{Record, UniqueKey};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::RecordsError;

/// Upper bound of the temporary credentials of one user in one organization.
pub const TEMPORARY_CREDENTIALS_PER_USER_MAX: u32 = 1000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TemporaryCredential {
    pub user_id: Uuid,
    /// Credential that issued it, without which it is invalid.
    pub parent: Credential,
    /// Index among the temporary credentials of the user in the organization.
    pub index: u32,
    /// Seconds since the epoch.
    pub until: i64,
    #[serde(flatten)]
    pub terms: TemporaryTerms,
}

impl TemporaryCredential {
    pub fn read(record: &Record) -> Result<TemporaryCredential, RecordsError> {
        super::decoded(record)
    }

    pub fn is_over(&self, now: i64) -> bool {
        now >= self.until
    }

    /// Returns the credential of a token that names the record with this id.
    pub fn credential(&self, id: Uuid) -> Credential {
        Credential::Temporary { id, parent: self.parent.record() }
    }

    pub fn grant(self, id: Uuid) -> TemporaryGrant {
        TemporaryGrant { id, until: self.until, terms: self.terms }
    }
}

/// Returns the key of an index. Indexes limit the number of temporary credentials of a user.
pub fn index_key(org: OrgId, user: Uuid, index: u32) -> UniqueKey {
    UniqueKey::new(format!("temporary_credential/{org}/{user}"), index.to_string())
}
