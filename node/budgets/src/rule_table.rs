//! Index of rules by scope, which finds the rules of a call without a scan of all rules.

use std::collections::HashMap;
use std::sync::Arc;

use assay_storage_model::OrgId;
use parking_lot::RwLock;
use uuid::Uuid;

use crate::catalog::BudgetCatalog;
use crate::rule::{BudgetRule, BudgetScope};

/// Index of all rules in one version of the catalog.
#[derive(Debug, Default)]
pub(crate) struct RuleTable {
    version: Option<u64>,
    by_id: HashMap<Uuid, Arc<BudgetRule>>,
    by_scope: HashMap<(OrgId, BudgetScope), Vec<Arc<BudgetRule>>>,
}

impl RuleTable {
    fn new(version: u64, rules: Vec<BudgetRule>) -> RuleTable {
        let mut table = RuleTable { version: Some(version), ..RuleTable::default() };
        for rule in rules {
            let rule = Arc::new(rule);
            table.by_id.insert(rule.id, Arc::clone(&rule));
            table.by_scope.entry((rule.org, rule.scope.clone())).or_default().push(rule);
        }
        table
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub fn has(&self, budget: Uuid) -> bool {
        self.by_id.contains_key(&budget)
    }

    /// Returns the rules that apply to any of these scopes.
    pub fn matching(&self, org: OrgId, scopes: impl IntoIterator<Item = BudgetScope>) -> Vec<Arc<BudgetRule>> {
        let of_scope = |scope| self.by_scope.get(&(org, scope)).into_iter().flatten().map(Arc::clone);
        scopes.into_iter().flat_map(of_scope).collect()
    }

    /// Returns all rules, ordered by id.
    pub fn all(&self) -> Vec<Arc<BudgetRule>> {
        let mut all: Vec<_> = self.by_id.values().map(Arc::clone).collect();
        all.sort_by_key(|rule| rule.id);
        all
    }
}

/// Cached table for the newest version in the local copy of the catalog.
#[derive(Debug, Default)]
pub(crate) struct RuleCache(RwLock<Arc<RuleTable>>);

impl RuleCache {
    pub fn table(&self, catalog: &dyn BudgetCatalog) -> Arc<RuleTable> {
        let version = catalog.rules_version();
        let known = Arc::clone(&self.0.read());
        if known.version == Some(version) {
            return known;
        }
        // The version is read first, so a concurrent change makes the next call read the rules again.
        let table = Arc::new(RuleTable::new(version, catalog.rules()));
        *self.0.write() = Arc::clone(&table);
        table
    }

    pub fn get(&self, catalog: &dyn BudgetCatalog, budget: Uuid) -> Option<Arc<BudgetRule>> {
        self.table(catalog).by_id.get(&budget).map(Arc::clone)
    }
}
