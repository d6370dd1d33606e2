//! Commands to the catalog, and what became of them.

use assay_storage_model::GroupId;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome};
use assay_storage_model::command::Outcome;
use bytes::Bytes;

use crate::Records;
use crate::error::RecordsError;

impl Records {
    /// One log entry: all of them are visible together. Each has an outcome of its own.
    pub(crate) async fn propose(&self, commands: Vec<CatalogCommand>) -> Result<Vec<CatalogOutcome>, RecordsError> {
        for command in &commands {
            assay_storage_catalog::check(command).map_err(RecordsError::TooLarge)?;
        }
        let wanted = commands.len();
        let encoded = commands.iter().map(|command| Bytes::from(command.encode())).collect();
        let outcomes = self.cluster.propose(GroupId::CATALOG, encoded).await?;
        let of_catalog = |outcome| match outcome {
            Outcome::Catalog(outcome) => Ok(outcome),
            other => Err(RecordsError::Internal(format!("the catalog answered {other:?}"))),
        };
        let outcomes: Vec<_> = outcomes.into_iter().map(of_catalog).collect::<Result<_, _>>()?;
        if outcomes.len() != wanted {
            let said = format!("the catalog answered {} of {wanted} commands", outcomes.len());
            return Err(RecordsError::Internal(said));
        }
        Ok(outcomes)
    }

    pub(crate) async fn propose_one(&self, command: CatalogCommand) -> Result<CatalogOutcome, RecordsError> {
        let mut outcomes = self.propose(vec![command]).await?;
        outcomes.pop().ok_or_else(|| RecordsError::Internal("the catalog answered nothing".into()))
    }
}

/// An outcome that the command should not have.
pub(crate) fn unexpected(outcome: &CatalogOutcome) -> RecordsError {
    RecordsError::Internal(format!("the catalog answered {outcome:?}"))
}
