//! Audit entries: the changes that are logged, and the content of their entries.
//!
//! An entry is written before its change, so that no change lacks an entry. It contains the intended change and the
//! principal.
//!
//! | kinds | logged changes |
//! |---|---|
//! | organizations, members, users, groups, roles, grants, keys, tokens, secrets, groups of projects, automations, budgets | all |
//! | temporary credentials | creation |
//! | all others | deletion |
//!
//! Entries about secrets and keys contain only the names of fields. Entries about access contain all fields.

use assay_node_auth::{Credential, Principal};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{CatalogCommand, PutRecord, Record, RecordKind};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::authz::CatalogView;
use crate::draft::Body;
use crate::kinds::invitation;

/// Upper bound of the logged content of a change. Larger changes are logged with the names of fields only.
const DETAILS_BYTES_MAX: usize = 64 << 10;

/// Author of a change of the catalog.
#[derive(Clone, Copy, Debug)]
pub enum By<'p> {
    Caller(&'p Principal),
    /// User who replies to an invitation. The organization learns the identity only on acceptance.
    Invited,
    /// Owner of the data directory.
    Operator,
    /// Program itself, which completes logged changes or creates internal records.
    System,
}

impl By<'_> {
    fn described(&self) -> Option<Value> {
        match self {
            By::Caller(who) => Some(json!({
                "type": "user",
                "user_id": who.user.to_string(),
                "user_email": who.user_email,
                "credential": credential(who.credential),
                "credential_id": who.credential.record().to_string(),
                "impersonator_id": who.impersonator.map(|user| user.to_string()),
            })),
            By::Invited => Some(json!({"type": "invited"})),
            By::Operator => Some(json!({"type": "operator"})),
            By::System => None,
        }
    }
}

fn credential(shown: Credential) -> &'static str {
    match shown {
        Credential::ApiKey(_) => "api_key",
        Credential::ServiceToken(_) => "service_token",
        Credential::Jwt(_) => "jwt",
        Credential::Login(_) => "login",
        Credential::Temporary { .. } => "temporary_credential",
    }
}

/// Level of detail of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AuditDetail {
    Whole,
    /// The names of changed fields only.
    Names,
    /// The deletion only.
    Deletion,
}

fn kept(kind: RecordKind) -> AuditDetail {
    match kind {
        RecordKind::ORGANIZATION
        | RecordKind::ORG_MEMBER
        | RecordKind::GROUP
        | RecordKind::ROLE
        | RecordKind::ACL
        | RecordKind::PROJECT_GROUP
        | RecordKind::TEMPORARY_CREDENTIAL
        | RecordKind::GATEWAY_BUDGET
        // Automations delete rows.
        | RecordKind::AUTOMATION
        | RecordKind::ORG_AUTOMATION => AuditDetail::Whole,
        RecordKind::USER
        | RecordKind::API_KEY
        | RecordKind::SERVICE_TOKEN
        | RecordKind::AI_SECRET
        | RecordKind::ENV_VAR
        | RecordKind::DATA_KEY => AuditDetail::Names,
        _ => AuditDetail::Deletion,
    }
}

/// Returns the entry of a change and its organization; `None` if the change is not logged.
pub(crate) fn entry(
    view: &CatalogView<'_>,
    by: By<'_>,
    command: &CatalogCommand,
) -> Option<(OrgId, Map<String, Value>)> {
    let actor = by.described()?;
    let (kind, id, put) = match command {
        CatalogCommand::Put(put) => (put.kind, put.id, Some(put)),
        CatalogCommand::Delete(delete) => (delete.kind, delete.id, None),
        _ => return None,
    };
    let before = view.get(kind, id);
    // A put without keys starts a deletion.
    let put = put.filter(|put| !put.keys.is_empty());
    let kept = kept(kind);
    if kept == AuditDetail::Deletion && put.is_some() {
        return None;
    }
    let org = org_of(by, kind, id, put, before)?;
    let (old, new) = (before.map(|record| read(&record.body)), put.map(|put| read(&put.body)));
    if let Some(entry) = entry_of_invitation(by, id, put, before) {
        return Some((org, entry));
    }
    let action = match (put, before) {
        (None, _) => "delete",
        (Some(_), None) => "create",
        (Some(_), Some(_)) => "update",
    };
    let name = new.as_ref().or(old.as_ref()).and_then(|body| body.get("name")).and_then(Value::as_str);
    let entry = json!({
        "action": action,
        "object_type": kind.to_string(),
        "object_id": id.to_string(),
        "object_name": name,
        "actor": actor,
        "details": details(kept, old.as_ref(), new.as_ref()),
    });
    if let Value::Object(entry) = entry { Some((org, entry)) } else { None }
}

