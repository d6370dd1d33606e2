//! Organizations as their members see and change them. Who makes one is an administrator (`admin`).

use std::sync::Arc;

use assay_node_auth::{Decision, ObjectType, Permission, Principal, Target, decide};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, Record, RecordKind};
use assay_storage_model::event::format_micros;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::audit::By;
use crate::authz::{own_organizations, within};
use crate::commit::unexpected;
use crate::draft::{self, Body};
use crate::error::RecordsError;
use crate::kinds::organization::{self, FIELDS};
use crate::list::{ListRequest, one_page};
use crate::shape::take;
use crate::{Records, edge};

/// Each loses only to another writer that won.
const ATTEMPTS_MAX: usize = 8;

impl Records {
    /// Returns the organization of this name, whoever asks.
    pub async fn organization_named(&self, name: &str) -> Result<OrgId, RecordsError> {
        self.catalog.fence().await?;
        let org = self.catalog.peek(|state| state.find(&organization::name_key(name)).map(|org| OrgId(org.id)));
        org.ok_or_else(|| RecordsError::NotFound(format!("there is no organization `{name}`")))
    }

    /// Those that the caller's credential speaks for.
    pub async fn list_organizations(&self, who: &Principal, request: &ListRequest) -> Result<Vec<Value>, RecordsError> {
        self.catalog.fresh().await?;
        let found = self
            .catalog
            .look(|view| {
                let mut found: Vec<Arc<Record>> = own_organizations(view, who)?;
                found.retain(|org| request.ids.is_empty() || request.ids.contains(&org.id));
                if let Some(name) = request.organization() {
                    let key = organization::name_key(name);
                    found.retain(|org| org.keys.first() == Some(&key));
                }
                one_page(view, RecordKind::ORGANIZATION, found, request)
            })
            .await?;
        found.iter().map(|record| shown(record, &draft::read(record)?)).collect()
    }

    pub async fn organization(&self, who: &Principal, id: Uuid) -> Result<Value, RecordsError> {
        self.catalog.fresh().await?;
        let record = self.catalog.look(|view| Ok(Arc::clone(&own(view, who, id)?.0))).await?;
        shown(&record, &draft::read(&record)?)
    }

    pub async fn patch_organization(
        &self,
        who: &Principal,
        id: Uuid,
        body: Map<String, Value>,
    ) -> Result<Value, RecordsError> {
        self.catalog.fresh().await?;
        for _ in 0..ATTEMPTS_MAX {
            let (record, there) = self
                .catalog
                .look(|view| {
                    let (record, there) = own(view, who, id)?;
                    let target = Target::of_organization(ObjectType::Organization, there.org);
                    if decide(&there, Permission::Update, &target) != Decision::Allowed {
                        let said = "this credential is not granted `update` on the organization";
                        return Err(RecordsError::Forbidden(said.into()));
                    }
                    Ok((record, there))
                })
                .await?;
            let stored = draft::read(&record)?;
            let mut changed = stored.clone();
            for (field, shape) in FIELDS {
                if let Some(value) = body.get(*field).filter(|value| !value.is_null()) {
                    changed.insert((*field).to_owned(), take(shape, field, value.clone())?);
                }
            }
            if changed == stored {
                return shown(&record, &stored);
            }
            match self.catalog.propose_one(By::Caller(&there), CatalogCommand::Put(put(&record, &changed))).await? {
                CatalogOutcome::Put { .. } => return shown(&record, &changed),
                CatalogOutcome::Taken { key, .. } => {
                    return Err(RecordsError::Taken(format!("another organization has the name `{}`", key.name)));
                }
                CatalogOutcome::Stale { .. } => self.catalog.fence().await?,
                other => return Err(unexpected(&other)),
            }
        }
        Err(RecordsError::Busy("others keep changing this organization: try again".into()))
    }
}

fn own(
    view: &crate::authz::CatalogView<'_>,
    who: &Principal,
    id: Uuid,
) -> Result<(Arc<Record>, Principal), RecordsError> {
    let missing = || RecordsError::NotFound(format!("no organization with the id {id} is visible to this credential"));
    let record = view.get(RecordKind::ORGANIZATION, id).ok_or_else(missing)?;
    let there = within(view, who, OrgId(id))?.ok_or_else(missing)?;
    Ok((Arc::clone(record), there))
}

fn put(record: &Record, changed: &Body) -> PutRecord {
    PutRecord {
        kind: record.kind,
        id: record.id,
        org: None,
        expect: Expect::Revision(record.revision),
        keys: vec![organization::name_key(&draft::text_in(changed, "name"))],
        body: Value::Object(changed.clone()).to_string().into_bytes(),
        at: edge::now_micros(),
    }
}

fn shown(record: &Record, body: &Body) -> Result<Value, RecordsError> {
    let mut object = Body::from_iter([("id".to_owned(), Value::from(record.id.to_string()))]);
    for (field, _) in FIELDS {
        object.insert((*field).to_owned(), body.get(*field).cloned().unwrap_or(Value::Null));
    }
    object.insert("created".into(), format_micros(record.created).into());
    Ok(Value::Object(object))
}
