//! Organization: the tenant. Stands above organizations, so only an administrator makes one; and who is in it.

use assay_storage_model::OrgId;
use assay_storage_model::catalog::{Expect, PutRecord, RecordKind, UniqueKey};
use serde_json::json;
use uuid::Uuid;

use super::NAME;
use crate::error::RecordsError;
use crate::shape::take;

pub(crate) fn name_key(name: &str) -> UniqueKey {
    UniqueKey::new("organization.name", name)
}

pub(crate) fn check_name(name: &str) -> Result<(), RecordsError> {
    take(&NAME, "name of the organization", name.into()).map(drop)
}

pub(crate) fn put(id: Uuid, name: &str, at: i64) -> PutRecord {
    PutRecord {
        kind: RecordKind::ORGANIZATION,
        id,
        org: None,
        expect: Expect::Absent,
        keys: vec![name_key(name)],
        body: json!({ "name": name }).to_string().into_bytes(),
        at,
    }
}

/// A user is in an organization at most once.
pub(crate) fn member_key(org: OrgId, user: Uuid) -> UniqueKey {
    UniqueKey::new(format!("org_member/{org}"), user.to_string())
}

pub(crate) fn put_member(id: Uuid, org: OrgId, user: Uuid, at: i64) -> PutRecord {
    PutRecord {
        kind: RecordKind::ORG_MEMBER,
        id,
        org: Some(org),
        expect: Expect::Absent,
        keys: vec![member_key(org, user)],
        body: json!({ "user_id": user.to_string(), "role": "owner" }).to_string().into_bytes(),
        at,
    }
}
