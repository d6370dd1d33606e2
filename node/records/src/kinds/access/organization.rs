//! Organization: the tenant, which only an administrator can create, and its members.

use assay_node_shapes::{Shape, take};
use assay_storage_catalog::State;
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{Expect, PutRecord, Record, RecordKind, UniqueKey};
use assay_storage_model::event::format_micros;
use serde_json::{Value, json};
use uuid::Uuid;

use super::role;
use crate::draft::{self, Body};
use crate::error::RecordsError;
use crate::kinds::{ACL, GROUP, NAME, URL};
use crate::list::Walk;

/// Fields of an organization that a patch may change.
pub(crate) const FIELDS: &[(&str, Shape)] = &[
    ("name", NAME),
    ("api_url", URL),
    ("is_universal_api", Shape::Bool),
    ("is_dataplane_private", Shape::Bool),
    ("proxy_url", URL),
    ("realtime_url", URL),
    ("image_rendering_mode", Shape::Word(&["auto", "click_to_load", "blocked"])),
];

pub fn name_key(name: &str) -> UniqueKey {
    UniqueKey::new("organization.name", name)
}

/// Returns the body after a patch.
pub fn patched(stored: &Body, sent: &Body) -> Result<Body, RecordsError> {
    let mut changed = stored.clone();
    for (field, shape) in FIELDS {
        if let Some(value) = sent.get(*field).filter(|value| !value.is_null()) {
            changed.insert((*field).to_owned(), take(shape, field, value.clone())?);
        }
    }
    Ok(changed)
}

/// Returns the response for an organization.
pub fn shown(record: &Record, body: &Body) -> Result<Value, RecordsError> {
    let mut object = Body::from_iter([("id".to_owned(), Value::from(record.id.to_string()))]);
    for (field, _) in FIELDS {
        object.insert((*field).to_owned(), body.get(*field).cloned().unwrap_or(Value::Null));
    }
    object.insert("created".into(), format_micros(record.created).into());
    Ok(Value::Object(object))
}

/// Returns the name in the record of an organization.
pub fn name_of(organization: &Record) -> Result<String, RecordsError> {
    Ok(draft::text_in(&draft::read(organization)?, "name"))
}

pub fn check_name(name: &str) -> Result<(), RecordsError> {
    take(&NAME, "name of the organization", name.into())?;
    Ok(())
}

pub fn put(id: Uuid, name: &str, at: i64) -> PutRecord {
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

/// Returns the unique key of a membership, which a user has at most once in an organization.
pub fn member_key(org: OrgId, user: Uuid) -> UniqueKey {
    UniqueKey::new(format!("org_member/{org}"), user.to_string())
}

pub fn put_member(id: Uuid, org: OrgId, user: Uuid, at: i64) -> PutRecord {
    PutRecord {
        kind: RecordKind::ORG_MEMBER,
        id,
        org: Some(org),
        expect: Expect::Absent,
        keys: vec![member_key(org, user)],
        body: member_body(user, at),
        at,
    }
}

/// Returns the body of a membership with its start. Memberships from versions before 0.5 have no start.
pub fn member_body(user: Uuid, at: i64) -> Vec<u8> {
    json!({ "user_id": user.to_string(), JOINED: at }).to_string().into_bytes()
}

/// Returns the start of a membership in microseconds since the epoch; `None` for versions before 0.5.
pub fn joined(state: &State, org: OrgId, user: Uuid) -> Option<i64> {
    let member = state.find(&member_key(org, user))?;
    draft::read(member).ok()?.get(JOINED)?.as_i64()
}

const JOINED: &str = "joined";

/// Returns whether a user is a member of another organization.
pub fn is_member_elsewhere(state: &State, org: OrgId, user: Uuid) -> bool {
    let mut others = state.all(RecordKind::ORGANIZATION).map(|org| OrgId(org.id)).filter(|other| *other != org);
    others.any(|other| state.find(&member_key(other, user)).is_some())
}

/// Initial groups of every organization with their roles.
///
/// Their ids are derived from the id of the organization, so that concurrent creators use the same ids.
const FIRST_GROUPS: [(&str, Uuid, u128); 3] = [
    (OWNERS, role::OWNER, 0x6f77_6e65_7273),
    ("Engineers", role::ENGINEER, 0x656e_6769_6e65),
    ("Viewers", role::VIEWER, 0x7669_6577_6572),
];
pub const OWNERS: &str = "Owners";

/// Returns the key of a mark, which prevents that deleted initial groups are created again.
pub fn mark_key(org: OrgId) -> UniqueKey {
    UniqueKey::new("organization.groups", org.to_string())
}

pub fn has_groups(state: &State, org: OrgId) -> bool {
    state.find(&mark_key(org)).is_some()
}

/// Returns all users of an organization.
pub fn members(state: &State, org: OrgId) -> Result<Vec<Uuid>, RecordsError> {
    let mut walk = Walk::of(RecordKind::ORG_MEMBER, org);
    let mut users = Vec::new();
    while !walk.is_over() {
        for member in walk.step(state, |_| true)? {
            users.extend(draft::id_in(&draft::read(&member)?, "user_id"));
        }
    }
    Ok(users)
}

pub fn owners_id(org: OrgId) -> Uuid {
    derived(org, FIRST_GROUPS[0].2)
}

fn derived(org: OrgId, which: u128) -> Uuid {
    Uuid::from_u128(org.0.as_u128() ^ which)
}

/// Returns the writes of the initial groups and their grants. `owners` are the members of the first group.
pub fn put_groups(org: OrgId, owners: &[Uuid], at: i64) -> Vec<PutRecord> {
    let put = |kind: &crate::kind::Kind, id: Uuid, body: Body| PutRecord {
        kind: kind.record,
        id,
        org: Some(org),
        expect: Expect::Absent,
        keys: kind.key_of(org.0, &body).into_iter().collect(),
        body: serde_json::Value::Object(body).to_string().into_bytes(),
        at,
    };
    let mark = PutRecord {
        kind: RecordKind::CLUSTER_SETTING,
        id: derived(org, 0x6772_6f75_7073),
        org: Some(org),
        expect: Expect::Absent,
        keys: vec![mark_key(org)],
        body: b"{}".to_vec(),
        at,
    };
    let fields = |value: serde_json::Value| value.as_object().cloned().unwrap_or_default();
    let groups = FIRST_GROUPS.iter().flat_map(|(name, role, which)| {
        let id = derived(org, *which);
        let users: Vec<_> = if *name == OWNERS { owners.iter().map(Uuid::to_string).collect() } else { Vec::new() };
        let group = fields(json!({ "name": name, "member_users": users }));
        let grant = fields(json!({
            "object_type": "organization",
            "object_id": org.to_string(),
            "group_id": id.to_string(),
            "role_id": role.to_string(),
        }));
        [put(&GROUP, id, group), put(&ACL, derived(org, which << 64), grant)]
    });
    std::iter::once(mark).chain(groups).collect()
}
