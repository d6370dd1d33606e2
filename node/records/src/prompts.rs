//! Rows and slugs of prompts and functions.
//!
//! The rows of a project are one object with the content of its prompts. A record without a row belongs to an
//! unfinished create or delete. It is not visible, and a new create of the slug continues with its id.

use assay_node_auth::{Permission, Principal};
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, Record};
use assay_storage_model::{ObjectKey, ObjectKind, OrgId};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::audit::By;
use crate::authz::CatalogView;
use crate::commit::unexpected;
use crate::draft::{self, Body};
use crate::error::RecordsError;
use crate::kinds::prompt::{FUNCTION_FIELDS, PROMPT_FIELDS};
use crate::kinds::{PROJECT, PROMPT};
use crate::list::ListRequest;
use crate::patch::put;
use crate::read::visible;
use crate::{ObjectHome, Records, edge};

/// Upper bound of attempts. An attempt fails only if another writer succeeded.
const ATTEMPTS_MAX: usize = 8;

/// Type that a client requests. Both share one store, because a prompt is also a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition {
    Prompt,
    Function,
}

impl Definition {
    pub fn name(self) -> &'static str {
        match self {
            Definition::Prompt => "prompt",
            Definition::Function => "function",
        }
    }

    /// Validates the fields of a new definition.
    pub fn created(self, sent: Map<String, Value>) -> Result<Map<String, Value>, RecordsError> {
        draft::taken(self.fields(), sent)
    }

    /// Validates the fields of a patch.
    pub fn changes(self, sent: Map<String, Value>) -> Result<Map<String, Value>, RecordsError> {
        draft::changes(self.fields(), sent)
    }

    pub(crate) fn fields(self) -> &'static [crate::kind::Field] {
        match self {
            Definition::Prompt => PROMPT_FIELDS,
            Definition::Function => FUNCTION_FIELDS,
        }
    }
}

/// Reserved slug with its id and the location of its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptPlace {
    pub id: Uuid,
    pub slug: String,
    pub home: ObjectHome,
    /// Revision of the record, which increases with each change.
    pub revision: u64,
}

impl Records {
    /// Returns the prompt of this id, if the caller has the permission.
    pub async fn prompt(&self, who: &Principal, id: Uuid, permission: Permission) -> Result<PromptPlace, RecordsError> {
        self.catalog.fresh().await?;
        let seen = self.catalog.look(|view| visible(view, who, &PROMPT, id, permission)).await?;
        self.place_of(&seen.record)
    }

    /// Returns one page of the prompts that the caller may read, newest first.
    pub async fn prompts(&self, who: &Principal, request: &ListRequest) -> Result<Vec<PromptPlace>, RecordsError> {
        self.listed(who, &PROMPT, request).await?.iter().map(|record| self.place_of(record)).collect()
    }

    /// Reserves a slug in the project, or finds its owner. The flag tells whether it existed before.
    pub async fn take_slug(
        &self,
        who: &Principal,
        project: Uuid,
        slug: &str,
    ) -> Result<(PromptPlace, bool), RecordsError> {
        let body =
            Body::from_iter([("project_id".to_owned(), project.to_string().into()), ("slug".to_owned(), slug.into())]);
        let created = self.create(who, &PROMPT, body).await?;
        let id = created.object.as_object().and_then(|object| draft::id_in(object, "id"));
        let id = id.ok_or_else(|| RecordsError::Internal("a new prompt has no id".into()))?;
        let gone = || RecordsError::NotFound(format!("prompt {id} was deleted during the request"));
        let record = self.catalog.look(|view| view.get(PROMPT.record, id).cloned().ok_or_else(gone)).await?;
        Ok((self.place_of(&record)?, created.found_existing))
    }

    /// Reserves a slug for an id from a client that may write all prompts of the project.
    pub async fn take_slug_as(&self, home: &ObjectHome, id: Uuid, slug: &str) -> Result<PromptPlace, RecordsError> {
        let (project, key) = (home.project_id, PROMPT.name_key(home.project_id, slug));
        for _ in 0..ATTEMPTS_MAX {
            let (there, named) =
                self.catalog.peek(|view| (view.get(PROMPT.record, id).cloned(), view.find(&key).map(|other| other.id)));
            if let Some(other) = named.filter(|other| *other != id) {
                return Err(RecordsError::BadRequest(format!("the slug `{slug}` belongs to {other}")));
            }
            let command = match &there {
                Some(record) if PROMPT.home_of(record) != Some(project) => {
                    return Err(RecordsError::BadRequest(format!("the id {id} is already in use in another place")));
                }
                Some(record) if named.is_some() => return self.place_of(record),
                Some(record) => {
                    let mut body = draft::read(record)?;
                    body.insert("slug".into(), slug.into());
                    put(&PROMPT, record, &body)
                }
                None => {
                    self.check_record_count(PROMPT.record, home.org).map(|()| new_place(home.org, project, id, slug))?
                }
            };
            match self.catalog.propose_one(By::System, CatalogCommand::Put(command)).await? {
                CatalogOutcome::Put { .. } | CatalogOutcome::Taken { .. } | CatalogOutcome::Stale { .. } => {
                    self.catalog.fence().await?;
                }
                other => return Err(unexpected(&other)),
            }
        }
        Err(RecordsError::Busy("concurrent changes to this slug prevented the request: try again".into()))
    }

