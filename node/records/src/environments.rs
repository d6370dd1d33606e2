//! Versions of prompts and datasets that environments use.
//!
//! Requests name an environment by its slug, which may change. Records contain its id.

use std::sync::Arc;

use assay_node_auth::{ObjectType, Permission, Principal};
use assay_storage_catalog::State;
use assay_storage_model::catalog::{Record, RecordKind};
use assay_storage_model::event::format_micros;
use assay_storage_model::{OrgId, Xact};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::audit::By;
use crate::authz::CatalogView;
use crate::authz::guard;
use crate::draft::{self, Body};
use crate::error::RecordsError;
use crate::kind::Kind;
use crate::kinds::{DATASET, ENVIRONMENT, ENVIRONMENT_OBJECT, PROMPT};
use crate::read::visible;
use crate::{Created, Records};

/// Prompt or dataset that a request path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    object: ObjectType,
    id: Uuid,
}

impl Pinned {
    /// Parses `object_type`, and combines it with `object_id`.
    pub fn of(object: &str, id: Uuid) -> Result<Pinned, RecordsError> {
        match object {
            "dataset" => Ok(Pinned { object: ObjectType::Dataset, id }),
            "prompt" => Ok(Pinned { object: ObjectType::Prompt, id }),
            _ => Err(RecordsError::BadRequest("`object_type` has to be one of `dataset`, `prompt`".into())),
        }
    }

    fn kind(&self) -> &'static Kind {
        if self.object == ObjectType::Prompt { &PROMPT } else { &DATASET }
    }
}

impl Records {
    /// Returns the pinned versions of an object in all environments.
    pub async fn pins(&self, who: &Principal, of: &Pinned) -> Result<Vec<Value>, RecordsError> {
        self.catalog.fresh().await?;
        self.catalog
            .look(|view| {
                let org = org_of(view, who, of, Permission::Read)?;
                let environments = view.all(ENVIRONMENT.record).filter(|record| record.org == Some(org));
                let mut pins: Vec<_> = environments
                    .filter_map(|environment| {
                        let slug = draft::text_in(&draft::read(environment).ok()?, "slug");
                        Some((pin(view, org, of, environment.id)?, slug))
                    })
                    .collect();
                pins.sort_by_key(|(pin, _)| (std::cmp::Reverse(pin.created), pin.id));
                pins.iter().map(|(pin, slug)| shown(pin, slug)).collect()
            })
            .await
    }

    pub async fn pin(&self, who: &Principal, of: &Pinned, slug: &str) -> Result<Value, RecordsError> {
        self.catalog.fresh().await?;
        let (record, slug) = self.catalog.look(|view| pinned(view, who, of, slug, Permission::Read)).await?;
        shown(&record, &slug)
    }

    /// Pins a version. An existing pin is an error.
    pub async fn add_pin(&self, who: &Principal, of: &Pinned, mut body: Body) -> Result<Value, RecordsError> {
        let missing = || RecordsError::BadRequest("`environment_slug` is missing".into());
        let slug = draft::text_of(&body, "environment_slug")?.ok_or_else(missing)?.to_owned();
        self.put_pin(who, of, &slug, &mut body, false).await
    }

    /// Pins a version, or replaces the pinned version.
    pub async fn set_pin(
        &self,
        who: &Principal,
        of: &Pinned,
        slug: &str,
        mut body: Body,
    ) -> Result<Value, RecordsError> {
        self.put_pin(who, of, slug, &mut body, true).await
    }

    async fn put_pin(
        &self,
        who: &Principal,
        of: &Pinned,
        slug: &str,
        body: &mut Body,
        replaces: bool,
    ) -> Result<Value, RecordsError> {
        self.catalog.fresh().await?;
        let environment = self
            .catalog
            .look(|view| {
                let org = org_of(view, who, of, Permission::Update)?;
                environment(view, org, slug)
            })
            .await?;
        let version = body.remove("object_version").unwrap_or(Value::Null);
        let sent = Body::from_iter([
            ("object_type".to_owned(), Value::from(of.object.word())),
            ("object_id".to_owned(), of.id.to_string().into()),
            ("environment_id".to_owned(), environment.to_string().into()),
            ("object_version".to_owned(), version),
        ]);
        let object = if replaces {
            self.replace(who, &ENVIRONMENT_OBJECT, sent).await?
        } else {
            let Created { object, found_existing, .. } = self.create(who, &ENVIRONMENT_OBJECT, sent).await?;
            if found_existing {
                let said = format!("the environment `{slug}` already uses a version of it: change that with PUT");
                return Err(RecordsError::BadRequest(said));
            }
            object
        };
        let id = object.as_object().and_then(|object| draft::id_in(object, "id"));
        let record = id.and_then(|id| self.catalog.peek(|view| view.get(ENVIRONMENT_OBJECT.record, id).cloned()));
        match record {
            Some(record) => shown(&record, slug),
            None => Ok(told(object, slug)),
        }
    }

