//! Storage of budget rules and ledgers in the replicated catalog.

use std::fmt;

use assay_node_records::kinds::temporary_credential::TemporaryCredential;
use assay_node_records::mechanism::{By, now_micros};
use assay_node_records::{Catalog, RecordsError};
use assay_storage_model::catalog::{
    CatalogCommand, CatalogOutcome, DeleteRecord, Expect, PutRecord, Record, RecordKind, UniqueKey,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use uuid::Uuid;

use crate::catalog::{BudgetCatalog, LedgerPut, LedgerPutOutcome, StoredLedger};
use crate::rule::BudgetRule;

/// Scope of the unique keys of ledgers, which need a key because a record without one counts as deleted.
const LEDGER_SCOPE: &str = "gateway_budget_ledger";

/// Storage of budgets in the replicated catalog of the cluster.
#[derive(Clone)]
pub struct ReplicatedBudgets(pub Catalog);

impl fmt::Debug for ReplicatedBudgets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReplicatedBudgets")
    }
}

impl BudgetCatalog for ReplicatedBudgets {
    fn rules_version(&self) -> u64 {
        self.0.peek(|view| view.changed(&[RecordKind::GATEWAY_BUDGET, RecordKind::TEMPORARY_CREDENTIAL]))
    }

    fn rules(&self) -> Vec<BudgetRule> {
        let read = self.0.peek(|view| {
            let there = view.all(RecordKind::GATEWAY_BUDGET).filter(|record| !record.keys.is_empty());
            let rules = there.filter_map(|record| Some(BudgetRule::read(record.id, record.org?, &record.body)));
            rules.collect::<Vec<_>>()
        });
        let readable = |rule: Result<BudgetRule, _>| {
            rule.inspect_err(|error| tracing::error!(%error, "a budget is not enforced, because it cannot be read"))
                .ok()
        };
        let temporary = self.0.peek(|view| {
            let there = view.all(RecordKind::TEMPORARY_CREDENTIAL).filter(|record| !record.keys.is_empty());
            there.filter_map(|record| of_temporary(record)).collect::<Vec<_>>()
        });
        read.into_iter().filter_map(readable).chain(temporary).collect()
    }

    fn rule(&self, budget: Uuid) -> Option<BudgetRule> {
        self.0.peek(|view| match view.get(RecordKind::GATEWAY_BUDGET, budget) {
            Some(record) => BudgetRule::read(record.id, record.org?, &record.body).ok(),
            None => of_temporary(view.get(RecordKind::TEMPORARY_CREDENTIAL, budget)?),
        })
    }

    fn exists(&self, budget: Uuid) -> bool {
        let kinds = [RecordKind::GATEWAY_BUDGET, RecordKind::TEMPORARY_CREDENTIAL];
        self.0
            .peek(|view| kinds.iter().any(|kind| view.get(*kind, budget).is_some_and(|record| !record.keys.is_empty())))
    }

    fn ledger(&self, budget: Uuid) -> Option<StoredLedger> {
        let record = self.0.peek(|view| view.get(RecordKind::BUDGET_LEDGER, budget).cloned())?;
        Some(StoredLedger { revision: record.revision, body: record.body.clone() })
    }

    fn ledgers(&self) -> Vec<(Uuid, u64)> {
        self.0.peek(|view| view.all(RecordKind::BUDGET_LEDGER).map(|record| (record.id, record.revision)).collect())
    }

    fn fence(&self) -> BoxFuture<'_, Result<(), String>> {
        async { self.0.fresh().await.map_err(|error| error.to_string()) }.boxed()
    }

    fn put(&self, put: LedgerPut) -> BoxFuture<'_, LedgerPutOutcome> {
        let put = PutRecord {
            kind: RecordKind::BUDGET_LEDGER,
            id: put.budget,
            org: Some(put.org),
            expect: put.expect.map_or(Expect::Absent, Expect::Revision),
            keys: vec![UniqueKey::new(LEDGER_SCOPE, put.budget.to_string())],
            body: put.body,
            at: now_micros(),
        };
        async move { outcome(self.0.propose_one(By::System, CatalogCommand::Put(put)).await) }.boxed()
    }

    fn delete(&self, budget: Uuid, revision: u64) -> BoxFuture<'_, Result<(), String>> {
        let expect = Expect::Revision(revision);
        let delete = CatalogCommand::Delete(DeleteRecord { kind: RecordKind::BUDGET_LEDGER, id: budget, expect });
        async move { self.0.propose_one(By::System, delete).await.map(drop).map_err(|error| error.to_string()) }.boxed()
    }

    fn now_ms(&self) -> i64 {
        now_micros().div_euclid(1000)
    }
}

/// Returns the rule of a temporary credential, or `None` if the credential has no limits.
fn of_temporary(record: &Record) -> Option<BudgetRule> {
    let credential = TemporaryCredential::read(record).ok()?;
    let limits = (credential.terms.max_requests, credential.terms.max_cost);
    BudgetRule::of_temporary(record.id, record.org?, limits)
}

fn outcome(answer: Result<CatalogOutcome, RecordsError>) -> LedgerPutOutcome {
    match answer {
        Ok(CatalogOutcome::Put { .. }) => LedgerPutOutcome::Written,
        Ok(CatalogOutcome::Stale { .. }) => LedgerPutOutcome::Stale,
        Ok(other) => LedgerPutOutcome::NotWritten(format!("the catalog refused the ledger: {other:?}")),
        Err(
            error @ (RecordsError::Busy(_)
            | RecordsError::Unavailable(_)
            | RecordsError::NoSpace(_)
            | RecordsError::TooLarge(_)),
        ) => LedgerPutOutcome::NotWritten(error.to_string()),
        Err(error) => LedgerPutOutcome::Unknown(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_surely_not_written_counts_as_not_written() {
        assert_eq!(outcome(Ok(CatalogOutcome::Put { revision: 1, made: true })), LedgerPutOutcome::Written);
        assert_eq!(outcome(Ok(CatalogOutcome::Stale { revision: None })), LedgerPutOutcome::Stale);
        let of = |error| outcome(Err(error));
        assert!(matches!(of(RecordsError::Unavailable("x".into())), LedgerPutOutcome::NotWritten(_)));
        assert!(matches!(of(RecordsError::Unknown("x".into())), LedgerPutOutcome::Unknown(_)));
        assert!(matches!(of(RecordsError::Internal("x".into())), LedgerPutOutcome::Unknown(_)));
    }
}
