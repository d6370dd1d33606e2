//! One record by its id or name, and the object behind an id that a client names for rows.

use std::sync::Arc;

use assay_node_auth::{Action, Decision, Principal, Target, decide};
use assay_storage_catalog::State;
use assay_storage_model::catalog::Record;
use assay_storage_model::{GroupId, ObjectKey, ObjectKind, OrgId};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::draft::{self, Body, Frame};
use crate::error::RecordsError;
use crate::kind::Kind;
use crate::kinds::{self, PROJECT};
use crate::standing::{key_of, within};
use crate::{Created, ObjectHome, ProjectRef, Records};

impl Records {
    pub async fn get(&self, who: &Principal, kind: &'static Kind, id: Uuid) -> Result<Value, RecordsError> {
        self.fresh().await?;
        let record = self.look(|state| visible(state, who, kind, id, Action::Read)).await?.record;
        self.answer(kind, &record)
    }

    /// The object behind an id that a client names for rows. For a project's logs the id is the project's.
    pub async fn object(
        &self,
        who: &Principal,
        kind: ObjectKind,
        id: Uuid,
        action: Action,
    ) -> Result<ObjectHome, RecordsError> {
        let Some(of) = kinds::of_object(kind) else {
            return Err(RecordsError::NotFound(format!("no {} with the id {id} is visible here", kind.name())));
        };
        self.look(|state| {
            let Seen { record, who } = visible(state, who, of, id, action)?;
            let project = of.project_of(&record);
            let project_id =
                project.ok_or_else(|| RecordsError::Internal(format!("{} {id} is in no project", of.name)))?;
            let key = ObjectKey::new(who.org, kind, id);
            Ok(ObjectHome { key, org: who.org, project_id, shard: self.cluster.locate(&key) })
        })
        .await
    }

    /// Whether the objects that [`Records::object`] found, and the caller's key, stood when this was called, for who has
    /// read or written them meanwhile: what this node's copy of the catalog says may be older than what another node has
    /// said already, and nobody is to see what was gone come back. Alone there are no others.
    pub async fn still(&self, who: &Principal, objects: &[ObjectKey], action: Action) -> Result<(), RecordsError> {
        if self.cluster.is_alone() {
            return Ok(());
        }
        self.cluster.fence(GroupId::CATALOG).await?;
        self.peek(|state| {
            objects.iter().try_for_each(|object| {
                let missing = || RecordsError::Internal(format!("no record stands for the object {object}"));
                let kind = kinds::of_object(object.kind).ok_or_else(missing)?;
                visible(state, who, kind, object.id, action).map(drop)
            })
        })
    }

    /// A project of the principal's organization by its name, made where it is missing if `create` says so.
    pub async fn project_by_name(&self, who: &Principal, name: &str, create: bool) -> Result<ProjectRef, RecordsError> {
        let key = PROJECT.name_key(who.org.0, name);
        let missing = || RecordsError::NotFound(format!("no project `{name}` is visible to this credential"));
        let look = |state: &State| {
            let found = state.find(&key).ok_or_else(missing)?;
            visible(state, who, &PROJECT, found.id, Action::Read).map(|seen| seen.record.id)
        };
        let reference = |id, made| ProjectRef { id, name: name.to_owned(), org: who.org, made };
        // Where it may be made, a local miss needs no fence: the write has the last word.
        let found = if create { self.peek(look) } else { self.look(look).await };
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

    /// A stored record as an answer.
    pub(crate) fn answer(&self, kind: &Kind, record: &Record) -> Result<Value, RecordsError> {
        Ok(self.joined(kind, draft::shown(kind, &Frame::of(record), draft::read(record)?)))
    }

    /// Adds what stands in other records.
    pub(crate) fn joined(&self, kind: &Kind, mut object: Body) -> Value {
        if let Some(join) = kind.join {
            join(&self.cluster.catalog().read(), &mut object);
        }
        Value::Object(object)
    }
}

/// A record, and its reader as they stand in its organization.
#[derive(Debug)]
pub(crate) struct Seen {
    pub record: Arc<Record>,
    pub who: Principal,
}

/// The record, if it is there and the principal may do this to it: unknown and forbidden answer alike. First of all their
/// key has to be there still, so that one that is gone learns of nothing.
pub(crate) fn visible(
    state: &State,
    who: &Principal,
    kind: &Kind,
    id: Uuid,
    action: Action,
) -> Result<Seen, RecordsError> {
    key_of(state, who)?;
    let missing = || RecordsError::NotFound(format!("no {} with the id {id} is visible to this credential", kind.name));
    let record = state.get(kind.record, id).filter(|record| kind.lives(state, record)).ok_or_else(missing)?;
    let org = record.org.ok_or_else(missing)?;
    let who = allowed(state, who, org, action)?.ok_or_else(missing)?;
    Ok(Seen { record: Arc::clone(record), who })
}

/// The principal within the organization, where they may do this there.
pub(crate) fn allowed(
    state: &State,
    who: &Principal,
    org: OrgId,
    action: Action,
) -> Result<Option<Principal>, RecordsError> {
    let there = within(state, who, org)?;
    Ok(there.filter(|who| decide(who, action, &Target { org }) == Decision::Allowed))
}
