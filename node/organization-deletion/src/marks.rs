//! Marks of deleted organizations. They have no name, because they outlast everything else of the organization.

use assay_node_records::mechanism::{self, By, unexpected};
use assay_node_records::{Records, RecordsError};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{
    CatalogCommand, CatalogOutcome, DeleteRecord, Expect, PutRecord, Record, RecordKind,
};
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
    let mark = mark(org, None);
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

/// Deleted organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeletionMark {
    pub org: OrgId,
    /// Time at which nothing was left on the shards and in the catalog, in microseconds since 1970.
    pub done: Option<i64>,
}

fn mark(org: OrgId, done: Option<i64>) -> PutRecord {
    PutRecord {
        kind: RecordKind::ORGANIZATION_DELETION,
        id: org.0,
        // Records of the organization are deleted before the mark.
        org: None,
        expect: Expect::Any,
        keys: Vec::new(),
        body: json!({"done": done}).to_string().into_bytes(),
        at: mechanism::now_micros(),
    }
}

/// Marks a deletion as complete.
pub(crate) async fn mark_done(records: &Records, org: OrgId) -> Result<(), RecordsError> {
    let put = CatalogCommand::Put(mark(org, Some(mechanism::now_micros())));
    match records.catalog().propose_one(By::System, put).await? {
        CatalogOutcome::Put { .. } => Ok(()),
        other => Err(unexpected(&other)),
    }
}

/// Returns the marks in this node's copy of the catalog.
pub(crate) fn deletion_marks(records: &Records) -> Vec<DeletionMark> {
    let done = |mark: &Record| mechanism::read_body(mark).ok()?.get("done")?.as_i64();
    records.catalog().peek(|view| {
        let marks = view.all(RecordKind::ORGANIZATION_DELETION);
        marks.map(|mark| DeletionMark { org: OrgId(mark.id), done: done(mark) }).collect()
    })
}
