//! Authorization of one record: the grants that reach it, and the permission that an action requires.

use std::sync::Arc;

use assay_node_auth::{Decision, ObjectType, Permission, Principal, Target, decide};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{Record, RecordKind};
use uuid::Uuid;

use crate::authz::CatalogView;
use crate::draft::{self, Body};
use crate::kind::{Guard, Kind};
use crate::kinds::{self, acl};

/// Properties of a record that decide on access to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    pub kind: &'a Kind,
    pub org: OrgId,
    pub id: Option<Uuid>,
    pub project: Option<Uuid>,
    /// Body, required only for kinds whose fields decide.
    pub body: Option<&'a Body>,
}

impl About<'_> {
    /// Returns the decision. `who` is the principal in the organization of the record.
    pub fn decide(&self, view: &CatalogView<'_>, who: &Principal, permission: Permission) -> Decision {
        let as_part = if permission == Permission::Read { Permission::Read } else { Permission::Update };
        match self.kind.guard {
            Guard::Own(object) => decide(who, permission, &self.own(object)),
            Guard::Project => match self.project {
                Some(project) => decide(who, as_part, &project_of(project, self.org)),
                None => Decision::NotVisible,
            },
            Guard::Organization => decide(who, as_part, &self.own(ObjectType::Organization)),
            Guard::Object => {
                let on = self.body.and_then(acl::object);
                let target = on.and_then(|(object, id)| target_of(view, self.org, object, id));
                target.map_or(Decision::NotVisible, |target| decide(who, as_part, &target))
            }
            Guard::Holder(holder) if self.body.is_none_or(|body| draft::id_in(body, holder) == Some(who.user)) => {
                Decision::Allowed
            }
            // Permission to see members does not include their keys.
            Guard::Holder(_) => {
                let members = self.own(ObjectType::OrgMember);
                let may = |permission| decide(who, permission, &members) == Decision::Allowed;
                match (permission, may(Permission::ReadAcls)) {
                    (_, false) => Decision::NotVisible,
                    (Permission::Read, true) => Decision::Allowed,
                    (other, true) if may(other) => Decision::Allowed,
                    _ => Decision::Forbidden,
                }
            }
            Guard::Acl => {
                let on = self.body.and_then(acl::object);
                let target = on.and_then(|(object, id)| target_of(view, self.org, object, id));
                target.map_or(Decision::NotVisible, |target| decide_of_acls(who, permission, &target))
            }
        }
    }

    fn own(&self, object: ObjectType) -> Target {
        match self.project.filter(|_| object != ObjectType::Project) {
            Some(project) => Target::in_project(object, self.id, project, self.org),
            None if object.is_of_organization() => Target::of_organization(object, self.org),
            None => Target::in_organization(object, self.id, self.org),
        }
    }
}

/// Decides on a project alone.
pub(crate) fn decide_of_project(who: &Principal, permission: Permission, project: Uuid) -> Decision {
    decide(who, permission, &project_of(project, who.org))
}

fn project_of(project: Uuid, org: OrgId) -> Target {
    Target::in_organization(ObjectType::Project, Some(project), org)
}

/// Returns the target for rows of project logs or prompts. Other rows have the target of their record.
pub(crate) fn target_of_rows(object: ObjectType, project: Uuid, org: OrgId) -> Target {
    let id = (object == ObjectType::ProjectLog).then_some(project);
    Target::in_project(object, id, project, org)
}

/// Decides on a grant. Readers of the grants on its object can see it.
pub fn decide_of_acls(who: &Principal, permission: Permission, target: &Target) -> Decision {
    let permission = match permission {
        Permission::Create => Permission::CreateAcls,
        Permission::Update => Permission::UpdateAcls,
        Permission::Delete => Permission::DeleteAcls,
        other_than_read if other_than_read != Permission::Read => return Decision::NotVisible,
        _ => Permission::ReadAcls,
    };
    match decide(who, permission, target) {
        Decision::Allowed => Decision::Allowed,
        _ if decide(who, Permission::ReadAcls, target) == Decision::Allowed => Decision::Forbidden,
        // The creator of a grant names its object, so `Forbidden` reveals nothing. Requests to read or delete a grant
        // name only the grant.
        Decision::Forbidden if permission == Permission::CreateAcls => Decision::Forbidden,
        _ => Decision::NotVisible,
    }
}

/// Returns the target of a grant with its containers; `None` if the organization has no such object.
pub fn target_of(view: &CatalogView<'_>, org: OrgId, object: ObjectType, id: Uuid) -> Option<Target> {
    if object.is_of_organization() {
        return (id == org.0).then(|| Target::of_organization(object, org));
    }
    let kind = kinds::of_object_type(object)?;
    let record = known(view, kind, org, id)?;
    if object == ObjectType::ProjectLog {
        return Some(target_of_rows(object, id, org));
    }
    let project = kind.project_of(&record);
    Some(About { kind, org, id: Some(id), project, body: None }.own(object))
}

/// Returns whether the object does not exist; false for object types that this version does not know.
pub(crate) fn is_gone(view: &CatalogView<'_>, org: OrgId, object: ObjectType, id: Uuid) -> bool {
    let is_known = object.is_of_organization() || kinds::of_object_type(object).is_some();
    is_known && target_of(view, org, object, id).is_none()
}

/// Returns whether no record of the kind has the id.
pub(crate) fn is_no_record(view: &CatalogView<'_>, kind: &Kind, id: Uuid) -> bool {
    view.get(kind.record, id).is_none_or(|record| !kind.lives(view, record))
}

/// Returns the organization of an object. An organization is its own.
pub(crate) fn org_of(view: &CatalogView<'_>, object: ObjectType, id: Uuid) -> Option<OrgId> {
    if object.is_of_organization() {
        return view.get(RecordKind::ORGANIZATION, id).map(|org| OrgId(org.id));
    }
    let kind = kinds::of_object_type(object)?;
    view.get(kind.record, id)?.org
}

/// Returns the record, if it exists in the organization. System records exist in every organization.
pub fn known(view: &CatalogView<'_>, kind: &Kind, org: OrgId, id: Uuid) -> Option<Arc<Record>> {
    let stored = view.get(kind.record, id).filter(|record| record.org == Some(org) && kind.lives(view, record));
    stored.cloned().or_else(|| kind.builtin_of(id).map(Arc::new))
}
