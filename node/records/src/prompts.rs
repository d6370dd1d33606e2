//! Rows and slugs of prompts and functions. The rows of a project are one object, with the content of its prompts. A
//! record without a row belongs to an unfinished create or delete: it is not visible, and a new create of the slug
//! continues with its id.

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

/// Each loses only to another writer that won.
const ATTEMPTS_MAX: usize = 8;

/// Which of the two a client asks for. They are in one place: a prompt is a function too.
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

    /// The fields that a new one has, checked.
    pub fn created(self, sent: Map<String, Value>) -> Result<Map<String, Value>, RecordsError> {
        draft::taken(self.fields(), sent)
    }

    /// The fields that a patch changes, checked.
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

/// A slug that is taken, by which id, and where its row is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptPlace {
    pub id: Uuid,
    pub slug: String,
    pub home: ObjectHome,
    /// Rises with each change of what is said here.
    pub revision: u64,
}

impl Records {
    /// The one of this id, if the caller may do this to it.
    pub async fn prompt(&self, who: &Principal, id: Uuid, permission: Permission) -> Result<PromptPlace, RecordsError> {
        self.catalog.fresh().await?;
        let seen = self.catalog.look(|view| visible(view, who, &PROMPT, id, permission)).await?;
        self.place_of(&seen.record)
    }

    /// One page of those that the caller may read, newest first.
    pub async fn prompts(&self, who: &Principal, request: &ListRequest) -> Result<Vec<PromptPlace>, RecordsError> {
        self.listed(who, &PROMPT, request).await?.iter().map(|record| self.place_of(record)).collect()
    }

    /// Takes the slug in the project, or finds who has it; whether that was there before comes with it.
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

    /// The same for an id that the client chose. Whoever may write all prompts of the project has been asked before.
    pub async fn take_slug_as(&self, home: &ObjectHome, id: Uuid, slug: &str) -> Result<PromptPlace, RecordsError> {
        let project = home.project_id;
        let key = PROMPT.name_key(project, slug);
        for _ in 0..ATTEMPTS_MAX {
            let (there, named) =
                self.catalog.peek(|view| (view.get(PROMPT.record, id).cloned(), view.find(&key).map(|other| other.id)));
            if let Some(other) = named.filter(|other| *other != id) {
                let said = format!("the slug `{slug}` belongs to {other}");
                return Err(RecordsError::BadRequest(said));
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
                None => new_place(home.org, project, id, slug),
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

    /// Gives it another slug.
    pub async fn change_slug(&self, who: &Principal, id: Uuid, slug: &str) -> Result<(), RecordsError> {
        let body = Body::from_iter([("slug".to_owned(), Value::from(slug))]);
        self.patch(who, &PROMPT, id, body).await.map(drop)
    }

    /// A new revision of what nobody changed since: for who goes on with an id whose row is gone.
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

    /// Its row is gone: the slug is free again.
    pub async fn leave_slug(&self, who: &Principal, id: Uuid) -> Result<(), RecordsError> {
        self.catalog.delete_record(By::Caller(who), PROMPT.record, id).await
    }

    /// Whether it is there still, by what others have been told too.
    pub async fn has_prompt(&self, place: &PromptPlace) -> Result<bool, RecordsError> {
        self.catalog.fresh().await?;
        let there = |record: &std::sync::Arc<Record>, view: &CatalogView<'_>| PROMPT.lives(view, record);
        Ok(self.catalog.peek(|view| view.get(PROMPT.record, place.id).is_some_and(|record| there(record, view))))
    }

    /// The project's prompts that rows of clients name by their ids; none where an id is not one of its.
    pub fn place_in(&self, home: &ObjectHome, id: Uuid) -> Option<PromptPlace> {
        let record = self.catalog.peek(|view| view.get(PROMPT.record, id).cloned())?;
        let place = self.place_of(&record).ok()?;
        (place.home.project_id == home.project_id).then_some(place)
    }

    /// The projects whose prompts the caller may read, of an organization that is named by its id.
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
