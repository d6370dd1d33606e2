//! Reads of one record by id or name, and resolution of objects of rows.

use std::sync::Arc;

use assay_node_auth::{Decision, ObjectType, Permission, Principal, Target, decide};
use assay_storage_model::catalog::Record;
use assay_storage_model::{ObjectKey, ObjectKind, OrgId};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::authz::CatalogView;
use crate::authz::guard::{About, target_of_rows};
use crate::authz::{still_known, within};
use crate::draft::{self, Body, Frame};
use crate::error::RecordsError;
use crate::kind::{Guard, Kind};
use crate::kinds::{self, PROJECT, organization};
use crate::{Created, ObjectHome, ProjectRef, Records};

impl Records {
    pub async fn get(&self, who: &Principal, kind: &'static Kind, id: Uuid) -> Result<Value, RecordsError> {
        self.catalog.fresh().await?;
        let record = self.catalog.look(|view| visible(view, who, kind, id, Permission::Read)).await?.record;
        self.answer(kind, &record)
    }

    /// Returns the object of rows with this id. The id of the logs of a project is that of the project.
    pub async fn object(
        &self,
        who: &Principal,
        kind: ObjectKind,
        id: Uuid,
        permission: Permission,
    ) -> Result<ObjectHome, RecordsError> {
        let Some(of) = kinds::of_object(kind) else {
            return Err(RecordsError::NotFound(format!(
                "no {} with the id {id} is visible to this credential",
                kind.name()
            )));
        };
        self.catalog
            .look(|view| {
                let VisibleRecord { record, who } = rows_of(view, who, of, kind, id, permission)?;
                let project = of.project_of(&record);
                let project_id =
                    project.ok_or_else(|| RecordsError::Internal(format!("{} {id} is in no project", of.name)))?;
                let key = ObjectKey::new(who.org, kind, id);
                Ok(ObjectHome { key, org: who.org, project_id, shard: self.catalog.cluster.locate(&key) })
            })
            .await
    }

    /// Returns the project of a record, for accounting by project; `None` for a record of another organization.
    ///
    /// The lookup uses the local copy of the catalog without a fence and without a permission check.
    pub fn project_at(&self, org: OrgId, kind: &str, id: Uuid) -> Option<Uuid> {
        let kind = kinds::in_project(kind)?;
        self.catalog.peek(|view| {
            let record =
                view.get(kind.record, id).filter(|record| record.org == Some(org) && kind.lives(view, record))?;
            kind.project_of(record)
        })
    }

    /// Returns whether the record of an object exists, without a permission check, so that rows may be written to it.
    pub async fn has_record(&self, object: &ObjectKey) -> Result<bool, RecordsError> {
        self.catalog.fence().await?;
        let Some(kind) = kinds::of_object(object.kind) else { return Ok(false) };
        Ok(self.catalog.peek(|view| {
            let record = view.get(kind.record, object.id);
            record.is_some_and(|record| record.org == Some(object.org) && kind.lives(view, record))
        }))
    }

    /// Checks that objects and the credential still existed at the time of this call, after rows were read or written.
    ///
    /// The local copy of the catalog may be older than responses of other nodes, and deleted objects must not reappear.
    /// A single node needs no check.
    pub async fn still(
        &self,
        who: &Principal,
        objects: &[ObjectKey],
        permission: Permission,
    ) -> Result<(), RecordsError> {
        if self.catalog.cluster.is_alone() {
            return Ok(());
        }
        self.catalog.fence().await?;
        self.catalog.peek(|view| {
            objects.iter().try_for_each(|object| {
                let missing = || RecordsError::Internal(format!("the object {object} has no record"));
                let kind = kinds::of_object(object.kind).ok_or_else(missing)?;
                rows_of(view, who, kind, object.kind, object.id, permission).map(drop)
            })
        })
    }

    /// Returns the object of the audit log of an organization, for its readers.
    pub async fn audit_log(&self, who: &Principal, org: OrgId) -> Result<ObjectHome, RecordsError> {
        self.catalog.fresh().await?;
        self.catalog
            .look(|view| {
                let missing = || crate::authz::no_organization(&org.to_string());
                let there = within(view, who, org)?.ok_or_else(missing)?;
                match decide(&there, Permission::Read, &Target::of_organization(ObjectType::OrgAuditLogs, org)) {
                    Decision::Allowed => {}
                    _ => {
                        let said = "this credential is not granted `read` on the audit log of the organization";
                        return Err(RecordsError::Forbidden(said.into()));
                    }
                }
                let key = ObjectKey::new(org, ObjectKind::AuditLog, org.0);
                Ok(ObjectHome { key, org, project_id: org.0, shard: self.catalog.cluster.locate(&key) })
            })
            .await
    }

