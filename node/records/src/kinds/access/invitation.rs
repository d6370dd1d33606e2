//! Invitation: a membership that its user has to accept.
//!
//! It has the kind of memberships with a different key and body, so that nodes before version 0.5 ignore it. Acceptance
//! turns the same record into the membership.

use assay_storage_catalog::State;
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{Expect, PutRecord, Record, RecordKind, UniqueKey};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::organization::{member_body, member_key};
use crate::error::RecordsError;

const SCOPE: &str = "org_invitation";
/// Upper bound of the groups that one invitation names.
pub const GROUPS_MAX: usize = 100;

/// Body of the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    pub invited_user_id: Uuid,
    /// Address as the inviter wrote it.
    pub email: String,
    pub invited_by: String,
    /// Groups that the person joins on acceptance.
    #[serde(default)]
    pub groups: Vec<Uuid>,
}

/// Returns the unique key, which allows one pending invitation for each organization and person.
pub fn key(org: OrgId, user: Uuid) -> UniqueKey {
    UniqueKey::new(format!("{SCOPE}/{org}"), user.to_string())
}

/// Returns whether a record is an invitation and not a membership.
pub fn is_one(record: &Record) -> bool {
    record.kind == RecordKind::ORG_MEMBER && is_key(&record.keys)
}

pub fn is_key(keys: &[UniqueKey]) -> bool {
    keys.first().is_some_and(|key| key.scope.split_once('/').is_some_and(|(scope, _)| scope == SCOPE))
}

pub fn read(record: &Record) -> Result<Invitation, RecordsError> {
    let damaged = |error| RecordsError::Internal(format!("the invitation {} cannot be decoded: {error}", record.id));
    serde_json::from_slice(&record.body).map_err(damaged)
}

pub fn put(id: Uuid, org: OrgId, expect: Expect, invitation: &Invitation, at: i64) -> Result<PutRecord, RecordsError> {
    let body =
        serde_json::to_vec(invitation).map_err(|error| RecordsError::Internal(format!("an invitation: {error}")))?;
    let keys = vec![key(org, invitation.invited_user_id)];
    Ok(PutRecord { kind: RecordKind::ORG_MEMBER, id, org: Some(org), expect, keys, body, at })
}

/// Returns the write that turns an invitation into a membership, unless it was withdrawn or changed.
pub fn accepted(record: &Record, org: OrgId, user: Uuid, at: i64) -> PutRecord {
    PutRecord {
        kind: RecordKind::ORG_MEMBER,
        id: record.id,
        org: Some(org),
        expect: Expect::Revision(record.revision),
        keys: vec![member_key(org, user)],
        body: member_body(user, at),
        at,
    }
}

/// Returns the details of an invitation for the audit log: only the text that the inviter wrote.
pub fn told(body: &serde_json::Map<String, Value>) -> Value {
    serde_json::json!({ "email": body.get("email"), "groups": body.get("groups") })
}

/// Returns the pending invitations of a person, ordered by organization.
pub fn of_user(state: &State, user: Uuid) -> Vec<std::sync::Arc<Record>> {
    let mut orgs: Vec<_> = state.all(RecordKind::ORGANIZATION).collect();
    orgs.sort_by_key(|org| (org.created, org.id));
    orgs.into_iter().filter_map(|org| state.find(&key(OrgId(org.id), user)).cloned()).collect()
}
