//! Store of evaluations in the catalog, which all nodes change by conditional writes.

use std::fmt;

use assay_node_records::mechanism::{By, now_micros, unexpected};
use assay_node_records::{Catalog, RecordsError};
use assay_storage_model::catalog::{
    CatalogCommand, CatalogOutcome, DeleteRecord, Expect, PutRecord, Record, RecordKind, UniqueKey,
};
use uuid::Uuid;

use super::record::EvalJobRecord;

/// Scope of the unique keys, which a record needs because one without keys counts as deleted.
const EVAL_JOB_SCOPE: &str = "eval_job";

/// Store of evaluations.
#[derive(Clone)]
pub struct EvalJobs(Catalog);

/// Outcome of a conditional write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvalJobPut {
    /// The write is durable on a majority.
    Written { revision: u64 },
    /// Another write came first.
    Stale,
}

impl fmt::Debug for EvalJobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EvalJobs")
    }
}

impl EvalJobs {
    pub fn new(catalog: &Catalog) -> EvalJobs {
        EvalJobs(catalog.clone())
    }

    /// Returns an evaluation from the local copy of the catalog.
    pub fn get(&self, id: Uuid) -> Option<EvalJobRecord> {
        read(&*self.0.peek(|view| view.get(RecordKind::EVAL_JOB, id).cloned())?)
    }

    /// Returns an evaluation with all changes that were acknowledged before the call.
    pub async fn newest(&self, id: Uuid) -> Result<Option<EvalJobRecord>, RecordsError> {
        self.0.fresh().await?;
        Ok(self.get(id))
    }

    /// Returns all evaluations from the local copy of the catalog.
    pub fn all(&self) -> Vec<EvalJobRecord> {
        let stored: Vec<_> = self.0.peek(|view| view.all(RecordKind::EVAL_JOB).cloned().collect());
        stored.iter().filter_map(|record| read(record)).collect()
    }

    /// Writes a record if the stored one has the revision of this one.
    pub async fn put(&self, job: &EvalJobRecord) -> Result<EvalJobPut, RecordsError> {
        let put = PutRecord {
            kind: RecordKind::EVAL_JOB,
            id: job.id,
            org: Some(job.org),
            expect: job.revision.map_or(Expect::Absent, Expect::Revision),
            keys: vec![UniqueKey::new(EVAL_JOB_SCOPE, job.id.to_string())],
            body: serde_json::to_vec(&job.body).map_err(|why| RecordsError::Internal(why.to_string()))?,
            at: now_micros(),
        };
        match self.0.propose_one(By::System, CatalogCommand::Put(put)).await? {
            CatalogOutcome::Put { revision, .. } => Ok(EvalJobPut::Written { revision }),
            CatalogOutcome::Stale { .. } | CatalogOutcome::Taken { .. } => Ok(EvalJobPut::Stale),
            other => Err(unexpected(&other)),
        }
    }

    /// Deletes an evaluation that has not changed since it was read.
    pub async fn delete(&self, job: &EvalJobRecord) -> Result<(), RecordsError> {
        let expect = job.revision.map_or(Expect::Any, Expect::Revision);
        let delete = DeleteRecord { kind: RecordKind::EVAL_JOB, id: job.id, expect };
        self.0.propose_one(By::System, CatalogCommand::Delete(delete)).await.map(drop)
    }
}

fn read(record: &Record) -> Option<EvalJobRecord> {
    let org = record.org?;
    match serde_json::from_slice(&record.body) {
        Ok(body) => Some(EvalJobRecord { id: record.id, org, revision: Some(record.revision), body }),
        Err(error) => {
            tracing::error!(job = %record.id, %error, "the record of an evaluation cannot be read");
            None
        }
    }
}
