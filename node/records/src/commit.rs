//! Commands to the catalog, and their results.

use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, DeleteRecord, Expect, RecordKind};
use assay_storage_model::command::Outcome;
use assay_storage_model::{GroupId, OrgId};
use bytes::Bytes;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::audit::{By, entry};
use crate::catalog::Catalog;
use crate::error::RecordsError;

impl Catalog {
    /// Proposes one command, which shares a log entry and a flush with concurrent ones. Its audit entry is written
    /// first.
    pub async fn propose_one(&self, by: By<'_>, command: CatalogCommand) -> Result<CatalogOutcome, RecordsError> {
        let encoded = encode(&command)?;
        self.keep(by, std::slice::from_ref(&command)).await?;
        of_catalog(self.cluster.write_catalog(encoded).await?)
    }

    /// Proposes commands in one log entry, so that they become visible together. Each has its own outcome.
    pub async fn propose(
        &self,
        by: By<'_>,
        commands: Vec<CatalogCommand>,
    ) -> Result<Vec<CatalogOutcome>, RecordsError> {
        let encoded: Vec<_> = commands.iter().map(encode).collect::<Result<_, _>>()?;
        self.keep(by, &commands).await?;
        let outcomes = self.cluster.propose(GroupId::CATALOG, encoded).await?;
        let outcomes: Vec<_> = outcomes.into_iter().map(of_catalog).collect::<Result<_, _>>()?;
        if outcomes.len() != commands.len() {
            let said = format!("the catalog returned {} outcomes for {} commands", outcomes.len(), commands.len());
            return Err(RecordsError::Internal(said));
        }
        Ok(outcomes)
    }

    /// Deletes a record. A missing one is no error.
    pub async fn delete_record(&self, by: By<'_>, kind: RecordKind, id: Uuid) -> Result<(), RecordsError> {
        let delete = DeleteRecord { kind, id, expect: Expect::Any };
        match self.propose_one(by, CatalogCommand::Delete(delete)).await? {
            CatalogOutcome::Deleted { .. } | CatalogOutcome::Stale { .. } => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    async fn keep(&self, by: By<'_>, commands: &[CatalogCommand]) -> Result<(), RecordsError> {
        let entries: Vec<_> = self.peek(|view| commands.iter().filter_map(|one| entry(view, by, one)).collect());
        for (org, entry) in entries {
            self.keep_entry(org, entry).await?;
        }
        Ok(())
    }

    /// Writes an audit entry. On an error the change must not be executed.
    pub async fn keep_entry(&self, org: OrgId, entry: Map<String, Value>) -> Result<(), RecordsError> {
        let refused = |why| {
            RecordsError::Unavailable(format!("nothing was done, because the audit log could not be written: {why}"))
        };
        self.ledger.append(org, entry).await.map_err(refused)
    }
}

fn encode(command: &CatalogCommand) -> Result<Bytes, RecordsError> {
    assay_storage_catalog::check(command).map_err(RecordsError::TooLarge)?;
    Ok(Bytes::from(command.encode()))
}

fn of_catalog(outcome: Outcome) -> Result<CatalogOutcome, RecordsError> {
    match outcome {
        Outcome::Catalog(outcome) => Ok(outcome),
        other => Err(RecordsError::Internal(format!("the catalog returned an unexpected outcome: {other:?}"))),
    }
}

/// Returns the error for an outcome that the command cannot have.
pub fn unexpected(outcome: &CatalogOutcome) -> RecordsError {
    RecordsError::Internal(format!("the catalog returned an unexpected outcome: {outcome:?}"))
}