/// Returns the entry of a new, changed, answered or withdrawn invitation; `None` for other changes.
fn entry_of_invitation(
    by: By<'_>,
    id: Uuid,
    put: Option<&PutRecord>,
    before: Option<&std::sync::Arc<Record>>,
) -> Option<Map<String, Value>> {
    let pending = before.filter(|record| invitation::is_one(record));
    let invited = put.filter(|put| put.kind == RecordKind::ORG_MEMBER && invitation::is_key(&put.keys));
    let (action, body) = match (invited, pending, put) {
        (Some(put), _, _) => ("invite", read(&put.body)),
        (None, Some(pending), Some(_)) => ("accept_invitation", read(&pending.body)),
        (None, Some(pending), None) if matches!(by, By::Caller(_)) => ("withdraw_invitation", read(&pending.body)),
        (None, Some(pending), None) => ("decline_invitation", read(&pending.body)),
        (None, None, _) => return None,
    };
    let mut details = invitation::told(&body);
    if action == "accept_invitation" {
        details["user_id"] = body.get("invited_user_id").cloned().unwrap_or_default();
    }
    let name = body.get("email").and_then(Value::as_str);
    Some(entry_by(by, action, ("invitation", id), name, details))
}

/// Returns the entry of an action that changes no record.
pub fn entry_of(who: &Principal, action: &str, object: (&str, Uuid), details: Value) -> Map<String, Value> {
    entry_by(By::Caller(who), action, object, None, details)
}

pub fn entry_by(
    by: By<'_>,
    action: &str,
    object: (&str, Uuid),
    name: Option<&str>,
    details: Value,
) -> Map<String, Value> {
    let entry = json!({
        "action": action,
        "object_type": object.0,
        "object_id": object.1.to_string(),
        "object_name": name,
        "actor": by.described(),
        "details": details,
    });
    if let Value::Object(entry) = entry { entry } else { Map::new() }
}

fn org_of(
    by: By<'_>,
    kind: RecordKind,
    id: Uuid,
    put: Option<&PutRecord>,
    before: Option<&std::sync::Arc<Record>>,
) -> Option<OrgId> {
    if kind == RecordKind::ORGANIZATION {
        return Some(OrgId(id));
    }
    let of_record = put.and_then(|put| put.org).or_else(|| before.and_then(|record| record.org));
    // Users belong to no organization, so the organization of the caller gets the entry.
    let of_caller = || if let By::Caller(who) = by { Some(who.org) } else { None };
    of_record.or_else(of_caller)
}

fn read(body: &[u8]) -> Body {
    serde_json::from_slice(body).unwrap_or_default()
}

fn details(kept: AuditDetail, old: Option<&Body>, new: Option<&Body>) -> Value {
    let changed = || {
        let (Some(old), Some(new)) = (old, new) else { return Value::Null };
        let mut names: Vec<&String> = new.keys().chain(old.keys()).collect();
        names.sort();
        names.dedup();
        names.retain(|name| old.get(*name) != new.get(*name));
        json!(names)
    };
    let whole = json!({"before": old, "after": new});
    if kept == AuditDetail::Whole && whole.to_string().len() <= DETAILS_BYTES_MAX {
        return whole;
    }
    json!({ "changed": changed() })
}
