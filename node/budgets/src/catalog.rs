//! Interface of budgets to the catalog: local rules and ledgers, and conditional writes of ledgers.

use assay_storage_model::OrgId;
use futures::future::BoxFuture;
use uuid::Uuid;

use crate::rule::BudgetRule;

/// Stored ledger with its revision.
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
    /// Expected revision of the stored ledger, or `None` if no ledger may exist.
    pub expect: Option<u64>,
    pub body: Vec<u8>,
}

/// Outcome of a conditional write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerPutOutcome {
    /// The write is durable on a majority, and visible in the local copy.
    Written,
    /// Another write came first, and the local copy contains it.
    Stale,
    NotWritten(String),
    /// The write may have taken effect, or may still take effect.
    Unknown(String),
}

/// Storage of rules and ledgers.
///
/// The program uses the replicated catalog, whereas tests use memory.
pub trait BudgetCatalog: Send + Sync + 'static {
    /// Returns a number that increases whenever a rule changes.
    fn rules_version(&self) -> u64;

    /// Returns all rules from the local copy.
    fn rules(&self) -> Vec<BudgetRule>;

    /// Returns the rule of a budget from the local copy.
    fn rule(&self, budget: Uuid) -> Option<BudgetRule> {
        self.rules().into_iter().find(|rule| rule.id == budget)
    }

    /// Returns whether a budget exists in the local copy, even if this version cannot read its rule.
    fn exists(&self, budget: Uuid) -> bool {
        self.rule(budget).is_some()
    }

    /// Returns the ledger of a budget from the local copy.
    fn ledger(&self, budget: Uuid) -> Option<StoredLedger>;

    /// Returns the budgets with a ledger in the local copy, and the revisions of these ledgers.
    fn ledgers(&self) -> Vec<(Uuid, u64)>;

    /// Waits until the local copy contains every write acknowledged before the call.
    fn fence(&self) -> BoxFuture<'_, Result<(), String>>;

    fn put(&self, put: LedgerPut) -> BoxFuture<'_, LedgerPutOutcome>;

    /// Deletes a ledger if it has this revision. A missing or newer ledger is left alone.
    fn delete(&self, budget: Uuid, revision: u64) -> BoxFuture<'_, Result<(), String>>;

    /// Returns the current time in milliseconds since 1970, UTC.
    fn now_ms(&self) -> i64;
}
