//! Group: users, and other groups whose users are indirect members. Grants are made to users and groups.

use assay_node_auth::{Giving, Group, ObjectType};
use assay_node_shapes::Shape;
use assay_storage_model::catalog::RecordKind;
use serde_json::Value;
use uuid::Uuid;

use super::{MEMBERS, check_members, folded_lists, organization};
use crate::draft::Body;
use crate::error::RecordsError;
use crate::kind::{Api, Changes, Checked, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch, made_by};
use crate::kinds::{NAME, PROSE};

pub static GROUP: Kind = Kind {
    name: "group",
    record: RecordKind::GROUP,
    naming: Naming::Unique,
    api: Api::Shared("/v1/group", Changes::ByPatchAndPut),
    export: Export::BeforeRows,
    fields: &[
        Field::ours("user_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("name", NAME, OnPatch::Replaced),
        Field::optional("description", PROSE, OnPatch::Replaced),
        Field::optional("member_users", MEMBERS, OnPatch::Replaced),
        Field::optional("member_groups", MEMBERS, OnPatch::Replaced),
    ],
    filters: &[("group_name", Filter::Name), ("name", Filter::Name)],
    has_deleted_at: true,
    fold: Some(|stored, sent| folded_lists(stored, sent, &["member_users", "member_groups"])),
    check: Some(check),
    complete: made_by,
    ..Kind::plain(Home::Organization, Guard::Own(ObjectType::Group))
};

fn check(checked: &Checked<'_>) -> Result<(), RecordsError> {
    let Checked { view, who, id, before, body } = checked;
    let stranger =
        ids(body, "member_users").find(|user| view.find(&organization::member_key(who.org, *user)).is_none());
    if let Some(user) = stranger {
        return Err(RecordsError::BadRequest(format!("`member_users`: no user {user} is in the organization")));
    }
    check_members(checked, "member_groups", &GROUP)?;
    // A group without id is new and has no grants.
    let Some(group) = *id else { return Ok(()) };
    for list in ["member_users", "member_groups"] {
        let there: Vec<Uuid> = before.map(|before| ids(before, list).collect()).unwrap_or_default();
        if ids(body, list).any(|member| !there.contains(&member)) {
            view.check_giving(who, list, &Giving::Member { group })?;
        }
    }
    Ok(())
}

pub fn ids<'b>(body: &'b Body, name: &str) -> impl Iterator<Item = Uuid> + use<'b> {
    let items = body.get(name).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| Uuid::parse_str(item.as_str()?).ok())
}

pub fn read(body: &Body) -> Group {
    Group { users: ids(body, "member_users").collect(), groups: ids(body, "member_groups").collect() }
}
