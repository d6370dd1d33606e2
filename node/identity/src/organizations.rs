//! Reads and changes of organizations by their members. Administrators create them (`administration`).

use std::sync::Arc;

use assay_node_auth::{Decision, ObjectType, Permission, Principal, Target, decide};
use assay_node_records::kinds::organization;
use assay_node_records::mechanism::{
    self, Body, By, CatalogView, one_page, own_organizations, text_in, unexpected, within,
};
use assay_node_records::{ListRequest, RecordsError};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, Record, RecordKind};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::Identity;

/// Upper bound of attempts. An attempt fails only if another writer succeeded.
const ATTEMPTS_MAX: usize = 8;

impl Identity {
    /// Returns the organizations of the credential of the caller.
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
        found.iter().map(|record| organization::shown(record, &mechanism::read_body(record)?)).collect()
    }

    /// Returns one organization of the caller.
    pub async fn organization(&self, who: &Principal, id: Uuid) -> Result<Value, RecordsError> {
        self.catalog.fresh().await?;
        let record = self.catalog.look(|view| Ok(Arc::clone(&own(view, who, id)?.0))).await?;
        organization::shown(&record, &mechanism::read_body(&record)?)
    }

    /// Changes an organization, if the principal has the permission.
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
            let stored = mechanism::read_body(&record)?;
            let changed = organization::patched(&stored, &body)?;
            if changed == stored {
                return organization::shown(&record, &stored);
            }
            match self.catalog.propose_one(By::Caller(&there), CatalogCommand::Put(put(&record, &changed))).await? {
                CatalogOutcome::Put { .. } => return organization::shown(&record, &changed),
                CatalogOutcome::Taken { key, .. } => {
                    return Err(RecordsError::Taken(format!("another organization has the name `{}`", key.name)));
                }
                CatalogOutcome::Stale { .. } => self.catalog.fence().await?,
                other => return Err(unexpected(&other)),
            }
        }
        Err(RecordsError::Busy("concurrent changes to this organization prevented the request: try again".into()))
    }
}

fn own(view: &CatalogView<'_>, who: &Principal, id: Uuid) -> Result<(Arc<Record>, Principal), RecordsError> {
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
        keys: vec![organization::name_key(&text_in(changed, "name"))],
        body: Value::Object(changed.clone()).to_string().into_bytes(),
        at: mechanism::now_micros(),
    }
}