    /// Returns a project by its name; `create` creates a missing one.
    pub async fn project_by_name(&self, who: &Principal, name: &str, create: bool) -> Result<ProjectRef, RecordsError> {
        let key = PROJECT.name_key(who.org.0, name);
        let missing = || RecordsError::NotFound(format!("no project `{name}` is visible to this credential"));
        let look = |view: &CatalogView<'_>| {
            let found = view.find(&key).ok_or_else(missing)?;
            visible(view, who, &PROJECT, found.id, Permission::Read).map(|seen| seen.record.id)
        };
        let reference = |id, made| ProjectRef { id, name: name.to_owned(), org: who.org, made };
        // For a create, a local miss needs no fence, because the write decides.
        let found = if create { self.catalog.peek(look) } else { self.catalog.look(look).await };
        match found {
            Err(RecordsError::NotFound(_)) if create => {
                let body = Map::from_iter([("name".to_owned(), Value::from(name))]);
                let Created { object, found_existing, .. } = self.create(who, &PROJECT, body).await?;
                let id = object.as_object().and_then(|object| draft::id_in(object, "id"));
                let id = id.ok_or_else(|| RecordsError::Internal("a new project has no id".into()))?;
                Ok(reference(id, !found_existing))
            }
            found => found.map(|id| reference(id, false)),
        }
    }

    /// Returns the organization of this name, without a permission check.
    pub async fn organization_named(&self, name: &str) -> Result<OrgId, RecordsError> {
        self.catalog.fence().await?;
        let org = self.catalog.peek(|state| state.find(&organization::name_key(name)).map(|org| OrgId(org.id)));
        org.ok_or_else(|| RecordsError::NotFound(format!("no organization is named `{name}`")))
    }

    /// Returns the response for a stored record.
    pub fn answer(&self, kind: &Kind, record: &Record) -> Result<Value, RecordsError> {
        Ok(self.joined(kind, draft::shown(kind, &Frame::of(record), draft::read(record)?)))
    }

    /// Adds fields that come from other records.
    pub(crate) fn joined(&self, kind: &Kind, mut object: Body) -> Value {
        if let Some(join) = kind.join {
            join(&self.catalog.cluster.catalog().read(), &mut object);
        }
        Value::Object(object)
    }
}

/// Returns the record of an object of rows, if the principal has this permission on the rows. Logs and prompts of a
/// project have separate grants.
pub(crate) fn rows_of(
    view: &CatalogView<'_>,
    who: &Principal,
    kind: &'static Kind,
    rows: ObjectKind,
    id: Uuid,
    permission: Permission,
) -> Result<VisibleRecord, RecordsError> {
    let object = match rows {
        ObjectKind::ProjectLogs => ObjectType::ProjectLog,
        ObjectKind::ProjectPrompts => ObjectType::Prompt,
        // Creating rows changes the object that contains them.
        _ if permission == Permission::Create => return visible(view, who, kind, id, Permission::Update),
        _ => return visible(view, who, kind, id, permission),
    };
    still_known(view, who)?;
    let missing = || RecordsError::NotFound(format!("no {} with the id {id} is visible to this credential", kind.name));
    let record = view.get(kind.record, id).filter(|record| kind.lives(view, record)).ok_or_else(missing)?;
    let org = record.org.ok_or_else(missing)?;
    let who = within(view, who, org)?.ok_or_else(missing)?;
    match decide(&who, permission, &target_of_rows(object, id, org)) {
        Decision::Allowed => Ok(VisibleRecord { record: Arc::clone(record), who }),
        Decision::Forbidden => Err(forbidden(kind, permission)),
        // A reader of the project may learn that its logs exist.
        Decision::NotVisible => match decided(view, &who, kind, record, Permission::Read)? {
            Decision::Allowed => Err(forbidden(kind, permission)),
            _ => Err(missing()),
        },
    }
}

/// Record, and the principal in its organization.
#[derive(Debug)]
pub struct VisibleRecord {
    pub record: Arc<Record>,
    pub who: Principal,
}

/// Returns the record, if it exists and the principal has the permission.
///
/// Missing and unreadable records give the same error. A deleted credential is refused first, so that it reveals
/// nothing.
pub fn visible(
    view: &CatalogView<'_>,
    who: &Principal,
    kind: &Kind,
    id: Uuid,
    permission: Permission,
) -> Result<VisibleRecord, RecordsError> {
    still_known(view, who)?;
    let missing = || RecordsError::NotFound(format!("no {} with the id {id} is visible to this credential", kind.name));
    if let Some(record) = kind.builtin_of(id) {
        let seen = VisibleRecord { record: Arc::new(record), who: who.clone() };
        return (permission == Permission::Read).then_some(seen).ok_or_else(|| never_changes(kind));
    }
    let record = view.get(kind.record, id).filter(|record| kind.lives(view, record)).ok_or_else(missing)?;
    let org = record.org.ok_or_else(missing)?;
    let who = within(view, who, org)?.ok_or_else(missing)?;
    match decided(view, &who, kind, record, permission)? {
        Decision::Allowed => Ok(VisibleRecord { record: Arc::clone(record), who }),
        Decision::Forbidden => Err(forbidden(kind, permission)),
        Decision::NotVisible => Err(missing()),
    }
}

pub(crate) fn never_changes(kind: &Kind) -> RecordsError {
    RecordsError::Forbidden(format!("this {} belongs to the system and cannot be changed", kind.name))
}

pub(crate) fn forbidden(kind: &Kind, permission: Permission) -> RecordsError {
    let (name, what) = (kind.name, permission.word());
    RecordsError::Forbidden(format!("this credential is not granted `{what}` on this {name}"))
}

/// Decides on an action on a record of the principal's organization.
pub(crate) fn decided(
    view: &CatalogView<'_>,
    who: &Principal,
    kind: &Kind,
    record: &Record,
    permission: Permission,
) -> Result<Decision, RecordsError> {
    let body = if matches!(kind.guard, Guard::Holder(_) | Guard::Acl | Guard::Object) {
        Some(draft::read(record)?)
    } else {
        None
    };
    let (id, project) = (Some(record.id), kind.project_of(record));
    let about = About { kind, org: who.org, id, project, body: body.as_ref() };
    Ok(about.decide(view, who, permission))
}
