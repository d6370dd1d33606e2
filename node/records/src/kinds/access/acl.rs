//! ACL: a grant of one permission or role on one object to one user or group.
//! It has no name: its fields together identify it, so an equal grant returns the existing one. It never changes.

use assay_node_auth::{Acl, Gift, Giving, ObjectType, Permission, Subject};
use assay_node_shapes::Shape;
use assay_storage_model::catalog::RecordKind;
use serde_json::Value;
use uuid::Uuid;

use super::organization;
use crate::authz::guard;
use crate::draft::{self, Body};
use crate::error::RecordsError;
use crate::kind::{Api, Checked, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch};
use crate::kinds::{GROUP, ROLE};

const TYPE: Shape = Shape::Word(ObjectType::WORDS);
const WHOLE: &[&str] =
    &["object_type", "object_id", "user_id", "group_id", "permission", "restrict_object_type", "role_id"];

pub static ACL: Kind = Kind {
    name: "acl",
    record: RecordKind::ACL,
    naming: Naming::Whole(WHOLE),
    api: Api::Own,
    export: Export::AfterRows,
    fields: &[
        Field::required("object_type", TYPE, OnPatch::Fixed),
        Field::required("object_id", Shape::Uuid, OnPatch::Fixed),
        Field::optional("user_id", Shape::Uuid, OnPatch::Fixed),
        Field::optional("group_id", Shape::Uuid, OnPatch::Fixed),
        Field::optional("permission", Shape::Word(Permission::WORDS), OnPatch::Fixed),
        Field::optional("restrict_object_type", TYPE, OnPatch::Fixed),
        Field::optional("role_id", Shape::Uuid, OnPatch::Fixed),
    ],
    filters: &[
        ("object_type", Filter::Field("object_type")),
        ("object_id", Filter::Field("object_id")),
        ("user_id", Filter::Field("user_id")),
        ("group_id", Filter::Field("group_id")),
        ("permission", Filter::Field("permission")),
        ("restrict_object_type", Filter::Field("restrict_object_type")),
        ("role_id", Filter::Field("role_id")),
    ],
    check: Some(check),
    ..Kind::plain(Home::Object, Guard::Acl)
};

/// Returns the object that a record names; `None` if it names none.
/// Other kinds name their object in the same way. Some name a function, which is granted as a prompt, or only a
/// dataset.
pub(crate) fn object(body: &Body) -> Option<(ObjectType, Uuid)> {
    if let Some(dataset) = draft::id_in(body, "dataset_id").filter(|_| !body.contains_key("object_type")) {
        return Some((ObjectType::Dataset, dataset));
    }
    let object = match body.get("object_type")?.as_str()? {
        "function" => ObjectType::Prompt,
        word => ObjectType::parse(word)?,
    };
    Some((object, draft::id_in(body, "object_id")?))
}

/// Decodes a grant; `None` if this version does not know its content, so that it grants nothing.
pub(crate) fn read(body: &Body) -> Option<Acl> {
    let word = |name: &str| body.get(name).and_then(Value::as_str);
    let subject = match (draft::id_in(body, "user_id"), draft::id_in(body, "group_id")) {
        (Some(user), None) => Subject::User(user),
        (None, Some(group)) => Subject::Group(group),
        _ => return None,
    };
    let gift = match (word("permission"), draft::id_in(body, "role_id")) {
        (Some(permission), None) => {
            let restrict = word("restrict_object_type").map(|only| ObjectType::parse(only).ok_or(()));
            Gift::Permission(Permission::parse(permission)?, restrict.transpose().ok()?)
        }
        (None, Some(role)) => Gift::Role(role),
        _ => return None,
    };
    Some(Acl { object: object(body)?, subject, gift })
}

fn check(checked: &Checked<'_>) -> Result<(), RecordsError> {
    let Checked { view, who, body, .. } = checked;
    let org = who.org;
    let refuse = |said: &str| Err(RecordsError::BadRequest(said.to_owned()));
    let has = |name: &str| body.contains_key(name);
    if has("user_id") == has("group_id") {
        return refuse("an ACL must have exactly one of `user_id` and `group_id`");
    }
    if has("permission") == has("role_id") {
        return refuse("an ACL must have exactly one of `permission` and `role_id`");
    }
    if has("restrict_object_type") && !has("permission") {
        return refuse("`restrict_object_type` needs `permission`, not `role_id`");
    }
    let missing = |field: &str, what: &str, id: Uuid| {
        RecordsError::BadRequest(format!("`{field}`: no {what} {id} is in the organization"))
    };
    if let Some(user) = draft::id_in(body, "user_id")
        && view.find(&organization::member_key(org, user)).is_none()
    {
        return Err(missing("user_id", "user", user));
    }
    for (field, kind) in [("group_id", &GROUP), ("role_id", &ROLE)] {
        if let Some(id) = draft::id_in(body, field)
            && guard::known(view, kind, org, id).is_none()
        {
            return Err(missing(field, kind.name, id));
        }
    }
    // An existing grant gives no new rights.
    let is_there = ACL.key_of(org.0, body).is_some_and(|key| view.find(&key).is_some());
    match read(body).filter(|_| !is_there) {
        Some(acl) => view.check_giving(who, gift_field(body), &Giving::Grant(acl)),
        None => Ok(()),
    }
}

fn gift_field(body: &Body) -> &'static str {
    if body.contains_key("role_id") { "role_id" } else { "permission" }
}
