//! Explanation of access: the rights of users on an object, with the grant, groups and roles that confer them.

use std::sync::Arc;

use assay_node_auth::{Acl, Decision, Explainer, Gift, GrantPath, ObjectType, Permission, Principal, Subject, Target};
use assay_node_records::kinds::organization::{member_key, members};
use assay_node_records::mechanism::{Body, CatalogView, decide_of_acls, known, read_body, target_of, text_in, within};
use assay_node_records::{Kind, RecordsError, kinds};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{Record, RecordKind};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Identity;
use crate::logins::names_in;

/// Upper bound of the users in one explanation.
const PEOPLE_MAX: usize = 1000;
/// Upper bound of the grants of all users in one explanation, unless a single user has more.
const GRANTS_MAX: usize = 50_000;
/// Upper bound of the grants that are shown for one permission of one user.
const GRANTS_OF_PERMISSION_MAX: usize = 25;

impl Identity {
    /// Explains the access of one user, or of all users with any access, to an object. The caller must be allowed to
    /// read the grants on the object, except for an explanation of their own access.
    pub async fn explain_access(
        &self,
        who: &Principal,
        object: (ObjectType, Uuid),
        user: Option<Uuid>,
    ) -> Result<Value, RecordsError> {
        self.catalog.fresh().await?;
        self.catalog.look(|view| explained(view, who, object, user)).await
    }
}

fn explained(
    view: &CatalogView<'_>,
    who: &Principal,
    (object, id): (ObjectType, Uuid),
    user: Option<Uuid>,
) -> Result<Value, RecordsError> {
    let missing = || RecordsError::NotFound(format!("no {} {id} is visible to this credential", object.word()));
    let here = within(view, who, who.org)?.ok_or_else(missing)?;
    let target = target_of(view, here.org, object, id).ok_or_else(missing)?;
    let access = view.access(here.org)?;
    let explainer = Explainer::new(&access, &target);
    let is_own = user == Some(here.user);
    match decide_of_acls(&here, Permission::Read, &target) {
        Decision::Allowed => {}
        _ if is_own && !explainer.paths_of(here.user).is_empty() => {}
        Decision::NotVisible => return Err(missing()),
        Decision::Forbidden => {
            let why = format!("this credential is not granted `read_acls` on the {} {id}", object.word());
            return Err(RecordsError::Forbidden(why));
        }
    }
    let asked = match user {
        Some(user) if view.find(&member_key(here.org, user)).is_none() => {
            return Err(RecordsError::NotFound(format!("no user {user} is in the organization")));
        }
        Some(user) => vec![user],
        None => members(view, here.org)?,
    };
    let (mut people, mut grants, mut truncated) = (Vec::new(), 0, false);
    for member in asked {
        let paths = explainer.paths_of(member);
        if paths.is_empty() && user.is_none() {
            continue;
        }
        grants += paths.len();
        if people.len() == PEOPLE_MAX || (grants > GRANTS_MAX && !people.is_empty()) {
            truncated = true;
            break;
        }
        people.push(person(view, here.org, &target, member, &paths)?);
    }
    Ok(json!({"object_type": object.word(), "object_id": id, "people": people, "truncated": truncated}))
}

fn person(
    view: &CatalogView<'_>,
    org: OrgId,
    target: &Target,
    member: Uuid,
    paths: &[GrantPath],
) -> Result<Value, RecordsError> {
    let body = view.get(RecordKind::USER, member).map(|user| read_body(user)).transpose()?;
    let body = body.unwrap_or_default();
    let [given, family] = names_in(view, member)?;
    let shown = shown(paths);
    let grants: Vec<Value> = shown.iter().map(|path| grant(view, org, target, path)).collect();
    let held = Permission::ALL.iter().filter(|permission| paths.iter().any(|path| path.permission == **permission));
    Ok(json!({
        "user": {"id": member, "email": text_in(&body, "email"), "given_name": given, "family_name": family},
        "permissions": held.map(|permission| permission.word()).collect::<Vec<_>>(),
        "grants": grants,
        "grants_truncated": shown.len() < paths.len(),
    }))
}

/// Returns the first paths to every permission. The paths have the order of the permissions.
fn shown(paths: &[GrantPath]) -> Vec<&GrantPath> {
    let groups = paths.chunk_by(|one, next| one.permission == next.permission);
    groups.flat_map(|group| group.iter().take(GRANTS_OF_PERMISSION_MAX)).collect()
}

/// Returns the description of one path to a permission, with the names of its groups and roles.
fn grant(view: &CatalogView<'_>, org: OrgId, target: &Target, path: &GrantPath) -> Value {
    let named = |kind: &'static Kind| move |id: &Uuid| json!({"id": id, "name": name_in(view, org, kind, *id)});
    let (on, on_id) = path.acl.object;
    let record = acl_record(view, org, &path.acl);
    let is_own = target.reached_by().first() == Some(&path.acl.object);
    json!({
        "permission": path.permission.word(),
        "restrict_object_type": path.restrict.map(ObjectType::word),
        "object_type": on.word(),
        "object_id": on_id,
        "is_inherited": !is_own,
        "to": if matches!(path.acl.subject, Subject::User(_)) { "user" } else { "group" },
        "groups": path.groups.iter().map(named(&kinds::GROUP)).collect::<Vec<_>>(),
        "gives": if matches!(path.acl.gift, Gift::Role(_)) { "role" } else { "permission" },
        "roles": path.roles.iter().map(named(&kinds::ROLE)).collect::<Vec<_>>(),
        "acl_id": record.map(|record| record.id),
    })
}

/// Returns the record of a grant; `None` for implicit owners of organizations that predate groups.
fn acl_record(view: &CatalogView<'_>, org: OrgId, acl: &Acl) -> Option<Arc<Record>> {
    let (object, id) = acl.object;
    let mut body: Body = [("object_type", json!(object.word())), ("object_id", json!(id))]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    match acl.subject {
        Subject::User(user) => body.insert("user_id".into(), json!(user)),
        Subject::Group(group) => body.insert("group_id".into(), json!(group)),
    };
    match acl.gift {
        Gift::Role(role) => body.insert("role_id".into(), json!(role)),
        Gift::Permission(permission, restrict) => {
            if let Some(only) = restrict {
                body.insert("restrict_object_type".into(), json!(only.word()));
            }
            body.insert("permission".into(), json!(permission.word()))
        }
    };
    view.find(&kinds::ACL.key_of(org.0, &body)?).cloned()
}

/// Returns the name of a record of the organization or of a system record.
fn name_in(view: &CatalogView<'_>, org: OrgId, kind: &Kind, id: Uuid) -> Option<String> {
    let record = known(view, kind, org, id)?;
    Some(text_in(&read_body(&record).ok()?, "name")).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_grants_of_one_permission_hide_no_other_permission() {
        let object = (ObjectType::Project, Uuid::from_u128(1));
        let path = |permission, number: u128| {
            let (subject, gift) = (Subject::Group(Uuid::from_u128(number)), Gift::Permission(permission, None));
            let acl = Acl { object, subject, gift };
            GrantPath { permission, restrict: None, acl, reached: object, groups: Vec::new(), roles: Vec::new() }
        };
        let mut paths: Vec<_> = (0..1000).map(|number| path(Permission::Read, number)).collect();
        paths.push(path(Permission::Update, 0));
        let found = shown(&paths);
        assert_eq!(found.len(), GRANTS_OF_PERMISSION_MAX + 1);
        assert_eq!(found.last().map(|path| path.permission), Some(Permission::Update));
        assert_eq!(shown(&paths[999..]).len(), 2);
    }
}