    /// Changes the slug of a prompt.
    pub async fn change_slug(&self, who: &Principal, id: Uuid, slug: &str) -> Result<(), RecordsError> {
        let body = Body::from_iter([("slug".to_owned(), Value::from(slug))]);
        self.patch(who, &PROMPT, id, body).await.map(drop)
    }

    /// Increments the revision of an unchanged record, so that an id without a row can be used again.
    pub async fn renew_prompt(&self, place: &PromptPlace) -> Result<(), RecordsError> {
        let record = self.catalog.peek(|view| view.get(PROMPT.record, place.id).cloned());
        let Some(record) = record.filter(|record| record.revision == place.revision) else { return Ok(()) };
        match self
            .catalog
            .propose_one(By::System, CatalogCommand::Put(put(&PROMPT, &record, &draft::read(&record)?)))
            .await?
        {
            CatalogOutcome::Put { .. } | CatalogOutcome::Stale { .. } => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Deletes the record of a prompt whose row is gone, which frees the slug.
    pub async fn leave_slug(&self, who: &Principal, id: Uuid) -> Result<(), RecordsError> {
        self.catalog.delete_record(By::Caller(who), PROMPT.record, id).await
    }

    /// Returns whether the prompt still exists, according to the current state of the cluster.
    pub async fn has_prompt(&self, place: &PromptPlace) -> Result<bool, RecordsError> {
        self.catalog.fresh().await?;
        let there = |record: &std::sync::Arc<Record>, view: &CatalogView<'_>| PROMPT.lives(view, record);
        Ok(self.catalog.peek(|view| view.get(PROMPT.record, place.id).is_some_and(|record| there(record, view))))
    }

    /// Returns the prompt of an id in a row of a client; `None` if it does not belong to the project.
    pub fn place_in(&self, home: &ObjectHome, id: Uuid) -> Option<PromptPlace> {
        let record = self.catalog.peek(|view| view.get(PROMPT.record, id).cloned())?;
        let place = self.place_of(&record).ok()?;
        (place.home.project_id == home.project_id).then_some(place)
    }

    /// Returns the projects of an organization whose prompts the caller may read.
    pub async fn projects_with_prompts(&self, who: &Principal, org: OrgId) -> Result<Vec<ObjectHome>, RecordsError> {
        self.catalog.fresh().await?;
        let there = self.catalog.look(|view| {
            let missing = || crate::authz::no_organization(&org.to_string());
            crate::authz::within(view, who, org)?.ok_or_else(missing)
        });
        let there = there.await?;
        let mut homes = Vec::new();
        for project in self.listed(&there, &PROJECT, &ListRequest::default()).await? {
            match self.object(&there, ObjectKind::ProjectPrompts, project.id, Permission::Read).await {
                Ok(home) => homes.push(home),
                Err(RecordsError::NotFound(_) | RecordsError::Forbidden(_)) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(homes)
    }

    fn place_of(&self, record: &Record) -> Result<PromptPlace, RecordsError> {
        let body = draft::read(record)?;
        let unreadable = || RecordsError::Internal(format!("prompt {} has no project", record.id));
        let project_id = PROMPT.home_of(record).ok_or_else(unreadable)?;
        let org = record.org.ok_or_else(unreadable)?;
        let slug = body.get("slug").and_then(Value::as_str).ok_or_else(unreadable)?.to_owned();
        let key = ObjectKey::new(org, ObjectKind::ProjectPrompts, project_id);
        let home = ObjectHome { key, org, project_id, shard: self.catalog.cluster.locate(&key) };
        Ok(PromptPlace { id: record.id, slug, home, revision: record.revision })
    }
}

fn new_place(org: OrgId, project: Uuid, id: Uuid, slug: &str) -> PutRecord {
    let body = Body::from_iter([
        ("project_id".to_owned(), Value::from(project.to_string())),
        ("slug".to_owned(), slug.into()),
    ]);
    PutRecord {
        kind: PROMPT.record,
        id,
        org: Some(org),
        expect: Expect::Absent,
        keys: vec![PROMPT.name_key(project, slug)],
        body: Value::Object(body).to_string().into_bytes(),
        at: edge::now_micros(),
    }
}
