//! Catalog as budgets use it: rules and ledgers in the local copy, and conditional writes of ledgers.

use assay_storage_model::OrgId;
use futures::future::BoxFuture;
use uuid::Uuid;

use crate::rule::BudgetRule;

/// Ledger as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLedger {
    pub revision: u64,
    pub body: Vec<u8>,
}

/// Conditional write of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerPut {
    pub budget: Uuid,
    pub org: OrgId,
    /// Revision that the stored ledger has to have; `None` if there has to be no ledger.
    pub expect: Option<u64>,
    pub body: Vec<u8>,
}

/// Outcome of a conditional write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerPutOutcome {
    /// Durable on a majority, and visible in the local copy.
    Written,
    /// Another write was first. The local copy has it.
    Stale,
    NotWritten(String),
    /// The write may have been made, or may still be.
    Unknown(String),
}

/// Storage of rules and ledgers. The program uses the replicated catalog, tests use memory.
pub trait BudgetCatalog: Send + Sync + 'static {
    /// Returns a number that grows whenever a rule changes.
    fn rules_version(&self) -> u64;

    /// Returns all rules of the local copy.
    fn rules(&self) -> Vec<BudgetRule>;

    /// Returns the rule of a budget in the local copy.
    fn rule(&self, budget: Uuid) -> Option<BudgetRule> {
        self.rules().into_iter().find(|rule| rule.id == budget)
    }

    /// Returns the ledger of a budget in the local copy.
    fn ledger(&self, budget: Uuid) -> Option<StoredLedger>;

    /// Returns the budgets that have a ledger in the local copy, and the revisions of these.
    fn ledgers(&self) -> Vec<(Uuid, u64)>;

    /// Returns when everything acknowledged before the call is in the local copy.
    fn fence(&self) -> BoxFuture<'_, Result<(), String>>;

    fn put(&self, put: LedgerPut) -> BoxFuture<'_, LedgerPutOutcome>;

    /// Deletes a ledger of this revision. One that is gone or newer is left alone.
    fn delete(&self, budget: Uuid, revision: u64) -> BoxFuture<'_, Result<(), String>>;

    /// Milliseconds since 1970, UTC.
    fn now_ms(&self) -> i64;
}
