//! Commands to the catalog, and what became of them.

use assay_storage_model::GroupId;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome};
use assay_storage_model::command::Outcome;
use bytes::Bytes;

use crate::Records;
use crate::error::RecordsError;

impl Records {
    /// One command, in the next entry that the catalog's committer makes: many writers share a flush.
    pub(crate) async fn propose_one(&self, command: CatalogCommand) -> Result<CatalogOutcome, RecordsError> {
        let encoded = encode(&command)?;
        of_catalog(self.cluster.write_catalog(encoded).await?)
    }

    /// One log entry: all of them are visible together. Each has an outcome of its own.
    pub(crate) async fn propose(&self, commands: Vec<CatalogCommand>) -> Result<Vec<CatalogOutcome>, RecordsError> {
        let encoded: Vec<_> = commands.iter().map(encode).collect::<Result<_, _>>()?;
        let outcomes = self.cluster.propose(GroupId::CATALOG, encoded).await?;
        let outcomes: Vec<_> = outcomes.into_iter().map(of_catalog).collect::<Result<_, _>>()?;
        if outcomes.len() != commands.len() {
            let said = format!("the catalog answered {} of {} commands", outcomes.len(), commands.len());
            return Err(RecordsError::Internal(said));
        }
        Ok(outcomes)
    }
}

fn encode(command: &CatalogCommand) -> Result<Bytes, RecordsError> {
    assay_storage_catalog::check(command).map_err(RecordsError::TooLarge)?;
    Ok(Bytes::from(command.encode()))
}

fn of_catalog(outcome: Outcome) -> Result<CatalogOutcome, RecordsError> {
    match outcome {
        Outcome::Catalog(outcome) => Ok(outcome),
        other => Err(RecordsError::Internal(format!("the catalog answered {other:?}"))),
    }
}

/// An outcome that the command should not have.
pub(crate) fn unexpected(outcome: &CatalogOutcome) -> RecordsError {
    RecordsError::Internal(format!("the catalog answered {outcome:?}"))
}
