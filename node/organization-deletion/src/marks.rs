//! Marks of deleted organizations, which last until nothing of the organization is left.

use assay_node_records::mechanism::{self, By, unexpected};
use assay_node_records::{Records, RecordsError};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, DeleteRecord, Expect, PutRecord, RecordKind};
use serde_json::{Value, json};

/// Deletes an organization by name. Access to it ends at once, and [`crate::OrganizationDeletions`] removes the rest.
///
/// Refuses to delete the last organization, because the next start would found another one.
pub async fn delete_organization(records: &Records, name: &str) -> Result<Value, RecordsError> {
    let org = records.organization_named(name).await?;
    let catalog = records.catalog();
    if catalog.peek(|view| view.all(RecordKind::ORGANIZATION).count()) < 2 {
        let why = format!("`{name}` is the only organization: create another one before you delete it");
        return Err(RecordsError::BadRequest(why));
    }
    let mark = PutRecord {
        kind: RecordKind::ORGANIZATION_DELETION,
        id: org.0,
        // Records of the organization are deleted before the mark.
        org: None,
        expect: Expect::Any,
        keys: Vec::new(),
        body: json!({"name": name}).to_string().into_bytes(),
        at: mechanism::now_micros(),
    };
    let delete = DeleteRecord { kind: RecordKind::ORGANIZATION, id: org.0, expect: Expect::Any };
    let commands = vec![CatalogCommand::Put(mark), CatalogCommand::Delete(delete)];
    let outcomes = catalog.propose(By::Operator, commands).await?;
    match outcomes.as_slice() {
        [CatalogOutcome::Put { .. }, CatalogOutcome::Deleted { .. } | CatalogOutcome::Stale { .. }] => {
            tracing::info!(organization = %org, name, "an operator deleted an organization");
            Ok(json!({"id": org.to_string(), "name": name, "state": "access has ended; its data is being removed"}))
        }
        [.., other] => Err(unexpected(other)),
        [] => Err(RecordsError::Internal("the catalog returned no outcome".into())),
    }
}

/// Returns the deleted organizations of which something may be left, according to this node's copy of the catalog.
pub(crate) fn marked_organizations(records: &Records) -> Vec<OrgId> {
    let marks = |kind| records.catalog().peek(|view| view.all(kind).map(|mark| OrgId(mark.id)).collect());
    marks(RecordKind::ORGANIZATION_DELETION)
}
