//! Role: a named set of permissions, and other roles whose permissions it includes.
//!
//! Three system roles exist in every organization, belong to none, and never change.

use assay_node_auth::{Giving, Granted, ObjectType, Permission, Role};
use assay_node_shapes::{Member, Shape};
use assay_storage_model::catalog::{Record, RecordKind, UniqueKey};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{MEMBERS, folded_lists};
use crate::draft::Body;
use crate::error::RecordsError;
use crate::kind::{Api, Changes, Checked, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch, made_by};
use crate::kinds::{NAME, PROSE};

/// System role with all permissions.
pub const OWNER: Uuid = Uuid::from_u128(0xa55a_0001_0000_4000_8000_0000_0000_0001);
/// System role that creates, changes and deletes projects and their content, but not grants.
pub const ENGINEER: Uuid = Uuid::from_u128(0xa55a_0001_0000_4000_8000_0000_0000_0002);
/// System role that reads projects and their content.
pub const VIEWER: Uuid = Uuid::from_u128(0xa55a_0001_0000_4000_8000_0000_0000_0003);

const PERMISSIONS_MAX: usize = 200;

pub static ROLE: Kind = Kind {
    name: "role",
    record: RecordKind::ROLE,
    naming: Naming::Unique,
    api: Api::Shared("/v1/role", Changes::ByPatchAndPut),
    export: Export::BeforeRows,
    fields: &[
        Field::ours("user_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("name", NAME, OnPatch::Replaced),
        Field::optional("description", PROSE, OnPatch::Replaced),
        Field::optional("member_permissions", PERMISSIONS, OnPatch::Replaced),
        Field::optional("member_roles", MEMBERS, OnPatch::Replaced),
    ],
    filters: &[("role_name", Filter::Name), ("name", Filter::Name)],
    has_deleted_at: true,
    builtin,
    fold: Some(|stored, sent| folded_lists(stored, sent, &["member_permissions", "member_roles"])),
    check: Some(check),
    complete: made_by,
    ..Kind::plain(Home::Organization, Guard::Own(ObjectType::Role))
};

fn check(checked: &Checked<'_>) -> Result<(), RecordsError> {
    let Checked { view, who, id, body, .. } = checked;
    let name = body.get("name").and_then(Value::as_str).unwrap_or_default();
    if builtin().iter().any(|record| record.keys[0].name == name) {
        return Err(RecordsError::BadRequest(format!("`name`: `{name}` is a role of the system; choose another name")));
    }
    super::check_members(checked, "member_roles", &ROLE)?;
    // A role without id is new and has no grants.
    let Some(role) = *id else { return Ok(()) };
    let had = view.permissions_of(who.org, [role])?;
    let Role { permissions, roles } = read(body);
    let mut gained = view.permissions_of(who.org, roles.into_iter().filter(|member| *member != role))?;
    gained.extend(permissions);
    // An unrestricted permission includes the restricted ones.
    gained.retain(|granted| !had.contains(granted) && !had.contains(&(granted.0, None)));
    if gained.is_empty() {
        return Ok(());
    }
    view.check_giving(who, "member_permissions", &Giving::Permissions { role, gained })
}

const PERMISSIONS: Shape = Shape::List { of: &PERMISSION, items_max: PERMISSIONS_MAX };
const PERMISSION: Shape = Shape::Closed(&[
    Member::required("permission", Shape::Word(Permission::WORDS)),
    Member::optional("restrict_object_type", Shape::Word(ObjectType::WORDS)),
]);

/// Decodes a role. Unknown permissions and types give nothing.
pub fn read(body: &Body) -> Role {
    let items = |name: &str| body.get(name).and_then(Value::as_array).into_iter().flatten();
    let granted = |item: &Value| -> Option<Granted> {
        let permission = Permission::parse(item.get("permission")?.as_str()?)?;
        match item.get("restrict_object_type").filter(|only| !only.is_null()) {
            None => Some((permission, None)),
            Some(only) => Some((permission, Some(ObjectType::parse(only.as_str()?)?))),
        }
    };
    let id = |item: &Value| Uuid::parse_str(item.as_str()?).ok();
    Role {
        permissions: items("member_permissions").filter_map(granted).collect(),
        roles: items("member_roles").filter_map(id).collect(),
    }
}

/// Returns the system roles in the order of lists.
fn builtin() -> Vec<Record> {
    const KINDS: [(Uuid, &str, &str); 3] = [
        (OWNER, "Owner", "Full access to the organization and everything in it"),
        (ENGINEER, "Engineer", "Creates, changes and deletes projects and everything in them"),
        (VIEWER, "Viewer", "Reads projects and everything in them"),
    ];
    let record = |(id, name, description): (Uuid, &str, &str)| {
        let body = json!({ "name": name, "description": description, "member_permissions": permissions(id) });
        Record {
            kind: RecordKind::ROLE,
            id,
            org: None,
            revision: 0,
            keys: vec![UniqueKey::new("role.name/system", name)],
            body: body.to_string().into_bytes(),
            created: 0,
            changed: 0,
        }
    };
    KINDS.map(record).into()
}

pub fn of_system() -> impl Iterator<Item = (Uuid, Role)> {
    [OWNER, ENGINEER, VIEWER].into_iter().map(|id| {
        let body = Body::from_iter([("member_permissions".to_owned(), permissions(id))]);
        (id, read(&body))
    })
}

fn permissions(role: Uuid) -> Value {
    use ObjectType::{
        Dataset, Experiment, OrgAiSecret, OrgMember, OrgProject, Organization, ProjectGroup, ProjectLog, Prompt,
        PromptSession,
    };
    use Permission::{Create, Delete, Read, Update};

    const BELOW: [ObjectType; 8] =
        [OrgProject, Experiment, Dataset, Prompt, PromptSession, ProjectLog, ProjectGroup, Organization];
    let each = |permissions: &[Permission], types: &[ObjectType]| -> Vec<Value> {
        let pair = |permission: &Permission, only: &ObjectType| json!({ "permission": permission.word(), "restrict_object_type": only.word() });
        types.iter().flat_map(|only| permissions.iter().map(move |permission| pair(permission, only))).collect()
    };
    let all = |permission: &Permission| json!({ "permission": permission.word(), "restrict_object_type": null });
    match role {
        OWNER => Permission::ALL.iter().map(all).collect(),
        ENGINEER => {
            let mut given = each(&[Create, Read, Update, Delete], &BELOW[..7]);
            given.extend(each(&[Read], &[Organization, OrgMember, OrgAiSecret]));
            given.into()
        }
        _ => {
            let mut given = each(&[Read], &BELOW);
            given.extend(each(&[Read], &[OrgMember]));
            given.into()
        }
    }
}
