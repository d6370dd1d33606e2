//! Storage of an executor's record in the catalog. A write that another executor has overtaken is refused.

use assay_node_online_scoring::ExecutorRecord;
use assay_node_records::mechanism::{By, executor_put};
use assay_node_records::{Catalog, RecordsError};
use assay_storage_model::ObjectKey;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, DeleteRecord, Expect, RecordKind};
use thiserror::Error;
use uuid::Uuid;

/// Failure to store a record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum StoreError {
    /// Another executor follows the log.
    #[error("another node has taken over")]
    Overtaken,
    #[error("{0}")]
    Unavailable(String),
}

/// Record of an executor with its revision.
#[derive(Clone, Debug)]
pub(crate) struct StoredRecord {
    pub record: ExecutorRecord,
    /// Revision in the catalog; `None` if the record is not stored yet.
    pub revision: Option<u64>,
}

/// Returns the stored record, as of all writes acknowledged before the call.
pub(crate) async fn load(catalog: &Catalog, object: &ObjectKey) -> Result<Option<StoredRecord>, StoreError> {
    catalog.fresh().await.map_err(unavailable)?;
    let found = catalog.peek(|view| view.get(RecordKind::ONLINE_SCORING, object.id).cloned());
    let read = found.map(|found| {
        let record = ExecutorRecord::decode(&found.body).map_err(StoreError::Unavailable)?;
        Ok(StoredRecord { record, revision: Some(found.revision) })
    });
    read.transpose()
}

/// Returns the record in this node's copy of the catalog.
pub(crate) fn peek(catalog: &Catalog, project: Uuid) -> Option<ExecutorRecord> {
    let found = catalog.peek(|view| view.get(RecordKind::ONLINE_SCORING, project).cloned())?;
    ExecutorRecord::decode(&found.body).ok()
}

/// Stores a record over the revision that it was read at.
pub(crate) async fn store(catalog: &Catalog, object: &ObjectKey, stored: &mut StoredRecord) -> Result<(), StoreError> {
    let expect = stored.revision.map_or(Expect::Absent, Expect::Revision);
    let put = executor_put(object.org, object.id, expect, &stored.record);
    match catalog.propose_one(By::System, CatalogCommand::Put(put)).await {
        Ok(CatalogOutcome::Put { revision, .. }) => {
            stored.revision = Some(revision);
            Ok(())
        }
        Ok(CatalogOutcome::Stale { .. } | CatalogOutcome::Taken { .. }) => overtaken(catalog, object, stored).await,
        Ok(other) => Err(StoreError::Unavailable(format!("the catalog refused the record: {other:?}"))),
        Err(RecordsError::Unknown(_)) => overtaken(catalog, object, stored).await,
        Err(why) => Err(unavailable(why)),
    }
}

/// Decides on a write that another one preceded: a demand of a client is taken over, another executor is not.
async fn overtaken(catalog: &Catalog, object: &ObjectKey, stored: &mut StoredRecord) -> Result<(), StoreError> {
    let Some(found) = load(catalog, object).await? else { return Err(StoreError::Overtaken) };
    if found.record == stored.record {
        stored.revision = found.revision;
        return Ok(());
    }
    if found.record.writer != stored.record.writer {
        return Err(StoreError::Overtaken);
    }
    stored.record.demanded_ms = stored.record.demanded_ms.max(found.record.demanded_ms);
    stored.revision = found.revision;
    Err(StoreError::Unavailable("the record has changed; it is stored again".into()))
}

/// Deletes the records of deleted projects, and returns their number.
pub(crate) async fn sweep(catalog: &Catalog) -> Result<usize, StoreError> {
    let gone: Vec<(Uuid, u64)> = catalog.peek(|view| {
        let records = view.all(RecordKind::ONLINE_SCORING);
        let gone = records.filter(|record| view.get(RecordKind::PROJECT, record.id).is_none());
        gone.map(|record| (record.id, record.revision)).collect()
    });
    for (id, revision) in &gone {
        let expect = Expect::Revision(*revision);
        let delete = CatalogCommand::Delete(DeleteRecord { kind: RecordKind::ONLINE_SCORING, id: *id, expect });
        catalog.propose_one(By::System, delete).await.map_err(unavailable)?;
    }
    Ok(gone.len())
}

fn unavailable(why: RecordsError) -> StoreError {
    StoreError::Unavailable(why.to_string())
}