    /// Removes a pin and returns it.
    pub async fn remove_pin(&self, who: &Principal, of: &Pinned, slug: &str) -> Result<Value, RecordsError> {
        self.catalog.fresh().await?;
        let (record, slug) = self.catalog.look(|view| pinned(view, who, of, slug, Permission::Update)).await?;
        self.catalog.delete_record(By::Caller(who), ENVIRONMENT_OBJECT.record, record.id).await?;
        shown(&record, &slug)
    }

    /// Returns the version of a prompt in an environment, for readers of the prompt; `None` if it is not pinned.
    pub fn version_in(&self, org: OrgId, prompt: Uuid, slug: &str) -> Result<Option<Xact>, RecordsError> {
        self.catalog.peek(|view| {
            let of = Pinned { object: ObjectType::Prompt, id: prompt };
            let Ok(environment) = environment(view, org, slug) else { return Ok(None) };
            let Some(record) = pin(view, org, &of, environment) else { return Ok(None) };
            crate::kinds::dataset_snapshot::version(&draft::read(&record)?, "object_version").map(Some)
        })
    }
}

/// Returns the organization of an object, if the principal has the permission.
fn org_of(view: &CatalogView<'_>, who: &Principal, of: &Pinned, permission: Permission) -> Result<OrgId, RecordsError> {
    visible(view, who, of.kind(), of.id, permission).map(|seen| seen.who.org)
}

fn environment(view: &CatalogView<'_>, org: OrgId, slug: &str) -> Result<Uuid, RecordsError> {
    let found = view.find(&ENVIRONMENT.name_key(org.0, slug)).map(|record| record.id);
    found.ok_or_else(|| {
        let slug: String = slug.chars().take(200).collect();
        RecordsError::BadRequest(format!("no environment with the slug `{slug}` exists"))
    })
}

fn pin(state: &State, org: OrgId, of: &Pinned, environment: Uuid) -> Option<Arc<Record>> {
    let body = Body::from_iter([
        ("object_type".to_owned(), Value::from(of.object.word())),
        ("object_id".to_owned(), of.id.to_string().into()),
        ("environment_id".to_owned(), environment.to_string().into()),
    ]);
    state.find(&ENVIRONMENT_OBJECT.key_of(org.0, &body)?).cloned()
}

fn pinned(
    view: &CatalogView<'_>,
    who: &Principal,
    of: &Pinned,
    slug: &str,
    permission: Permission,
) -> Result<(Arc<Record>, String), RecordsError> {
    let org = org_of(view, who, of, permission)?;
    let environment = environment(view, org, slug)?;
    let none = || RecordsError::BadRequest(format!("the environment `{slug}` uses no version of it"));
    Ok((pin(view, org, of, environment).ok_or_else(none)?, slug.to_owned()))
}

fn shown(record: &Record, slug: &str) -> Result<Value, RecordsError> {
    let mut body = draft::read(record)?;
    body.insert("id".into(), record.id.to_string().into());
    body.insert("created".into(), format_micros(record.created).into());
    Ok(told(Value::Object(body), slug))
}

fn told(of: Value, slug: &str) -> Value {
    json!({
        "id": of["id"], "object_type": of["object_type"], "object_id": of["object_id"],
        "object_version": of["object_version"], "environment_slug": slug, "created": of["created"],
    })
}

/// Returns whether the environment of a record no longer exists.
pub(crate) fn has_no_environment(view: &CatalogView<'_>, record: &Record) -> bool {
    let environment = draft::read(record).ok().and_then(|body| draft::id_in(&body, "environment_id"));
    record.kind == RecordKind::ENVIRONMENT_OBJECT
        && environment.is_some_and(|id| guard::is_no_record(view, &ENVIRONMENT, id))
}
